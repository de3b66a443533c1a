//! libFuzzer's entry ends the process on any panic, caught or not. Those of arrow-rs's readers are not ours:
//! they may be caught.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static TOLERATED: Cell<bool> = const { Cell::new(false) };
}

/// What `read` returns, `None` if it panicked.
pub(crate) fn tolerated<T>(read: impl FnOnce() -> T) -> Option<T> {
    install();
    TOLERATED.set(true);
    let found = panic::catch_unwind(AssertUnwindSafe(read));
    TOLERATED.set(false);
    found.ok()
}

/// From now on, callers may catch panics of arrow-rs's assertions.
#[cfg(feature = "python")]
pub(crate) fn tolerate_arrow() {
    ARROW.store(true, Ordering::Relaxed);
    install();
}

static ARROW: AtomicBool = AtomicBool::new(false);

/// Whether it is a panic of one of arrow-rs's crates, none of which is this one.
fn is_arrows(info: &PanicHookInfo<'_>) -> bool {
    info.location()
        .is_some_and(|at| at.file().contains("/registry/") && at.file().contains("/arrow-"))
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let abort = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let tolerated = TOLERATED.get() || ARROW.load(Ordering::Relaxed) && is_arrows(info);
            if !tolerated {
                abort(info);
            }
        }));
    });
}
