//! Tensors from the tables of other types, and which types have one. These are cached: finding out takes longer than the
//! exchange of a tensor, most of all for types without a table.
//!
//! - **X5** `ExchangeType::function` is the function of a table in `ExchangeType::_capsule`, for objects of the very type
//!   that `ExchangeType::alive` refers to.
//! - **X6** A capsule named [`NAME`] has a pointer to a `DLPackExchangeAPIHeader`, which begins a
//!   `DLPackExchangeAPI` where it says major version 1; and so for every `prev_api` that is not NULL. All
//!   of them live as long as the process.
//! - **X7** The function of a table, called attached to Python and with a live object of its type, either
//!   fails or hands over a tensor with the promise of [`ManagedTensor::from_raw`].
#![expect(unsafe_code, reason = "reads the tables of other libraries, and calls their C functions")]

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::{mem, ptr};

use pyo3::types::{PyBool, PyCapsule, PyString, PyType, PyWeakrefReference};
use pyo3::{exceptions::PyException, ffi, intern, prelude::*};

use super::NAME;
use super::append_only::AppendOnlyTable;
use crate::ManagedTensor;
use crate::fence::calling;
use crate::ffi::{
    DLDataTypeCode, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackManagedTensorFromPyObjectNoSync, DLPackVersion,
};
use crate::python::runtime::RecursionGuard;
use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The tensor of an object whose type has a table. `None` if it has none, or if `__dlpack__` might act
/// differently; the caller then calls `__dlpack__`, which raises the error if there is one.
///
/// The tensor is on the CPU, because a table does not synchronise.
pub(in crate::python) fn take(x: &Bound<'_, PyAny>) -> PyResult<Option<ManagedTensor>> {
    let Some(known) = exchange_type_of(x)? else { return Ok(None) };
    // To ask for the conditions runs Python code, which may make the object one of another class.
    if !known.has_conditions_met(x, false)? || !known.is_of(x) {
        return Ok(None);
    }
    // SAFETY: X5, of the type of `x`, which has just been asked for.
    let (given, raised) = unsafe { call(x, known) }?;
    // SAFETY: X7. A tensor is ours to delete even if it came with an exception.
    let tensor = unsafe { ManagedTensor::from_raw(given) };
    if let Some(error) = raised {
        return unless_it_raises(x.py(), Err(error));
    }
    match tensor {
        Ok(tensor) if !tensor.device().is_cpu() => Ok(None),
        Ok(tensor)
            if tensor.dtype().code == DLDataTypeCode::COMPLEX
                && !known.has_conditions_met(x, true)? =>
        {
            Ok(None)
        }
        Ok(tensor) => Ok(Some(tensor)),
        Err(_) => Ok(None),
    }
}

/// The function's signature with unwinding: the interpreter's end may unwind Python code that it runs.
type MayUnwind =
    unsafe extern "C-unwind" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int;

/// The tensor, NULL if there is none, and the exception. After a failure the caller calls `__dlpack__`, which
/// fails with a better message.
///
/// # Safety
///
/// X5: `x` is of the type that `known` is of.
unsafe fn call(
    x: &Bound<'_, PyAny>,
    known: &ExchangeType,
) -> PyResult<(*mut DLManagedTensorVersioned, Option<PyErr>)> {
    let py = x.py();
    let _level = RecursionGuard::enter(py)?;
    let mut tensor = ptr::null_mut::<DLManagedTensorVersioned>();
    // SAFETY: the two differ only in the ABI's unwinding.
    let function = unsafe {
        mem::transmute::<DLPackManagedTensorFromPyObjectNoSync, MayUnwind>(known.function)
    };
    // SAFETY: X5, so that `x` is of the function's type; X7: it is live, and this thread attached.
    let code = calling(|| unsafe { function(x.as_ptr().cast(), &raw mut tensor) });
    let given = if code == 0 { tensor } else { ptr::null_mut() };
    Ok((given, PyErr::take(py)))
}

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
struct ExchangeType {
    address: usize,
    /// A weak reference to the type: once that is dead, its address may be another type's.
    alive: Py<PyWeakrefReference>,
    _capsule: Py<PyCapsule>,
    function: DLPackManagedTensorFromPyObjectNoSync,
    conditions: Vec<Condition>,
}

/// A condition that a type's `__dlpack__` checks and its table does not: an attribute of the object, which must
/// be true or must be false.
#[derive(Debug)]
struct Condition {
    name: Py<PyString>,
    what: &'static Candidate,
}

#[derive(Debug)]
struct Candidate {
    name: &'static str,
    must: bool,
    is_method: bool,
    /// Whether it is needed for complex elements only.
    only_complex: bool,
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
fn exchange_type_of(x: &Bound<'_, PyAny>) -> PyResult<Option<&'static ExchangeType>> {
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
    fn is_of(&self, x: &Bound<'_, PyAny>) -> bool {
        self.address == x.get_type_ptr().addr() && self.alive.bind(x.py()).upgrade().is_some()
    }

    /// Whether the object meets the conditions for complex elements, or those for all.
    fn has_conditions_met(&self, x: &Bound<'_, PyAny>, only_complex: bool) -> PyResult<bool> {
        for condition in &self.conditions {
            if condition.what.only_complex == only_complex && !condition.is_met(x)? {
                return Ok(false);
            }
        }
        Ok(true)
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
        conditions: Condition::of_type(kind)?,
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
    fn of_type(kind: &Bound<'_, PyType>) -> PyResult<Vec<Self>> {
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
    fn is_met(&self, x: &Bound<'_, PyAny>) -> PyResult<bool> {
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
