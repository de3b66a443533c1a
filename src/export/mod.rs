//! Arrow to DLPack: which types, which nulls, which copies.
//!
//! Three doors lead out of Arrow:
//!
//! - **share** ([`to_dlpack`], the default): zero-copy and read-only, because others may hold the
//!   array too;
//! - **copy** ([`CopyPolicy::Always`]): the consumer's own memory, writable, flagged `IS_COPIED`;
//! - **give** ([`give`]): the array is handed over, zero-copy and writable, if nobody else holds it.

mod primitive;
mod refusal;

use std::fmt;

use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::memory::ManagedTensor;

/// How to export. Later options will have defaults that change nothing.
///
/// ```
/// use arrow_dlpack::{CopyPolicy, Export};
/// let options = Export { copy: CopyPolicy::Always, ..Default::default() };
/// # assert_ne!(options, Export::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Whether the tensor may or must have memory of its own.
    pub copy: CopyPolicy,
}

/// An Arrow array as a tensor: 1-D, on the CPU, strides given, zero-copy unless `options` say
/// otherwise.
///
/// The field tells what the array means: an extension type is refused rather than stripped.
///
/// ```
/// use arrow_array::{Array, Int32Array};
/// use arrow_dlpack::{Export, to_dlpack};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![10, 20, 30, 40]);
/// let field = Field::new("column", DataType::Int32, false);
/// let tensor = to_dlpack(&column.slice(1, 2), &field, &Export::default())?;
/// assert_eq!(tensor.shape(), [2]);
/// assert_eq!(tensor.data(), column.values()[1..].as_ptr().cast_mut().cast());
/// assert!(tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `Nulls` if there are nulls in the slice; `UnsupportedType` or `UnsupportedExtension`;
/// `FieldMismatch`; `OutOfMemory` if a copy was asked for.
pub fn to_dlpack(
    array: &dyn Array,
    field: &Field,
    options: &Export,
) -> Result<ManagedTensor, Error> {
    check_field(array, field)?;
    convert(array, options)
}

/// [`to_dlpack`] without a field and with default options: shares the array's memory.
///
/// # Errors
///
/// As [`to_dlpack`].
pub fn array(array: &dyn Array) -> Result<ManagedTensor, Error> {
    convert(array, &Export::default())
}

fn convert(array: &dyn Array, options: &Export) -> Result<ManagedTensor, Error> {
    primitive::export(array, options)
}

/// Hands the array over as a writable tensor, without copying.
///
/// That takes an array that nobody else holds, that begins where its buffer begins, and whose memory
/// came from Rust's allocator. Otherwise the array comes back in the error.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float64Array};
/// use arrow_dlpack::{Error, GiveObstacle, export};
/// use arrow_schema::{DataType, Field};
///
/// let field = Field::new("x", DataType::Float64, false);
/// let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
/// let second_holder = Arc::clone(&array);
///
/// let refused = export::give(array, &field).unwrap_err();
/// assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Shared));
///
/// drop(second_holder);
/// let tensor = export::give(refused.array, &field)?;
/// assert!(!tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::export::GiveError>(())
/// ```
///
/// # Errors
///
/// [`GiveError`], with the array: what [`to_dlpack`] refuses, and `NotGivable`.
pub fn give(array: ArrayRef, field: &Field) -> Result<ManagedTensor, GiveError> {
    match check_field(&array, field) {
        Ok(()) => primitive::give(array),
        Err(error) => Err(GiveError { array, error }),
    }
}

/// Why [`give`] gave nothing, and the array it was passed.
#[derive(Clone, Debug)]
pub struct GiveError {
    /// The array, as it was.
    pub array: ArrayRef,
    /// What stands in the way.
    pub error: Error,
}

impl fmt::Display for GiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for GiveError {}

fn check_field(array: &dyn Array, field: &Field) -> Result<(), Error> {
    check_type(array, field)?;
    match field.extension_type_name() {
        None => Ok(()),
        Some(name) => Err(Error::UnsupportedExtension {
            name: name.to_owned(),
            data_type: array.data_type().clone(),
        }),
    }
}

pub(crate) fn check_type(array: &dyn Array, field: &Field) -> Result<(), Error> {
    let (data_type, claimed) = (array.data_type(), field.data_type());
    if data_type == claimed {
        return Ok(());
    }
    Err(Error::FieldMismatch { field: claimed.clone(), array: data_type.clone() })
}
