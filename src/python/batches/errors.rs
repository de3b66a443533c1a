//! Errors of batches as Python exceptions.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

use crate::Error;
use crate::batches::{BatchOptions, Form};
use crate::python::errors::Asked;

/// The columns whose nulls `nulls=` does not reach: the labels, of which "nan" is not, and what has a policy of its own.
pub(in crate::python) fn own_nulls(options: &BatchOptions) -> Vec<String> {
    let own = options.column_options.iter();
    let own = own.filter(|(_, own)| own.nulls.is_some() && own.form == Form::Auto);
    own.map(|(name, _)| name).chain(&options.labels).cloned().collect()
}

/// Of batches that are being read; `own_nulls` are those of [`own_nulls`].
pub(in crate::python) fn refused(error: Error, own_nulls: &[String]) -> PyErr {
    Asked::Batches(own_nulls).refusal(error)
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
        error => refused(error, &[]),
    }
}
