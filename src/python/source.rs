//! Arrow arrays from Python, through the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use arrow_schema::{DataType, Field, FieldRef};
use pyo3::exceptions::{
    PyAttributeError, PyImportError, PyNotImplementedError, PyOverflowError, PyTypeError,
    PyValueError,
};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use super::advice::Expected;
use super::array::PyArray;
use super::arrow::capsule::{Pair, moved, table_schema_of};
use super::arrow::imported::Imported;
use super::arrow::stream::{Stream, drained};
use super::arrow::structs::ArrowArrayStream;
use super::describe::{described, type_name};
use super::errors::unsupported;
use super::protocols::{attribute, class_has, methods};
use super::read_once::Reading;
use super::runtime::{RecursionGuard, call, loaded_module};
use crate::arrow_types::item_of;

/// The object, if it is an `Array` whose class does not override `__arrow_c_array__`. Its array is shared
/// directly, without a C structure that would have to be made, checked and owned.
fn ours<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a PyArray>> {
    let Ok(array) = object.cast::<PyArray>() else { return Ok(None) };
    if array.is_exact_instance_of::<PyArray>() {
        return Ok(Some(array.get()));
    }
    // A subclass may override what it exports.
    let name = intern!(object.py(), "__arrow_c_array__");
    let base = object.py().get_type::<PyArray>().getattr(name)?;
    Ok(object.get_type().getattr(name)?.is(&base).then(|| array.get()))
}

/// The array of an object with `__arrow_c_array__`, or the arrays of one with `__arrow_c_stream__`. If column names
/// are given, the other columns of a table may be skipped.
pub(super) fn import(object: &Bound<'_, PyAny>, wanted: Option<&[String]>) -> PyResult<Imported> {
    match receive(object, wanted)? {
        Received::Pair(pair) => pair.import(wanted),
        Received::Imported(imported) => Ok(imported),
    }
}

/// What an object exports.
pub(super) enum Received<'py> {
    /// The capsules of `__arrow_c_array__`, not imported yet.
    Pair(Pair<'py>),
    /// Data from any other method, imported.
    Imported(Imported),
}

/// [`import`], without importing what `__arrow_c_array__` returns.
pub(super) fn receive<'py>(
    object: &Bound<'py, PyAny>,
    wanted: Option<&[String]>,
) -> PyResult<Received<'py>> {
    if let Some(array) = ours(object)? {
        return Ok(Received::Imported(array.imported()));
    }
    let py = object.py();
    let _level = RecursionGuard::enter(py)?;
    let stream_of = |method: &_| import_stream(object, method, wanted).map(Received::Imported);
    let [array, stream] = methods(py);
    if (class_has(object, array), class_has(object, stream)) == (Some(false), Some(true)) {
        if let Some(method) = attribute(object, stream)? {
            return stream_of(&method);
        }
    }
    if let Some(method) = attribute(object, array)? {
        return match call_method(object, &method) {
            Ok(pair) => Pair::of(object, &pair).map(Received::Pair),
            // nanoarrow's chunked arrays have both methods, and only the other one works.
            Err(error) if error.is_instance_of::<PyValueError>(py) => {
                match attribute(object, stream)? {
                    Some(stream) => {
                        stream_of(&stream).inspect_err(|second| second.set_cause(py, Some(error)))
                    }
                    None => Err(error),
                }
            }
            // Batches of DataFusion's streams have the method, and what it calls has none.
            Err(error)
                if error.is_instance_of::<PyAttributeError>(py)
                    && object.hasattr(intern!(py, "to_pyarrow"))? =>
            {
                let told = format!("{}: x.to_pyarrow() is one of pyarrow's", error.value(py));
                let told = PyTypeError::new_err(told);
                told.set_cause(py, Some(error));
                Err(told)
            }
            Err(error) => Err(error),
        };
    }
    if let Some(stream) = attribute(object, stream)? {
        return stream_of(&stream);
    }
    Err(Expected::Arrow.got(object))
}

/// All arrays of the stream that `__arrow_c_stream__` returns.
fn import_stream(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
) -> PyResult<Imported> {
    let reading = Reading::of(object)?;
    let stream = call_for_stream(object, method, wanted)?;
    // The stream may need the interpreter on another thread.
    let imported = object.py().detach(|| drained(stream, wanted, reading))?;
    refuse_objects(object, &imported.field)?;
    Ok(imported)
}

/// Refuses columns with polars' type `Object`, as which it exports the addresses of Python's objects. A type is told from
/// other bytes by the frame's own word; batches of a query have none, and polars exports no other type as bytes of one
/// length.
fn refuse_objects(object: &Bound<'_, PyAny>, field: &Field) -> PyResult<()> {
    static HAS_OBJECTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let is_suspect = |field: &Field| may_be_objects(field.data_type());
    let suspect: Vec<&str> = match field.data_type() {
        DataType::Struct(fields) => {
            fields.iter().filter(|of| is_suspect(of)).map(|of| &**of.name()).collect()
        }
        _ if is_suspect(field) => vec![field.name()],
        _ => return Ok(()),
    };
    if suspect.is_empty() || !is_of_polars(object)? {
        return Ok(());
    }
    let py = object.py();
    let Some(has_objects) = of_frames(py, &HAS_OBJECTS, "has_objects")? else { return Ok(()) };
    for name in suspect {
        let dtype = match attribute(object, intern!(py, "schema"))? {
            Some(schema) => Some(schema.get_item(name)?),
            None => attribute(object, intern!(py, "dtype"))?,
        };
        let is_one = |dtype| has_objects.call1((dtype,))?.is_truthy();
        if dtype.map_or(Ok(true), is_one)? {
            return Err(unsupported(format!(
                "column \"{name}\" has Python's objects (polars' Object), of which Arrow data would have the \
                 addresses: leave it out, or make numbers of them"
            )));
        }
    }
    Ok(())
}

