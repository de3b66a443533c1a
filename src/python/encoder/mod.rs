//! What `Encoder` of the Python package calls: rows of a request as what a batch of training is.
//!
//! - `conform` makes Arrow columns of a request those of training, `objects` Python's objects, such as those of JSON.
//! - `axes` has rows that are tensors: the order of their axes, and lists in lists.
//! - `schema` has the schema of training as texts and numbers, and back.

mod axes;
mod conform;
mod objects;
pub(super) mod schema;

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use pyo3::exceptions::{PyException, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};

use self::conform::{Mismatch, conformed, nulls, times_of};
use self::objects::{Cell, PyCells, is_text, mapped, present};
use super::advice::{is_null, is_of_ml_dtypes, kind_of_times, listed, of_times};
use super::args::{Items, TypeArg};
use super::array::PyArray;
use super::assemble;
use super::batches::forms::{BatchOptionsArg, into_python, not_opened};
use super::describe::{described, type_name};
use super::dlpack::consume;
use super::errors::{Asked, Wishes, placed};
use super::field::{PyField, type_with_extension};
use super::runtime::unlocked;
use super::source;
use crate::arrow_types::item_of;
use crate::batches::{Encoder, Form};
use crate::chunks::{batch, checked, reserve};
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::import::Representation;
use crate::{Error, alloc, columns};

/// Makes of rows what a batch of the same options is.
#[pyclass(name = "_Encoder", module = "arrow_dlpack._core", frozen)]
pub(super) struct PyEncoder {
    encoder: Encoder,
    /// Of each column what a request is made to be: that of training, of categories that of the values.
    columns: Vec<TrainedColumn>,
    labels: usize,
    wishes: Wishes,
}

struct TrainedColumn {
    field: FieldRef,
    /// Whether rows may lack it, which are null there.
    may_lack: bool,
    is_coded: bool,
}

/// A column of a request: its values and the field that it has there.
type Found = (ArrayRef, FieldRef);

#[pymethods]
impl PyEncoder {
    /// schema: of the columns in training. options: what they become. may_lack: names of those that requests may lack.
    #[new]
    #[pyo3(signature = (schema, options, /, may_lack))]
    fn new(
        schema: &Bound<'_, PyAny>,
        options: BatchOptionsArg,
        may_lack: Items<String>,
    ) -> PyResult<Self> {
        let field = source::field(schema, None)?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(PyTypeError::new_err("schema must be one of a table"));
        };
        let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
        let options = options.0;
        let encoder = Encoder::try_new(&schema, &options);
        let encoder = encoder.map_err(|error| not_opened(error, &options))?;
        let coded = options.column_options.iter();
        let coded = coded.filter(|(_, own)| matches!(own.form, Form::Categories(_)));
        let coded: HashSet<&str> = coded.map(|(name, _)| name.as_str()).collect();
        let may_lack: HashSet<String> = may_lack.0.into_iter().collect();
        let column = |field: &FieldRef| {
            let is_coded = coded.contains(field.name().as_str());
            let values = if is_coded { of_values(field) } else { Arc::clone(field) };
            TrainedColumn { may_lack: may_lack.contains(field.name()), is_coded, field: values }
        };
        let columns: Vec<_> = encoder.schema().fields().iter().map(column).collect();
        let (labels, wishes) = (options.labels.len(), Wishes::of(&options));
        Ok(Self { encoder, columns, labels, wishes })
    }

    /// What a batch of these rows is; with `label` the pair of features and labels.
    fn encode<'py>(&self, rows: &Bound<'py, PyAny>, label: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = rows.py();
        let wanted = match label {
            true => &self.columns[..],
            false => &self.columns[..self.columns.len() - self.labels],
        };
        let (found, count) = match (rows.cast::<PyDict>(), listed(rows)?) {
            (Ok(columns), _) => of_columns(columns, wanted)?,
            (_, Some(rows)) => of_rows(py, &rows, wanted)?,
            _ => of_table(rows, wanted)?,
        };
        let nbytes = found.iter().map(|(array, _)| array.get_buffer_memory_size()).sum();
        let made = unlocked(py, nbytes, || self.encoder.encode_columns(&found, count, label));
        into_python(
            py,
            made.map_err(|error| Asked::Batches(&self.wishes.of_request(&found)).refusal(error))?,
        )
    }

    /// The columns that are read, with their types in training; the labels are the last ones.
    #[getter]
    fn schema(&self) -> PyField {
        let fields = self.encoder.schema().fields().clone();
        PyField(Arc::new(Field::new("", DataType::Struct(fields), false)))
    }
}

