//! Somebody else's extension module: takes any Arrow array or tensor, returns either.

use arrow_array::{Array, ArrayRef, Float64Array, cast::AsArray, types::Float64Type};
use arrow_dlpack::python::{PyArray, PyTensor};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::Arc;

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
    Ok(column.to_dlpack()?.into())
}

/// The number of elements of anything that is a tensor or can be one.
#[pyfunction]
fn size(tensor: PyTensor) -> usize {
    tensor.tensor().size()
}

#[pymodule]
mod extension {
    #[pymodule_export]
    use super::{as_tensor, doubled, size};
}
