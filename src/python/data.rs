//! Arrow data of any kind, columns and tables, to tensors.

use std::{iter, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::{intern, prelude::*, sync::PyOnceLock, types::PyDict};

use super::args::pointless;
use super::arrow::imported::Imported;
use super::describe::type_name;
use super::errors::Asked;
use super::numpy::buffer_import::buffer;
use super::protocols::{class_has, class_is_arrow, methods};
use super::runtime::{exported, unlocked};
use super::source::{self, Received};
use super::tensor::PyTensor;
use crate::chunks::{Meaning, batch, checked};
use crate::error::Names;
use crate::export::{self, Exported, PadOptions, PreparedPadded, PreparedRagged, Source};
use crate::ffi::DLDataType;
use crate::{
    CopyPolicy, CopyReason, Error, ExportOptions, ManagedTensor, NullPolicy, Order, Plan, Step,
    arrow_types, columns,
};

/// The Arrow data of a Python object, and what its import copied.
pub(super) struct Data {
    shape: Shape,
    /// The copies that the import made.
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
    refuse_image(object)?;
    refuse_none(columns.as_deref())?;
    let is_copied = options.are_of_a_copied_matrix();
    if is_copied {
        if let Some(matrix) = matrix_of_frame(object, columns.as_deref(), options)? {
            return Ok(Bound::new(py, PyTensor::from(matrix))?.into_any());
        }
    }
    let imported = match source::receive(object, columns.as_deref())? {
        Received::Pair(pair) if is_copied => match pair.matrix(columns.as_deref(), options)? {
            Ok(matrix) => return Ok(Bound::new(py, PyTensor::from(matrix))?.into_any()),
            Err(imported) => imported,
        },
        Received::Pair(pair) => pair.import(columns.as_deref())?,
        Received::Imported(imported) => imported,
    };
    Data::new(imported, columns)?.to_tensor(py, options, Asked::Tensor)
}

/// Refuses Arrow data that are the pixels of an image, one after another: its height and width are in
/// `__array_interface__` alone.
fn refuse_image(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_image = class_has(object, intern!(object.py(), "__array_interface__")) == Some(true);
    if is_image && class_is_arrow(object) {
        return Err(PyTypeError::new_err(format!(
            "the Arrow data of {} are its pixels without height and width: asdlpack(x) is a tensor of its shape, and \
             Array(x) the column of pixels",
            type_name(object)
        )));
    }
    Ok(())
}

/// Refuses an empty `columns=` of what becomes one tensor.
pub(super) fn refuse_none(columns: Option<&[String]>) -> PyResult<()> {
    match columns {
        Some([]) => Err(PyValueError::new_err("columns= is empty: name at least one column")),
        _ => Ok(()),
    }
}

/// The matrix of a small frame of pandas whose columns have one dtype, by `DataFrame.to_numpy`; `None` of everything else.
///
/// pandas exports a frame by a conversion of pyarrow's, which takes most of a millisecond however few rows there are. A frame
/// that this way does not take, or of which a value does not fit, takes the usual one, which has the same result or the
/// error.
fn matrix_of_frame(
    object: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
    options: &ExportOptions,
) -> PyResult<Option<ManagedTensor>> {
    static NUMBERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let py = object.py();
    let [array, _stream] = methods(py);
    if class_has(object, array) != Some(false) {
        return Ok(None);
    }
    let Some(function) = source::of_frames(py, &NUMBERS, "numbers")? else { return Ok(None) };
    let numbers = function.call1((object, wanted, options.nulls == NullPolicy::Nan))?;
    if numbers.is_none() {
        return Ok(None);
    }
    // Of a long double the usual way says that Arrow has not got it.
    let Ok(values) = buffer(&numbers) else { return Ok(None) };
    let data_type = values.dtype().to_arrow();
    let dtype = data_type.and_then(|own| export::matrix_dtype(iter::once(&own), options));
    Ok(dtype.and_then(|dtype| values.cast(dtype).ok()))
}

impl Data {
    /// The Arrow data of an object, with the requested columns only.
    pub(super) fn read(object: &Bound<'_, PyAny>, columns: Option<Vec<String>>) -> PyResult<Self> {
        refuse_image(object)?;
        let imported = source::import(object, columns.as_deref())?;
        Self::new(imported, columns)
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
        let shape = match export::table_schema(&field) {
            Some(schema) => {
                let batches = chunks.iter().map(|chunk| batch(chunk, &schema));
                let batches = batches.collect::<Result<Vec<_>, _>>()?;
                let (batches, schema) = select(batches, schema, columns)?;
                Shape::Table(batches, schema)
            }
            None if columns.is_some() => {
                return Err(pointless("columns", "is for tables, and this is one column"));
            }
            None => Shape::Column(chunks, field),
        };
        Ok(Self { shape, before })
    }

    pub(super) fn source(&self) -> Source<'_> {
        match &self.shape {
            Shape::Column(chunks, field) => Source::Chunks(chunks, field),
            Shape::Table(batches, schema) => Source::Table(batches, schema),
        }
    }

    /// That of a column.
    pub(super) fn field(&self) -> Option<&FieldRef> {
        match &self.shape {
            Shape::Column(_, field) => Some(field),
            Shape::Table(..) => None,
        }
    }

    /// A `Tensor`, or with a mask a pair of them.
    pub(super) fn to_tensor<'py>(
        &self,
        py: Python<'py>,
        options: &ExportOptions,
        asked: Asked<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_copies(&self.before, options)?;
        tensor(py, self.source(), self.field(), options, asked)
    }

    /// The tensor that `to_tensor` makes with default options.
    pub(super) fn to_managed(&self, py: Python<'_>) -> PyResult<ManagedTensor> {
        Ok(exported(py, self.source(), &ExportOptions::default())?.values)
    }

    /// A dict from each column's name to its tensor.
    pub(super) fn to_tensor_dict<'py>(
        &self,
        py: Python<'py>,
        options: &ExportOptions,
    ) -> PyResult<Bound<'py, PyDict>> {
        let Shape::Table(batches, schema) = &self.shape else {
            return Err(PyTypeError::new_err("to_tensor_dict takes a table: use to_tensor"));
        };
        check_copies(&self.before, options)?;
        let refusal = |error| Asked::Tensor.refusal(error);
        let prepare = || export::prepare_columns(Source::Table(batches, schema), options);
        let prepared = unlocked(py, self.source().nbytes(), prepare).map_err(refusal)?;
        let columns = unlocked(py, prepared.bytes_copied(), || prepared.run()).map_err(refusal)?;
        let tensors = PyDict::new(py);
        for (index, (field, made)) in columns.into_iter().enumerate() {
            tensors.set_item(field.name(), python(py, made, Some(&field))?)?;
            if tensors.len() == index {
                return Err(Error::SeveralColumns { name: field.name().clone(), count: 2 }.into());
            }
        }
        Ok(tensors)
    }

    /// The plan of the conversion to a tensor.
    pub(super) fn explain(&self, py: Python<'_>, options: &ExportOptions) -> PyResult<Plan> {
        check_copies(&self.before, options)?;
        let source = self.source();
        let plan = unlocked(py, source.nbytes(), || export::explain(source, options));
        let plan = plan.map_err(|error| Asked::Tensor.refusal(error))?;
        Ok(self.plan(plan))
    }

    /// The plan of a conversion, behind what the import copied.
    pub(super) fn plan(&self, conversion: Plan) -> Plan {
        self.before.clone().and(conversion)
    }

    /// Padded rows and their lengths, to be run.
    pub(super) fn padded(
        &self,
        object: &Bound<'_, PyAny>,
        options: &ExportOptions,
        pad: &PadOptions,
    ) -> PyResult<PreparedPadded> {
        if options.order != Order::default() {
            return Err(pointless("order", "is not for pad="));
        }
        self.rows(object, Asked::Padded, options, |source| {
            export::prepare_padded(source, pad, options)
        })
    }

    /// Values and offsets, the mask if one was requested, and the dictionary of the values, to be run.
    pub(super) fn ragged(
        &self,
        object: &Bound<'_, PyAny>,
        options: &ExportOptions,
        offset_type: Option<DLDataType>,
    ) -> PyResult<PreparedRagged> {
        let prepare = |source: Source<'_>| export::prepare_ragged(source, offset_type, options);
        self.rows(object, Asked::Ragged, options, prepare)
    }

    /// The conversion of the rows of a single column. `object`: what it was read from, for errors.
    fn rows<P: Send>(
        &self,
        object: &Bound<'_, PyAny>,
        asked: Asked<'_>,
        options: &ExportOptions,
        prepare: impl FnOnce(Source<'_>) -> Result<P, Error> + Send,
    ) -> PyResult<P> {
        check_copies(&self.before, options)?;
        let (chunks, field) = match &self.shape {
            Shape::Column(chunks, field) => (chunks, field),
            Shape::Table(_, schema) => {
                let mut kinds = [arrow_types::is_variable_list, arrow_types::is_ragged].into_iter();
                let fields = schema.fields();
                let of_rows =
                    kinds.find_map(|is| fields.iter().find(|field| is(field.data_type())));
                let way_out = of_rows.map_or_else(String::new, |field| {
                    format!(": pass {}[{}] for one", table_of(object), Names(&[field.name()]))
                });
                let what = if matches!(asked, Asked::Padded) { "pad=" } else { "ragged" };
                let message = format!("{what} takes one column, and this is a table{way_out}");
                return Err(PyTypeError::new_err(message));
            }
        };
        let source = Source::Chunks(chunks, field);
        let prepared = unlocked(object.py(), source.nbytes(), || prepare(source));
        prepared.map_err(|error| asked.refusal(error))
    }
}

