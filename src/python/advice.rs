//! What a function accepts, and what to do with an object that is something else.

use std::borrow::Cow;
use std::fmt;

use pyo3::exceptions::PyTypeError;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt,
    PyList, PyMemoryView, PyRange, PySet, PyString, PyTuple, PyType,
};
use pyo3::{intern, prelude::*};

use super::describe::type_name;
use super::errors::missing_protocol;
use super::named_tuples::NamedRows;
use super::objects::_check_objects;
use super::protocols::{has_buffer, is_arrow, methods};
use super::runtime::loaded_module;
use crate::{Error, alloc};

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
        self.but(object, self.way_out(object))
    }

    /// How to make what was expected. An exception from the object's attributes must not replace the error.
    pub(super) fn way_out(self, object: &Bound<'_, PyAny>) -> Option<WayOut> {
        // A class has the attributes of its objects, but no values.
        if object.is_instance_of::<PyType>() {
            return Some("pass an object of it".into());
        }
        if let Ok(Some(way_out)) = of_dtype(object, "x") {
            return Some(way_out);
        }
        if let Ok(Some(way_out)) = of_rows(object) {
            return Some(way_out);
        }
        if let Ok(Some(way_out)) = of_some_arrow(object) {
            return Some(way_out);
        }
        if let Ok(Some(way_out)) = of_layout(object) {
            return Some(way_out.into());
        }
        if let Ok(Some(way_out)) = of_columns(object) {
            return Some(way_out);
        }
        let is_tensor = matches!(self, Self::Tensor | Self::Any);
        if let Ok(Some(way_out)) = of_objects(object, "x", is_tensor) {
            return Some(way_out);
        }
        let way_out = match self {
            Self::Tensor | Self::Any => tensor_of(object),
            Self::Arrow | Self::Either => arrow_of(object, self),
        };
        way_out.ok().flatten()
    }

    fn but(self, object: &Bound<'_, PyAny>, way_out: Option<WayOut>) -> PyErr {
        let expected = self.words();
        let got = match object.cast::<PyType>().map(|class| class.name()) {
            Ok(Ok(class)) => format!("the class {class}"),
            _ => type_name(object),
        };
        let way_out = way_out.map_or_else(String::new, |way| format!(": {way}"));
        let message = format!("expected {expected}, got {got}{way_out}");
        match self {
            Self::Tensor => missing_protocol(message),
            _ => PyTypeError::new_err(message),
        }
    }
}

/// What to do with an object that is something else than was expected.
pub(super) struct WayOut {
    words: Cow<'static, str>,
    /// What makes an array, where the words tell that.
    made: Option<Made>,
}

/// An expression of Python's.
enum Made {
    /// Values of which pyarrow makes an array.
    Of(Cow<'static, str>),
    Array(Cow<'static, str>),
    /// Of values, or of batches: nothing is read of what may be read but once.
    OfIterable,
    /// `from_dlpack` makes it of a tensor.
    OfTensor,
}

impl Made {
    fn array(&self) -> Cow<'_, str> {
        match self {
            Self::Of(values) => format!("pyarrow.array({values})").into(),
            Self::Array(array) => array.as_ref().into(),
            Self::OfIterable => "pyarrow.array(x)".into(),
            Self::OfTensor => "from_dlpack(x)".into(),
        }
    }

    /// How to make a table of it.
    fn table(&self) -> String {
        match self {
            Self::Of(column) | Self::Array(column) => {
                format!("pyarrow.table({{\"x\": {column}}}) makes a table of values")
            }
            Self::OfIterable => {
                "list(x) is a list of its batches, and iter(x) goes through them once; pyarrow.table({\"x\": x}) makes a \
                 table of values"
                    .to_owned()
            }
            Self::OfTensor => {
                "arrow_dlpack.record_batch({\"x\": x}) makes a table of it".to_owned()
            }
        }
    }
}

impl WayOut {
    fn made(made: Made, what: &str) -> Self {
        Self { words: format!("{} makes {what}", made.array()).into(), made: Some(made) }
    }

    /// pyarrow makes an array of these values.
    fn values(values: impl Into<Cow<'static, str>>, what: &str) -> Self {
        Self::made(Made::Of(values.into()), what)
    }

    /// An expression that makes an array.
    fn array(array: impl Into<Cow<'static, str>>, what: &str) -> Self {
        Self::made(Made::Array(array.into()), what)
    }

    /// The same words, and more of them.
    fn and(mut self, more: &str) -> Self {
        self.words.to_mut().push_str(more);
        self
    }
}

impl From<&'static str> for WayOut {
    fn from(words: &'static str) -> Self {
        Self { words: words.into(), made: None }
    }
}

impl From<String> for WayOut {
    fn from(words: String) -> Self {
        Self { words: words.into(), made: None }
    }
}

impl fmt::Display for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

type Found = PyResult<Option<WayOut>>;

