//! Catches panics, which must not unwind into C.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `work`, or the message of its panic. After a panic, the state that `work` used must only be dropped.
pub(crate) fn fenced<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(words_of)
}

#[cold]
fn words_of(panic: Box<dyn Any + Send>) -> String {
    let panic = match panic.downcast::<String>() {
        Ok(text) => return *text,
        Err(panic) => panic,
    };
    match panic.downcast::<&str>() {
        Ok(text) => (*text).to_owned(),
        Err(other) => {
            // Dropping the payload may panic again, outside of `catch_unwind`.
            mem::forget(other);
            "panic from Rust code".to_owned()
        }
    }
}
