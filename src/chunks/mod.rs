//! Several chunks as one: codes of one dictionary, arrays one behind the other, and copies of what another language
//! could change while arrow-rs follows it.
#![cfg_attr(
    not(feature = "pyo3"),
    expect(
        dead_code,
        unused_imports,
        reason = "batches and arrays put together are the Python package's"
    )
)]

mod batch;
mod checked;
mod coded;
mod dictionary;
mod distinct;
mod fit;
mod join;
mod settled;
pub(crate) mod size;

pub(crate) use batch::batch;
pub(crate) use checked::checked;
pub(crate) use coded::Coded;
pub(crate) use dictionary::{Dictionary, Meaning, are_same, recoded, tells_apart};
pub(crate) use fit::{check_appended, check_taken, reserve};
pub(crate) use join::joined;
pub(crate) use settled::{addresses, cell, everything};
