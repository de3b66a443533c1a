//! Small frames of pandas whose columns have one dtype, by way of `DataFrame.to_numpy`.
//!
//! pandas exports a frame by a conversion of pyarrow's, which takes most of a millisecond however few rows there are. A frame
//! that this way does not take, or of which a value does not fit, takes the usual one, which has the same result or the
//! error.

use std::iter;

use pyo3::exceptions::{PyAttributeError, PyImportError};
use pyo3::{prelude::*, sync::PyOnceLock};

use super::numpy::buffer_import::buffer;
use super::protocols::{class_has, methods};
use crate::{ExportOptions, ManagedTensor, NullPolicy, export};

/// A function of the Python package's for frames; `None` where an extension of another package has no such package beside it,
/// or one of an older version.
pub(super) fn function<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
    match cell.import(py, "arrow_dlpack._frames", name) {
        Ok(function) => Ok(Some(function)),
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(None),
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(None),
        // A signal's, which came in between.
        Err(error) => Err(error),
    }
}

/// The matrix of such a frame; `None` of everything else.
pub(super) fn matrix(
    object: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
    options: &ExportOptions,
) -> PyResult<Option<ManagedTensor>> {
    static NUMBERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let py = object.py();
    let [array, _stream] = methods(py);
    if class_has(object, array) != Some(false) {
        return Ok(None);
    }
    let Some(function) = function(py, &NUMBERS, "numbers")? else { return Ok(None) };
    let numbers = function.call1((object, wanted, options.nulls == NullPolicy::Nan))?;
    if numbers.is_none() {
        return Ok(None);
    }
    // Of a long double the usual way says that Arrow has not got it.
    let Ok(values) = buffer(&numbers) else { return Ok(None) };
    let data_type = values.dtype().to_arrow();
    let dtype = data_type.and_then(|own| export::matrix_dtype(iter::once(&own), options));
    Ok(dtype.and_then(|dtype| values.cast(dtype).ok()))
}
