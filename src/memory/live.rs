//! How many tensors are open, counted without threads getting in each other's way.
//!
//! Each thread has a slot of its own to count in, which only it writes to; whoever asks adds them all up.
//! A slot outlives its thread, with its counts, and the next thread takes it over.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Tensors that this library holds open, for leak tests; see [`live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Exported, and their deleter has not run yet.
    pub exported: usize,
    /// Taken over from someone else, and their deleter has not been called yet.
    pub imported: usize,
}

/// How many tensors are open in this process right now: both counts return to where they were when
/// everything made in between is gone.
#[must_use]
pub fn live() -> Live {
    let slots = SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = || slots.all.iter().copied().chain([&SHARED]);
    // A tensor may be opened on one thread and closed on another: only the sum means something.
    let sum = |count: fn(&Slot) -> &AtomicIsize| {
        let sum: isize = all().map(|slot| count(slot).load(Ordering::Relaxed)).sum();
        usize::try_from(sum).unwrap_or(0)
    };
    Live { exported: sum(|slot| &slot.exported), imported: sum(|slot| &slot.imported) }
}

/// A tensor was exported (1), or its deleter has run (-1).
pub(super) fn exported(by: isize) {
    count(|slot| &slot.exported, by);
}

/// A tensor was taken over (1), or its deleter has been called (-1).
pub(super) fn imported(by: isize) {
    count(|slot| &slot.imported, by);
}

/// The counts of one thread, on a cache line of their own.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    exported: AtomicIsize,
    imported: AtomicIsize,
}

struct Slots {
    all: Vec<&'static Slot>,
    /// Those whose threads are gone.
    free: Vec<&'static Slot>,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { all: Vec::new(), free: Vec::new() });

/// For threads that are ending, and have no slot any more.
static SHARED: Slot = Slot { exported: AtomicIsize::new(0), imported: AtomicIsize::new(0) };

thread_local! {
    /// The slot, where it costs nothing to look.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    static LEASE: Lease = Lease::new();
}

/// Gives the slot back when the thread ends.
struct Lease(&'static Slot);

impl Lease {
    fn new() -> Self {
        let mut slots = SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let slot = slots.free.pop().unwrap_or_else(|| {
            let slot: &'static Slot = Box::leak(Box::default());
            slots.all.push(slot);
            slot
        });
        SLOT.set(Some(slot));
        Self(slot)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        SLOT.set(None);
        SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).free.push(self.0);
    }
}

#[inline]
fn count(which: fn(&Slot) -> &AtomicIsize, by: isize) {
    match SLOT.get() {
        // Nobody else writes to it, so that this need not be one step.
        Some(slot) => {
            let count = which(slot);
            count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        }
        None => first_count(which, by),
    }
}

#[cold]
fn first_count(which: fn(&Slot) -> &AtomicIsize, by: isize) {
    let slot = LEASE.try_with(|lease| lease.0);
    which(slot.unwrap_or(&SHARED)).fetch_add(by, Ordering::Relaxed);
}
