//! Rows of different lengths in Python: named tuples of tensors.

use arrow_schema::FieldRef;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{prelude::*, sync::PyOnceLock};

use super::tensor::PyTensor;
use crate::chunks::Meaning;
use crate::export::{Padded, Ragged, Side};

/// The names, fields and docstrings of the named tuples; those with a mask follow those without.
const CLASSES: [(&str, &str, &str); 6] = [
    ("Ragged", "values offsets", RAGGED),
    ("MaskedRagged", "values offsets mask", RAGGED),
    ("Padded", "values lengths", PADDED),
    ("MaskedPadded", "values lengths mask", PADDED),
    ("LeftPadded", "values lengths", LEFT_PADDED),
    ("MaskedLeftPadded", "values lengths mask", LEFT_PADDED),
];

const RAGGED: &str = "Rows of different lengths: row i is values[offsets[i]:offsets[i + 1]].";

const PADDED: &str = "Rows padded to one length: values is (rows, length, ...), and row i has lengths[i] values \
                      that are not padding.";

const LEFT_PADDED: &str = "Rows padded to one length on the left: values is (rows, length, ...), and the last \
                           lengths[i] values of row i are not padding.";

const MASK: &str = "The mask is True for the rows that are valid.";

/// Adds the named tuples to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    (0..CLASSES.len()).try_for_each(|at| module.add(CLASSES[at].0, class(module.py(), at)?))
}

/// `Ragged(values, offsets)` or `MaskedRagged(values, offsets, mask)`.
pub(super) fn ragged<'py>(
    py: Python<'py>,
    made: Ragged,
    field: Option<&FieldRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ragged { values, offsets, mask, dictionary, .. } = made;
    let values = PyTensor::of_column(values, field, dictionary.map(Meaning::Array));
    rows(py, 0, values, offsets.into(), mask.map(PyTensor::from))
}

/// `Padded(values, lengths)` or `LeftPadded(values, lengths)`, each with `mask` as `Masked...`.
pub(super) fn padded<'py>(
    py: Python<'py>,
    made: Padded,
    field: Option<&FieldRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let Padded { values, lengths, side, mask, dictionary } = made;
    let values = PyTensor::of_column(values, field, dictionary.map(Meaning::Array));
    let at = match side {
        Side::Right => 2,
        Side::Left => 4,
    };
    rows(py, at, values, lengths.into(), mask.map(PyTensor::from))
}

/// What `Ragged` or `Padded` has: values, offsets or lengths, and a mask.
pub(super) struct NamedRows<'py> {
    /// The side of padded rows.
    pub(super) side: Option<Side>,
    pub(super) values: Bound<'py, PyAny>,
    pub(super) bounds: Bound<'py, PyAny>,
    pub(super) mask: Option<Bound<'py, PyAny>>,
}

impl<'py> NamedRows<'py> {
    /// `None` for anything else than these named tuples.
    pub(super) fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(None) };
        let of_class = |at: &usize| {
            class(object.py(), *at).is_ok_and(|class| object.is_instance(class).unwrap_or(false))
        };
        let Some(at) = (0..CLASSES.len()).find(of_class) else { return Ok(None) };
        Ok(Some(Self {
            side: match at {
                0 | 1 => None,
                2 | 3 => Some(Side::Right),
                _ => Some(Side::Left),
            },
            values: tuple.get_item(0)?,
            bounds: tuple.get_item(1)?,
            mask: if at % 2 == 1 { Some(tuple.get_item(2)?) } else { None },
        }))
    }
}

fn rows(
    py: Python<'_>,
    at: usize,
    values: PyTensor,
    other: PyTensor,
    mask: Option<PyTensor>,
) -> PyResult<Bound<'_, PyAny>> {
    match mask {
        None => class(py, at)?.call1((values, other)),
        Some(mask) => class(py, at + 1)?.call1((values, other, mask)),
    }
}

fn class(py: Python<'_>, at: usize) -> PyResult<&Bound<'_, PyType>> {
    static MADE: [PyOnceLock<Py<PyType>>; CLASSES.len()] =
        [const { PyOnceLock::new() }; CLASSES.len()];
    let (name, fields, doc) = CLASSES[at];
    let class = MADE[at].get_or_try_init(py, || {
        let namedtuple = py.import("collections")?.getattr("namedtuple")?;
        let keywords = PyDict::new(py);
        keywords.set_item("module", "arrow_dlpack")?;
        let class = namedtuple.call((name, fields), Some(&keywords))?;
        let has_mask = fields.ends_with("mask");
        class.setattr("__doc__", if has_mask { format!("{doc} {MASK}") } else { doc.into() })?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}
