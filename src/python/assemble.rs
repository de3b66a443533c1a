//! Several tensors put together as one Arrow array: the columns of a table, or rows of different lengths.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::array::PyArray;
use super::error::placed;
use super::options::{TypeArg, pointless};
use super::request::{described, wrong};
use super::run::unlocked;
use super::take;
use crate::error::{Error, Names};
use crate::import::{self, ImportOptions};
use crate::memory::ManagedTensor;

/// Tensors as the columns of a table.
pub(super) fn record_batch(
    data: &Bound<'_, PyAny>,
    names: Option<Vec<String>>,
    copy: Option<bool>,
    r#type: TypeArg,
) -> PyResult<PyArray> {
    let py = data.py();
    let batch = match (data.cast::<PyDict>(), names) {
        (Ok(columns), None) => {
            let mut tensors = Vec::with_capacity(columns.len());
            // A copy of the items: a producer's code may change the dict.
            for item in columns.items() {
                let (name, column) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                let name = name.extract::<String>().map_err(|_| {
                    PyTypeError::new_err(format!("names are texts, got {}", described(&name)))
                })?;
                let taken = column_of(column, copy);
                let place = || format!("column {}", Names(&[&name]));
                let (values, mask) = taken.map_err(|error| placed(py, &place(), error))?;
                tensors.push((name, values, mask));
            }
            let options = r#type.import(tensors.iter().map(|(_, tensor, _)| tensor), copy)?;
            let nbytes = tensors.iter().map(|(_, tensor, _)| tensor.nbytes()).sum();
            unlocked(py, nbytes, || import::masked_record_batch(tensors, &options))?
        }
        (Err(_), Some(names)) => {
            let matrix = take::take(data, None, copy)?;
            let options = r#type.import([&matrix], copy)?;
            unlocked(py, matrix.nbytes(), || import::columns(matrix, &names, &options))?
        }
        (Ok(_), Some(_)) => {
            return Err(pointless("names", "are for a matrix, and a dict has its own"));
        }
        (Err(_), None) => {
            return Err(PyTypeError::new_err(format!(
                "expected a dict of tensors, or a matrix and names=, got {}",
                described(data)
            )));
        }
    };
    let fields = batch.schema().fields().clone();
    let field = Field::new("", DataType::Struct(fields), false);
    Ok(PyArray::try_new(Arc::new(StructArray::from(batch)), Arc::new(field))?)
}

/// The values of a column, and the mask of a pair.
fn column_of(
    column: Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<(ManagedTensor, Option<ManagedTensor>)> {
    let (values, mask) = match column.cast::<PyTuple>() {
        Ok(pair) => {
            let must = || wrong(&column, "a column is a tensor or a pair (values, mask)");
            let (values, mask) =
                pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| must())?;
            (values, Some(take::take_mask(&mask)?))
        }
        Err(_) => (column, None),
    };
    Ok((take::take(&values, None, copy)?, mask))
}

/// Lists, texts or binaries from values and offsets, or padded values and lengths.
pub(super) fn from_rows(
    values: &Bound<'_, PyAny>,
    bounds: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    r#type: TypeArg,
    import: impl FnOnce(ManagedTensor, ManagedTensor, Option<ManagedTensor>, &ImportOptions) -> Imported
    + Send,
) -> PyResult<PyArray> {
    let py = values.py();
    let values = take::take(values, None, copy)?;
    let bounds = take::take(bounds, None, copy)?;
    let mask = mask.map(take::take_mask).transpose()?;
    let options = r#type.import([&values], copy)?;
    // The offsets are checked, and so are the values if they are texts.
    let nbytes = values.nbytes().saturating_add(bounds.nbytes());
    let (array, field) = unlocked(py, nbytes, || import(values, bounds, mask, &options))?;
    Ok(PyArray::try_new(array, field)?)
}

type Imported = Result<(ArrayRef, FieldRef), Error>;
