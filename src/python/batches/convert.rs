//! Batches as tensors, made without the interpreter, and handed to it.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Error;
use crate::export::{self, Export, NullPolicy, Source};
use crate::plan::Plan;
use crate::python::PyTensor;
use crate::python::structure::fenced;
use crate::python::table::unify_columns;

/// What becomes of the rows of a batch.
pub(super) struct Form {
    /// Of the columns that are read; the label is the last of them.
    pub(super) schema: SchemaRef,
    pub(super) is_table: bool,
    pub(super) has_label: bool,
    pub(super) as_matrix: bool,
    pub(super) features: Export,
    pub(super) label: Export,
}

/// A batch that is made, but no Python objects yet.
pub(super) struct Batch {
    features: Features,
    label: Option<Made>,
    pub(super) rows: usize,
}

enum Features {
    Dict(Vec<(FieldRef, Made)>),
    Matrix(Made),
}

struct Made {
    values: PyTensor,
    mask: Option<PyTensor>,
}

impl Form {
    /// Of at least one piece.
    pub(super) fn batch(&self, pieces: Vec<RecordBatch>) -> PyResult<Batch> {
        let pieces = unify_columns(pieces, &self.schema, &mut Plan::default())?;
        let rows = pieces.iter().map(RecordBatch::num_rows).sum();
        let fields = self.schema.fields();
        let width = fields.len() - usize::from(self.has_label);
        let features = if !self.as_matrix {
            let columns = fields.iter().take(width).enumerate().map(|(index, field)| {
                let made = column(&pieces, index, field, &self.features);
                Ok((Arc::clone(field), made.map_err(|error| in_column(field, error))?))
            });
            Features::Dict(columns.collect::<Result<_, Error>>()?)
        } else if self.is_table {
            Features::Matrix(self.matrix(&pieces, width)?)
        } else {
            Features::Matrix(column(&pieces, 0, &fields[0], &self.features)?)
        };
        let label = fields.iter().enumerate().nth(width).map(|(index, field)| {
            column(&pieces, index, field, &self.label).map_err(|error| in_column(field, error))
        });
        Ok(Batch { features, label: label.transpose()?, rows })
    }

    fn matrix(&self, pieces: &[RecordBatch], width: usize) -> PyResult<Made> {
        if !self.has_label {
            return Ok(made(Source::Table(pieces, &self.schema), None, None, &self.features)?);
        }
        let features: Vec<usize> = (0..width).collect();
        let projected = fenced(|| {
            let pieces = pieces.iter().map(|piece| piece.project(&features));
            Ok((pieces.collect::<Result<Vec<_>, _>>()?, self.schema.project(&features)?))
        });
        let (pieces, schema) = projected.map_err(PyValueError::new_err)?;
        Ok(made(Source::Table(&pieces, &schema), None, None, &self.features)?)
    }
}

fn column(
    pieces: &[RecordBatch],
    index: usize,
    field: &FieldRef,
    options: &Export,
) -> Result<Made, Error> {
    if let [piece] = pieces {
        let array = piece.column(index);
        return made(Source::Array(array, field), Some(field), Some(array), options);
    }
    let chunks: Vec<ArrayRef> = pieces.iter().map(|piece| piece.column(index).clone()).collect();
    made(Source::Chunks(&chunks, field), Some(field), chunks.first(), options)
}

fn made(
    source: Source<'_>,
    field: Option<&FieldRef>,
    array: Option<&ArrayRef>,
    options: &Export,
) -> Result<Made, Error> {
    let values = PyTensor::of_column(export::tensor(source, options)?, field, array);
    let mask = match options.nulls {
        NullPolicy::Masked => Some(PyTensor::from(export::mask(source, options)?)),
        _ => None,
    };
    Ok(Made { values, mask })
}

fn in_column(field: &FieldRef, error: Error) -> Error {
    Error::Column { name: field.name().clone(), error: Box::new(error) }
}

impl Batch {
    /// The features, or with a label a pair of both.
    pub(super) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let features = match self.features {
            Features::Matrix(matrix) => matrix.into_python(py)?,
            Features::Dict(columns) => {
                let dict = PyDict::new(py);
                for (field, made) in columns {
                    dict.set_item(field.name(), made.into_python(py)?)?;
                }
                dict.into_any()
            }
        };
        match self.label {
            None => Ok(features),
            Some(label) => Ok((features, label.into_python(py)?).into_pyobject(py)?.into_any()),
        }
    }
}

impl Made {
    /// A tensor, or with a mask a pair of them.
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self.mask {
            None => Ok(Bound::new(py, self.values)?.into_any()),
            Some(mask) => Ok((self.values, mask).into_pyobject(py)?.into_any()),
        }
    }
}
