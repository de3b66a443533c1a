//! The eleven numeric types, shared as they are: one buffer, one axis, and nothing to decide.

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_schema::DataType;

use crate::dtype::for_each_numeric;
use crate::error::Error;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::ManagedTensor;

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// The values of a numeric array without nulls; `None` for any other.
        pub(super) fn share(array: &dyn Array) -> Option<Result<ManagedTensor, Error>> {
            match array.data_type() {
                $(DataType::$arrow => share_as::<types::$type>(array, DLDataType::$dtype),)*
                _ => None,
            }
        }
    };
}
for_each_numeric!(dispatch);

fn share_as<T: ArrowPrimitiveType>(
    array: &dyn Array,
    dtype: DLDataType,
) -> Option<Result<ManagedTensor, Error>> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    let extent = i64::try_from(array.len()).ok().filter(|_| array.null_count() == 0)?;
    let buffer = array.values().inner().clone();
    Some(ManagedTensor::over_shared(buffer, dtype, DLPackFlags::default(), &[extent], &[1]))
}
