//! Letting go, without going ever deeper.
//!
//! Tensors that were handed back and forth hold each other, in a chain as long as whoever handed them
//! likes. To let go of the first is to let go of the next one within, and the stack has an end: from some
//! depth on the rest waits until the outermost has come back.

use std::cell::RefCell;

use super::local::LOCAL;
use crate::fence;

/// Releases within releases, before the next one has to wait: far more than there are in earnest.
const DEEPEST: usize = 32;

thread_local! {
    static WAITING: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Does what lets go of something, now or before the outermost release on this thread is over. A panic
/// must not cross C, and has nobody to tell: it ends here.
#[inline]
pub(super) fn release(work: impl FnOnce() + 'static) {
    LOCAL.with(|local| {
        let open = local.releases.get();
        if open >= DEEPEST {
            return postpone(Box::new(work));
        }
        local.releases.set(open + 1);
        let _ = fence::fenced(work);
        if open == 0 && local.any_waiting.get() {
            drain();
        }
        local.releases.set(open);
    });
}

#[cold]
fn postpone(work: Box<dyn FnOnce()>) {
    let mut work = Some(work);
    let kept = WAITING.try_with(|waiting| waiting.borrow_mut().extend(work.take()));
    if kept.is_ok() {
        LOCAL.with(|local| local.any_waiting.set(true));
    }
    // Nothing can wait any more where the thread is ending: then it is done at once.
    let _ = work.map(fence::fenced);
}

/// Does what waits, and what comes to wait meanwhile.
#[cold]
fn drain() {
    let next = || WAITING.try_with(|waiting| waiting.borrow_mut().pop()).ok().flatten();
    while let Some(work) = next() {
        let _ = fence::fenced(work);
    }
    LOCAL.with(|local| local.any_waiting.set(false));
}
