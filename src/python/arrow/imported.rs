//! Arrow data imported from Python.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use pyo3::prelude::*;

use super::super::runtime::unlocked;
use crate::{CopyReason, Error, arrow_types::child_types, chunks};

/// Arrow data in its original chunks.
pub(in crate::python) struct Imported {
    /// At least one; for a stream, the non-empty ones if there are any.
    pub(in crate::python) chunks: Vec<ArrayRef>,
    pub(in crate::python) field: FieldRef,
    /// Bytes that were moved because they were not aligned to their values.
    pub(in crate::python) moved: usize,
    /// How many chunks of a stream were joined to larger ones, and their bytes.
    pub(in crate::python) gathered: (usize, usize),
}

impl Imported {
    /// All chunks as one; a single one is not copied.
    pub(in crate::python) fn into_array(self, py: Python<'_>) -> PyResult<(ArrayRef, FieldRef)> {
        if let [chunk] = self.chunks.as_slice() {
            return Ok((Arc::clone(chunk), self.field));
        }
        let array = unlocked(py, self.nbytes(), || chunks::concat(&self.chunks))?;
        Ok((array, self.field))
    }

    /// One array in memory with no other owner, checked there. Chunks are joined first, which copies all but
    /// dictionaries and byte views.
    pub(in crate::python) fn copied(self, py: Python<'_>) -> PyResult<Self> {
        let (nbytes, gathered) = (self.nbytes(), (0, 0));
        let is_new = self.chunks.len() > 1 && !joins_share(self.field.data_type());
        let (array, field) = self.into_array(py)?;
        let copy = match is_new {
            true => array,
            false => unlocked(py, nbytes, || chunks::everything(&array))?,
        };
        Ok(Self { chunks: vec![copy], field, moved: 0, gathered })
    }

    /// The data, if it is one array and nothing was copied for it.
    pub(in crate::python) fn uncopied(self) -> PyResult<Self> {
        let reason = match self.chunks.len() {
            1 if self.moved == 0 => return Ok(self),
            1 => CopyReason::Realigned,
            count => CopyReason::Chunks(count),
        };
        let nbytes = if self.moved > 0 { self.moved } else { self.nbytes() };
        Err(Error::CopyForbidden { reason, nbytes }.into())
    }

    /// Bytes of the buffers of all chunks.
    pub(in crate::python) fn nbytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.get_buffer_memory_size()).sum()
    }
}

/// Whether a join of several chunks may keep some of their memory.
fn joins_share(data_type: &DataType) -> bool {
    use DataType::{BinaryView, Dictionary, Utf8View};
    matches!(data_type, Dictionary(..) | Utf8View | BinaryView)
        || child_types(data_type).into_iter().any(|(child, _)| joins_share(child))
}
