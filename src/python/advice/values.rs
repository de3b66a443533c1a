//! What makes Arrow data of Python's values: of lists, rows and sets of them. Each way is tried on the first values before a
//! hint names it.

use pyo3::types::{IntoPyDict, PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyMemoryView};
use pyo3::{intern, prelude::*};

use super::kinds::{
    all, is_masked, is_nan, is_null, is_null_of_pandas, is_number, is_of_a_class, is_of_axes,
    is_text, kind_of_elements, kind_of_times, listed,
};
use super::way_out::WayOut;
use crate::python::objects::_check_objects;
use crate::python::runtime::loaded_module;

/// What holds all of some numbers without changing them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    /// The type that pyarrow finds, and NumPy.
    Known,
    /// uint64: some are above int64's.
    Unsigned,
    /// None does: float64 rounds them.
    Rounded,
    Complex,
}

impl Numbers {
    /// Of values of which none is null; `None` where some are no numbers.
    pub(super) fn of(items: &[Bound<'_, PyAny>]) -> PyResult<Option<Self>> {
        let (mut low, mut high) = (0_i128, 0_i128);
        let (mut bools, mut integers, mut floats, mut others) = (false, false, false, false);
        let mut is_complex = false;
        for item in items {
            if item.is_exact_instance_of::<PyFloat>() {
                floats = true; // most are: to ask for attributes costs more
            } else if item.is_instance_of::<PyBool>() {
                bools = true;
            } else if item.is_instance_of::<PyInt>() {
                let number = item.extract().unwrap_or(i128::MAX);
                (low, high) = (low.min(number), high.max(number));
                integers = true;
            } else if is_text(item)
                || ["__len__", "as_py"].iter().any(|name| item.hasattr(*name).unwrap_or(true))
                || kind_of_times(item)?.is_some()
            {
                return Ok(None); // NumPy makes objects of pyarrow's numbers
            } else if item.is_instance_of::<PyComplex>() {
                is_complex = true;
            } else if item.hasattr("__index__")? {
                let number = item.call_method0("__index__")?.extract().unwrap_or(i128::MAX);
                (low, high) = (low.min(number), high.max(number));
                integers = true;
            } else if is_number(item)? {
                floats = true;
            } else if item.hasattr("__float__")? {
                others = true; // such as Decimal and Fraction, of which NumPy makes an array of objects
            } else {
                return Ok(None);
            }
        }
        let fits = |least: i128, most: i128| least <= low && high <= most;
        // Floats hold all integers up to here.
        const EXACT: i128 = 1 << 53;
        Ok(Some(if is_complex {
            Self::Complex
        } else if others || (bools && (integers || floats)) || (floats && !fits(-EXACT, EXACT)) {
            Self::Rounded
        } else if floats || fits(i64::MIN.into(), i64::MAX.into()) {
            Self::Known
        } else if fits(0, u64::MAX.into()) {
            Self::Unsigned
        } else {
            Self::Rounded
        }))
    }
}

/// Of how many values a hint tries what it tells.
const TRIED: usize = 1000;

fn first_of<'a, 'py>(values: &'a [Bound<'py, PyAny>]) -> &'a [Bound<'py, PyAny>] {
    &values[..values.len().min(TRIED)]
}

/// Whether pyarrow makes an array of values, the same ones. It is told where that is not known, as pyarrow is not loaded, or
/// the values are large.
pub(super) fn makes_arrow(values: &[Bound<'_, PyAny>], is_of_pandas: bool) -> PyResult<bool> {
    let Some(first) = values.first() else { return Ok(true) };
    let py = first.py();
    if are_large(first_of(values)) {
        return Ok(true);
    }
    // It follows lists that hold themselves until the process ends, and makes other values of some.
    let all = PyList::new(py, values)?;
    if _check_objects(&all, is_of_pandas).is_err() {
        return Ok(false);
    }
    let Some(pyarrow) = loaded_module(py, intern!(py, "pyarrow"))? else { return Ok(true) };
    let options = is_of_pandas.then(|| [("from_pandas", true)].into_py_dict(py)).transpose()?;
    let values = PyList::new(py, first_of(values))?;
    Ok(pyarrow.call_method("array", (values,), options.as_ref()).is_ok())
}

/// Whether arrays of these values are more than a hint may copy.
pub(super) fn are_large(values: &[Bound<'_, PyAny>]) -> bool {
    const MOST: usize = 1 << 20;
    let bytes = |value: &Bound<'_, PyAny>| {
        let nbytes = intern!(value.py(), "nbytes");
        let bytes = value.getattr_opt(nbytes).ok().flatten();
        let memory = || PyMemoryView::from(value).and_then(|memory| memory.getattr(nbytes)).ok();
        bytes.or_else(memory)?.extract::<usize>().ok()
    };
    values.iter().filter_map(bytes).fold(0, usize::saturating_add) > MOST
}

/// The values in those of several that are lists or tuples.
pub(super) fn in_rows<'py>(items: &[Bound<'py, PyAny>]) -> Vec<Bound<'py, PyAny>> {
    items.iter().filter_map(|item| listed(item).ok().flatten()).flatten().collect()
}

