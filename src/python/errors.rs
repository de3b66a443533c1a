//! The exceptions, and what they say of an object that is not what was expected.

use arrow_schema::DataType;
use pyo3::exceptions::{
    PyBufferError, PyKeyError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    IntoPyDict, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PyMemoryView, PyRange, PySet,
    PyString, PyTuple, PyType,
};

use super::dlpack::request::type_name;
use super::protocols::{has_buffer, is_arrow};
use crate::error::Count;
use crate::{Error, ReaderError, arrow_types, export};

/// `UnsupportedError(BufferError, TypeError)`: a type, rank or nulls that are refused. It is a
/// `TypeError` because pyarrow raises one, and code written for pyarrow catches it.
pub(super) fn unsupported_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let bases = (py.get_type::<PyBufferError>(), py.get_type::<PyTypeError>());
        let doc = "This data has no form on the other side as it was asked for: its type, its rank or its \
                   nulls are refused. The message names the keyword or the function that helps, if there is one.";
        let namespace = [("__module__", "arrow_dlpack"), ("__doc__", doc)].into_py_dict(py)?;
        let class = py.get_type::<PyType>().call1(("UnsupportedError", bases, namespace))?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// `BufferError`, except for conversions that no keyword allows (`UnsupportedError`), values that do not allow
/// what a keyword requests (`ValueError`), and lack of memory (`MemoryError`).
impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Reader(error) => return raised(&error),
            Error::Panicked(panic) => return PyRuntimeError::new_err(panic),
            error => in_python(error),
        };
        let message = error.to_string();
        match error {
            _ if error.is_out_of_memory() => PyMemoryError::new_err(message),
            Error::Forked | Error::NoThread(_) => PyRuntimeError::new_err(message),
            Error::NoSuchColumns { .. } | Error::SeveralColumns { .. } => {
                PyKeyError::new_err(message)
            }
            _ if error.is_wrong_value() => PyValueError::new_err(message),
            _ if error.is_type_refusal() => unsupported(message),
            _ => PyBufferError::new_err(message),
        }
    }
}

/// The exception that a reader raised; an error that is only text becomes a `ValueError`.
fn raised(error: &ReaderError) -> PyErr {
    match error.get_ref().downcast_ref::<PyErr>() {
        Some(error) => Python::attach(|py| error.clone_ref(py)),
        None => PyValueError::new_err(error.get_ref().to_string()),
    }
}

/// Hints of Rust's errors, and the hints that replace them in Python.
const WAYS_OUT: [(&str, &str); 19] = [
    (
        "choose a fill value, NaN or a mask by ExportOptions::with_nulls",
        "pass nulls= (a fill value, \"nan\" or \"mask\") to to_tensor or ragged",
    ),
    (
        "choose a fill value or NaN by ExportOptions::with_nulls (a mask is of the rows)",
        "pass a fill value or \"nan\" as nulls= (\"mask\" is of the rows)",
    ),
    (
        "Representation::Permuted, or a field with a permutation, keeps that order",
        "type=\"permuted\", or a fixed_shape_tensor type with a permutation, keeps that order",
    ),
    ("use ExportOptions::with_physical for its", "pass physical=True to to_tensor for its"),
    (
        "ask for List or LargeList of the items' type, or for a text or binary type",
        "type= is that of the rows, such as pa.list_ of the items' type, or a text or binary type",
    ),
    ("ask for dtype float64", "pass dtype=\"float64\""),
    ("ask for int64 offsets", "pass offset_type=\"int64\""),
    (
        "a table without columns has no element type",
        "a table without columns has no element type (an index of pandas's counts where columns= names it)",
    ),
    (
        "ask for a dtype that does, or convert the column by itself",
        "pass dtype= with one that does (nulls=\"nan\" makes floats of integers), or convert the column in a call for it alone",
    ),
    ("use into_raw", "ask for max_version=(1, 1) or later"),
    (
        "bytes of an element: copy it first",
        "bytes of an element: copy it first, for instance with numpy.ascontiguousarray",
    ),
    ("flatten one level first", "flatten one level first, as pyarrow.compute.list_flatten does"),
    ("flatten the lists first", "flatten the lists first, as pyarrow.compute.list_flatten does"),
    (
        "use export::ragged, with ExportOptions::with_physical, for its storage",
        "use ragged, with physical=True, for its storage",
    ),
    (
        "or ask for a dtype and say what its nulls become by ExportOptions::with_nulls",
        "or pass dtype= and nulls=, as dtype=\"float32\" and nulls=\"nan\"",
    ),
    (
        "use export::ragged, or export::padded to pad them",
        "use ragged, or pass pad= for padded rows",
    ),
    ("use export::ragged", "use ragged"),
    ("one by one, with Source::Row", "one by one, with row"),
    (
        "export its fields one by one, or all of them as a RecordBatch",
        "use to_tensor_dict, for a tensor of each field, or to_tensor of the table",
    ),
];

