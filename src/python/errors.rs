//! The exceptions: errors in Python's words, whose hint names a keyword or function of what was called.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyKeyError, PyMemoryError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyTuple, PyType};
use pyo3::{intern, prelude::*};

use crate::ErrorKind;
use crate::arrow_types::{is_ragged, is_variable_list, item_of};
use crate::batches::{BatchOptions, ColumnOptions, Form};
use crate::chunks::logical_nulls;
use crate::error::{Count, RefusedColumns};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{Error, Hint, ReaderError, export};

/// `UnsupportedError(BufferError, TypeError)`: a type, rank or nulls that are refused. It is a
/// `TypeError` because pyarrow raises one, and code written for pyarrow catches it.
pub(super) fn unsupported_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let bases = [py.get_type::<PyBufferError>(), py.get_type::<PyTypeError>()];
    let doc = "This data has no form on the other side as it was asked for: its type, its rank or its \
               nulls are refused. The message names the keyword or the function that helps, if there is one.";
    exception(&CLASS, "UnsupportedError", &bases, doc)
}

/// `MissingProtocolError(TypeError, AttributeError)`: an object that is no tensor. The array API's `from_dlpack` raises an
/// `AttributeError`; it is a wrong argument to everything else.
pub(super) fn missing_protocol_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let bases = [py.get_type::<PyTypeError>(), py.get_type::<PyAttributeError>()];
    let doc = "This object is no tensor: it has no __dlpack__, and is no DLPack capsule. The message names what makes \
               one of it, if that is known.";
    exception(&CLASS, "MissingProtocolError", &bases, doc)
}

/// `StreamError(ValueError)`: what an Arrow stream says of its failure.
pub(super) fn stream_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let doc =
        "The source of an Arrow stream failed while it was read: the message is what it said.";
    exception(&CLASS, "StreamError", &[py.get_type::<PyValueError>()], doc)
}

/// A class of exceptions with these bases, made once.
fn exception<'py>(
    class: &'static PyOnceLock<Py<PyType>>,
    name: &str,
    bases: &[Bound<'py, PyType>],
    doc: &str,
) -> PyResult<Bound<'py, PyType>> {
    let py = bases[0].py();
    let class = class.get_or_try_init(py, || {
        let namespace = [("__module__", "arrow_dlpack"), ("__doc__", doc)].into_py_dict(py)?;
        let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, namespace))?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py).clone())
}

/// An error of a protocol: `Asked::refusal` says which exception.
impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        Asked::protocol().refusal(error)
    }
}

/// The exception that a reader raised; an error that is only text becomes a `ValueError`.
fn raised(error: &ReaderError) -> PyErr {
    match error.get_ref().downcast_ref::<PyErr>() {
        Some(error) => Python::attach(|py| error.clone_ref(py)),
        None => PyValueError::new_err(error.get_ref().to_string()),
    }
}

/// What was called, which decides the keywords and functions that a hint names.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// A protocol such as `__dlpack__`, whose caller passes none of our keywords.
    Protocol,
    /// A function, or a protocol, of an extension that has none of our functions.
    Extension,
    /// `to_tensor` and `to_tensor_dict`.
    Tensor,
    /// `Array.to_tensor`, which takes no `pad=`.
    Method,
    /// `to_tensor` with `out=`, whose dtype is the one asked for.
    Out,
    /// `ragged`.
    Ragged,
    /// `to_tensor` with `pad=`.
    Padded,
    /// `Array.row`, and iteration, for this row.
    Row(usize),
    /// Batches of these wishes.
    Batches(&'a Wishes),
}

/// Whether this module has the functions of the package, which hints name.
static HAS_FUNCTIONS: AtomicBool = AtomicBool::new(false);

/// Lets hints name them.
pub(super) fn name_functions() {
    HAS_FUNCTIONS.store(true, Ordering::Relaxed);
}

