//! Arrow data of several arrays, for arguments of other extensions' functions.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use pyo3::{exceptions::PyTypeError, prelude::*};

use super::{
    array::PyArray, arrow::imported::Imported, protocols::is_arrow, source, table::table_schema,
};
use crate::{chunks::batch, export::Source};

/// An argument that is Arrow data of one type in any number of arrays: chunked arrays, series, streams; an array is
/// one chunk. A tensor is one too, copied.
///
/// The chunks are kept, unlike in a [`PyArray`], which concatenates them; only small chunks of a stream are
/// joined as it is read. It is a [`Source`] of conversions.
///
/// ```
/// use arrow_dlpack::python::{Chunks, PyTensor};
/// use arrow_dlpack::{ExportOptions, export};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn tensors(column: Chunks) -> PyResult<Vec<PyTensor>> {
///     let each = |chunk| export::tensor((chunk, &*column.field), &ExportOptions::default());
///     Ok(column.chunks.iter().map(|chunk| each(chunk).map(PyTensor::from)).collect::<Result<_, _>>()?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Chunks {
    /// The arrays, in order. Arguments from Python have at least one, and if there are several, none is empty.
    pub chunks: Vec<ArrayRef>,
    /// The field of each array.
    pub field: FieldRef,
}

/// An argument that is a table: record batches, data frames, streams of either, arrays of structs.
///
/// It is a [`Source`] of conversions, as a matrix. It has all columns, including an index of pandas's:
/// [`index_columns`](crate::pandas::index_columns) names those.
///
/// ```
/// use arrow_dlpack::python::{PyTensor, Table};
/// use arrow_dlpack::{ExportOptions, export};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn matrix(table: Table) -> PyResult<PyTensor> {
///     Ok(export::tensor(&table, &ExportOptions::default())?.into())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    /// The rows. Arguments from Python have at least one batch, and if there are several, none is empty.
    pub batches: Vec<RecordBatch>,
    /// The schema of each batch.
    pub schema: SchemaRef,
}

impl<'py> FromPyObject<'_, 'py> for Chunks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_arrow(&object)? {
            let imported = source::import(&object, None)?;
            return Ok(Self { chunks: imported.chunks, field: imported.field });
        }
        let (array, field) = object.extract::<PyArray>()?.into_inner();
        Ok(Self { chunks: vec![array], field })
    }
}

impl<'py> FromPyObject<'_, 'py> for Table {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Imported { chunks, field, .. } = source::import(&object, None)?;
        let Some(schema) = table_schema(&field) else {
            let data_type = field.data_type();
            return Err(PyTypeError::new_err(format!("expected a table, got {data_type}")));
        };
        let batches = chunks.iter().map(|chunk| batch(chunk, &schema));
        Ok(Self { batches: batches.collect::<Result<_, _>>()?, schema: schema.into() })
    }
}

/// One batch.
impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

impl<'a> From<&'a Chunks> for Source<'a> {
    fn from(Chunks { chunks, field }: &'a Chunks) -> Self {
        Self::Chunks(chunks, field)
    }
}

impl<'a> From<&'a Table> for Source<'a> {
    fn from(Table { batches, schema }: &'a Table) -> Self {
        Self::Table(batches, schema)
    }
}
