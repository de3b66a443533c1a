//! What makes tables of dicts, of columns or of rows.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange, PySet, PyString};

use super::arrays::of_dtype;
use super::kinds::{all, is_a_table, is_null, is_of_axes, is_path, is_text, listed};
use super::values::{
    are_large, is_stacked, is_tensor, makes_arrow, makes_arrow_of_each, of_several, of_values,
};
use super::way_out::{Found, Made, OF_OBJECTS};
use crate::python::describe::type_name;
use crate::python::protocols::is_arrow;

/// How to make a table of a dict of lists of which pyarrow makes none, or of values that are one row.
pub(super) fn of_columns(object: &Bound<'_, PyAny>) -> Found {
    let Ok(dict) = object.cast::<PyDict>() else { return Ok(None) };
    if is_of_a_frame(dict)? {
        return Ok(Some(
            "pyarrow.table({str(name): list(column.values()) for name, column in x.items()}) makes a table of it".into(),
        ));
    }
    let has_names = has_names(dict);
    // Names of columns are texts.
    let whole = if has_names { "x" } else { BY_TEXTS };
    let key = |name: &Bound<'_, PyAny>| {
        let text = if has_names { name.repr() } else { name.str()?.repr() };
        text.map(|text| text.to_string())
    };
    // What has to be made of columns, what pyarrow makes an array of as it is, and what is no column.
    let (mut made, mut plain, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_columns = false;
    // Not its iterator, which fails where Python code changes the dict meanwhile.
    for (name, value) in dict.keys().iter().zip(dict.values()) {
        let (key, place) = (key(&name)?, format!("x[{}]", name.repr()?));
        let is_flat = value.getattr_opt("ndim")?.is_none_or(|ndim| ndim.eq(1).unwrap_or(true));
        // Texts, times and objects of NumPy.
        let of_dtype = if is_flat { of_dtype(&value, &place)? } else { None };
        if let Some(way_out) = of_dtype.and_then(|way_out| way_out.made) {
            made.push(format!("{key}: {}", way_out.array()));
            has_columns = true;
        } else if is_a_column(&value)? {
            has_columns = true;
        } else if let Some(items) = listed(&value)? {
            let way_out = of_values(&items, &place)?.and_then(|way_out| way_out.made);
            let Some(array) = way_out else {
                return Ok(Some(
                    format!("pyarrow makes no array of {place}: leave it out, or make numbers or texts of it").into(),
                ));
            };
            let of = if matches!(array, Made::Of(_)) { &mut plain } else { &mut made };
            of.push(format!("{key}: {}", array.array()));
        } else if ["to_frame", "__arrow_array__"]
            .iter()
            .any(|name| value.hasattr(*name).unwrap_or(false))
            || value.is_instance_of::<PyRange>()
        {
            // What pandas names rows by, and what it keeps columns in.
            plain.push(format!("{key}: pyarrow.array({place})"));
        } else {
            others.push((key, place, value));
        }
    }
    if has_columns {
        if let Some((_, place, value)) = others.first() {
            let kind = type_name(value);
            return Ok(Some(format!("{place} is {kind}, and no column: leave it out").into()));
        }
        made.append(&mut plain);
    }
    let columns = match made.is_empty() {
        true => whole.to_owned(),
        false => format!("{{**{whole}, {}}}", made.join(", ")),
    };
    if has_columns {
        return Ok(Some(format!("record_batch({columns}) makes a table of it").into()));
    }
    if others.is_empty() {
        return Ok(Some(format!("pyarrow.table({columns}) makes a table of it").into()));
    }
    of_row(object, whole, &others)
}

/// Whether it is what a frame's `to_dict` makes: a dict of each column, by the same numbers of rows.
fn is_of_a_frame(dict: &Bound<'_, PyDict>) -> PyResult<bool> {
    let columns: Option<Vec<_>> =
        dict.values().iter().map(|value| value.cast_into::<PyDict>().ok()).collect();
    let columns = columns.unwrap_or_default();
    let Some(first) = columns.first() else { return Ok(false) };
    let keys = first.keys();
    Ok(!keys.is_empty() && !has_names(first) && all(&columns, |column| column.keys().eq(&keys))?)
}

