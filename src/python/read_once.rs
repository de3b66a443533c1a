//! Objects whose rows can be read only once, such as readers and generators.
//!
//! A reader at its end and a reader without rows look alike, and so a second `to_tensor(reader)` returned a tensor of no
//! rows. Each reading of such an object records whether rows were taken from it, and a later one that finds none is
//! refused, of an object that may hand out a reader's stream too. An object that cannot be weakly referenced is not
//! recorded: most of these raise an error by themselves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{intern, prelude::*};

use super::describe::type_name;
use super::protocols::{class_has, class_is_arrow};

/// The objects that have been opened. No code of Python runs while it is locked.
static OPENED: Mutex<Opened> = Mutex::new(Opened { objects: BTreeMap::new(), limit: 64 });

struct Opened {
    /// By the address of the weak reference. The interpreter has one for each object, if it has no callback, and its
    /// address is not used again while it is held here.
    objects: BTreeMap<usize, ReadObject>,
    /// The number of objects at which those that are gone are removed.
    limit: usize,
}

struct ReadObject {
    reference: Py<PyWeakrefReference>,
    is_taken: Arc<AtomicBool>,
}

/// Whether the object's rows can be read only once.
///
/// Each stream of a table starts at its first row; that of a reader continues where the last one stopped. The
/// interface cannot tell them apart, so an object with a method such as `__next__` counts as a reader. The
/// method is looked up on the class, unless only the instance has the Arrow methods, as with a proxy.
pub(super) fn is_read_once(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let names = [
        intern!(py, "__next__"),
        intern!(py, "read_next_batch"),
        intern!(py, "read_next"),
        intern!(py, "get_next"),
    ];
    let is_class = class_is_arrow(object);
    for name in names {
        let has = match is_class {
            true => class_has(object, name).map_or_else(|| object.get_type().hasattr(name), Ok),
            false => object.hasattr(name),
        };
        if has? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an object says how many rows it has, as tables, frames and relations do: without any it is empty, and not
/// spent. One that does not may hand out the stream of a reader.
fn tells_rows(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let class = object.get_type();
    let names = [intern!(py, "__len__"), intern!(py, "num_rows"), intern!(py, "shape")];
    for name in names {
        if class.hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An error for an object that can be read only once, because `explain` must not consume it.
pub(super) fn refuse_read_once(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if !is_read_once(object)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{} can be read only once, and to be explained it would have to be read: read it first, into \
         a table, such as pyarrow.table(x), and explain that",
        type_name(object)
    )))
}

/// Whether the rows of a source can be read only once.
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(super) fn _is_read_once(source: &Bound<'_, PyAny>) -> PyResult<bool> {
    is_read_once(source)
}

/// One reading of a source, which says what rows it takes. A source that can be read many times is not recorded.
#[pyclass(name = "_Reading", module = "arrow_dlpack._core", frozen)]
pub(super) struct Reading {
    recorded: Option<ReadState>,
    has_rows: AtomicBool,
}

struct ReadState {
    /// Whether this reading or another one has taken rows.
    is_taken: Arc<AtomicBool>,
    type_name: String,
}

impl Reading {
    pub(super) fn of(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut recorded = None;
        if is_read_once(source)? || !tells_rows(source)? {
            // An error says that the type has no weak references.
            if let Ok(reference) = PyWeakrefReference::new(source) {
                let type_name = type_name(source);
                recorded = Some(ReadState { is_taken: opened(reference), type_name });
            }
        }
        Ok(Self { recorded, has_rows: AtomicBool::new(false) })
    }
}

#[pymethods]
impl Reading {
    #[new]
    #[pyo3(signature = (source, /))]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(source)
    }

    /// Whether rows were taken from the source, by this reading or another one.
    #[getter]
    fn is_taken(&self) -> bool {
        self.recorded.as_ref().is_some_and(|own| own.is_taken.load(Ordering::Relaxed))
    }

    /// Records rows that have been taken from the source.
    #[pyo3(signature = (rows, /))]
    pub(super) fn took(&self, rows: i64) {
        if let (Some(recorded), 1..) = (&self.recorded, rows) {
            self.has_rows.store(true, Ordering::Relaxed);
            recorded.is_taken.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses a source at whose end this reading had no rows, and an earlier one had some.
    pub(super) fn end(&self) -> PyResult<()> {
        self.refusal().map_or(Ok(()), |words| Err(PyValueError::new_err(words)))
    }
}

impl Reading {
    /// What [`end`](Self::end) says, if it refuses.
    pub(super) fn refusal(&self) -> Option<String> {
        let ReadState { is_taken, type_name } = self.recorded.as_ref()?;
        if self.has_rows.load(Ordering::Relaxed) || !is_taken.load(Ordering::Relaxed) {
            return None;
        }
        Some(format!(
            "this {type_name} has no rows left: it can be read only once, and an earlier call took them; open it \
             again, or read it into a table first"
        ))
    }
}

/// Whether rows were taken from the object, which all its readings share.
fn opened(reference: Bound<'_, PyWeakrefReference>) -> Arc<AtomicBool> {
    let py = reference.py();
    let address = reference.as_ptr().addr();
    let reference = reference.unbind();
    let mut locked = lock();
    if let Some(object) = locked.objects.get(&address) {
        return Arc::clone(&object.is_taken);
    }
    let is_taken = Arc::default();
    locked.objects.insert(address, ReadObject { reference, is_taken: Arc::clone(&is_taken) });
    let is_full = locked.objects.len() >= locked.limit;
    drop(locked);
    if is_full {
        remove_gone(py);
    }
    is_taken
}

/// Removes the objects that are gone.
fn remove_gone(py: Python<'_>) {
    let references = || {
        let locked = lock();
        let all = locked.objects.values().map(|object| object.reference.clone_ref(py));
        all.collect::<Vec<_>>()
    };
    // To upgrade a reference, and to let go of what it is to, may run code of Python.
    let gone = references().into_iter().filter(|one| one.bind(py).upgrade().is_none());
    let gone: Vec<_> = gone.collect();
    let mut locked = lock();
    let removed: Vec<_> =
        gone.iter().filter_map(|one| locked.objects.remove(&one.as_ptr().addr())).collect();
    locked.limit = locked.objects.len().saturating_mul(2).max(64);
    drop(locked);
    drop(removed);
}

fn lock() -> MutexGuard<'static, Opened> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}
