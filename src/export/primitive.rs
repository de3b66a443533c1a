//! The eleven numeric types, shared as they are: one buffer, one axis, and nothing to decide.

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use crate::dtype::for_each_numeric;
use crate::ffi::DLDataType;
#[cfg(feature = "pyo3")]
use crate::ffi::{DLManagedTensorVersioned, DLPackVersion};
use crate::memory::ManagedTensor;

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// The values of a numeric array without nulls, their dtype and number; `None` for any other array.
        fn values(array: &dyn Array) -> Option<(Buffer, DLDataType, usize)> {
            match array.data_type() {
                $(DataType::$arrow => values_of::<types::$type>(array, DLDataType::$dtype),)*
                _ => None,
            }
        }
    };
}
for_each_numeric!(dispatch);

fn values_of<T: ArrowPrimitiveType>(
    array: &dyn Array,
    dtype: DLDataType,
) -> Option<(Buffer, DLDataType, usize)> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    let valid = array.null_count() == 0;
    valid.then(|| (array.values().inner().clone(), dtype, array.len()))
}

/// A numeric array without nulls as it is; `None` for any other.
pub(crate) fn share(array: &dyn Array) -> Option<ManagedTensor> {
    let (buffer, dtype, size) = values(array)?;
    Some(ManagedTensor::over_vector(buffer, dtype, size))
}

/// [`share`], for a C consumer that understands `newest`, who must call the deleter.
#[cfg(feature = "pyo3")]
pub(crate) fn lend(
    array: &dyn Array,
    newest: DLPackVersion,
) -> Option<*mut DLManagedTensorVersioned> {
    let (buffer, dtype, size) = values(array)?;
    Some(ManagedTensor::lend_vector(buffer, dtype, size, newest))
}