impl TrainedColumn {
    fn conformed(&self, array: &ArrayRef, field: &FieldRef) -> PyResult<Found> {
        let is_found_as_it_is = |of: &DataType| match of {
            DataType::Dictionary(_, values) => **values == *self.field.data_type(),
            _ => false,
        };
        if self.is_coded && is_found_as_it_is(field.data_type()) {
            return Ok((
                Arc::clone(array),
                Arc::new(field.as_ref().clone().with_name(self.field.name())),
            ));
        }
        let made = conformed(array, field, &self.field);
        let made = made.map_err(|mismatch| mismatch.of_column(self.field.name()))?;
        Ok((made, Arc::clone(&self.field)))
    }

    /// The dtype of its values, or of what its lists hold, where Arrow has only their bits.
    fn dtype_of_bits(&self) -> Option<DLDataType> {
        let mut values = &self.field;
        while let Some(items) = item_of(values.data_type()) {
            values = items;
        }
        Extension::dtype_of_bits(values)
    }

    /// What makes this column of an array of which NumPy makes no tensor; `None` where the error tells it.
    fn way_from_numpy(&self, array: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        if let Some(dtype) = self.dtype_of_bits() {
            let is_number = is_of_ml_dtypes(array)?;
            return Ok(is_number
                .then(|| format!("jax.numpy.asarray(x, \"{dtype}\") is a tensor of {dtype}")));
        }
        let Some(kind) = kind_of_times(array)? else { return Ok(None) };
        let to = self.field.data_type();
        let is_duration = matches!(to, DataType::Duration(_));
        Ok(if to.is_numeric() {
            Some("x.view(\"int64\") has its numbers as a tensor".to_owned())
        } else if !to.is_temporal() {
            None
        } else if is_duration == (kind == 'm') {
            of_times(array)?.map(|way_out| way_out.to_string())
        } else {
            Some(format!("pass {}", times_of(to)))
        })
    }

    fn nulls(&self, rows: usize) -> PyResult<Found> {
        let made = nulls(self.field.data_type(), rows);
        let made = made.map_err(|mismatch: Mismatch| mismatch.of_column(self.field.name()))?;
        Ok((made, Arc::clone(&self.field)))
    }
}

/// The values of a dictionary, in place of it.
fn of_values(field: &FieldRef) -> FieldRef {
    let DataType::Dictionary(_, values) = field.data_type() else { return Arc::clone(field) };
    Arc::new(Field::clone(field).with_data_type(DataType::clone(values)))
}

/// The names of a table's or frame's columns, where it tells them; of pandas's with the levels of the index.
fn names_of(rows: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    if rows.hasattr("iloc")? {
        let frames = rows.py().import("arrow_dlpack._frames")?;
        let (columns, levels): (Vec<String>, Vec<String>) =
            frames.call_method1("frame_names", (rows,))?.extract()?;
        return Ok(Some([columns, levels].concat()));
    }
    let schema = rows.getattr_opt("schema")?;
    let names = schema.map(|schema| schema.getattr_opt("names")).transpose()?.flatten();
    let names = match names.filter(|names| !names.is_callable()) {
        Some(names) => names,
        None => match rows.getattr_opt("columns")? {
            Some(names) => names,
            None => return Ok(None),
        },
    };
    let names = names.try_iter()?.map(|name| name?.extract());
    Ok(Some(names.collect::<PyResult<_>>()?))
}

/// A path, and what may be the column that it begins with: "a.b.c", "a.b", "a".
fn heads(path: &str) -> Vec<String> {
    let ends = path.match_indices('.').map(|(end, _)| path[..end].to_owned());
    iter::once(path.to_owned()).chain(ends).collect()
}

