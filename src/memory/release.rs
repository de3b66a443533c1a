//! Releases foreign objects, with a bound on the recursion.
//!
//! Tensors that libraries exchange several times form a chain of owners of any length, and so do arrays. Each
//! release calls the next one, and the stack is finite: from some depth on, further releases are postponed
//! until the outermost one has returned.
//!
//! So every owner of a foreign object releases it here: a tensor ([`super::ManagedTensor`]), an Arrow
//! structure or stream, a capsule, a Python object.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};

use super::live;
use crate::{fence, pending::without_exception};

/// The depth of nested releases from which on they are postponed: more than programs have, and few enough for
/// the smallest stacks of threads, 128 KiB, with the frames of other libraries in between.
const DEEPEST: usize = 16;

type Work = Box<dyn FnOnce()>;

/// The releases that a thread has begun.
struct Releases {
    /// How many are nested in one another.
    open: Cell<usize>,
    /// Empty and unallocated unless one is running, so that it needs no drop and can be used until the thread ends.
    postponed: ManuallyDrop<RefCell<Vec<Work>>>,
}

thread_local! {
    static RELEASES: Releases = const {
        Releases { open: Cell::new(0), postponed: ManuallyDrop::new(RefCell::new(Vec::new())) }
    };
}

/// Runs a release, now or before the outermost release on this thread ends. A panic is caught here, because it
/// must not cross C and no caller could handle it.
#[inline]
pub(super) fn release(work: impl FnOnce() + 'static) {
    RELEASES.with(|releases| {
        let open = releases.open.get();
        if open >= DEEPEST {
            return releases.postpone(Box::new(work));
        }
        releases.open.set(open + 1);
        let _ = fence::fenced(work);
        if open == 0 && !releases.postponed.borrow().is_empty() {
            releases.drain();
        }
        releases.open.set(open);
    });
}

/// [`release`] of a foreign object. That may run Python code, which must not see an exception in flight.
pub(crate) fn release_foreign(work: impl FnOnce() + 'static) {
    release(|| without_exception(work));
}

/// [`release_foreign`] of a tensor that was taken over, which counts no longer.
pub(super) fn release_imported(work: impl FnOnce() + 'static) {
    live::imported(-1);
    release_foreign(work);
}

impl Releases {
    #[cold]
    fn postpone(&self, work: Work) {
        self.postponed.borrow_mut().push(work);
    }

    /// Runs the postponed releases, and those that are postponed meanwhile.
    #[cold]
    fn drain(&self) {
        while let Some(work) = { self.postponed.borrow_mut().pop() } {
            let _ = fence::fenced(work);
        }
        drop(mem::take(&mut *self.postponed.borrow_mut()));
    }
}