impl Asked<'_> {
    /// What calls without keywords of ours, in this module.
    pub(super) fn protocol() -> Self {
        match HAS_FUNCTIONS.load(Ordering::Relaxed) {
            true => Self::Protocol,
            false => Self::Extension,
        }
    }

    /// `BufferError`, except for conversions that no keyword allows (`UnsupportedError`), values that do not allow
    /// what a keyword requests (`ValueError`), and lack of memory (`MemoryError`).
    #[cold]
    pub(super) fn refusal(self, error: Error) -> PyErr {
        let message = self.message(&error, None);
        match (error.kind(), &error) {
            (_, Error::Reader(error)) => raised(error),
            (_, Error::Panicked(panic)) => PyRuntimeError::new_err(panic.clone()),
            (ErrorKind::System, _) => PyRuntimeError::new_err(message),
            (ErrorKind::Name, _) => PyKeyError::new_err(message),
            (ErrorKind::Memory, _) => PyMemoryError::new_err(message),
            (ErrorKind::Value, _) => PyValueError::new_err(message),
            _ if error.is_type_refusal() => unsupported(message),
            _ => PyBufferError::new_err(message),
        }
    }

    /// The message of an error, of a column or of anything else.
    pub(super) fn message(self, error: &Error, column: Option<&str>) -> String {
        match (self, error) {
            (_, Error::Column { name, error }) => {
                let row =
                    self.row(name, error).map_or_else(String::new, |row| format!("row {row}, "));
                format!("{row}column {name:?}: {}", self.message(error, Some(name)))
            }
            (_, Error::Columns { errors }) => {
                let columns = errors.iter().map(|error| self.message(error, column));
                RefusedColumns(&columns.collect::<Vec<_>>()).to_string()
            }
            (_, Error::NoColumns) => {
                format!("{error} (an index of pandas's counts where columns= names it)")
            }
            (Self::Row(row), Error::Nulls { data_type, .. })
                if is_ragged(data_type) || matches!(data_type, DataType::Struct(_)) =>
            {
                format!("row {row} has 1 null where its shape would be: leave it out")
            }
            (Self::Row(row), Error::Nulls { null_count, .. }) => format!(
                "row {row} has {}, and a tensor cannot hold nulls: call row({row}, nulls=...) with a fill \
                 value, \"nan\" or \"mask\", or drop them first",
                Count(*null_count, "null")
            ),
            (Self::Out, Error::ValueDoesNotFit { value, dtype, row, .. }) => format!(
                "value {value} in row {row} does not fit {dtype}: make out of a dtype that holds every value"
            ),
            (Self::Out, Error::CannotCast { from, to }) => {
                format!("{from} cannot become {to}: make out of another dtype")
            }
            (Self::Batches(wishes), Error::RowLength { row, length, expected }) => {
                let way_out = match wishes.role(column) {
                    Role::Matrix => IN_NO_MATRIX,
                    _ => {
                        "leave out Dense(), which keeps lists Ragged and rows of one length as they are, or use Pad() for lists"
                    }
                };
                format!(
                    "row {row} of a batch has {length} values where {expected} are expected, as the first row or Dense() \
                     has them: {way_out}"
                )
            }
            (Self::Extension, _) => error.fact() + &Self::without_functions(error, column),
            _ => match self.advice(error, column) {
                Some(advice) => error.fact() + &advice,
                None => error.to_string(),
            },
        }
    }

    /// The row of a request that an error is of, where its message does not tell it.
    fn row(self, column: &str, error: &Error) -> Option<usize> {
        let Self::Batches(wishes) = self else { return None };
        let (_, values) = wishes.request.iter().find(|(name, _)| name == column)?;
        match error {
            Error::NotACategory { row, .. } => Some(*row),
            Error::Nulls { .. } | Error::NullsInRows { .. } => first_null(values),
            _ => None,
        }
    }

    /// The end of a message where no function of ours can be called: what to do with the data before the call.
    fn without_functions(error: &Error, column: Option<&str>) -> String {
        match error.hint() {
            Some(Hint::Nulls | Hint::NullsInRows) => "drop them, or fill them".to_owned(),
            Some(Hint::Lists) => {
                "cast it to a fixed-size list, if its rows have one length".to_owned()
            }
            Some(Hint::AllNull) => "cast it to the type you mean".to_owned(),
            Some(
                hint @ (Hint::Text(_)
                | Hint::Interval
                | Hint::Entries
                | Hint::Contiguous
                | Hint::Runs),
            ) => Self::Tensor.words(hint, column),
            Some(Hint::OneName) => "rename all but one".to_owned(),
            Some(Hint::DictionaryValues) => "cast it to its values first".to_owned(),
            Some(Hint::RaggedOrPadded) => "cut or pad them".to_owned(),
            Some(Hint::Fields) => "pass its fields one by one".to_owned(),
            Some(Hint::Texts | Hint::Binaries) => "its rows differ in length".to_owned(),
            Some(_) => "convert it first".to_owned(),
            None => String::new(),
        }
    }

    /// The hint of an error in Python's words.
    fn advice(self, error: &Error, column: Option<&str>) -> Option<String> {
        let hint = match (self, error, error.hint()?) {
            // A loop has one type for the codes of all batches.
            (
                Self::Batches(_),
                Error::NotJustNumbers { data_type: DataType::Dictionary(..), .. },
                Hint::Physical(_),
            ) => Hint::Physical(DLDataType::INT32),
            (.., hint) => hint,
        };
        let mut words = self.words(hint, column);
        if matches!(hint, Hint::Lists | Hint::FlattenLists) && is_of_list_views(error) {
            words += OF_LIST_VIEWS;
        }
        let are_lists = match error {
            Error::Nulls { data_type, .. } => item_of(data_type).is_some(),
            _ => matches!(error, Error::NullsInRows { .. }),
        };
        Some(match (self, error) {
            (Self::Batches(wishes), Error::Nulls { .. } | Error::NullsInRows { .. })
                if !wishes.request.is_empty() =>
            {
                let keyword = wishes.own_nulls(column, are_lists).unwrap_or("nulls= of the Loader");
                format!("send rows without them, or say in training what they become, by {keyword}")
            }
            (Self::Batches(wishes), Error::Nulls { .. }) => {
                match wishes.own_nulls(column, are_lists) {
                    Some(keyword) => format!(
                        "drop them with filter=, or say what they become by {keyword} for this column"
                    ),
                    None => words,
                }
            }
            (Self::Batches(wishes), Error::NullsInRows { .. }) => {
                match wishes.own_nulls(column, are_lists) {
                    Some(keyword) => format!(
                        "drop them, or say a fill value or \"nan\" by {keyword} for this column (\"mask\" is of the rows)"
                    ),
                    None => words,
                }
            }
            // There are no words that are structs or lists.
            (
                Self::Batches(_),
                Error::NotJustNumbers { data_type: DataType::Dictionary(_, values), .. },
            ) if values.is_nested() => words + self.or_arrow(column),
            (
                Self::Batches(_),
                Error::NotJustNumbers { data_type: DataType::Dictionary(..), .. },
            ) => {
                let or_arrow = self.or_arrow(column);
                format!("make codes of it with Categories([...]){or_arrow}, or {words}")
            }
            (Self::Batches(_), Error::UnsupportedType { .. }) if Self::may_be_arrow(hint) => {
                words + self.or_arrow(column)
            }
            (_, Error::UnsupportedExtension { in_rows: true, .. }) => words + self.or_arrow(column),
            (_, Error::UnsupportedExtension { name, data_type, .. })
                if name.starts_with("datasets.features.features.Array")
                    && is_variable_list(data_type) =>
            {
                as_sequences(data_type, column) + self.or_arrow(column)
            }
            (_, Error::UnsupportedExtension { name, data_type, .. }) => {
                let of_storage = self.of_storage(data_type, column).unwrap_or(words);
                match self {
                    Self::Tensor | Self::Method if name == "pandas.interval" => {
                        ends_in_pandas(column) + &of_storage
                    }
                    _ => of_storage,
                }
            }
            _ => words,
        })
    }

    /// A hint in Python's words.
    fn words(self, hint: Hint, column: Option<&str>) -> String {
        let of_column = match self {
            Self::Batches(wishes) => wishes.words(hint, column),
            _ => None,
        };
        let own = || self.own_words(hint, column.is_some()).map(str::to_owned);
        if let Some(words) = of_column.or_else(own) {
            return words;
        }
        let to = self.taker();
        let words = match hint {
            Hint::Text(text) => text,
            Hint::Nulls => "drop them, or pass nulls= (a fill value, \"nan\" or \"mask\")",
            Hint::NullsInRows => {
                "drop them, or pass a fill value or \"nan\" as nulls= (\"mask\" is of the rows)"
            }
            Hint::WiderThanFill => {
                let alone = column.map_or("", |_| ", or convert the column in a call for it alone");
                return format!(
                    "pass dtype={to} with one that does (nulls=\"nan\" makes floats of integers){alone}"
                );
            }
            Hint::WiderThanPad => return format!("pass dtype={to} with one that does"),
            Hint::Texts | Hint::Binaries => {
                "its rows differ in length: use ragged, for all values and where each row begins"
            }
            Hint::Lists => {
                "its rows may differ in length: use ragged, or cast it to a fixed-size list if they do not"
            }
            // NumPy makes no array of tuples and None.
            Hint::Interval => {
                "split it into numbers first, which pyarrow.array(x.to_pylist(), pyarrow.list_(pyarrow.int64(), 3)) has"
            }
            Hint::Fields => "flatten it first, as pyarrow's table.flatten() and polars' unnest do",
            Hint::Decimal | Hint::DecimalAsFloats => return of_decimals(hint, to),
            Hint::Runs => return decoded(column),
            Hint::DictionaryValues => CAST_TO_VALUES,
            Hint::OneName => "rename all but one, or name others in columns=",
            Hint::AllNull => {
                return format!(
                    "cast it to the type you mean, or pass dtype= and nulls={to}, as dtype=\"float32\" and nulls=\"nan\""
                );
            }
            Hint::RowByRow => "its rows differ in shape: take the tensors one by one, with row",
            Hint::RaggedOrPadded => {
                // row takes no pad=.
                let to = if to.is_empty() { to } else { " to to_tensor" };
                return format!("use ragged, or pass pad={to} for padded rows");
            }
            Hint::Tensor => "use to_tensor",
            Hint::PhysicalTensor => "use to_tensor, with physical=True for its integers",
            Hint::FloatTensor => "use to_tensor, with dtype=\"float64\"",
            Hint::Entries => {
                "convert its keys and its items one by one, pyarrow's keys and items of pyarrow.concat_arrays([x]), or of \
                 x.combine_chunks() of a chunked array: a slice's own are those of the whole array"
            }
            Hint::FlattenStructs
            | Hint::FlattenLists
            | Hint::FlattenTexts
            | Hint::FlattenExtensions
            | Hint::FlattenToRagged => return flattening(hint),
            Hint::TypeOfRows | Hint::TypeOfElements | Hint::CodesAlone => return of_types(hint),
            Hint::Unknown => "Categories(words, unknown=-1) gives others a code",
            Hint::LongOffsets => "pass offset_type=\"int64\"",
            Hint::Physical(dtype) => {
                return format!("pass physical=True{to} for its {dtype} values");
            }
            Hint::PhysicalOrFloats(dtype) => {
                return format!(
                    "pass physical=True{to} for its {dtype} values, or dtype=\"float64\" for the numbers that they stand for"
                );
            }
            Hint::PhysicalOrNumbers(dtype) => {
                let decoded = column.map_or(
                    "take its values by pyarrow.array(x).dictionary_decode()",
                    |_| "cast this column alone to the type of its values, as pyarrow.compute.cast does",
                );
                return format!(
                    "pass physical=True{to} for its {dtype} values, or {decoded}, which are numbers"
                );
            }
            Hint::Float64 => return format!("pass dtype=\"float64\"{to}"),
            Hint::RaggedStorage => "use ragged, with physical=True, for its storage",
            // A protocol names the extension type, and not its storage, which of_storage needs.
            Hint::ChildrenOfStorage => {
                "take its storage first, in pyarrow x.storage, or x itself where pyarrow does not know the type: of a \
                 struct to_tensor_dict has the fields; convert the children of others one by one"
            }
            Hint::PhysicalStorage => return format!("pass physical=True{to} for its storage"),
            Hint::Permuted => {
                "type=\"permuted\", or a fixed_shape_tensor type with a permutation (of arrow.bool8 or arrow.opaque, if \
                 its elements are), keeps that order"
            }
            Hint::KeptBooleans => "type=\"bool8\" keeps them as bytes",
            Hint::KeptElements => "type=\"opaque\" keeps the elements",
            Hint::Contiguous => "copy it first, for instance with numpy.ascontiguousarray",
            Hint::Versioned => "ask for max_version=(1, 1) or later",
        };
        words.to_owned()
    }

    /// What takes the keywords of hints, where that is not what was called.
    fn taker(self) -> &'static str {
        match self {
            Self::Protocol => " to to_tensor",
            Self::Row(_) => " to row",
            _ => "",
        }
    }

    /// The words for a hint where they depend on what was called.
    fn own_words(self, hint: Hint, in_table: bool) -> Option<&'static str> {
        Some(match (self, hint) {
            (Self::Protocol, Hint::Nulls) => {
                "drop them, or pass nulls= (a fill value, \"nan\" or \"mask\") to to_tensor or ragged"
            }
            (Self::Method, Hint::RaggedOrPadded) => {
                "use ragged, or pass pad= to arrow_dlpack.to_tensor for padded rows"
            }
            (Self::Out, Hint::Nulls) => "drop them, or pass a fill value or \"nan\" as nulls=",
            (Self::Out, Hint::WiderThanFill) => "make out of a dtype that does",
            (Self::Out, Hint::Decimal | Hint::DecimalAsFloats | Hint::Float64) => {
                "make out of a dtype of floats, such as float64"
            }
            (Self::Out, Hint::PhysicalOrFloats(_)) => {
                "pass physical=True for its integers, or make out of a dtype of floats for the numbers that they stand for"
            }
            (Self::Out, Hint::RaggedOrPadded) => {
                "use ragged, or leave out out= and pass pad= for padded rows"
            }
            // asdlpack, of a table.
            (Self::Protocol, Hint::Texts | Hint::Binaries | Hint::Lists) if in_table => {
                "its rows may differ in length: to_tensor(x, columns=[...]) leaves it out, and ragged takes this column alone"
            }
            // ragged refuses tables; of a column alone to_tensor sees whether its rows have one length.
            (Self::Tensor | Self::Method | Self::Out, Hint::Texts | Hint::Binaries) if in_table => {
                "its rows differ in length: leave it out with columns=, or pass this column alone to ragged"
            }
            (Self::Batches(_), Hint::Lists) => {
                "its rows may differ in length: take it as Dense() if they do not, leave it out with columns=, or use \
                 format=\"dict\""
            }
            (Self::Tensor | Self::Method | Self::Out, Hint::Lists) if in_table => {
                "its rows may differ in length: leave it out with columns=, pass this column alone to ragged, or, if \
                 they do not differ, cast it to a fixed-size list or take it as Dense() in Loader"
            }
            (Self::Batches(_), Hint::Fields) => {
                "name its fields in columns=, as \"a.b\" is field b of column a, or flatten it first, as pyarrow's \
                 table.flatten() and polars' unnest do"
            }
            (Self::Protocol | Self::Row(_), Hint::Fields) => {
                "use to_tensor_dict, for a tensor of each field, or to_tensor of the table"
            }
            (Self::Padded, Hint::Tensor) => "leave out pad=",
            (Self::Padded, Hint::PhysicalTensor) => {
                "leave out pad=, and pass physical=True for its integers"
            }
            (Self::Padded, Hint::FloatTensor) => "leave out pad=, and pass dtype=\"float64\"",
            (Self::Batches(_), Hint::LongOffsets) => {
                "cast it to large_list, or make smaller batches"
            }
            (Self::Batches(_), Hint::Tensor) => "leave out Pad()",
            (Self::Batches(_), Hint::PhysicalTensor) => {
                "leave out Pad(), and pass physical=True for its integers"
            }
            (Self::Batches(_), Hint::FloatTensor) => "leave out Pad(), and pass dtype=\"float64\"",
            _ => return None,
        })
    }

    /// Whether a column of batches may be Arrow data in place of what this hint says.
    fn may_be_arrow(hint: Hint) -> bool {
        use Hint::{
            Binaries, Entries, FlattenExtensions, FlattenLists, FlattenStructs, FlattenTexts,
            Float64, Interval, Physical, RowByRow, Runs, Text, Texts,
        };
        matches!(
            hint,
            Text(_)
                | Runs
                | Entries
                | Interval
                | Texts
                | Binaries
                | RowByRow
                | FlattenStructs
                | FlattenLists
                | FlattenTexts
                | FlattenExtensions
                | Float64
                | Physical(_)
        )
    }

    /// The hint for an extension type, which its storage decides, if what was called changes it.
    fn of_storage(self, storage: &DataType, column: Option<&str>) -> Option<String> {
        let (is_list, is_ragged) = (is_variable_list(storage), is_ragged(storage));
        Some(match self {
            Self::Protocol => return None,
            Self::Batches(wishes) if matches!(storage, DataType::Struct(_)) => {
                let fields = match wishes.role(column) {
                    Role::Label => "take a field of it as the label",
                    _ => "name its fields in columns=",
                };
                let or_arrow = self.or_arrow(column);
                format!("{fields}, as \"a.b\" is field b of column a{or_arrow}")
            }
            _ if !export::has_form(storage) => {
                let storage_of = match storage {
                    // pyarrow does not cast these.
                    DataType::Union(..) | DataType::RunEndEncoded(..) => "x.storage",
                    _ => "x.cast(x.type.storage_type)",
                };
                let then = match (storage, column) {
                    (DataType::Struct(_), None) => "which is a table of its fields".to_owned(),
                    _ => format!("then {}", self.words(export::hint(storage), column)),
                };
                let or_arrow = self.or_arrow(column);
                format!(
                    "take its storage first, in pyarrow {storage_of}, or x itself where pyarrow does not know the \
                     type: {then}{or_arrow}"
                )
            }
            _ if self.are_rows(column) && !is_ragged => {
                let simply = self.words(Hint::Tensor, column);
                format!("its storage is not ragged: {simply}, with physical=True")
            }
            Self::Batches(_) if is_ragged && !is_list => {
                format!("make codes of it with Categories([...]){}", self.or_arrow(column))
            }
            Self::Tensor | Self::Method if is_ragged && column.is_some() => {
                "leave it out with columns=, or pass this column alone to ragged, with physical=True".to_owned()
            }
            Self::Tensor | Self::Method if is_ragged && !is_list => return None,
            _ => self.words(Hint::PhysicalStorage, column),
        })
    }

    /// Whether ragged or padded rows were asked for.
    fn are_rows(self, column: Option<&str>) -> bool {
        match self {
            Self::Ragged | Self::Padded => true,
            Self::Batches(wishes) => {
                matches!(wishes.own(column).form, Form::Ragged | Form::Pad(_))
            }
            _ => false,
        }
    }

    /// The end of a hint for a column that may be Arrow data in batches.
    fn or_arrow(self, column: Option<&str>) -> &'static str {
        match self {
            Self::Batches(wishes) if wishes.role(column) != Role::Matrix => {
                ", or hand it on as Arrow data with AsArrow()"
            }
            _ => "",
        }
    }
}