/// The error with hints for Python in place of those for Rust.
pub(super) fn in_python(error: Error) -> Error {
    reworded(error, None, &|error, _| {
        let (own, ways_out) = (error.to_string(), WAYS_OUT.iter());
        let words = ways_out.fold(own.clone(), |words, (rust, python)| words.replace(rust, python));
        if words == own { error } else { Error::Worded { words, error: Box::new(error) } }
    })
}

/// Applies `reword` to an error, or to that of each column, with the column's name.
pub(super) fn reworded(
    error: Error,
    column: Option<&str>,
    reword: &dyn Fn(Error, Option<&str>) -> Error,
) -> Error {
    match error {
        Error::Column { name, error } => {
            let error = Box::new(reworded(*error, Some(&name), reword));
            Error::Column { name, error }
        }
        Error::Columns { errors } => Error::Columns {
            errors: errors.into_iter().map(|error| reworded(error, column, reword)).collect(),
        },
        Error::Worded { .. } => error,
        error => reword(error, column),
    }
}

/// The function that was called. Errors of one that takes `nulls=` and `physical=` need not name the function.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    /// `to_tensor` and `to_tensor_dict`.
    Tensor,
    /// `ragged`.
    Ragged,
    /// `to_tensor` with `pad=`.
    Padded,
    /// `Array.row`, and iteration, for this row.
    Row(usize),
    /// `iter_batches`.
    Batches,
}

impl Asked {
    /// The error with a message that fits the function that was called.
    pub(super) fn rephrase(self, error: Error) -> Error {
        reworded(error, None, &|error, column| match error {
            // Other hints, such as those for extension types, are kept.
            Error::UnsupportedType { data_type, way_out }
                if way_out == export::way_out(&data_type) =>
            {
                let way_out = self.way_out(&data_type, column.is_some()).unwrap_or(way_out);
                Error::UnsupportedType { data_type, way_out }
            }
            error => match self.words(&error, column.is_some()) {
                Some(words) => Error::Worded { words, error: Box::new(error) },
                None => error,
            },
        })
    }

