//! The words of `Categories` as the engine has them.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use crate::Error;
use crate::batches::Categories;
use crate::python::array::PyArray;
use crate::python::errors::Asked;
use crate::python::runtime::unlocked;
use crate::python::source;

/// Words, by whose positions values are coded.
#[pyclass(name = "_Categories", module = "arrow_dlpack._core", frozen, from_py_object)]
#[derive(Clone)]
pub(in crate::python) struct PyCategories(pub(in crate::python) Categories);

/// Words in the order of their codes, and the code of other values; or the positions of two words that are one value.
#[pyfunction]
#[pyo3(signature = (words, /, unknown))]
pub(in crate::python) fn _categories<'py>(
    words: &Bound<'py, PyAny>,
    unknown: Option<i32>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = words.py();
    let (words, _) = source::import(words, None)?.into_array(py)?;
    let nbytes = words.get_buffer_memory_size();
    match unlocked(py, nbytes, || Categories::try_new(words)) {
        Ok(made) => Ok(Bound::new(py, PyCategories(made.with_unknown(unknown)))?.into_any()),
        Err(Error::EqualCategories { first, second }) => {
            Ok((first, second).into_pyobject(py)?.into_any())
        }
        Err(error) => Err(Asked::Tensor.refusal(error)),
    }
}

#[pymethods]
impl PyCategories {
    /// The code of each value of a column of this name, null where the value is.
    #[pyo3(signature = (column, name, /))]
    fn codes(&self, column: &Bound<'_, PyAny>, name: &str) -> PyResult<PyArray> {
        let py = column.py();
        let imported = source::import(column, None)?;
        let nbytes = imported.nbytes();
        let (array, field) = imported.into_array(py)?;
        let field = Field::clone(&field).with_name(name);
        let codes = unlocked(py, nbytes, || self.0.read(&array, &field, &DataType::Int32));
        let codes = codes.map_err(|error| Asked::Tensor.refusal(error))?;
        Ok(PyArray::try_new(codes, Arc::new(Field::new(name, DataType::Int32, true)))?)
    }
}
