//! DLPack to Arrow: dtypes, devices, Arrow types and copies.
//!
//! [`from_dlpack`] makes an array of a tensor, [`masked`] with nulls where a mask is false; [`record_batch`],
//! [`masked_record_batch`], [`columns`] and [`matrix`] make tables, [`ragged`] makes lists, strings and binaries, [`padded`]
//! lists. [`prepare`] decides first: the [`Plan`] tells what a conversion will copy, and the field what the tensor becomes.
//! Arrays share the memory of tensors that the CPU can read and whose dtype Arrow has, row-major and aligned; other tensors
//! are copied.

// The files:
// - `field` is the field that a tensor becomes, and what can be stored in it; `convert` plans and runs the conversion.
// - `mask` adds nulls; `table` makes tables, `ragged` and `padded` make lists, and `lists` those of a matrix.
// - `ranges` refuses integers that are no values of a type.

mod convert;
mod field;
mod lists;
mod mask;
mod options;
mod padded;
mod ragged;
pub(crate) mod ranges;
mod table;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use crate::{CopyPolicy, Error, ManagedTensor, Plan};
pub(crate) use convert::numeric;
pub(crate) use convert::{import_primitive, import_primitive_as};
pub(crate) use mask::prepare_any;
pub use mask::{Prepared, masked, prepare, prepare_masked};
pub use options::{ImportOptions, Representation};
pub use padded::{Side, padded};
pub use ragged::ragged;
#[cfg(feature = "pyo3")]
pub(crate) use table::{TableColumn, of_columns};
pub use table::{columns, masked_record_batch, matrix, record_batch};

/// Converts a tensor to an Arrow array and the field that describes it (nullable, as by Arrow's default, and
/// nameless).
///
/// A 0-D tensor becomes an array of one value, a 1-D tensor a plain array, and a tensor of more axes an
/// `arrow.fixed_shape_tensor`, row-major, with its rows along the first axis. Rows whose axes lie in another order in
/// memory, such as those of channels-last images, are copied; [`Representation::Permuted`] shares them.
///
/// The array takes over memory that the CPU can read and that is aligned, with contiguous rows: the deleter runs when
/// the last slice of the array is dropped. Otherwise the values are copied, and the deleter runs at once. Elements
/// become:
///
/// | dtype | Arrow | |
/// |---|---|---|
/// | integers and floats of 8 to 64 bits | the same | shared |
/// | complex | pairs of floats, along one more axis of extent 2 | shared |
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
/// `UnsupportedDtype`, `UnreadableDevice`; `NoRepresentation` and `CannotBecome` if the elements cannot have the
/// requested type, and `NotAValue` if one of them is no value of it; `RowTooLarge`; `CopyForbidden` if a copy is needed
/// and forbidden; `OutOfMemory`. The tensor is released before an error is returned.
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

/// The field that [`from_dlpack`] would return, also for a tensor that the CPU cannot read.
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
/// As [`from_dlpack`], except those about memory.
pub fn field(tensor: &ManagedTensor, options: &ImportOptions) -> Result<FieldRef, Error> {
    let metadata = field::Metadata::of(tensor);
    let (_, field) =
        convert::Fit::new(&metadata, field::choose(&metadata, &options.representation)?)?;
    Ok(field)
}

/// Reports what [`from_dlpack`] would copy, and why.
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
/// As [`from_dlpack`], except `OutOfMemory` and `NotAValue`.
pub fn explain(tensor: &ManagedTensor, options: &ImportOptions) -> Result<Plan, Error> {
    convert::decide(tensor, options).map(|decided| decided.plan)
}
