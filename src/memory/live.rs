//! Counts the open tensors of this process, for leak tests.

use std::sync::atomic::{AtomicIsize, Ordering};

/// Tensors that this library holds open, for leak tests; see [`live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Exported tensors whose deleter has not run yet.
    pub exported: usize,
    /// Tensors taken over from a producer whose deleter has not been called yet.
    pub imported: usize,
}

/// A count on a cache line of its own: threads that only export and threads that only import do not meet.
#[repr(align(64))]
struct Count(AtomicIsize);

static EXPORTED: Count = Count(AtomicIsize::new(0));
static IMPORTED: Count = Count(AtomicIsize::new(0));

/// The number of open tensors in this process. Both counts return to their earlier values when all tensors made
/// since have been dropped.
#[must_use]
pub fn live() -> Live {
    let open = |count: &Count| usize::try_from(count.0.load(Ordering::Relaxed)).unwrap_or(0);
    Live { exported: open(&EXPORTED), imported: open(&IMPORTED) }
}

/// A tensor was exported (1), or its deleter has run (-1).
#[inline]
pub(super) fn exported(by: isize) {
    EXPORTED.0.fetch_add(by, Ordering::Relaxed);
}

/// A tensor was taken over (1), or its deleter has been called (-1).
#[inline]
pub(super) fn imported(by: isize) {
    IMPORTED.0.fetch_add(by, Ordering::Relaxed);
}
