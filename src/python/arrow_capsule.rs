//! Capsules with Arrow's C structures in them.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
#![expect(unsafe_code, reason = "moves C structures out of capsules")]

use std::ffi::CStr;
use std::ptr;

use arrow_schema::FieldRef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;

use super::arrow_c::{ArrowArray, ArrowArrayStream, ArrowSchema};
use super::ffi_validate::field_from;
use super::request::described;

/// The field that an `arrow_schema` capsule describes. The capsule keeps its structure.
pub(super) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<FieldRef> {
    let schema = pointer::<ArrowSchema>(capsule, c"arrow_schema")?;
    // SAFETY: S1, and the capsule outlives this call.
    unsafe { field_from(schema) }.map_err(PyValueError::new_err)
}

/// A capsule with one of the interface's names holds a pointer to a structure of that name that meets
/// S1 for as long as the capsule lives. That much of the interface cannot be checked.
pub(super) fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<*mut T> {
    let pointer = capsule.pointer_checked(Some(name)).map_err(|_| {
        PyTypeError::new_err(format!("expected an {name:?} capsule, got {}", described(capsule)))
    })?;
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(PyValueError::new_err(format!("the {name:?} structure is misaligned")));
    }
    Ok(pointer.as_ptr())
}

pub(super) fn move_array(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArray> {
    let array = pointer::<ArrowArray>(capsule, c"arrow_array")?;
    // SAFETY: S1. A released structure is left behind, as the interface asks; the section keeps other
    // threads from moving it too, where there is no GIL.
    let array =
        with_critical_section(capsule, || unsafe { ptr::replace(array, ArrowArray::released()) });
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow array has been released already"));
    }
    Ok(array)
}

pub(super) fn move_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArrayStream> {
    let stream = pointer::<ArrowArrayStream>(capsule, c"arrow_array_stream")?;
    // SAFETY: as for arrays.
    let stream = with_critical_section(capsule, || unsafe {
        ptr::replace(stream, ArrowArrayStream::released())
    });
    if stream.is_released() {
        return Err(PyValueError::new_err("the Arrow stream has been released already"));
    }
    Ok(stream)
}
