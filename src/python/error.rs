//! Errors as Python exceptions.

use arrow_schema::DataType;
use pyo3::exceptions::{
    PyBufferError, PyKeyError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::types::{IntoPyDict, PyType};
use pyo3::{prelude::*, sync::PyOnceLock};

use super::arrow::bound::list_of;
use crate::{Error, ReaderError, error::Count, export};

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
            (Self::Tensor, list) if in_table && list_of(list).is_some() => Some(
                "its rows may differ in length: leave it out with columns=, pass this column alone to ragged, or, if \
                 they do not differ, cast it to a fixed-size list or take it as Dense() in Loader",
            ),
            (Self::Tensor, text) if in_table && export::is_ragged(text) => Some(
                "its rows differ in length: leave it out with columns=, or pass this column alone to ragged",
            ),
            (Self::Batches, list) if list_of(list).is_some() => Some(
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
        let (is_list, is_ragged) = (export::is_list(data_type), export::is_ragged(data_type));
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
                if export::is_ragged(data_type) || matches!(data_type, DataType::Struct(_)) =>
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
