//! Tensors over the memory of another one, which they keep: the same bytes as integers.
#![expect(unsafe_code, reason = "describes memory of another tensor anew")]

use std::sync::Arc;

use super::ManagedTensor;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode};

impl ManagedTensor {
    /// The same bytes as unsigned integers of the elements' size, for those who know the element type by
    /// another name.
    ///
    /// # Errors
    ///
    /// `UnsupportedDtype` for elements that are not whole bytes, of one lane.
    pub(crate) fn as_integers(self: &Arc<Self>) -> Result<Self, Error> {
        let dtype = self.dtype();
        let integers = DLDataType::scalar(DLDataTypeCode::UINT, dtype.bits);
        if dtype.lanes != 1 || dtype.bits % 8 != 0 || !integers.is_valid() {
            return Err(Error::UnsupportedDtype { dtype, way_out: "convert it first" });
        }
        let (shape, strides) = (self.shape(), self.strides());
        let mut description = self.described(shape, &strides);
        description.dtype = integers;
        // SAFETY: I2, for as long as the clone keeps the tensor: the elements are as large as they were.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }
}
