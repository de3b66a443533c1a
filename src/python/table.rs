//! Arrow data of any kind, columns and tables, to tensors.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::coded;
use super::dictionary::Meaning;
use super::error::{Asked, placed};
use super::ffi_validate::fenced;
use super::imported::Imported;
use super::names::{self, several};
use super::options::pointless;
use super::run::{exported, run_unlocked, unlocked};
use super::source::{self, Exported};
use super::tensor::PyTensor;
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::{Error, Refusals};
use crate::export::{self, ExportOptions, NullPolicy, Prepared, PreparedRagged, Source};
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;
use crate::pandas;
use crate::plan::{Plan, Step};

/// What a Python object holds, and what it took to get at it.
pub(super) struct Data {
    shape: Shape,
    /// What has been copied already.
    before: Plan,
}

enum Shape {
    Column(Vec<ArrayRef>, FieldRef),
    Table(Vec<RecordBatch>, SchemaRef),
}

/// A `Tensor` of an object's Arrow data, or with a mask a pair of them.
pub(super) fn to_tensor<'py>(
    object: &Bound<'py, PyAny>,
    columns: Option<Vec<String>>,
    options: &ExportOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let imported = match source::export(object, columns.as_deref())? {
        Exported::Pair(pair) if columns.is_none() && *options == ExportOptions::default() => {
            match pair.matrix()? {
                Ok(matrix) => return Ok(Bound::new(py, PyTensor::from(matrix))?.into_any()),
                Err(imported) => imported,
            }
        }
        Exported::Pair(pair) => pair.import(columns.as_deref())?,
        Exported::Imported(imported) => imported,
    };
    Data::of(py, imported, columns)?.to_tensor(py, options, Some(Asked::Tensor))
}

impl Data {
    /// The Arrow data of an object, less the columns that were not asked for.
    pub(super) fn read(object: &Bound<'_, PyAny>, columns: Option<Vec<String>>) -> PyResult<Self> {
        let imported = source::import_columns(object, columns.as_deref())?;
        Self::of(object.py(), imported, columns)
    }

    fn of(py: Python<'_>, imported: Imported, columns: Option<Vec<String>>) -> PyResult<Self> {
        // Chunks of a dictionary may need a new one.
        let nbytes = if imported.chunks.len() > 1 { imported.nbytes() } else { 0 };
        unlocked(py, nbytes, || Self::new(imported, columns))
    }

    pub(super) fn new(imported: Imported, columns: Option<Vec<String>>) -> PyResult<Self> {
        let Imported { chunks, field, moved, gathered } = imported;
        let mut before = Plan::default();
        if moved > 0 {
            before.steps.push(Step { nbytes: moved, reasons: vec![CopyReason::Realigned] });
        }
        let (count, nbytes) = gathered;
        if count > 0 {
            before.steps.push(Step { nbytes, reasons: vec![CopyReason::Chunks(count)] });
        }
        let shape = match table_schema(&field) {
            Some(schema) => {
                let batches = chunks.iter().map(|chunk| batch(chunk, &schema));
                let batches =
                    batches.collect::<Result<Vec<_>, _>>().map_err(PyValueError::new_err)?;
                let (batches, schema) = select(batches, schema, columns)?;
                let batches = unify_columns(batches, &schema, &mut before)?;
                Shape::Table(batches, schema)
            }
            None if columns.is_some() => {
                return Err(pointless("columns", "is for tables, and this is one column"));
            }
            None => Shape::Column(unify(chunks, &mut before)?, field),
        };
        Ok(Self { shape, before })
    }