    /// The hint for a type, if it differs from that for a single array.
    fn way_out(self, data_type: &DataType, in_table: bool) -> Option<&'static str> {
        match (self, data_type) {
            (Self::Batches, DataType::Struct(_)) => Some(
                "name its fields in columns=, as \"a.b\" is field b of column a, or flatten it first, as pyarrow's \
                 table.flatten() and polars' unnest do",
            ),
            (Self::Tensor | Self::Ragged | Self::Padded, DataType::Struct(_)) => {
                Some("flatten it first, as pyarrow's table.flatten() and polars' unnest do")
            }
            // ragged refuses tables; of a column alone to_tensor sees whether its rows have one length.
            (Self::Tensor, list) if in_table && arrow_types::is_list(list) => Some(
                "its rows may differ in length: leave it out with columns=, pass this column alone to ragged, or, if \
                 they do not differ, cast it to a fixed-size list or take it as Dense() in Loader",
            ),
            (Self::Tensor, text) if in_table && arrow_types::is_ragged(text) => Some(
                "its rows differ in length: leave it out with columns=, or pass this column alone to ragged",
            ),
            (Self::Batches, list) if arrow_types::is_list(list) => Some(
                "its rows may differ in length: take it as Dense() if they do not, or leave it out with columns=",
            ),
            (Self::Batches, text) if text.is_string() => Some(
                "make codes of it with Categories([...]), hand it on as Arrow data with AsArrow(), or leave it out with \
                 columns=",
            ),
            (Self::Batches, DataType::Null) => Some(
                "say what its nulls become, with Cast(\"float32\", nulls=\"nan\") or Categories([...], nulls=-1)",
            ),
            (Self::Batches, DataType::Decimal128(..) | DataType::Decimal256(..)) => Some(
                "pass dtype=\"float64\", or Cast(\"float64\") for it alone, as for a label, which dtype= is not of",
            ),
            (Self::Batches, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                Some("leave it out with columns=, or hand it on as Arrow data with AsArrow()")
            }
            _ => None,
        }
    }

    /// The hint for a type that is not ragged.
    fn instead_of_rows(self, data_type: &DataType, way_out: &'static str) -> String {
        let (simply, and) = match self {
            Self::Padded => ("leave out pad=", ", and pass"),
            Self::Batches => ("leave out Pad()", ", and pass"),
            _ => ("use to_tensor", ", with"),
        };
        match way_out {
            export::FLAT => simply.to_owned(),
            export::FLAT_INTEGERS => format!("{simply}{and} physical=True for its integers"),
            export::FLAT_DECIMALS => format!("{simply}{and} dtype=\"float64\""),
            _ if way_out == export::way_out(data_type) => {
                self.way_out(data_type, false).unwrap_or(way_out).to_owned()
            }
            _ => way_out.to_owned(),
        }
    }

    /// The hint for an extension type, which its storage decides.
    fn of_storage(self, data_type: &DataType, in_table: bool) -> String {
        let (is_list, is_ragged) =
            (arrow_types::is_list(data_type), arrow_types::is_ragged(data_type));
        let none = matches!(
            data_type,
            DataType::Struct(_)
                | DataType::Map(..)
                | DataType::Union(..)
                | DataType::Null
                | DataType::Interval(_)
                | DataType::RunEndEncoded(..)
        );
        match self {
            _ if none => {
                let way_out = self.way_out(data_type, in_table);
                format!("nor has its storage: {}", way_out.unwrap_or(export::way_out(data_type)))
            }
            Self::Padded | Self::Ragged if !is_ragged => {
                let simply = self.instead_of_rows(data_type, export::FLAT);
                format!("its storage is not ragged: {simply}, with physical=True")
            }
            Self::Batches if is_ragged && !is_list => "make codes of it with Categories([...])".to_owned(),
            Self::Tensor if is_ragged && in_table => {
                "leave it out with columns=, or pass this column alone to ragged, with physical=True".to_owned()
            }
            Self::Tensor if is_ragged && !is_list => {
                "use ragged, with physical=True, for its storage".to_owned()
            }
            _ => "pass physical=True for its storage".to_owned(),
        }
    }

    fn words(self, error: &Error, in_table: bool) -> Option<String> {
        match (self, error) {
            (Self::Row(row), Error::Nulls { data_type, .. })
                if arrow_types::is_ragged(data_type)
                    || matches!(data_type, DataType::Struct(_)) =>
            {
                Some(format!("row {row} has 1 null where its shape would be: leave it out"))
            }
            (Self::Row(row), Error::Nulls { null_count, .. }) => Some(format!(
                "row {row} has {}, and a tensor cannot hold nulls: call row({row}, nulls=...) with a fill \
                 value, \"nan\" or \"mask\", or drop them first",
                Count(*null_count, "null")
            )),
            (_, Error::NotRagged { data_type, way_out }) => Some(format!(
                "{data_type} is not ragged, as lists, texts and binaries are: {}",
                self.instead_of_rows(data_type, way_out)
            )),
            (_, Error::UnsupportedExtension { name, data_type }) => {
                let way_out = self.of_storage(data_type, in_table);
                let or_arrow = match self {
                    Self::Batches if !way_out.contains("physical=True") => {
                        ", or hand it on with AsArrow()"
                    }
                    _ => "",
                };
                Some(format!(
                    "extension type {name:?} (stored as {data_type}) has no tensor form of its own: {way_out}{or_arrow}"
                ))
            }
            (Self::Batches, Error::UnevenRows { row, length, expected }) => Some(format!(
                "row {row} of a batch has {length} values where {expected} are expected, as the first row or Dense() has \
                 them: leave out Dense() for Ragged rows, or use Pad()"
            )),
            (Self::Batches, Error::UnsupportedType { .. }) => {
                Some(format!("{}, or hand it on with AsArrow()", in_python(error.clone())))
            }
            (
                Self::Batches,
                Error::NotJustNumbers { data_type: data_type @ DataType::Dictionary(..), dtype },
            ) => Some(format!(
                "{data_type} is not just a number: make codes of it with Categories([...]), hand it on as Arrow \
                 data with AsArrow(), or pass physical=True for its {dtype} values"
            )),
            (_, Error::Nulls { .. } | Error::NotJustNumbers { .. }) => {
                let words = in_python(error.clone()).to_string();
                let words = words.replace(" to to_tensor or ragged", "");
                Some(words.replace(" to to_tensor for its", " for its"))
            }
            _ => None,
        }
    }
}

