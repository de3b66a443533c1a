//! The rooms that hold foreign memory; everything unsafe in the core is here.
//!
//! `view` reads and judges a `DLTensor`, `owner` owns one, `managed` is both together (`describe` and
//! `elements` are what it says and holds), `pack` makes one, `adopt` turns one into an Arrow `Buffer`;
//! `fresh` is memory of our own, `huge` has it in large pages, `zeroed` has it full of zeros; `keep` is the
//! Python package's allocator.

mod adopt;
mod describe;
mod elements;
mod fresh;
mod huge;
#[cfg(all(target_os = "linux", any(feature = "pyo3", test)))]
#[cfg_attr(not(feature = "pyo3"), expect(unreachable_pub, reason = "here for its tests"))]
mod keep;
mod managed;
mod owner;
mod pack;
mod view;
mod zeroed;

use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use adopt::adopt;
pub(crate) use fresh::Fresh;
#[cfg(all(target_os = "linux", feature = "pyo3"))]
pub use keep::KeepingAllocator;
pub use managed::ManagedTensor;
#[cfg(feature = "pyo3")]
pub(crate) use owner::{delete_legacy, delete_versioned};
#[cfg(feature = "pyo3")]
pub(crate) use pack::Description;

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
    Live { exported: EXPORTED.now(), imported: IMPORTED.now() }
}

static EXPORTED: Count = Count(AtomicUsize::new(0));
static IMPORTED: Count = Count(AtomicUsize::new(0));

/// Relaxed is enough: the counts order nothing, and a test reads them after joining its threads.
struct Count(AtomicUsize);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
