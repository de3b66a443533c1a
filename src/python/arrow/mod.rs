//! Arrow's C interfaces: structures and streams from Python, checked and as arrays of arrow-rs, and back.
//!
//! - `structs` has the structures, and alone follows their pointers; `capsule` finds them in capsules, and imports pairs.
//! - `schema` checks types and makes fields of them; `validate` checks arrays that came with their type (`TypedArray`), which
//!   are then `CheckedArray`s.
//! - `import` makes arrays of arrow-rs of those, with children that were checked before (`shared_children`); `matrix` makes a
//!   matrix of a table of plain numbers, without arrays.
//! - `stream` reads streams array by array: without the columns that were not asked for (`select`), small chunks joined
//!   (`gather`); `recorded_stream` hands a stream on that remembers which rows were taken. `imported` is the result.
//! - `export` hands arrays out, values without children cast as a consumer requests, by `casts` in which no value changes.

pub(in crate::python) mod capsule;
pub(in crate::python) mod casts;
pub(in crate::python) mod export;
mod gather;
mod import;
pub(in crate::python) mod imported;
mod matrix;
pub(in crate::python) mod recorded_stream;
pub(in crate::python) mod schema;
mod select;
mod shared_children;
pub(in crate::python) mod stream;
pub(in crate::python) mod structs;
mod validate;