/// What to do with decimals of more than 64 bits. `to`: what takes the keywords.
fn of_decimals(hint: Hint, to: &str) -> String {
    let floats = format!("pass dtype=\"float64\"{to}, if that is exact enough");
    match hint {
        Hint::DecimalAsFloats => {
            format!("decimals become floats: {floats}, or {CAST_TO_INTEGERS}")
        }
        _ => format!("{floats}, or cast it to a decimal of up to 64 bits"),
    }
}

/// What makes texts or lists of a dictionary of them: pyarrow casts none of views, and none to lists.
const CAST_TO_VALUES: &str = "cast it to its values first, in pyarrow pyarrow.array(x).dictionary_decode(), or \
                              pyarrow.array(x.to_pylist(), type) of views, in polars x.cast(polars.String)";

/// What makes integers of decimals.
const CAST_TO_INTEGERS: &str =
    "cast it to integers first, which pyarrow.compute.cast does if it has no fractions";

/// What makes values of runs.
fn decoded(column: Option<&str>) -> String {
    let runs = column.map_or_else(|| "x".to_owned(), |name| format!("table[{name:?}]"));
    format!(
        "decode it first: pyarrow.compute.run_end_decode({runs}) has its values, and of views, codes, and inside lists \
         pyarrow.array({runs}.to_pylist(), type) with the type of plain values"
    )
}

