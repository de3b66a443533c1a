//! Identifies the interpreter, since a process may have several and what is kept for the process belongs to one;
//! and handles its end in the middle of a call.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::{hint, mem, ptr, thread};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// An `ImportError`, unless this is the main interpreter. CPython says so itself only to interpreters with a GIL
/// of their own.
pub(super) fn refuse_other_than_main(_py: Python<'_>) -> PyResult<()> {
    // The main one is there first, and they are counted from 0.
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
/// Before Python 3.14 a daemon thread is ended there, once the interpreter is ending, by unwinding all that has called
/// it; and the drops on the way need the interpreter. Here such a thread stops, until the process ends, as in 3.14,
/// and as in PyO3 where a thread attaches. The call has to be one of a function that may unwind
/// (`extern "C-unwind"`): after any other, the compiler assumes that nothing is left to be dropped.
pub(super) fn calling<T>(call: impl FnOnce() -> T) -> T {
    let ended = Ended;
    let answer = call();
    mem::forget(ended);
    answer
}

/// `callable(**keywords)`, in such a way.
pub(super) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Object = *mut ffi::PyObject;
    type Call = unsafe extern "C" fn(Object, Object, Object) -> Object;
    type MayUnwind = unsafe extern "C-unwind" fn(Object, Object, Object) -> Object;

    // What the compiler knows of the one it would find out of the other.
    let call: Call = hint::black_box(ffi::PyObject_Call);
    // SAFETY: the two are called alike.
    let call = unsafe { mem::transmute::<Call, MayUnwind>(call) };
    let args = PyTuple::empty(callable.py());
    let keywords = keywords.map_or(ptr::null_mut(), Bound::as_ptr);
    // SAFETY: attached to Python, a live callable, a tuple, and a dict or NULL.
    let answer = calling(|| unsafe { call(callable.as_ptr(), args.as_ptr(), keywords) });
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(callable.py(), answer) }
}

/// Is dropped only where a call does not return.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        // A panic unwinds too, and goes on.
        while !thread::panicking() {
            thread::park();
        }
    }
}
