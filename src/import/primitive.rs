//! The numeric family: one axis or none, one buffer.

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::ScalarBuffer;

use super::Import;
use crate::dtype::for_each_numeric;
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// Adopts or gathers a numeric tensor of one axis or none.
        pub(super) fn import(tensor: ManagedTensor, options: &Import) -> Result<ArrayRef, Error> {
            match tensor.dtype() {
                $(DLDataType::$dtype => import_as::<types::$type>(tensor, options),)*
                dtype => Err(super::unsupported(dtype)),
            }
        }
    };
}
for_each_numeric!(dispatch);

fn import_as<T: ArrowPrimitiveType>(
    tensor: ManagedTensor,
    options: &Import,
) -> Result<ArrayRef, Error> {
    let len = tensor.size();
    let buffer = super::buffer(tensor, align_of::<T::Native>(), options.copy)?;
    Ok(Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(buffer, 0, len), None)))
}