/// How to make a table of an object that is no Arrow data: of values, one of a column.
#[pyfunction]
#[pyo3(signature = (data, /))]
pub(super) fn _way_to_table(data: &Bound<'_, PyAny>) -> Option<Cow<'static, str>> {
    let WayOut { words, made } = Expected::Arrow.way_out(data)?;
    Some(made.map_or(words, |made| made.table().into()))
}

/// How to make a tensor of it.
fn tensor_of(object: &Bound<'_, PyAny>) -> Found {
    if is_arrow(object)? && !has_array_interface(object)? {
        return Ok(Some("it is Arrow data: use to_tensor, or Array".into()));
    }
    if is_sequence(object) || is_set(object) {
        return tensor_of_items(object);
    }
    if has_array_interface(object)? || has_buffer(object) {
        return Ok(Some("asdlpack(x) takes its memory as it is".into()));
    }
    if is_path(object)? && object.str()?.to_str()?.ends_with(".npy") {
        return Ok(Some("if it is a path, numpy.load(x) reads such a file".into()));
    }
    if object.hasattr("as_py")? {
        return Ok(Some("numpy.asarray(x.as_py()) makes a tensor of it, if it is a number".into()));
    }
    // Arrays of pandas, of which NumPy makes Python's objects where a value is missing.
    if object.hasattr("__arrow_array__")? {
        return Ok(Some(
            "pyarrow.array(x) makes Arrow data of it, with nulls, and to_tensor a tensor of that"
                .into(),
        ));
    }
    if object.hasattr("__array__")? || is_number(object)? {
        return Ok(Some("numpy.asarray(x) makes a tensor of it".into()));
    }
    arrow_of(object, Expected::Either)
}

/// Whether it tells of memory with a shape, which Arrow data of it lack: Pillow's images are columns of pixels.
fn has_array_interface(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr(intern!(object.py(), "__array_interface__"))
}

/// Whether a list, tuple or set has a None. Of other sequences, which may claim any length or never end, nothing is read.
fn has_none(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match listed(object)? {
        Some(items) => Ok(items.iter().any(is_null)),
        None => Ok(is_set(object) && object.contains(object.py().None())?),
    }
}

/// Whether a value is None, or one of those of pandas's or NumPy's that stand for it.
pub(super) fn is_null(value: &Bound<'_, PyAny>) -> bool {
    let is_plain = value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyDict>();
    !is_plain
        && (value.is_none()
            || matches!(type_name(value).as_str(), "NAType" | "NaTType" | "MaskedConstant"))
}

/// Whether NumPy hides the value of an element: it has a number that is not meant.
pub(super) fn is_masked(value: &Bound<'_, PyAny>) -> bool {
    let mask = value.getattr_opt(intern!(value.py(), "mask")).ok().flatten();
    mask.is_some_and(|mask| is_mask(&mask) && mask.is_truthy().unwrap_or(true))
}

/// Whether an attribute of that name is a boolean or some: other arrays have a function, or awkward's accessor.
pub(super) fn is_mask(mask: &Bound<'_, PyAny>) -> bool {
    let has = |name: &str| mask.hasattr(name).unwrap_or(true);
    !mask.is_callable()
        && (mask.is_instance_of::<PyBool>() || has("dtype") || has("__len__") || has("__dlpack__"))
}

/// The first letter of the name of a dtype.
fn kind_of_elements(tensor: &Bound<'_, PyAny>) -> PyResult<char> {
    let dtype = tensor.getattr("dtype")?.str()?.to_string();
    Ok(dtype.rsplit('.').next().and_then(|name| name.chars().next()).unwrap_or_default())
}

/// 'M' of a time of NumPy's or an array of them, 'm' of durations, and `None` of anything else.
pub(super) fn kind_of_times(cell: &Bound<'_, PyAny>) -> PyResult<Option<char>> {
    let py = cell.py();
    let Some(dtype) = cell.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    let Some(kind) = dtype.getattr_opt(intern!(py, "kind"))? else { return Ok(None) };
    Ok(kind.extract().ok().filter(|kind| matches!(kind, 'M' | 'm')))
}

/// Whether a value is `pandas.NA` or `pandas.NaT`, of which pyarrow makes nulls where it is told that they are pandas's.
fn is_null_of_pandas(value: &Bound<'_, PyAny>) -> bool {
    matches!(type_name(value).as_str(), "NAType" | "NaTType")
}

/// Whether a list or tuple has an integer that 64 bits do not hold, of which neither NumPy nor pyarrow makes a number.
fn has_large(object: &Bound<'_, PyAny>) -> bool {
    let is_large = |item: &Bound<'_, PyAny>| {
        item.is_instance_of::<PyInt>()
            && item.extract::<i64>().is_err()
            && item.extract::<u64>().is_err()
    };
    listed(object).is_ok_and(|items| items.unwrap_or_default().iter().any(is_large))
}

/// How to make a tensor of a list, tuple or set, judged by its first item, and by whether one is missing.
fn tensor_of_items(object: &Bound<'_, PyAny>) -> Found {
    let of_numbers = match is_set(object) {
        true => "numpy.asarray(sorted(x)) makes a tensor of it",
        false => "numpy.asarray(x) makes a tensor of it",
    };
    let Some(first) = object.try_iter()?.next().transpose()? else {
        return Ok(Some(of_numbers.into()));
    };
    let items = listed(object)?.unwrap_or_default();
    let known = items.iter().find(|item| !is_null(item)).unwrap_or(&first);
    if known.is_instance_of::<PyString>() || known.is_instance_of::<PyBytes>() {
        return Ok(Some(
            "texts are no tensor: pyarrow.array(x) makes Arrow data of them, and pyarrow.table a table with it".into(),
        ));
    }
    if has_none(object)? {
        return Ok(Some(
            "pyarrow.array(x) makes Arrow data of it, with nulls, and to_tensor a tensor of that"
                .into(),
        ));
    }
    if has_large(object) {
        return Ok(Some("numpy.asarray(x, \"float64\") makes a tensor of it, of rounded numbers: 64 bits do not hold all of them".into()));
    }
    let words = if is_set(object) && !is_number(&first)? {
        return arrow_of(object, Expected::Either);
    } else if is_set(object) {
        of_numbers
    } else if items.iter().any(has_large) {
        "numpy.stack(x).astype(\"float64\") is a tensor of rows of one length, of rounded numbers: 64 bits do not hold \
         all of them"
    } else if first.hasattr("__dlpack__")? && object.is_instance_of::<PyTuple>() {
        match items.get(1).and_then(|second| kind_of_elements(second).ok()) {
            Some('b') if items.len() == 2 => {
                "from_dlpack(x[0], mask=x[1]) makes an array of values and their mask"
            }
            _ => {
                "record_batch(dict(zip(names, x))) makes a table of them, and numpy.stack(x) a tensor, if they are rows of \
                 one length"
            }
        }
    } else if first.hasattr("__dlpack__")? {
        "numpy.stack(x) is a tensor of rows of one length, and from_ragged(x) makes lists of rows of any length"
    } else if kind_of_times(known)?.is_some() {
        return arrow_of(object, Expected::Either);
    } else if is_sequence(&first) || first.hasattr("__array__")? {
        "numpy.stack(x) is a tensor of rows of one length, and from_ragged(numpy.concatenate(x), offsets) makes \
         lists of rows of any length"
    } else if is_number(&first)? {
        of_numbers
    } else if first.hasattr("__float__")? {
        // Such as Decimal and Fraction, of which NumPy makes an array of objects.
        "numpy.asarray(x, \"float64\") makes a tensor of it"
    } else {
        return arrow_of(object, Expected::Either);
    };
    Ok(Some(words.into()))
}

/// What to do with a list or tuple that has Arrow data: with the item that is none, or is a column beside tables, and
/// else how to join all. The first items tell.
fn of_some_arrow(object: &Bound<'_, PyAny>) -> Found {
    const SEEN: usize = 1000;
    let Some(items) = listed(object)? else { return Ok(None) };
    let (mut first_table, mut first_column, mut other) = (None, None, None);
    for (index, item) in items.iter().take(SEEN).enumerate() {
        let first = match (is_arrow(item)?, is_a_table(item)?) {
            (true, true) => &mut first_table,
            (true, false) => &mut first_column,
            (false, _) => &mut other,
        };
        first.get_or_insert((index, type_name(item)));
    }
    Ok(match (first_table, first_column, other) {
        (None, None, _) => None,
        (.., Some((index, kind))) => Some(format!(
            "item {index} is {kind}, and others are Arrow data: convert it first, or leave it out"
        ).into()),
        (Some(_), Some((index, kind)), None) => Some(format!(
            "item {index} is {kind}, one column, and others are tables: pyarrow.table({{\"x\": x[{index}]}}) makes a \
             table of it"
        ).into()),
        (has_tables, ..) => Some(way_to_join(&items, has_tables.is_some())?.into()),
    })
}

/// Whether Arrow data is a table, a frame or a reader of batches, which is no column of another table. Columns of nanoarrow
/// have a schema too.
pub(super) fn is_a_table(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    let [array, _stream] = methods(data.py());
    Ok(data.hasattr("columns")? || (data.hasattr("schema")? && !data.hasattr(array)?))
}

