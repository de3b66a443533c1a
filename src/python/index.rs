//! `tensor[...]` as in NumPy: translates an index to a pick for each axis.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::types::{PyBool, PyEllipsis, PySlice, PySliceMethods, PyTuple};
use pyo3::{intern, prelude::*};

use super::describe::described;
use crate::alloc;
use crate::tensor::Index;

/// The picks of an index into a tensor of this shape: an integer, a slice, `...`, None, or a tuple of them.
pub(super) fn picks(index: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Vec<Index>> {
    let items = match index.cast::<PyTuple>() {
        Ok(tuple) => alloc::collect(tuple.iter())?,
        Err(_) => vec![index.clone()],
    };
    let is_ellipsis = |item: &&Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
    let ellipses = items.iter().filter(is_ellipsis).count();
    let indexed = items.iter().filter(|item| !item.is_none()).count() - ellipses;
    if ellipses > 1 {
        return Err(PyIndexError::new_err("an index has one '...' at most"));
    }
    let Some(rest) = shape.len().checked_sub(indexed) else {
        return Err(PyIndexError::new_err(format!(
            "{indexed} indices for a tensor of {} axes",
            shape.len()
        )));
    };
    let (mut picks, mut axes) = (alloc::reserved(items.len())?, shape.iter());
    for item in &items {
        if item.is_none() {
            picks.push(Index::New);
        } else if item.is_instance_of::<PyEllipsis>() {
            let whole = |&len: &i64| Index::Every { start: 0, step: 1, len };
            picks.extend(axes.by_ref().take(rest).map(whole));
        } else {
            let extent = axes.next().copied().unwrap_or_default();
            picks.push(pick(item, picks.len(), extent)?);
        }
    }
    Ok(picks)
}

/// The pick of an integer or a slice.
fn pick(item: &Bound<'_, PyAny>, place: usize, extent: i64) -> PyResult<Index> {
    if let Ok(slice) = item.cast::<PySlice>() {
        // An axis that is too long for Python is on a machine of 32 bits.
        let found = slice.indices(isize::try_from(extent)?)?;
        return Ok(Index::Every {
            start: i64::try_from(found.start)?,
            step: i64::try_from(found.step)?,
            len: i64::try_from(found.slicelength)?,
        });
    }
    let unknown = || {
        PyIndexError::new_err(format!(
            "a tensor is indexed by integers, slices, '...' and None, for views of its memory, got {}: \
             numpy.asarray(tensor)[...] and torch.from_dlpack(tensor)[...] select by lists and masks",
            described(item)
        ))
    };
    if item.is_instance_of::<PyBool>() {
        return Err(unknown());
    }
    let operator = item.py().import(intern!(item.py(), "operator"))?;
    let integer = match operator.call_method1(intern!(item.py(), "index"), (item,)) {
        Ok(integer) => integer,
        Err(error) if error.is_instance_of::<PyTypeError>(item.py()) => return Err(unknown()),
        Err(error) => return Err(error),
    };
    let position = integer.extract::<i64>().ok();
    // A negative index counts from the end.
    let position = position.and_then(|at| if at < 0 { at.checked_add(extent) } else { Some(at) });
    match position.filter(|at| (0..extent).contains(at)) {
        Some(position) => Ok(Index::One(position)),
        None => Err(PyIndexError::new_err(format!(
            "index {integer} is out of bounds for item {place} of the index, an axis of {extent}"
        ))),
    }
}
