//! A thread that makes batches before they are asked for.
//!
//! It holds no lock and needs no interpreter while it works, but for sources that do. It is told to stop, and
//! does so after the call of the source that it is in. Who closes the batches waits for that, and so does who
//! lets go of them, so that a query's connection is free for the next statement; but the latter only so long:
//! the thread may be waiting for a lock that they hold.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;
use std::{mem, process};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::convert::Batch;

/// How long to wait before Python is asked whether somebody pressed Ctrl-C.
const A_WHILE: Duration = Duration::from_millis(50);

/// How long whoever lets go waits for the source to be released. Mostly that is a chunk's time; a socket that
/// nobody writes to, or a lock of the caller's, may take for ever. Signals wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread and its consumer share.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// How many batches may wait.
    most: usize,
    /// A process that was forked off has the queue, but not the thread.
    process: u32,
}

#[derive(Default)]
struct State {
    ready: VecDeque<PyResult<Batch>>,
    thread: Option<ThreadId>,
    is_stopped: bool,
    has_ended: bool,
}

/// Those with a thread that may be running; `None` once the interpreter is about to end.
static QUEUES: Mutex<Option<Vec<Arc<Queue>>>> = Mutex::new(Some(Vec::new()));

impl Queue {
    /// A thread that keeps `most` batches ready, until `source` has no more or fails. It does not panic.
    pub(super) fn start(
        most: usize,
        mut source: impl FnMut(&mut dyn FnMut() -> PyResult<()>) -> PyResult<Option<Batch>>
        + Send
        + 'static,
    ) -> PyResult<Arc<Self>> {
        let queue = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            most,
            process: process::id(),
        });
        let ours = Arc::clone(&queue);
        let work = move || {
            let queue = ours;
            let _end = End(&queue);
            queue.lock().thread = Some(thread::current().id());
            let mut go_on = || match queue.lock().is_stopped {
                true => Err(PyRuntimeError::new_err("stopped")),
                false => Ok(()),
            };
            while queue.has_room() {
                let Some(made) = source(&mut go_on).transpose() else { break };
                let is_last = made.is_err();
                queue.put(made);
                if is_last {
                    break;
                }
            }
            // The source goes before the end is told.
            drop(source);
        };
        // As much room on the stack as Python's own threads have: the source may be Python.
        let thread = thread::Builder::new().name("arrow_dlpack".to_owned()).stack_size(8 << 20);
        let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queues) = &mut *queues else {
            return Err(PyRuntimeError::new_err(
                "nothing is read ahead: the interpreter is ending",
            ));
        };
        queues.retain(|queue| queue.is_foreign() || !queue.lock().has_ended);
        let spawned = thread.spawn(work);
        spawned.map_err(|error| {
            PyRuntimeError::new_err(format!("no thread to read ahead: {error}"))
        })?;
        queues.push(Arc::clone(&queue));
        Ok(queue)
    }

    /// Waits until another batch is wanted; whether one is.
    fn has_room(&self) -> bool {
        let is_full = |state: &mut State| !state.is_stopped && state.ready.len() >= self.most;
        let state = self.changed.wait_while(self.lock(), is_full);
        !state.unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    fn put(&self, made: PyResult<Batch>) {
        let mut state = self.lock();
        if !state.is_stopped {
            state.ready.push_back(made);
            self.changed.notify_all();
        }
    }

    /// The next batch, `None` at the end; not for the thread that makes them.
    pub(super) fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        loop {
            {
                let mut state = self.lock();
                if let Some(made) = state.ready.pop_front() {
                    self.changed.notify_all();
                    return made.map(Some);
                }
                if state.has_ended {
                    // Whoever closes them asks for no more.
                    return if state.is_stopped { Err(ending()) } else { Ok(None) };
                }
            }
            py.detach(|| self.wait(A_WHILE, |state| !state.ready.is_empty() || state.has_ended));
            py.check_signals()?;
        }
    }

    /// Tells the thread to stop, and waits until it has.
    pub(super) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.tell_to_stop());
        while !self.is_own_thread() && !self.lock().has_ended {
            py.detach(|| self.wait(A_WHILE, |state| state.has_ended));
            py.check_signals()?;
        }
        Ok(())
    }

    /// Tells the thread to stop, and waits only so long until it has.
    pub(super) fn let_go(&self, py: Python<'_>) {
        py.detach(|| {
            self.tell_to_stop();
            if !self.is_own_thread() {
                self.wait(PATIENCE, |state| state.has_ended);
            }
        });
    }

    /// Not with the interpreter's lock, which the batches may need to go.
    fn tell_to_stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let ready = mem::take(&mut state.ready);
        self.changed.notify_all();
        drop(state);
        drop(ready);
    }

    fn wait(&self, at_most: Duration, until: fn(&State) -> bool) {
        drop(self.changed.wait_timeout_while(self.lock(), at_most, |state| !until(state)));
    }

    /// Whether it is the one that makes the batches that asks.
    pub(super) fn is_own_thread(&self) -> bool {
        self.lock().thread == Some(thread::current().id())
    }

    fn is_foreign(&self) -> bool {
        self.process != process::id()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ending() -> PyErr {
    PyRuntimeError::new_err("nothing is read ahead: the interpreter is ending")
}

/// Tells the end, whatever it is.
struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

/// Ends the threads of this process, for good.
pub(super) fn stop_all(py: Python<'_>) -> PyResult<()> {
    let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner).take();
    for queue in queues.into_iter().flatten().filter(|queue| !queue.is_foreign()) {
        queue.stop(py)?;
    }
    Ok(())
}
