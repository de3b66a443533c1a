//! Errors of batches as Python exceptions.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

use crate::Error;
use crate::batches::BatchOptions;
use crate::python::errors::{Asked, Wishes};

/// Of batches that are being read.
pub(in crate::python) fn refused(error: Error, wishes: &Wishes) -> PyErr {
    Asked::Batches(wishes).refusal(error)
}

/// Of batches that were not opened.
pub(in crate::python) fn not_opened(error: Error, options: &BatchOptions) -> PyErr {
    match error {
        Error::NoColumns if options.columns.as_ref().is_some_and(Vec::is_empty) => {
            PyValueError::new_err("columns= is empty: format=\"matrix\" takes at least one column")
        }
        Error::NoColumns if !options.labels.is_empty() => {
            PyBufferError::new_err("no features are left beside the label")
        }
        error => refused(error, &Wishes::of(options)),
    }
}