    fn source(&self) -> Source<'_> {
        match &self.shape {
            Shape::Column(chunks, field) => Source::Chunks(chunks, field),
            Shape::Table(batches, schema) => Source::Table(batches, schema),
        }
    }

    /// A `Tensor`, or with a mask a pair of them.
    pub(super) fn to_tensor<'py>(
        &self,
        py: Python<'py>,
        options: &ExportOptions,
        asked: Option<Asked>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_copies(&self.before, options)?;
        let (field, chunk) = match &self.shape {
            Shape::Column(chunks, field) => (Some(field), chunks.first()),
            Shape::Table(..) => (None, None),
        };
        tensor(py, self.source(), field, chunk, options, asked)
    }

    /// What `to_tensor` makes with no options, and nothing but it.
    pub(super) fn to_managed(&self, py: Python<'_>) -> PyResult<ManagedTensor> {
        Ok(exported(py, self.source(), &ExportOptions::default())?)
    }

    /// A dict from each column's name to what `to_tensor` makes of it.
    pub(super) fn to_tensor_dict<'py>(
        &self,
        py: Python<'py>,
        options: &ExportOptions,
    ) -> PyResult<Bound<'py, PyDict>> {
        let Shape::Table(batches, schema) = &self.shape else {
            return Err(PyTypeError::new_err("to_tensor_dict takes a table: use to_tensor"));
        };
        check_copies(&self.before, options)?;
        let tensors = PyDict::new(py);
        for (index, field) in schema.fields().iter().enumerate() {
            let made = with_column(batches, index, field, |source, first| {
                tensor(py, source, Some(field), first, options, Some(Asked::Tensor))
            });
            let made = made.map_err(|error| {
                // What else is wrong belongs to it, and to each its column's name.
                refused(batches, schema, options)
                    .unwrap_or_else(|| placed(py, &column_name(field), error))
            });
            tensors.set_item(field.name(), made?)?;
            if tensors.len() == index {
                return Err(several(field.name(), 2));
            }
        }
        Ok(tensors)
    }

    /// What the conversion to a tensor would copy.
    pub(super) fn explain(&self, py: Python<'_>, options: &ExportOptions) -> PyResult<Plan> {
        check_copies(&self.before, options)?;
        let source = self.source();
        let plan = unlocked(py, source.nbytes(), || export::explain(source, options));
        let plan = plan.map_err(|error| Asked::Tensor.told(error))?;
        Ok(self.before.clone().and(plan))
    }

    /// What that to values and offsets would copy.
    pub(super) fn explain_ragged(
        &self,
        py: Python<'_>,
        options: &ExportOptions,
        offset_type: Option<DLDataType>,
    ) -> PyResult<Plan> {
        let (prepared, _, before) = self.prepare_ragged(py, options, offset_type)?;
        Ok(before.and(prepared.plan))
    }

    /// Values and offsets, and the mask if one was asked for; and what the values are codes of.
    pub(super) fn ragged(
        &self,
        py: Python<'_>,
        options: &ExportOptions,
        offset_type: Option<DLDataType>,
    ) -> PyResult<(export::Ragged, Option<Meaning>)> {
        let (prepared, array, _) = self.prepare_ragged(py, options, offset_type)?;
        let ragged = unlocked(py, prepared.plan.bytes_copied(), || prepared.run())?;
        Ok((ragged, Meaning::of(&array)))
    }

    /// Of the chunks put together; and what has been copied for it.
    fn prepare_ragged(
        &self,
        py: Python<'_>,
        options: &ExportOptions,
        offset_type: Option<DLDataType>,
    ) -> PyResult<(PreparedRagged, ArrayRef, Plan)> {
        check_copies(&self.before, options)?;
        let Shape::Column(chunks, field) = &self.shape else {
            return Err(PyTypeError::new_err("ragged takes one column, and this is a table"));
        };
        let (array, joined) = joined(py, chunks, field)?;
        check_copies(&joined, options)?;
        let nbytes = array.get_buffer_memory_size();
        let prepare = || PreparedRagged::new(&array, field, options, offset_type);
        let prepared = unlocked(py, nbytes, prepare);
        let prepared = prepared.map_err(|error| Asked::Ragged.told(error))?;
        Ok((prepared, array, self.before.clone().and(joined)))
    }
}

/// `copy=False` forbids what was done before it could be known, too.
pub(super) fn check_copies(before: &Plan, options: &ExportOptions) -> PyResult<()> {
    match before.steps.first() {
        Some(Step { nbytes, reasons }) if options.copy == CopyPolicy::Never => {
            Err(Error::CopyForbidden { reason: reasons[0], nbytes: *nbytes }.into())
        }
        _ => Ok(()),
    }
}

/// A `Tensor` of a source, with the field of a column and the dictionary of a chunk of it; with a mask, a pair
/// of them. Errors are in the words for whoever was asked, if it takes the options.
pub(super) fn tensor<'py>(
    py: Python<'py>,
    source: Source<'_>,
    field: Option<&FieldRef>,
    array: Option<&ArrayRef>,
    options: &ExportOptions,
    asked: Option<Asked>,
) -> PyResult<Bound<'py, PyAny>> {
    let meaning = array.and_then(Meaning::of);
    let told = |error| match asked {
        Some(asked) => asked.told(error),
        None => error,
    };
    let values = exported(py, source, options).map_err(told)?;
    let values = PyTensor::of_column(values, field, meaning);
    if options.nulls != NullPolicy::Masked {
        return Ok(Bound::new(py, values)?.into_any());
    }
    let mask =
        PyTensor::from(run_unlocked(py, source.nbytes(), || Prepared::mask(source, options))?);
    Ok((values, mask).into_pyobject(py)?.into_any())
}

