//! The eleven numeric types, shared as they are: one buffer, one axis, and nothing to decide.

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_schema::DataType;

use crate::dtype::for_each_numeric;
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// The values of a numeric array without nulls; `None` for any other.
        pub(crate) fn share(array: &dyn Array) -> Option<ManagedTensor> {
            match array.data_type() {
                $(DataType::$arrow => share_as::<types::$type>(array, DLDataType::$dtype),)*
                _ => None,
            }
        }
    };
}
for_each_numeric!(dispatch);

fn share_as<T: ArrowPrimitiveType>(array: &dyn Array, dtype: DLDataType) -> Option<ManagedTensor> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    if array.null_count() > 0 {
        return None;
    }
    Some(ManagedTensor::over_vector(array.values().inner().clone(), dtype, array.len()))
}
