//! Several chunks as one: codes of one dictionary, concatenated arrays, and copies of offsets and codes that
//! other code could change while arrow-rs uses them.
//!
//! - `dictionary` makes one dictionary of several, of its `distinct` values; `coded` is a column of such codes.
//! - `join` concatenates arrays of any type; `size` says whether that fits memory, and `taken` whether rows that are
//!   gathered do.
//! - `bounds` has the range of each row of lists, texts, binaries and byte views; `settled` copies offsets and codes that
//!   other code could change; `checked` lets arrow-rs make arrays of data that may be inconsistent; `batch` makes a record
//!   batch of a struct array.

mod batch;
mod bounds;
mod checked;
mod coded;
mod dictionary;
mod distinct;
mod join;
mod settled;
pub(crate) mod size;
mod taken;
pub(crate) use batch::{as_one, batch, column, joined_batches};
pub(crate) use bounds::{Bounds, Items, Numbers, place};
pub(crate) use checked::checked;
pub(crate) use coded::Coded;
pub(crate) use dictionary::{Dictionary, Meaning, are_same, recoded};
pub(crate) use distinct::tells_apart;
pub(crate) use join::joined;
pub(crate) use settled::{addresses, everything, validity};
pub(crate) use size::{check_appended, reserve};
pub(crate) use taken::{check_taken, check_taken_at};
