//! Tensors over memory that this crate owns, and the recovery of that memory.
#![expect(unsafe_code, reason = "describes a buffer's allocation")]

use std::ops::Range;

use arrow_buffer::Buffer;

use super::{ManagedTensor, fresh::Fresh, owner::Abi, pack::Description};
use crate::Error;
use crate::ffi::{DLDataType, DLDevice, DLPackFlags};

impl ManagedTensor {
    /// A tensor over memory that may have other holders: read-only, in addition to `flags`.
    pub(crate) fn from_shared(
        buffer: Buffer,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        let (whole, flags) = (whole(&buffer), flags.union(DLPackFlags::READ_ONLY));
        // SAFETY: the bytes are the buffer's, and the tensor is read-only.
        unsafe { Self::over(buffer, whole, 0, dtype, flags, shape, strides) }
    }

    /// [`Self::from_shared`] for the memory from the start of the first buffer to the end of the last. They are
    /// slices of one allocation, and each [`follows`] the one before it.
    ///
    /// # Panics
    ///
    /// If a buffer does not follow the one before it.
    pub(crate) fn from_run(
        mut buffers: Vec<Buffer>,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        if shape.contains(&0) {
            return Self::from_shared(Buffer::default(), dtype, flags, shape, strides);
        }
        assert!(buffers.windows(2).all(|pair| follows(&pair[0], &pair[1])), "one run");
        let start = buffers.first().map_or(0, Buffer::ptr_offset);
        // It keeps the whole allocation alive, and with it the other slices.
        let last = buffers.pop().unwrap_or_default();
        let end = last.ptr_offset() + last.len();
        let flags = flags.union(DLPackFlags::READ_ONLY);
        // SAFETY: one allocation has these bytes, as was asserted, and the tensor is read-only.
        unsafe { Self::over(last, start..end, 0, dtype, flags, shape, strides) }
    }

    /// A writable tensor over memory with no other owner, whose first element is `origin` bytes into
    /// it. `flags` describe its origin.
    pub(crate) fn from_fresh(
        memory: Fresh,
        origin: usize,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        // SAFETY: `over` describes the memory by the pointer of the allocation. The buffer was that of a `Fresh`, so that
        // nothing else has it, and `flags` say what its elements are, and not that they must not be written to.
        unsafe {
            let memory = memory.into_owner();
            let whole = whole(&memory);
            let tensor = Self::over(memory, whole, origin, dtype, flags, shape, strides)?;
            Ok(tensor.known_fresh())
        }
    }

    /// The memory that the tensor spans, if this crate owns it, it has no other owner and is not empty.
    /// Otherwise the tensor back.
    pub(super) fn into_fresh(self) -> Result<Fresh, Self> {
        let bytes = self.span().map(|(bytes, _)| bytes).filter(|bytes| !bytes.is_empty());
        let (Abi::Fresh(_), Some(bytes)) = (self.owner().abi(), bytes) else {
            return Err(self);
        };
        let (start, len) = (bytes.as_ptr().addr(), bytes.len());
        let Abi::Fresh(packed) = self.into_owner().into_abi() else { unreachable!("it was one") };
        // SAFETY: I1, and the owner of the block is the buffer of a `Fresh`, as `Abi::Fresh` says.
        let memory = unsafe { Fresh::recovered(packed.into_owner::<Buffer>()) };
        let before = start - memory.start().addr().get();
        Ok(memory.part(before, len))
    }

    /// A tensor over a range of bytes of a buffer's allocation, which ends at or before the end of the buffer.
    /// Its first element is `origin` bytes into the range.
    ///
    /// # Safety
    ///
    /// The allocation has these bytes. Without `READ_ONLY`, the buffer has no other holder.
    unsafe fn over(
        buffer: Buffer,
        bytes: Range<usize>,
        origin: usize,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        // The pointer must come from the allocation, not from the buffer's `&[u8]`: a consumer of fresh memory
        // writes through it.
        let data = buffer.data_ptr().as_ptr().wrapping_add(bytes.start).wrapping_add(origin);
        let len = bytes.len();
        let device = DLDevice::CPU;
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: the caller's promise; a buffer keeps its allocation where it is. That the elements lie within these
        // bytes is checked next, before any access.
        let tensor = unsafe { Self::pack(buffer, &description) }?;
        if tensor.extends_beyond(origin, len) {
            return Err(Error::Overflow("extent beyond its buffer"));
        }
        Ok(tensor)
    }
}

/// The range of a buffer in its allocation.
fn whole(buffer: &Buffer) -> Range<usize> {
    let start = buffer.ptr_offset();
    start..start + buffer.len()
}

/// Whether a buffer begins where another ends, in one allocation. Addresses alone do not suffice: allocators
/// place separate allocations end to end, and neither a slice nor a pointer may cross from one into the other.
///
/// Two live buffers whose allocations begin at the same address share one allocation, though they may record
/// different lengths of it. The length that `after` records, which ends later, covers both.
pub(crate) fn follows(before: &Buffer, after: &Buffer) -> bool {
    before.data_ptr() == after.data_ptr() && whole(before).end == after.ptr_offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Way<'a> = &'a dyn Fn(&[i64], &[i64]) -> Result<ManagedTensor, Error>;

    /// Callers count their elements; should one of them count wrong, no tensor says so.
    #[test]
    fn a_tensor_does_not_reach_beyond_its_buffers() {
        let whole = Buffer::from_vec(vec![0_i32; 4]);
        let shared = |shape: &[i64], strides: &[i64]| {
            let flags = DLPackFlags::default();
            ManagedTensor::from_shared(whole.clone(), DLDataType::INT32, flags, shape, strides)
        };
        let run = |shape: &[i64], strides: &[i64]| {
            let halves = vec![whole.slice_with_length(0, 8), whole.slice_with_length(8, 8)];
            let flags = DLPackFlags::default();
            ManagedTensor::from_run(halves, DLDataType::INT32, flags, shape, strides)
        };
        let beyond = Error::Overflow("extent beyond its buffer");
        let ways: [Way<'_>; 2] = [&shared, &run];
        for over in ways {
            assert_eq!(over(&[2, 2], &[2, 1]).map(|tensor| tensor.nbytes()), Ok(16));
            assert_eq!(over(&[2], &[3]).map(|tensor| tensor.nbytes()), Ok(8));
            assert_eq!(over(&[5], &[1]).err(), Some(beyond.clone()));
            assert_eq!(over(&[2], &[4]).err(), Some(beyond.clone()));
            assert_eq!(over(&[2], &[-1]).err(), Some(beyond.clone()));
        }
    }
}
