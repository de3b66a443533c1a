//! Letting go, without going ever deeper.
//!
//! Tensors that were handed back and forth hold each other, in a chain as long as whoever handed them
//! likes. To let go of the first is to let go of the next one within, and the stack has an end: from some
//! depth on the rest waits until the outermost has come back.

use std::cell::{Cell, RefCell};

use crate::fence;

/// Releases within releases, before the next one has to wait: far more than there are in earnest.
const DEEPEST: usize = 32;

thread_local! {
    /// Releases that this thread is in the middle of, and those that wait.
    static OPEN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static WAITING: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Does what lets go of something, now or before the outermost release on this thread is over. A panic
/// must not cross C, and has nobody to tell: it ends here.
pub(super) fn release(work: impl FnOnce() + 'static) {
    let (depth, _) = OPEN.get();
    if depth < DEEPEST {
        fenced(work);
        if depth == 0 {
            drain();
        }
    } else if let Some(work) = postpone(Box::new(work)) {
        fenced(work);
    }
}

fn fenced(work: impl FnOnce()) {
    step(1, 0);
    let _ = fence::fenced(work);
    step(-1, 0);
}

/// Gives the work back where nothing can wait any more, because the thread is ending.
fn postpone(work: Box<dyn FnOnce()>) -> Option<Box<dyn FnOnce()>> {
    let mut work = Some(work);
    let kept = WAITING.try_with(|waiting| waiting.borrow_mut().extend(work.take()));
    if kept.is_ok() {
        step(0, 1);
    }
    work
}

/// Does what waits, and what comes to wait meanwhile.
fn drain() {
    while OPEN.get().1 > 0 {
        step(0, -1);
        let next = WAITING.try_with(|waiting| waiting.borrow_mut().pop());
        if let Ok(Some(work)) = next {
            fenced(work);
        }
    }
}

fn step(deeper: isize, waiting: isize) {
    let (depth, waited) = OPEN.get();
    OPEN.set((depth.wrapping_add_signed(deeper), waited.wrapping_add_signed(waiting)));
}
