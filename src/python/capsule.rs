//! DLPack capsules: tensors in and out of `PyCapsule`.
//!
//! Source: <https://dmlc.github.io/dlpack/latest/python_spec.html>. A capsule owns its tensor until a
//! consumer takes it and says so by renaming the capsule.
#![expect(unsafe_code, reason = "passes raw pointers through PyCapsule")]

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::request::described;
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion};
use crate::memory::ManagedTensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_LEGACY: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// A capsule for a consumer that understands `max_version`: versioned from 1.0 on, else legacy. The
/// version in it is the smaller of the consumer's and ours.
pub(super) fn new<'py>(
    py: Python<'py>,
    tensor: ManagedTensor,
    max_version: Option<DLPackVersion>,
) -> PyResult<Bound<'py, PyAny>> {
    let (pointer, name, destructor): (*mut c_void, _, ffi::PyCapsule_Destructor) = match max_version
    {
        Some(version) if version.major >= DLPackVersion::CURRENT.major => {
            let tensor = tensor.into_raw();
            // SAFETY: I1, the tensor is ours to describe until the capsule has it.
            unsafe { (*tensor).version = version.min(DLPackVersion::CURRENT) };
            (tensor.cast(), VERSIONED, destroy_versioned)
        }
        _ => (tensor.into_raw_legacy()?.cast(), LEGACY, destroy_legacy),
    };
    // SAFETY: attached to Python; the pointer is not NULL, the name is static, and the destructor is
    // the one for the pointer's type.
    let capsule = unsafe { ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor)) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.inspect_err(|_| {
        // SAFETY: nobody has taken the tensor.
        unsafe { release(pointer, name) };
    })
}

/// Takes the tensor out of a capsule of either name, and marks the capsule as used.
pub(super) fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<ManagedTensor> {
    if let Some(pointer) = claim(capsule, VERSIONED, USED_VERSIONED)? {
        // SAFETY: a capsule of this name owns a versioned tensor, as the protocol has it; the claim
        // made it ours. That its descriptor is truthful is the producer's promise.
        return Ok(unsafe { ManagedTensor::from_raw(pointer.cast()) }?);
    }
    if let Some(pointer) = claim(capsule, LEGACY, USED_LEGACY)? {
        // SAFETY: as above, for a legacy tensor.
        return Ok(unsafe { ManagedTensor::from_raw_legacy(pointer.cast()) }?);
    }
    let used = [USED_VERSIONED, USED_LEGACY].iter().any(|name| is_valid(capsule, name));
    Err(PyBufferError::new_err(if used {
        "this DLPack capsule has been used already: each is good for one consumer".to_owned()
    } else {
        format!("not a DLPack capsule: {}", described(capsule))
    }))
}

fn is_valid(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> bool {
    // SAFETY: attached to Python, any object may be asked.
    unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
}

/// The pointer of a capsule with this name, which is renamed so that it is nobody else's any more.
fn claim(
    capsule: &Bound<'_, PyCapsule>,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<Option<*mut c_void>> {
    if !is_valid(capsule, name) {
        return Ok(None);
    }
    // SAFETY: attached to Python; the capsule is valid under this name, and both names are static.
    let (pointer, renamed) = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        (pointer, ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()))
    };
    if pointer.is_null() || renamed != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok(Some(pointer))
}

/// Deletes a tensor that nobody took.
///
/// # Safety
///
/// `pointer` is an owned tensor of the kind that `name` says.
unsafe fn release(pointer: *mut c_void, name: &CStr) {
    // SAFETY: the caller's promise.
    unsafe {
        if name == VERSIONED {
            let tensor = pointer.cast::<DLManagedTensorVersioned>();
            (*tensor).deleter.into_iter().for_each(|delete| delete(tensor));
        } else {
            let tensor = pointer.cast::<DLManagedTensor>();
            (*tensor).deleter.into_iter().for_each(|delete| delete(tensor));
        }
    }
}

unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: CPython calls this once, attached, with the capsule that it was registered for.
    unsafe { destroy(capsule, VERSIONED) }
}

unsafe extern "C" fn destroy_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe { destroy(capsule, LEGACY) }
}

/// # Safety
///
/// Attached to Python, with a live capsule whose pointer, under `name`, is an owned tensor.
unsafe fn destroy(capsule: *mut ffi::PyObject, name: &CStr) {
    // SAFETY: the caller's promise; under another name the tensor has been taken.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
            let _pending = PendingException::set_aside();
            release(ffi::PyCapsule_GetPointer(capsule, name.as_ptr()), name);
        }
    }
}

/// An exception in flight, put back when this goes: a deleter may run Python code, which would
/// stumble over the exception or swallow it.
struct PendingException([*mut ffi::PyObject; 3]);

impl PendingException {
    /// # Safety
    ///
    /// Attached to Python, from here until the value is dropped.
    #[allow(deprecated, reason = "its successor is not in the limited API of Python 3.11")]
    unsafe fn set_aside() -> Self {
        let [mut kind, mut value, mut traceback] = [ptr::null_mut(); 3];
        // SAFETY: the caller is attached.
        unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback) };
        Self([kind, value, traceback])
    }
}

impl Drop for PendingException {
    #[allow(deprecated, reason = "as above")]
    fn drop(&mut self) {
        let [kind, value, traceback] = self.0;
        // SAFETY: still attached; the three references are the ones that were fetched.
        unsafe { ffi::PyErr_Restore(kind, value, traceback) };
    }
}
