//! DLPack capsules and bare pointers: tensors in and out of C.
//!
//! Source: <https://dmlc.github.io/dlpack/latest/python_spec.html>. A capsule owns its tensor until a
//! consumer takes it and renames the capsule.
#![expect(unsafe_code, reason = "passes raw pointers through PyCapsule")]

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::{
    exceptions::PyBufferError,
    ffi,
    prelude::*,
    sync::PyOnceLock,
    sync::critical_section::with_critical_section,
    types::{PyCapsule, PyString, PyTuple},
};

use crate::fence::{calling, fenced};
use crate::ffi::{DLManagedTensorVersioned, DLPackVersion};
use crate::python::describe::described;
use crate::tensor::{self, Outgoing};
use crate::{Error, ManagedTensor, pending::function};

/// The differences between capsules of the two ABIs.
///
/// **C1** A capsule named `name` owns a tensor of this ABI, whose pointer it holds; the name says so
/// by protocol, which cannot be checked. Under the name `used` it owns nothing.
struct Abi {
    name: &'static CStr,
    used: &'static CStr,
    destructor: ffi::PyCapsule_Destructor,
    /// Calls the deleter of a tensor of this ABI.
    delete: unsafe fn(*mut c_void),
}

const LEGACY: Abi = Abi {
    name: c"dltensor",
    used: c"used_dltensor",
    destructor: destroy::<false>,
    // SAFETY: the caller passes a legacy tensor that it owns (I1).
    delete: |tensor| unsafe { tensor::call_legacy_deleter(tensor.cast()) },
};

const VERSIONED: Abi = Abi {
    name: c"dltensor_versioned",
    used: c"used_dltensor_versioned",
    destructor: destroy::<true>,
    // SAFETY: the caller passes a versioned tensor that it owns (I1).
    delete: |tensor| unsafe { tensor::call_deleter(tensor.cast()) },
};

/// A capsule for a consumer that supports `max_version`: versioned from 1.0 on, else legacy.
pub(in crate::python) fn new<'py>(
    py: Python<'py>,
    tensor: ManagedTensor,
    max_version: Option<DLPackVersion>,
) -> PyResult<Bound<'py, PyAny>> {
    match max_version {
        Some(newest) if newest.major >= DLPackVersion::CURRENT.major => {
            versioned(py, tensor.into_outgoing(newest))
        }
        // SAFETY: the tensor has just been given up.
        _ => unsafe { wrap(py, tensor.into_raw_legacy()?.cast(), &LEGACY) },
    }
}

/// A capsule of a tensor whose version the consumer supports.
pub(in crate::python) fn versioned(py: Python<'_>, tensor: Outgoing) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: it is a versioned tensor, and has just been given up.
    unsafe { wrap(py, tensor.into_raw().cast(), &VERSIONED) }
}

/// # Safety
///
/// `pointer` is a tensor of this ABI, which meets I1 and is the caller's to give up.
unsafe fn wrap<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    abi: &Abi,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached to Python; the pointer is not NULL, the name is static, and from here on C1.
    let capsule = unsafe { ffi::PyCapsule_New(pointer, abi.name.as_ptr(), Some(abi.destructor)) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.inspect_err(|_| {
        // SAFETY: I1, and the tensor has not been taken.
        unsafe { (abi.delete)(pointer) };
    })
}

/// Takes the tensor out of a capsule of either name, and marks the capsule as used.
pub(in crate::python) fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<ManagedTensor> {
    // On builds without a GIL, this keeps two threads from taking the same tensor.
    let claimed = with_critical_section(capsule, || match claim(capsule, &VERSIONED)? {
        Some(pointer) => Ok(Some((pointer, true))),
        None => PyResult::Ok(claim(capsule, &LEGACY)?.map(|pointer| (pointer, false))),
    });
    let Some((pointer, is_versioned)) = claimed? else { return Err(not_a_tensor(capsule)) };
    // SAFETY: C1, and the claim made it ours. That the descriptor is truthful is the producer's promise.
    Ok(unsafe { tensor_at(pointer, is_versioned) }?)
}

/// # Safety
///
/// As [`ManagedTensor::from_raw`], or for a tensor of the other ABI, [`ManagedTensor::from_raw_legacy`].
unsafe fn tensor_at(pointer: *mut c_void, is_versioned: bool) -> Result<ManagedTensor, Error> {
    // SAFETY: a valid tensor of this ABI, truthful and given up, as both functions ask.
    unsafe {
        if is_versioned {
            ManagedTensor::from_raw(pointer.cast())
        } else {
            ManagedTensor::from_raw_legacy(pointer.cast())
        }
    }
}

