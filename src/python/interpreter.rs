//! Which interpreter this is: a process may have several, and what is kept for the process belongs to one. And its
//! end, in the middle of a call.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::{mem, thread};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

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

/// What a call of somebody else's Python code returns.
///
/// Before Python 3.14 a daemon thread is ended there, once the interpreter is ending, by unwinding all that has called
/// it; and what we would let go of on the way needs the interpreter. Here such a thread stops, until the process ends:
/// so it is in 3.14, and so PyO3 has it where a thread attaches.
pub(super) fn calling<T>(call: impl FnOnce() -> T) -> T {
    let ended = Ended;
    let answer = call();
    mem::forget(ended);
    answer
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
