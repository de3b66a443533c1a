//! Capsules with Arrow's C structures in them.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
#![expect(unsafe_code, reason = "moves C structures out of capsules")]

use std::ptr;

use arrow_schema::FieldRef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::{prelude::*, sync::critical_section::with_critical_section, types::PyCapsule};

use super::schema::field_from;
use super::structs::{ArrowSchema, Structure};
use crate::python::dlpack::request::described;

/// The field that an `arrow_schema` capsule describes. The capsule keeps its structure.
pub(in crate::python) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<FieldRef> {
    read(capsule, field_from)?.map_err(PyValueError::new_err)
}

/// Reads the structure in an `arrow_schema` capsule, which keeps it.
pub(in crate::python) fn read<T>(
    capsule: &Bound<'_, PyCapsule>,
    read: impl FnOnce(&ArrowSchema) -> T,
) -> PyResult<T> {
    with_critical_section(capsule, || {
        let schema = pointer::<ArrowSchema>(capsule)?;
        // SAFETY: S1: the caller's reference keeps the capsule, and the section other threads from moving the structure
        // out of it, where there is no GIL.
        Ok(read(unsafe { &*schema }))
    })
}

/// A capsule with one of the interface's names holds a pointer to a structure of that name that meets
/// S1 for as long as the capsule lives and nobody moves it. That much of the interface cannot be checked.
fn pointer<T: Structure>(capsule: &Bound<'_, PyCapsule>) -> PyResult<*mut T> {
    let name = T::CAPSULE;
    let pointer = capsule.pointer_checked(Some(name)).map_err(|_| {
        PyTypeError::new_err(format!("expected an {name:?} capsule, got {}", described(capsule)))
    })?;
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(PyValueError::new_err(format!("the {name:?} structure is misaligned")));
    }
    Ok(pointer.as_ptr())
}

/// The structure in a capsule, moved out of it.
pub(in crate::python) fn moved<T: Structure>(capsule: &Bound<'_, PyCapsule>) -> PyResult<T> {
    let structure = with_critical_section(capsule, || {
        let structure = pointer::<T>(capsule)?;
        // SAFETY: S1, and the capsule's structure is its holder's to move. A released one is left behind, as the
        // interface asks; the section keeps other threads from moving or reading it, where there is no GIL.
        PyResult::Ok(unsafe { ptr::replace(structure, T::released()) })
    })?;
    if structure.is_released() {
        let message = format!("the Arrow {} has been released already", T::WORD);
        return Err(PyValueError::new_err(message));
    }
    Ok(structure)
}
