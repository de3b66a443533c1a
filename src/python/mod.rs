//! The Python classes, for this project's package and for any other PyO3 extension (feature `pyo3`).
//!
//! [`PyArray`] and [`PyTensor`] are the package's `Array` and `Tensor`. As arguments they take whatever
//! speaks the Arrow PyCapsule interface or DLPack; as results they speak both, so that an extension
//! needs nothing else to exchange arrays with NumPy, PyTorch, JAX, pyarrow, polars and the rest.
//!
//! A whole extension, which is `examples/extension` of the repository, built by maturin and called by
//! the tests:
//!
#![doc = include_str!("extension.md")]
//!
//! Extensions that also want the classes under names of their own call [`register`].

mod array;
mod buffer;
mod capsule;
mod consume;
mod destination;
mod error;
mod request;
mod source;
mod structure;
mod tensor;

use pyo3::prelude::*;
use pyo3::wrap_pyfunction;

pub use array::PyArray;
pub use tensor::PyTensor;

use request::{CopyArg, DeviceArg};

/// Adds `Array`, `Tensor`, `from_dlpack` and `UnsupportedError` to a module.
///
/// # Errors
///
/// Whatever Python raises, such as `MemoryError`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyArray>()?;
    module.add_class::<PyTensor>()?;
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(_live, module)?)?;
    module.add("UnsupportedError", error::unsupported_error(module.py())?)
}

/// from_dlpack(x, /, *, device=None, copy=None)
/// --
///
/// The same as Array.from_dlpack: an Arrow array from any object with __dlpack__, or from a DLPack
/// capsule.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None), text_signature = None)]
fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<DeviceArg>,
    copy: Option<CopyArg>,
) -> PyResult<PyArray> {
    PyArray::from_dlpack(x, device, copy)
}

/// Tensors open right now, as (exported, imported); for leak tests.
#[pyfunction]
fn _live() -> (usize, usize) {
    let live = crate::live();
    (live.exported, live.imported)
}

/// Runs `work`, which copies `nbytes`, without the GIL if that is long enough for others to notice.
fn unlocked<T: Send>(py: Python<'_>, nbytes: usize, work: impl FnOnce() -> T + Send) -> T {
    const NOTICEABLE: usize = 1 << 18;
    if nbytes < NOTICEABLE { work() } else { py.detach(work) }
}
