//! The interpreter: the main one or none, its end during a call, Ctrl-C while a stream is read, and conversions without the
//! GIL, of which Ctrl-C ends long ones.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::marker::PhantomData;
use std::num::NonZero;
use std::time::{Duration, Instant};
use std::{hint, mem, ptr};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{ffi, intern};

use crate::export::{self, Exported, Source};
use crate::fence::calling;
use crate::task::Task;
use crate::{Error, ExportOptions, ReaderError};

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

/// The time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Checks for signals at intervals. Reading the clock costs time too, so with short steps it is read only after
/// several of them.
pub(super) struct Interrupt {
    asked: Instant,
    looked: Instant,
    /// Steps between two readings of the clock, and how many of these remain.
    steps: u32,
    left: u32,
}

impl Interrupt {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { asked: now, looked: now, steps: 1, left: 1 }
    }

    /// The exception of a pending signal, such as `KeyboardInterrupt`. For threads that are not attached.
    pub(super) fn step(&mut self) -> PyResult<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        let now = Instant::now();
        let is_fast = now - self.looked < PATIENCE / 50;
        self.steps = if is_fast { (self.steps * 2).min(1024) } else { (self.steps / 2).max(1) };
        (self.looked, self.left) = (now, self.steps);
        if now - self.asked < PATIENCE {
            return Ok(());
        }
        self.asked = now;
        Python::attach(|py| py.check_signals())
    }
}

/// Prepares a conversion and runs it, without the GIL if that takes long.
pub(super) fn exported(
    py: Python<'_>,
    source: Source<'_>,
    options: &ExportOptions,
) -> Result<Exported, Error> {
    // Sharing reads no data, so the GIL is kept.
    if let Some(shared) = export::share(source, options) {
        return Ok(Exported { values: shared?, mask: None, dictionary: None });
    }
    let prepared = unlocked(py, source.nbytes(), || export::prepare_column(source, options))?;
    unlocked(py, prepared.bytes_copied(), || prepared.run())
}

/// Runs `work` on `nbytes` bytes, without the GIL if they are enough to delay other threads.
pub(super) fn unlocked<T: Send>(
    py: Python<'_>,
    nbytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    const NOTICEABLE: usize = 1 << 18;
    const LONG: usize = 4 << 20;
    match nbytes {
        ..NOTICEABLE => work(),
        NOTICEABLE..LONG => py.detach(work),
        LONG.. => long(py, work),
    }
}

/// Runs `work`, which can be interrupted and use more than one thread, without the GIL.
#[inline(never)]
fn long<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    // Without an answer, for instance because a module is half imported, the process is no worker.
    let threads = if is_worker(py).unwrap_or(false) { NonZero::new(1) } else { None };
    py.detach(|| {
        // Threads other than the main one have no signals.
        let mut interrupt = Interrupt::new();
        let signal = |error| Error::Reader(ReaderError::new(error));
        let check = Box::new(move || interrupt.step().map_err(signal));
        Task { check, threads }.run(work)
    })
}

/// Whether `multiprocessing` started this process, as `DataLoader` starts its workers: then there are others.
///
/// It runs no Python code, at whose end a signal's handler could raise.
fn is_worker(py: Python<'_>) -> PyResult<bool> {
    let Some(process) = loaded_module(py, intern!(py, "multiprocessing.process"))? else {
        return Ok(false);
    };
    Ok(!process.getattr(intern!(py, "_parent_process"))?.is_none())
}

/// The module of this name, if it is loaded; none is imported.
pub(in crate::python) fn loaded_module<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    MODULES.import(py, "sys", "modules")?.get_item(name)
}

/// Counts a level of recursion for a producer that calls another producer, until this is dropped. Each level
/// takes a large part of the C stack, which CPython does not track: its limit of a thousand levels would
/// overflow the stack.
pub(in crate::python) struct RecursionGuard<'py>(PhantomData<Python<'py>>);

impl<'py> RecursionGuard<'py> {
    pub(in crate::python) fn enter(py: Python<'py>) -> PyResult<Self> {
        // SAFETY: attached to Python.
        match unsafe {
            ffi::Py_EnterRecursiveCall(c" while asking for an array or a tensor".as_ptr())
        } {
            0 => Ok(Self(PhantomData)),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

impl Drop for RecursionGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: still attached, as 'py says, and entered once.
        unsafe { ffi::Py_LeaveRecursiveCall() };
    }
}

#[cfg(test)]
mod tests {
    use super::RecursionGuard;

    // On another thread a level would be left without Python.
    assert_not_send!(RecursionGuard<'static>);
}
