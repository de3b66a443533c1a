//! Registers the classes of `arrow_dlpack::python` as the Python package `arrow_dlpack`.

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: arrow_dlpack::python::RetainingAllocator =
    arrow_dlpack::python::RetainingAllocator::new();

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // First, because it may refuse.
    arrow_dlpack::python::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

// Every function that C calls has a fence against panics, which an abort would pass over.
const _: () = assert!(cfg!(panic = "unwind"), "build it with panic = \"unwind\"");
