//! The DLPack protocol in Python.
//!
//! - `method` is `__dlpack__` of our classes, registered by hand, and what they hand out.
//! - `consume` takes a producer's tensor, by `__dlpack__`; `request` has the arguments of both sides.
//! - `capsule` has tensors in and out of capsules, and calls producers for them; `exchange` is the C exchange API.

pub(in crate::python) mod capsule;
pub(in crate::python) mod consume;
pub(in crate::python) mod exchange;
pub(in crate::python) mod method;
pub(in crate::python) mod request;
