//! Exported tensors: header, shape, strides and owner in one allocation, and their deleter.
#![expect(unsafe_code, reason = "lays out and frees an allocation by hand")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::release::{Outgoing, count_exported, release};
use crate::ffi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackFlags, DLPackVersion,
    DLTensor,
};

/// The description of an exported tensor. Strides are always given, which DLPack requires since 1.2.
#[derive(Clone, Copy)]
pub(crate) struct Description<'a> {
    pub(crate) data: *mut u8,
    pub(crate) byte_offset: u64,
    pub(crate) device: DLDevice,
    pub(crate) dtype: DLDataType,
    pub(crate) flags: DLPackFlags,
    pub(crate) shape: &'a [i64],
    pub(crate) strides: &'a [i64],
}

/// The header that a consumer sees. The legacy one is smaller, so that it can replace the other in place.
#[repr(C)]
union Header {
    versioned: std::mem::ManuallyDrop<DLManagedTensorVersioned>,
    legacy: std::mem::ManuallyDrop<DLManagedTensor>,
}

/// The start of the allocation, whatever the owner's type.
#[repr(C)]
struct Prefix {
    header: Header,
    /// What the trailing arrays were allocated for: the consumer may have changed the header's.
    ndim: usize,
    /// The legacy deleter for the owner's type.
    legacy_deleter: unsafe extern "C" fn(*mut DLManagedTensor),
}

/// The allocation, followed by `ndim` extents and `ndim` strides.
#[repr(C)]
struct Block<O> {
    prefix: Prefix,
    owner: O,
}

impl<O: 'static> Block<O> {
    /// The layout of a block with its arrays, and the offset of the arrays.
    fn layout(ndim: usize) -> (Layout, usize) {
        let arrays = Layout::array::<[i64; 2]>(ndim);
        arrays
            .and_then(|arrays| Layout::new::<Self>().extend(arrays))
            .unwrap_or_else(|_| unreachable!("the arrays exist already, so they fit memory"))
    }

    /// Drops the owner and frees the block. Only the owner's drop can panic, which `release` catches.
    ///
    /// # Safety
    ///
    /// P1, and the block is not used again.
    unsafe fn free(block: *mut Self) {
        // The owner is taken within: to move what has just been written takes a tenth of an export's time.
        // SAFETY: P1, and the block is not used again.
        release(move || drop(unsafe { Self::take(block) }));
    }

    /// Frees the block, and returns its owner.
    ///
    /// # Safety
    ///
    /// P1, and the block is not used again.
    unsafe fn take(block: *mut Self) -> O {
        // SAFETY: P1.
        let (ndim, owner) = unsafe { ((*block).prefix.ndim, (&raw mut (*block).owner).read()) };
        let (layout, _) = Self::layout(ndim);
        // SAFETY: P1, and the owner has been moved out.
        unsafe { dealloc(block.cast(), layout) };
        count_exported(-1);
        owner
    }
}

unsafe extern "C" fn delete<O: 'static>(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: P1; C calls a deleter once, with the pointer it was given (P2).
    unsafe { Block::<O>::free(tensor.cast()) };
}

unsafe extern "C" fn delete_legacy<O: 'static>(tensor: *mut DLManagedTensor) {
    // SAFETY: as in `delete`.
    unsafe { Block::<O>::free(tensor.cast()) };
}

/// A packed tensor whose owner's type has been forgotten, with its versioned header in place.
///
/// Invariants:
///
/// - **P1** It points to a live `Block<O>`, allocated by [`pack`] with `Block::<O>::layout(ndim)`;
///   the deleters in it are those for the same `O`.
/// - **P2** The header is the block's first field, so a pointer to either is a pointer to both.
/// - **P3** The description is truthful, as [`pack`] demands.
///
/// There is one for each block: who has it may end the tensor. It leaks if it is dropped.
pub(super) struct Packed(NonNull<Prefix>);

