#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "pyo3"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "what only the Python classes call"
    )
)]

#[cfg(target_endian = "big")]
compile_error!(
    "arrow-dlpack is for little-endian machines: on big-endian ones nested nulls come out wrong, in arrow-rs too"
);

pub mod batches;
mod chunks;
mod dtype;
pub mod export;
pub mod extension;
pub mod ffi;
pub mod import;
#[cfg(feature = "ndarray")]
mod ndarray;
pub mod pandas;
#[cfg(feature = "pyo3")]
pub mod python;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/what-can-go-wrong.md")]
pub mod what_can_go_wrong {}

mod copy;
mod error;
mod fence;
mod kernels;
mod layout;
mod memory;
mod names;
#[cfg(feature = "pyo3")]
mod pending;
mod plan;
mod possible;
mod reshape;
mod scalar;
mod typed;

/// Without Python there are no exceptions to set aside.
#[cfg(not(feature = "pyo3"))]
mod pending {
    pub(crate) struct PendingException;

    impl PendingException {
        pub(crate) fn set_aside() -> Option<Self> {
            None
        }
    }
}

// The name of the module for atomics and locks; `tests/models` replaces it by loom's.
use std::sync;

pub use copy::{CopyPolicy, CopyReason};
pub use dtype::Element;
pub use error::{
    Error, ExclusiveObstacle, LengthsProblem, MaskProblem, OffsetsProblem, ReaderError,
    WriteObstacle,
};
pub use export::{ExportOptions, NullPolicy, Order, to_dlpack};
pub use import::{ImportOptions, Representation, from_dlpack};
pub use memory::{Live, ManagedTensor, live};
#[cfg(feature = "ndarray")]
pub use ndarray::ViewElement;
pub use plan::{Plan, Step};
pub use scalar::Scalar;
