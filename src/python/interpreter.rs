//! Checks for the main interpreter, because state of the process belongs to one interpreter; and handles the
//! interpreter's end during a call.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::{hint, mem, ptr, thread};

use pyo3::types::{PyDict, PyTuple};
use pyo3::{exceptions::PyImportError, ffi, prelude::*};

/// An `ImportError`, unless this is the main interpreter. CPython itself refuses only interpreters with a GIL
/// of their own.
pub(super) fn refuse_other_than_main(_py: Python<'_>) -> PyResult<()> {
    // The main interpreter is created first, and ids start at 0.
    const MAIN: i64 = 0;

    // SAFETY: attached to Python, so that there is a current interpreter.
    if unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "arrow_dlpack works in the main interpreter only, and this is a sub-interpreter: import it in \
         the main one, or use a process instead (under mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
    ))
}

/// The result of a call of foreign Python code.
///
/// Before Python 3.14, when the interpreter ends, it ends a daemon thread in such a call by unwinding its
/// stack, and the drops on the way need the interpreter. This function blocks such a thread until the process
/// ends, as Python 3.14 does, and PyO3 where a thread attaches. The called function must be declared as `extern
/// "C-unwind"`: for any other, the compiler assumes that the call does not unwind.
pub(super) fn calling<T>(call: impl FnOnce() -> T) -> T {
    let ended = Ended;
    let answer = call();
    mem::forget(ended);
    answer
}

/// `callable(**keywords)`, as a call of foreign code.
pub(super) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Object = *mut ffi::PyObject;
    type Call = unsafe extern "C" fn(Object, Object, Object) -> Object;
    type MayUnwind = unsafe extern "C-unwind" fn(Object, Object, Object) -> Object;

    // `black_box` hides that the function is declared as one that does not unwind.
    let call: Call = hint::black_box(ffi::PyObject_Call);
    // SAFETY: the two differ only in the ABI's unwinding.
    let call = unsafe { mem::transmute::<Call, MayUnwind>(call) };
    let args = PyTuple::empty(callable.py());
    let keywords = keywords.map_or(ptr::null_mut(), Bound::as_ptr);
    // SAFETY: attached to Python, a live callable, a tuple, and a dict or NULL.
    let answer = calling(|| unsafe { call(callable.as_ptr(), args.as_ptr(), keywords) });
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(callable.py(), answer) }
}

/// A guard that is dropped only if the call unwinds.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        // A panic unwinds too, and continues.
        while !thread::panicking() {
            thread::park();
        }
    }
}
