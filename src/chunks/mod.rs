//! Several chunks as one: codes of one dictionary, concatenated arrays, and copies of offsets and codes that
//! other code could change while arrow-rs uses them.
//!
//! - `dictionary` makes one dictionary of several, of its `distinct_values`.
//! - `concat` concatenates arrays of any type; `footprint` says whether that, or rows that are gathered, fit memory.
//! - `row_ranges` has the range of each row of lists, texts, binaries and byte views, and `runs` the run of each row;
//!   `snapshot` copies offsets and codes that other code could change; `checked` lets arrow-rs make arrays, and
//!   tell nulls, of data that may be inconsistent; `batch` makes a record batch of a struct array.

mod batch;
mod checked;
mod concat;
mod dictionary;
mod distinct_values;
pub(crate) mod footprint;
mod row_ranges;
mod runs;
mod snapshot;

pub(crate) use batch::{as_one, batch, column, concat_batches, fields_of};
pub(crate) use checked::{checked, logical_nulls};
pub(crate) use concat::concat;
pub(crate) use dictionary::{Coded, Dictionary, Meaning, are_same, recoded};
pub(crate) use distinct_values::{Distinct, tells_apart};
pub(crate) use footprint::{check_taken, check_taken_at, reserve};
pub(crate) use row_ranges::{Bounds, Integers, RowItems, place};
pub(crate) use runs::{Runs, runs_of};
pub(crate) use snapshot::{addresses, everything, validity};