/// Which type to ask for, where a tensor cannot become the one that was.
fn of_types(hint: Hint) -> String {
    let words = match hint {
        Hint::TypeOfRows => {
            "type= is that of the rows, such as pa.list_ of the items' type, or a text or binary type; views of texts and \
             binaries are cast from these, and pyarrow.array(pyarrow.array(x).to_pylist(), type) makes list views of lists x"
        }
        Hint::CodesAlone => {
            "of the codes and their dictionary pyarrow.DictionaryArray.from_arrays(pyarrow.array(from_dlpack(x)), \
             pyarrow.array(x.dictionary)) makes one; from_dlpack(x, mask=mask) keeps its nulls"
        }
        _ => {
            "ask by type= for one of the same elements and the same shape after the first axis, or cast and reshape \
             the tensor first"
        }
    };
    words.to_owned()
}

/// The end of a hint that names a cast of lists.
const OF_LIST_VIEWS: &str =
    " (pyarrow casts no list views: pyarrow.array(x.to_pylist(), type) makes lists of that type)";

/// Whether an error is of lists that are list views, at some level.
fn is_of_list_views(error: &Error) -> bool {
    let Error::UnsupportedType { data_type, .. } = error else { return false };
    levels(data_type).any(|of| matches!(of, DataType::ListView(_) | DataType::LargeListView(_)))
}

