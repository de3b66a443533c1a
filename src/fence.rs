//! Panics end here: none may cross C, which would abort the process.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` returns, or what it panicked with, in words. Nothing that it was at may be used afterwards
/// but to be dropped.
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
            // Its drop may panic once more, and nothing would catch that.
            mem::forget(other);
            "panic from Rust code".to_owned()
        }
    }
}
