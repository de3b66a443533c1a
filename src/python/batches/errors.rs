//! Errors of batches as Python exceptions.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

use crate::batches::{BatchOptions, Form};
use crate::python::errors::{Asked, reworded};
use crate::{Error, error::Count};

/// The columns whose nulls `nulls=` does not reach: the labels, of which "nan" is not, and what has a policy of its own.
pub(in crate::python) fn own_nulls(options: &BatchOptions) -> Vec<String> {
    let own = options.column_options.iter();
    let own = own.filter(|(_, own)| own.nulls.is_some() && own.form == Form::Auto);
    own.map(|(name, _)| name).chain(&options.labels).cloned().collect()
}

/// Of batches that are being read; `own_nulls` are those of [`own_nulls`].
pub(in crate::python) fn refused(error: Error, own_nulls: &[String]) -> PyErr {
    Asked::Batches.rephrase(of_own_nulls(error, own_nulls)).into()
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

/// The error with advice for nulls in these columns of batches, which `nulls=` of all columns does not reach.
fn of_own_nulls(error: Error, columns: &[String]) -> Error {
    reworded(error, None, &|error, column| match error {
        Error::Nulls { ref data_type, null_count, len }
            if column.is_some_and(|column| columns.iter().any(|own| own == column)) =>
        {
            let words = format!(
                "{data_type} array has {} in {len} values, and a tensor cannot hold nulls: drop them with filter=, \
                 or say what they become by nulls= of Cast or Categories for this column",
                Count(null_count, "null")
            );
            Error::Worded { words, error: Box::new(error) }
        }
        error => error,
    })
}
