//! The threads that make batches ahead: when one starts, how Python waits for its batches, and how all of them stop before
//! the interpreter ends.
//!
//! A thread saves at most the time that the loop takes between two batches, and at most the time that a batch takes to
//! make. A batch from another thread costs about 10 µs more, for wake-ups and cold caches: an epoch of 2,000 batches
//! whose loop does nothing took 1.08 × as long with a thread. So it starts once both times are seen to be longer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{process, task::Poll};

use pyo3::{exceptions::PyRuntimeError, prelude::*};

use super::batch_errors::refused;
use crate::batches::{Batch, Batches, Queue, State};

/// The interval between checks for signals, such as Ctrl-C.
const A_WHILE: Duration = Duration::from_millis(50);

/// The queues of batches whose thread may be running, with their process ids.
type Queues = Vec<(u32, Arc<Queue>)>;

/// `None` once the interpreter is about to end.
static QUEUES: Mutex<Option<Queues>> = Mutex::new(Some(Vec::new()));

/// The time below which a thread does not pay.
const WORTH: Duration = Duration::from_micros(20);

/// The times of a loop without a thread so far.
pub(super) struct Pace {
    /// How many batches the thread will make ahead.
    pub(super) most: usize,
    /// What making batches took in all, and how many they were.
    made: Duration,
    batches: u32,
    /// How often the loop took long. Its first step is often slower than the rest, and any step may be interrupted.
    pauses: u32,
    /// When the last batch was asked for, then when it was made.
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        Self { most, made: Duration::ZERO, batches: 0, pauses: 0, last: None }
    }

    /// The loop asks for a batch: returns whether the thread should start.
    pub(super) fn asked(&mut self) -> bool {
        let now = Instant::now();
        let between = self.last.replace(now).map_or(Duration::ZERO, |made| now - made);
        self.pauses += u32::from(between >= WORTH);
        let is_slow = self.pauses >= 2 && self.pauses >= self.batches.div_ceil(2);
        is_slow && self.made >= WORTH * self.batches
    }

    /// The batch has been made.
    pub(super) fn made(&mut self) {
        let now = Instant::now();
        self.made += self.last.replace(now).map_or(Duration::ZERO, |asked| now - asked);
        self.batches = self.batches.saturating_add(1);
    }
}

/// The next of the batches that are made ahead.
pub(super) fn next(py: Python<'_>, queue: &Queue, own_nulls: &[String]) -> PyResult<Option<Batch>> {
    loop {
        match queue.poll() {
            // Only the end of the interpreter stops batches that are still read.
            Poll::Ready(None) if queue.is_stopped() => return Err(ending()),
            Poll::Ready(next) => {
                return next.transpose().map_err(|error| refused(error, own_nulls));
            }
            Poll::Pending => {}
        }
        py.detach(|| queue.wait(A_WHILE));
        py.check_signals()?;
    }
}

/// Asks the thread to stop, and waits until it has.
pub(super) fn stop(py: Python<'_>, queue: &Queue) -> PyResult<()> {
    py.detach(|| queue.stop());
    while !py.detach(|| queue.join(A_WHILE)) {
        py.check_signals()?;
    }
    Ok(())
}

/// Starts to read so many batches ahead, unless the interpreter is ending.
pub(super) fn start(batches: &mut Batches, most: usize) -> PyResult<()> {
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(queues) = &mut *queues else { return Err(ending()) };
    // A forked process has the queue, but not the thread.
    queues.retain(|(process, queue)| *process != process::id() || !queue.has_ended());
    batches.read_ahead(most)?;
    let State::Ahead(ahead) = &batches.state else { return Ok(()) };
    queues.push((process::id(), Arc::clone(&ahead.0)));
    Ok(())
}

pub(super) fn ending() -> PyErr {
    PyRuntimeError::new_err("nothing is read ahead: the interpreter is ending")
}

/// Stops all threads before the interpreter ends, because their sources may need it.
#[pyfunction]
pub(super) fn _stop_batches(py: Python<'_>) -> PyResult<()> {
    let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut ours = queues.iter().flatten().filter(|(process, _)| *process == process::id());
    ours.try_for_each(|(_, queue)| stop(py, queue))
}