/// The type, and those of the items in it, from list to list.
fn levels(data_type: &DataType) -> impl Iterator<Item = &DataType> {
    iter::successors(Some(data_type), |of| Some(item_of(of)?.data_type()))
}

/// What makes rows of one shape of the arrays of Hugging Face, which stores each as lists of lists.
fn as_sequences(storage: &DataType, column: Option<&str>) -> String {
    let (depth, numbers) = (levels(storage).count(), levels(storage).last());
    let dtype = match numbers {
        Some(DataType::Boolean) => DLDataType::BOOL,
        _ => numbers.and_then(DLDataType::from_arrow).unwrap_or(DLDataType::INT64),
    };
    let lengths = 2..=depth;
    let made = lengths.clone().fold(format!("datasets.Value(\"{dtype}\")"), |items, length| {
        format!("datasets.Sequence({items}, {length})")
    });
    let shape = lengths.rev().map(|length| length.to_string()).collect::<Vec<_>>().join(", ");
    format!(
        "cast it in its dataset, as x.cast_column({:?}, {made}) does for rows of shape ({shape})",
        column.unwrap_or("column")
    )
}

/// What to do with rows whose items have no form in them.
fn flattening(hint: Hint) -> String {
    let (why, then) = match hint {
        Hint::FlattenStructs => ("the rows' items are structs: ", ", for a table of them"),
        Hint::FlattenLists => (
            "the rows' items are lists themselves: ",
            ", or cast lists of one length to their type, as pyarrow.array(x).cast(pyarrow.list_(pyarrow.list_(type, 2), 3)), \
             or in polars x.cast(polars.Array(type, (3, 2))), does for rows of shape (3, 2), with the type of their numbers",
        ),
        Hint::FlattenTexts => {
            ("as items of lists such values have none: ", ", and use ragged of that")
        }
        Hint::FlattenToRagged => ("", ", whose items alone are ragged"),
        _ => ("", ", for what such values allow alone"),
    };
    let what = match hint {
        Hint::FlattenStructs | Hint::FlattenLists => "one level",
        _ => "the lists",
    };
    format!(
        "{why}flatten {what} first, as pyarrow.compute.list_flatten does (of a Series, after x = pyarrow.array(x)), and \
         x.explode() of polars{then}"
    )
}

