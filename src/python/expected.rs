//! What a function accepts, and what to do with an object that is something else.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMemoryView,
    PyRange, PySet, PyString, PyTuple, PyType,
};

use super::describe::type_name;
use super::protocols::{has_buffer, is_arrow};

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
    pub(super) fn way_out(self, object: &Bound<'_, PyAny>) -> Option<String> {
        // A class has the attributes of its objects, but no values.
        if object.is_instance_of::<PyType>() {
            return Some("pass an object of it".to_owned());
        }
        if let Ok(Some(way_out)) = of_dtype(object) {
            return Some(way_out);
        }
        if let Ok(Some(way_out)) = of_rows(object) {
            return Some(way_out.to_owned());
        }
        if let Ok(Some(way_out)) = of_some_arrow(object) {
            return Some(way_out);
        }
        let way_out = match self {
            Self::Tensor | Self::Any => tensor_of(object),
            Self::Arrow | Self::Either => arrow_of(object, self),
        };
        way_out.ok().flatten().map(str::to_owned)
    }

    fn but(self, object: &Bound<'_, PyAny>, way_out: Option<String>) -> PyErr {
        let expected = self.words();
        let got = match object.cast::<PyType>().map(|class| class.name()) {
            Ok(Ok(class)) => format!("the class {class}"),
            _ => type_name(object),
        };
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
    if is_sequence(object) || is_set(object) {
        return tensor_of_items(object);
    }
    if object.hasattr("__array_interface__")? || has_buffer(object) {
        return Ok(Some("asdlpack(x) takes its memory as it is"));
    }
    if is_path(object)? && object.str()?.to_str()?.ends_with(".npy") {
        return Ok(Some("if it is a path, numpy.load(x) reads such a file"));
    }
    if object.hasattr("__array__")? || is_number(object)? {
        return Ok(Some("numpy.asarray(x) makes a tensor of it"));
    }
    arrow_of(object, Expected::Either)
}

/// Whether a list, tuple or set has a None. Of other sequences, which may claim any length or never end, nothing is read.
fn has_none(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(list) = object.cast::<PyList>() {
        return Ok(list.iter().any(|item| item.is_none()));
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Ok(tuple.iter().any(|item| item.is_none()));
    }
    Ok(is_set(object) && object.contains(object.py().None())?)
}

/// Whether a list or tuple has an integer that 64 bits do not hold, of which neither NumPy nor pyarrow makes a number.
fn has_large(object: &Bound<'_, PyAny>) -> bool {
    let is_large = |item: Bound<'_, PyAny>| {
        item.is_instance_of::<PyInt>()
            && item.extract::<i64>().is_err()
            && item.extract::<u64>().is_err()
    };
    match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().any(is_large),
        (_, Ok(tuple)) => tuple.iter().any(is_large),
        _ => false,
    }
}

/// How to make a tensor of a list, tuple or set, judged by its first item, and by whether one is missing.
fn tensor_of_items(object: &Bound<'_, PyAny>) -> WayOut {
    let of_numbers = match is_set(object) {
        true => "numpy.asarray(sorted(x)) makes a tensor of it",
        false => "numpy.asarray(x) makes a tensor of it",
    };
    let Some(first) = object.try_iter()?.next().transpose()? else {
        return Ok(Some(of_numbers));
    };
    if has_none(object)? {
        return Ok(Some(
            "pyarrow.array(x) makes Arrow data of it, with nulls, and to_tensor a tensor of that",
        ));
    }
    if has_large(object) {
        return Ok(Some(
            "numpy.asarray(x, \"float64\") makes a tensor of it, of rounded numbers: 64 bits do not hold all of them",
        ));
    }
    Ok(Some(if first.is_instance_of::<PyString>() || first.is_instance_of::<PyBytes>() {
        "texts are no tensor: pyarrow.array(x) makes Arrow data of them, and pyarrow.table a table with it"
    } else if is_arrow(&first)? {
        return of_arrow(&first).map(Some);
    } else if is_set(object) && !is_number(&first)? {
        return arrow_of(object, Expected::Either);
    } else if is_set(object) {
        of_numbers
    } else if first.hasattr("__dlpack__")? {
        "numpy.stack(x) is a tensor of rows of one length, and from_ragged(x) makes lists of rows of any length"
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
    }))
}

