//! Small frames of pandas whose columns have one dtype, by way of `DataFrame.to_numpy`.
//!
//! pandas exports a frame by a conversion of pyarrow's, which takes most of a millisecond however few rows there are. A frame
//! that this way does not take, or of which a value does not fit, takes the usual one, which has the same result or the
//! error.

use std::iter;

use pyo3::{prelude::*, sync::PyOnceLock};

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
    static NUMBERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = NUMBERS.import(py, "arrow_dlpack._frames", "numbers").ok()?;
    let numbers = function.call1((object, wanted, options.nulls == NullPolicy::Nan)).ok()?;
    if numbers.is_none() {
        return None;
    }
    let values = buffer(&numbers).ok()?;
    let data_type = values.dtype().to_arrow()?;
    values.cast(export::matrix_dtype(iter::once(&data_type), options)?).ok()
}
