//! The rooms that hold foreign memory; everything unsafe in the core is here.
//!
//! `view` reads and judges a `DLTensor`, `owner` owns one, `managed` is both together (`describe` and `elements`
//! are what it says and holds), `pack` makes one (`vector` that of a plain column), `adopt` turns one into an
//! Arrow `Buffer`; `fresh` is memory of our own, `huge` has it in large pages, `zeroed` has it full of zeros,
//! `room` asks for it first, `grid` has it written strip by strip, `run` knows neighbours in one allocation, `own` knows our memory again when it is
//! given away, `prototype` has memory for a shape in C's terms, `part` is a tensor over the memory of another
//! one. `release` lets go without going ever deeper, `live` counts what is open, in `counts`, `block_cache` keeps a
//! tensor's block for the next one; what they have for each thread is in `local`. `keep` is the Python package's
//! allocator and has its blocks in `slots`, `pending` puts its exceptions aside.

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
#[cfg(all(target_os = "linux", any(feature = "pyo3", test)))]
#[cfg_attr(not(feature = "pyo3"), expect(unreachable_pub, reason = "here for its tests"))]
mod keep;
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
#[cfg(feature = "pyo3")]
mod prototype;
mod release;
mod room;
mod run;
#[cfg(all(target_os = "linux", any(feature = "pyo3", test)))]
mod slots;
mod vector;
mod view;
mod zeroed;

pub(crate) use adopt::adopt;
pub(crate) use fresh::Fresh;
pub(crate) use grid::Grid;
#[cfg(all(target_os = "linux", feature = "pyo3"))]
pub use keep::KeepingAllocator;
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
pub(crate) use release::release_foreign;
#[cfg(feature = "pyo3")]
pub(crate) use room::reserved;
pub(crate) use room::{collect, room, try_collect};
pub(crate) use run::follows;
pub(crate) use vector::Vector;
