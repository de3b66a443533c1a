//! The short cut for contiguous numbers, which are shared without a plan.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, FieldRef};

use crate::{Element, ManagedTensor, dtype::for_each_numeric, ffi::DLDataType, memory};

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// Imports a contiguous and aligned vector of one of the eleven numeric types in memory that the CPU can
        /// read; returns any other tensor unchanged.
        pub(crate) fn import_primitive(
            tensor: ManagedTensor,
        ) -> Result<(ArrayRef, FieldRef), ManagedTensor> {
            match tensor.dtype() {
                $(DLDataType::$dtype => {
                    static FIELD: LazyLock<FieldRef> =
                        LazyLock::new(|| Arc::new(Field::new("", DataType::$arrow, true)));
                    let array = import_primitive_as::<types::$type>(tensor)?;
                    Ok((Arc::new(array), Arc::clone(&FIELD)))
                })*
                _ => Err(tensor),
            }
        }
    };
}
for_each_numeric!(dispatch);

/// The same for one numeric type.
pub(crate) fn import_primitive_as<T: ArrowPrimitiveType<Native: Element>>(
    tensor: ManagedTensor,
) -> Result<PrimitiveArray<T>, ManagedTensor> {
    let stays = tensor.dtype() == T::Native::DTYPE
        && tensor.ndim() == 1
        && tensor.device().is_host_readable()
        && tensor.is_contiguous()
        && tensor.data().addr() % align_of::<T::Native>() == 0;
    if !stays {
        return Err(tensor);
    }
    // The memory spans exactly the elements. A slice would cost two atomic operations.
    let values = ScalarBuffer::from(memory::adopt(tensor).unwrap_or_default());
    Ok(PrimitiveArray::new(values, None))
}
