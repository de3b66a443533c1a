//! Values and offsets as rows of different lengths: lists, strings or binaries.

use std::sync::Arc;

use arrow_array::types::{ByteArrayType, GenericBinaryType, GenericStringType, UInt8Type};
use arrow_array::{ArrayRef, GenericByteArray, GenericListArray, OffsetSizeTrait, cast::AsArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::convert::{self, Decided};
use super::mask;
use super::options::{ImportOptions, Representation};
use super::ranges;
use crate::alloc::Fresh;
use crate::chunks::{Bounds, Integers};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels::{self, CellValues, Cells};
use crate::{
    CopyPolicy, CopyReason, Error, ManagedTensor, MaskProblem, Number, OffsetsProblem, Plan,
    arrow_types,
};

/// Makes lists, strings or binaries of a tensor of values and a tensor of offsets: row `i` has the values
/// `offsets[i]..offsets[i + 1]`.
///
/// By default rows are lists: LargeList if the offsets need 64 bits, and List otherwise, with items as
/// [`from_dlpack`](super::from_dlpack) would import the values. [`Representation::Field`] asks for a list type, or
/// for Utf8, LargeUtf8, Binary or LargeBinary, whose values are uint8. Other representations apply to the items.
///
/// The function checks offsets and UTF-8, so that the array is valid. Offsets and strings are copied, so that it
/// remains valid, unless the tensor is known to be the only way to its memory.
///
/// ```
/// use arrow_array::{Array, Float32Array, Int32Array, cast::AsArray};
/// use arrow_dlpack::{ImportOptions, export, import};
///
/// let values = export::array(&Float32Array::from(vec![1.0, 2.0, 3.0]))?;
/// let offsets = export::array(&Int32Array::from(vec![0, 2, 2, 3]))?;
/// let (rows, _) = import::ragged(values, offsets, None, &ImportOptions::default())?;
/// let lengths: Vec<usize> = rows.as_list::<i32>().iter().flatten().map(|row| row.len()).collect();
/// assert_eq!(lengths, [2, 0, 1]);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// Rows are null where the mask, of one boolean per row, is false, as in [`masked`](super::masked). This is the way
/// back from [`export::ragged`](crate::export::ragged) with [`NullPolicy::Masked`](crate::NullPolicy::Masked):
///
/// ```
/// use arrow_array::{Int8Array, ListArray, cast::AsArray, types::Int8Type};
/// use arrow_dlpack::{ExportOptions, ImportOptions, NullPolicy, export, import};
///
/// let rows = [Some(vec![Some(1), Some(2)]), None, Some(vec![])];
/// let lists = ListArray::from_iter_primitive::<Int8Type, _, _>(rows);
/// let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
/// let ragged = export::ragged(&lists, None, &options)?;
/// let (again, _) = import::ragged(ragged.values, ragged.offsets, ragged.mask, &ImportOptions::default())?;
/// assert_eq!(again.as_list::<i32>(), &lists);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `BadOffsets`, `NotUtf8`; `NotRows` for a type that is not one of these; `BadMask`; `WrongRank` if the offsets are not 1-D; the errors of `from_dlpack`. The
/// tensors are released before an error is returned.
pub fn ragged(
    values: ManagedTensor,
    offsets: ManagedTensor,
    mask: Option<ManagedTensor>,
    options: &ImportOptions,
) -> Result<(ArrayRef, FieldRef), Error> {
    let rows = RaggedImport::prepare(&values, &offsets, options)?;
    let field = Arc::clone(&rows.field);
    let mut nulls = None;
    if let Some(mask) = mask {
        let count = offsets.shape()[0].saturating_sub(1).max(0);
        if mask.shape() != [count] {
            let (mask, shape) = (mask.shape().to_vec(), vec![count]);
            return Err(Error::BadMask(MaskProblem::Shape { mask, shape }));
        }
        let Plan { .. } = mask::plan(&mask, options.copy)?;
        let found = NullBuffer::new(kernels::pack_bools(&mask)?);
        mask::check_nullable(&field, &found)?;
        nulls = (found.null_count() > 0).then_some(found);
    }
    let run = if is_large(&field) { RaggedImport::run::<i64> } else { RaggedImport::run::<i32> };
    Ok((run(rows, values, offsets, nulls)?, field))
}

/// A planned import of values and offsets.
struct RaggedImport {
    field: FieldRef,
    values: Decided,
    offsets: Plan,
}

impl RaggedImport {
    fn prepare(
        values: &ManagedTensor,
        offsets: &ManagedTensor,
        options: &ImportOptions,
    ) -> Result<Self, Error> {
        let dtype = offsets.dtype();
        let is_integer = matches!(dtype.code, DLDataTypeCode::INT | DLDataTypeCode::UINT);
        if !is_integer || dtype.to_arrow().is_none() {
            return Err(Error::BadOffsets(OffsetsProblem::Dtype(dtype)));
        }
        let &[_] = offsets.shape() else {
            return Err(Error::WrongRank { what: "offsets", expected: 1, ndim: offsets.ndim() });
        };
        let (field, values) = match &options.representation {
            Representation::Field(field) => {
                arrow_types::check(field.data_type())?;
                (Arc::clone(field), of_type(values, field, options)?)
            }
            _ => {
                let values = convert::decide(values, options)?;
                (lists(&values.field, dtype), values)
            }
        };
        let wanted = if is_large(&field) { DLDataType::INT64 } else { DLDataType::INT32 };
        Ok(Self { offsets: plan_offsets(offsets, wanted, options.copy)?, field, values })
    }

    fn run<O: OffsetSizeTrait>(
        self,
        values: ManagedTensor,
        offsets: ManagedTensor,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, Error> {
        let offsets = read_offsets::<O>(offsets, &self.offsets)?;
        if offsets.is_empty() {
            return Err(Error::BadOffsets(OffsetsProblem::Missing));
        }
        Bounds::Offsets(Integers::new(&offsets)).check(self.values.len)?;
        let offsets = OffsetBuffer::new(offsets);
        let (values, _) = self.values.run(values)?;
        let rows: ArrayRef = match self.field.data_type() {
            DataType::List(item) | DataType::LargeList(item) => {
                let lists = GenericListArray::try_new(Arc::clone(item), offsets, values, nulls);
                Arc::new(lists.unwrap_or_else(arrow_types::impossible))
            }
            DataType::Utf8 | DataType::LargeUtf8 => {
                bytes::<GenericStringType<O>>(offsets, &values, nulls)?
            }
            _ => bytes::<GenericBinaryType<O>>(offsets, &values, nulls)?,
        };
        ranges::check(&rows)?;
        Ok(rows)
    }
}

/// Whether the offsets of a type are of 64 bits.
fn is_large(field: &Field) -> bool {
    use DataType::{LargeBinary, LargeList, LargeUtf8};
    matches!(field.data_type(), LargeList(_) | LargeUtf8 | LargeBinary)
}

/// The values as the items of this type.
fn of_type(
    values: &ManagedTensor,
    field: &FieldRef,
    options: &ImportOptions,
) -> Result<Decided, Error> {
    let refused = || {
        let (dtype, shape, field) = (values.dtype(), values.shape().to_vec(), Arc::clone(field));
        Error::CannotBecome { dtype, shape, field }
    };
    let item = match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => Arc::clone(item),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            Arc::new(Field::new("", DataType::UInt8, false))
        }
        _ => return Err(Error::NotRows { field: Arc::clone(field) }),
    };
    let options = options.clone().with_representation(Representation::Field(item));
    let mut prepared = convert::decide(values, &options).map_err(|error| match error {
        // The error names the requested type of the rows, not that of the items.
        Error::CannotBecome { .. } => refused(),
        error => error,
    })?;
    let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8);
    if is_text && prepared.plan.is_zero_copy() && values.may_change() {
        prepared.plan = Plan::decide(vec![CopyReason::Checked], values.nbytes(), options.copy)?;
    }
    Ok(prepared)
}