/// How to make an array of the values that `x` names, or a table of their columns; `None` where no way is known.
pub(super) fn of_values(items: &[Bound<'_, PyAny>], x: &str) -> PyResult<Option<WayOut>> {
    if makes_arrow(items, false)? {
        return Ok(Some(WayOut::values(x.to_owned(), "an array of values")));
    }
    let array = |made: String, what: &str| Ok(Some(WayOut::array(made, what)));
    let rows = in_rows(items);
    let is_of_pandas = |one: &Bound<'_, PyAny>| is_null_of_pandas(one) || is_nan(one);
    if items.iter().chain(&rows).any(is_of_pandas) && makes_arrow(items, true)? {
        return array(
            format!("pyarrow.array({x}, from_pandas=True)"),
            "an array of values, with nulls",
        );
    }
    let known: Vec<_> = items.iter().filter(|item| !is_null(item)).cloned().collect();
    let is_whole = known.len() == items.len();
    match Numbers::of(&known)? {
        Some(Numbers::Unsigned) if !items.iter().any(is_null_of_pandas) => {
            return array(format!("pyarrow.array({x}, \"uint64\")"), "an array of values");
        }
        Some(Numbers::Rounded)
            if is_whole && are_all(items, |one| one.extract::<f64>().is_ok()) =>
        {
            return array(
                format!("pyarrow.array(numpy.asarray({x}, \"float64\"))"),
                "an array of floats, which round what they do not hold",
            );
        }
        Some(Numbers::Complex) if is_whole => {
            return array(
                format!("from_dlpack(numpy.asarray({x}, \"complex128\"))"),
                "an array of complex numbers",
            );
        }
        _ => {}
    }
    // A table is no column of another one.
    if x == "x" {
        if let Some(made) = of_rows_of_columns(items)? {
            return Ok(Some(format!("{made} makes a table of rows").into()));
        }
    }
    if makes_arrow_of_each(items, of_row)? {
        return array(format!("pyarrow.array(list(map(dict, {x})))"), "an array of structs");
    }
    if makes_arrow_of_each(items, of_several)? {
        return array(
            format!("pyarrow.array([item.tolist() for item in {x}])"),
            "an array of their values",
        );
    }
    if are_all(items, is_word) {
        return array(
            format!("pyarrow.array(list(map(str, {x})))"),
            "an array of texts, as the values are of several kinds",
        );
    }
    Ok(None)
}

fn are_all(items: &[Bound<'_, PyAny>], is_one: impl Fn(&Bound<'_, PyAny>) -> bool) -> bool {
    first_of(items).iter().all(is_one)
}

/// Whether pyarrow makes an array of what a function makes of each value.
pub(super) fn makes_arrow_of_each<'py>(
    items: &[Bound<'py, PyAny>],
    make: impl Fn(&Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<bool> {
    let items = first_of(items);
    if are_large(items) {
        return Ok(false);
    }
    let made: Vec<_> = items.iter().map_while(|item| make(item).ok().flatten()).collect();
    Ok(made.len() == items.len() && makes_arrow(&made, false)?)
}

/// The dict of a row of sqlite3's. What a mapping of another class reads is not known.
fn of_row<'py>(item: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_row = item.get_type().module()? == "sqlite3" && item.hasattr("keys")?;
    is_row.then(|| item.py().get_type::<PyDict>().call1((item,))).transpose()
}

/// The values of an array, as lists of Python's.
pub(super) fn of_several<'py>(item: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(tolist) = item.getattr_opt("tolist")? else { return Ok(None) };
    let made = tolist.call0()?;
    // Of times that Python has none for, NumPy has counts.
    let is_count = kind_of_times(item)?.is_some() && made.is_instance_of::<PyInt>();
    Ok((!is_count).then_some(made))
}

/// Whether the text of a value is the value, and no address, nor the text of many.
fn is_word(item: &Bound<'_, PyAny>) -> bool {
    let is_other = || {
        is_null(item)
            || is_nan(item)
            || item.is_callable()
            || ["__len__", "as_py"].iter().any(|name| item.hasattr(*name).unwrap_or(true))
            || is_of_a_class(item).unwrap_or(true)
    };
    is_text(item)
        || (!is_other() && item.str().is_ok_and(|text| !text.to_string().contains(" at 0x")))
}

/// What makes a table of lists or tuples of one length, such as the rows of a database, of which each column is of one type,
/// or (of samples and their labels) is tensors or numbers.
fn of_rows_of_columns(items: &[Bound<'_, PyAny>]) -> PyResult<Option<&'static str>> {
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
    if columns.iter().flatten().any(|value| is_of_axes(value).unwrap_or(false)) {
        return Ok(all(&columns, |column| is_stacked(column))?.then_some(
            "record_batch({str(at): numpy.stack(column) for at, column in enumerate(zip(*x, strict=True))})",
        ));
    }
    for (is_of_pandas, made) in [
        (
            false,
            "pyarrow.table({str(at): column for at, column in enumerate(zip(*x, strict=True))})",
        ),
        (
            true,
            "pyarrow.table({str(at): pyarrow.array(column, from_pandas=True) for at, column in \
             enumerate(zip(*x, strict=True))})",
        ),
    ] {
        if all(&columns, |column| makes_arrow(column, is_of_pandas))? {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// Whether it is a tensor, and no array of NumPy's of texts, times or objects.
pub(super) fn is_tensor(item: &Bound<'_, PyAny>) -> bool {
    let is_of_numbers = || kind_of_elements(item).is_ok_and(|kind| "biufc".contains(kind));
    item.hasattr("__dlpack__").unwrap_or(false)
        && (!item.hasattr("dtype").unwrap_or(false) || is_of_numbers())
}

/// Whether NumPy makes one tensor of tensors of one shape, or of numbers, and changes none of them.
pub(super) fn is_stacked(column: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let mut first: Option<String> = None;
    for item in column {
        if !item.hasattr("__dlpack__")? {
            return Ok(Numbers::of(column)? == Some(Numbers::Known));
        }
        let shape = item.getattr("shape")?.to_string();
        let is_alike = *first.get_or_insert_with(|| shape.clone()) == shape;
        if !is_alike || !is_tensor(item) || is_masked(item) {
            return Ok(false);
        }
    }
    Ok(true)
}
