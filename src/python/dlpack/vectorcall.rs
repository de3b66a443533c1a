//! Calls `__dlpack__` of other libraries without tuples and dictionaries in between.
#![expect(unsafe_code, reason = "calls functions of CPython's C API")]

use pyo3::types::{PyString, PyTuple};
use pyo3::{ffi, prelude::*, sync::PyOnceLock};

use crate::{fence::calling, ffi::DLPackVersion, pending::function};

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
pub(in crate::python) fn ask<'py>(x: &Bound<'py, PyAny>) -> Option<PyResult<Bound<'py, PyAny>>> {
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
