//! What makes tables of dicts, of columns or of rows.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange, PyString};

use super::arrays::of_dtype;
use super::kinds::{is_a_table, is_null, is_number, is_path, kind_of, listed};
use super::values::{ItemKinds, makes_arrow, of_values};
use super::way_out::Found;
use crate::python::describe::type_name;
use crate::python::protocols::is_arrow;

/// How to make a table of a dict of lists of which pyarrow makes none, or of values that are one row.
pub(super) fn of_columns(object: &Bound<'_, PyAny>) -> Found {
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
    // What has to be made of columns, what pyarrow makes an array of as it is, and what is no column.
    let (mut made, mut plain, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_columns = false;
    for (name, value) in dict.iter() {
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
            match of_values(&items, &place)? {
                Some((array, _)) => made.push(format!("{key}: {array}")),
                None if makes_arrow(&items, false)? => {
                    plain.push(format!("{key}: pyarrow.array({place})"));
                }
                None => {
                    return Ok(Some(
                        format!("pyarrow makes no array of {place}: leave it out, or make numbers or texts of it").into(),
                    ));
                }
            }
        } else if value.hasattr("to_frame")? || value.is_instance_of::<PyRange>() {
            // What pandas names rows by.
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

/// How to make a table of a dict of which these values, and so all, are those of one row.
fn of_row(
    object: &Bound<'_, PyAny>,
    whole: &str,
    values: &[(String, String, Bound<'_, PyAny>)],
) -> Found {
    let mut floats = Vec::new();
    for (key, place, value) in values {
        let is_number = value.hasattr("__float__")?;
        let is_known = is_null(value)
            || matches!(kind_of(value)?, "text" | "struct")
            || is_path(value)?
            || value.hasattr("isoformat")?;
        if !is_number && !is_known {
            return Ok(None);
        }
        if is_number && ItemKinds::of(std::slice::from_ref(value))? != ItemKinds::OneKind {
            floats.push(format!("{key}: float({place})"));
        }
    }
    let made = if !floats.is_empty() {
        let floats = floats.join(", ");
        format!("pyarrow.Table.from_pylist([{{**{whole}, {floats}}}]) makes a table of one row")
    } else if whole == BY_TEXTS || makes_arrow(std::slice::from_ref(object), false)? {
        format!("pyarrow.Table.from_pylist([{whole}]) makes a table of one row")
    } else {
        "pandas.DataFrame([x]) makes a frame of one row".to_owned()
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
        return Ok(is_some && known.all(|item| item.hasattr("__dlpack__").unwrap_or(false)));
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
