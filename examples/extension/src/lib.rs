//! An extension module of another project: takes any Arrow array or tensor, returns either.
#![forbid(unsafe_code)]

use arrow_array::{Array, ArrayRef, Float64Array, cast::AsArray, types::Float64Type};
use arrow_dlpack::python::{Chunks, PyArray, PyTensor, ReadOnlyCell, Table};
use arrow_dlpack::{ExportOptions, ImportOptions, ManagedTensor, export, from_dlpack};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Arc, LazyLock};

/// Twice each value of a float64 column: from pyarrow, polars, NumPy, torch, to any of them.
#[pyfunction]
fn doubled(column: PyArray) -> PyResult<PyArray> {
    let Some(values) = column.array().as_primitive_opt::<Float64Type>() else {
        return Err(PyTypeError::new_err(format!(
            "expected Float64, got {}",
            column.array().data_type()
        )));
    };
    let doubled: ArrayRef =
        Arc::new(values.iter().map(|x| x.map(|x| 2.0 * x)).collect::<Float64Array>());
    let field = Field::new("doubled", DataType::Float64, true);
    Ok(PyArray::try_new(doubled, Arc::new(field))?)
}

/// The column's own memory as a tensor.
#[pyfunction]
fn as_tensor(column: PyArray) -> PyResult<PyTensor> {
    Ok(column.to_dlpack()?)
}

/// The number of elements of any object that is a tensor, or can be one.
#[pyfunction]
fn size(tensor: PyTensor) -> usize {
    tensor.size()
}

/// The sum of a float64 tensor of any layout.
#[pyfunction]
fn total(py: Python<'_>, tensor: PyTensor) -> PyResult<f64> {
    Ok(tensor.to_vec::<f64>(py)?.iter().sum())
}

/// What is in a float64 tensor before and after `change()`: Python can write to it at any time, so that Rust
/// has copies of it, or cells, and no `&[f64]`.
#[pyfunction]
fn before_and_after(
    py: Python<'_>,
    tensor: PyTensor,
    change: Bound<'_, PyAny>,
) -> PyResult<(Vec<f64>, Vec<f64>)> {
    let before = tensor.to_vec::<f64>(py)?;
    let cells = tensor.as_cells::<f64>(py)?;
    change.call0()?;
    Ok((before, cells.iter().map(ReadOnlyCell::get).collect()))
}

/// A tensor as an Arrow array: in its own memory, if it has no other owner; else in a copy.
#[pyfunction]
fn consumed(py: Python<'_>, tensor: PyTensor) -> PyResult<PyArray> {
    let tensor = match tensor.into_exclusive() {
        Ok(tensor) => tensor,
        Err(tensor) => tensor.copied(py)?,
    };
    Ok(from_dlpack(tensor, &ImportOptions::default())?.try_into()?)
}

/// A table as a matrix (rows, columns).
#[pyfunction]
fn matrix(table: Table) -> PyResult<PyTensor> {
    Ok(export::tensor(&table, &ExportOptions::default())?.into())
}

/// The number of values in each chunk of a column.
#[pyfunction]
fn lengths(column: Chunks) -> Vec<usize> {
    column.chunks.iter().map(|chunk| chunk.len()).collect()
}

/// Extensions that speak pyo3-arrow go on doing so: its classes become ours, and ours its (feature `pyo3-arrow`).
#[pyfunction]
fn last_batch(table: pyo3_arrow::PyTable) -> PyResult<pyo3_arrow::PyRecordBatch> {
    let mut table = Table::from(table);
    let before = table.batches.len().saturating_sub(1);
    table.batches.drain(..before);
    Ok(table.try_into()?)
}

/// One takes an array, the other returns it.
#[pyfunction]
fn between(column: pyo3_arrow::PyArray) -> PyResult<PyArray> {
    Ok(column.try_into()?)
}

/// The other way round.
#[pyfunction]
fn chunked(column: Chunks) -> PyResult<pyo3_arrow::PyChunkedArray> {
    column.try_into()
}

static PRIMES: LazyLock<Arc<ManagedTensor>> = LazyLock::new(|| {
    let primes = export::array(&Float64Array::from(vec![2.0, 3.0, 5.0, 7.0]));
    Arc::new(primes.and_then(|primes| primes.copied()).expect("four numbers"))
});

/// Numbers that this module keeps and reads, so that Python may not write to them.
#[pyfunction]
fn primes() -> PyTensor {
    Arc::clone(&PRIMES).into()
}

#[pymodule]
mod extension {
    #[pymodule_export]
    use super::{as_tensor, before_and_after, between, chunked, consumed, doubled, last_batch};
    #[pymodule_export]
    use super::{lengths, matrix, primes, size, total};
}