/// The beginning of a hint for intervals of pandas, of which pandas itself has both ends.
fn ends_in_pandas(column: Option<&str>) -> String {
    match column {
        Some(name) => format!(
            "in pandas x.assign(left=x[{name:?}].array.left, right=x[{name:?}].array.right).drop(columns=[{name:?}]) \
             has their ends; else "
        ),
        None => "in pandas pandas.DataFrame({\"left\": x.array.left, \"right\": x.array.right}) has their ends; else "
            .to_owned(),
    }
}

/// The way out of lists of different lengths in a matrix, which takes neither Ragged nor padded rows.
const IN_NO_MATRIX: &str =
    "leave it out with columns=, or use format=\"dict\", for Ragged rows or Pad()";

/// What a column of batches is, which decides what may be wished of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// `dtype=` does not reach it, nor does "nan", unless it is a float.
    Label,
    /// A tensor of its own.
    Feature,
    /// One dtype and one policy for nulls are those of all columns.
    Matrix,
}

/// The wishes of batches that their messages depend on.
#[derive(Clone)]
pub(super) struct Wishes {
    labels: Vec<String>,
    own: Vec<(String, ColumnOptions)>,
    matrix: bool,
    /// That of all features, if they are to have one.
    dtype: Option<DLDataType>,
    /// Of a request the columns, whose rows are those that its sender knows.
    request: Vec<(String, ArrayRef)>,
}

