//! Which interpreter this is: a process may have several, and what is kept for the process belongs to one.
#![expect(unsafe_code, reason = "asks the interpreter")]

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
