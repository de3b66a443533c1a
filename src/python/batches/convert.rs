//! Batches as tensors, made without the interpreter, and handed to it.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chunks::{Coded, Meaning, checked};
use crate::error::{Error, Refusals};
use crate::export::{self, ExportOptions, Exported, Prepared, Source};
use crate::python::error::Asked;
use crate::python::tensor::PyTensor;

/// What becomes of the rows of a batch.
pub(super) struct Form {
    /// Of the columns that are read; the label is the last of them.
    pub(super) schema: SchemaRef,
    /// Which of them are codes.
    pub(super) coded: Vec<Option<Arc<Coded>>>,
    pub(super) is_table: bool,
    pub(super) has_label: bool,
    pub(super) as_matrix: bool,
    pub(super) features: ExportOptions,
    pub(super) label: ExportOptions,
}

/// A batch that is made, but no Python objects yet.
pub(super) struct Batch {
    features: Features<Made>,
    label: Option<Made>,
    pub(super) rows: usize,
}

enum Features<T> {
    Dict(Vec<(FieldRef, T)>),
    Matrix(T),
}

struct Made {
    values: PyTensor,
    mask: Option<PyTensor>,
}

/// What is decided, before it is done: of the rows it holds nothing but the memory that the tensor needs.
struct Planned {
    prepared: Prepared,
    field: Option<FieldRef>,
    meaning: Option<Meaning>,
}

impl Form {
    /// Of at least one piece.
    pub(super) fn batch(&self, pieces: Vec<RecordBatch>) -> PyResult<Batch> {
        let rows = pieces.iter().map(RecordBatch::num_rows).sum();
        let fields = self.schema.fields();
        let width = fields.len() - usize::from(self.has_label);
        let meaning = |index: usize| self.coded[index].as_ref().map(|coded| coded.meaning());
        let meanings = (0..fields.len()).map(meaning).map(Option::transpose);
        let meanings = meanings.collect::<Result<Vec<_>, Error>>()?;
        let column = |index: usize, options| {
            let field = &fields[index];
            let told = self.coded[index].as_ref().map_or(field, |coded| &coded.field);
            column(&pieces, index, field, options, ArraySpec(told, meanings[index].clone()))
        };
        let planned = |index: usize, options| -> Result<_, Error> {
            Ok((Arc::clone(&fields[index]), column(index, options)?))
        };
        let mut refusals = Refusals::default();
        let features = if !self.as_matrix {
            let mut columns = Vec::with_capacity(width);
            for index in 0..width {
                let planned = planned(index, &self.features);
                columns.extend(refusals.note(fields[index].name(), planned));
            }
            Some(Features::Dict(columns))
        } else if self.is_table {
            refusals.note_all(self.matrix(&pieces, width)?).map(Features::Matrix)
        } else {
            let column = column(0, &self.features);
            Some(Features::Matrix(column.map_err(|error| Asked::Batches.told(error))?))
        };
        let label = self.has_label.then(|| planned(width, &self.label));
        let label = label.and_then(|label| refusals.note(fields[width].name(), label));
        refusals.finish().map_err(|error| Asked::Batches.told(error))?;
        let Some(features) = features else { return Err(Error::NoColumns.into()) };
        // Rows that nobody else holds are the tensors' own, where these are to have their own.
        drop(pieces);
        let made = |(field, planned): (FieldRef, Planned)| match planned.make() {
            Ok(made) => Ok((field, made)),
            Err(error) => Err(in_column(&field, error)),
        };
        let features = match features {
            Features::Dict(columns) => {
                Features::Dict(columns.into_iter().map(made).collect::<Result<_, _>>()?)
            }
            Features::Matrix(matrix) => Features::Matrix(matrix.make()?),
        };
        let label = label.map(made).transpose()?.map(|(_, label)| label);
        Ok(Batch { features, label, rows })
    }

    fn matrix(&self, pieces: &[RecordBatch], width: usize) -> PyResult<Result<Planned, Error>> {
        let planned = |pieces: &[RecordBatch], schema: &Schema| {
            planned(Source::Table(pieces, schema), None, &self.features)
        };
        if !self.has_label {
            return Ok(planned(pieces, &self.schema));
        }
        let features: Vec<usize> = (0..width).collect();
        let projected = checked(|| {
            let pieces = pieces.iter().map(|piece| piece.project(&features));
            Ok((pieces.collect::<Result<Vec<_>, _>>()?, self.schema.project(&features)?))
        });
        let (pieces, schema) = projected?;
        Ok(planned(&pieces, &schema))
    }
}

fn column(
    pieces: &[RecordBatch],
    index: usize,
    field: &FieldRef,
    options: &ExportOptions,
    told: ArraySpec<'_>,
) -> Result<Planned, Error> {
    if let [piece] = pieces {
        return planned(Source::Array(piece.column(index), field), Some(told), options);
    }
    let chunks: Vec<ArrayRef> = pieces.iter().map(|piece| piece.column(index).clone()).collect();
    planned(Source::Chunks(&chunks, field), Some(told), options)
}

/// What a tensor says of its column.
struct ArraySpec<'a>(&'a FieldRef, Option<Meaning>);

fn planned(
    source: Source<'_>,
    told: Option<ArraySpec<'_>>,
    options: &ExportOptions,
) -> Result<Planned, Error> {
    let prepared = export::prepare(source, options)?;
    let (field, meaning) = match told {
        Some(ArraySpec(field, meaning)) => (Some(Arc::clone(field)), meaning),
        None => (None, None),
    };
    Ok(Planned { prepared, field, meaning })
}

impl Planned {
    fn make(self) -> Result<Made, Error> {
        let Exported { values, mask, .. } = self.prepared.run()?;
        let values = PyTensor::of_column(values, self.field.as_ref(), self.meaning);
        Ok(Made { values, mask: mask.map(PyTensor::from) })
    }
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