/// Rows that are Arrow data.
fn of_table(rows: &Bound<'_, PyAny>, wanted: &[TrainedColumn]) -> PyResult<(Vec<Found>, usize)> {
    let py = rows.py();
    // Other columns may be of any types, also of those that Arrow has not.
    let names: Option<Vec<String>> = names_of(rows).unwrap_or_default().and_then(|own| {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        own.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        let heads = wanted.iter().flat_map(|column| heads(column.field.name()));
        let heads: Vec<String> = heads.filter(|name| counts.contains_key(&**name)).collect();
        // By a name of several no column can be asked for: `without_index` tells them apart.
        heads.iter().all(|name| counts[&**name] == 1).then_some(heads)
    });
    let names = names.filter(|names| !names.is_empty());
    let imported = source::import(rows, names.as_deref()).and_then(|data| data.into_array(py));
    let is_row = || Ok::<_, PyErr>(rows.hasattr("iloc")? && !rows.hasattr("columns")?);
    let is_value = rows.is_none() || is_text(rows) || rows.is_instance_of::<PyInt>();
    // What is Arrow data, as a reader is, tells itself what fails.
    let is_other = || {
        let is_arrow = rows.hasattr("__arrow_c_stream__")? || rows.hasattr("__arrow_c_array__")?;
        Ok::<_, PyErr>(!is_arrow && (has_dlpack(rows) || rows.hasattr("__next__")?))
    };
    let (array, field) = match imported {
        Err(error) if error.is_instance_of::<PyException>(py) => {
            return Err(match is_row()? || is_value || is_other()? {
                true => no_rows(rows),
                false => error,
            });
        }
        imported => imported?,
    };
    let DataType::Struct(fields) = field.data_type() else { return Err(no_rows(rows)) };
    let count = array.len();
    let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
    // Of pandas's metadata, which are parsed where a column is missing.
    let has_steps = |name: &String| {
        let pandas = schema.metadata().get("pandas");
        pandas.is_some_and(|metadata| columns::index_steps(metadata).contains(name))
    };
    let table = StructArray::from(without_index(batch(&array, &schema)?)?);
    let (mut found, mut missing) = (Vec::with_capacity(wanted.len()), Vec::new());
    for column in wanted {
        match at_path(&table, column.field.name())? {
            Some((array, field)) => found.push(column.conformed(&array, &field)?),
            // An index of pandas's at equal steps is no column that the rows lack.
            None if column.may_lack && !has_steps(column.field.name()) => {
                found.push(column.nulls(count)?);
            }
            None => missing.push(column.field.name().clone()),
        }
    }
    match missing.is_empty() {
        true => Ok((found, count)),
        false => {
            let names = fields.iter().map(|field| field.name().clone()).collect();
            Err(Error::NoSuchColumns { missing, names }.into())
        }
    }
}

/// The columns without an index of pandas's that has the name of one: pandas has levels and columns of one number, and pyarrow
/// calls both by it. In training the index was no feature.
fn without_index(table: RecordBatch) -> Result<RecordBatch, Error> {
    let features = columns::features(table.schema_ref());
    let fields = table.schema_ref().fields();
    if features.len() == fields.len() {
        return Ok(table);
    }
    let known: HashSet<&String> = features.iter().map(|&at| fields[at].name()).collect();
    let is_hidden =
        |at: &usize| features.binary_search(at).is_err() && known.contains(fields[*at].name());
    let kept: Vec<usize> = (0..fields.len()).filter(|at| !is_hidden(at)).collect();
    checked(|| table.project(&kept))
}

/// The error for what is no rows. A row of a frame of pandas is a Series, as a column is.
fn no_rows(rows: &Bound<'_, PyAny>) -> PyErr {
    let (got, way_out) = match rows.hasattr("iloc") {
        Ok(true) => (type_name(rows), ": df.iloc[[3]] is a frame of one row"),
        _ if is_text(rows) => (described(rows), ": json.loads(x) reads JSON"),
        _ if has_dlpack(rows) => {
            (type_name(rows), ": record_batch(x, names) makes columns of a matrix")
        }
        _ if rows.hasattr("__next__").unwrap_or_default() => {
            (type_name(rows), ": list(x) is one, if these are dicts")
        }
        _ => (described(rows), ""),
    };
    PyTypeError::new_err(format!(
        "rows must be a table, a frame, a dict of columns or a list of dicts, got {got}{way_out}"
    ))
}