/// The items of a list or a tuple. Of other sequences, which may claim any length or never end, nothing is read.
pub(super) fn listed<'py>(
    object: &Bound<'py, PyAny>,
) -> Result<Option<Vec<Bound<'py, PyAny>>>, Error> {
    match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => alloc::collect(list.iter()).map(Some),
        (_, Ok(tuple)) => alloc::collect(tuple.iter()).map(Some),
        _ => Ok(None),
    }
}

/// How to join several tables, or several columns, by the libraries that they are of.
fn way_to_join(items: &[Bound<'_, PyAny>], are_tables: bool) -> PyResult<&'static str> {
    let mut of: Vec<(String, String)> = Vec::new();
    for item in items {
        let module = item.get_type().module()?.to_string();
        let library = module.split('.').next().unwrap_or_default().to_owned();
        of.push((library, type_name(item)));
    }
    let all_of = |library: &str| of.iter().all(|(own, _)| own == library);
    let all_are = |class: &str| all_of("pyarrow") && of.iter().all(|(_, own)| own == class);
    Ok(if items.iter().all(|item| has_array_interface(item).unwrap_or(false)) {
        "numpy.stack([numpy.asarray(item) for item in x]) has the pixels of images of one size"
    } else if all_are("RecordBatch") {
        "several are one after pyarrow.Table.from_batches(x)"
    } else if all_are("Table") {
        "several are one after pyarrow.concat_tables(x)"
    } else if all_of("polars") {
        "several are one after polars.concat(x)"
    } else if all_of("pandas") {
        "several are one after pandas.concat(x)"
    } else if are_tables {
        "several are one after pyarrow.concat_tables(map(pyarrow.table, x))"
    } else if all_of("pyarrow") {
        "several of one type are one after pyarrow.chunked_array(x)"
    } else {
        "several of one type are one after pyarrow.concat_arrays(map(pyarrow.array, x))"
    })
}

/// What the values of a list are to pyarrow, which makes no array of some lists of Python's objects.
#[derive(Clone, Copy, PartialEq)]
enum ItemKinds {
    /// It makes an array of them.
    OneKind,
    /// Integers of which some are above int64's, and all within uint64.
    Unsigned,
    /// Numbers that only a float holds all, rounded.
    Rounded,
    Complex,
    /// Of several kinds.
    Mixed,
}

impl ItemKinds {
    fn of(items: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let (mut kinds, mut low, mut high) = (Vec::<&str>::new(), 0_i128, 0_i128);
        for item in items.iter().filter(|item| !is_null(item)) {
            if item.is_instance_of::<PyInt>() {
                let number = item.extract().unwrap_or(i128::MAX);
                (low, high) = (low.min(number), high.max(number));
            }
            let kind = kind_of(item)?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let are_all = |known: &[&str]| kinds.iter().all(|kind| known.contains(kind));
        let fits = |least: i128, most: i128| least <= low && high <= most;
        // Floats hold all integers up to here.
        const EXACT: i128 = 1 << 53;
        Ok(if are_all(&["int"]) {
            match (fits(i64::MIN.into(), i64::MAX.into()), fits(0, u64::MAX.into())) {
                (true, _) => Self::OneKind,
                (_, true) => Self::Unsigned,
                _ => Self::Rounded,
            }
        } else if are_all(&["bool"])
            || are_all(&["int", "decimal"])
            || (are_all(&["int", "float"]) && fits(-EXACT, EXACT))
        {
            Self::OneKind
        } else if are_all(&["bool", "int", "float", "decimal", "fraction"]) {
            Self::Rounded
        } else if are_all(&["bool", "int", "float", "complex"]) {
            Self::Complex
        } else if kinds.len() == 1 {
            Self::OneKind
        } else {
            Self::Mixed
        })
    }

    /// What makes Arrow data of the values that `x` names; `None` where pyarrow does.
    fn way_to_make(self, x: &str, has_none: bool) -> Option<String> {
        Some(match self {
            Self::OneKind => return None,
            Self::Unsigned => format!("pyarrow.array({x}, \"uint64\")"),
            Self::Rounded if has_none => {
                format!("pyarrow.array(numpy.asarray({x}, \"float64\"), from_pandas=True)")
            }
            Self::Rounded => format!("pyarrow.array(numpy.asarray({x}, \"float64\"))"),
            Self::Complex if !has_none => {
                format!("from_dlpack(numpy.asarray({x}, \"complex128\"))")
            }
            Self::Complex | Self::Mixed => return None,
        })
    }

    fn told(self) -> &'static str {
        match self {
            Self::OneKind => "an array of values",
            Self::Unsigned => "an array of values that int64 does not hold",
            Self::Rounded => "an array of floats, which round what they do not hold",
            Self::Complex => "an array of complex numbers",
            Self::Mixed => "an array of texts, as the values are of several kinds",
        }
    }
}

/// Whether a list has objects of Python's alone, of which pyarrow makes no array. Nothing is known of that where it is not
/// loaded.
fn are_unknown(items: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let mut kinds = items.iter().filter(|item| !is_null(item)).map(kind_of);
    if !kinds.all(|kind| kind.is_ok_and(|kind| kind == "object")) {
        return Ok(false);
    }
    Ok(!makes_arrow(items, true)?)
}

/// Whether it is a decimal, of Python's module of it in C or in Python.
pub(super) fn is_of_decimals(item: &Bound<'_, PyAny>) -> bool {
    ["as_integer_ratio", "quantize"].iter().all(|name| item.hasattr(*name).unwrap_or(false))
}

/// Whether it is of the class that pyarrow knows, and no `_pydecimal.Decimal`.
fn is_known_decimal(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    item.is_instance(&item.py().import("decimal")?.getattr("Decimal")?)
}

/// What a value of Python's is: a type of numbers, one of pyarrow's nested types, or its class.
fn kind_of(item: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(if item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>() {
        "text"
    } else if item.is_instance_of::<PyDict>() {
        "struct"
    } else if item.hasattr("__len__")? {
        "list" // also of an array, which has the methods of numbers
    } else if item.is_instance_of::<PyBool>() {
        "bool"
    } else if item.is_instance_of::<PyComplex>() {
        "complex"
    } else if kind_of_times(item)?.is_some() {
        "time of NumPy's"
    } else if item.hasattr("__index__")? {
        "int"
    } else if is_number(item)? {
        "float"
    } else if is_of_decimals(item) && is_known_decimal(item)? {
        "decimal"
    } else if item.hasattr("__float__")? {
        "fraction"
    } else if item.hasattr("isoformat")? {
        // Beside dates pyarrow leaves out the hours of times, and beside zoned times naive ones are in UTC.
        match (item.hasattr("hour")?, item.getattr_opt("tzinfo")?) {
            (false, _) => "date",
            (_, Some(zone)) if !zone.is_none() => "zoned time",
            _ if item.hasattr("year")? => "time",
            _ => "time of day",
        }
    } else {
        "object"
    })
}

/// What makes a table of rows of values of several types, such as those of a database.
const OF_ROWS: &str =
    "pyarrow.table({str(at): column for at, column in enumerate(zip(*x, strict=True))})";

/// The same of rows that have nulls of pandas's.
const OF_ROWS_OF_PANDAS: &str = "pyarrow.table({str(at): pyarrow.array(column, from_pandas=True) for at, column in \
                                 enumerate(zip(*x, strict=True))})";

/// Whether pyarrow makes an array of the first of these values, the same ones. It is told where that is not known, as pyarrow
/// is not loaded, or the values are large.
fn makes_arrow(values: &[Bound<'_, PyAny>], is_of_pandas: bool) -> PyResult<bool> {
    const TRIED: usize = 100;
    let values = &values[..values.len().min(TRIED)];
    let Some(first) = values.first() else { return Ok(true) };
    let py = first.py();
    let Some(pyarrow) = loaded_module(py, intern!(py, "pyarrow"))? else { return Ok(true) };
    if are_large(values) {
        return Ok(true);
    }
    let values = PyList::new(py, values)?;
    // It follows lists that hold themselves until the process ends.
    if _check_objects(&values, is_of_pandas).is_err() {
        return Ok(false);
    }
    let options = is_of_pandas.then(|| [("from_pandas", true)].into_py_dict(py)).transpose()?;
    Ok(pyarrow.call_method("array", (values,), options.as_ref()).is_ok())
}

/// Whether it is a tensor with an axis.
fn is_of_axes(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(tensor.hasattr("__dlpack__")? && !tensor.getattr("ndim")?.eq(0)?)
}

/// Whether arrays of these values are more than a hint may copy.
fn are_large(values: &[Bound<'_, PyAny>]) -> bool {
    const MOST: usize = 1 << 20;
    let bytes = |value: &Bound<'_, PyAny>| value.getattr("nbytes")?.extract::<usize>();
    values.iter().filter_map(|value| bytes(value).ok()).fold(0, usize::saturating_add) > MOST
}

/// Texts of the values that `x` names, whose nulls stay nulls.
fn texts_of(items: &[Bound<'_, PyAny>], x: &str) -> String {
    if items.iter().any(|item| is_null(item) && !item.is_none()) {
        format!("pyarrow.array([None if pandas.isna(value) else str(value) for value in {x}])")
    } else if items.iter().any(|item| item.is_none()) {
        format!("pyarrow.array([value if value is None else str(value) for value in {x}])")
    } else {
        format!("pyarrow.array(list(map(str, {x})))")
    }
}

/// What makes an array of values of which pyarrow makes none as they are, if anything does. In place of a dict's tensors there
/// are its names, and of an object without a text its address.
fn in_place_of(
    values: &[Bound<'_, PyAny>],
    first: &Bound<'_, PyAny>,
    x: &str,
) -> PyResult<Option<(String, &'static str)>> {
    if matches!(kind_of(first)?, "struct" | "object") || is_of_axes(first)? {
        return Ok(None);
    }
    if values.iter().all(|value| value.is_instance_of::<PyRange>()) {
        return Ok(Some((format!("pyarrow.array(list(map(list, {x})))"), "an array of lists")));
    }
    // Such as rows of sqlite3.
    if first.hasattr("keys")? {
        let dict = first.py().get_type::<PyDict>();
        let dicts = values.iter().map(|value| dict.call1((value,))).collect::<PyResult<Vec<_>>>();
        if dicts.is_ok_and(|dicts| makes_arrow(&dicts, false).unwrap_or(false)) {
            let made = format!("pyarrow.array(list(map(dict, {x})))");
            return Ok(Some((made, "an array of structs")));
        }
    }
    let mut plain = Vec::new();
    for value in if are_large(values) { &[] } else { values } {
        let Ok(made) = value.call_method0("tolist") else { break };
        // Of times that Python has none for, NumPy has counts.
        if kind_of_times(value)?.is_some() && made.is_instance_of::<PyInt>() {
            break;
        }
        plain.push(made);
    }
    let has_lists = first.hasattr("tolist")? && are_large(values);
    if has_lists || (plain.len() == values.len() && makes_arrow(&plain, false)?) {
        let made = format!("pyarrow.array([item.tolist() for item in {x}])");
        return Ok(Some((made, "an array of their values")));
    }
    let made = texts_of(values, x);
    let is_address = first.str().is_ok_and(|text| text.to_string().contains(" at 0x"));
    Ok((!is_address).then_some((made, "an array of texts")))
}

/// The values in those of several that are lists or tuples.
fn in_rows<'py>(items: &[Bound<'py, PyAny>]) -> Vec<Bound<'py, PyAny>> {
    items.iter().filter_map(|item| listed(item).ok().flatten()).flatten().collect()
}

/// What makes a table of lists or tuples: of rows of columns that are each of one kind, and of several kinds together, or (of tensors)
/// such as NumPy makes objects of.
fn of_rows_of_columns(
    items: &[Bound<'_, PyAny>],
    is_tensor: bool,
) -> PyResult<Option<&'static str>> {
    let mut columns = Vec::<Vec<_>>::new();
    for (at, item) in items.iter().enumerate() {
        let Some(row) = listed(item)? else { return Ok(None) };
        if at == 0 {
            columns.resize_with(row.len(), Vec::new);
        }
        if row.len() != columns.len() {
            return Ok(None);
        }
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    let all = columns.concat();
    let are_objects = is_tensor && all.iter().any(|value| is_null(value) || is_of_decimals(value));
    if !are_objects && ItemKinds::of(&all)? == ItemKinds::OneKind {
        return Ok(None);
    }
    let mut is_plain = true;
    for column in &columns {
        if ItemKinds::of(column)? != ItemKinds::OneKind || !makes_arrow(column, true)? {
            return Ok(None);
        }
        is_plain &= makes_arrow(column, false)?;
    }
    Ok(Some(if is_plain { OF_ROWS } else { OF_ROWS_OF_PANDAS }))
}

/// How to make an array of the list or tuple that `x` is; `None` where pyarrow makes one of it.
fn of_values(items: &[Bound<'_, PyAny>], x: &str) -> PyResult<Option<(String, String)>> {
    let has_none = items.iter().any(is_null);
    let rows = in_rows(items);
    let is_of_pandas = items.iter().chain(&rows).any(is_null_of_pandas);
    let of_pandas = if is_of_pandas { ", from_pandas=True" } else { "" };
    let values = ItemKinds::of(items)?;
    if values == ItemKinds::OneKind && !has_none && !rows.iter().any(is_null) {
        let way = match ItemKinds::of(&rows)? {
            ItemKinds::Rounded | ItemKinds::Unsigned => {
                Some(("float", "floats, which round what they do not hold"))
            }
            ItemKinds::Mixed => Some(("str", "texts, as the values are of several kinds")),
            ItemKinds::OneKind | ItemKinds::Complex => None,
        };
        if let Some((number, told)) = way {
            let made = format!("pyarrow.array([list(map({number}, row)) for row in {x}])");
            return Ok(Some((made, format!("an array of lists of {told}"))));
        }
    }
    let made = match values {
        ItemKinds::Mixed => Some(texts_of(items, x)),
        ItemKinds::Complex if has_none => Some(texts_of(items, x)),
        _ => values.way_to_make(x, has_none),
    };
    if let Some(made) = made {
        return Ok(Some((made, values.told().to_owned())));
    }
    let Some(first) = items.iter().find(|item| !is_null(item)) else { return Ok(None) };
    if makes_arrow(items, is_of_pandas)? {
        let plain = format!("pyarrow.array({x}{of_pandas})");
        return Ok(is_of_pandas.then(|| (plain, values.told().to_owned())));
    }
    Ok(in_place_of(items, first, x)?.map(|(made, told)| (made, told.to_owned())))
}

/// Whether NumPy makes a tensor of several such values.
fn is_of_tensors(first: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_several = is_sequence(first) || first.hasattr("__array__")?;
    Ok((is_several || is_number(first)? || first.hasattr("__float__")?)
        && kind_of_times(first)?.is_none())
}

/// How to make Arrow data of an object of Python's, or several, of which pyarrow makes none as they are.
fn of_objects(object: &Bound<'_, PyAny>, x: &str, is_tensor: bool) -> Found {
    if x == "x" {
        let items = listed(object)?.unwrap_or_default();
        if let Some(made) = of_rows_of_columns(&items, is_tensor)? {
            return Ok(Some(format!("{made} makes a table of rows").into()));
        }
    }
    let way_out = match listed(object)? {
        // NumPy has tensors of all numbers, but of nulls none.
        Some(items)
            if is_tensor
                && !has_none(object)?
                && items.first().is_none_or(|first| is_of_tensors(first).unwrap_or(false))
                && ItemKinds::of(&items)? != ItemKinds::Mixed
                && ItemKinds::of(&in_rows(&items))? != ItemKinds::Mixed =>
        {
            None
        }
        Some(items) => of_values(&items, x)?,
        None if is_set(object) => {
            // A subclass may iterate without an end.
            let len = object.cast::<PySet>().map_or(usize::MAX, |set| set.len());
            let len = object.cast::<PyFrozenSet>().map_or(len, |set| set.len());
            let items = object.try_iter()?.take(len).collect::<PyResult<Vec<_>>>()?;
            of_values(&items, &format!("list({x})"))?
        }
        None if !is_tensor && is_number(object)? => {
            let made = match ItemKinds::of(std::slice::from_ref(object))? {
                ItemKinds::Rounded => Some(format!("pyarrow.array([float({x})])")),
                values => values.way_to_make(&format!("[{x}]"), false),
            };
            made.map(|made| (made, "an array of one value".to_owned()))
        }
        None => None,
    };
    Ok(way_out.map(|(made, told)| WayOut::array(made, &told)))
}

/// How to make a table of a dict of lists of which pyarrow makes none, or of values that are one row.
fn of_columns(object: &Bound<'_, PyAny>) -> Found {
    let Ok(dict) = object.cast::<PyDict>() else { return Ok(None) };
    // Such as a frame's `to_dict`.
    let is_by_rows =
        |value: &Bound<'_, PyAny>| value.cast::<PyDict>().is_ok_and(|of| !has_names(of));
    if dict.values().iter().any(|value| is_by_rows(&value)) {
        return Ok(Some("pandas.DataFrame(x) makes a frame of it".into()));
    }
    let has_names = has_names(dict);
    // Names of columns are texts.
    let whole = if has_names { "x" } else { BY_TEXTS };
    let key = |name: &Bound<'_, PyAny>| {
        let text = if has_names { name.repr() } else { name.str()?.repr() };
        text.map(|text| text.to_string())
    };
    let has_tensors = has_tensors(dict);
    let mut arrays = Vec::new();
    for (name, value) in dict.iter() {
        let is_flat = value.getattr_opt("ndim")?.is_none_or(|ndim| ndim.eq(1).unwrap_or(true));
        // Texts, times and objects of NumPy.
        let place = format!("x[{}]", name.repr()?);
        let way_out = if is_flat { of_dtype(&value, &place)? } else { None };
        if let Some(made) = way_out.and_then(|way_out| way_out.made) {
            arrays.push(format!("{}: {}", key(&name)?, made.array()));
        } else if has_tensors && is_list_of_values(&value)? {
            arrays.push(format!("{}: pyarrow.array({place})", key(&name)?));
        }
    }
    if !arrays.is_empty() {
        let arrays = arrays.join(", ");
        return Ok(Some(
            format!("record_batch({{**{whole}, {arrays}}}) makes a table of it").into(),
        ));
    }
    let (mut made, mut floats, mut is_row) = (Vec::new(), Vec::new(), false);
    for (name, value) in dict.iter() {
        if value.is_instance_of::<PyTuple>() || value.hasattr("__dlpack__")? || is_arrow(&value)? {
            return Ok(None);
        }
        let place = format!("x[{}]", name.repr()?);
        let name = key(&name)?;
        if let Some(items) = listed(&value)? {
            let array = of_values(&items, &place)?;
            made.extend(array.map(|(array, _)| format!("{name}: {array}")));
            continue;
        }
        let is_number = value.hasattr("__float__")?;
        let is_known =
            matches!(kind_of(&value)?, "text" | "struct") || value.hasattr("isoformat")?;
        if !is_number && !is_known && !value.is_none() {
            return Ok(None);
        }
        is_row = true;
        if is_number && ItemKinds::of(&[value])? != ItemKinds::OneKind {
            floats.push(format!("{name}: float({place})"));
        }
    }
    if is_row {
        let row = match floats.is_empty() {
            true => whole.to_owned(),
            false => format!("{{**{whole}, {}}}", floats.join(", ")),
        };
        let made = format!("pyarrow.Table.from_pylist([{row}]) makes a table of one row");
        return Ok(Some(made.into()));
    }
    let made = made.join(", ");
    Ok((!made.is_empty())
        .then(|| format!("pyarrow.table({{**{whole}, {made}}}) makes a table of it").into()))
}

/// Whether some of its values are tensors.
pub(super) fn has_tensors(dict: &Bound<'_, PyDict>) -> bool {
    dict.values().iter().any(|value| value.hasattr("__dlpack__").unwrap_or(false))
}

/// Whether it is a list, and no tensors are in it.
fn is_list_of_values(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(items) = value.cast::<PyList>() else { return Ok(false) };
    let first = items.iter().find(|item| !is_null(item));
    first.map_or(Ok(true), |first| Ok(!first.hasattr("__dlpack__")?))
}

/// What has the columns of a dict by names that are texts.
const BY_TEXTS: &str = "{str(name): column for name, column in x.items()}";

fn has_names(dict: &Bound<'_, PyDict>) -> bool {
    dict.keys().iter().all(|name| name.is_instance_of::<PyString>())
}

/// The way back from the named tuples of tensors that stand for rows of different lengths.
fn of_rows(object: &Bound<'_, PyAny>) -> Found {
    // Taken apart it would lose its side and the meaning of its mask.
    Ok(NamedRows::of(object)?.map(|rows| match rows.side {
        None => "from_ragged(x) makes a column of lists of it, for pyarrow.table".into(),
        Some(_) => "from_padded(x) makes a column of lists of it, for pyarrow.table".into(),
    }))
}

/// What makes Arrow data of a masked array of NumPy's, of numbers.
pub(super) fn of_masked(x: &str) -> String {
    format!("from_dlpack({x}.data, mask=~numpy.ma.getmaskarray({x}))")
}

/// How to convert an array of NumPy's whose dtype no tensor has. `x`: what it is called.
pub(super) fn of_dtype(object: &Bound<'_, PyAny>, x: &str) -> Found {
    let Some(dtype) = object.getattr_opt("dtype")? else { return Ok(None) };
    let Some(kind) = dtype.getattr_opt("kind")? else {
        let is_key = dtype.str()?.to_str()?.starts_with("key<");
        return Ok(
            is_key.then(|| format!("jax.random.key_data({x}) is a tensor of its bits").into())
        );
    };
    let kind = kind.extract::<String>()?;
    if kind == "O" && object.getattr_opt("ndim")?.is_some_and(|ndim| ndim.eq(2).unwrap_or(false)) {
        return Ok(Some(format!("pandas.DataFrame({x}) makes a frame of its columns").into()));
    }
    // pyarrow makes arrays of arrays of one dimension.
    let is_flat = object.getattr_opt("ndim")?.is_none_or(|ndim| ndim.eq(1).unwrap_or(true));
    let flat = if is_flat { x.to_owned() } else { format!("{x}.ravel()") };
    let swapped = format!("{x}.astype({x}.dtype.newbyteorder(\"=\")) has the machine's byte order");
    // Of texts, objects and times pyarrow takes the mask too.
    let mask = object.getattr_opt("mask")?;
    let has_mask = mask.is_some_and(|mask| !mask.is_none() && !mask.is_callable());
    let numbers = if has_mask {
        String::new()
    } else if object.hasattr("to_numpy")? {
        format!("; {x}.astype(\"int64\").to_numpy() has its numbers as a tensor")
    } else {
        format!("; {x}.view(\"int64\") has its numbers as a tensor")
    };
    // pyarrow knows pandas' own types, and not each of their values.
    let are_objects = kind == "O" && is_flat && dtype.hasattr("newbyteorder")?;
    if let Some(times) = times_for_arrow(&dtype, &kind, &flat)? {
        return Ok(Some(times.and(&numbers)));
    }
    Ok(match kind.as_str() {
        "M" | "m" if !dtype.getattr("isnative")?.extract::<bool>()? => {
            Some(format!("{swapped}, of which pyarrow.array makes Arrow data").into())
        }
        "M" | "m" => Some(WayOut::values(flat, &format!("Arrow data of {dtype}")).and(&numbers)),
        "O" if object.hasattr("levels")? => {
            Some(format!("{x}.to_frame() makes a frame of it").into())
        }
        "O" if are_objects
            && are_unknown(&listed(&object.call_method0("tolist")?)?.unwrap_or_default())? =>
        {
            Some("pyarrow has no type for its objects: make numbers or texts of them".into())
        }
        "U" | "S" | "O" => {
            let of_objects = if are_objects && !has_mask {
                let items = object.call_method0("tolist")?;
                match items.try_iter()?.next().transpose()? {
                    Some(first) if is_of_axes(&first)? => {
                        Some(WayOut::array(format!("from_ragged(list({x}))"), "an array of lists"))
                    }
                    _ => of_objects(&items, x, false)?,
                }
            } else {
                None
            };
            let plain = || WayOut::values(flat, &format!("Arrow data of {dtype}"));
            Some(of_objects.unwrap_or_else(plain))
        }
        "T" => Some(WayOut::values(format!("{flat}.tolist()"), "Arrow data of texts")),
        "V" if !dtype.getattr("names")?.is_none() => {
            let fields = of_fields(&dtype, x, is_flat)?;
            Some(match dtype.getattr("isnative")?.extract()? {
                true => fields.into(),
                false => format!("{swapped}, and of that {fields}").into(),
            })
        }
        _ if !dtype.getattr("isnative")?.extract::<bool>()? => Some(swapped.into()),
        "f" if dtype.getattr("itemsize")?.extract::<usize>()? > 8 => {
            Some(format!("{x}.astype(\"float64\") is a tensor").into())
        }
        "c" if dtype.getattr("itemsize")?.extract::<usize>()? > 16 => {
            Some(format!("{x}.astype(\"complex128\") is a tensor").into())
        }
        // Of others that NumPy has no kind for, such as bfloat16, the elements are numbers.
        "V" if dtype.getattr("type")?.getattr("__name__")?.eq("void")? => {
            let is_one = object.getattr("ndim")?.eq(0)?;
            let bytes = match is_one {
                true => format!("numpy.frombuffer({x}, \"uint8\")"),
                false => {
                    format!("numpy.ascontiguousarray({x}).view(\"uint8\").reshape(*{x}.shape, -1)")
                }
            };
            Some(format!("{bytes} is a tensor of its bytes").into())
        }
        _ if has_mask => Some(WayOut::array(of_masked(x), "Arrow data of it, with nulls")),
        _ => None,
    })
}

/// What to do with an array of NumPy's records. `x`: what it is called.
fn of_fields(dtype: &Bound<'_, PyAny>, x: &str, is_flat: bool) -> PyResult<String> {
    let mut are_flat = is_flat;
    let mut is_other = None;
    for name in dtype.getattr("names")?.try_iter()? {
        let name = name?;
        let base = dtype.get_item(&name)?.getattr("base")?;
        if let Some(own) = base.getattr("names")?.try_iter().ok().and_then(|mut own| own.next()) {
            let place = format!("{x}[{}]", name.repr()?);
            return Ok(format!(
                "{place} has nested records: take the fields of all one by one, as {place}[{}]",
                own?.repr()?
            ));
        }
        let is_column = is_flat && dtype.get_item(&name)?.getattr("shape")?.is_empty()?;
        if is_other.is_none() && is_of_other_dtype(&base, is_column)? {
            is_other = Some(name.repr()?);
        }
        are_flat &= is_column;
    }
    if let Some(name) = is_other {
        return Ok(format!(
            "take its fields one by one, as from_dlpack({x}[{name}]): of what it refuses it tells how to convert it"
        ));
    }
    let column = match are_flat {
        true => format!("pyarrow.table({{name: {x}[name]"),
        // pyarrow makes arrays of arrays of one dimension, and fields of a record may lie at no multiple of their size.
        false => format!(
            "record_batch({{name: pyarrow.array({x}[name]) if {x}[name].ndim == 1 else \
             numpy.ascontiguousarray({x}[name])"
        ),
    };
    Ok(format!("{column} for name in {x}.dtype.names}}) makes a table of its fields"))
}

/// Whether a field of NumPy's records is of a dtype that takes a conversion. pyarrow makes arrays of a column of texts and of
/// times.
fn is_of_other_dtype(base: &Bound<'_, PyAny>, is_column: bool) -> PyResult<bool> {
    let kind = base.getattr("kind")?.extract::<String>()?;
    Ok(match kind.as_str() {
        "b" | "i" | "u" => false,
        "f" => base.getattr("itemsize")?.extract::<usize>()? > 8,
        "U" | "S" | "O" => !is_column,
        "M" | "m" => !is_column || times_for_arrow(base, &kind, "x")?.is_some(),
        _ => true,
    })
}

/// How to convert an array of numbers of which NumPy makes no tensor: of a dtype of ml_dtypes's, or of a field of a record
/// that is packed.
pub(super) fn of_elements(array: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let dtype = array.getattr("dtype")?;
    if is_of_ml_dtypes(array)? {
        let class = dtype.getattr("type")?;
        let is_integer = class.getattr("__name__")?.to_string().contains("int");
        return Ok(Some(match is_integer {
            true => "x.astype(\"int8\") is a tensor of its numbers",
            false => "x.astype(\"float32\") is a tensor of its numbers",
        }));
    }
    let itemsize = dtype.getattr("itemsize")?.extract::<i64>()?;
    for stride in array.getattr("strides")?.try_iter()? {
        if stride?.extract::<i64>()?.checked_rem(itemsize) != Some(0) {
            return Ok(Some("x.copy() is a tensor of its elements, side by side"));
        }
    }
    Ok(None)
}

/// Whether the elements of an array of NumPy's are of a dtype of ml_dtypes's.
pub(super) fn is_of_ml_dtypes(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = array.getattr("dtype")?.getattr("type")?;
    class.getattr("__module__")?.eq("ml_dtypes")
}

/// How to make Arrow data of times of NumPy's that are to stay times.
pub(super) fn of_times(array: &Bound<'_, PyAny>) -> Found {
    let unit = array.getattr("dtype")?.getattr("str")?.extract::<String>()?;
    if unit.contains('m') && (unit.ends_with("Y]") || unit.ends_with("M]")) {
        return Ok(Some(
            "years and months have no one length: pass durations of other units".into(),
        ));
    }
    let way_out = of_dtype(array, "x")?;
    Ok(way_out.map(|way_out| match way_out.made {
        Some(made) => WayOut::made(made, "Arrow data of it"),
        None => way_out,
    }))
}

/// How to convert times of a unit that Arrow has not; `None` of others. `flat`: the expression of an array of one dimension.
fn times_for_arrow(dtype: &Bound<'_, PyAny>, kind: &str, flat: &str) -> Found {
    if kind != "M" && kind != "m" {
        return Ok(None);
    }
    let text = dtype.getattr("str")?.extract::<String>()?;
    // pyarrow takes multiples, such as [25s], for the unit itself.
    let unit = text.split_once('[').map_or("", |(_, unit)| unit.trim_end_matches(']'));
    let base = unit.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Ok(match (kind, base) {
        (_, "s" | "ms" | "us" | "ns") | ("M", "D") if base == unit => None,
        ("m", "Y" | "M") => Some(WayOut::values(
            format!("{flat}.view(\"int64\")"),
            "Arrow data of its numbers, as years and months have no one length",
        )),
        (_, "ps" | "fs" | "as") => Some(WayOut::values(
            format!("{flat}.astype(\"{kind}8[ns]\")"),
            &format!("Arrow data of {dtype}, less what is finer"),
        )),
        _ => {
            // Multiples of a unit that Arrow has, and units of which it has a finer one.
            let unit = if matches!(base, "ms" | "us" | "ns") { base } else { "s" };
            let values = format!("{flat}.astype(\"{kind}8[{unit}]\")");
            Some(WayOut::values(values, &format!("Arrow data of {dtype}")))
        }
    })
}

/// What converts a tensor of PyTorch's that is no plain one: one of rows of different lengths, a sparse or a quantized one.
pub(super) fn of_layout(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let is = |name: &str| match object.getattr_opt(name)? {
        Some(is_it) => Ok::<_, PyErr>(is_it.extract().unwrap_or(false)),
        None => Ok(false),
    };
    // Its elements lie at strides, and its dtype is none of DLPack's.
    Ok(if is("is_quantized")? {
        Some(
            "x.dequantize() is a tensor of the numbers, and x.int_repr() one of the integers that they are stored as",
        )
    } else if is("is_nested")? && object.hasattr("offsets")? {
        Some(
            "from_ragged(list(x.detach().unbind())) has the rows of a nested tensor, and x.to_padded_tensor(0) is a \
             tensor of all",
        )
    } else if is("is_nested")? {
        Some("x.to_padded_tensor(0) is a tensor of all rows of a nested one")
    } else if is_not_strided(object)? {
        Some("x.to_dense() is a tensor of all elements")
    } else if is_lazily(object, "is_conj")? {
        Some("x.resolve_conj() is a tensor of its elements")
    } else if is_lazily(object, "is_neg")? {
        Some("asdlpack(x.resolve_neg()) makes a Tensor of its elements")
    } else if is("requires_grad")? {
        Some("asdlpack(x.detach()) makes a Tensor of its elements, without gradients")
    } else {
        None
    })
}

/// Whether a tensor of PyTorch's lies in memory in another way than at strides: sparse, in any of the formats, or as oneDNN
/// has it.
fn is_not_strided(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(layout) = object.getattr_opt("layout")? else { return Ok(false) };
    let name = layout.str()?.to_string();
    Ok(name.starts_with("torch.") && name != "torch.strided")
}

/// Whether it is a view of PyTorch's whose elements are yet to be conjugated, or negated.
fn is_lazily(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    match object.getattr_opt(name)? {
        Some(method) if method.is_callable() => method.call0()?.is_truthy(),
        _ => Ok(false),
    }
}

/// How to make Arrow data of it.
fn arrow_of(object: &Bound<'_, PyAny>, expected: Expected) -> Found {
    if object.is_none() {
        return Ok(Some("is there a return missing?".into()));
    }
    let has_dlpack = object.hasattr("__dlpack__")?;
    if has_dlpack && has_array_interface(object)? {
        // NumPy's own DLPack takes no others.
        if let Ok(Some(way_out)) = of_elements(object) {
            return Ok(Some(way_out.into()));
        }
    }
    if expected == Expected::Arrow && has_dlpack {
        return Ok(Some(WayOut {
            words: "it is a tensor already: asdlpack(x) and Tensor.from_dlpack(x) make a Tensor of it, from_dlpack(x) \
                    an Array"
                .into(),
            made: Some(Made::OfTensor),
        }));
    }
    if is_path(object)? {
        return Ok(Some("if it is a path, pyarrow.dataset.dataset(x) opens it, for iter_batches, and to_table() of that \
             reads it all".into()));
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(Some("asdlpack(x) is a tensor of its bytes; if they are a path, use os.fsdecode, and if they are Arrow \
             IPC, pyarrow.ipc.open_stream(x)".into()));
    }
    if has_array_interface(object)? || object.is_instance_of::<PyMemoryView>() || has_buffer(object)
    {
        return Ok(Some(
            "asdlpack(x) is a tensor of its memory, and to_arrow() of that an Array; if it is Arrow IPC, \
             pyarrow.ipc.open_stream(x) reads it"
                .into(),
        ));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        // A column with a mask is a pair of tensors.
        let is_tensor = |value: &Bound<'_, PyAny>| {
            let first = value.cast::<PyTuple>().ok().and_then(|pair| pair.get_item(0).ok());
            matches!(first.as_ref().unwrap_or(value).hasattr("__dlpack__"), Ok(true))
        };
        for (name, value) in dict.iter() {
            let is_table = is_arrow(&value)? && is_a_table(&value)?;
            if is_table || of_library(&value)?.is_some() {
                return Ok(Some(
                    format!("pass one of these tables, as x[{}]", name.repr()?).into(),
                ));
            }
        }
        let are_tensors = dict.values().iter().any(|value| is_tensor(&value));
        let columns = if has_names(dict) { "x" } else { BY_TEXTS };
        let words = match are_tensors {
            true => format!("record_batch({columns}) makes a table of tensors"),
            false => format!("pyarrow.table({columns}) makes a table of it"),
        };
        return Ok(Some(words.into()));
    }
    if is_sequence(object) {
        return of_items(object);
    }
    if let Some(way_out) = of_library(object)? {
        return Ok(Some(way_out.into()));
    }
    if object.hasattr("__next__")? {
        let made = WayOut::array("pyarrow.array(list(x))", "an array of values");
        let of_batches =
            ", and pyarrow.RecordBatchReader.from_batches(schema, x) a reader of record batches";
        return Ok(Some(made.and(of_batches)));
    }
    if object.hasattr("__array__")? || object.hasattr("__arrow_array__")? {
        return Ok(Some(WayOut::values("x", "an array of it")));
    }
    if object.hasattr("as_py")? || is_number(object)? || object.hasattr("__float__")? {
        return Ok(Some(WayOut::array("pyarrow.array([x])", "an array of one value")));
    }
    if is_set(object) {
        return of_items(object);
    }
    Ok(match object.hasattr("__iter__")? && !object.hasattr("__arrow_c_schema__")? {
        true => Some(
            WayOut::made(Made::OfIterable, "an array of values")
                .and(", and pyarrow.Table.from_batches(list(x)) a table of record batches"),
        ),
        false => None,
    })
}

/// What makes a table of a list of dicts, which are rows, or batches of tensors. pyarrow's `from_pylist` has the columns of the
/// first row alone.
pub(super) fn of_dicts(rows: &[Bound<'_, PyAny>]) -> PyResult<String> {
    let dicts: Vec<_> = rows.iter().filter_map(|row| row.cast::<PyDict>().ok()).collect();
    if !dicts.iter().any(|row| has_tensors(row)) {
        return Ok(match makes_arrow(rows, false)? {
            true => "pyarrow.table(pyarrow.array(x)) makes a table of it".to_owned(),
            false => "pandas.DataFrame(x) makes a frame of it".to_owned(),
        });
    }
    let lists = "pyarrow.table(pyarrow.array([{name: value.tolist() if hasattr(value, \"tolist\") else value for name, \
                 value in row.items()} for row in x]))";
    let is_tensor = |value: Bound<'_, PyAny>| {
        value.hasattr("__dlpack__").unwrap_or(false) || is_number(&value).unwrap_or(false)
    };
    if !dicts.iter().all(|row| row.values().iter().all(is_tensor)) {
        return Ok(format!("{lists} makes a table of it"));
    }
    let shapes = |row: &Bound<'_, PyDict>| -> PyResult<Vec<(String, String)>> {
        let shape = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let shape = value.getattr_opt("shape")?.map(|shape| shape.to_string());
            Ok((name.repr()?.to_string(), shape.unwrap_or_default()))
        };
        row.iter().map(shape).collect()
    };
    let first = shapes(dicts[0])?;
    let are_alike = dicts.iter().all(|row| shapes(row).is_ok_and(|own| own == first));
    let made = match are_alike {
        true => "record_batch({name: numpy.stack([row[name] for row in x]) for name in x[0]})",
        false => lists,
    };
    Ok(format!("of samples {made} makes a table, of batches list(map(record_batch, x)) tables"))
}

/// How to convert a list or tuple, judged by its first item.
fn of_items(object: &Bound<'_, PyAny>) -> Found {
    let first = object.try_iter()?.next().transpose()?;
    let Some(first) = first else {
        return Ok(Some(WayOut::array("pyarrow.array(x, type)", "an array of none")));
    };
    Ok(Some(if first.hasattr("__dlpack__")? {
        "several of one length are rows of numpy.stack(x) or torch.stack(x), of any length those of from_ragged(x), and \
         columns are record_batch(dict(...))"
            .into()
    } else if first.is_instance_of::<PyDict>() {
        of_dicts(&listed(object)?.unwrap_or_default())?.into()
    } else if is_path(&first)? {
        WayOut::values("x", "an array of texts")
            .and("; if they are paths, pyarrow.dataset.dataset(x) opens them")
    } else if is_of_a_class(&first)? || are_unknown(&listed(object)?.unwrap_or_default())? {
        return Ok(None);
    } else {
        WayOut::values("x", "an array of values")
    }))
}

/// Classes of libraries close to Arrow, recognised by attributes that only they have. The first match counts.
const LIBRARIES: &[(&[&str], &str)] = &[
    (
        &["set_epoch", "state_dict", "categories"],
        "a Loader makes batches of tensors: loop over it, or pass what it reads",
    ),
    (&["dictionaries", "close"], "these are batches of tensors already: loop over them"),
    (&["sources", "stopping_strategy"], "a Mix is what a Loader reads: loop over Loader(x)"),
    (
        &["dataset", "batch_sampler"],
        "a DataLoader makes batches itself: loop over it, and record_batch makes a table of each",
    ),
    (
        &["__next__", "_dataset_kind"],
        "this goes through a DataLoader: loop over it, and record_batch makes a table of each batch",
    ),
    (
        &["tensors", "__getitem__"],
        "record_batch(dict(zip(names, x.tensors))) makes a table of its tensors",
    ),
    (
        &["toarray", "nnz"],
        "x.toarray() is an array of all its values, of which from_dlpack makes one",
    ),
    (
        &["to_reader", "read_chunk"],
        "x.to_reader() goes through it, and x.read_all() makes a table of it",
    ),
    (&["sp_values", "to_dense"], "pyarrow.array(x.to_dense()) makes an array of all its values"),
    (&["to_table"], "x.to_table() reads it, and iter_batches takes it as it is"),
    // DataFusion's, whose batches have a protocol that fails.
    (
        &["__next__", "rbs"],
        "(batch.to_pyarrow() for batch in x) makes batches of it, for iter_batches, and \
         pyarrow.Table.from_batches([batch.to_pyarrow() for batch in x]) a table",
    ),
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
        "read a file by its format: pyarrow.parquet.read_table(x), pyarrow.csv.read_csv(x) and \
         pyarrow.ipc.open_stream(x)",
    ),
];

fn of_library(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
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
}

/// Whether it has values in no order, of which NumPy makes no array.
fn is_set(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>()
}

/// Whether NumPy makes a number of it: it is one of Python's or NumPy's own.
fn is_number(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.hasattr("__index__")?
        || (object.hasattr("__float__")? && object.hasattr("dtype")?))
}

/// Whether it is of a class that is written in Python, which no library makes a value of, unless it is a number or a time.
fn is_of_a_class(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_value =
        is_number(object)? || object.hasattr("__float__")? || object.hasattr("isoformat")?;
    Ok(!is_value && !object.hasattr("__arrow_c_array__")? && object.hasattr("__dict__")?)
}
