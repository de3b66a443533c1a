//! Results as tensors of a framework: `framework` and `writable`.

use pyo3::{prelude::*, sync::PyOnceLock};

use super::describe::{argument, wrong};
use super::dlpack::request::CopyArg;

/// Where the frameworks are known.
pub(super) const MODULE: &str = "arrow_dlpack._frameworks";

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
        static ASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let asked = ASKED.import(py, MODULE, "asked")?.call1((framework, writable, copy))?;
        let (take, copy) = asked.extract()?;
        Ok((Self(take), copy))
    }

    /// The same structure of the framework's tensors.
    pub(super) fn take(self, made: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = made.py();
        match self.0 {
            Some(take) => {
                static MAPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                MAPPED.import(py, MODULE, "mapped")?.call1((made, take))
            }
            None => Ok(made),
        }
    }
}
