//! Checks the column names that Python passes.

use std::{collections::HashSet, str};

use pyo3::{exceptions::PyKeyError, prelude::*};

use super::{options::ColumnsArg, sequence::Items};
use crate::{error::Names, names, pandas};

/// An error if a name is repeated, for callers that identify columns by name.
pub(super) fn refuse_twice(wanted: &[String]) -> PyResult<()> {
    let mut seen = HashSet::with_capacity(wanted.len());
    match wanted.iter().find(|&name| !seen.insert(name)) {
        Some(name) => Err(PyKeyError::new_err(format!("columns= names {} twice", Names(&[name])))),
        None => Ok(()),
    }
}

/// An error that lists all names that are not columns.
#[pyfunction]
#[pyo3(signature = (names, wanted, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _check_names(names: Items<String>, wanted: ColumnsArg) -> PyResult<()> {
    let among: Vec<&str> = names.0.iter().map(String::as_str).collect();
    let wanted: Vec<&str> = wanted.0.iter().map(String::as_str).collect();
    names::positions(&among, &wanted).map(drop)?;
    Ok(())
}

/// Positions of the columns of these names that pandas's metadata marks as an index.
#[pyfunction]
#[pyo3(signature = (names, metadata, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _index_columns(names: Items<String>, metadata: &[u8]) -> Vec<usize> {
    let names: Vec<&str> = names.0.iter().map(String::as_str).collect();
    str::from_utf8(metadata).map_or_else(|_| Vec::new(), |text| pandas::positions(&names, text))
}