/// Whether bytes of the length of an address are in it, at any depth.
fn may_be_objects(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeBinary(8) => true,
        DataType::Struct(fields) => fields.iter().any(|field| may_be_objects(field.data_type())),
        other => item_of(other).is_some_and(|item| may_be_objects(item.data_type())),
    }
}

/// Whether the object's class is polars' own, or derives from one that is.
fn is_of_polars(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = intern!(object.py(), "__module__");
    for class in object.get_type().mro() {
        let name = class.getattr(module)?;
        if name.extract::<&str>().is_ok_and(|name| name.split('.').next() == Some("polars")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The stream of an object that has one, of which only the type has been read; with the columns that
/// [`import`] selects.
pub(super) fn open(
    object: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
) -> PyResult<Option<Stream>> {
    let py = object.py();
    let _level = RecursionGuard::enter(py)?;
    let reading = Reading::of(object)?;
    let Some(method) = attribute(object, intern!(py, "__arrow_c_stream__"))? else {
        return Ok(None);
    };
    let stream = call_for_stream(object, &method, wanted)?;
    let stream = py.detach(|| Stream::open(stream, wanted, reading))?;
    refuse_objects(object, stream.field())?;
    Ok(Some(stream))
}

/// The stream of an object that has one.
pub(super) fn stream_of(object: &Bound<'_, PyAny>) -> PyResult<Option<ArrowArrayStream>> {
    let method = attribute(object, intern!(object.py(), "__arrow_c_stream__"))?;
    method.map(|method| call_for_stream(object, &method, None)).transpose()
}

/// The type of tables of a schema; with the columns that [`import`] selects.
pub(super) fn field(schema: &Bound<'_, PyAny>, wanted: Option<&[String]>) -> PyResult<FieldRef> {
    let capsule = schema.call_method0(intern!(schema.py(), "__arrow_c_schema__"))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    table_schema_of(&capsule, wanted)
}

/// The result of the method. If `object` is a class, the call fails, and the error says what was expected.
fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    call(method, None).map_err(|error| match object.is_instance_of::<PyType>() {
        true => Expected::Arrow.got(object),
        false => explained(object, error),
    })
}

/// The error of a conversion by pandas, which does not tell the column of an integer that is too large, nor what to do
/// with a column that Arrow has no type for.
fn explained(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    static EXPLAINED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let py = object.py();
    let is_of_a_column = error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyNotImplementedError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py);
    if !is_of_a_column {
        return error;
    }
    let told = match of_frames(py, &EXPLAINED, "explained") {
        Ok(Some(function)) => function.call1((object, error.value(py))),
        _ => return error,
    };
    told.map_or(error, PyErr::from_value)
}

/// The stream of an object; if that fails, of a frame of pandas the stream without columns that are not wanted.
fn call_for_stream(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
) -> PyResult<ArrowArrayStream> {
    let stream = intern!(object.py(), "__arrow_c_stream__");
    let answer = prepared(object).and_then(|frame| match frame {
        Some(frame) => frame.call_method0(stream).map_err(|error| explained(object, error)),
        None => call_method(object, method),
    });
    let answer = match (answer, wanted) {
        // pandas converts all columns that it has, and fails for one that Arrow has no type for.
        (Err(error), Some(wanted)) => match narrowed(object, wanted)? {
            Some(narrow) => prepared(&narrow)
                .and_then(|frame| frame.as_ref().unwrap_or(&narrow).call_method0(stream))
                .map_err(|error| explained(&narrow, error))?,
            None => return Err(error),
        },
        (answer, _) => answer?,
    };
    let capsule = answer.cast_into::<PyCapsule>().map_err(|error| {
        PyTypeError::new_err(format!(
            "{}.__arrow_c_stream__ returned {}, not a capsule",
            type_name(object),
            described(&error.into_inner())
        ))
    })?;
    moved(&capsule)
}

/// The frame or series of pandas of which pyarrow is to make Arrow data; `None` of anything else. Refuses lists which pyarrow
/// follows until the process ends.
fn prepared<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static PREPARED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let py = object.py();
    let Some(pandas) = loaded_module(py, intern!(py, "pandas"))? else { return Ok(None) };
    let mut is_of_pandas = false;
    for class in [intern!(py, "DataFrame"), intern!(py, "Series")] {
        // Another thread may be importing it.
        if let Some(class) = pandas.getattr_opt(class)? {
            is_of_pandas |= object.get_type().is_subclass(&class).unwrap_or(false);
        }
    }
    if !is_of_pandas {
        return Ok(None);
    }
    match of_frames(py, &PREPARED, "prepared")? {
        Some(function) => function.call1((object,)).map(Some),
        None => Ok(None),
    }
}

/// A frame of pandas without the columns that are not wanted; `None` of anything else.
fn narrowed<'py>(
    object: &Bound<'py, PyAny>,
    wanted: &[String],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static NARROWED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    let Some(function) = of_frames(object.py(), &NARROWED, "narrowed")? else {
        return Ok(None);
    };
    let frame = function.call1((object, wanted))?;
    Ok((!frame.is_none()).then_some(frame))
}

/// A function of the Python package's for frames; `None` where an extension of another package has no such package beside it,
/// or one of an older version.
pub(super) fn of_frames<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
    match cell.import(py, "arrow_dlpack._frames", name) {
        Ok(function) => Ok(Some(function)),
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(None),
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(None),
        // A signal's, which came in between.
        Err(error) => Err(error),
    }
}
