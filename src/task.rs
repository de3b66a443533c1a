//! What a long conversion asks its caller between two blocks: whether to end early, and how many threads it may use.

use std::{cell::Cell, env, num::NonZero, sync::OnceLock, thread};

use crate::Error;

thread_local! {
    static TASK: Cell<Option<Task>> = const { Cell::new(None) };
}

/// The answers to the conversions of one call, on the thread that runs them.
pub(crate) struct Task {
    /// Called every few milliseconds; an error ends the conversion.
    pub(crate) check: Box<dyn FnMut() -> Result<(), Error>>,
    /// The number of threads of a conversion whose options name none; `None` for as many as the machine runs at once.
    pub(crate) threads: Option<NonZero<usize>>,
}

impl Task {
    /// Runs the conversions.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        struct Restore(Option<Task>);

        impl Drop for Restore {
            fn drop(&mut self) {
                replace_current(self.0.take());
            }
        }

        let _restore = Restore(replace_current(Some(self)));
        work()
    }
}

/// The error that ends the conversion on this thread, if it is to end.
pub(crate) fn check() -> Result<(), Error> {
    // The callback may run other conversions, which have a task of their own.
    let Some(mut task) = replace_current(None) else { return Ok(()) };
    let checked = (task.check)();
    replace_current(Some(task));
    checked
}

/// The bytes that a loop has done since the last [`check`], which comes after every megabyte: a millisecond or less.
#[derive(Default)]
pub(crate) struct Steps(usize);

impl Steps {
    /// Adds bytes that were read or written.
    ///
    /// # Errors
    ///
    /// Those of [`check`].
    #[inline(always)]
    pub(crate) fn done(&mut self, nbytes: usize) -> Result<(), Error> {
        self.0 = self.0.saturating_add(nbytes);
        if self.0 < 1 << 20 {
            return Ok(());
        }
        self.0 = 0;
        check()
    }
}

/// The number of threads of a conversion whose options name none.
pub(crate) fn threads() -> NonZero<usize> {
    let task = replace_current(None);
    let threads = task.as_ref().and_then(|task| task.threads);
    replace_current(task);
    threads.unwrap_or_else(of_the_machine)
}

/// The number of threads that the machine runs at once, or that `OMP_NUM_THREADS` allows, as PyTorch, OpenBLAS and pyarrow
/// have it: torchrun sets it to 1 for each of its processes. Asking the machine reads the limits of control groups, which
/// takes 34 µs: an eighth of the conversion of 8 MB.
fn of_the_machine() -> NonZero<usize> {
    static FOUND: OnceLock<NonZero<usize>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let most = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        env::var("OMP_NUM_THREADS")
            .ok()
            .and_then(|asked| allowed(&asked))
            .map_or(most, |asked| most.min(asked))
    })
}

/// The number in `OMP_NUM_THREADS`, of which a list has one for each level of nesting; `None` for what is no number.
fn allowed(asked: &str) -> Option<NonZero<usize>> {
    asked.split(',').next()?.trim().parse().ok()
}

/// Puts a task in place of the one before. A thread that is ending has none.
fn replace_current(task: Option<Task>) -> Option<Task> {
    TASK.try_with(|current| current.replace(task)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_omp_num_threads_counts() {
        let number = |asked| allowed(asked).map(NonZero::get);
        assert_eq!(
            [number("3"), number(" 2 ,1"), number("0"), number(""), number("many")],
            [Some(3), Some(2), None, None, None]
        );
    }
}
