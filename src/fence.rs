//! Catches panics, which must not unwind into C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{any::Any, mem};

/// The result of `work`, or the message of its panic. After a panic, the state that `work` used must only be dropped.
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
