//! Arrow to DLPack: types, nulls and copies.
//!
//! [`tensor`] makes a tensor of any [`Source`]: an array, chunks, one row, or a table as a matrix; [`array()`] does so
//! with default options. [`columns`] makes a tensor for each column of a table, [`mask`] one of the validity, and
//! [`masked`] returns values and mask, [`ragged`] values and offsets of lists, strings and binaries, [`padded`] one tensor
//! of them. `prepare` and its like decide first: the [`Plan`] tells what a conversion will copy. Each takes the source
//! first and [`ExportOptions`] last; what is for one function alone, such as [`PadOptions`], stands between them.
//!
//! [`to_vec`] writes the values to a `Vec`, and [`tensor_into`] to memory that the caller has: of candle, burn or ndarray,
//! without a second copy.
//!
//! There are three ways to export an array as a tensor:
//!
//! - **share** ([`to_dlpack`], the default): zero-copy and read-only, because the array may have other owners;
//! - **copy** ([`CopyPolicy::Always`](crate::CopyPolicy::Always)): memory of the tensor alone, writable, flagged
//!   `IS_COPIED`;
//! - **hand over** ([`into_tensor`]): consumes the array; zero-copy and writable, if the array has no other owner.
//!
//! Data whose memory cannot be shared (booleans, filled nulls, chunks, tables) is copied once, if the options allow
//! it; [`explain`] reports the copy in advance.
//!
//! Decimals become numbers where a dtype of floats is asked for:
//!
//! ```
//! use arrow_array::Decimal128Array;
//! use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
//!
//! let prices = Decimal128Array::from(vec![150, -225]).with_precision_and_scale(5, 2)?;
//! let options = ExportOptions::default().with_dtype(DLDataType::FLOAT64);
//! let tensor = export::tensor(&prices, &options)?;
//! assert_eq!(tensor.as_slice::<f64>(), Some(&[1.5, -2.25][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The files:
// - `source` and `options` are the input; `prepare` plans, to one tensor or to one for each column, and a plan runs.
// - `cells` reads an array as cells, with an arm for each family of types, and finds which are null.
// - `share` is the short cut for plain numbers; `column` makes the tensor of a column, `table` that of a table as a matrix;
//   `ragged`, `padded` and `dense_lists` (lists of one length) make the others, of what `lists` reads and plans.
// - `destination` has a plan write to memory of the caller's, or to a vector.
// - `into_tensor` takes arrays that are handed over; `refusal` has the errors and the advice for each type.

mod cells;
mod column;
mod dense_lists;
mod destination;
mod into_tensor;
mod lists;
mod options;
mod padded;
mod prepare;
mod ragged;
mod refusal;
mod share;
mod source;
mod table;

use arrow_array::Array;
use arrow_schema::{Field, FieldRef};

pub use crate::exported::Exported;
use crate::{Error, ManagedTensor, Plan, ffi::DLDataType};

pub(crate) use dense_lists::{RowLength, fixed_size};
pub use destination::{Destination, tensor_into, to_vec};
#[cfg(feature = "pyo3")]
pub(crate) use destination::{OutBuffer, prepare_into};
pub use into_tensor::{IntoTensorError, into_tensor, into_tensor_with_field};
pub use options::{ExportOptions, NullPolicy, Order};
pub use padded::{Longer, PadOptions, Padded, PreparedPadded, Side, padded, prepare_padded};
pub use prepare::{Prepared, PreparedColumns, prepare, prepare_columns};
pub(crate) use prepare::{prepare_by_type, prepare_column, prepare_dense};
pub use ragged::{PreparedRagged, Ragged, prepare_ragged};
pub(crate) use refusal::nulls;
#[cfg(feature = "pyo3")]
pub(crate) use refusal::{has_form, hint};
pub(crate) use share::{share, vector};
pub use source::{IntoSource, Source};
pub(crate) use source::{check_columns, check_type, table_schema};
pub(crate) use table::UniformMatrix;
#[cfg(feature = "pyo3")]
pub(crate) use table::matrix_dtype;

