//! Tensors from the tables of other types.
//!
//! - **X7** The function of a table, called attached to Python and with a live object of its type, either
//!   fails or hands over a tensor with the promise of [`ManagedTensor::from_raw`].
#![expect(unsafe_code, reason = "calls C functions of other libraries")]

use std::ffi::{c_int, c_void};
use std::{mem, ptr};

use pyo3::prelude::*;

use super::known_types;
use super::known_types::{ExchangeType, unless_it_raises};
use crate::ManagedTensor;
use crate::fence::calling;
use crate::ffi::{DLDataTypeCode, DLManagedTensorVersioned, DLPackManagedTensorFromPyObjectNoSync};
use crate::python::runtime::RecursionGuard;

/// The tensor of an object whose type has a table. `None` if it has none, or if `__dlpack__` might act
/// differently; the caller then calls `__dlpack__`, which raises the error if there is one.
///
/// The tensor is on the CPU, because a table does not synchronise.
pub(in crate::python) fn take(x: &Bound<'_, PyAny>) -> PyResult<Option<ManagedTensor>> {
    let Some(known) = known_types::of(x)? else { return Ok(None) };
    // To ask for the conditions runs Python code, which may make the object one of another class.
    if !meets(x, known, false)? || !known.is_of(x) {
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
        Ok(tensor) if tensor.dtype().code == DLDataTypeCode::COMPLEX && !meets(x, known, true)? => {
            Ok(None)
        }
        Ok(tensor) => Ok(Some(tensor)),
        Err(_) => Ok(None),
    }
}

fn meets(x: &Bound<'_, PyAny>, known: &ExchangeType, if_complex: bool) -> PyResult<bool> {
    for condition in &known.conditions {
        if condition.what.only_complex == if_complex && !condition.is_met(x)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The function's signature with unwinding: the interpreter's end may unwind Python code that it runs.
type MayUnwind =
    unsafe extern "C-unwind" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int;

/// The tensor, NULL if there is none, and the exception. After a failure the caller calls `__dlpack__`, which
/// fails with a better message.
///
/// # Safety
///
/// X5: `x` is of the type that `known_types` is of.
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