fn has_dlpack(rows: &Bound<'_, PyAny>) -> bool {
    rows.hasattr("__dlpack__").unwrap_or_default()
}

/// The column of a name, or the field of structs at a path; null where a struct is.
fn at_path(table: &StructArray, path: &str) -> PyResult<Option<Found>> {
    let fields = table.fields();
    let named = |name: &str| {
        let mut found = fields.iter().enumerate().filter(|(_, field)| field.name() == name);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(PyKeyError::new_err(format!(
                "several columns are called {name:?}: rename all but one"
            ))),
            (Some((at, field)), None) => {
                Ok(Some((Arc::clone(table.column(at)), Arc::clone(field))))
            }
            _ => Ok(None),
        }
    };
    if let Some(found) = named(path)? {
        return Ok(Some(found));
    }
    for (end, _) in path.rmatch_indices('.') {
        let Some((array, field)) = named(&path[..end])? else { continue };
        return within_column(array, field, &path[end + 1..]);
    }
    Ok(None)
}

/// The column at a path within one: of nulls, of any type, it is themselves.
fn within_column(array: ArrayRef, field: FieldRef, path: &str) -> PyResult<Option<Found>> {
    let are_nulls = array.logical_null_count() == array.len();
    match field.data_type() {
        DataType::Struct(inner) => {
            let table = batch(&array, &Schema::new(inner.clone()))?;
            at_path(&StructArray::from(table), path)
        }
        _ if are_nulls => {
            let none = Field::new(field.name(), DataType::Null, true);
            Ok(Some((Arc::new(NullArray::new(array.len())), Arc::new(none))))
        }
        other => {
            let way_out = if other.is_string() { ": json.loads reads texts of JSON" } else { "" };
            let (head, other) = (field.name(), type_with_extension(&field));
            Err(PyKeyError::new_err(format!(
                "no column \"{head}.{path}\": {head:?} is no struct, but {other}{way_out}"
            )))
        }
    }
}

/// Rows that are dicts.
fn of_rows<'py>(
    py: Python<'py>,
    rows: &[Bound<'py, PyAny>],
    wanted: &[TrainedColumn],
) -> PyResult<(Vec<Found>, usize)> {
    let mut found = Vec::with_capacity(wanted.len());
    for column in wanted {
        let name = column.field.name();
        let mut cells: Vec<Cell<'_>> = alloc::reserved(rows.len())?;
        for (at, row) in rows.iter().enumerate() {
            let value = at_keys(row, name).map_err(|error| placed(py, &format!("row {at}"), error));
            match value? {
                Some(value) => cells.push(present(value)),
                None if column.may_lack => cells.push(None),
                None => return Err(PyKeyError::new_err(format!("row {at} has no {name:?}"))),
            }
        }
        let place = |at: usize| format!("row {at}, column {name:?}");
        let array = PyCells { cells: &cells, place: &place }.array(py, &column.field)?;
        found.push((array, Arc::clone(&column.field)));
    }
    Ok((found, rows.len()))
}

/// The value of a key, or of keys within dicts at a path; null where a dict is.
fn at_keys<'py>(row: &Bound<'py, PyAny>, path: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(value) = mapped(row, path)? {
        return Ok(Some(value));
    }
    for (end, _) in path.rmatch_indices('.') {
        match mapped(row, &path[..end])? {
            Some(inner) if is_null(&inner) => return Ok(Some(inner)),
            Some(inner) if inner.is_instance_of::<PyDict>() => {
                return at_keys(&inner, &path[end + 1..]);
            }
            Some(inner) => {
                let (of, got) = (&path[..end], described(&inner));
                return Err(PyTypeError::new_err(format!(
                    "{of:?} must be a dict, got {got}: column {path:?} is read of it"
                )));
            }
            None => {}
        }
    }
    Ok(None)
}

