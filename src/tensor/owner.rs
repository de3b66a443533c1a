//! The owner of a managed tensor.
#![expect(unsafe_code, reason = "reads foreign headers and calls deleters")]

use std::{mem::ManuallyDrop, ptr, ptr::NonNull};

use super::block::Packed;
use super::release::{call_deleter, call_legacy_deleter, count_imported, release_imported};
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackFlags};

/// Calls the deleter when it is dropped.
pub(super) struct Owner(Owned);

// SAFETY: I1 allows the deleter on any thread.
unsafe impl Send for Owner {}
// SAFETY: I1, and a shared owner gives access only to its flags, which do not change.
unsafe impl Sync for Owner {}

pub(super) enum Owned {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
    Packed(Packed),
    /// As `Packed`, and the block's owner is the `Buffer` of a `Fresh`.
    Fresh(Packed),
}

impl Owner {
    /// The owner of a tensor that this crate made; there is one `Packed` for each.
    pub(super) fn packed(packed: Packed) -> Self {
        Self(Owned::Packed(packed))
    }

    /// The owner of a tensor that came from C.
    ///
    /// # Safety
    ///
    /// The tensor meets I1, but that its descriptor has not been judged yet, and is the caller's to give up.
    pub(super) unsafe fn versioned(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        count_imported(1);
        Self(Owned::Versioned(tensor))
    }

    /// [`Self::versioned`] for the legacy ABI.
    ///
    /// # Safety
    ///
    /// As [`Self::versioned`].
    pub(super) unsafe fn legacy(tensor: NonNull<DLManagedTensor>) -> Self {
        count_imported(1);
        Self(Owned::Legacy(tensor))
    }

    /// # Safety
    ///
    /// It is a packed tensor's, and the block's owner is the `Buffer` of a `Fresh`.
    pub(super) unsafe fn known_fresh(self) -> Self {
        let Owned::Packed(packed) = self.give_up() else { unreachable!("it was packed") };
        Self(Owned::Fresh(packed))
    }

    pub(super) fn owned(&self) -> &Owned {
        &self.0
    }

    /// Gives up ownership without a call of the deleter: the caller has the tensor by another way.
    pub(super) fn forget(self) {
        let _ = self.into_owned();
    }

    /// The tensor, which is the caller's from now on.
    pub(super) fn into_owned(self) -> Owned {
        let abi = self.give_up();
        if matches!(abi, Owned::Versioned(_) | Owned::Legacy(_)) {
            count_imported(-1);
        }
        abi
    }

    fn give_up(self) -> Owned {
        let this = ManuallyDrop::new(self);
        // SAFETY: the owner is not dropped, so that this is the only one that has it.
        unsafe { ptr::read(&raw const this.0) }
    }

    /// The flags of a tensor whose version is known to be ours.
    ///
    /// # Safety
    ///
    /// A versioned header has the layout of version 1.
    pub(super) unsafe fn flags(&self) -> DLPackFlags {
        let versioned = match &self.0 {
            Owned::Versioned(tensor) => tensor.as_ptr(),
            Owned::Packed(packed) | Owned::Fresh(packed) => packed.header(),
            // It has no read-only flag, and JAX's arrays are read-only, so it counts as read-only.
            Owned::Legacy(_) => return DLPackFlags::READ_ONLY,
        };
        // SAFETY: I1 for the header, which has the layout of version 1.
        unsafe { (*versioned).flags }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        match self.0 {
            // SAFETY: I1: the deleter has not been called, and this owner was the only one.
            Owned::Packed(ref packed) | Owned::Fresh(ref packed) => unsafe {
                call_deleter(packed.header());
            },
            Owned::Versioned(tensor) => release_imported(move || {
                // SAFETY: I1: the deleter has not been called, and this owner was the only one.
                unsafe { call_deleter(tensor.as_ptr()) };
            }),
            Owned::Legacy(tensor) => release_imported(move || {
                // SAFETY: I1: the deleter has not been called, and this owner was the only one.
                unsafe { call_legacy_deleter(tensor.as_ptr()) };
            }),
        }
    }
}
