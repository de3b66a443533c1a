//! Arrow's C interfaces: structures and streams from Python, checked and as arrays of arrow-rs, and back.

pub(in crate::python) mod bound;
pub(in crate::python) mod capsule;
mod contents;
pub(in crate::python) mod export;
pub(in crate::python) mod ffi;
mod gather;
pub(in crate::python) mod import;
pub(in crate::python) mod imported;
mod known;
pub(in crate::python) mod matrix;
pub(in crate::python) mod recorded_stream;
pub(in crate::python) mod schema;
pub(in crate::python) mod select;
pub(in crate::python) mod stream;
pub(in crate::python) mod structs;
mod validate;
mod views;