/// Looks at a column of a table, and at its first chunk.
fn with_column<T>(
    batches: &[RecordBatch],
    index: usize,
    field: &FieldRef,
    look: impl FnOnce(Source<'_>, Option<&ArrayRef>) -> T,
) -> T {
    if let [batch] = batches {
        let column = batch.column(index);
        return look(Source::Array(column, field), Some(column));
    }
    let chunks: Vec<_> = batches.iter().map(|batch| Arc::clone(batch.column(index))).collect();
    look(Source::Chunks(&chunks, field), chunks.first())
}

/// The error for all columns that would be refused by themselves.
fn refused(batches: &[RecordBatch], schema: &Schema, options: &ExportOptions) -> Option<PyErr> {
    let mut refusals = Refusals::default();
    for (index, field) in schema.fields().iter().enumerate() {
        let plan = with_column(batches, index, field, |source, _| export::explain(source, options));
        refusals.note(field.name(), plan);
    }
    refusals.finish().err().map(|error| Asked::Tensor.told(error).into())
}

fn column_name(field: &Field) -> String {
    format!("column {:?}", field.name())
}

/// Chunks as one array, and what that copies.
fn joined(py: Python<'_>, chunks: &[ArrayRef], field: &FieldRef) -> PyResult<(ArrayRef, Plan)> {
    let mut before = Plan::default();
    let imported =
        Imported { chunks: chunks.to_vec(), field: field.clone(), moved: 0, gathered: (0, 0) };
    let (array, _) = imported.into_array(py)?;
    if chunks.len() > 1 {
        let nbytes = array.get_buffer_memory_size();
        before.steps.push(Step { nbytes, reasons: vec![CopyReason::Chunks(chunks.len())] });
    }
    Ok((array, before))
}

/// The schema of a table, and `None` for the field of one column.
pub(super) fn table_schema(field: &Field) -> Option<Schema> {
    match field.data_type() {
        // An extension type that is stored as a struct is a column, and no table.
        DataType::Struct(fields) if field.extension_type_name().is_none() => {
            Some(Schema::new_with_metadata(fields.clone(), field.metadata().clone()))
        }
        _ => None,
    }
}

/// A struct array as a batch: what is null in it is null in all its fields.
pub(super) fn batch(array: &ArrayRef, schema: &Schema) -> Result<RecordBatch, String> {
    let array = array.as_struct();
    let nullable = |field: &FieldRef| match field.is_nullable() {
        true => Arc::clone(field),
        false => Arc::new(Field::clone(field).with_nullable(true)),
    };
    let fields: Fields = schema.fields().iter().map(nullable).collect();
    let columns = array.columns().iter().map(|column| match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => with_nulls(column, nulls),
        _ => Ok(Arc::clone(column)),
    });
    fenced(|| {
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
    })
}

fn with_nulls(column: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef, ArrowError> {
    let nulls = NullBuffer::union(column.nulls(), Some(nulls));
    match column.data_type() {
        // They have no validity of their own, and no tensor form either.
        DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            Ok(Arc::clone(column))
        }
        _ => Ok(make_array(column.to_data().into_builder().nulls(nulls).build()?)),
    }
}

/// The columns that were asked for, in that order; all features of a row if nothing was said.
fn select(
    batches: Vec<RecordBatch>,
    schema: Schema,
    columns: Option<Vec<String>>,
) -> PyResult<(Vec<RecordBatch>, SchemaRef)> {
    let indices = match columns {
        Some(columns) => positions(&schema, &columns)?,
        None => features(&schema),
    };
    if indices.iter().copied().eq(0..schema.fields().len()) {
        return Ok((batches, Arc::new(schema)));
    }
    let project = || {
        let batches =
            batches.iter().map(|batch| batch.project(&indices)).collect::<Result<_, _>>()?;
        Ok((batches, Arc::new(schema.project(&indices)?)))
    };
    fenced(project).map_err(PyValueError::new_err)
}

/// Where the columns are that are no index of pandas's.
pub(super) fn features(schema: &Schema) -> Vec<usize> {
    let index = pandas::index_columns(schema);
    (0..schema.fields().len()).filter(|at| index.binary_search(at).is_err()).collect()
}

/// Where the columns of these names are, of each the only one.
pub(super) fn positions(schema: &Schema, wanted: &[String]) -> PyResult<Vec<usize>> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names::positions(&names, wanted)
}

/// Chunks of codes with one dictionary for all of them.
fn unify(chunks: Vec<ArrayRef>, before: &mut Plan) -> PyResult<Vec<ArrayRef>> {
    let Some(unified) = coded::unified(&chunks)? else { return Ok(chunks) };
    let nbytes = coded::nbytes(&unified);
    before.steps.push(Step { nbytes, reasons: vec![CopyReason::Dictionaries] });
    Ok(unified)
}

fn unify_columns(
    batches: Vec<RecordBatch>,
    schema: &SchemaRef,
    before: &mut Plan,
) -> PyResult<Vec<RecordBatch>> {
    let has_codes = |field: &FieldRef| coded::has_codes(field.data_type());
    if batches.len() < 2 || !schema.fields().iter().any(has_codes) {
        return Ok(batches);
    }
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); batches.len()];
    for index in 0..schema.fields().len() {
        let chunks = batches.iter().map(|batch| Arc::clone(batch.column(index))).collect();
        for (column, chunk) in columns.iter_mut().zip(unify(chunks, before)?) {
            column.push(chunk);
        }
    }
    let rebuild = |(batch, columns): (&RecordBatch, Vec<ArrayRef>)| {
        fenced(|| RecordBatch::try_new(batch.schema(), columns))
    };
    let batches = batches.iter().zip(columns).map(rebuild).collect::<Result<_, _>>();
    batches.map_err(PyValueError::new_err)
}