/// The item of a list or tuple that is no Arrow data, where others are. The first items tell.
fn of_some_arrow(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    const SEEN: usize = 1000;
    let items: Vec<_> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().take(SEEN).collect(),
        (_, Ok(tuple)) => tuple.iter().take(SEEN).collect(),
        _ => return Ok(None),
    };
    let (mut has_arrow, mut other) = (false, None);
    for (index, item) in items.iter().enumerate() {
        match is_arrow(item)? {
            true => has_arrow = true,
            false if other.is_none() => other = Some((index, type_name(item))),
            false => {}
        }
    }
    Ok(other.filter(|_| has_arrow).map(|(index, kind)| {
        format!(
            "item {index} is {kind}, and others are Arrow data: convert it first, or leave it out"
        )
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
    let kind = kind.extract::<String>()?;
    // pyarrow makes arrays of arrays of one dimension.
    let is_flat = object.getattr_opt("ndim")?.is_none_or(|ndim| ndim.eq(1).unwrap_or(true));
    let flat = if is_flat { "x" } else { "x.ravel()" };
    let swapped = "x.astype(x.dtype.newbyteorder(\"=\")) has the machine's byte order";
    if let Some(times) = times_for_arrow(&dtype, &kind, flat)? {
        return Ok(Some(format!("{times}; x.view(\"int64\") has its numbers as a tensor")));
    }
    Ok(match kind.as_str() {
        "M" | "m" if !dtype.getattr("isnative")?.extract::<bool>()? => {
            Some(format!("{swapped}, of which pyarrow.array makes Arrow data"))
        }
        "M" | "m" => Some(format!(
            "pyarrow.array({flat}) makes Arrow data of {dtype}; x.view(\"int64\") has its numbers as a tensor"
        )),
        "U" | "S" | "O" => Some(format!("pyarrow.array({flat}) makes Arrow data of {dtype}")),
        "T" => Some(format!("pyarrow.array({flat}.tolist()) makes Arrow data of texts")),
        "V" if !dtype.getattr("names")?.is_none() => Some(
            "record_batch({name: x[name] for name in x.dtype.names}) makes a table of its fields"
                .to_owned(),
        ),
        _ if !dtype.getattr("isnative")?.extract::<bool>()? => Some(swapped.to_owned()),
        "f" if dtype.getattr("itemsize")?.extract::<usize>()? > 8 => {
            Some("x.astype(\"float64\") is a tensor".to_owned())
        }
        _ => None,
    })
}

/// How to convert times of a unit that Arrow has not; `None` of others. `flat`: the expression of an array of one dimension.
fn times_for_arrow(dtype: &Bound<'_, PyAny>, kind: &str, flat: &str) -> PyResult<Option<String>> {
    if kind != "M" && kind != "m" {
        return Ok(None);
    }
    let text = dtype.getattr("str")?.extract::<String>()?;
    // pyarrow takes multiples, such as [25s], for the unit itself.
    let unit = text.split_once('[').map_or("", |(_, unit)| unit.trim_end_matches(']'));
    let base = unit.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Ok(match (kind, base) {
        (_, "s" | "ms" | "us" | "ns") | ("M", "D") if base == unit => None,
        ("m", "Y" | "M") => Some(format!(
            "pyarrow.array({flat}.view(\"int64\")) makes Arrow data of its numbers, as years and months have no one \
             length"
        )),
        (_, "ps" | "fs" | "as") => Some(format!(
            "pyarrow.array({flat}.astype(\"{kind}8[ns]\")) makes Arrow data of {dtype}, less what is finer"
        )),
        _ => Some(format!(
            "pyarrow.array({flat}.astype(\"{kind}8[s]\")) makes Arrow data of {dtype}"
        )),
    })
}

/// What converts a tensor of PyTorch's that is no plain one: one of rows of different lengths, a sparse or a quantized one.
pub(super) fn of_layout(object: &Bound<'_, PyAny>) -> WayOut {
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
            "from_ragged(x.values(), x.offsets()) has the rows of a nested tensor, and x.to_padded_tensor(0) is a \
             tensor of all",
        )
    } else if is("is_nested")? {
        Some("x.to_padded_tensor(0) is a tensor of all rows of a nested one")
    } else if is_not_strided(object)? {
        Some("x.to_dense() is a tensor of all elements")
    } else if is_conjugated(object)? {
        Some("x.resolve_conj() is a tensor of its elements")
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

/// Whether it is a view of PyTorch's whose elements are yet to be conjugated.
fn is_conjugated(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.getattr_opt("is_conj")? {
        Some(method) if method.is_callable() => method.call0()?.is_truthy(),
        _ => Ok(false),
    }
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
        // A column with a mask is a pair of tensors.
        let is_tensor = |value: &Bound<'_, PyAny>| {
            let first = value.cast::<PyTuple>().ok().and_then(|pair| pair.get_item(0).ok());
            matches!(first.as_ref().unwrap_or(value).hasattr("__dlpack__"), Ok(true))
        };
        let are_tensors = dict.values().iter().any(|value| is_tensor(&value));
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
    if object.hasattr("as_py")? || is_number(object)? || object.hasattr("__float__")? {
        return Ok(Some("pyarrow.array([x]) makes an array of one value"));
    }
    if is_set(object) {
        return of_items(object);
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
    if has_large(object) && !has_none(object)? {
        return Ok(Some(
            "pyarrow.array(numpy.asarray(x, \"float64\")) makes an array of rounded numbers: 64 bits do not hold all of \
             them",
        ));
    }
    Ok(Some(if is_arrow(&first)? {
        return of_arrow(&first).map(Some);
    } else if first.hasattr("__dlpack__")? {
        "several of one length are rows of numpy.stack(x) or torch.stack(x), of any length those of from_ragged(x), and \
         columns are record_batch(dict(...))"
    } else if let Ok(row) = first.cast::<PyDict>() {
        match row.values().iter().any(|value| value.hasattr("__dlpack__").unwrap_or(false)) {
            true => "list(map(record_batch, x)) makes tables of the tensors in each",
            false => "pyarrow.Table.from_pylist(x) makes a table of it",
        }
    } else if is_path(&first)? {
        "pyarrow.array(x) makes an array of texts; if they are paths, pyarrow.dataset.dataset(x) opens them"
    } else if is_of_a_class(&first)? {
        return Ok(None);
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
    (
        &["dataset", "batch_sampler"],
        "a DataLoader makes batches itself: loop over it, and record_batch makes a table of each",
    ),
    (
        &["__next__", "_dataset_kind"],
        "this goes through a DataLoader: loop over it, and record_batch makes a table of each batch",
    ),
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
        "read a file by its format: pyarrow.parquet.read_table(x), pyarrow.csv.read_csv(x) and \
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