/// The error with a place before its message; unchanged if its class cannot be built from a message.
pub(super) fn placed(py: Python<'_>, place: &str, error: PyErr) -> PyErr {
    let class = error.get_type(py);
    let is_of_words = [
        py.get_type::<PyBufferError>(),
        py.get_type::<PyTypeError>(),
        py.get_type::<PyValueError>(),
    ];
    let ours = unsupported_error(py).is_ok_and(|ours| ours.is(&class));
    if !ours && !is_of_words.iter().any(|known| known.is(&class)) {
        return error;
    }
    let placed = PyErr::from_type(class, format!("{place}: {}", error.value(py)));
    placed.set_cause(py, error.cause(py));
    if let Ok(notes) = error.value(py).getattr("__notes__") {
        // The error itself matters more than its notes.
        let _set = placed.value(py).setattr("__notes__", notes);
    }
    placed
}

/// An `UnsupportedError` with this message.
pub(super) fn unsupported(message: String) -> PyErr {
    Python::attach(|py| match unsupported_error(py) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}

/// What a function accepts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Expected {
    Arrow,
    Tensor,
    Either,
    Any,
}

impl Expected {
    fn words(self) -> &'static str {
        match self {
            Self::Arrow => {
                "an Arrow array or table, an object with __arrow_c_array__ or __arrow_c_stream__"
            }
            Self::Tensor => "an object with __dlpack__ or a DLPack capsule",
            Self::Either => {
                "Arrow data, an object with __arrow_c_array__ or __arrow_c_stream__, or a tensor, one with \
                 __dlpack__ or a DLPack capsule"
            }
            Self::Any => {
                "an object with __dlpack__, __array_interface__, __arrow_c_array__, __arrow_c_stream__, \
                 __cuda_array_interface__ or the buffer protocol, or a DLPack capsule"
            }
        }
    }

    /// The error for an object that is not what was expected.
    pub(super) fn got(self, object: &Bound<'_, PyAny>) -> PyErr {
        if let Ok(class) = object.cast::<PyType>() {
            let name = class.name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
            return PyTypeError::new_err(format!(
                "expected {}, got the class {name}: pass an object of it",
                self.words()
            ));
        }
        self.but(object, self.way_out(object))
    }

    /// The error for a named tuple of tensors, in place of a tensor.
    pub(super) fn of_rows(self, object: &Bound<'_, PyAny>) -> Option<PyErr> {
        let way_out = of_rows(object).ok().flatten()?;
        Some(self.but(object, Some(way_out.to_owned())))
    }

    /// How to make what was expected. An exception from the object's attributes must not replace the error.
    pub(super) fn way_out(self, object: &Bound<'_, PyAny>) -> Option<String> {
        if let Ok(Some(way_out)) = of_dtype(object) {
            return Some(way_out);
        }
        let way_out = match (self, of_rows(object)) {
            (_, Ok(Some(way_out))) => Ok(Some(way_out)),
            (Self::Tensor | Self::Any, _) => tensor_of(object),
            (Self::Arrow | Self::Either, _) => arrow_of(object, self),
        };
        way_out.ok().flatten().map(str::to_owned)
    }

    fn but(self, object: &Bound<'_, PyAny>, way_out: Option<String>) -> PyErr {
        let (expected, got) = (self.words(), type_name(object));
        let way_out = way_out.map_or_else(String::new, |way| format!(": {way}"));
        PyTypeError::new_err(format!("expected {expected}, got {got}{way_out}"))
    }
}

