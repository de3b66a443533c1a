//! Tensors: what owns their memory, what describes it, and who releases it.
//!
//! - `managed` is the tensor, its metadata and its elements: what `descriptor` has read of a `DLTensor` and found true, and
//!   the `owner`, whose deleter `release` calls.
//! - `block` lays out what is exported; `construct` makes tensors of memory and buffers of tensors; `views` makes tensors
//!   of tensors.

mod block;
mod construct;
mod descriptor;
mod managed;
mod owner;
mod release;
mod views;

pub(crate) use block::Description;
pub(crate) use construct::{TensorSpec, Vector, adopt, claim, follows};
pub use managed::ManagedTensor;
pub use release::{Live, live};
pub(crate) use release::{Outgoing, call_deleter, call_legacy_deleter, release_foreign};
pub(crate) use views::Index;
