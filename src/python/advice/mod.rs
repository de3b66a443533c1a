//! What a function accepts, and what to do with an object that is something else.

mod arrays;
mod dicts;
mod kinds;
mod libraries;
mod values;
mod way_out;

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyRange, PyTuple, PyType};

use super::describe::type_name;
use super::errors::missing_protocol;
use super::named_tuples::NamedRows;
use super::protocols::{has_buffer, is_arrow};
pub(super) use dicts::is_batch_with_label;
use dicts::of_columns;
use kinds::{
    has_array_interface, is_number, is_of_a_class, is_path, is_sequence, is_set, is_text, items_of,
    kind_of_elements,
};
use libraries::of_library;
use values::{Numbers, in_rows, is_tensor, makes_arrow, of_values};
use way_out::{Found, Made, OF_OBJECTS};

pub(super) use arrays::{is_of_ml_dtypes, of_dtype, of_elements, of_layout, of_masked, of_times};
pub(super) use dicts::of_dicts;
pub(super) use kinds::{
    is_a_table, is_mapping, is_mask, is_masked, is_null, is_of_decimals, kind_of_times, listed,
};
pub(super) use way_out::WayOut;

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
        if matches!(is_mapping(object), Ok(true)) {
            return Some(
                "record_batch(x) makes a table of tensors by their names, and dict(x) is a dict of them".into(),
            );
        }
        if matches!(is_batch_with_label(object), Ok(true)) {
            return Some(
                "record_batch({**x[0], \"y\": x[1]}) makes a table of a batch and its label".into(),
            );
        }
        if let Ok(Some(way_out)) = of_layout(object) {
            return Some(way_out.into());
        }
        if let Ok(Some(way_out)) = of_columns(object) {
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
    if object.is_instance_of::<PyRange>() {
        return Ok(Some("numpy.asarray(x) makes a tensor of it".into()));
    }
    if is_sequence(object) || is_set(object) {
        return tensor_of_items(object);
    }
    if has_array_interface(object)? || has_buffer(object) {
        return Ok(Some("asdlpack(x) takes its memory as it is".into()));
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
    if object.hasattr("__array__")? {
        return Ok(Some("numpy.asarray(x) makes a tensor of it".into()));
    }
    if is_number(object)? {
        return tensor_of_numbers(std::slice::from_ref(object), "x");
    }
    arrow_of(object, Expected::Either)
}

/// How to make a tensor of a list, tuple or set, judged by its first item, and by whether one is missing.
fn tensor_of_items(object: &Bound<'_, PyAny>) -> Found {
    let x = if is_set(object) { "sorted(x)" } else { "x" };
    let items = items_of(object)?;
    let Some(first) = items.first() else {
        return Ok(Some(format!("numpy.asarray({x}) makes a tensor of it").into()));
    };
    let has_null = items.iter().any(is_null);
    let known = items.iter().find(|item| !is_null(item)).unwrap_or(first);
    if is_text(known) && makes_arrow(&items, false)? {
        return Ok(Some(
            "texts are no tensor: pyarrow.array(x) makes Arrow data of them, and pyarrow.table a table with it".into(),
        ));
    }
    if items.iter().any(|item| is_masked(item) && !is_null(item)) {
        return Ok(Some(OF_MASKED.into()));
    }
    if are_tensors(&items) {
        return Ok(Some(tensor_of_tensors(object, &items, has_null)?.into()));
    }
    if has_null {
        return arrow_of(object, Expected::Either);
    }
    if !is_set(object) && items.iter().all(is_sequence) {
        let way_out = tensor_of_rows(&items)?;
        return way_out.map_or_else(|| arrow_of(object, Expected::Either), |way| Ok(Some(way)));
    }
    let is_array = |item: &Bound<'_, PyAny>| {
        Ok::<_, PyErr>(
            item.hasattr("__array__")? && !is_number(item)? && kind_of_times(item)?.is_none(),
        )
    };
    if items.iter().all(|item| is_array(item).unwrap_or(false)) {
        return Ok(Some(
            "numpy.stack(x) is a tensor of rows of one length, and from_ragged(numpy.concatenate(x), offsets) makes \
             lists of rows of any length"
                .into(),
        ));
    }
    let way_out = tensor_of_numbers(&items, x)?;
    way_out.map_or_else(|| arrow_of(object, Expected::Either), |way| Ok(Some(way)))
}

/// The same of tensors.
fn tensor_of_tensors(
    object: &Bound<'_, PyAny>,
    items: &[Bound<'_, PyAny>],
    has_null: bool,
) -> PyResult<&'static str> {
    if has_null {
        return Ok("from_ragged(x) makes lists of rows of any length, with nulls");
    }
    if !object.is_instance_of::<PyTuple>() {
        return Ok(
            "numpy.stack(x) is a tensor of rows of one length, and from_ragged(x) makes lists of rows of any length",
        );
    }
    Ok(match items.get(1).and_then(|second| kind_of_elements(second).ok()) {
        Some('b') if items.len() == 2 => {
            "from_dlpack(x[0], mask=x[1]) makes an array of values and their mask"
        }
        _ => {
            "record_batch(dict(zip(names, x))) makes a table of them, and numpy.stack(x) a tensor, if they are rows of one \
             length"
        }
    })
}