/// A nameless field of lists, with the width of the offsets.
fn lists(item: &FieldRef, offsets: DLDataType) -> FieldRef {
    let item = item.as_ref().clone().with_name(Field::LIST_FIELD_DEFAULT_NAME);
    let lists = match offsets {
        DLDataType::INT64 | DLDataType::UINT64 | DLDataType::UINT32 => DataType::LargeList,
        _ => DataType::List,
    };
    Arc::new(Field::new("", lists(Arc::new(item)), true))
}

fn plan_offsets(
    offsets: &ManagedTensor,
    wanted: DLDataType,
    copy: CopyPolicy,
) -> Result<Plan, Error> {
    offsets.check_readable()?;
    let dtype = offsets.dtype();
    let align = usize::from(wanted.bits) / 8;
    let cast = (dtype != wanted).then_some(CopyReason::Cast { from: dtype, to: wanted });
    let misaligned = offsets.data().addr() % align != 0;
    let misaligned = misaligned.then_some(CopyReason::Misaligned { align });
    let checked = offsets.may_change().then_some(CopyReason::Checked);
    let reasons =
        cast.into_iter().chain(offsets.row_major_obstacle()).chain(misaligned).chain(checked);
    Plan::decide(reasons.collect(), offsets.size().saturating_mul(align), copy)
}