type WayOut = PyResult<Option<&'static str>>;

/// How to make a tensor of it.
fn tensor_of(object: &Bound<'_, PyAny>) -> WayOut {
    if is_arrow(object)? {
        return Ok(Some("it is Arrow data: use to_tensor, or Array"));
    }
    if is_sequence(object) {
        return tensor_of_items(object);
    }
    if object.hasattr("__array_interface__")? || has_buffer(object) {
        return Ok(Some("asdlpack(x) takes its memory as it is"));
    }
    if is_path(object)? && object.str()?.to_str()?.ends_with(".npy") {
        return Ok(Some("if it is a path, numpy.load(x) reads such a file"));
    }
    if object.hasattr("__array__")? || object.hasattr("__index__")? {
        return Ok(Some("numpy.asarray(x) makes one of it"));
    }
    arrow_of(object, Expected::Either)
}

/// How to make a tensor of a list or tuple, judged by its first item.
fn tensor_of_items(object: &Bound<'_, PyAny>) -> WayOut {
    let Some(first) = object.try_iter()?.next().transpose()? else {
        return Ok(Some("numpy.asarray(x) makes one of it"));
    };
    Ok(Some(if first.is_instance_of::<PyString>() || first.is_instance_of::<PyBytes>() {
        "texts are no tensor: pyarrow.array(x) makes Arrow data of them, and pyarrow.table a table with it"
    } else if is_arrow(&first)? {
        return of_arrow(&first).map(Some);
    } else if is_sequence(&first) || first.hasattr("__dlpack__")? || first.hasattr("__array__")? {
        "numpy.stack(x) is a tensor of rows of one length, and from_ragged(numpy.concatenate(x), offsets) makes \
         lists of rows of any length"
    } else {
        "numpy.asarray(x) makes one of it"
    }))
}

/// The way back from the named tuples of tensors that stand for rows of different lengths.
fn of_rows(object: &Bound<'_, PyAny>) -> WayOut {
    if !object.is_instance_of::<PyTuple>() || !object.hasattr("_fields")? {
        return Ok(None);
    }
    Ok(match (object.hasattr("offsets")?, object.hasattr("lengths")?, object.hasattr("mask")?) {
        (true, _, false) => {
            Some("from_ragged(*x) makes a column of lists of it, for pyarrow.table")
        }
        (true, _, true) => Some(
            "from_ragged(x.values, x.offsets, mask=x.mask) makes a column of lists of it, for pyarrow.table",
        ),
        (_, true, false) => {
            Some("from_padded(*x) makes a column of lists of it, for pyarrow.table")
        }
        (_, true, true) => Some(
            "from_padded(x.values, x.lengths, mask=x.mask) makes a column of lists of it, for pyarrow.table",
        ),
        _ => None,
    })
}

