//! Arguments and states that are sequences.
//!
//! PyO3's conversion to a vector allocates for as many items as `__len__` claims, and panics or aborts the process if that is
//! absurd. `Items` believes no length, and is what stands in signatures in its place.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{intern, prelude::*};

use super::arrow::schema::MAX_FIELDS;
use super::request::described;

/// The items of a sequence.
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Items<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let read = items(&object, |item| item.extract().map_err(Into::into))?;
        read.map(Self).ok_or_else(|| {
            PyTypeError::new_err(format!("expected a list, got {}", described(&object)))
        })
    }
}

/// The items of a sequence, each of which `read` reads; `None` for what is none, and for dicts, sets and a str, which is never
/// meant as a sequence of its letters.
pub(super) fn items<'py, T>(
    object: &Bound<'py, PyAny>,
    mut read: impl FnMut(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Vec<T>>> {
    if !object.hasattr(intern!(object.py(), "__getitem__"))?
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyDict>()
    {
        return Ok(None);
    }
    // What lists and tuples have is in memory. Others make their items, such as a range, and may never end.
    let is_kept =
        object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>();
    let most = if is_kept { usize::MAX } else { MAX_FIELDS };
    let mut items = Vec::new();
    for item in object.try_iter()? {
        if items.len() >= most {
            return Err(PyValueError::new_err(format!(
                "a sequence has more than {MAX_FIELDS} items"
            )));
        }
        let item = read(item?)?;
        items.try_reserve(1).map_err(|_| PyMemoryError::new_err("the sequence is too long"))?;
        items.push(item);
    }
    Ok(Some(items))
}
