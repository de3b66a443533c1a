//! Which protocols an object supports.
#![expect(unsafe_code, reason = "asks the interpreter about a class")]

use std::sync::OnceLock;

use pyo3::types::{PyCapsule, PyString};
use pyo3::{ffi, intern, prelude::*};

use crate::pending::function;

/// Whether the object supports the Arrow PyCapsule interface.
pub(super) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let [array, stream] = methods(object.py());
    Ok(class_is_arrow(object) || object.hasattr(array)? || object.hasattr(stream)?)
}

/// Whether its class does, which is a quicker check.
pub(super) fn class_is_arrow(object: &Bound<'_, PyAny>) -> bool {
    methods(object.py()).into_iter().any(|name| class_has(object, name) == Some(true))
}

/// The methods of the interface, of which an object has at least one.
pub(super) fn methods(py: Python<'_>) -> [&Bound<'_, PyString>; 2] {
    [intern!(py, "__arrow_c_array__"), intern!(py, "__arrow_c_stream__")]
}

/// Whether an object can give a tensor.
pub(super) fn is_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyCapsule>()
        || object.hasattr(intern!(object.py(), "__dlpack__"))?)
}

/// An attribute of the object; `None` also for one that is Python's None.
pub(super) fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(object.getattr_opt(name)?.filter(|value| !value.is_none()))
}

/// Whether the object's class has such an attribute, `None` if the interpreter lacks the function to find out.
///
/// A failed lookup on an object can take microseconds: polars has a `__getattr__` in Python. A lookup on the
/// class reads a cache, so it comes first; it does not see attributes of the instance.
pub(super) fn class_has(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<bool> {
    type Lookup =
        unsafe extern "C" fn(*mut ffi::PyTypeObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
    static LOOKUP: OnceLock<Option<Lookup>> = OnceLock::new();

    // SAFETY: the signature of the function of this name has never changed.
    let lookup = LOOKUP.get_or_init(|| unsafe { function(c"_PyType_Lookup") });
    // SAFETY: attached to Python, with a live class and a text; it raises no exception. The result is
    // a borrowed reference, which is only compared with NULL.
    lookup.map(|lookup| unsafe { !lookup(object.get_type_ptr(), name.as_ptr()).is_null() })
}

/// Whether the object speaks the buffer protocol.
pub(super) fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached to Python, any object may be asked.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) == 1 }
}