#[cold]
fn not_a_tensor(capsule: &Bound<'_, PyCapsule>) -> PyErr {
    let used = is_valid(capsule, VERSIONED.used) || is_valid(capsule, LEGACY.used);
    PyBufferError::new_err(if used {
        "this DLPack capsule has been used already: each is good for one consumer".to_owned()
    } else {
        format!("not a DLPack capsule: {}", described(capsule))
    })
}

/// Takes over the tensor at an address. NULL and misaligned addresses are refused.
///
/// # Safety
///
/// As [`ManagedTensor::from_raw`], or for a tensor of the other ABI, [`ManagedTensor::from_raw_legacy`].
pub(in crate::python) unsafe fn take_address(
    address: usize,
    versioned: bool,
) -> PyResult<ManagedTensor> {
    // ctypes hands out addresses as integers.
    let pointer = ptr::with_exposed_provenance_mut(address);
    // SAFETY: a valid tensor of this ABI, truthful and given up, is at that address.
    Ok(unsafe { tensor_at(pointer, versioned) }?)
}

fn is_valid(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> bool {
    capsule.is_valid_checked(Some(name))
}

/// The pointer of a capsule of this ABI, which is renamed so that no other consumer takes it.
fn claim(capsule: &Bound<'_, PyCapsule>, abi: &Abi) -> PyResult<Option<*mut c_void>> {
    if !is_valid(capsule, abi.name) {
        return Ok(None);
    }
    let pointer = capsule.pointer_checked(Some(abi.name))?.as_ptr();
    // This crate could not delete a misaligned tensor, so the capsule keeps it. Both ABIs have the same alignment.
    if !pointer.cast::<DLManagedTensorVersioned>().is_aligned() {
        return Err(Error::MisalignedTensor { address: pointer.addr() }.into());
    }
    // SAFETY: attached to Python, and the name is static.
    match unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), abi.used.as_ptr()) } {
        0 => Ok(Some(pointer)),
        _ => Err(PyErr::fetch(capsule.py())),
    }
}

/// Deletes the tensor of a capsule unless a consumer has taken it.
unsafe extern "C" fn destroy<const IS_VERSIONED: bool>(capsule: *mut ffi::PyObject) {
    // SAFETY: CPython calls this once, attached, with the capsule that it was registered for, which is of this ABI
    // (C1); under another name the tensor has been taken.
    let _ = fenced(|| unsafe {
        let abi = if IS_VERSIONED { &VERSIONED } else { &LEGACY };
        let is_ours = ffi::PyCapsule_GetName(capsule) == abi.name.as_ptr();
        if is_ours || ffi::PyCapsule_IsValid(capsule, abi.name.as_ptr()) == 1 {
            // An exception may be in flight; with the right name this call raises none.
            let pointer = ffi::PyCapsule_GetPointer(capsule, abi.name.as_ptr());
            tensor::release_foreign(move || (abi.delete)(pointer));
        }
    });
}

/// The signature of `PyObject_VectorcallMethod`. When the interpreter ends, it may unwind it while it runs Python code.
type Vectorcall = unsafe extern "C-unwind" fn(
    name: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// `x.__dlpack__(max_version=...)` for the newest version, without a bound method and a dictionary. `None` if
/// the interpreter does not export the function.
///
/// `PyObject_VectorcallMethod` is public since Python 3.9, and in the limited API only from 3.12 on, so it is
/// looked up at run time.
pub(in crate::python) fn call_newest<'py>(
    x: &Bound<'py, PyAny>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    struct Usual {
        call: Vectorcall,
        name: Py<PyString>,
        version: Py<PyAny>,
        kwnames: Py<PyTuple>,
    }
    static USUAL: PyOnceLock<Option<Usual>> = PyOnceLock::new();

    let py = x.py();
    let make = || {
        // SAFETY: the signature of the function of this name has never changed.
        let call = unsafe { function::<Vectorcall>(c"PyObject_VectorcallMethod") };
        let Some(call) = call else { return Ok(None) };
        let DLPackVersion { major, minor } = DLPackVersion::CURRENT;
        PyResult::Ok(Some(Usual {
            call,
            name: PyString::intern(py, "__dlpack__").unbind(),
            version: (major, minor).into_pyobject(py)?.into_any().unbind(),
            kwnames: PyTuple::new(py, [PyString::intern(py, "max_version")])?.unbind(),
        }))
    };
    let Usual { call, name, version, kwnames } = USUAL.get_or_try_init(py, make).ok()?.as_ref()?;
    let args = [x.as_ptr(), version.as_ptr()];
    // SAFETY: attached to Python; one positional argument, the object itself, and one by keyword, all live.
    let answer = calling(|| unsafe { call(name.as_ptr(), args.as_ptr(), 1, kwnames.as_ptr()) });
    // SAFETY: a new reference, or NULL with an exception set.
    Some(unsafe { Bound::from_owned_ptr_or_err(py, answer) })
}
