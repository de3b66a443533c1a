//! Padded rows and their lengths as lists.

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use super::{options::ImportOptions, ragged::ragged};
use crate::alloc::{self, Fresh};
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
pub use crate::kernels::Side;
use crate::kernels::{self, CellValues, Cells, Padding};
use crate::tensor::TensorSpec;
use crate::{
    CopyPolicy, CopyReason, Error, LengthsProblem, ManagedTensor, Number, layout, task::Steps,
};

/// Makes lists of a tensor (rows, length, ...), whose rows are padded on one side, and a tensor of the rows' lengths.
///
/// It is the way back from [`export::padded`](crate::export::padded). The values are copied, because the lists have no
/// padding. Rows are those of [`ragged`], with its types, and null where `mask`, of one boolean per row, is false.
///
/// ```
/// use arrow_array::{ListArray, cast::AsArray, types::Int64Type};
/// use arrow_dlpack::export::{self, PadOptions};
/// use arrow_dlpack::{ExportOptions, ImportOptions, import};
///
/// let rows = [Some(vec![Some(1), Some(2)]), Some(vec![]), Some(vec![Some(3)])];
/// let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
/// let padded = export::padded(&lists, &PadOptions::default(), &ExportOptions::default())?;
/// let (again, _) = import::padded(padded.values, padded.lengths, None, padded.side, &ImportOptions::default())?;
/// assert_eq!(again.as_list::<i32>(), &lists);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `BadLengths`; `WrongRank` if the values have no axis of lengths, or the lengths are not 1-D; `CopyForbidden`; the
/// errors of [`ragged`]. The tensors are released before an error is returned.
pub fn padded(
    values: ManagedTensor,
    lengths: ManagedTensor,
    mask: Option<ManagedTensor>,
    side: Side,
    options: &ImportOptions,
) -> Result<(ArrayRef, FieldRef), Error> {
    let &[rows, width, ref item @ ..] = values.shape() else {
        return Err(Error::WrongRank { what: "padded values", expected: 2, ndim: values.ndim() });
    };
    let lengths = read_lengths(&lengths, rows, width)?;
    let sum = lengths.iter().try_fold(0_usize, |sum, &length| sum.checked_add(length));
    let sum = sum.and_then(|sum| i64::try_from(sum).ok()).ok_or(Error::Overflow("length"))?;
    let (dtype, flags) = (values.dtype(), values.flags());
    let cell = values.itemsize().ok_or(Error::PackedStrides { dtype })?;
    let value = layout::element_count(item)?.checked_mul(cell);
    let value = value.ok_or(Error::Overflow("size in bytes"))?;
    let count = |extent| usize::try_from(extent).map_err(|_| Error::Overflow("length"));
    let (rows, width) = (count(rows)?, count(width)?);
    if options.copy == CopyPolicy::Never {
        let nbytes = count(sum)?.saturating_mul(value);
        return Err(Error::CopyForbidden { reason: CopyReason::Padded(width), nbytes });
    }
    let padding = Padding { rows, width, value, cell, fill: [0; 16], side };
    let shape: Vec<i64> = std::iter::once(sum).chain(item.iter().copied()).collect();
    let gathered;
    let bytes = match (values.row_major_obstacle(), values.span()) {
        (None, Some((bytes, _))) => bytes,
        _ => {
            gathered = kernels::gather(&values)?.into_buffer();
            &gathered
        }
    };
    let memory = padding.unpad(bytes, &lengths)?;
    let flags =
        flags.intersection(DLPackFlags::IS_SUBBYTE_TYPE_PADDED).union(DLPackFlags::IS_COPIED);
    let strides = layout::row_major(&shape);
    let values =
        ManagedTensor::from_fresh(memory, TensorSpec::new(dtype, flags, &shape, &strides))?;
    ragged(values, offsets(&lengths, sum)?, mask, options)
}

/// The lengths of `rows` rows of `width` values.
fn read_lengths(lengths: &ManagedTensor, rows: i64, width: i64) -> Result<Vec<usize>, Error> {
    let (dtype, ndim) = (lengths.dtype(), lengths.ndim());
    if !matches!(dtype.code, DLDataTypeCode::INT | DLDataTypeCode::UINT)
        || !kernels::can_convert(dtype, DLDataType::INT64)
    {
        return Err(Error::BadLengths(LengthsProblem::Dtype(dtype)));
    }
    let &[count] = lengths.shape() else {
        return Err(Error::WrongRank { what: "lengths", expected: 1, ndim });
    };
    if count != rows {
        return Err(Error::BadLengths(LengthsProblem::Count { lengths: count, rows }));
    }
    let found = kernels::gather(lengths)?.into_buffer();
    let values = CellValues::Words { bytes: &found, dtype };
    let bad = |row, length| Error::BadLengths(LengthsProblem::Row { row, length, width });
    let cells = [Cells { values, nulls: None }];
    let wide = Fresh::vector::<i64>(lengths.size(), |out| {
        kernels::concatenate(&cells, DLDataType::INT64, None, None, out)
    });
    let wide = wide.map_err(|error| match error {
        Error::ValueDoesNotFit { value: Number::Int(length), row, .. } => bad(row, length),
        error => error,
    });
    alloc::try_collect(wide?.iter().enumerate().map(|(row, &length)| {
        let own = usize::try_from(length).ok().filter(|_| length <= width);
        own.ok_or_else(|| bad(row, length.into()))
    }))
}

/// The offset at which each row begins, and the sum of all lengths.
fn offsets(lengths: &[usize], sum: i64) -> Result<ManagedTensor, Error> {
    fn build<O: arrow_array::OffsetSizeTrait>(lengths: &[usize]) -> Result<Fresh, Error> {
        Fresh::try_build::<O>(lengths.len() + 1, |out| {
            let (mut end, mut steps) = (0, Steps::default());
            out.push(O::usize_as(end));
            for length in lengths {
                end += length;
                out.push(O::usize_as(end));
                steps.done(size_of::<O>())?;
            }
            Ok(())
        })
    }
    let (memory, dtype) = match i32::try_from(sum) {
        Ok(_) => (build::<i32>(lengths)?, DLDataType::INT32),
        Err(_) => (build::<i64>(lengths)?, DLDataType::INT64),
    };
    let count = i64::try_from(lengths.len() + 1).map_err(|_| Error::Overflow("length"))?;
    ManagedTensor::from_fresh(
        memory,
        TensorSpec::new(dtype, DLPackFlags::IS_COPIED, &[count], &[1]),
    )
}
