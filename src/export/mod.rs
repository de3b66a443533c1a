//! Arrow to DLPack: types, nulls and copies.
//!
//! There are three ways to export an array:
//!
//! - **share** ([`to_dlpack`], the default): zero-copy and read-only, because the array may have other owners;
//! - **copy** ([`CopyPolicy::Always`](crate::CopyPolicy::Always)): memory of the tensor alone, writable, flagged
//!   `IS_COPIED`;
//! - **hand over** ([`into_tensor`]): consumes the array; zero-copy and writable, if the array has no other owner.
//!
//! Data whose memory cannot be shared (booleans, filled nulls, chunks, tables) is copied once, if the options allow
//! it; [`explain`] reports the copy in advance.

mod codes;
mod column;
mod dense;
mod into_tensor;
mod matrix;
mod options;
mod prepare;
mod primitive;
mod ragged;
mod refusal;
mod row;
mod source;
mod validity;

use arrow_array::Array;
use arrow_schema::Field;

use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;
use crate::plan::Plan;

pub use into_tensor::{IntoTensorError, into_tensor, into_tensor_with_field};
pub use options::{ExportOptions, NullPolicy, Order};
pub(crate) use prepare::share;
pub use prepare::{Exported, Prepared, PreparedColumns, prepare, prepare_columns};
pub(crate) use primitive::vector;
pub use ragged::{PreparedRagged, Ragged, prepare_ragged};
pub(crate) use refusal::{is_ragged, nulls, way_out};
pub use source::Source;
pub(crate) use source::{check_columns, check_type};

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
/// assert_eq!(tensor.data(), column.values()[1..].as_ptr().cast_mut().cast());
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
    tensor(Source::Array(array, field), options)
}

/// [`to_dlpack`] without a field and with default options.
///
/// # Errors
///
/// As [`to_dlpack`].
pub fn array(array: &dyn Array) -> Result<ManagedTensor, Error> {
    if let Some(vector) = primitive::vector(array) {
        return Ok(vector.share());
    }
    let field = Field::new("", array.data_type().clone(), true);
    to_dlpack(array, &field, &ExportOptions::default())
}

/// [`to_dlpack`] for any source: an array, chunks, one row, a table.
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
/// # Errors
///
/// As [`to_dlpack`]; for tables wrapped in `Column`, with `ManyValues` for columns of more than one value per row,
/// and `NoColumns`; `NoSuchRow`.
pub fn tensor<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
) -> Result<ManagedTensor, Error> {
    let source = source.into();
    if let Some(shared) = prepare::share(source, options) {
        return shared;
    }
    Ok(prepare::values_of(source, options)?.run()?.0)
}

/// The validity of the values of [`tensor`]: booleans of the same shape, true for valid values.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let field = Field::new("column", DataType::Int32, true);
/// let mask = export::mask((&column, &field), &ExportOptions::default())?;
/// assert_eq!((mask.dtype().to_string(), mask.shape()), ("bool".to_owned(), &[3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`]. A mask is always a copy, so that [`CopyPolicy::Never`](crate::CopyPolicy::Never) gives
/// `CopyForbidden`.
pub fn mask<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
) -> Result<ManagedTensor, Error> {
    Ok(prepare::mask_of(source.into(), options)?.run()?.0)
}

/// Reports what [`tensor`] will copy; with [`NullPolicy::Masked`] also what [`mask`] will copy.
///
/// # Errors
///
/// As [`tensor`] and [`mask`], except errors for values that do not fit.
pub fn explain<'a>(source: impl Into<Source<'a>>, options: &ExportOptions) -> Result<Plan, Error> {
    Ok(prepare(source, options)?.plan())
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
/// use arrow_schema::{DataType, Field};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let field = Field::new("text", DataType::Utf8, false);
/// let ragged = export::ragged((&texts, &field), &ExportOptions::default(), None)?;
/// assert_eq!(ragged.values.as_slice::<u8>(), Some(&b"tobenot"[..]));
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 4, 4, 7][..]));
///
/// let texts = StringArray::from(vec![Some("to"), None, Some("be")]);
/// assert!(export::ragged((&texts, &field), &ExportOptions::default(), None).is_err());
/// let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
/// let ragged = export::ragged((&texts, &field), &options, None)?;
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 2, 4][..]));
/// assert!(ragged.mask.is_some());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`]; `NoOffsets` and `OffsetDoesNotFit` for `offset_type`.
pub fn ragged<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
    offset_type: Option<DLDataType>,
) -> Result<Ragged, Error> {
    prepare_ragged(source, options, offset_type)?.run()
}