/// Converts an Arrow array to a tensor on the CPU, with explicit strides, zero-copy where the layout allows it.
///
/// The field carries the array's extension type. Nested arrays of fixed size have an axis for each level.
///
/// ```
/// use arrow_array::{Array, Int32Array};
/// use arrow_dlpack::{ExportOptions, to_dlpack};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![10, 20, 30, 40]);
/// let field = Field::new("column", DataType::Int32, false);
/// let tensor = to_dlpack(&column.slice(1, 2), &field, &ExportOptions::default())?;
/// assert_eq!(tensor.shape(), [2]);
/// assert_eq!(tensor.as_ptr(), column.values()[1..].as_ptr().cast());
/// assert!(tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `Nulls` if the slice has nulls and no option handles them; `UnsupportedType`, `UnsupportedExtension` or
/// `NotJustNumbers`; `MalformedExtension`; `FieldMismatch`; `CannotCast`, `ValueDoesNotFit` and `FillDoesNotFit` for
/// the requested dtype and fill value; `CopyForbidden` if a copy is needed and forbidden; `OutOfMemory`.
pub fn to_dlpack(
    array: &dyn Array,
    field: &Field,
    options: &ExportOptions,
) -> Result<ManagedTensor, Error> {
    tensor(Source::Array(array, Some(field)), options)
}

/// [`tensor`] of an array, without a field and with default options.
///
/// ```
/// use arrow_array::Float32Array;
/// let tensor = arrow_dlpack::export::array(&Float32Array::from(vec![0.5, 1.5]))?;
/// assert_eq!(tensor.as_slice::<f32>(), Some(&[0.5, 1.5][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`].
pub fn array(array: &dyn Array) -> Result<ManagedTensor, Error> {
    tensor(array, &ExportOptions::default())
}

/// [`to_dlpack`] for any [`Source`]: an array with a field or without, chunks, one row, a table.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{ExportOptions, NullPolicy, export};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let options = ExportOptions::default().with_nulls(NullPolicy::fill(-1));
/// let tensor = export::tensor(&column, &options)?;
/// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, -1, 3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// A table becomes a matrix, in which a column of fixed-size lists is as many columns as a list has values; [`columns`] makes a tensor for each column:
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array, Int8Array, RecordBatch};
/// use arrow_dlpack::{ExportOptions, export};
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let y: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", y)])?;
/// let matrix = export::tensor(&batch, &ExportOptions::default())?;
/// assert_eq!(matrix.shape(), [2, 2]);
/// assert_eq!(matrix.as_slice::<f32>(), Some(&[0.5, 1.0, 1.5, 2.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A column of lists whose rows have one length gets an axis of their values:
///
/// ```
/// use arrow_array::{ListArray, types::Int32Type};
/// use arrow_dlpack::{ExportOptions, export};
///
/// let row = |values: [i32; 2]| Some(values.map(Some));
/// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([row([1, 2]), row([3, 4])]);
/// let tensor = export::tensor(&lists, &ExportOptions::default())?;
/// assert_eq!((tensor.shape(), tensor.is_read_only()), (&[2, 2][..], true));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`]; `InvalidOptions` with [`NullPolicy::Masked`]; `RowLength` for lists that differ in length; for tables
/// wrapped in `Column`, with `ManyValues` for columns of tensors whose axes are permuted, and `NoColumns`; `NoSuchRow`.
pub fn tensor<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<ManagedTensor, Error> {
    let source = source.into_source();
    if let Some(shared) = share(source, options) {
        return shared;
    }
    let planned = source.as_table(|source| prepare::values_of(source, options, RowLength::Any))?;
    options.check_no_mask()?;
    Ok(planned.run()?.0)
}