/// Columns by their names: Arrow data, tensors, or lists of Python's objects.
fn of_columns(
    columns: &Bound<'_, PyDict>,
    wanted: &[TrainedColumn],
) -> PyResult<(Vec<Found>, usize)> {
    let py = columns.py();
    let (mut found, mut missing) = (Vec::with_capacity(wanted.len()), Vec::new());
    let mut rows: Option<(String, usize)> = None;
    for column in wanted {
        let name = column.field.name();
        let Some((values, path)) = at_head(columns, name)? else {
            match column.may_lack {
                true => missing.push(found.len()),
                false => {
                    let known = columns.keys();
                    return Err(PyKeyError::new_err(format!("no column {name:?} among {known}")));
                }
            }
            found.push(column.nulls(0)?);
            continue;
        };
        let made = of_column(py, &values, path, column)?;
        let count = made.0.len();
        let (first, expected) = rows.get_or_insert_with(|| (name.clone(), count));
        if *expected != count {
            return Err(PyValueError::new_err(format!(
                "column {name:?} has {count} rows, and column {first:?} has {expected}"
            )));
        }
        found.push(made);
    }
    // Others than those of training have as many.
    let count = match rows {
        Some((_, count)) => count,
        None => columns.values().iter().next().map_or(Ok(0), |values| values.len())?,
    };
    for at in missing {
        found[at] = wanted[at].nulls(count)?;
    }
    Ok((found, count))
}

/// The column of a name, or the one that a path begins with, and what is left of the path.
fn at_head<'py, 'a>(
    columns: &Bound<'py, PyDict>,
    path: &'a str,
) -> PyResult<Option<(Bound<'py, PyAny>, Option<&'a str>)>> {
    if let Some(values) = columns.get_item(path)? {
        return Ok(Some((values, None)));
    }
    for (end, _) in path.rmatch_indices('.') {
        if let Some(values) = columns.get_item(&path[..end])? {
            return Ok(Some((values, Some(&path[end + 1..]))));
        }
    }
    Ok(None)
}