/// The first row that is null, or has an item that is.
fn first_null(values: &ArrayRef) -> Option<usize> {
    let nulls = logical_nulls(values).ok()?;
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let items = |row: usize| match values.data_type() {
        DataType::List(_) => Some(values.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(values.as_list::<i64>().value(row)),
        DataType::ListView(_) => Some(values.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => Some(values.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(values.as_fixed_size_list().value(row)),
        _ => None,
    };
    (0..values.len())
        .find(|&row| is_null(row) || items(row).is_some_and(|items| first_null(&items).is_some()))
}

impl Wishes {
    pub(super) fn of(options: &BatchOptions) -> Self {
        let BatchOptions { labels, column_options, matrix, export, .. } = options;
        let (labels, own) = (labels.clone(), column_options.clone());
        Self { labels, own, matrix: *matrix, dtype: export.dtype, request: Vec::new() }
    }

    /// The same of a request, whose rows errors name.
    pub(super) fn of_request(&self, columns: &[(ArrayRef, FieldRef)]) -> Self {
        let named =
            |(values, field): &(ArrayRef, FieldRef)| (field.name().clone(), Arc::clone(values));
        Self { request: columns.iter().map(named).collect(), ..self.clone() }
    }

    fn role(&self, column: Option<&str>) -> Role {
        match column {
            Some(name) if self.labels.iter().any(|label| label == name) => Role::Label,
            _ if self.matrix => Role::Matrix,
            _ => Role::Feature,
        }
    }

    fn own(&self, column: Option<&str>) -> ColumnOptions {
        let own = self.own.iter().rev().find(|(own, _)| Some(own.as_str()) == column);
        own.map_or_else(ColumnOptions::default, |(_, options)| options.clone())
    }

    /// The keyword that says what a column's nulls become, if `nulls=` does not: that of its own wish, or of a label's.
    fn own_nulls(&self, column: Option<&str>, are_lists: bool) -> Option<&'static str> {
        let own = self.own(column);
        let is_own = own.nulls.is_some() || self.role(column) == Role::Label;
        is_own.then_some(match own.form {
            Form::Pad(_) => "nulls= of Pad",
            Form::Dense(_) => "nulls= of Dense",
            _ if are_lists => "nulls= of Cast, Dense or Pad",
            _ => "nulls= of Cast or Categories",
        })
    }

    /// The words for a hint where they depend on what the column is.
    fn words(&self, hint: Hint, column: Option<&str>) -> Option<String> {
        let role = self.role(column);
        let floats = match role {
            Role::Label => "take it as Cast(\"float64\") (dtype= is not of a label)",
            Role::Feature => "pass dtype=\"float64\", or Cast(\"float64\") for it alone",
            Role::Matrix => "pass dtype=\"float64\"",
        };
        let own = self.own(column);
        let wider = match own.form {
            Form::Pad(_) => Some("pass dtype= of Pad() with one that does"),
            Form::Dense(_) => Some("pass dtype= of Dense() with one that does"),
            _ if own.dtype.is_some() => Some("name another dtype in Cast, which does"),
            _ => None,
        };
        let number = own.dtype.or(self.dtype.filter(|_| role != Role::Label));
        // A field of structs is no column of the table.
        let own_column = column.filter(|name| !name.contains('.'));
        if let (Hint::Texts, Some((number, name))) = (hint, number.zip(own_column)) {
            // Floats would round integers that were asked for.
            let is_integer = matches!(number.code, DLDataTypeCode::INT | DLDataTypeCode::UINT);
            let kind = if is_integer { number } else { DLDataType::FLOAT64 };
            let or_left_out = match role {
                Role::Label => "",
                _ => ", or leave it out with columns=",
            };
            return Some(format!(
                "make codes of it with Categories([...]){or_left_out}, or, if its texts are numbers, make these of them \
                 by table.set_column(table.column_names.index({name:?}), {name:?}, pyarrow.compute.cast(table[{name:?}], \
                 \"{kind}\")), and in pandas by frame.astype({{{name:?}: \"{kind}\"}})"
            ));
        }
        let words = match (hint, role) {
            (Hint::Texts | Hint::Binaries, Role::Label) => {
                "make codes of it with Categories([...])"
            }
            (Hint::Fields, Role::Label) => {
                "take a field of it as the label, as \"a.b\" is field b of column a"
            }
            (Hint::Texts, _) => {
                "make codes of it with Categories([...]), or leave it out with columns="
            }
            (Hint::Binaries, _) => "leave it out with columns=",
            (Hint::Decimal | Hint::Float64, _) => floats,
            (Hint::DecimalAsFloats, _) => {
                return Some(format!("decimals become floats: {floats}, or {CAST_TO_INTEGERS}"));
            }
            (Hint::PhysicalOrFloats(dtype), _) => {
                return Some(format!(
                    "pass physical=True for its {dtype} values, or, for the numbers that they stand for, {floats}"
                ));
            }
            (Hint::AllNull, Role::Matrix) => {
                "leave it out with columns=, or pass dtype= and nulls=, as dtype=\"float32\" and nulls=\"nan\""
            }
            (Hint::AllNull, _) => {
                "say what its nulls become, with Cast(\"float32\", nulls=\"nan\") or Categories([...], nulls=-1)"
            }
            (Hint::WiderThanFill | Hint::WiderThanPad, _) if wider.is_some() => wider?,
            (Hint::WiderThanFill, Role::Label) => {
                "say both for it, as Cast(\"int64\", nulls=...), with a dtype that does"
            }
            (Hint::WiderThanFill, Role::Feature) => {
                "pass dtype= with one that does (nulls=\"nan\" makes floats of integers), or say both for it alone, \
                 as Cast(\"int64\", nulls=...)"
            }
            (Hint::WiderThanFill, Role::Matrix) => {
                "pass dtype= with one that does (nulls=\"nan\" makes floats of integers)"
            }
            _ => return None,
        };
        Some(words.to_owned())
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
    let ours = [unsupported_error(py), missing_protocol_error(py), stream_error(py)];
    let is_ours = ours.iter().flatten().any(|ours| ours.is(&class));
    if !is_ours && !is_of_words.iter().any(|known| known.is(&class)) {
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
    Python::attach(|py| of_class(unsupported_error(py), message))
}

/// A `MissingProtocolError` with this message.
pub(super) fn missing_protocol(message: String) -> PyErr {
    Python::attach(|py| of_class(missing_protocol_error(py), message))
}

/// A `StreamError` with this message.
pub(super) fn stream_failed(message: String) -> PyErr {
    Python::attach(|py| of_class(stream_error(py), message))
}

fn of_class(class: PyResult<Bound<'_, PyType>>, message: String) -> PyErr {
    match class {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}

/// The error with a note, as `add_note` adds one: the error itself matters more than that.
pub(super) fn noted(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    let _added = error.value(py).call_method1(intern!(py, "add_note"), (note,));
    error
}
