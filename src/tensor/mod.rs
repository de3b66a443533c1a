//! Tensors: what owns their memory, what describes it, and who releases it.
//!
//! - `managed` is the tensor, its metadata and its elements: what `descriptor` has read of a `DLTensor` and found true, and
//!   the `owner`, whose deleter `release` calls.
//! - `block` lays out what is exported; `construct` makes tensors of memory, `vector` those of plain numbers, `views` those of
//!   other tensors; `reclaim` makes buffers of tensors, and takes their memory back.

mod block;
mod construct;
mod descriptor;
mod managed;
mod owner;
mod reclaim;
mod release;
mod vector;
mod views;

pub(crate) use block::Description;
pub(crate) use construct::{TensorSpec, follows};
pub use managed::ManagedTensor;
pub(crate) use reclaim::{adopt, claim};
pub use release::{Live, live};
pub(crate) use release::{Outgoing, call_deleter, call_legacy_deleter, release_foreign};
pub(crate) use vector::Vector;
pub(crate) use views::Index;
