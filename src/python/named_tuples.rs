//! Rows of different lengths in Python: named tuples of tensors.

use arrow_schema::FieldRef;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{prelude::*, sync::PyOnceLock};

use super::tensor::PyTensor;
use crate::chunks::Meaning;
use crate::export::{Padded, Ragged, Side};

struct Class {
    name: &'static str,
    /// Where rows are padded; `None` for those that are not.
    side: Option<Side>,
    has_mask: bool,
}

const CLASSES: [Class; 6] = [
    Class { name: "Ragged", side: None, has_mask: false },
    Class { name: "MaskedRagged", side: None, has_mask: true },
    Class { name: "Padded", side: Some(Side::Right), has_mask: false },
    Class { name: "MaskedPadded", side: Some(Side::Right), has_mask: true },
    Class { name: "LeftPadded", side: Some(Side::Left), has_mask: false },
    Class { name: "MaskedLeftPadded", side: Some(Side::Left), has_mask: true },
];

const MASK: &str = " The mask is True for the rows that are valid.";

impl Class {
    fn doc(&self) -> String {
        let rows = match self.side {
            None => "Rows of different lengths: row i is values[offsets[i]:offsets[i + 1]].",
            Some(Side::Right) => {
                "Rows padded to one length: values is (rows, length, ...), and row i has lengths[i] values that are \
                 not padding."
            }
            Some(Side::Left) => {
                "Rows padded to one length on the left: values is (rows, length, ...), and the last lengths[i] values \
                 of row i are not padding."
            }
        };
        rows.to_owned() + if self.has_mask { MASK } else { "" }
    }

    fn fields(&self) -> Vec<&'static str> {
        let bounds = if self.side.is_some() { "lengths" } else { "offsets" };
        let mask = self.has_mask.then_some("mask");
        ["values", bounds].into_iter().chain(mask).collect()
    }
}

/// Adds the named tuples to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    (0..CLASSES.len()).try_for_each(|at| module.add(CLASSES[at].name, class(module.py(), at)?))
}

/// `Ragged(values, offsets)` or `MaskedRagged(values, offsets, mask)`.
pub(super) fn ragged<'py>(
    py: Python<'py>,
    made: Ragged,
    field: Option<&FieldRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ragged { values, offsets, mask, dictionary, .. } = made;
    let values = PyTensor::of_column(values, field, dictionary.map(Meaning::Array));
    rows(py, None, values, offsets.into(), mask.map(PyTensor::from))
}

/// `Padded(values, lengths)` or `LeftPadded(values, lengths)`, each with `mask` as `Masked...`.
pub(super) fn padded<'py>(
    py: Python<'py>,
    made: Padded,
    field: Option<&FieldRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let Padded { values, lengths, side, mask, dictionary } = made;
    let values = PyTensor::of_column(values, field, dictionary.map(Meaning::Array));
    rows(py, Some(side), values, lengths.into(), mask.map(PyTensor::from))
}

/// What these named tuples have: values, offsets or lengths, and a mask.
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
            side: CLASSES[at].side,
            values: tuple.get_item(0)?,
            bounds: tuple.get_item(1)?,
            mask: CLASSES[at].has_mask.then(|| tuple.get_item(2)).transpose()?,
        }))
    }
}

fn rows(
    py: Python<'_>,
    side: Option<Side>,
    values: PyTensor,
    bounds: PyTensor,
    mask: Option<PyTensor>,
) -> PyResult<Bound<'_, PyAny>> {
    let is_of = |class: &Class| class.side == side && class.has_mask == mask.is_some();
    let at = CLASSES.iter().position(is_of).unwrap_or(0);
    match mask {
        None => class(py, at)?.call1((values, bounds)),
        Some(mask) => class(py, at)?.call1((values, bounds, mask)),
    }
}

fn class(py: Python<'_>, at: usize) -> PyResult<&Bound<'_, PyType>> {
    static MADE: [PyOnceLock<Py<PyType>>; CLASSES.len()] =
        [const { PyOnceLock::new() }; CLASSES.len()];
    let class = MADE[at].get_or_try_init(py, || {
        let namedtuple = py.import("collections")?.getattr("namedtuple")?;
        let keywords = PyDict::new(py);
        keywords.set_item("module", "arrow_dlpack")?;
        let class = namedtuple.call((CLASSES[at].name, CLASSES[at].fields()), Some(&keywords))?;
        class.setattr("__doc__", CLASSES[at].doc())?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}
