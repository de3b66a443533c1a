//! Functions for what the example does not call.
#![expect(unsafe_code, reason = "reads a tensor that Python could write to")]

use std::fmt::Debug;
use std::iter;
use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_dlpack::batches::{BatchOptions, Batches};
use arrow_dlpack::python::{Chunks, PyArray, PyTensor, ReadOnlyCell, Table};
use arrow_dlpack::{CopyPolicy, Element, Error, ExportOptions, ManagedTensor, export};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use ndarray::Ix2;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3_arrow::{PyChunkedArray, PyRecordBatch, PyTable};

/// Shape, strides, dtype, device, address, and the name of the column that the tensor was made of.
type Description = (Vec<i64>, Vec<i64>, String, (i32, i32), usize, Option<String>);

#[pyfunction]
fn described(tensor: PyTensor) -> Description {
    let device = tensor.device();
    (
        tensor.shape().to_vec(),
        tensor.strides().into_owned(),
        tensor.dtype().to_string(),
        (device.device_type.0, device.device_id),
        tensor.as_ptr().addr(),
        tensor.column().map(|field| field.name().clone()),
    )
}

/// The cells of a tensor as text.
#[pyfunction]
fn cells(py: Python<'_>, tensor: PyTensor) -> PyResult<String> {
    fn text<T: Element + Debug>(py: Python<'_>, tensor: &PyTensor) -> PyResult<String> {
        Ok(format!("{:?}", tensor.as_cells::<T>(py)?))
    }
    match tensor.dtype().to_string().as_str() {
        "uint8" => text::<u8>(py, &tensor),
        "int16" => text::<i16>(py, &tensor),
        "float32" => text::<f32>(py, &tensor),
        "int64" => text::<i64>(py, &tensor),
        other => Err(PyTypeError::new_err(format!("no cells of {other} are shown"))),
    }
}

/// The elements of a matrix of any strides, row after row, in cells that it reads one by one.
#[pyfunction]
fn rows(py: Python<'_>, matrix: PyTensor) -> PyResult<Vec<Vec<f32>>> {
    let cells = matrix.view_cells::<f32, Ix2>(py)?;
    Ok(cells.rows().into_iter().map(|row| row.iter().map(ReadOnlyCell::get).collect()).collect())
}

/// The sum of a contiguous float64 tensor, where it is. No thread may write to the tensor meanwhile: nothing here can
/// check that, so it is for callers who know all that have the memory.
#[pyfunction]
fn sum_in_place(tensor: PyTensor) -> Option<f64> {
    // SAFETY: what the documentation of this function asks of its callers; the borrow ends before it returns.
    let tensor = unsafe { tensor.tensor() };
    tensor.as_slice::<f64>().map(|values| values.iter().sum())
}

/// A tensor with one holder, which Python may write to, and one that Rust could be reading.
#[pyfunction]
fn own_and_shared() -> PyResult<(PyTensor, PyTensor)> {
    let numbers = || ManagedTensor::from_vec(vec![1.0, 2.0], &[2]).map(Arc::new);
    Ok((numbers()?.into(), numbers()?.share().into()))
}

/// A tensor that came through C from code that may write to it, and a view of such a one, whose memory other code in
/// Rust could have borrowed by now.
#[pyfunction]
fn came_and_viewed() -> PyResult<(PyTensor, PyTensor)> {
    let came = || {
        let raw = ManagedTensor::from_vec(vec![1.0, 2.0], &[2])?.into_raw();
        // SAFETY: a tensor of ours is truthful, and no other code has it.
        unsafe { ManagedTensor::from_raw(raw) }
    };
    Ok((came()?.into(), came()?.reshape(&[2, 1], CopyPolicy::Never)?.into()))
}

/// Raises the error of a reader, or one that no function here meets.
#[pyfunction]
fn fail(as_reader: bool) -> PyResult<()> {
    if !as_reader {
        return Err(Error::SeveralColumns { name: "x".to_owned(), count: 2 }.into());
    }
    let gone = || Err(ArrowError::ExternalError("the disk is gone".into()));
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let reader = RecordBatchIterator::new(iter::once_with(gone), schema.into());
    for batch in Batches::try_new(reader, &BatchOptions::default())? {
        batch?;
    }
    Ok(())
}

/// Chunks as one tensor.
#[pyfunction]
fn put_together(column: Chunks) -> PyResult<PyTensor> {
    Ok(export::tensor(&column, &ExportOptions::default())?.into())
}

#[pyfunction]
fn their_array(array: PyArray) -> pyo3_arrow::PyArray {
    array.into()
}

#[pyfunction]
fn through_chunks(column: PyChunkedArray) -> PyResult<PyChunkedArray> {
    Chunks::from(column).try_into()
}

#[pyfunction]
fn their_table(table: Table) -> PyResult<PyTable> {
    table.try_into()
}

#[pyfunction]
fn table_of_batch(batch: PyRecordBatch) -> PyResult<PyTable> {
    Table::from(batch).try_into()
}

/// The only batch of a table.
#[pyfunction]
fn only_batch(table: PyTable) -> PyResult<PyRecordBatch> {
    Ok(Table::from(table).try_into()?)
}

#[pymodule]
mod rest {
    #[pymodule_export]
    use super::{came_and_viewed, fail, table_of_batch, their_array, their_table, through_chunks};
    #[pymodule_export]
    use super::{cells, described, only_batch, own_and_shared, put_together, rows, sum_in_place};
}
