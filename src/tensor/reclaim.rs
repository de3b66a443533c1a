//! Buffers over memory of tensors, and the recovery of that memory.
//!
//! A `Buffer` does not say who its owner is, and becomes mutable only if it begins where its allocation does;
//! ours begins at the next multiple of 64 bytes. So a buffer over memory of ours has an owner that is looked up here by
//! the memory's address, when an array of it is handed over.
#![expect(unsafe_code, reason = "promises Arrow that memory of tensors is readable")]

use std::collections::BTreeMap;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_buffer::Buffer;

use super::ManagedTensor;
use super::owner::Owned;
use crate::alloc::Fresh;
use crate::{ElementOrBool, Error, ExclusiveObstacle};

impl ManagedTensor {
    /// The elements in row-major order, as a vector. Nothing is copied where the memory is a vector's that
    /// [`from_vec`](Self::from_vec) took over, or a contiguous array's of `ndarray`; otherwise the elements are copied once, or
    /// twice if they are strided. To have the values of Arrow data in a vector without this copy, see
    /// [`export::to_vec`](crate::export::to_vec).
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let values = vec![true, false];
    /// let address = values.as_ptr();
    /// let tensor = ManagedTensor::from_vec(values, &[2])?;
    /// let values = tensor.into_vec::<bool>()?;
    /// assert_eq!((values.as_ptr(), values), (address, vec![true, false]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `DtypeMismatch`; `UnreadableDevice`; `OutOfMemory`. The tensor has been dropped by then.
    pub fn into_vec<T: ElementOrBool>(self) -> Result<Vec<T>, Error> {
        if self.dtype() != T::DTYPE {
            return Err(Error::DtypeMismatch { expected: T::DTYPE, found: self.dtype() });
        }
        self.check_readable()?;
        let tensor = if self.is_contiguous() { self } else { self.copied()? };
        let memory = match tensor.into_fresh() {
            Ok(memory) => match memory.into_vec() {
                Ok(values) => return Ok(T::from_stored(values)),
                Err(memory) => memory.into_buffer(),
            },
            Err(tensor) => adopt(tensor).unwrap_or_default(),
        };
        let count = memory.len() / size_of::<T::Stored>();
        let values = Fresh::vector(count, |mut out| {
            out.extend_from_slice(&memory);
            out.finish();
            Ok(())
        })?;
        Ok(T::from_stored(values))
    }
}

/// A `Buffer` over the bytes that the tensor spans; the tensor's deleter runs when the last slice of
/// it is dropped, on any thread. If the CPU cannot read the memory, the tensor is released and the result is `None`.
///
/// A tensor without elements is released at once: its pointer may be NULL or dangling, and Arrow
/// requires even an empty buffer to be aligned.
pub(crate) fn adopt(tensor: ManagedTensor) -> Option<Buffer> {
    if matches!(tensor.owner().owned(), Owned::Fresh(_)) {
        return Some(match tensor.into_fresh() {
            // Allocated by Arrow; its only holder may write to it again.
            Ok(memory) if memory.is_whole() => memory.into_buffer(),
            Ok(memory) => recoverable(memory),
            Err(_) => Buffer::default(),
        });
    }
    let (bytes, _) = tensor.span()?;
    if bytes.is_empty() {
        return Some(Buffer::default());
    }
    let (start, len) = (NonNull::from(bytes).cast(), bytes.len());
    let owner = Arc::new(tensor.into_owner());
    // SAFETY: I2, the span is readable until the deleter runs, and the buffer has the owner.
    Some(unsafe { Buffer::from_custom_allocation(start, len, owner) })
}

/// Owners of Arrow's buffers, by the address of the first byte. A fork can find this lock held only during
/// an insertion or removal: no foreign code runs under it.
static OWNERS: Mutex<BTreeMap<usize, Weak<FreshOwner>>> = Mutex::new(BTreeMap::new());

fn owners() -> MutexGuard<'static, BTreeMap<usize, Weak<FreshOwner>>> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The only owner of its memory, behind one of Arrow's buffers. `OWNERS` has its address until it is dropped.
pub(super) struct FreshOwner(Fresh);

impl FreshOwner {
    fn address(&self) -> usize {
        self.0.start().addr().get()
    }
}

impl Drop for FreshOwner {
    fn drop(&mut self) {
        owners().remove(&self.address());
    }
}

/// A buffer over the memory, from which [`claim`] can recover it.
fn recoverable(memory: Fresh) -> Buffer {
    let owner = Arc::new(FreshOwner(memory));
    owners().insert(owner.address(), Arc::downgrade(&owner));
    buffer_of(owner)
}

/// A buffer's memory, if it has no other holder and came from Rust's allocator, or from here; else the buffer back,
/// and the obstacle.
pub(crate) fn claim(buffer: Buffer) -> Result<Fresh, (Buffer, ExclusiveObstacle)> {
    match buffer.into_mutable() {
        Ok(memory) => Ok(Fresh::from_mutable(memory)),
        Err(buffer) if buffer.ptr_offset() > 0 => Err((buffer, ExclusiveObstacle::Sliced)),
        Err(buffer) if buffer.strong_count() > 1 => Err((buffer, ExclusiveObstacle::Shared)),
        Err(buffer) => take_back(buffer),
    }
}

/// The memory behind this buffer, if it has no other holder; else the buffer back, and the obstacle. The
/// caller is the buffer's only holder.
fn take_back(buffer: Buffer) -> Result<Fresh, (Buffer, ExclusiveObstacle)> {
    // While a buffer lives, nothing else has its address: the memory must be the owner's.
    let found = owners().get(&buffer.as_ptr().addr()).and_then(Weak::upgrade);
    let Some(owner) = found.filter(|owner| buffer.len() <= owner.0.len()) else {
        return Err((buffer, ExclusiveObstacle::Foreign));
    };
    // It may be the owner's own buffer, or one that came through C and holds that one. If there are other holders,
    // the caller gets a new buffer over the same memory.
    let len = buffer.len();
    drop(buffer);
    match Arc::try_unwrap(owner) {
        Ok(mut owner) => {
            owners().remove(&owner.address());
            Ok(mem::replace(&mut owner.0, Fresh::from_vec(Vec::<u8>::new())))
        }
        Err(owner) => Err((buffer_of(owner).slice_with_length(0, len), ExclusiveObstacle::Shared)),
    }
}

/// A `Buffer` over memory of our own.
fn buffer_of(owner: Arc<FreshOwner>) -> Buffer {
    let (start, len) = (owner.0.start(), owner.0.len());
    // SAFETY: the buffer has the owner, which has the memory, and reads it by the pointer of the allocation.
    unsafe { Buffer::from_custom_allocation(start, len, owner) }
}