/// The offsets, converted to type `O` as planned.
fn read_offsets<O: OffsetSizeTrait>(
    offsets: ManagedTensor,
    plan: &Plan,
) -> Result<ScalarBuffer<O>, Error> {
    let (len, dtype) = (offsets.size(), offsets.dtype());
    if plan.is_zero_copy() {
        return Ok(ScalarBuffer::new(convert::adopt_readable(offsets)?, 0, len));
    }
    let found = kernels::gather(&offsets)?.into_buffer();
    let wanted = if O::IS_LARGE { DLDataType::INT64 } else { DLDataType::INT32 };
    if dtype == wanted {
        return Ok(ScalarBuffer::new(found, 0, len));
    }
    let values = CellValues::Words { bytes: &found, dtype };
    let cells = [Cells { values, nulls: None }];
    let offsets = Fresh::in_parts(len * size_of::<O>(), |out| {
        kernels::concatenate(&cells, wanted, None, None, out)
    });
    let offsets = offsets.map_err(|error| match error {
        Error::ValueDoesNotFit { value: Number::Int(offset), row: index, .. } => {
            Error::BadOffsets(match u64::try_from(offset) {
                Ok(offset) => OffsetsProblem::TooLarge { index, offset, is_large: O::IS_LARGE },
                Err(_) => {
                    let offset = i64::try_from(offset).unwrap_or(i64::MIN);
                    OffsetsProblem::Negative { index, offset }
                }
            })
        }
        error => error,
    })?;
    Ok(ScalarBuffer::new(offsets.into_buffer(), 0, len))
}

/// Strings or binaries; `offsets` are within `values`, which are bytes.
fn bytes<T: ByteArrayType>(
    offsets: OffsetBuffer<T::Offset>,
    values: &ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Error> {
    // Values after the last offset are not checked.
    let end = offsets.inner().last().map_or(0, |last| last.as_usize());
    let values = values.as_primitive::<UInt8Type>().values().inner().slice_with_length(0, end);
    match GenericByteArray::<T>::try_new(offsets.clone(), values.clone(), nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(_) => {
            let is_utf8 = |row: &[T::Offset]| {
                std::str::from_utf8(&values[row[0].as_usize()..row[1].as_usize()]).is_ok()
            };
            Err(Error::NotUtf8 { row: offsets.windows(2).position(|row| !is_utf8(row)) })
        }
    }
}
