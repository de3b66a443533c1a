//! A schema as the members of `ArrowSchema`, for a file that another process reads.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html#the-arrowschema-structure>.

use std::collections::BTreeMap;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::ArrowError;
use arrow_schema::ffi::Flags;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::arrow_types::MAX_DEPTH;
use crate::python::arrow::capsule::table_schema_of;
use crate::python::arrow::schema::schema_of;
use crate::python::arrow::structs::{ArrowSchema, Structure};
use crate::python::describe::described;
use crate::python::field::PyField;
use crate::python::source;

/// The members of a schema's structure, as dicts, lists, texts and numbers. Of the metadata it has extension types.
#[pyfunction]
#[pyo3(signature = (schema, /))]
pub(in crate::python) fn _members<'py>(schema: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let field = source::field(schema, None)?;
    members(schema.py(), &schema_of(&field).map_err(failed)?)
}

fn members<'py>(py: Python<'py>, schema: &FFI_ArrowSchema) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("name", schema.name().unwrap_or_default())?;
    made.set_item("format", schema.format())?;
    made.set_item("flags", schema.flags().map_or(0, |flags| flags.bits()))?;
    let metadata = schema.metadata().map_err(failed)?;
    let extension: BTreeMap<_, _> =
        metadata.iter().filter(|(key, _)| key.starts_with("ARROW:extension:")).collect();
    if !extension.is_empty() {
        made.set_item("metadata", extension)?;
    }
    let children = schema.children().map(|child| members(py, child));
    let children = children.collect::<PyResult<Vec<_>>>()?;
    if !children.is_empty() {
        made.set_item("children", children)?;
    }
    if let Some(values) = schema.dictionary() {
        made.set_item("dictionary", members(py, values)?)?;
    }
    Ok(made)
}

/// The schema with these members, which are hostile.
#[pyfunction]
#[pyo3(signature = (members, /))]
pub(in crate::python) fn _schema_of(members: &Bound<'_, PyAny>) -> PyResult<PyField> {
    let schema = structure(members, MAX_DEPTH)?;
    let capsule = PyCapsule::new_with_value(members.py(), schema, ArrowSchema::CAPSULE)?;
    table_schema_of(&capsule, None).map(PyField)
}

fn structure(members: &Bound<'_, PyAny>, levels: usize) -> PyResult<FFI_ArrowSchema> {
    let wrong =
        || PyTypeError::new_err(format!("no members of an ArrowSchema: {}", described(members)));
    let Some(levels) = levels.checked_sub(1) else {
        return Err(PyValueError::new_err("a schema is nested too deep"));
    };
    let dict = members.cast::<PyDict>().map_err(|_| wrong())?;
    let known = ["name", "format", "flags", "metadata", "children", "dictionary"];
    for key in dict.keys() {
        let key: String = key.extract().map_err(|_| wrong())?;
        if !known.contains(&key.as_str()) {
            return Err(PyValueError::new_err(format!("an ArrowSchema has no member {key:?}")));
        }
    }
    let member = |name: &str| dict.get_item(name);
    let text = |name: &str| -> PyResult<String> {
        let text: String = member(name)?.ok_or_else(wrong)?.extract().map_err(|_| wrong())?;
        match text.contains('\0') {
            true => Err(wrong()),
            false => Ok(text),
        }
    };
    let children = match member("children")? {
        Some(children) => {
            let children = children.cast_into::<PyList>().map_err(|_| wrong())?;
            children.iter().map(|child| structure(&child, levels)).collect::<PyResult<Vec<_>>>()?
        }
        None => Vec::new(),
    };
    let dictionary = member("dictionary")?.map(|values| structure(&values, levels)).transpose()?;
    let flags: i64 = member("flags")?.ok_or_else(wrong)?.extract().map_err(|_| wrong())?;
    let metadata: BTreeMap<String, String> = match member("metadata")? {
        Some(metadata) => metadata.extract().map_err(|_| wrong())?,
        None => BTreeMap::new(),
    };
    let made = FFI_ArrowSchema::try_new(&text("format")?, children, dictionary);
    let made = made.and_then(|made| made.with_name(&text("name").unwrap_or_default()));
    let made = made.and_then(|made| made.with_flags(Flags::from_bits_truncate(flags)));
    made.and_then(|made| made.with_metadata(&metadata)).map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err passes")]
fn failed(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
