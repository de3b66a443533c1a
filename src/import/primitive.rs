//! Contiguous numbers that can stay where they are, as in most tensors: nothing to choose or to plan.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, FieldRef};

use crate::dtype::{Element, for_each_numeric};
use crate::ffi::DLDataType;
use crate::memory::{self, ManagedTensor};

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// A vector of one of the eleven numeric types, contiguous and aligned, in memory that the CPU can
        /// read; any other tensor comes back.
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

/// The same for one of these types.
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
    // It spans its elements and nothing else. To slice them would take two atomic steps.
    let values = ScalarBuffer::from(memory::adopt(tensor).unwrap_or_default());
    Ok(PrimitiveArray::new(values, None))
}
