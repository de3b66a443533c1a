//! Letting go, without going ever deeper.
//!
//! Tensors that were handed back and forth hold each other, in a chain as long as whoever handed them
//! likes; and so do arrays that other libraries handed back. To let go of the first is to let go of the next one
//! within, and the stack has an end: from some depth on the rest waits until the outermost has come back.
//!
//! So whoever owns what somebody else made lets go of it here: a tensor ([`super::ManagedTensor`]), an Arrow
//! structure or stream, a capsule, a Python object.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};

use super::local::LOCAL;
use crate::fence;
use crate::pending::PendingException;

/// Releases within releases, before the next one has to wait: more than there are in earnest, and few enough for
/// the smallest stacks of threads, 128 KiB, whatever other libraries do in between.
const DEEPEST: usize = 16;

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// Empty, without memory of its own, whenever nobody lets go of anything: so it has nothing to drop, and can
    /// be used to the very end of the thread.
    static WAITING: ManuallyDrop<RefCell<Vec<Work>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
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

/// [`release`] of what is somebody else's. That may run Python code, which an exception in flight is none of the
/// business of.
pub(crate) fn release_foreign(work: impl FnOnce() + 'static) {
    release(|| {
        let _pending = PendingException::set_aside();
        work();
    });
}

#[cold]
fn postpone(work: Work) {
    WAITING.with(|waiting| waiting.borrow_mut().push(work));
    LOCAL.with(|local| local.any_waiting.set(true));
}

/// Does what waits, and what comes to wait meanwhile.
#[cold]
fn drain() {
    while let Some(work) = WAITING.with(|waiting| waiting.borrow_mut().pop()) {
        let _ = fence::fenced(work);
    }
    drop(WAITING.with(|waiting| mem::take(&mut *waiting.borrow_mut())));
    LOCAL.with(|local| local.any_waiting.set(false));
}
