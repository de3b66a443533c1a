//! Counts in slots: each thread has one of its own, which only it writes to; a reader adds all of them up.
//!
//! N1: a slot in `ThreadSlots::free` is no thread's, any other is one thread's, from [`Counts::lease`] to
//! [`Counts::give_back`]. Its counts stay when it changes hands.
//!
//! `tests/models` tries every order of the threads' steps.

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicIsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// The counts of one thread, on a cache line of their own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) exported: AtomicIsize,
    pub(super) imported: AtomicIsize,
}

#[derive(Default)]
pub(super) struct ThreadSlots {
    pub(super) all: Vec<&'static Slot>,
    /// Slots whose threads have ended.
    pub(super) free: Vec<&'static Slot>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) slots: Mutex<ThreadSlots>,
    /// For threads without a slot.
    pub(super) shared: Slot,
}

impl Counts {
    /// A slot for this thread alone.
    pub(super) fn lease(&self) -> &'static Slot {
        let mut slots = self.lock();
        slots.free.pop().unwrap_or_else(|| {
            let slot: &'static Slot = Box::leak(Box::default());
            slots.all.push(slot);
            slot
        })
    }

    /// Returns the slot of a thread that ends.
    pub(super) fn give_back(&self, slot: &'static Slot) {
        self.lock().free.push(slot);
    }

    /// What all threads have counted.
    pub(super) fn sum(&self, which: fn(&Slot) -> &AtomicIsize) -> isize {
        let slots = self.lock();
        let all = slots.all.iter().copied().chain([&self.shared]);
        all.map(|slot| which(slot).load(Ordering::Relaxed)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, ThreadSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Counts in the thread's own slot.
    #[inline]
    pub(super) fn count(&self, which: fn(&Self) -> &AtomicIsize, by: isize) {
        let count = which(self);
        // N1: no other thread writes to it, so that this need not be one atomic step.
        count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }

    /// Counts in one that is not the thread's own.
    pub(super) fn count_with_others(&self, which: fn(&Self) -> &AtomicIsize, by: isize) {
        which(self).fetch_add(by, Ordering::Relaxed);
    }
}