/// What has the columns of a table: another relation, or nothing, is what some results of queries have by a name.
fn table_of(object: &Bound<'_, PyAny>) -> &'static str {
    let makes = [("to_arrow_table", "x.to_arrow_table()"), ("read_all", "x.read_all()")];
    let has = |name: &str| object.hasattr(name).unwrap_or(false);
    makes.into_iter().find_map(|(name, made)| has(name).then_some(made)).unwrap_or("table")
}

/// Refuses copies that the import made, under `copy=False`.
pub(super) fn check_copies(before: &Plan, options: &ExportOptions) -> PyResult<()> {
    match before.steps.first() {
        Some(Step { nbytes, reasons }) if options.copy == CopyPolicy::Never => {
            Err(Error::CopyForbidden { reason: reasons[0], nbytes: *nbytes }.into())
        }
        _ => Ok(()),
    }
}

/// A `Tensor` of a source, with the field of a column; with a mask, a pair of them. Errors name the options of
/// the function that was called, if it takes them.
pub(super) fn tensor<'py>(
    py: Python<'py>,
    source: Source<'_>,
    field: Option<&FieldRef>,
    options: &ExportOptions,
    asked: Asked<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = exported(py, source, options).map_err(|error| asked.refusal(error))?;
    python(py, made, field)
}

/// A `Tensor`, or with a mask a pair of them.
fn python<'py>(
    py: Python<'py>,
    made: Exported,
    field: Option<&FieldRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let Exported { values, mask, dictionary } = made;
    let values = PyTensor::of_column(values, field, dictionary.map(Meaning::Array));
    values.with_mask(py, mask)
}

/// The requested columns, in that order; by default all but an index of pandas's.
fn select(
    batches: Vec<RecordBatch>,
    schema: Schema,
    columns: Option<Vec<String>>,
) -> PyResult<(Vec<RecordBatch>, SchemaRef)> {
    let indices = match columns {
        Some(columns) => {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            columns::of_names(&schema, &columns)?
        }
        None => columns::features(&schema),
    };
    if indices.iter().copied().eq(0..schema.fields().len()) {
        return Ok((batches, Arc::new(schema)));
    }
    let project = || {
        let batches =
            batches.iter().map(|batch| batch.project(&indices)).collect::<Result<_, _>>()?;
        Ok((batches, Arc::new(schema.project(&indices)?)))
    };
    Ok(checked(project)?)
}