/// A new block with this description, whose owner is constructed in place, because moving a value that has just
/// been written takes longer than writing it.
///
/// # Safety
///
/// P3: the description is truthful, in the sense of [`ManagedTensor::from_raw`](super::ManagedTensor::from_raw), for as
/// long as the owner lives, or the tensor is dropped before anyone reads its memory.
#[inline(always)] // so that all of a vector's block but its addresses is known beforehand
pub(super) unsafe fn pack<O: Send + Sync + 'static>(
    owner: impl FnOnce() -> O,
    description: &Description<'_>,
) -> Packed {
    let Description { data, byte_offset, device, dtype, flags, shape, strides } = *description;
    assert_eq!(shape.len(), strides.len(), "one stride for each axis");
    let ndim = shape.len();
    let (layout, arrays_at) = Block::<O>::layout(ndim);
    // SAFETY: the layout is not empty, a block has a header.
    let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
    let block = start.cast::<Block<O>>();

    // SAFETY: the layout reserves `2 * ndim` values from `arrays_at`, aligned for them.
    let (shape_at, strides_at) = unsafe {
        let shape_at = start.add(arrays_at).cast::<i64>();
        let strides_at = shape_at.add(ndim);
        for (axis, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
            shape_at.add(axis).write(extent);
            strides_at.add(axis).write(stride);
        }
        (shape_at, strides_at)
    };
    let dl_tensor = DLTensor {
        data: data.cast(),
        device,
        ndim: i32::try_from(ndim).unwrap_or_else(|_| unreachable!("ndim came from an i32")),
        dtype,
        shape: shape_at.as_ptr(),
        strides: strides_at.as_ptr(),
        byte_offset,
    };
    let versioned = DLManagedTensorVersioned {
        version: DLPackVersion::CURRENT,
        // Nothing here reads it, but paddle calls the deleter only if it is not NULL.
        manager_ctx: start.as_ptr().cast(),
        deleter: Some(delete::<O>),
        flags,
        dl_tensor,
    };
    let header = Header { versioned: std::mem::ManuallyDrop::new(versioned) };
    let prefix = Prefix { header, ndim, legacy_deleter: delete_legacy::<O> };
    // SAFETY: freshly allocated for a `Block<O>`.
    unsafe { block.write(Block { prefix, owner: owner() }) };
    count_exported(1);
    Packed(block.cast())
}

impl Packed {
    /// The header, which lives until the deleter is called.
    pub(super) fn header(&self) -> *mut DLManagedTensorVersioned {
        self.0.as_ptr().cast()
    }

    /// The tensor as it is handed to C. Its header gets the smaller of our version and `newest`, but at least minor
    /// version `least`.
    #[inline(always)]
    pub(super) fn into_versioned(self, newest: DLPackVersion, least: u32) -> Outgoing {
        let least = DLPackVersion { major: DLPackVersion::CURRENT.major, minor: least };
        let raw = self.header();
        // SAFETY: P1, and no other code has the header yet; with P3 the block meets I1.
        unsafe {
            (*raw).version = newest.min(DLPackVersion::CURRENT).max(least);
            Outgoing::new(self.0.cast())
        }
    }

    /// Ends the tensor and returns its owner, without a call of the deleter.
    ///
    /// # Safety
    ///
    /// P1 for this `O`, and the block is not used again.
    pub(super) unsafe fn into_owner<O: 'static>(self) -> O {
        // SAFETY: P1 for this `O`, and the block is not used again.
        unsafe { Block::<O>::take(self.0.as_ptr().cast()) }
    }

    /// Rewrites the header as a legacy one, in place; the pointer is the consumer's.
    pub(super) fn into_legacy(self) -> *mut DLManagedTensor {
        let prefix = self.0.as_ptr();
        // SAFETY: P1, the versioned header is in place, and no other code has it. Both headers are plain data.
        unsafe {
            let DLManagedTensorVersioned { manager_ctx, dl_tensor, .. } = self.header().read();
            let deleter = Some((*prefix).legacy_deleter);
            let legacy = DLManagedTensor { dl_tensor, manager_ctx, deleter };
            (&raw mut (*prefix).header).cast::<DLManagedTensor>().write(legacy);
        }
        prefix.cast()
    }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::Buffer;

    use super::Block;

    #[test]
    fn a_tensor_over_a_buffer_is_one_small_allocation() {
        let size = Block::<Buffer>::layout(1).0.size();
        // Shorter pointers take less.
        assert!(if cfg!(target_pointer_width = "64") { size == 136 } else { size < 136 }, "{size}");
        assert!(Block::<Buffer>::layout(4).0.size() < 256);
    }
}