/// path: of the values within structs, or within dicts.
fn of_column<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    path: Option<&str>,
    column: &TrainedColumn,
) -> PyResult<Found> {
    let name = column.field.name();
    let of_cells = |items: Vec<Bound<'py, PyAny>>| -> PyResult<Found> {
        let mut cells: Vec<Cell<'_>> = alloc::reserved(items.len())?;
        for (at, item) in items.into_iter().enumerate() {
            let cell = match path {
                Some(path) if !is_null(&item) => {
                    let in_row = |error| placed(py, &format!("row {at}, column {name:?}"), error);
                    at_keys(&item, path).map_err(in_row)?
                }
                _ => Some(item),
            };
            if cell.is_none() && !column.may_lack {
                return Err(PyKeyError::new_err(format!("row {at} has no {name:?}")));
            }
            cells.push(cell.and_then(present));
        }
        let place = |at: usize| format!("row {at}, column {name:?}");
        let array = PyCells { cells: &cells, place: &place }.array(py, &column.field)?;
        Ok((array, Arc::clone(&column.field)))
    };
    if let Some(rows) = assemble::named_rows(values, None, &TypeArg::resolve(None)?)? {
        let (array, field) = rows.into_inner();
        return column.conformed(&array, &field);
    }
    if let Some(items) = listed(values)? {
        return of_cells(items);
    }
    let has = |method: &str| values.hasattr(method);
    let in_column = |error| placed(py, &format!("column {name:?}"), error);
    if has("__arrow_c_array__")? || has("__arrow_c_stream__")? {
        let imported = source::import(values, None).map_err(in_column)?;
        let (array, field) = imported.into_array(py)?;
        let Some(path) = path else { return column.conformed(&array, &field) };
        let rows = array.len();
        let head = name.strip_suffix(path).unwrap_or(name).trim_end_matches('.');
        let named = Arc::new(Field::clone(&field).with_name(head));
        return match within_column(array, named, path)? {
            Some((array, field)) => column.conformed(&array, &field),
            None if column.may_lack => column.nulls(rows),
            None => {
                Err(PyKeyError::new_err(format!("no column {name:?}: {field} has no {path:?}")))
            }
        };
    }
    let is_object = || -> PyResult<bool> {
        let kind = values.getattr("dtype")?.getattr("kind")?;
        Ok(matches!(&*kind.str()?.to_string(), "O" | "U" | "T" | "S"))
    };
    let is_tensor = has("__dlpack__")?;
    // Objects of NumPy's, and an index or an array of pandas's.
    let is_listed = has("tolist")? && (!is_tensor || is_object().unwrap_or(false));
    let items = match is_listed {
        true => listed(&values.call_method0("tolist").map_err(in_column)?)?,
        false => None,
    };
    if let Some(items) = items {
        return of_cells(items);
    }
    if is_tensor {
        let tensor = consume::take(values, None, None).map_err(|error| {
            if let Ok(Some(way_out)) = column.way_from_numpy(values) {
                // In place of what makes any tensor of it.
                let _set = error.value(py).setattr("__notes__", [way_out]);
            }
            in_column(error)
        })?;
        let (dtype, trained) = (tensor.dtype(), column.field.data_type());
        // Arrow has the parts of a complex number as two numbers, which are no list of any length.
        if dtype.code == DLDataTypeCode::COMPLEX && !matches!(trained, DataType::FixedSizeList(..))
        {
            return Err(PyTypeError::new_err(format!(
                "column {name:?}: it is {dtype}, and was {trained} in training: x.real has its real parts"
            )));
        }
        // As it is only where it was so in training: else it is a float32, which the error names.
        let is_of_bits = column.dtype_of_bits() == Some(tensor.dtype());
        let opaque = is_of_bits.then(|| TypeArg::from(Representation::Opaque));
        let array = PyArray::from_tensor(py, tensor, None, None, opaque).map_err(in_column)?;
        let (array, field) = array.into_inner();
        return column.conformed(&array, &field);
    }
    Err(PyTypeError::new_err(format!(
        "column {name:?} must be a list, a tensor or Arrow data, got {}: one row is [row], a list of one dict{}",
        described(values),
        // pandas makes a dict of dicts of a frame.
        if values.is_instance_of::<PyDict>() {
            ", and the rows of a frame are frame.to_dict(\"records\")"
        } else {
            ""
        }
    )))
}

/// Words, which are Python's objects, as an array of the type of a column's values. Binaries of another width than the type
/// has are null.
#[pyfunction]
#[pyo3(signature = (words, schema, name, /))]
pub(super) fn _words(
    words: &Bound<'_, PyList>,
    schema: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<PyArray> {
    let field = source::field(schema, None)?;
    let DataType::Struct(fields) = field.data_type() else {
        return Err(PyTypeError::new_err("schema must be one of a table"));
    };
    let Some((_, field)) = fields.find(name) else {
        return Err(PyKeyError::new_err(format!("the schema has no column {name:?}")));
    };
    let mut field = of_values(field);
    if let Ok(Some(Extension::Bool8)) = Extension::of(&field) {
        field = Arc::new(Field::new(name, DataType::Boolean, true));
    }
    if let DataType::Interval(_) = field.data_type() {
        // Of which there are arrays, and no objects of Python's that a request has.
        return Err(PyTypeError::new_err(format!(
            "column {name:?}: an encoder has no intervals as words: make texts of them before training, as \
             pyarrow.array([value and str(value) for value in x.to_pylist()]) does"
        )));
    }
    let is_of_width = |word: &Bound<'_, PyAny>| match field.data_type() {
        DataType::FixedSizeBinary(width) => {
            word.len().map_or(true, |len| i32::try_from(len) == Ok(*width))
        }
        DataType::Null => false,
        _ => true,
    };
    let mut cells: Vec<Cell<'_>> = Vec::new();
    reserve(words.len().checked_mul(size_of::<Cell<'_>>()))?;
    cells.extend(words.iter().map(|word| Some(word).filter(is_of_width)));
    let place = |at: usize| format!("word {at} of column {name:?}");
    let array = PyCells { cells: &cells, place: &place }.array(words.py(), &field)?;
    Ok(PyArray::try_new(array, Arc::new(Field::clone(&field).with_nullable(true)))?)
}
