//! What makes Arrow data of Python's values: of lists, rows and sets of them.

use pyo3::types::{IntoPyDict, PyDict, PyFrozenSet, PyInt, PyList, PyMemoryView, PyRange, PySet};
use pyo3::{intern, prelude::*};

use super::kinds::{
    is_nan, is_null, is_null_of_pandas, is_number, is_of_axes, is_of_decimals, is_sequence, is_set,
    kind_of, kind_of_times, listed,
};
use super::way_out::{Found, WayOut};
use crate::python::describe::type_name;
use crate::python::objects::_check_objects;
use crate::python::runtime::loaded_module;

/// What the values of a list are to pyarrow, which makes no array of some lists of Python's objects.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ItemKinds {
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

/// The kinds that NaN is one of.
const NUMBERS: &[&str] = &["bool", "int", "float", "complex", "decimal", "fraction"];

impl ItemKinds {
    pub(super) fn of(items: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let (mut kinds, mut low, mut high) = (Vec::<&str>::new(), 0_i128, 0_i128);
        let mut has_nan = false;
        for item in items.iter().filter(|item| !is_null(item)) {
            if is_nan(item) {
                has_nan = true;
                continue;
            }
            if item.is_instance_of::<PyInt>() {
                let number = item.extract().unwrap_or(i128::MAX);
                (low, high) = (low.min(number), high.max(number));
            }
            let kind = kind_of(item)?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        // Beside others than numbers it stands for one that is missing.
        if has_nan && kinds.iter().all(|kind| NUMBERS.contains(kind)) && !kinds.contains(&"float") {
            kinds.push("float");
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

    /// What makes Arrow data of items of this kind, which `x` names; `None` where pyarrow does.
    fn way_to_make(self, items: &[Bound<'_, PyAny>], x: &str) -> Option<String> {
        let has_none = items.iter().any(is_null);
        Some(match self {
            Self::OneKind => return None,
            Self::Unsigned if items.iter().any(is_null_of_pandas) => {
                format!("pyarrow.array({x}, \"uint64\", from_pandas=True)")
            }
            Self::Unsigned => format!("pyarrow.array({x}, \"uint64\")"),
            Self::Rounded if has_none => each("float", items, x),
            Self::Rounded => format!("pyarrow.array(numpy.asarray({x}, \"float64\"))"),
            Self::Complex if !has_none => {
                format!("from_dlpack(numpy.asarray({x}, \"complex128\"))")
            }
            Self::Complex | Self::Mixed => each("str", items, x),
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

/// Whether some are nulls to pandas alone: its own ones, and NaN beside values that are no numbers.
fn has_nulls_of_pandas(items: &[Bound<'_, PyAny>]) -> bool {
    let is_no_number =
        |item: &Bound<'_, PyAny>| kind_of(item).is_ok_and(|kind| !NUMBERS.contains(&kind));
    let mut known = items.iter().filter(|item| !is_null(item));
    items.iter().any(is_null_of_pandas) || (items.iter().any(is_nan) && known.any(is_no_number))
}

/// Whether some are tensors with an axis, whose texts are no values.
fn has_tensors(items: &[Bound<'_, PyAny>]) -> bool {
    items.iter().any(|item| is_of_axes(item).unwrap_or(false))
}

/// Whether a list has objects of Python's alone, of which pyarrow makes no array. Nothing is known of that where it is not
/// loaded.
pub(super) fn are_unknown(items: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let mut kinds = items.iter().filter(|item| !is_null(item)).map(kind_of);
    if !kinds.all(|kind| kind.is_ok_and(|kind| kind == "object")) {
        return Ok(false);
    }
    Ok(!makes_arrow(items, true)?)
}

/// What makes a table of rows of values of several types, such as those of a database.
const OF_ROWS: &str =
    "pyarrow.table({str(at): column for at, column in enumerate(zip(*x, strict=True))})";

/// The same of rows that have nulls of pandas's.
const OF_ROWS_OF_PANDAS: &str = "pyarrow.table({str(at): pyarrow.array(column, from_pandas=True) for at, column in \
                                 enumerate(zip(*x, strict=True))})";

/// Of how many values a hint tries what it tells.
const TRIED: usize = 100;

/// Whether pyarrow makes an array of the first of these values, the same ones. It is told where that is not known, as pyarrow
/// is not loaded, or the values are large.
pub(super) fn makes_arrow(values: &[Bound<'_, PyAny>], is_of_pandas: bool) -> PyResult<bool> {
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

/// Whether arrays of these values are more than a hint may copy.
fn are_large(values: &[Bound<'_, PyAny>]) -> bool {
    const MOST: usize = 1 << 20;
    let bytes = |value: &Bound<'_, PyAny>| {
        let nbytes = intern!(value.py(), "nbytes");
        let bytes = value.getattr_opt(nbytes).ok().flatten();
        let memory = || PyMemoryView::from(value).and_then(|memory| memory.getattr(nbytes)).ok();
        bytes.or_else(memory)?.extract::<usize>().ok()
    };
    values.iter().filter_map(bytes).fold(0, usize::saturating_add) > MOST
}

/// What a function makes of each of the values that `x` names, of which those that are missing are nulls.
fn each(function: &str, items: &[Bound<'_, PyAny>], x: &str) -> String {
    let mut found = Vec::new();
    for item in items.iter().filter(|item| is_null(item)) {
        let missing = match type_name(item).as_str() {
            "NAType" => "value is pandas.NA",
            "NaTType" => "value is pandas.NaT",
            "MaskedConstant" => "value is numpy.ma.masked",
            _ => "value is None",
        };
        if !found.contains(&missing) {
            found.push(missing);
        }
    }
    // It comes last: whether pandas.NA is another value than itself is not known.
    if function == "str" && items.iter().any(is_nan) {
        found.push("value != value");
    }
    match found.is_empty() {
        true => format!("pyarrow.array(list(map({function}, {x})))"),
        false => format!(
            "pyarrow.array([None if {} else {function}(value) for value in {x}])",
            found.join(" or ")
        ),
    }
}

/// What makes an array of values of which pyarrow makes none as they are, if anything does. In place of a dict's tensors there
/// are its names, and of an object without a text its address.
fn in_place_of(
    values: &[Bound<'_, PyAny>],
    first: &Bound<'_, PyAny>,
    x: &str,
) -> PyResult<Option<(String, &'static str)>> {
    let is_a_path = first.hasattr("__fspath__")?;
    let is_nested = !is_a_path && matches!(kind_of(first)?, "struct" | "object");
    if is_nested || is_of_axes(first)? || has_tensors(&in_rows(values)) {
        return Ok(None);
    }
    if values.iter().all(|value| value.is_instance_of::<PyRange>()) {
        return Ok(Some((format!("pyarrow.array(list(map(list, {x})))"), "an array of lists")));
    }
    // Such as rows of sqlite3.
    if first.hasattr("keys")? {
        let dict = first.py().get_type::<PyDict>();
        let dicts = values.iter().take(TRIED).map(|value| dict.call1((value,)));
        let dicts = dicts.collect::<PyResult<Vec<_>>>();
        if dicts.is_ok_and(|dicts| makes_arrow(&dicts, false).unwrap_or(false)) {
            let made = format!("pyarrow.array(list(map(dict, {x})))");
            return Ok(Some((made, "an array of structs")));
        }
    }
    if have_lists(values, first)? {
        let made = format!("pyarrow.array([item.tolist() for item in {x}])");
        return Ok(Some((made, "an array of their values")));
    }
    let made = each("str", values, x);
    let is_address = first.str().is_ok_and(|text| text.to_string().contains(" at 0x"));
    Ok((!is_address).then_some((made, "an array of texts")))
}

/// Whether `tolist` of each has values of which pyarrow makes an array. Of large ones it is told.
fn have_lists(values: &[Bound<'_, PyAny>], first: &Bound<'_, PyAny>) -> PyResult<bool> {
    if are_large(values) {
        return first.hasattr("tolist");
    }
    let mut plain = Vec::new();
    for value in values {
        let Ok(made) = value.call_method0("tolist") else { return Ok(false) };
        // Of times that Python has none for, NumPy has counts.
        if kind_of_times(value)?.is_some() && made.is_instance_of::<PyInt>() {
            return Ok(false);
        }
        plain.push(made);
    }
    makes_arrow(&plain, false)
}

/// The values in those of several that are lists or tuples.
pub(super) fn in_rows<'py>(items: &[Bound<'py, PyAny>]) -> Vec<Bound<'py, PyAny>> {
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
    if has_tensors(&all) {
        let is_tensor_or_number =
            |value: &Bound<'_, PyAny>| Ok::<_, PyErr>(is_of_axes(value)? || is_number(value)?);
        let are_known = all.iter().all(|value| is_tensor_or_number(value).unwrap_or(false));
        return Ok(are_known.then_some(OF_SAMPLES));
    }
    let are_objects = is_tensor && all.iter().any(|value| is_null(value) || is_of_decimals(value));
    if !are_objects && ItemKinds::of(&all)? == ItemKinds::OneKind {
        return Ok(None);
    }
    let is_of_pandas = columns.iter().any(|column| has_nulls_of_pandas(column));
    for column in &columns {
        if ItemKinds::of(column)? != ItemKinds::OneKind || !makes_arrow(column, is_of_pandas)? {
            return Ok(None);
        }
    }
    Ok(Some(if is_of_pandas { OF_ROWS_OF_PANDAS } else { OF_ROWS }))
}

/// How to make an array of the list or tuple that `x` is; `None` where pyarrow makes one of it.
pub(super) fn of_values(items: &[Bound<'_, PyAny>], x: &str) -> PyResult<Option<(String, String)>> {
    let rows = in_rows(items);
    let is_of_pandas = has_nulls_of_pandas(items) || has_nulls_of_pandas(&rows);
    let of_pandas = if is_of_pandas { ", from_pandas=True" } else { "" };
    let values = ItemKinds::of(items)?;
    let is_whole = !is_of_pandas && !items.iter().chain(&rows).any(is_null);
    if values == ItemKinds::OneKind && is_whole {
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
    if values == ItemKinds::Mixed && has_tensors(items) {
        return Ok(None);
    }
    if let Some(made) = values.way_to_make(items, x) {
        return Ok(Some((made, values.told().to_owned())));
    }
    if makes_arrow(items, is_of_pandas)? {
        let plain = format!("pyarrow.array({x}{of_pandas})");
        return Ok(is_of_pandas.then(|| (plain, values.told().to_owned())));
    }
    let first = items.iter().find(|item| !is_null(item) && !is_nan(item));
    let Some(first) = first else { return Ok(None) };
    Ok(in_place_of(items, first, x)?.map(|(made, told)| (made, told.to_owned())))
}

/// What makes a table of rows of tensors and numbers, such as samples and their labels.
const OF_SAMPLES: &str = "record_batch({str(at): numpy.stack(column) for at, column in enumerate(zip(*x, strict=True))})";

/// Whether NumPy makes a tensor of the items: of all numbers, but of nulls none.
fn are_of_tensors(items: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let is_of_tensors = |first: &Bound<'_, PyAny>| {
        let is_several = is_sequence(first) || first.hasattr("__array__")?;
        let is_one = is_number(first)? || first.hasattr("__float__")?;
        Ok::<_, PyErr>((is_several || is_one) && kind_of_times(first)?.is_none())
    };
    Ok(!items.iter().any(is_null)
        && !has_nulls_of_pandas(items)
        && items.first().is_none_or(|first| is_of_tensors(first).unwrap_or(false))
        && ItemKinds::of(items)? != ItemKinds::Mixed
        && ItemKinds::of(&in_rows(items))? != ItemKinds::Mixed)
}

/// How to make Arrow data of an object of Python's, or several, of which pyarrow makes none as they are.
pub(super) fn of_objects(object: &Bound<'_, PyAny>, x: &str, is_tensor: bool) -> Found {
    let way_out = match listed(object)? {
        Some(items) => {
            // A table is no column of another one.
            let table = if x == "x" { of_rows_of_columns(&items, is_tensor)? } else { None };
            if let Some(made) = table {
                return Ok(Some(format!("{made} makes a table of rows").into()));
            }
            if is_tensor && are_of_tensors(&items)? { None } else { of_values(&items, x)? }
        }
        None if is_set(object) => {
            // A subclass may iterate without an end.
            let len = object.cast::<PySet>().map_or(usize::MAX, |set| set.len());
            let len = object.cast::<PyFrozenSet>().map_or(len, |set| set.len());
            let items = object.try_iter()?.take(len).collect::<PyResult<Vec<_>>>()?;
            of_values(&items, &format!("list({x})"))?
        }
        None if !is_tensor && is_number(object)? => {
            let items = std::slice::from_ref(object);
            let made = match ItemKinds::of(items)? {
                ItemKinds::Rounded => Some(format!("pyarrow.array([float({x})])")),
                values => values.way_to_make(items, &format!("[{x}]")),
            };
            made.map(|made| (made, "an array of one value".to_owned()))
        }
        None => None,
    };
    Ok(way_out.map(|(made, told)| WayOut::array(made, &told)))
}
