//! Arguments, and the words for what is wrong with them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The type of an argument, and the function that reads it, or what it must be for PyO3 to read it.
macro_rules! argument {
    ($name:ident($type:ty), $must:literal) => {
        argument!($name($type) = |object| object.extract().map_err(|_| wrong(object, $must)));
    };
    ($(#[$attribute:meta])* $name:ident($type:ty) = $read:expr) => {
        $(#[$attribute])*
        pub(in crate::python) struct $name(pub(in crate::python) $type);

        impl<'py> FromPyObject<'_, 'py> for $name {
            type Error = PyErr;

            fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                let read: fn(&Bound<'_, PyAny>) -> PyResult<$type> = $read;
                read(&object).map(Self)
            }
        }
    };
}
pub(in crate::python) use argument;

/// The error for an argument that is not what it `must` be.
pub(in crate::python) fn wrong(object: &Bound<'_, PyAny>, must: &str) -> PyErr {
    PyTypeError::new_err(format!("{must}, got {}", described(object)))
}

/// The object's `repr` where that is short, else its type: for error messages.
pub(in crate::python) fn described(object: &Bound<'_, PyAny>) -> String {
    match object.repr().map(|repr| repr.to_string()) {
        Ok(repr) if repr.len() <= 60 => repr,
        _ => type_name(object),
    }
}

/// The name of the object's type.
pub(in crate::python) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}
