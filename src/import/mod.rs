//! DLPack to Arrow: which dtypes and devices, which of Arrow's types, adopted or gathered.
//!
//! There is one path, with a short cut for vectors of numbers (`primitive`). `choose` decides the field that
//! a tensor becomes, or takes the one that was asked for; `field_layout` reads a field as axes of elements;
//! `conversion` knows which elements can become which; `decide` puts the two together into a [`Plan`] and runs it.
//! `mask` does so for a tensor and its mask of nulls, `table` and `ragged` for several tensors.

mod choose;
mod conversion;
mod decide;
mod field_layout;
mod form;
mod mask;
mod options;
mod primitive;
mod ragged;
mod table;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::memory::ManagedTensor;
use crate::plan::Plan;
pub(crate) use decide::numeric;
pub(crate) use mask::prepare_any;
pub use mask::{Prepared, masked, prepare, prepare_masked};
pub use options::{ImportOptions, Representation};
pub(crate) use primitive::{import_primitive, import_primitive_as};
pub(crate) use ragged::masked_ragged;
pub use ragged::ragged;
pub(crate) use table::masked_record_batch;
pub use table::{columns, record_batch};

/// A tensor as an Arrow array, and the field that describes it (nullable, as Arrow's default is, and
/// nameless).
///
/// A tensor without axes becomes one value, one of a single axis a plain array, and one of more axes
/// an `arrow.fixed_shape_tensor` whose rows lie along the first axis. Its permutation is the one that
/// lets the memory stay as it is, if there is one.
///
/// Memory that the CPU can read, aligned, with one row behind the other, is adopted: its deleter runs
/// when the last slice of the array goes. All else is copied into memory of our own, and the deleter
/// runs at once. Elements become:
///
/// | dtype | Arrow | |
/// |---|---|---|
/// | integers and floats of 8 to 64 bits | the same | adopted |
/// | complex | pairs of floats: one more axis, of 2 | adopted |
/// | bool | Boolean | copied |
/// | bfloat16, floats of 8, 6 and 4 bits | Float32 | copied, exactly |
/// | integers of 4, 2 and 1 bits | Int8 and UInt8 | copied |
///
/// ```
/// use arrow_array::{Array, Float32Array, cast::AsArray, types::Float32Type};
/// use arrow_dlpack::{ImportOptions, export, from_dlpack};
///
/// let source = Float32Array::from(vec![0.5, 1.5]);
/// let (array, field) = from_dlpack(export::array(&source)?, &ImportOptions::default())?;
/// assert_eq!(array.as_primitive::<Float32Type>(), &source);
/// assert_eq!(array.data_type(), field.data_type());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `UnsupportedDtype`, `UnreadableDevice`; `NoRepresentation` and `CannotBecome` if another type was
/// asked for than the elements can have; `RowTooLarge`; `CopyForbidden` if only a copy would do;
/// `OutOfMemory`. The tensor has been released by then.
pub fn from_dlpack(
    tensor: ManagedTensor,
    options: &ImportOptions,
) -> Result<(ArrayRef, FieldRef), Error> {
    if options.copy == CopyPolicy::Always || options.representation != Representation::Canonical {
        return prepare(tensor, options)?.run();
    }
    match import_primitive(tensor) {
        Ok(array) => Ok(array),
        Err(tensor) => prepare(tensor, options)?.run(),
    }
}

/// [`from_dlpack`] without a field and with default options.
///
/// ```
/// use arrow_array::{Array, Int16Array};
/// use arrow_dlpack::{export, import};
///
/// let array = import::array(export::array(&Int16Array::from(vec![1, 2]))?)?;
/// assert_eq!(array.len(), 2);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn array(tensor: ManagedTensor) -> Result<ArrayRef, Error> {
    from_dlpack(tensor, &ImportOptions::default()).map(|(array, _)| array)
}

/// The field of what [`from_dlpack`] would return, whether or not the CPU can read the tensor.
///
/// ```
/// use arrow_array::Int16Array;
/// use arrow_dlpack::{ImportOptions, export, import};
/// use arrow_schema::DataType;
///
/// let tensor = export::array(&Int16Array::from(vec![1, 2, 3]))?;
/// let field = import::field(&tensor, &ImportOptions::default())?;
/// assert_eq!(field.data_type(), &DataType::Int16);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_dlpack`], less those of memory.
pub fn field(tensor: &ManagedTensor, options: &ImportOptions) -> Result<FieldRef, Error> {
    let form = form::Form::of(tensor);
    let (_, field) = decide::Fit::new(&form, choose::choose(&form, &options.representation)?)?;
    Ok(field)
}

/// What [`from_dlpack`] would copy, and why; it does just that.
///
/// ```
/// use arrow_array::Int16Array;
/// use arrow_dlpack::{CopyPolicy, ImportOptions, export, import};
///
/// let tensor = export::array(&Int16Array::from(vec![1, 2, 3]))?;
/// assert!(import::explain(&tensor, &ImportOptions::default())?.is_zero_copy());
///
/// let copy = ImportOptions::default().with_copy(CopyPolicy::Always);
/// assert_eq!(import::explain(&tensor, &copy)?.to_string(), "copies 6 bytes: a copy was asked for");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_dlpack`], less `OutOfMemory`.
pub fn explain(tensor: &ManagedTensor, options: &ImportOptions) -> Result<Plan, Error> {
    decide::decide(tensor, options).map(|decided| decided.plan)
}
