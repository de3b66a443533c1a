//! Small frames of pandas whose columns have one dtype, by way of `DataFrame.to_numpy`.
//!
//! pandas exports a frame by a conversion of pyarrow's, which takes most of a millisecond however few rows there are. A frame
//! that this way does not take, or of which a value does not fit, takes the usual one, which has the same result or the
//! error.

use std::iter;

use pyo3::sync::PyOnceLock;
use pyo3::{intern, prelude::*};

use super::numpy::buffer_import::buffer;
use super::protocols::{class_has, methods};
use crate::{ExportOptions, ManagedTensor, NullPolicy, export};

/// The matrix of such a frame; `None` of everything else.
pub(super) fn matrix(
    object: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
    options: &ExportOptions,
) -> Option<ManagedTensor> {
    let py = object.py();
    let [array, _stream] = methods(py);
    if class_has(object, array) != Some(false) {
        return None;
    }
    let takes_nan = options.nulls == NullPolicy::Nan;
    let numbers = function(py).ok()?.call1((object, wanted, takes_nan)).ok()?;
    if numbers.is_none() {
        return None;
    }
    let values = buffer(&numbers).ok()?;
    let data_type = values.dtype().to_arrow()?;
    values.cast(export::matrix_dtype(iter::once(&data_type), options)?).ok()
}

/// What says whether an object is such a frame, and has its values.
fn function(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        let frames = py.import(intern!(py, "arrow_dlpack._frames"))?;
        frames.getattr(intern!(py, "numbers")).map(Bound::unbind)
    })?;
    Ok(function.bind(py))
}
