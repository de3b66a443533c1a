//! Caches which types have a table: finding out takes longer than the exchange of a tensor, most of all for
//! types without one.
//!
//! - **X5** `ExchangeType::function` is the function of a table in `ExchangeType::_capsule`, for objects of the very type
//!   that `ExchangeType::alive` refers to.
//! - **X6** A capsule named [`NAME`] has a pointer to a `DLPackExchangeAPIHeader`, which begins a
//!   `DLPackExchangeAPI` where it says major version 1; and so for every `prev_api` that is not NULL. All
//!   of them live as long as the process.
#![expect(unsafe_code, reason = "reads the tables of other libraries")]

use std::ptr::NonNull;

use pyo3::types::{PyBool, PyCapsule, PyString, PyType, PyWeakrefReference};
use pyo3::{exceptions::PyException, ffi, intern, prelude::*};

use super::NAME;
use super::append_only::AppendOnlyTable;
use crate::ffi::{
    DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackManagedTensorFromPyObjectNoSync,
    DLPackVersion,
};
use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicUsize, Ordering};

const SLOTS: usize = 256;

/// Addresses of static types without a table, such as NumPy's, which live as long as the process. Other types
/// are looked up each time, because a new type may get the address of a dead one; the lookup costs little
/// compared with a `__dlpack__` written in Python.
static WITHOUT: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// Types with a table, from the place of their address on. Once all slots are taken, further types
/// are treated as types without a table.
static WITH: AppendOnlyTable<ExchangeType, SLOTS> =
    AppendOnlyTable([const { OnceLock::new() }; SLOTS]);

/// A type with a table.
#[derive(Debug)]
pub(super) struct ExchangeType {
    address: usize,
    /// A weak reference to the type: once that is dead, its address may be another type's.
    alive: Py<PyWeakrefReference>,
    _capsule: Py<PyCapsule>,
    pub(super) function: DLPackManagedTensorFromPyObjectNoSync,
    pub(super) conditions: Vec<Condition>,
}

/// A condition that a type's `__dlpack__` checks and its table does not: an attribute of the object, which must
/// be true or must be false.
#[derive(Debug)]
pub(super) struct Condition {
    name: Py<PyString>,
    pub(super) what: &'static Candidate,
}

#[derive(Debug)]
pub(super) struct Candidate {
    name: &'static str,
    must: bool,
    is_method: bool,
    /// Whether it is needed for complex elements only.
    pub(super) only_complex: bool,
}

/// The conditions, which apply to types that have the attribute.
static CONDITIONS: [Candidate; 4] = [
    // torch, paddle: a gradient would be lost.
    Candidate { name: "requires_grad", must: false, is_method: false, only_complex: false },
    // paddle: its table exports sparse tensors as dense ones, which reads out of bounds.
    Candidate { name: "is_dense", must: true, is_method: true, only_complex: false },
    // torch: the negation may be pending, which its `__dlpack__` ignores too.
    Candidate { name: "is_neg", must: false, is_method: true, only_complex: false },
    // torch: the conjugation may be pending.
    Candidate { name: "is_conj", must: false, is_method: true, only_complex: true },
];