/// How to convert an array of NumPy's whose dtype no tensor has.
pub(super) fn of_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Some(dtype) = object.getattr_opt("dtype")? else { return Ok(None) };
    let Some(kind) = dtype.getattr_opt("kind")? else { return Ok(None) };
    Ok(match kind.extract::<String>()?.as_str() {
        "M" | "m" => Some(format!(
            "pyarrow.array(x) makes Arrow data of {dtype}; x.view(\"int64\") has its numbers as a tensor"
        )),
        "U" | "S" | "O" => Some(format!("pyarrow.array(x) makes Arrow data of {dtype}")),
        "T" => Some("pyarrow.array(x.tolist()) makes Arrow data of texts".to_owned()),
        "V" if !dtype.getattr("names")?.is_none() => Some(
            "record_batch({name: x[name] for name in x.dtype.names}) makes a table of its fields"
                .to_owned(),
        ),
        _ if !dtype.getattr("isnative")?.extract::<bool>()? => {
            Some("x.astype(x.dtype.newbyteorder(\"=\")) has the machine's byte order".to_owned())
        }
        "f" if dtype.getattr("itemsize")?.extract::<usize>()? > 8 => {
            Some("x.astype(\"float64\") is a tensor".to_owned())
        }
        _ => None,
    })
}

/// How to make Arrow data of it.
fn arrow_of(object: &Bound<'_, PyAny>, expected: Expected) -> WayOut {
    if object.is_none() {
        return Ok(Some("is there a return missing?"));
    }
    let has_dlpack = object.hasattr("__dlpack__")?;
    if expected == Expected::Arrow && has_dlpack {
        return Ok(Some(
            "it is a tensor already: asdlpack(x) and Tensor.from_dlpack(x) make a Tensor of it, from_dlpack(x) \
             an Array",
        ));
    }
    if is_path(object)? {
        return Ok(Some(
            "if it is a path, pyarrow.dataset.dataset(x) opens it, for iter_batches, and to_table() of that \
             reads it all",
        ));
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(Some(
            "asdlpack(x) is a tensor of its bytes; if they are a path, use os.fsdecode, and if they are Arrow \
             IPC, pyarrow.ipc.open_stream(x)",
        ));
    }
    if object.hasattr("__array_interface__")?
        || object.is_instance_of::<PyMemoryView>()
        || has_buffer(object)
    {
        return Ok(Some("asdlpack(x) is a tensor of its memory, and to_arrow() of that an Array"));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let are_tensors =
            dict.values().iter().any(|value| matches!(value.hasattr("__dlpack__"), Ok(true)));
        return Ok(Some(match are_tensors {
            true => "record_batch(x) makes a table of tensors",
            false => "pyarrow.table(x) makes a table of it",
        }));
    }
    if is_sequence(object) {
        return of_items(object);
    }
    if let Some(way_out) = of_library(object)? {
        return Ok(Some(way_out));
    }
    if object.hasattr("__next__")? {
        return Ok(Some(
            "pyarrow.array(list(x)) makes an array of values, and pyarrow.RecordBatchReader.from_batches(schema, \
             x) a reader of record batches",
        ));
    }
    if object.hasattr("__array__")? || object.hasattr("__arrow_array__")? {
        return Ok(Some("pyarrow.array(x) makes an array of it"));
    }
    if object.hasattr("as_py")? || object.hasattr("__index__")? || object.hasattr("__float__")? {
        return Ok(Some("pyarrow.array([x]) makes an array of one value"));
    }
    Ok(match object.hasattr("__iter__")? && !object.hasattr("__arrow_c_schema__")? {
        true => Some("pyarrow.array(x) makes an array of values"),
        false => None,
    })
}

