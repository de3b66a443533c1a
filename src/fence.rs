//! Stops what must not unwind: panics into C, and the end of a thread out of foreign code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{any::Any, mem, thread};

/// The result of `work`, or the message of its panic. After a panic, the state that `work` used must only be dropped.
#[inline]
pub(crate) fn fenced<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(words_of)
}

#[cold]
fn words_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or(panic.downcast_ref::<String>().map(String::as_str)).map(str::to_owned);
    text.unwrap_or_else(|| {
        // Dropping the payload may panic again, outside of `catch_unwind`.
        mem::forget(panic);
        "panic from Rust code".to_owned()
    })
}

/// The result of a call of foreign code, which may be Python's.
///
/// Before Python 3.14, when the interpreter ends, it ends a daemon thread in such a call by unwinding its
/// stack, and the drops on the way need the interpreter. This function blocks such a thread until the process
/// ends, as Python 3.14 does, and PyO3 where a thread attaches. The called function must be declared as `extern
/// "C-unwind"`: for any other, the compiler assumes that the call does not unwind.
#[inline(always)]
pub(crate) fn calling<T>(call: impl FnOnce() -> T) -> T {
    let ended = Ended;
    let answer = call();
    mem::forget(ended);
    answer
}

/// A guard that is dropped only if the call unwinds.
struct Ended;

impl Drop for Ended {
    #[cold]
    fn drop(&mut self) {
        // A panic unwinds too, and continues.
        while !thread::panicking() {
            thread::park();
        }
    }
}
