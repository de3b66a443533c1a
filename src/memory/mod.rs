//! Foreign memory and memory of our own; everything unsafe in the core is here. CONTRIBUTING.md says what is in each
//! file.

mod adopt;
mod block_cache;
mod blocks;
mod counts;
mod describe;
mod elements;
mod fresh;
mod from_owner;
mod grid;
mod huge;
mod live;
mod local;
mod managed;
mod own;
mod owner;
mod pack;
#[cfg(feature = "pyo3")]
mod part;
#[cfg(feature = "pyo3")]
mod pending;
mod probe_alloc;
#[cfg(feature = "pyo3")]
mod prototype;
mod release;
#[cfg(all(target_os = "linux", any(feature = "pyo3", test)))]
#[cfg_attr(not(feature = "pyo3"), expect(unreachable_pub, reason = "here for its tests"))]
mod retaining_allocator;
mod run;
mod vector;
mod view;
mod zeroed;

pub(crate) use adopt::adopt;
pub(crate) use fresh::Fresh;
pub(crate) use grid::Grid;
pub use live::{Live, live};
pub use managed::ManagedTensor;
pub(crate) use own::claim;
#[cfg(feature = "pyo3")]
pub(crate) use owner::{delete_legacy, delete_versioned};
#[cfg(feature = "pyo3")]
pub(crate) use pack::Description;
#[cfg(feature = "pyo3")]
pub(crate) use pending::{PendingException, symbol};
#[cfg(feature = "pyo3")]
pub(crate) use probe_alloc::reserved;
pub(crate) use probe_alloc::{collect, probe_alloc, try_collect};
#[cfg(feature = "pyo3")]
pub(crate) use release::release_foreign;
#[cfg(all(target_os = "linux", feature = "pyo3"))]
pub use retaining_allocator::RetainingAllocator;
pub(crate) use run::follows;
pub(crate) use vector::Vector;