/// The table of the type of `x`, `None` if it has none.
///
/// The table must be an attribute of the type itself and not inherited: a subclass may override `__dlpack__`,
/// or, in PyTorch, `__torch_function__`, which must be respected.
pub(super) fn of(x: &Bound<'_, PyAny>) -> PyResult<Option<&'static ExchangeType>> {
    let address = x.get_type_ptr().addr();
    let first = ((address >> 4).wrapping_mul(0x9E37_79B1) >> 20) % SLOTS;
    let without = &WITHOUT[first];
    if without.load(Ordering::Relaxed) == address {
        return Ok(None);
    }
    WITH.find(
        first,
        |known| known.is_of(x),
        || {
            let kind = x.get_type();
            let known = find(&kind)?;
            if known.is_none() && is_builtin(x) {
                without.store(kind.as_ptr().addr(), Ordering::Relaxed);
            }
            Ok(known)
        },
    )
}

/// Whether the type of `x` is one of those that live as long as the process: written in C, not a
/// subclass in Python.
pub(in crate::python) fn is_builtin(x: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached to Python, and a type.
    let flags = unsafe { ffi::PyType_GetFlags(x.get_type_ptr()) };
    flags & ffi::Py_TPFLAGS_HEAPTYPE == 0
}

impl ExchangeType {
    /// Whether the object is of this very type.
    pub(super) fn is_of(&self, x: &Bound<'_, PyAny>) -> bool {
        self.address == x.get_type_ptr().addr() && self.alive.bind(x.py()).upgrade().is_some()
    }
}

/// Reads a type's own table.
fn find(kind: &Bound<'_, PyType>) -> PyResult<Option<ExchangeType>> {
    let py = kind.py();
    let name = intern!(py, "__dlpack_c_exchange_api__");
    let own = unless_it_raises(py, kind.getattr(intern!(py, "__dict__")))?;
    let is_own = own.map(|own| unless_it_raises(py, own.contains(name))).transpose()?.flatten();
    if is_own != Some(true) {
        return Ok(None);
    }
    let Some(value) = unless_it_raises(py, kind.getattr(name))? else { return Ok(None) };
    let Ok(capsule) = value.cast_into::<PyCapsule>() else { return Ok(None) };
    let Some(function) = table(&capsule).and_then(|table| {
        // SAFETY: X6.
        unsafe { (*table.as_ptr()).managed_tensor_from_py_object_no_sync }
    }) else {
        return Ok(None);
    };
    Ok(Some(ExchangeType {
        address: kind.as_ptr().addr(),
        alive: PyWeakrefReference::new(kind)?.unbind(),
        _capsule: capsule.unbind(),
        function,
        conditions: Condition::of(kind)?,
    }))
}

/// The table of version 1 in a capsule.
fn table(capsule: &Bound<'_, PyCapsule>) -> Option<NonNull<DLPackExchangeAPI>> {
    const OLDEST: usize = 16; // the chain may be a cycle
    let mut header = capsule.pointer_checked(Some(NAME)).ok()?.cast::<DLPackExchangeAPIHeader>();
    for _ in 0..OLDEST {
        if !header.is_aligned() {
            return None;
        }
        // SAFETY: X6, for the part that no version changes.
        let (version, prev_api) =
            unsafe { ((*header.as_ptr()).version, (*header.as_ptr()).prev_api) };
        if version.major == DLPackVersion::CURRENT.major {
            return Some(header.cast());
        }
        header = NonNull::new(prev_api)?;
    }
    None
}

impl Condition {
    /// The conditions that apply to a type.
    fn of(kind: &Bound<'_, PyType>) -> PyResult<Vec<Self>> {
        let py = kind.py();
        let mut found = Vec::new();
        for what in &CONDITIONS {
            let name = PyString::intern(py, what.name);
            if unless_it_raises(py, kind.getattr(&name))?.is_some() {
                found.push(Self { name: name.unbind(), what });
            }
        }
        Ok(found)
    }

    /// Whether the object meets it; an exception counts as no.
    pub(super) fn is_met(&self, x: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = x.py();
        let found = match self.what.is_method {
            true => x.call_method0(&self.name),
            false => x.getattr(&self.name),
        };
        match found {
            Ok(found) => Ok(found.is(&*PyBool::new(py, self.what.must))),
            Err(error) => Ok(unless_it_raises(py, Err(error))?.unwrap_or(false)),
        }
    }
}

/// A value, or `None` for an ordinary exception; Ctrl-C is passed on.
pub(in crate::python) fn unless_it_raises<T>(
    py: Python<'_>,
    result: PyResult<T>,
) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}
