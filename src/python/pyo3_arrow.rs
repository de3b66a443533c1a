//! The classes of the crate `pyo3-arrow`, for extensions that already use it (feature `pyo3-arrow`). Their
//! import checks are those of that crate, which are less strict than this one's.

use arrow_array::RecordBatch;
use pyo3::PyErr;
use pyo3_arrow::{PyChunkedArray, PyRecordBatch, PyTable};

use super::array::PyArray;
use super::rust_api::{Chunks, Table};
use crate::{CopyReason, Error};

/// As [`PyArray::try_new`] (feature `pyo3-arrow`).
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::Int32Array;
/// use arrow_dlpack::python::PyArray;
///
/// let theirs = pyo3_arrow::PyArray::from_array_ref(Arc::new(Int32Array::from(vec![1, 2])));
/// let ours = PyArray::try_from(theirs)?;
/// assert_eq!(ours.to_dlpack()?.shape(), [2]);
/// assert_eq!(pyo3_arrow::PyArray::from(ours).array().len(), 2);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
impl TryFrom<pyo3_arrow::PyArray> for PyArray {
    type Error = Error;

    fn try_from(array: pyo3_arrow::PyArray) -> Result<Self, Error> {
        let (array, field) = array.into_inner();
        Self::try_new(array, field)
    }
}

/// The same array and field (feature `pyo3-arrow`).
impl From<PyArray> for pyo3_arrow::PyArray {
    fn from(array: PyArray) -> Self {
        let (array, field) = array.into_inner();
        Self::new(array, field)
    }
}

/// The same chunks and field (feature `pyo3-arrow`).
impl From<PyChunkedArray> for Chunks {
    fn from(array: PyChunkedArray) -> Self {
        let (chunks, field) = array.into_inner();
        Self { chunks, field }
    }
}

/// The same chunks and field, if they are of one type (feature `pyo3-arrow`).
impl TryFrom<Chunks> for PyChunkedArray {
    type Error = PyErr;

    fn try_from(Chunks { chunks, field }: Chunks) -> Result<Self, PyErr> {
        Self::try_new(chunks, field)
    }
}

/// The same batches and schema (feature `pyo3-arrow`).
impl From<PyTable> for Table {
    fn from(table: PyTable) -> Self {
        let (batches, schema) = table.into_inner();
        Self { batches, schema }
    }
}

/// The same batches and schema, if that is the schema of each (feature `pyo3-arrow`).
impl TryFrom<Table> for PyTable {
    type Error = PyErr;

    fn try_from(Table { batches, schema }: Table) -> Result<Self, PyErr> {
        Self::try_new(batches, schema)
    }
}

/// One batch (feature `pyo3-arrow`).
impl From<PyRecordBatch> for Table {
    fn from(batch: PyRecordBatch) -> Self {
        batch.into_inner().into()
    }
}

/// The only batch, or an empty one where there is none (feature `pyo3-arrow`). Several are `CopyForbidden`.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use arrow_dlpack::python::Table;
/// use pyo3_arrow::PyRecordBatch;
///
/// let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
/// let batch = PyRecordBatch::new(RecordBatch::try_from_iter([("x", column)])?);
/// let mut table = Table::from(batch);
/// assert_eq!(PyRecordBatch::try_from(table.clone())?.into_inner().num_rows(), 2);
/// table.batches.push(table.batches[0].clone());
/// assert!(PyRecordBatch::try_from(table).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl TryFrom<Table> for PyRecordBatch {
    type Error = Error;

    fn try_from(Table { mut batches, schema }: Table) -> Result<Self, Error> {
        let (count, only) = (batches.len(), batches.pop());
        let nbytes = batches.iter().chain(&only).map(RecordBatch::get_array_memory_size).sum();
        match only {
            _ if count > 1 => {
                Err(Error::CopyForbidden { reason: CopyReason::Chunks(count), nbytes })
            }
            Some(batch) => Ok(Self::new(batch)),
            None => Ok(Self::new(RecordBatch::new_empty(schema))),
        }
    }
}
