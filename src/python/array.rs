//! `Array`: the Arrow side as a Python object.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, FieldRef};
use pyo3::prelude::*;

use super::arrow::imported::Imported;
use super::dlpack::exchange::BorrowedTensor;
use crate::{Error, export, tensor::Vector};

/// An Arrow array that also speaks DLPack.
///
/// Array(obj) takes any object with __arrow_c_array__ or __arrow_c_stream__ (pyarrow, polars, DuckDB,
/// nanoarrow, ...) without copying, with two exceptions: the chunks of a stream are concatenated if
/// there are several, and buffers of values that are not aligned are moved. copy=False refuses those.
/// copy=True copies everything, values, offsets and texts, and checks the copy: for data that other code might
/// still write to.
/// Array.from_dlpack(x) takes a tensor.
/// Tensors are exchanged by the C exchange API of DLPack 1.3 where the other library supports it, without calls
/// of Python methods.
///
/// >>> import numpy as np, pyarrow as pa
/// >>> import arrow_dlpack
/// >>> array = arrow_dlpack.Array(pa.array([1.5, 2.5, 3.5]))
/// >>> array
/// <arrow_dlpack.Array Float64, 3 values: [1.5, 2.5, 3.5]>
/// >>> np.from_dlpack(array)
/// array([1.5, 2.5, 3.5])
/// >>> pa.array(arrow_dlpack.from_dlpack(np.arange(3)))
/// <pyarrow.lib.Int64Array object at ...>
/// [
///   0,
///   1,
///   2
/// ]
#[pyclass(name = "Array", module = "arrow_dlpack", frozen, subclass)]
#[derive(Debug)]
pub struct PyArray {
    pub(super) array: ArrayRef,
    pub(super) field: FieldRef,
    /// The tensor that the exchange API hands out as borrowed.
    pub(super) borrowed: BorrowedTensor,
}

impl PyArray {
    /// An array and the field that describes it; exports keep its extension metadata.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{Array, ArrayRef, TimestampMicrosecondArray};
    /// use arrow_dlpack::python::PyArray;
    /// use arrow_schema::Field;
    ///
    /// let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 2]));
    /// let field = Arc::new(Field::new("at", array.data_type().clone(), false));
    /// let array = PyArray::try_new(array, field)?;
    /// assert_eq!((array.array().len(), array.field().name().as_str()), (2, "at"));
    /// let (array, _field) = array.into_inner();
    /// assert_eq!(array.null_count(), 0);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `FieldMismatch` if the field is of another type.
    pub fn try_new(array: ArrayRef, field: FieldRef) -> Result<Self, Error> {
        export::check_type(&array, &field)?;
        Ok(Self::of(array, field))
    }

    /// The values of a dictionary.
    pub(super) fn of_dictionary(array: ArrayRef) -> Self {
        let field = Field::new("", array.data_type().clone(), true);
        Self::of(array, Arc::new(field))
    }

    pub(super) fn of(array: ArrayRef, field: FieldRef) -> Self {
        Self { array, field, borrowed: BorrowedTensor::default() }
    }

    /// The array.
    #[must_use]
    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    /// The field that describes it.
    #[must_use]
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Array and field.
    #[must_use]
    pub fn into_inner(self) -> (ArrayRef, FieldRef) {
        (self.array, self.field)
    }

    /// The array as it is, if it is plain numbers.
    pub(super) fn vector(&self) -> Option<Vector<'_>> {
        if self.field.metadata().is_empty() { export::vector(&self.array) } else { None }
    }

    /// The array as imported data.
    pub(super) fn imported(&self) -> Imported {
        let (chunks, field) = (vec![self.array.clone()], self.field.clone());
        Imported { chunks, field, moved: 0, gathered: (0, 0) }
    }
}

/// As [`PyArray::try_new`].
impl TryFrom<(ArrayRef, FieldRef)> for PyArray {
    type Error = Error;

    fn try_from((array, field): (ArrayRef, FieldRef)) -> Result<Self, Error> {
        Self::try_new(array, field)
    }
}
