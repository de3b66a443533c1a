//! Which protocols an object speaks.
#![expect(unsafe_code, reason = "asks the interpreter about a class")]

use std::ffi::c_void;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use crate::pending::symbol;

/// Whether the object speaks the Arrow PyCapsule interface.
pub(super) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let [array, stream] = methods(object.py());
    Ok(class_is_arrow(object) || object.hasattr(array)? || object.hasattr(stream)?)
}

/// The same of its class, which is quicker to ask.
pub(super) fn class_is_arrow(object: &Bound<'_, PyAny>) -> bool {
    methods(object.py()).into_iter().any(|name| class_has(object, name) == Some(true))
}

/// The methods of the interface, of which an object has at least one.
pub(super) fn methods(py: Python<'_>) -> [&Bound<'_, PyString>; 2] {
    [intern!(py, "__arrow_c_array__"), intern!(py, "__arrow_c_stream__")]
}

/// Whether an object can be asked for a tensor.
pub(super) fn is_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyCapsule>()
        || object.hasattr(intern!(object.py(), "__dlpack__"))?)
}

/// An attribute of the object; one that is None is none.
pub(super) fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(object.getattr_opt(name)?.filter(|value| !value.is_none()))
}

/// Whether the object's class has such an attribute, `None` where the interpreter has no way to tell.
///
/// To ask an object for what it has not can take microseconds: polars answers in Python. The class is a look
/// into a cache, so it is asked first; what an object has beyond its class, only the object knows.
pub(super) fn class_has(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<bool> {
    type Lookup =
        unsafe extern "C" fn(*mut ffi::PyTypeObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
    static LOOKUP: OnceLock<Option<Lookup>> = OnceLock::new();

    let lookup = LOOKUP.get_or_init(|| {
        let address = symbol(c"_PyType_Lookup");
        // SAFETY: a function of this name has had this signature since there is one.
        let lookup = || unsafe { std::mem::transmute::<*mut c_void, Lookup>(address) };
        (!address.is_null()).then(lookup)
    });
    // SAFETY: attached to Python, with a live class and a text; no exception comes of it. The answer is
    // borrowed, and only whether there is one is of interest.
    lookup.map(|lookup| unsafe { !lookup(object.get_type_ptr(), name.as_ptr()).is_null() })
}
