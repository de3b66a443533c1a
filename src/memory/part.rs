//! Tensors over the memory of another one, which they keep: some of its elements, or its bytes as integers.
#![expect(unsafe_code, reason = "describes memory of another tensor anew")]

use std::sync::Arc;

use super::ManagedTensor;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::layout::{self, Pick};

impl ManagedTensor {
    /// Some of the elements: each axis has its pick, in order, and those without one are taken whole. No memory
    /// is looked at, so that it may be a device's.
    ///
    /// # Errors
    ///
    /// `NoSuchPosition`; `PackedStrides` for elements that share a byte; `Overflow`.
    pub(crate) fn part(self: &Arc<Self>, picks: &[Pick]) -> Result<Self, Error> {
        let Some(itemsize) = self.itemsize() else {
            return Err(Error::PackedStrides { dtype: self.dtype() });
        };
        let (origin, shape, strides) = layout::part(self.shape(), &self.strides(), picks)?;
        let mut description = self.described(&shape, &strides);
        let bytes = isize::try_from(origin).ok().zip(isize::try_from(itemsize).ok());
        let bytes = bytes.and_then(|(origin, itemsize)| origin.checked_mul(itemsize));
        let bytes = bytes.ok_or_else(Error::overflow("span of strides"))?;
        if shape.contains(&0) {
            // The header asks for NULL where there are no elements.
            (description.data, description.byte_offset) = (std::ptr::null_mut(), 0);
        } else if self.device().is_host_readable() {
            description.data = description.data.wrapping_offset(bytes);
        } else {
            // What a device calls an address may be a handle, which nobody can add to.
            let wide = i64::try_from(bytes).ok();
            let offset = wide.and_then(|bytes| description.byte_offset.checked_add_signed(bytes));
            description.byte_offset = offset.ok_or_else(Error::overflow("address range"))?;
        }
        // SAFETY: I2, for as long as the clone keeps the tensor: `layout::part` has found every position on its
        // axis, so that each element of the part is one of the tensor's.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }

    /// The bytes of elements in row-major order, one axis of them.
    ///
    /// # Errors
    ///
    /// `Overflow` if they are not in that order.
    pub(crate) fn as_bytes(self: &Arc<Self>) -> Result<Self, Error> {
        let len = i64::try_from(self.nbytes()).ok().filter(|_| self.is_contiguous());
        let shape = [len.ok_or_else(Error::overflow("size in bytes"))?];
        let mut description = self.described(&shape, &[1]);
        description.dtype = DLDataType::UINT8;
        description.flags = description.flags.intersection(DLPackFlags::READ_ONLY);
        // SAFETY: I2, V3: the elements are one run of so many bytes, for as long as the clone keeps the tensor.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }

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
