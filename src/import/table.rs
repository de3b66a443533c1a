//! Tensors as the columns of a table.

use std::{collections::HashSet, mem, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::convert::{self, Fit};
use super::mask::{self, Prepared};
use super::options::{ImportOptions, Representation};
use super::{field::Metadata, field::choose, ranges};
use crate::{Error, ManagedTensor, arrow_types, exported::Exported};

/// Makes a table with a column for each tensor: rows are along the first axis, and each column is imported and named
/// as given, as by [`from_dlpack`](super::from_dlpack).
///
/// ```
/// use arrow_array::{Float32Array, Int64Array};
/// use arrow_dlpack::{ImportOptions, export, import};
///
/// let ids = export::array(&Int64Array::from(vec![1, 2]))?;
/// let scores = export::array(&Float32Array::from(vec![0.5, 0.25]))?;
/// let batch = import::record_batch(
///     vec![("id".to_owned(), ids), ("score".to_owned(), scores)],
///     &ImportOptions::default(),
/// )?;
/// assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `DuplicateName`, `ColumnLength`, and the errors of `from_dlpack`, wrapped in `Column`. All columns are checked
/// before any is converted, and all tensors are released before an error is returned.
pub fn record_batch(
    columns: Vec<(String, ManagedTensor)>,
    options: &ImportOptions,
) -> Result<RecordBatch, Error> {
    let columns = columns.into_iter().map(|(name, tensor)| (name, tensor, None));
    masked_record_batch(columns.collect(), options)
}

/// [`record_batch`] of columns with optional masks, as in [`masked`](super::masked): a value is null where the mask is false.
///
/// ```
/// use arrow_array::{Array, record_batch};
/// use arrow_dlpack::{ImportOptions, ManagedTensor, import};
///
/// let scores = ManagedTensor::from(vec![0.5_f32, 0.0]);
/// let valid = ManagedTensor::from(vec![true, false]);
/// let columns = vec![("score".to_owned(), scores, Some(valid))];
/// let batch = import::masked_record_batch(columns, &ImportOptions::default())?;
/// assert_eq!(batch, record_batch!(("score", Float32, [Some(0.5), None]))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`record_batch`]; `BadMask`.
pub fn masked_record_batch(
    columns: Vec<(String, ManagedTensor, Option<ManagedTensor>)>,
    options: &ImportOptions,
) -> Result<RecordBatch, Error> {
    let planned = columns.into_iter().map(|(name, tensor, mask)| {
        let planned = mask::prepare_any(tensor, mask, options);
        planned_column(name, planned)
    });
    of_columns(planned.collect::<Result<_, _>>()?)
}

/// Makes a table of what [`export::columns`](crate::export::columns) returns: its inverse, names, types, dictionaries and
/// nulls included (a null list of fixed size comes back as a list of nulls: the mask is one of values). Other tensors are
/// columns by `tensor.into()`. The options' representation does not count.
///
/// ```
/// use arrow_array::record_batch;
/// use arrow_dlpack::{ExportOptions, ImportOptions, NullPolicy, export, import};
///
/// let batch = record_batch!(("x", Int32, [Some(1), None]), ("y", Boolean, [true, false]))?;
/// let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
/// let columns = export::columns(&batch, &options)?;
/// assert_eq!(import::columns(columns, &ImportOptions::default())?, batch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`masked_record_batch`]; `CannotBecome` where the elements are not those of the field's type, as after an export with
/// another dtype; `InvalidArray` for codes that the dictionary has no value for.
pub fn columns(
    columns: Vec<(FieldRef, Exported)>,
    options: &ImportOptions,
) -> Result<RecordBatch, Error> {
    let mut dictionaries = Vec::new();
    let columns = columns.into_iter().enumerate().map(|(at, (mut field, made))| {
        if let (DataType::Dictionary(keys, _), Some(values)) = (field.data_type(), made.dictionary)
        {
            let codes = field.as_ref().clone().with_data_type(keys.as_ref().clone());
            dictionaries.push((at, values, mem::replace(&mut field, Arc::new(codes))));
        }
        let name = field.name().clone();
        let options = options.clone().with_representation(Representation::Field(field));
        planned_column(name, mask::prepare_any(made.values, made.mask, &options))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let (schema, mut arrays, rows) = of_columns(columns)?.into_parts();
    let mut fields = schema.fields.to_vec();
    for (at, values, field) in dictionaries {
        arrays[at] = of_codes(&arrays[at], &values, &field)
            .map_err(|error| Error::in_column(field.name(), error))?;
        fields[at] = field;
    }
    Ok(batch(fields.into_iter().zip(arrays).collect(), rows))
}

/// The array of a dictionary's type with these codes.
fn of_codes(codes: &ArrayRef, values: &ArrayRef, field: &Field) -> Result<ArrayRef, Error> {
    let array = codes.to_data().into_builder().data_type(field.data_type().clone());
    let array = array.add_child_data(values.to_data()).build();
    Ok(make_array(array.map_err(|error| Error::InvalidArray(error.to_string()))?))
}

/// A column of a table that is put together.
pub(crate) enum TableColumn {
    Planned(Box<Prepared>),
    /// Arrow data as it is.
    Made(ArrayRef, FieldRef),
}

impl TableColumn {
    #[cfg(feature = "pyo3")]
    pub(crate) fn work(&self) -> usize {
        match self {
            Self::Planned(prepared) => prepared.work(),
            Self::Made(..) => 0,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Planned(prepared) => prepared.rows(),
            Self::Made(array, _) => array.len(),
        }
    }

    fn run(self) -> Result<(ArrayRef, FieldRef), Error> {
        match self {
            Self::Planned(prepared) => prepared.run(),
            Self::Made(array, field) if field.is_nullable() || array.null_count() == 0 => {
                Ok((array, field))
            }
            // Other libraries hand over nulls in fields that say that there are none.
            Self::Made(array, field) => {
                Ok((array, Arc::new(field.as_ref().clone().with_nullable(true))))
            }
        }
    }
}

fn planned_column(
    name: String,
    planned: Result<Prepared, Error>,
) -> Result<(String, TableColumn), Error> {
    match planned {
        Ok(planned) => Ok((name, TableColumn::Planned(planned.into()))),
        Err(error) => Err(Error::in_column(&name, error)),
    }
}

/// The table of these columns, which have been planned before any is converted.
pub(crate) fn of_columns(columns: Vec<(String, TableColumn)>) -> Result<RecordBatch, Error> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    check_unique(&names)?;
    let expected = columns.first().map_or(0, |(_, first)| first.rows());
    if let Some((name, other)) = columns.iter().find(|(_, column)| column.rows() != expected) {
        return Err(Error::ColumnLength { name: name.clone(), rows: other.rows(), expected });
    }
    let columns = columns.into_iter().map(|(name, column)| match column.run() {
        Ok((array, field)) => Ok((named(&field, &name), array)),
        Err(error) => Err(Error::in_column(&name, error)),
    });
    Ok(batch(columns.collect::<Result<_, Error>>()?, expected))
}

/// Makes a table of a matrix, with a column for each of its columns: the way back from
/// [`export::tensor`](crate::export::tensor) of a table.
///
/// If the elements of each column are contiguous, whatever the stride between columns is, the columns share the
/// matrix's memory, and the deleter runs when the last one is dropped. Otherwise the matrix is copied once, column by
/// column, into one buffer that the columns share.
///
/// ```
/// # #[cfg(feature = "ndarray")]
/// # {
/// use arrow_dlpack::{ImportOptions, import};
///
/// // Two contiguous columns.
/// let matrix = ndarray::array![[1.0_f32, 2.0], [10.0, 20.0]].reversed_axes();
/// let batch = import::matrix(matrix.into(), &["x", "y"], &ImportOptions::default())?;
/// assert_eq!(batch.column(1).len(), 2);
/// # }
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `WrongRank` if the tensor is not 2-D, `NameCount`, `DuplicateName`; the errors of
/// [`from_dlpack`](super::from_dlpack). The tensor is released before an error is returned.
pub fn matrix(
    tensor: ManagedTensor,
    names: &[impl AsRef<str>],
    options: &ImportOptions,
) -> Result<RecordBatch, Error> {
    let &[_, width] = tensor.shape() else {
        return Err(Error::WrongRank { what: "a matrix", expected: 2, ndim: tensor.ndim() });
    };
    let width = usize::try_from(width).map_err(|_| Error::Overflow("number of columns"))?;
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.len() != width {
        return Err(Error::NameCount { names: names.len(), columns: width });
    }
    check_unique(&names)?;

    // Field and fit are decided for one column, and the copy for all columns together.
    let strides = tensor.strides().into_owned();
    let column = Metadata {
        shape: &tensor.shape()[..1],
        strides: strides[..1].into(),
        ..Metadata::of(&tensor)
    };
    let rows = column.rows()?;
    let (fit, field) = Fit::new(&column, choose(&column, &options.representation)?)?;
    let plan = fit.plan(&column, &tensor, options)?;

    let (starts, len, values) = if plan.is_zero_copy() {
        let (starts, len) = positions(&tensor, strides[1], width);
        (starts, len, convert::adopt_readable(tensor)?)
    } else {
        let starts = (0..width).map(|column| column * rows).collect();
        (starts, tensor.size(), fit.copy(tensor.transposed(&[1, 0]))?)
    };
    let all = convert::build(field.data_type(), len, values);
    let columns = names.iter().zip(starts).map(|(name, start)| {
        let column = all.slice(start, rows);
        ranges::check(&column).map_err(|error| Error::in_column(name, error))?;
        Ok((named(&field, name), column))
    });
    Ok(batch(columns.collect::<Result<_, Error>>()?, rows))
}

/// The start of each column in the memory that a matrix spans, and the length of that memory, in elements.
fn positions(tensor: &ManagedTensor, stride: i64, width: usize) -> (Vec<usize>, usize) {
    let (Some((bytes @ [_, ..], origin)), Some(itemsize)) = (tensor.span(), tensor.itemsize())
    else {
        return (vec![0; width], 0);
    };
    // The step after the last column may lead outside the memory; its result is not used.
    let step = isize::try_from(stride).unwrap_or_default();
    let mut next = origin / itemsize;
    let starts = (0..width).map(|_| {
        let start = next;
        next = next.wrapping_add_signed(step);
        start
    });
    (starts.collect(), bytes.len() / itemsize)
}

fn named(field: &FieldRef, name: &str) -> FieldRef {
    Arc::new(field.as_ref().clone().with_name(name))
}

fn check_unique(names: &[&str]) -> Result<(), Error> {
    let mut seen = HashSet::with_capacity(names.len());
    match names.iter().find(|name| !seen.insert(**name)) {
        Some(name) => Err(Error::DuplicateName((*name).to_owned())),
        None => Ok(()),
    }
}

/// A batch of columns of this length, which is also its length without columns.
fn batch(columns: Vec<(FieldRef, ArrayRef)>, rows: usize) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .unwrap_or_else(arrow_types::impossible)
}
