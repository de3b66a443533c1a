//! Counts the open tensors without contention between threads.
//!
//! Each thread counts in a slot of its own. A slot keeps its counts when its thread ends, and is reused by the
//! next thread.

use super::counts::{Counts, Slot, ThreadSlots};
use super::local::{LOCAL, Local};
use crate::{sync::Mutex, sync::atomic::AtomicIsize};

/// Tensors that this library holds open, for leak tests; see [`live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Exported tensors whose deleter has not run yet.
    pub exported: usize,
    /// Tensors taken over from a producer whose deleter has not been called yet.
    pub imported: usize,
}

/// The number of open tensors in this process. Both counts return to their earlier values when all tensors made
/// since have been dropped.
#[must_use]
pub fn live() -> Live {
    // A tensor may be opened on one thread and closed on another: only the sum means something.
    let sum = |which| usize::try_from(COUNTS.sum(which)).unwrap_or(0);
    Live { exported: sum(|slot| &slot.exported), imported: sum(|slot| &slot.imported) }
}

/// A tensor was exported (1), or its deleter has run (-1).
#[inline]
pub(super) fn exported(by: isize) {
    LOCAL.with(|local| count(local, |slot| &slot.exported, by));
}

/// A tensor was taken over (1), or its deleter has been called (-1).
#[inline]
pub(super) fn imported(by: isize) {
    LOCAL.with(|local| imported_in(local, by));
}

/// [`imported`], where the thread's state is at hand.
#[inline]
pub(super) fn imported_in(local: &Local, by: isize) {
    count(local, |slot| &slot.imported, by);
}

static COUNTS: Counts = Counts {
    slots: Mutex::new(ThreadSlots { all: Vec::new(), free: Vec::new() }),
    shared: Slot { exported: AtomicIsize::new(0), imported: AtomicIsize::new(0) },
};

thread_local! {
    static LEASE: Lease = Lease::new();
}

/// Returns the slot when the thread ends, and frees the cached block.
struct Lease(&'static Slot);

impl Lease {
    fn new() -> Self {
        let slot = COUNTS.lease();
        LOCAL.with(|local| local.slot.set(Some(slot)));
        Self(slot)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.slot.set(None);
            local.blocks.clear();
        });
        COUNTS.give_back(self.0);
    }
}

#[inline]
fn count(local: &Local, which: fn(&Slot) -> &AtomicIsize, by: isize) {
    match local.slot.get() {
        Some(slot) => slot.count(which, by),
        None => first_count(which, by),
    }
}

#[cold]
fn first_count(which: fn(&Slot) -> &AtomicIsize, by: isize) {
    match LEASE.try_with(|lease| lease.0) {
        Ok(slot) => slot.count(which, by),
        // A thread that is ending has no slot any more.
        Err(_) => COUNTS.shared.count_with_others(which, by),
    }
}
