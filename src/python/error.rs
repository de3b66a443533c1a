//! Errors as Python exceptions.

use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyType};

use crate::error::Error;

/// `UnsupportedError(BufferError, TypeError)`: a refusal that no keyword can change. It is a
/// `TypeError` because pyarrow raises one, and code written for pyarrow catches it.
pub(super) fn unsupported_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases = (py.get_type::<PyBufferError>(), py.get_type::<PyTypeError>());
        let doc = "This data has no form on the other side, whatever the keywords: its type, its rank or \
                   its nulls are refused. The message names the way out.";
        let namespace = [("__module__", "arrow_dlpack"), ("__doc__", doc)].into_py_dict(py)?;
        let class = py.get_type::<PyType>().call1(("UnsupportedError", bases, namespace))?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// BufferError for everything, except what no keyword could have changed (`UnsupportedError`), what a
/// keyword asked for and the values do not allow (`ValueError`), and memory that is not there
/// (`MemoryError`).
impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        if error.is_out_of_memory() {
            return PyMemoryError::new_err(message);
        }
        if error.is_wrong_value() {
            return PyValueError::new_err(message);
        }
        if !error.is_type_refusal() {
            return PyBufferError::new_err(message);
        }
        unsupported(message)
    }
}

/// An `UnsupportedError` of these words.
pub(super) fn unsupported(message: String) -> PyErr {
    Python::attach(|py| match unsupported_error(py) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}
