//! The methods of `Array`.

use arrow_array::Array;
use arrow_schema::DataType;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3::{
    exceptions::{PyIndexError, PyOverflowError, PyTypeError},
    intern,
    prelude::*,
};

use super::advice::Expected;
use super::args::{self, ColumnsArg, DtypeArg, NullsArg, OrderArg, PhysicalArg, TypeArg};
use super::array::PyArray;
use super::data::{self, Data};
use super::dlpack::consume::{Wanted, still_to_copy, take, take_by, take_mask};
use super::dlpack::request::{CopyArg, DeviceArg};
use super::dlpack::{exchange, method};
use super::errors::{Asked, noted};
use super::field::{PyField, type_with_extension};
use super::numpy::convert;
use super::preview::preview;
use super::protocols::{is_arrow, is_tensor};
use super::runtime::{exported, unlocked};
use super::tensor::PyTensor;
use super::{arrow, pickle, source};
use crate::export::{self, Source};
use crate::ffi::{DLDevice, DLPackFlags};
use crate::{Error, ExportOptions, ManagedTensor, Plan, import};

impl PyArray {
    /// The data of any object with an Arrow method.
    pub(super) fn import(obj: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Self> {
        let (array, field) = match copy {
            None => source::import(obj, None)?.into_array(obj.py())?,
            Some(true) => source::import(obj, None)?.copied(obj.py())?.into_array(obj.py())?,
            Some(false) => source::import(obj, None)?.uncopied()?.into_array(obj.py())?,
        };
        Ok(Self::of(array, field))
    }

    /// [`crate::to_dlpack`] with default options, as an object for Python.
    ///
    /// ```
    /// use arrow_dlpack::python::{PyArray, PyTensor};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn as_tensor(column: PyArray) -> PyResult<PyTensor> {
    ///     Ok(column.to_dlpack()?)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`crate::to_dlpack`].
    pub fn to_dlpack(&self) -> Result<PyTensor, Error> {
        let tensor = export::to_dlpack(&self.array, &self.field, &ExportOptions::default())?;
        Ok(PyTensor::of_column(tensor, Some(&self.field), None))
    }

    pub(super) fn from_tensor(
        py: Python<'_>,
        tensor: ManagedTensor,
        mask: Option<ManagedTensor>,
        copy: Option<bool>,
        r#type: Option<TypeArg>,
    ) -> PyResult<Self> {
        let tensor = if copy == Some(true) || r#type.is_some() || mask.is_some() {
            tensor
        } else {
            match import::import_primitive(tensor) {
                Ok((array, field)) => return Ok(Self::of(array, field)),
                Err(tensor) => tensor,
            }
        };
        let options = TypeArg::resolve(r#type)?.import(&tensor, copy)?;
        let prepared = import::prepare_any(tensor, mask, &options)?;
        let (array, field) = unlocked(py, prepared.work(), || prepared.run())?;
        Ok(Self::of(array, field))
    }

    /// What [`Self::from_dlpack`] would copy.
    pub(super) fn explain(
        x: &Bound<'_, PyAny>,
        device: Option<DLDevice>,
        copy: Option<bool>,
        r#type: Option<TypeArg>,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Plan> {
        let tensor = take(x, device, copy)?;
        let mask = mask.map(take_mask).transpose()?;
        let copy = still_to_copy(&tensor, copy);
        let options = TypeArg::resolve(r#type)?.import(&tensor, copy)?;
        Ok(import::prepare_any(tensor, mask, &options)?.plan())
    }
}

/// Any Arrow array, or any tensor. Arrow's interface requires its data to be immutable, so an array is shared;
/// DLPack does not, so a tensor is copied.
impl<'py> FromPyObject<'_, 'py> for PyArray {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<Self>() {
            let Self { array, field, .. } = array.get();
            return Ok(Self::of(array.clone(), field.clone()));
        }
        if is_arrow(&object)? {
            return Self::new(&object, None);
        }
        if !is_tensor(&object)? {
            return Err(Expected::Either.got(&object));
        }
        Self::from_dlpack(&object, None, Some(CopyArg(true)), None, None)
    }
}

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (obj, /, *, copy=None))]
    fn new(obj: &Bound<'_, PyAny>, copy: Option<CopyArg>) -> PyResult<Self> {
        Self::import(obj, copy.map(|copy| copy.0))
    }

    /// An Arrow array from any object with __dlpack__, or from a DLPack capsule.
    ///
    /// Memory is shared if it is contiguous, aligned and readable by the CPU, and gathered into a new
    /// buffer if not. The producer of a tensor on another device is asked to copy it to the CPU. The producer
    /// can still write to shared memory; copy=True prevents that.
    ///
    /// A tensor of more than one axis becomes arrow.fixed_shape_tensor, row-major, with each row as a value. Rows whose
    /// axes lie in another order in memory, such as those of channels-last images, are copied.
    ///
    /// device: "cpu" or the standard's (1, 0), which is what None means too: an Arrow array is on the CPU.
    /// copy: False to fail rather than copy, True to copy always.
    /// type: which of the Arrow types that can hold the tensor. "bool8" keeps booleans in a byte each,
    /// zero-copy; "opaque" keeps bfloat16, the floats of 8 bits and less, complex numbers and integers of
    /// under 8 bits as they are; "fixed_size_list" makes plain lists of more axes; "permuted" shares rows whose axes lie
    /// in another order, by a permutation in the type, which other readers ignore or get wrong. Any Arrow type or field
    /// that holds the same bytes is taken too, such as the field of the array that the tensor came from; lists of any
    /// length, as pa.list_(pa.float32()), share the values of a matrix as those of fixed size do.
    /// For decimals, times of a day and date64 each number is read, because some are no values of them: those are a
    /// ValueError.
    /// mask: a tensor of booleans, False where a value is null, as nulls="mask" gives them: one for each row,
    /// or one for each element, for nulls within the rows; of elements that cannot be null, such as the bytes of
    /// pa.binary(n), it hides all of a value or none. It is copied, to bits. An Arrow array of booleans works too.
    ///
    /// >>> import arrow_dlpack, numpy as np, pyarrow as pa
    /// >>> pa.array(arrow_dlpack.Array.from_dlpack(np.zeros((2, 3), "float32"))).type
    /// FixedShapeTensorType(extension<arrow.fixed_shape_tensor[value_type=float, shape=[3]]>)
    /// >>> days = np.array([0, 1], "int32")
    /// >>> arrow_dlpack.Array.from_dlpack(days, type=pa.date32())
    /// <arrow_dlpack.Array Date32, 2 values: [1970-01-01, 1970-01-02]>
    #[staticmethod]
    #[pyo3(signature = (x, /, *, device=None, copy=None, r#type=None, mask=None))]
    pub(super) fn from_dlpack(
        x: &Bound<'_, PyAny>,
        device: Option<DeviceArg>,
        copy: Option<CopyArg>,
        r#type: Option<TypeArg>,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if device.is_none() && copy.is_none() && r#type.is_none() && mask.is_none() {
            // Most tensors come by a table; this path avoids moves, which would cost more than the exchange.
            if let Some(tensor) = exchange::take(x)? {
                return Self::from_tensor(x.py(), tensor, None, None, None);
            }
            let tensor = take_by(x, None, None, Wanted::take_by_method)?;
            return Self::from_tensor(x.py(), tensor, None, None, None);
        }
        let (device, copy) = (device.map(|device| device.0), copy.map(|copy| copy.0));
        let tensor = take(x, device, copy)?;
        let mask = mask.map(take_mask).transpose()?;
        let copy = still_to_copy(&tensor, copy);
        Self::from_tensor(x.py(), tensor, mask, copy, r#type)
    }

    #[classattr]
    fn __dlpack__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        method::method::<Self>(py)
    }

    /// The table of C functions that consumers use instead of __dlpack__, if they know the exchange API of
    /// DLPack 1.3. Its memory is read-only, though a DLTensor cannot say so.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        exchange::capsule(py)
    }

    /// (1, 0): the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let DLDevice { device_type, device_id } = DLDevice::CPU;
        (device_type.0, device_id)
    }

    /// The array as a Tensor; the options are those of the function to_tensor, which has pad and max_length too.
    #[pyo3(signature = (*, dtype=None, nulls=NullsArg::default(), order=OrderArg::default(), copy=None, columns=None, physical=PhysicalArg(false)))]
    #[pyo3(
        text_signature = "($self, *, dtype=None, nulls='error', order='C', copy=None, columns=None, physical=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the keywords of to_tensor")]
    fn to_tensor<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<DtypeArg>,
        nulls: NullsArg,
        order: OrderArg,
        copy: Option<CopyArg>,
        columns: Option<ColumnsArg>,
        physical: PhysicalArg,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = args::export_options(copy, nulls, dtype, order, physical);
        let columns = columns.map(|columns| columns.0);
        data::refuse_none(columns.as_deref())?;
        Data::new(self.imported(), columns)?.to_tensor(py, &options, Asked::Method)
    }

    /// One row as a Tensor, without the axis of rows: a list's values, a text's bytes, the
    /// tensor of an arrow.fixed_shape_tensor or arrow.variable_shape_tensor.
    ///
    /// A negative index counts from the end. A null row of a type whose rows differ in length or shape is
    /// refused, whatever nulls says. A loop over an Array yields row(i) for each row.
    ///
    /// >>> import arrow_dlpack, pyarrow as pa
    /// >>> array = arrow_dlpack.Array(pa.array([[1.0, 2.0], [], [3.0]]))
    /// >>> array.row(0)
    /// <arrow_dlpack.Tensor float64, shape (2,), strides (1,), cpu, read-only>
    #[pyo3(signature = (index, /, *, dtype=None, nulls=NullsArg::default(), copy=None, physical=PhysicalArg(false)))]
    #[pyo3(
        text_signature = "($self, index, /, *, dtype=None, nulls='error', copy=None, physical=False)"
    )]
    fn row<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
        dtype: Option<DtypeArg>,
        nulls: NullsArg,
        copy: Option<CopyArg>,
        physical: PhysicalArg,
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = self.array.len();
        let found = match index.extract::<isize>() {
            Ok(index) => {
                let from_end = || len.checked_sub(index.unsigned_abs());
                usize::try_from(index).ok().or_else(from_end).filter(|&row| row < len)
            }
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
            Err(error) => return Err(error),
        };
        let Some(row) = found else {
            return Err(PyIndexError::new_err(format!("there is no row {index} among {len}")));
        };
        let options = args::export_options(copy, nulls, dtype, OrderArg::default(), physical);
        let source = Source::Row(&self.array, Some(&self.field), row);
        data::tensor(py, source, None, &options, Asked::Row(row))
    }

    /// The array's name, type and metadata.
    #[getter(field)]
    fn field_object(&self) -> PyField {
        PyField(self.field.clone())
    }

    /// The array as a pair of Arrow C capsules (schema, array); Arrow libraries call this.
    ///
    /// Numbers, booleans, texts, binaries, and codes of such, are cast to a requested type if every value survives a
    /// cast there and back; so are the fields of structs. Other requests raise ValueError.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let Some(requested) = requested_schema else {
            return arrow::export::array_capsules(py, &self.array, &self.field);
        };
        let requested = arrow::capsule::schema_of(&requested)?;
        let (array, field) = arrow::export::as_requested(&self.array, &self.field, &requested)?;
        arrow::export::array_capsules(py, &array, &field)
    }

    /// The array's type as an Arrow C schema capsule; Arrow libraries call this.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::export::schema_capsule(py, &self.field)
    }

    /// The array as a NumPy array, over the same memory where that is possible; NumPy, pandas and matplotlib
    /// call this. It refuses what __dlpack__ refuses: nulls, texts, times.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<CopyArg>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = copy.map(|copy| copy.0);
        let options = ExportOptions::default().with_copy(copy.filter(|copy| !copy));
        let tensor = exported(py, Source::Array(&self.array, Some(&self.field)), &options);
        let refused = |error| {
            let error = convert::numpy_error(py, PyErr::from(error), copy);
            noted(
                py,
                error,
                "pandas.Series.from_arrow(x), and DataFrame.from_arrow(x) of structs, have it in pandas",
            )
        };
        let tensor = tensor.map_err(refused)?.values;
        let is_own = tensor.flags().contains(DLPackFlags::IS_COPIED);
        convert::array(&Bound::new(py, PyTensor::from(tensor))?, is_own, dtype, copy)
    }

    /// The array as a jax.Array; jax.numpy.asarray calls this.
    fn __jax_array__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::to_jax(&self.__array__(py, None, None)?)
    }

    /// For pickle: the type, and the array's values, without those outside of a slice.
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        protocol: i32,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        pickle::array(py, &self.array, &self.field, protocol)
    }

    /// For copy.copy: an array in new memory, without the values outside of a slice.
    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        pickle::copied(py, &self.array, &self.field)
    }

    /// For copy.deepcopy: as copy.copy.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__copy__(py)
    }

    /// The rows, one after the other, as row makes them.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        convert::each(slf, intern!(slf.py(), "row"), slf.get().array.len())
    }

    /// Refused: Python would compare the value with the Tensors of the rows, and find none.
    fn __contains__(&self, _value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "an Array is not searched: use `value in pyarrow.array(array).to_pylist()`",
        ))
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The Arrow type, in arrow-rs's words: "Int32", "Float64", "Timestamp(ms, \"UTC\")".
    #[getter]
    fn r#type(&self) -> String {
        type_with_extension(&self.field)
    }

    /// How many values are null.
    #[getter]
    fn null_count(&self) -> usize {
        match self.array.data_type() {
            DataType::Null => self.array.len(), // without a validity buffer
            _ => self.array.null_count(),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let class = slf.get_type().getattr(intern!(slf.py(), "__qualname__"))?;
        let plural = |count: usize, word: &str| {
            format!("{count} {word}{}", if count == 1 { "" } else { "s" })
        };
        let mut text = format!(
            "<arrow_dlpack.{class} {}, {}",
            this.r#type(),
            plural(this.array.len(), "value")
        );
        if this.null_count() > 0 {
            text += &format!(", {}", plural(this.null_count(), "null"));
        }
        if let Some(values) = preview(&this.array) {
            text += &format!(": [{values}]");
        }
        Ok(text + ">")
    }
}