/// How to make a table of a dict of which these values, and so all, are those of one row.
fn of_row(
    object: &Bound<'_, PyAny>,
    whole: &str,
    values: &[(String, String, Bound<'_, PyAny>)],
) -> Found {
    for (.., value) in values {
        let is_known = is_null(value)
            || is_text(value)
            || value.is_instance_of::<PyDict>()
            || is_path(value)?
            || value.hasattr("__float__")?
            || value.hasattr("isoformat")?;
        if !is_known {
            return Ok(None);
        }
    }
    let made = if whole == BY_TEXTS || makes_arrow(std::slice::from_ref(object), false)? {
        format!("pyarrow.Table.from_pylist([{whole}]) makes a table of one row")
    } else {
        "pandas.DataFrame([x], dtype=object) makes a frame of one row".to_owned()
    };
    Ok(Some(made.into()))
}

/// Whether some of its values are tensors.
fn has_tensors(dict: &Bound<'_, PyDict>) -> bool {
    dict.values().iter().any(|value| value.hasattr("__dlpack__").unwrap_or(false))
}

/// Whether some of its values are columns to `record_batch`.
fn has_columns(dict: &Bound<'_, PyDict>) -> PyResult<bool> {
    let mut found = false;
    for value in dict.values() {
        found |= is_a_column(&value)?;
    }
    Ok(found)
}

/// Whether `record_batch` takes it for a column: a tensor, one with its mask, several of one row each, or Arrow data that is
/// no table.
fn is_a_column(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Some(items) = listed(value)? {
        let mut known = items.iter().filter(|item| !item.is_none()).peekable();
        let is_some = known.peek().is_some();
        return Ok(
            is_some && known.all(|item| is_of_axes(item).unwrap_or(false) && is_tensor(item))
        );
    }
    Ok(value.hasattr("__dlpack__")? || (is_arrow(value)? && !is_a_table(value)?))
}

/// Whether it is a dict of columns and their label, as a Loader makes them.
pub(in crate::python) fn is_batch_with_label(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let items = listed(object)?.unwrap_or_default();
    let [features, label] = items.as_slice() else { return Ok(false) };
    let is_batch = features.cast::<PyDict>().map_or(Ok(false), |dict| has_columns(dict))?;
    Ok(is_batch && is_a_column(label)?)
}

/// What has the columns of a dict by names that are texts.
const BY_TEXTS: &str = "{str(name): column for name, column in x.items()}";

fn has_names(dict: &Bound<'_, PyDict>) -> bool {
    dict.keys().iter().all(|name| name.is_instance_of::<PyString>())
}

/// What makes a table of a list of dicts, which are rows, or batches of tensors. pyarrow's `from_pylist` has the columns of the
/// first row alone.
pub(in crate::python) fn of_dicts(rows: &[Bound<'_, PyAny>]) -> PyResult<String> {
    let dicts: Vec<_> = rows.iter().filter_map(|row| row.cast::<PyDict>().ok()).collect();
    if dicts.len() < rows.iter().filter(|row| !is_null(row)).count() {
        return Ok(OF_OBJECTS.to_owned());
    }
    if !dicts.iter().any(|row| has_tensors(row)) {
        return Ok(match makes_arrow(rows, false)? {
            true => "pyarrow.table(pyarrow.array(x)) makes a table of it".to_owned(),
            // Else pandas makes floats of integers beside one that is missing.
            false => "pandas.DataFrame(x, dtype=object) makes a frame of it".to_owned(),
        });
    }
    let lists = "pyarrow.table(pyarrow.array([{name: value.tolist() if hasattr(value, \"tolist\") else value for name, \
                 value in row.items()} for row in x]))";
    let names = PySet::empty(rows[0].py())?;
    dicts.iter().try_for_each(|row| row.keys().iter().try_for_each(|name| names.add(name)))?;
    let are_samples = all(names.iter(), |name| {
        let column: Vec<_> = dicts.iter().filter_map(|row| row.get_item(&name).ok()?).collect();
        Ok(column.len() == rows.len() && is_stacked(&column)?)
    })?;
    let has_columns = dicts.iter().all(|row| has_columns(row).unwrap_or(false));
    let batches = if has_columns { ", of batches list(map(record_batch, x)) tables" } else { "" };
    Ok(match are_samples {
        true => format!(
            "of samples record_batch({{name: numpy.stack([row[name] for row in x]) for name in x[0]}}) makes a table{batches}"
        ),
        false if makes_arrow_of_each(rows, of_lists)? => {
            format!("of samples {lists} makes a table{batches}")
        }
        false => OF_OBJECTS.to_owned(),
    })
}

/// A dict with the values of its arrays as lists of Python's, if they are not large.
fn of_lists<'py>(row: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(row) = row.cast::<PyDict>() else { return Ok(None) };
    let (values, made) = (row.values().iter().collect::<Vec<_>>(), PyDict::new(row.py()));
    if are_large(&values) {
        return Ok(None);
    }
    for (name, value) in row.keys().iter().zip(values) {
        let own = if value.hasattr("tolist")? { of_several(&value)? } else { Some(value) };
        let Some(own) = own else { return Ok(None) };
        made.set_item(name, own)?;
    }
    Ok(Some(made.into_any()))
}
