//! The threads that make batches ahead: how Python waits for its batches, and how all of them stop before the
//! interpreter ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{process, task::Poll};

use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;

use crate::batches::{Batch, Batches, Queue, State};
use crate::python::errors::{Asked, Wishes};

/// The interval between checks for signals, such as Ctrl-C.
const A_WHILE: Duration = Duration::from_millis(50);

/// How long the end of the interpreter waits for sources: one that hangs is not to hold the process for ever.
const AT_EXIT: Duration = Duration::from_secs(10);

/// The queues of batches whose thread may be running, with their process ids.
type Queues = Vec<(u32, Arc<Queue>)>;

/// `None` once the interpreter is about to end.
static QUEUES: Mutex<Option<Queues>> = Mutex::new(Some(Vec::new()));

/// The next of the batches that are made ahead, or the error of making it.
///
/// # Errors
///
/// What the handler of a signal raises meanwhile, such as Ctrl-C's, and the end of the interpreter.
pub(in crate::python) fn next(
    py: Python<'_>,
    queue: &Queue,
    wishes: &Wishes,
) -> PyResult<PyResult<Option<Batch>>> {
    loop {
        match queue.poll() {
            // Only the end of the interpreter stops batches that are still read.
            Poll::Ready(None) if queue.is_stopped() => return Err(ending()),
            Poll::Ready(next) => {
                let refusal = |error| Asked::Batches(wishes).refusal(error);
                return Ok(next.transpose().map_err(refusal));
            }
            Poll::Pending => {}
        }
        py.detach(|| queue.wait(A_WHILE));
        py.check_signals()?;
    }
}

/// Asks the thread to stop, and waits until it has, or until then.
pub(in crate::python) fn stop(
    py: Python<'_>,
    queue: &Queue,
    until: Option<Instant>,
) -> PyResult<()> {
    py.detach(|| queue.stop());
    while !py.detach(|| queue.join(A_WHILE)) && until.is_none_or(|until| Instant::now() < until) {
        py.check_signals()?;
    }
    Ok(())
}

/// Starts to read this many batches ahead, unless the interpreter is ending.
pub(in crate::python) fn start(batches: &mut Batches, most: usize) -> PyResult<()> {
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(queues) = &mut *queues else { return Err(ending()) };
    // A forked process has the queue, but not the thread.
    queues.retain(|(process, queue)| *process != process::id() || !queue.has_ended());
    batches.read_ahead(most)?;
    let State::Prefetch(ahead) = &batches.state else { return Ok(()) };
    queues.push((process::id(), Arc::clone(&ahead.0)));
    Ok(())
}

/// The error of batches that the end of the interpreter stops. A daemon thread, which Python itself stops without a word, ends
/// by `SystemExit`: of any other error it would print a traceback.
pub(in crate::python) fn ending() -> PyErr {
    let is_daemon = || {
        Python::attach(|py| {
            let thread = py.import("threading")?.call_method0("current_thread")?;
            thread.getattr("daemon")?.extract::<bool>()
        })
    };
    match is_daemon() {
        Ok(true) => PySystemExit::new_err(()),
        _ => PyRuntimeError::new_err("nothing is read ahead: the interpreter is ending"),
    }
}

/// Stops all threads before the interpreter ends, because their sources may need it; those that take too long are left
/// behind.
#[pyfunction]
pub(in crate::python) fn _stop_batches(py: Python<'_>) -> PyResult<()> {
    let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut ours = queues.iter().flatten().filter(|(process, _)| *process == process::id());
    let until = Instant::now() + AT_EXIT;
    ours.try_for_each(|(_, queue)| stop(py, queue, Some(until)))
}
