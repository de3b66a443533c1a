//! Foreign memory and this crate's own memory, with all unsafe code of the core but that of `kernels`.
//! CONTRIBUTING.md describes each file.

mod adopt;
mod deleter;
mod fresh;
mod from_buffer;
mod from_owner;
mod grid;
mod huge;
mod live;
mod managed;
mod own;
mod owner;
mod pack;
mod part;
mod probe_alloc;
mod prototype;
mod release;
#[cfg(target_os = "linux")]
mod retaining_allocator;
mod share;
mod streamed;
mod unwritten;
mod vector;
mod view;
mod zeroed;

pub(crate) use adopt::adopt;
pub(crate) use deleter::{Outgoing, delete_legacy, delete_versioned};
pub(crate) use fresh::Fresh;
pub(crate) use from_buffer::follows;
pub(crate) use grid::Grid;
pub use live::{Live, live};
pub use managed::ManagedTensor;
pub(crate) use own::claim;
pub(crate) use pack::Description;
pub(crate) use part::Index;
pub(crate) use probe_alloc::{collect, probe_alloc, reserved, try_collect, zeros};
pub(crate) use release::release_foreign;
#[cfg(target_os = "linux")]
pub use retaining_allocator::RetainingAllocator;
pub(crate) use unwritten::Unwritten;
pub(crate) use vector::Vector;
