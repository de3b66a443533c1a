//! Registers the classes of `arrow_dlpack::python` as the Python package `arrow_dlpack`.

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    arrow_dlpack::python::register(module)
}
