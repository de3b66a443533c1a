//! A thread that makes batches ahead of time.
//!
//! It holds no lock while it works. When it is asked to stop, it stops after the current call of the source. Dropping
//! [`Prefetch`] waits for that, so that a query's connection is free for the next statement, but at most for `PATIENCE`:
//! the thread may be waiting for a lock that the caller holds.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::{collections::VecDeque, mem, num::NonZero, task::Poll, time::Duration};

use super::batch::Batch;
use crate::{Error, ReaderError, task::Task};

/// How long a drop waits for the source to be released. A chunk usually takes less; a socket without data, or a lock
/// that the caller holds, may take forever.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a consumer that has no batch waits for several: each wake-up costs time of both threads. In an epoch of 2,000
/// batches of 1,024 rows, the thread added 1% to 14% of processor time in several runs, and 16% in one run without it.
const A_MOMENT: Duration = Duration::from_micros(200);

/// The consumer's side.
pub(crate) struct Prefetch(pub(crate) Arc<Queue>);

/// The state that the thread and its consumer share.
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Most batches that may be ready.
    most: usize,
}

#[derive(Default)]
struct QueueState {
    ready: VecDeque<Result<Batch, Error>>,
    /// How many ready batches the consumer waits for, if it waits.
    awaited: Option<usize>,
    /// Whether the thread waits until a batch is taken.
    is_full: bool,
    thread: Option<ThreadId>,
    is_stopped: bool,
    has_ended: bool,
}

impl Prefetch {
    /// Starts a thread that keeps `most` batches ready, until `source` ends or fails. The thread does not panic.
    pub(super) fn start(
        most: usize,
        mut source: impl FnMut() -> Result<Option<Batch>, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new(), most });
        let ours = Arc::clone(&queue);
        let work = move || {
            let queue = ours;
            let _end = End(&queue);
            queue.lock().thread = Some(thread::current().id());
            let asked = Arc::clone(&queue);
            let check = Box::new(move || match asked.is_stopped() {
                true => Err(Error::Reader(ReaderError::new("stopped"))),
                false => Ok(()),
            });
            Task { check, threads: NonZero::new(1) }.run(|| {
                while queue.wants_more() {
                    let Some(made) = source().transpose() else { break };
                    let is_last = made.is_err();
                    queue.put(made);
                    if is_last {
                        break;
                    }
                }
                // The source is dropped before the end is announced.
                drop(source);
            });
        };
        // The stack size of Python's own threads, because the source may be Python code.
        let thread = thread::Builder::new().name("arrow_dlpack".to_owned()).stack_size(8 << 20);
        thread.spawn(work).map_err(|error| Error::NoThread(error.to_string()))?;
        Ok(Self(queue))
    }

    /// The next batch, `None` at the end.
    pub(super) fn next(&self) -> Result<Option<Batch>, Error> {
        loop {
            if let Poll::Ready(next) = self.0.poll() {
                return next.transpose();
            }
            // It may take longer: then the loop waits again.
            self.0.wait(PATIENCE);
        }
    }
}

impl Queue {
    /// Waits until another batch is wanted; returns false if the thread should stop.
    fn wants_more(&self) -> bool {
        let mut state = self.lock();
        state.is_full = state.ready.len() >= self.most;
        let waits = |state: &mut QueueState| state.is_full && !state.is_stopped;
        let state = self.changed.wait_while(state, waits);
        !state.unwrap_or_else(PoisonError::into_inner).is_stopped
    }

    fn put(&self, made: Result<Batch, Error>) {
        let mut state = self.lock();
        if !state.is_stopped {
            state.ready.push_back(made);
            if state.awaited.is_some_and(|count| state.ready.len() >= count) {
                self.changed.notify_all();
            }
        }
    }

    /// The next batch if one is ready, `None` at the end.
    pub(crate) fn poll(&self) -> Poll<Option<Result<Batch, Error>>> {
        let mut state = self.lock();
        match state.ready.pop_front() {
            None if !state.has_ended => Poll::Pending,
            next => {
                if mem::take(&mut state.is_full) {
                    self.changed.notify_all();
                }
                Poll::Ready(next)
            }
        }
    }

    /// Waits until [`poll`](Self::poll) is ready.
    pub(crate) fn wait(&self, at_most: Duration) {
        for (count, at_most) in [(self.most.div_ceil(2), A_MOMENT), (1, at_most)] {
            let mut state = self.lock();
            state.awaited = Some(count);
            let is_short = |state: &mut QueueState| state.ready.len() < count && !state.has_ended;
            let waited = self.changed.wait_timeout_while(state, at_most, is_short);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.awaited = None;
            if !state.ready.is_empty() || state.has_ended {
                break;
            }
        }
    }

    /// Waits until the source has been released; returns whether it has. The thread itself does not wait.
    pub(crate) fn join(&self, at_most: Duration) -> bool {
        if self.is_own_thread() {
            return true;
        }
        let goes_on = |state: &mut QueueState| !state.has_ended;
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// Asks the thread to stop; returns whether this is the first request.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        let is_new = !mem::replace(&mut state.is_stopped, true);
        let ready = mem::take(&mut state.ready);
        self.changed.notify_all();
        drop(state);
        // Dropping tensors may take long, or need the lock.
        drop(ready);
        is_new
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Whether the thread waits until a batch is taken, or has ended: it reads nothing before that.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.has_ended || (state.is_full && !state.is_stopped)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Whether the caller is the thread that makes the batches.
    pub(crate) fn is_own_thread(&self) -> bool {
        self.lock().thread == Some(thread::current().id())
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        if self.0.stop() {
            self.0.join(PATIENCE);
        }
    }
}

/// Announces the end when dropped, after a panic too.
struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}
