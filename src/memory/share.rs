//! Tensors that keep another tensor alive and share its memory.
#![expect(unsafe_code, reason = "describes memory of another tensor anew")]

use std::sync::Arc;

use super::owner::{Abi, Owner};
use super::pack::{self, Description};
use super::{ManagedTensor, managed::PADDED};
use crate::{Error, ffi::DLPackFlags, layout};

impl ManagedTensor {
    /// Another tensor over the same memory, which keeps this one alive. It is read-only, because code in Rust may have
    /// borrowed the memory, and no `IS_COPIED`, because the memory has several holders now.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Self {
        // SAFETY: it is read-only.
        unsafe { self.share_with(DLPackFlags::READ_ONLY) }
    }

    /// [`Self::share`] that is writable if this tensor is.
    ///
    /// # Safety
    ///
    /// While code elsewhere may write to the memory, no code in Rust has borrowed it.
    pub(crate) unsafe fn share_writable(self: &Arc<Self>) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.share_with(DLPackFlags::default()) }
    }

    /// # Safety
    ///
    /// The flags say `READ_ONLY`, or that of [`Self::share_writable`].
    unsafe fn share_with(self: &Arc<Self>, flags: DLPackFlags) -> Self {
        let (shape, strides) = (self.shape(), self.strides());
        let mut description = self.described(shape, &strides);
        description.flags = description.flags.union(flags);
        // SAFETY: I2 for the memory, for as long as the clone keeps it.
        let packed = unsafe { pack::pack(|| Arc::clone(self), &description) };
        // SAFETY: P1 for the header and its arrays; I2 for the memory, for as long as the clone keeps it.
        unsafe {
            let view = self.descriptor().over(&raw const (*packed.header()).dl_tensor);
            Self::of(view, Owner::packed(packed))
        }
    }

    /// Whether another tensor or array in Rust may have borrowed the memory. By the promise of [`Self::from_raw`], a
    /// tensor that was taken over from C and is writable shares its memory with other languages only.
    pub(crate) fn has_lookers_on(&self) -> bool {
        self.may_change() && matches!(self.owner().abi(), Abi::Packed(_))
    }

    /// The description of another tensor over this one's memory.
    pub(super) fn described<'a>(&self, shape: &'a [i64], strides: &'a [i64]) -> Description<'a> {
        Description {
            data: self.data(),
            byte_offset: self.byte_offset(),
            device: self.device(),
            dtype: self.dtype(),
            flags: self.flags().intersection(DLPackFlags::READ_ONLY.union(PADDED)),
            shape,
            strides,
        }
    }

    /// The same elements with their axes in another order: the tensor's axis `axes[i]` becomes axis `i`.
    pub(crate) fn transposed(self, axes: &[usize]) -> Self {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..self.ndim()), "each axis once");
        let pick = |values: &[i64]| axes.iter().map(|&axis| values[axis]).collect::<Vec<_>>();
        let this = Arc::new(self);
        let (shape, strides) = (pick(this.shape()), pick(&this.strides()));
        let description = this.described(&shape, &strides);
        // SAFETY: I2, for as long as the clone keeps the tensor: the order of axes changes none of it.
        let shared = unsafe { Self::pack(Arc::clone(&this), &description) };
        shared.unwrap_or_else(|_| unreachable!("a tensor that was valid is valid"))
    }

    /// The same elements in another shape. The caller has checked that it spans no more memory.
    pub(crate) fn in_shape(self, shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        let (flags, dtype, exclusive) = (self.flags(), self.dtype(), !self.may_change());
        // The span of other devices' memory is not known.
        let reach = self.span().map(|(bytes, origin)| (origin, bytes.len()));
        let this = match self.into_fresh() {
            Ok(memory) => {
                let origin = reach.map_or(0, |(origin, _)| origin);
                return Self::from_fresh(memory, origin, dtype, flags, shape, strides);
            }
            Err(this) => Arc::new(this),
        };
        let description = this.described(shape, strides);
        // SAFETY: I2, for as long as the clone keeps the tensor; that no axis goes further than it did is checked
        // next, before any access.
        let tensor = unsafe { Self::pack(Arc::clone(&this), &description) }?;
        if reach.is_some_and(|(origin, len)| tensor.extends_beyond(origin, len)) {
            return Err(Error::Overflow("extent beyond its buffer"));
        }
        // SAFETY: I3: the owner has what the tensor had, and the owner has no other holder.
        Ok(if exclusive { unsafe { tensor.assume_exclusive() } } else { tensor })
    }

    /// The same elements in a larger shape, as NumPy's `broadcast_to`: axes of extent 1 repeat by a stride
    /// of 0, and more axes may come in front. Read-only, because elements share memory.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// let one = arrow_dlpack::export::array(&Int32Array::from(vec![7]))?;
    /// let many = one.broadcast_to(&[1000])?;
    /// assert_eq!((many.shape(), &*many.strides()), (&[1000][..], &[0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CannotBroadcast`; `NegativeExtent`; `Overflow` for more bytes than an address space has.
    pub fn broadcast_to(self, shape: &[i64]) -> Result<Self, Error> {
        let strides = layout::broadcast(self.shape(), &self.strides(), shape);
        let cannot = || Error::CannotBroadcast { from: self.shape().into(), to: shape.into() };
        let strides = strides.ok_or_else(cannot)?;
        let this = Arc::new(self);
        let mut description = this.described(shape, &strides);
        description.flags = description.flags.union(DLPackFlags::READ_ONLY);
        // SAFETY: I2, for as long as the clone keeps the tensor: no axis goes further than it did.
        unsafe { Self::pack(Arc::clone(&this), &description) }
    }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::Buffer;

    use super::*;
    use crate::ffi::DLDataType;

    /// Callers check the shape; should one of them be wrong, no tensor says so.
    #[test]
    fn another_shape_does_not_reach_beyond_the_tensor() {
        let four = || {
            let (buffer, flags) = (Buffer::from_vec(vec![0_i32; 4]), DLPackFlags::default());
            ManagedTensor::from_shared(buffer, DLDataType::INT32, flags, &[4], &[1])
        };
        let nbytes = |shape: &[i64], strides: &[i64]| {
            four()?.in_shape(shape, strides).map(|tensor| tensor.nbytes())
        };
        assert_eq!(nbytes(&[2, 2], &[2, 1]), Ok(16));
        let beyond = Error::Overflow("extent beyond its buffer");
        for (shape, strides) in [([5], [1]), ([2], [4]), ([2], [-1])] {
            assert_eq!(nbytes(&shape, &strides), Err(beyond.clone()));
        }
    }
}
