//! Several chunks as one: codes of one dictionary, concatenated arrays, and copies of offsets and codes that
//! other code could change while arrow-rs uses them.
mod batch;
mod bounds;
mod checked;
mod coded;
mod dictionary;
mod distinct;
mod join;
mod settled;
pub(crate) mod size;
pub(crate) mod taken;
pub(crate) use batch::{batch, column};
pub(crate) use bounds::{Bounds, Items, Numbers, place};
pub(crate) use checked::checked;
pub(crate) use coded::Coded;
pub(crate) use dictionary::{Dictionary, Meaning, are_same, recoded};
pub(crate) use distinct::tells_apart;
pub(crate) use join::joined;
pub(crate) use settled::{addresses, everything, validity};
pub(crate) use size::{check_appended, reserve};
pub(crate) use taken::{check_taken, check_taken_at};
