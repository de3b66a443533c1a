//! What a Python object is, as far as hints tell.

use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PyRange,
    PySet, PyString, PyTuple,
};
use pyo3::{intern, prelude::*};

use crate::python::describe::type_name;
use crate::python::protocols::{is_arrow, methods};
use crate::{Error, alloc};

/// Whether it tells of memory with a shape, which Arrow data of it lack: Pillow's images are columns of pixels.
pub(super) fn has_array_interface(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr(intern!(object.py(), "__array_interface__"))
}

/// Whether it is what most values are: to ask one for an attribute that it lacks costs a hundred times as much.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyDict>()
}

/// Whether a value is None, or one of those of pandas's or NumPy's that stand for it.
pub(in crate::python) fn is_null(value: &Bound<'_, PyAny>) -> bool {
    !is_plain(value)
        && (value.is_none()
            || matches!(type_name(value).as_str(), "NAType" | "NaTType" | "MaskedConstant"))
}

/// Whether NumPy hides the value of an element: it has a number that is not meant.
pub(in crate::python) fn is_masked(value: &Bound<'_, PyAny>) -> bool {
    if is_plain(value) {
        return false;
    }
    let mask = value.getattr_opt(intern!(value.py(), "mask")).ok().flatten();
    mask.is_some_and(|mask| is_mask(&mask) && mask.is_truthy().unwrap_or(true))
}

/// Whether an attribute of that name is a boolean or some: other arrays have a function, or awkward's accessor.
pub(in crate::python) fn is_mask(mask: &Bound<'_, PyAny>) -> bool {
    let has = |name: &str| mask.hasattr(name).unwrap_or(true);
    !mask.is_callable()
        && (mask.is_instance_of::<PyBool>() || has("dtype") || has("__len__") || has("__dlpack__"))
}

/// The first letter of the name of a dtype.
pub(super) fn kind_of_elements(tensor: &Bound<'_, PyAny>) -> PyResult<char> {
    let dtype = tensor.getattr("dtype")?.str()?.to_string();
    Ok(dtype.rsplit('.').next().and_then(|name| name.chars().next()).unwrap_or_default())
}

/// 'M' of a time of NumPy's or an array of them, 'm' of durations, and `None` of anything else.
pub(in crate::python) fn kind_of_times(cell: &Bound<'_, PyAny>) -> PyResult<Option<char>> {
    let py = cell.py();
    let Some(dtype) = cell.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    let Some(kind) = dtype.getattr_opt(intern!(py, "kind"))? else { return Ok(None) };
    Ok(kind.extract().ok().filter(|kind| matches!(kind, 'M' | 'm')))
}

/// Whether a value is `pandas.NA` or `pandas.NaT`, of which pyarrow makes nulls where it is told that they are pandas's.
pub(super) fn is_null_of_pandas(value: &Bound<'_, PyAny>) -> bool {
    !is_plain(value) && matches!(type_name(value).as_str(), "NAType" | "NaTType")
}

/// Whether it is Python's NaN, which stands for a value that is missing beside values that are no numbers.
pub(super) fn is_nan(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyFloat>().is_ok_and(|value| value.value().is_nan())
}

/// Whether Arrow data is a table, a frame or a reader of batches, which is no column of another table. Columns of nanoarrow
/// have a schema too.
pub(in crate::python) fn is_a_table(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    let [array, _stream] = methods(data.py());
    Ok(data.hasattr("columns")? || (data.hasattr("schema")? && !data.hasattr(array)?))
}

/// Whether it is a mapping that is no dict, and neither a tensor nor Arrow data.
pub(in crate::python) fn is_mapping(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_other = !data.is_instance_of::<PyDict>() && data.cast::<PyMapping>().is_ok();
    // pyarrow's values of structs are mappings too.
    Ok(is_other && !data.hasattr("__dlpack__")? && !data.hasattr("as_py")? && !is_arrow(data)?)
}

/// The items of a list or a tuple. Of other sequences, which may claim any length or never end, nothing is read.
pub(in crate::python) fn listed<'py>(
    object: &Bound<'py, PyAny>,
) -> Result<Option<Vec<Bound<'py, PyAny>>>, Error> {
    match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => alloc::collect(list.iter()).map(Some),
        (_, Ok(tuple)) => alloc::collect(tuple.iter()).map(Some),
        _ => Ok(None),
    }
}

/// The items of a list, tuple or set, and none of what may claim any length.
pub(super) fn items_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if !is_set(object) {
        return Ok(listed(object)?.unwrap_or_default());
    }
    // A subclass may iterate without an end.
    let len = object.cast::<PySet>().map_or(usize::MAX, |set| set.len());
    let len = object.cast::<PyFrozenSet>().map_or(len, |set| set.len());
    object.try_iter()?.take(len).collect()
}

/// Whether a question that may fail has the answer yes for each of several, up to the first that has another one.
pub(super) fn all<T>(
    several: impl IntoIterator<Item = T>,
    is_one: impl FnMut(T) -> PyResult<bool>,
) -> PyResult<bool> {
    let mut answers = several.into_iter().map(is_one);
    answers.find(|answer| !matches!(answer, Ok(true))).unwrap_or(Ok(true))
}

pub(super) fn is_text(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>()
}

/// Whether it is a decimal, of Python's module of it in C or in Python.
pub(in crate::python) fn is_of_decimals(item: &Bound<'_, PyAny>) -> bool {
    ["as_integer_ratio", "quantize"].iter().all(|name| item.hasattr(*name).unwrap_or(false))
}

/// Whether it is a tensor with an axis.
pub(super) fn is_of_axes(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!is_plain(tensor) && tensor.hasattr("__dlpack__")? && !tensor.getattr("ndim")?.eq(0)?)
}

pub(super) fn is_path(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyString>() || object.hasattr("__fspath__")?)
}

pub(super) fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
}

/// Whether it has values in no order, of which NumPy makes no array.
pub(super) fn is_set(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>()
}

/// Whether NumPy makes a number of it: it is one of Python's or NumPy's own.
pub(super) fn is_number(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.hasattr("__index__")?
        || (object.hasattr("__float__")? && object.hasattr("dtype")?))
}

/// Whether it is of a class that is written in Python, which no library makes a value of, unless it is a number or a time.
pub(super) fn is_of_a_class(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_value = is_null(object)
        || is_number(object)?
        || object.hasattr("__float__")?
        || object.hasattr("isoformat")?;
    Ok(!is_value && !object.hasattr("__arrow_c_array__")? && object.hasattr("__dict__")?)
}
