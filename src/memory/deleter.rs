//! The only calls of a deleter, and a tensor on its way to C.
#![expect(unsafe_code, reason = "calls deleters")]

use std::{mem::ManuallyDrop, ptr::NonNull};

use super::release::release_foreign;
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned};

/// A tensor on its way to C: its deleter is called unless somebody takes the pointer.
pub(crate) struct Outgoing(NonNull<DLManagedTensorVersioned>);

impl Outgoing {
    /// # Safety
    ///
    /// The tensor meets I1, and is the caller's to give up.
    #[inline(always)]
    pub(super) unsafe fn new(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Self(tensor)
    }

    /// The consumer's pointer.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> *mut DLManagedTensorVersioned {
        ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let tensor = self.0;
        release_foreign(move || {
            // SAFETY: I1, and nobody took it.
            unsafe { delete_versioned(tensor.as_ptr()) };
        });
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