/// The values of [`tensor`], nulls or not, and their validity, as [`mask`] has it. The values of null slots are those that
/// are in memory; the policy for nulls of the options does not count.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let (values, mask) = export::masked(&column, &ExportOptions::default())?;
/// assert_eq!((values.shape(), mask.as_bool_bytes()), (&[3][..], Some(&[1, 0, 1][..])));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`] and [`mask`].
pub fn masked<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<(ManagedTensor, ManagedTensor), Error> {
    match prepare(source, &options.clone().with_nulls(NullPolicy::Masked))?.run()? {
        Exported { values, mask: Some(mask), .. } => Ok((values, mask)),
        Exported { mask: None, .. } => unreachable!("a mask was planned"),
    }
}

/// The validity of the values of [`tensor`]: booleans of the same shape, true for valid values.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let mask = export::mask(&column, &ExportOptions::default())?;
/// assert_eq!((mask.dtype().to_string(), mask.shape()), ("bool".to_owned(), &[3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`]. A mask is always a copy, so that [`CopyPolicy::Never`](crate::CopyPolicy::Never) gives
/// `CopyForbidden`.
pub fn mask<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<ManagedTensor, Error> {
    let planned = |source: Source<'_>| prepare::mask_of(source, options, RowLength::Any);
    Ok(source.into_source().as_table(planned)?.run()?.0)
}

/// Reports what [`tensor`] will copy; with [`NullPolicy::Masked`] also what [`mask`] will copy.
///
/// ```
/// use arrow_array::Int64Array;
/// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
///
/// let column = Int64Array::from(vec![1, 2, 3]);
/// assert!(export::explain(&column, &ExportOptions::default())?.is_zero_copy());
///
/// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
/// let plan = export::explain(&column, &options)?;
/// assert_eq!(plan.to_string(), "copies 12 bytes: int64 becomes float32");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`] and [`mask`], except errors for values that do not fit.
pub fn explain<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<Plan, Error> {
    Ok(prepare(source, options)?.plan())
}

/// Converts each column of a table to a tensor, with its field. A source that is not a table is one column.
///
/// ```
/// use arrow_array::record_batch;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let batch = record_batch!(("x", Float32, [0.5, 1.5]), ("y", Int8, [1, 2]))?;
/// let columns = export::columns(&batch, &ExportOptions::default())?;
/// let (field, y) = &columns[1];
/// assert_eq!((field.name().as_str(), y.values.as_slice::<i8>()), ("y", Some(&[1, 2][..])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`tensor`] and [`mask`], wrapped in `Column`, or in `Columns` if several columns are refused; `ColumnCount`.
pub fn columns<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<Vec<(FieldRef, Exported)>, Error> {
    prepare_columns(source, options)?.run()
}

/// Converts lists, strings or binaries to values and offsets.
///
/// Null rows are refused by default; any other policy for nulls makes them empty rows.
///
/// The values are shared, except those of views, which are not contiguous, and those of arrays in which null rows
/// have values, which are left out. The offsets are shared if they begin at 0 and are of `offset_type`. `options`
/// apply to the values; with [`NullPolicy::Masked`] the result has a mask of the rows.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::{ExportOptions, NullPolicy, export};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let ragged = export::ragged(&texts, None, &ExportOptions::default())?;
/// assert_eq!(ragged.values.as_slice::<u8>(), Some(&b"tobenot"[..]));
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 4, 4, 7][..]));
///
/// let texts = StringArray::from(vec![Some("to"), None, Some("be")]);
/// assert!(export::ragged(&texts, None, &ExportOptions::default()).is_err());
/// let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
/// let ragged = export::ragged(&texts, None, &options)?;
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 2, 4][..]));
/// assert!(ragged.mask.is_some());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`]; `NoOffsets` and `OffsetDoesNotFit` for `offset_type`.
pub fn ragged<'a, F>(
    source: impl IntoSource<'a, F>,
    offset_type: Option<DLDataType>,
    options: &ExportOptions,
) -> Result<Ragged, Error> {
    prepare_ragged(source, offset_type, options)?.run()
}
