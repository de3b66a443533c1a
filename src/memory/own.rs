//! Memory of our own that has become an Arrow array, and how it is found again when the array is handed over.
//!
//! A `Buffer` does not say who its owner is, and becomes mutable only if it begins where its allocation does;
//! ours begins at the next multiple of 64 bytes. So the buffer has an owner that is looked up here by the
//! memory's address.

#![expect(unsafe_code, reason = "promises Arrow that memory is readable")]

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_buffer::Buffer;

use super::fresh::Fresh;
use crate::error::ExclusiveObstacle;

/// Owners of Arrow's buffers, by the address of the first byte. A fork can find this lock held only during
/// an insertion or removal: no foreign code runs under it.
static LENT: Mutex<BTreeMap<usize, Weak<Lent>>> = Mutex::new(BTreeMap::new());

fn lent() -> MutexGuard<'static, BTreeMap<usize, Weak<Lent>>> {
    LENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner of a buffer over memory with no other owner. It has its address in `LENT` until it is dropped.
pub(super) struct Lent(Fresh);

impl Lent {
    pub(super) fn memory(&self) -> &Buffer {
        self.0.buffer()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        lent().remove(&address(self.memory()));
    }
}

fn address(buffer: &Buffer) -> usize {
    buffer.as_ptr().addr()
}

/// A buffer of memory, which [`claim`] knows.
pub(super) fn lend(memory: Fresh) -> Buffer {
    let owner = Arc::new(Lent(memory));
    lent().insert(address(owner.memory()), Arc::downgrade(&owner));
    buffer_of(owner)
}

/// A buffer's memory, if it has no other holder and came from Rust's allocator, or from here; else the buffer back,
/// and the obstacle.
pub(crate) fn claim(buffer: Buffer) -> Result<Fresh, (Buffer, ExclusiveObstacle)> {
    match buffer.into_mutable() {
        Ok(memory) => Ok(Fresh::alone(memory.into())),
        Err(buffer) if buffer.ptr_offset() > 0 => Err((buffer, ExclusiveObstacle::Sliced)),
        Err(buffer) if buffer.strong_count() > 1 => Err((buffer, ExclusiveObstacle::Shared)),
        Err(buffer) => take_back(buffer),
    }
}

/// The memory behind this buffer, if it has no other holder; else the buffer back, and the obstacle. The
/// caller is the buffer's only holder.
fn take_back(buffer: Buffer) -> Result<Fresh, (Buffer, ExclusiveObstacle)> {
    // Where a buffer is, nothing else is, as long as it lives: the memory must be the owner's.
    let found = lent().get(&address(&buffer)).and_then(Weak::upgrade);
    let Some(owner) = found.filter(|owner| buffer.len() <= owner.memory().len()) else {
        return Err((buffer, ExclusiveObstacle::Foreign));
    };
    // It may be the owner's own buffer, or came through C and holds that one. If others do, the array is
    // made anew, of the same memory.
    let len = buffer.len();
    drop(buffer);
    match Arc::try_unwrap(owner) {
        Ok(mut owner) => {
            lent().remove(&address(owner.memory()));
            Ok(mem::replace(&mut owner.0, Fresh::none()))
        }
        Err(owner) => Err((buffer_of(owner).slice_with_length(0, len), ExclusiveObstacle::Shared)),
    }
}

/// A `Buffer` over memory of our own.
fn buffer_of(owner: Arc<Lent>) -> Buffer {
    let (memory, len) = (owner.memory(), owner.memory().len());
    // SAFETY: the buffer has the owner, which has the memory. The pointer comes from the allocation: the one that
    // the memory's buffer reads by is invalid, since the memory was written to.
    unsafe {
        let start = memory.data_ptr().add(memory.ptr_offset());
        Buffer::from_custom_allocation(start, len, owner)
    }
}
