//! Results as tensors of a framework: `framework` and `writable`.

use pyo3::{intern, prelude::*};

use super::describe::{argument, wrong};
use super::dlpack::request::CopyArg;

argument!(WritableArg(bool), "writable must be True, False or None");

/// Makes a framework's tensors of ours, or leaves them as they are.
pub(super) struct Taker<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Taker<'py> {
    /// The taker of a framework, and `copy` for tensors that may have to be writable.
    pub(super) fn new(
        py: Python<'py>,
        framework: Option<Bound<'py, PyAny>>,
        writable: Option<WritableArg>,
        copy: Option<CopyArg>,
    ) -> PyResult<(Self, Option<CopyArg>)> {
        if framework.is_none() && writable.is_none() {
            return Ok((Self(None), copy));
        }
        let (writable, copy) = (writable.map(|writable| writable.0), copy.map(|copy| copy.0));
        let asked = module(py)?.call_method1(intern!(py, "asked"), (framework, writable, copy))?;
        let (take, copy) = asked.extract()?;
        Ok((Self(take), copy))
    }

    /// The same structure of the framework's tensors.
    pub(super) fn take(self, made: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = made.py();
        match self.0 {
            Some(take) => module(py)?.call_method1(intern!(py, "mapped"), (made, take)),
            None => Ok(made),
        }
    }
}

pub(super) fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "arrow_dlpack._frameworks"))
}
