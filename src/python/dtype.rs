//! `dtype=`: an element type, in any library's spelling.

use arrow_schema::{DataType, Field};
use pyo3::types::{PyBool, PyCapsule, PyComplex, PyFloat, PyInt, PyString, PyType};
use pyo3::{exceptions::PyValueError, intern, prelude::*};

use super::arrow::capsule;
use super::describe::{argument, wrong};
use super::field::type_with_extension;
use super::numpy::item;
use super::protocols::attribute;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{Error, extension::Extension};

argument!(DtypeArg(DLDataType) = dtype);

/// A name, NumPy's short code, or a dtype object of Python, Arrow, NumPy, PyTorch, JAX, polars or pandas.
fn dtype(object: &Bound<'_, PyAny>) -> PyResult<DLDataType> {
    let py = object.py();
    if object.is_instance_of::<PyString>() {
        return of_text(object, &object.extract::<String>()?);
    }
    if let Ok(class) = object.cast::<PyType>() {
        if let Some(dtype) = of_class(class)? {
            return Ok(dtype);
        }
    }
    if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_schema__"))? {
        // polars' and JAX's dtypes are classes, on which the attribute is an unbound method.
        if !object.is_instance_of::<PyType>() {
            let capsule = method.call0()?.cast_into::<PyCapsule>()?;
            return of_arrow(&capsule::schema_of(&capsule)?);
        }
    }
    // pandas' extension dtypes.
    let inner = object.getattr_opt(intern!(py, "numpy_dtype"))?;
    let object = inner.as_ref().unwrap_or(object);
    if object
        .getattr_opt(intern!(py, "isnative"))?
        .is_some_and(|native| native.is_truthy().is_ok_and(|native| !native))
    {
        return Err(foreign_order(object));
    }
    let mut name = attribute(object, intern!(py, "name"))?;
    if name.is_none() {
        name = attribute(object, intern!(py, "__name__"))?;
    }
    // PyTorch's have neither, and the text "torch.float32".
    let name = name.as_ref().unwrap_or(object).str()?.to_string();
    let name = name.rsplit('.').next().unwrap_or_default();
    if let Ok(dtype) = name.parse() {
        return Ok(dtype);
    }
    // polars has "Float32" and "Boolean".
    let lower = match name {
        "Boolean" => "bool".to_owned(),
        _ => name.to_ascii_lowercase(),
    };
    lower.parse().map_err(|_| unknown(name))
}

/// The name of a dtype, however it is spelled.
#[pyfunction]
#[pyo3(signature = (dtype, /))]
#[expect(clippy::needless_pass_by_value, reason = "an argument")]
pub(super) fn _dtype_name(dtype: DtypeArg) -> String {
    dtype.0.to_string()
}

/// NumPy's aliases of its dtypes, except those that other libraries use for a different dtype.
const ALIASES: &[(&str, &str)] = &[
    ("bool_", "bool"),
    ("half", "float16"),
    ("single", "float32"),
    ("double", "float64"),
    ("csingle", "complex64"),
    ("cdouble", "complex128"),
    ("short", "int16"),
    ("intc", "int32"),
    ("longlong", "int64"),
    ("ubyte", "uint8"),
    ("ushort", "uint16"),
    ("uintc", "uint32"),
    ("ulonglong", "uint64"),
];

/// A str: the name of a dtype, or NumPy's code for it.
fn of_text(object: &Bound<'_, PyAny>, text: &str) -> PyResult<DLDataType> {
    if let Ok(dtype) = text.parse() {
        return Ok(dtype);
    }
    if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| *alias == text) {
        return Ok(name.parse()?);
    }
    match item::of_code(text) {
        Some(Ok(dtype)) => Ok(dtype),
        Some(Err(item::OtherOrder)) => Err(foreign_order(object)),
        None if text == "float" => Err(PyValueError::new_err(
            "\"float\" has 64 bits in NumPy and 32 in Arrow: say \"float64\" or \"float32\"",
        )),
        None if text == "int" => Err(PyValueError::new_err(
            "\"int\" has 64 bits in NumPy and 32 in C: say \"int64\" or \"int32\"",
        )),
        None => Err(unknown(text)),
    }
}

/// A number class of Python or NumPy, whose name differs from its dtype's.
fn of_class(class: &Bound<'_, PyType>) -> PyResult<Option<DLDataType>> {
    let py = class.py();
    let numbers = [
        (py.get_type::<PyBool>(), DLDataType::BOOL),
        (py.get_type::<PyInt>(), DLDataType::INT64),
        (py.get_type::<PyFloat>(), DLDataType::FLOAT64),
        (py.get_type::<PyComplex>(), DLDataType::scalar(DLDataTypeCode::COMPLEX, 128)),
    ];
    if let Some((_, dtype)) = numbers.iter().find(|(number, _)| class.is(number)) {
        return Ok(Some(*dtype));
    }
    if class.module().is_ok_and(|module| module == "numpy") {
        let dtype = py.import("numpy")?.getattr("dtype")?.call1((class,))?;
        let name = dtype.getattr("name")?.str()?.to_string();
        return name.parse().map(Some).map_err(|_| unknown(&name));
    }
    Ok(None)
}

/// An Arrow type whose values are numbers.
fn of_arrow(field: &std::sync::Arc<Field>) -> PyResult<DLDataType> {
    let dtype = match Extension::of(field)? {
        Some(Extension::Bool8) => Some(DLDataType::BOOL),
        Some(extension) => extension.dtype(),
        None if *field.data_type() == DataType::Boolean => Some(DLDataType::BOOL),
        None => DLDataType::from_arrow(field.data_type()),
    };
    dtype.ok_or_else(|| {
        let found = type_with_extension(field);
        PyValueError::new_err(format!(
            "{found} is no dtype: Arrow's integers, floats and booleans are (decimals are numbers with \
             dtype=\"float64\", and times have their integers with physical=True)"
        ))
    })
}

fn unknown(name: &str) -> PyErr {
    Error::UnknownDtype(name.chars().take(100).collect()).into()
}

fn foreign_order(object: &Bound<'_, PyAny>) -> PyErr {
    wrong(object, "dtype must be in the machine's byte order")
}