/// The same of numbers; `None` where some are none.
fn tensor_of_numbers(items: &[Bound<'_, PyAny>], x: &str) -> Found {
    let (dtype, more) = match Numbers::of(items)? {
        Some(Numbers::Known | Numbers::Complex) => ("", ""),
        Some(Numbers::Unsigned) => (", \"uint64\"", ""),
        Some(Numbers::Rounded) => (", \"float64\"", ", which rounds what it does not hold"),
        None => return Ok(None),
    };
    Ok(Some(format!("numpy.asarray({x}{dtype}) makes a tensor of it{more}").into()))
}

/// The same of lists or tuples of numbers, or of lists of any depth; `None` of others.
fn tensor_of_rows(rows: &[Bound<'_, PyAny>]) -> Found {
    let values = in_rows(rows);
    let is_deeper = values.first().is_some_and(is_sequence);
    let numbers = match is_deeper {
        true => makes_arrow(rows, false)?.then_some(Numbers::Known),
        false => Numbers::of(&values)?,
    };
    Ok(numbers.map(|numbers| match numbers {
        Numbers::Known => {
            "numpy.stack(x) is a tensor of rows of one length, and pyarrow.array(x) makes lists of rows of any length"
        }
        Numbers::Complex => "numpy.stack(x) is a tensor of rows of one length",
        Numbers::Unsigned => "numpy.asarray(x, \"uint64\") is a tensor of rows of one length",
        Numbers::Rounded => {
            "numpy.stack(x).astype(\"float64\") is a tensor of rows of one length, which rounds what it does not hold"
        }
    }.into()))
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

/// The way back from the named tuples of tensors that stand for rows of different lengths.
fn of_rows(object: &Bound<'_, PyAny>) -> Found {
    // Taken apart it would lose its side and the meaning of its mask.
    Ok(NamedRows::of(object)?.map(|rows| match rows.side {
        None => "from_ragged(x) makes a column of lists of it, for pyarrow.table".into(),
        Some(_) => "from_padded(x) makes a column of lists of it, for pyarrow.table".into(),
    }))
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
        return of_path(object);
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
        for (name, value) in dict.keys().iter().zip(dict.values()) {
            let is_table = is_arrow(&value)? && is_a_table(&value)?;
            if is_table || of_library(&value)?.is_some() {
                return Ok(Some(
                    format!("pass one of these tables, as x[{}]", name.repr()?).into(),
                ));
            }
        }
        return Ok(None);
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
        return of_values(std::slice::from_ref(object), "[x]");
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

/// How to read what a path names, by its ending.
fn of_path(path: &Bound<'_, PyAny>) -> Found {
    let path = path.str()?.to_string().to_lowercase();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let format = match ending {
        "npy" => return Ok(Some("if it is a path, numpy.load(x) reads such a file".into())),
        "png" | "jpg" | "jpeg" | "bmp" | "gif" | "tif" | "tiff" | "webp" => {
            return Ok(Some(
                "if it is a path, numpy.asarray(PIL.Image.open(x)) has the pixels of such a file"
                    .into(),
            ));
        }
        "csv" => ", format=\"csv\"",
        "json" | "jsonl" | "ndjson" => ", format=\"json\"",
        "arrow" | "feather" | "ipc" => ", format=\"ipc\"",
        "orc" => ", format=\"orc\"",
        _ => "",
    };
    Ok(Some(
        format!(
            "if it is a path, pyarrow.dataset.dataset(x{format}) opens it, for iter_batches, and to_table() of that reads it \
             all"
        )
        .into(),
    ))
}

/// NumPy's `stack` leaves out what hides values.
const OF_MASKED: &str = "numpy.ma.stack(x) has rows of one length with their masks";

/// Whether all are tensors, of which some may be missing.
fn are_tensors(items: &[Bound<'_, PyAny>]) -> bool {
    let mut known = items.iter().filter(|item| !is_null(item)).peekable();
    known.peek().is_some() && known.all(is_tensor)
}

/// How to convert a list, tuple or set, judged by its first item that is no null.
fn of_items(object: &Bound<'_, PyAny>) -> Found {
    if object.is_instance_of::<PyRange>() {
        return Ok(Some(WayOut::values("x", "an array of values")));
    }
    let items = items_of(object)?;
    let Some(first) = items.iter().find(|item| !is_null(item)).or(items.first()) else {
        return Ok(Some(WayOut::array("pyarrow.array(x, type)", "an array of none")));
    };
    if items.iter().any(|item| is_masked(item) && !is_null(item)) {
        return Ok(Some(OF_MASKED.into()));
    }
    if are_tensors(&items) {
        return Ok(Some(
            "several of one length are rows of numpy.stack(x) or torch.stack(x), of any length those of from_ragged(x), \
             and columns are record_batch(dict(...))"
                .into(),
        ));
    }
    if first.is_instance_of::<PyDict>() {
        return Ok(Some(of_dicts(&items)?.into()));
    }
    let x = if is_set(object) { "list(x)" } else { "x" };
    let way_out = if is_of_a_class(first)? { None } else { of_values(&items, x)? };
    let are_paths = items.iter().all(|item| is_path(item).unwrap_or(false));
    Ok(Some(match way_out {
        Some(way_out) if are_paths => {
            way_out.and("; if they are paths, pyarrow.dataset.dataset(x) opens them")
        }
        way_out => way_out.unwrap_or_else(|| OF_OBJECTS.into()),
    }))
}