/// How to convert a list or tuple, judged by its first item.
fn of_items(object: &Bound<'_, PyAny>) -> WayOut {
    let first = object.try_iter()?.next().transpose()?;
    let Some(first) = first else {
        return Ok(Some("pyarrow.array(x, type) makes an array of none"));
    };
    Ok(Some(if is_arrow(&first)? {
        return of_arrow(&first).map(Some);
    } else if first.hasattr("__dlpack__")? {
        "several are one after numpy.stack(x) or torch.stack(x), or columns: record_batch(dict(...))"
    } else if first.is_instance_of::<PyDict>() {
        "pyarrow.Table.from_pylist(x) makes a table of it"
    } else if is_path(&first)? {
        "pyarrow.array(x) makes an array of texts; if they are paths, pyarrow.dataset.dataset(x) opens them"
    } else {
        "pyarrow.array(x) makes an array of values"
    }))
}

/// How to join several Arrow objects, by the library of the first.
fn of_arrow(first: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let module = first.get_type().module()?.to_string();
    let library = module.split('.').next().unwrap_or_default();
    Ok(match (library, type_name(first).as_str()) {
        ("pyarrow", "RecordBatch") => "several are one after pyarrow.Table.from_batches(x)",
        ("pyarrow", "Table") => "several are one after pyarrow.concat_tables(x)",
        ("pyarrow", _) => "several are one after pyarrow.chunked_array(x)",
        ("polars", _) => "several are one after polars.concat(x)",
        ("pandas", _) => "several are one after pandas.concat(x)",
        _ => "put them together first, in their own library, or as pyarrow.concat_tables does",
    })
}

/// Classes of libraries close to Arrow, recognised by attributes that only they have. The first match counts.
const LIBRARIES: &[(&[&str], &str)] = &[
    (
        &["set_epoch", "state_dict", "categories"],
        "a Loader makes batches of tensors: loop over it, or pass what it reads",
    ),
    (&["dictionaries", "close"], "these are batches of tensors already: loop over them"),
    (&["sources", "stopping_strategy"], "a Mix is what a Loader reads: loop over Loader(x)"),
    (&["to_table"], "x.to_table() reads it, and iter_batches takes it as it is"),
    (
        &["schema_arrow", "read"],
        "x.read() makes a table of it, and x.iter_batches() goes through it",
    ),
    (&["to_arrow_table"], "x.to_arrow_table() has the result, and so has what x.sql(...) returns"),
    (&["fetch_arrow_table"], "x.fetch_arrow_table() has the result"),
    (&["collect"], "x.collect() makes a frame of it"),
    (&["toArrow"], "x.toArrow() makes a table of it"),
    (&["to_pyarrow"], "x.to_pyarrow() makes a table of it"),
    (&["to_pyarrow_dataset"], "x.to_pyarrow_dataset() is what iter_batches takes"),
    (&["with_format"], "x.with_format(\"arrow\")[:] is a table"),
    (&["agg"], "these are groups: aggregate them, with x.agg(...)"),
    (&["to_frame"], "x.to_frame() makes a frame of it"),
    (&["compute", "dask"], "x.compute() makes a frame of it"),
    (&["to_arrow"], "x.to_arrow() makes a table of it"),
    (
        &["cursor", "execute"],
        "a connection has no rows: polars.read_database(query, x) and pandas.read_sql(query, x) make a frame of \
         a query's",
    ),
    (
        &["fetchone", "execute"],
        "a cursor's rows are Python objects: polars.read_database(query, connection) and pandas.read_sql(query, \
         connection) make a frame of them",
    ),
    (
        &["read", "close"],
        "a file is for who knows its format, such as pyarrow.parquet.read_table(x), pyarrow.csv.read_csv(x) and \
         pyarrow.ipc.open_stream(x)",
    ),
];

fn of_library(object: &Bound<'_, PyAny>) -> WayOut {
    for (methods, way_out) in LIBRARIES {
        let mut has = methods.iter().map(|&method| object.hasattr(method));
        if has.try_fold(true, |all, has| has.map(|has| all && has))? {
            return Ok(Some(way_out));
        }
    }
    Ok(None)
}

fn is_path(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyString>() || object.hasattr("__fspath__")?)
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
}
