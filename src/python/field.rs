//! `Field`: the name and type of an Arrow array.

use std::collections::HashMap;

use arrow_schema::FieldRef;
use pyo3::{prelude::*, types::PyCapsule};

use super::arrow::export;

/// The name, type and metadata of an Arrow array; Arrow libraries take it by __arrow_c_schema__.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> tensor = arrow_dlpack.to_tensor(pa.array([0, 1], pa.timestamp("ms", "UTC")), physical=True)
/// >>> tensor.dtype, pa.field(tensor.field).type
/// ('int64', TimestampType(timestamp[ms, tz=UTC]))
#[pyclass(name = "Field", module = "arrow_dlpack", frozen)]
#[derive(Debug)]
pub struct PyField(pub(super) FieldRef);

#[pymethods]
impl PyField {
    /// The name; that of an array is empty.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The Arrow type, in arrow-rs's words: "Int32", "Timestamp(ms, \"UTC\")".
    #[getter]
    fn r#type(&self) -> String {
        type_with_extension(&self.0)
    }

    /// Whether there may be nulls.
    #[getter]
    fn nullable(&self) -> bool {
        self.0.is_nullable()
    }

    /// Metadata, as texts; an extension type is under "ARROW:extension:name".
    #[getter]
    fn metadata(&self) -> &HashMap<String, String> {
        self.0.metadata()
    }

    /// The field as an Arrow C schema capsule; Arrow libraries call this.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export::schema_capsule(py, &self.0)
    }

    fn __repr__(&self) -> String {
        format!("<arrow_dlpack.Field {:?}: {}>", self.0.name(), type_with_extension(&self.0))
    }
}

/// The type as arrow-rs displays it, inside the name of its extension type.
pub(super) fn type_with_extension(field: &FieldRef) -> String {
    let storage = field.data_type();
    match field.extension_type_name() {
        Some(name) => format!("{name}[{storage}]"),
        None => storage.to_string(),
    }
}
