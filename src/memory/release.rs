//! Releases foreign objects, with a bound on the recursion.
//!
//! Tensors that libraries exchange several times form a chain of owners of any length, and so do arrays. Each
//! release calls the next one, and the stack is finite: from some depth on, further releases are postponed
//! until the outermost one has returned.
//!
//! So every owner of a foreign object releases it here: a tensor ([`super::ManagedTensor`]), an Arrow
//! structure or stream, a capsule, a Python object.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};

use super::live;
use super::local::{LOCAL, Local};
use crate::{fence, pending::PendingException};

/// The depth of nested releases from which on they are postponed: more than programs have, and few enough for
/// the smallest stacks of threads, 128 KiB, with the frames of other libraries in between.
const DEEPEST: usize = 16;

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// Empty and unallocated unless a release is running, so that it needs no drop and can be used until the
    /// thread ends.
    static WAITING: ManuallyDrop<RefCell<Vec<Work>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Runs a release, now or before the outermost release on this thread ends. A panic is caught here, because it
/// must not cross C and no caller could handle it.
#[inline]
pub(super) fn release(work: impl FnOnce() + 'static) {
    LOCAL.with(|local| release_in(local, work));
}

#[inline]
fn release_in(local: &Local, work: impl FnOnce() + 'static) {
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
}

/// [`release`] of a foreign object. That may run Python code, which must not see an exception in flight.
pub(crate) fn release_foreign(work: impl FnOnce() + 'static) {
    release(|| without_exception(work));
}

/// [`release_foreign`] of a tensor that was taken over, which counts no longer.
pub(super) fn release_imported(work: impl FnOnce() + 'static) {
    LOCAL.with(|local| {
        live::imported_in(local, -1);
        release_in(local, || without_exception(work));
    });
}

fn without_exception(work: impl FnOnce()) {
    let _pending = PendingException::set_aside();
    work();
}

#[cold]
fn postpone(work: Work) {
    WAITING.with(|waiting| waiting.borrow_mut().push(work));
    LOCAL.with(|local| local.any_waiting.set(true));
}

/// Runs the postponed releases, and those that are postponed meanwhile.
#[cold]
fn drain() {
    while let Some(work) = WAITING.with(|waiting| waiting.borrow_mut().pop()) {
        let _ = fence::fenced(work);
    }
    drop(WAITING.with(|waiting| mem::take(&mut *waiting.borrow_mut())));
    LOCAL.with(|local| local.any_waiting.set(false));
}
