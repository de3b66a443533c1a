//! The owner of a managed tensor, with the only calls of a deleter.
#![expect(unsafe_code, reason = "reads foreign headers and calls deleters")]

use std::{mem, ptr::NonNull};

use super::{live, pack::Packed, release::release_imported};
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackFlags};

/// Calls the deleter when it is dropped.
pub(super) struct Owner(Abi);

// SAFETY: I1 allows the deleter on any thread.
unsafe impl Send for Owner {}
// SAFETY: I1, and a shared owner gives access only to its flags, which do not change.
unsafe impl Sync for Owner {}

#[derive(Clone, Copy)]
pub(super) enum Abi {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
    Packed(Packed),
    /// As `Packed`, and the block's owner is the `Buffer` of a `Fresh`.
    Fresh(Packed),
}

impl Owner {
    pub(super) fn packed(packed: Packed) -> Self {
        Self(Abi::Packed(packed))
    }

    /// # Safety
    ///
    /// If it is a packed tensor's, the block's owner is the `Buffer` of a `Fresh`.
    pub(super) unsafe fn known_fresh(self) -> Self {
        let Abi::Packed(packed) = self.0 else { return self };
        mem::forget(self);
        Self(Abi::Fresh(packed))
    }

    pub(super) fn abi(&self) -> Abi {
        self.0
    }

    pub(super) fn foreign(abi: Abi) -> Self {
        live::imported(1);
        Self(abi)
    }

    fn is_foreign(&self) -> bool {
        !matches!(self.0, Abi::Packed(_) | Abi::Fresh(_))
    }

    /// Gives up ownership without a call of the deleter.
    pub(super) fn forget(self) {
        if self.is_foreign() {
            live::imported(-1);
        }
        mem::forget(self);
    }

    /// Must not be called before the version is known.
    pub(super) fn flags(&self) -> DLPackFlags {
        let versioned = match self.0 {
            Abi::Versioned(tensor) => tensor.as_ptr(),
            Abi::Packed(packed) | Abi::Fresh(packed) => packed.into_versioned(),
            // It has no read-only flag, and JAX's arrays are read-only, so it counts as read-only.
            Abi::Legacy(_) => return DLPackFlags::READ_ONLY,
        };
        // SAFETY: I1.
        unsafe { (*versioned).flags }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        match self.0 {
            // SAFETY: I1.
            Abi::Packed(packed) | Abi::Fresh(packed) => unsafe {
                delete_versioned(packed.into_versioned());
            },
            Abi::Versioned(tensor) => release_imported(move || {
                // SAFETY: I1.
                unsafe { delete_versioned(tensor.as_ptr()) };
            }),
            Abi::Legacy(tensor) => release_imported(move || {
                // SAFETY: I1.
                unsafe { delete_legacy(tensor.as_ptr()) };
            }),
        }
    }
}

/// Calls the deleter, if there is one. No other field is read but the deleter, because the major version may differ.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (&raw const (*tensor).deleter).read() {
            delete(tensor);
        }
    }
}

/// [`delete_versioned`] for the legacy ABI.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn delete_legacy(tensor: *mut DLManagedTensor) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (&raw const (*tensor).deleter).read() {
            delete(tensor);
        }
    }
}
