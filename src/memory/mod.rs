//! Tensors and memory, with all unsafe code of the core but that of `kernels`.
//!
//! - `managed` is the tensor, its metadata and its elements: what `view` has read of a descriptor and found true, and the
//!   `owner`, whose deleter `release` calls.
//! - `block` lays out what is exported; `construct` makes tensors of memory and buffers of tensors; `views` makes tensors
//!   of tensors.
//! - `fresh` is new memory, which `writer` writes; `huge` asks for huge pages, and `retaining_allocator` keeps a few large
//!   blocks for later results.

mod block;
mod construct;
mod fresh;
mod huge;
mod managed;
mod owner;
mod release;
#[cfg(target_os = "linux")]
mod retaining_allocator;
mod view;
mod views;
mod writer;

pub(crate) use block::Description;
pub(crate) use construct::{TensorSpec, Vector, adopt, claim, follows};
pub(crate) use fresh::{Fresh, collect, probe_alloc, reserved, try_collect, zeros};
pub use managed::ManagedTensor;
pub use release::{Live, live};
pub(crate) use release::{Outgoing, delete_legacy, delete_versioned, release_foreign};
#[cfg(target_os = "linux")]
pub use retaining_allocator::RetainingAllocator;
pub(crate) use views::Index;
pub(crate) use writer::{Grid, Unwritten};
