//! The methods of `Tensor`.

use std::ffi::c_int;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::types::{PyCapsule, PyComplex, PyFloat, PyInt, PyTuple};
use pyo3::{exceptions::PyTypeError, ffi::Py_buffer, intern, prelude::*};

use super::args::TypeArg;
use super::array::PyArray;
use super::dlpack::consume::Wanted;
use super::dlpack::request::{AddressArg, CopyArg, DeviceArg};
use super::dlpack::{capsule, consume, exchange, method, request};
use super::field::PyField;
use super::numpy::{buffer, convert, elements};
use super::protocols::is_tensor;
use super::runtime::unlocked;
use super::tensor::{Producer, PyTensor};
use super::{index, pickle};
use crate::ffi::{DLDevice, DLPackFlags};
use crate::{Error, ManagedTensor};

/// Any object with `__dlpack__`, a DLPack capsule, or an Arrow array.
impl<'py> FromPyObject<'_, 'py> for PyTensor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_tensor(&object)? {
            return Self::from_dlpack(&object, None, None);
        }
        Ok(object.extract::<PyArray>()?.to_dlpack()?)
    }
}

impl PyTensor {
    /// Another tensor over the memory, for an array of Python's.
    #[expect(unsafe_code, reason = "Python may write to the memory of the array")]
    fn to_become_arrow(&self) -> ManagedTensor {
        // SAFETY: it becomes an Arrow array, which the docs of `to_arrow` say may change; the import borrows it for copies
        // alone.
        unsafe { self.tensor.shared() }
    }
}

#[pymethods]
impl PyTensor {
    /// A tensor from any object with __dlpack__, or from a DLPack capsule.
    ///
    /// device: "cpu", "cuda:0", a device of PyTorch's or JAX's, or a (device_type, device_id) tuple of DLPack;
    /// None for where it is.
    /// copy: True for a copy; False to fail where the producer, or moving to that device,
    /// would copy; None copies only to get to the device.
    #[staticmethod]
    #[pyo3(signature = (x, /, *, device=None, copy=None))]
    pub(super) fn from_dlpack(
        x: &Bound<'_, PyAny>,
        device: Option<DeviceArg>,
        copy: Option<CopyArg>,
    ) -> PyResult<Self> {
        let (device, copy) = (device.map(|device| device.0), copy.map(|copy| copy.0));
        if let (Ok(tensor), None | Some(false)) = (x.cast::<Self>(), copy) {
            let tensor = tensor.get();
            if device.is_none_or(|device| request::same_device(device, tensor.tensor.device())) {
                return Ok(tensor.share(x.py()));
            }
        }
        let tensor = Wanted { device, copy, host_readable_is_cpu: false }.take(x)?;
        let forwards = !tensor.device().is_cpu()
            && !tensor.flags().contains(DLPackFlags::IS_COPIED)
            && copy != Some(true)
            && !x.is_instance_of::<PyCapsule>()
            && (device.is_none() || consume::device_of(x)? == Some(tensor.device()));
        let producer = Producer(forwards.then(|| x.clone().unbind()));
        Ok(Self { producer, ..Self::from(tensor) })
    }

    /// A tensor from the address of a DLManagedTensorVersioned, or of a legacy DLManagedTensor if
    /// versioned is False, such as a C function called through ctypes returns.
    ///
    /// The address is not checked: it must be that of a tensor that the caller owns, and its
    /// descriptor must be true, or the process may crash. Its deleter is called once, when the last reference
    /// is dropped, or at once if the tensor is refused.
    #[staticmethod]
    #[pyo3(signature = (address, *, versioned=true))]
    #[expect(unsafe_code, reason = "takes the address that a caller gives")]
    fn from_pointer(address: AddressArg, versioned: bool) -> PyResult<Self> {
        // SAFETY: what the docstring demands of the caller, as every use of ctypes does.
        let tensor = unsafe { capsule::take_address(address.0, versioned) }?;
        Ok(Self::from(tensor))
    }

    /// Extents, in elements.
    #[getter]
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// Strides, in elements (not bytes).
    #[getter]
    fn get_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.strides().iter())
    }

    /// The element type's name, as NumPy or ml_dtypes has it: "float32", "bool", "bfloat16".
    #[getter]
    fn get_dtype(&self) -> String {
        self.tensor.dtype().to_string()
    }

    /// Where the memory is: "cpu", "cuda:0".
    #[getter]
    fn get_device(&self) -> String {
        self.tensor.device().to_string()
    }

    /// Number of axes.
    #[getter]
    pub fn ndim(&self) -> usize {
        self.tensor.ndim()
    }

    /// Number of elements.
    #[getter]
    pub fn size(&self) -> usize {
        self.tensor.size()
    }

    /// Size of the elements in bytes, without the gaps that strides leave.
    #[getter]
    pub fn nbytes(&self) -> usize {
        self.tensor.nbytes()
    }

    /// Whether the memory must not be written to. True if the producer says so, and for legacy tensors, which
    /// have no such flag.
    #[getter(readonly)]
    pub fn is_read_only(&self) -> bool {
        self.tensor.is_read_only()
    }

    /// Whether the elements lie one behind the other in row-major order.
    #[getter]
    pub fn is_contiguous(&self) -> bool {
        self.tensor.is_contiguous()
    }

    /// The Arrow column that the tensor was made of, with its unit, zone and extension type; None for
    /// tensors from elsewhere, and for matrices.
    #[getter]
    fn field(&self) -> Option<PyField> {
        self.field.clone().map(PyField)
    }

    /// The values that the elements are codes of, as an Array; None if they are no codes, and for matrices, whose
    /// columns have each their own.
    ///
    /// The dictionaries of a stream's batches begin with the same values: each has all those of the one
    /// before it, and maybe more behind them.
    #[getter]
    pub(super) fn dictionary(&self, py: Python<'_>) -> PyResult<Option<PyArray>> {
        let Some(meaning) = &self.meaning else { return Ok(None) };
        Ok(Some(PyArray::of_dictionary(py.detach(|| meaning.array())?)))
    }

    #[classattr]
    fn __dlpack__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        method::method::<Self>(py)
    }

    /// The table of C functions that consumers use instead of __dlpack__, if they know the exchange API of
    /// DLPack 1.3. It does not synchronise, and a DLTensor cannot say that it is read-only.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        exchange::capsule(py)
    }

    /// (device_type, device_id) as DLPack numbers them; (1, 0) is the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let DLDevice { device_type, device_id } = self.tensor.device();
        (device_type.0, device_id)
    }

    /// The tensor as an Arrow Array: memory shared if it is contiguous, aligned and readable by the
    /// CPU, else gathered; copy=False fails rather than copy, copy=True copies always. type is that of
    /// Array.from_dlpack. Shared memory changes with the tensor: copy it if something may still write to that.
    #[pyo3(signature = (*, copy=None, r#type=None))]
    fn to_arrow(
        &self,
        py: Python<'_>,
        copy: Option<CopyArg>,
        r#type: Option<TypeArg>,
    ) -> PyResult<PyArray> {
        let copy = copy.map(|copy| copy.0);
        PyArray::from_tensor(py, self.to_become_arrow(), None, copy, r#type)
    }

    /// The tensor as a NumPy array, over the same memory where that is possible; NumPy calls this for what
    /// the buffer protocol cannot describe, such as bfloat16, whose dtype is that of ml_dtypes.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<CopyArg>,
    ) -> PyResult<Bound<'py, PyAny>> {
        convert::array(slf, false, dtype, copy.map(|copy| copy.0))
    }

    /// Some of the elements: a Tensor over the same memory, which it keeps. The index is an integer, a slice,
    /// '...', None for a new axis, or a tuple of them, as NumPy has it. Integers for all axes make a tensor
    /// without axes; item() has its number. Nothing can be assigned.
    ///
    /// >>> import numpy as np
    /// >>> from arrow_dlpack import Tensor
    /// >>> tensor = Tensor.from_dlpack(np.arange(6).reshape(2, 3))
    /// >>> tensor[1, ::-2]
    /// <arrow_dlpack.Tensor int64, shape (2,), strides (-2,), cpu>
    /// >>> tensor[1, ::-2].tolist()
    /// [5, 3]
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let picks = index::picks(index, self.tensor.shape())?;
        self.part(py, &picks)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.rows("a tensor without axes has no len()")
    }

    /// The tensors along the first axis.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let rows = slf.get().rows("a tensor without axes cannot be iterated over")?;
        convert::each(slf, intern!(slf.py(), "__getitem__"), rows)
    }

    /// Refused: Python would compare the value with the Tensors of the first axis, and find none.
    fn __contains__(&self, _value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err("a Tensor is not searched: use `value in numpy.asarray(tensor)`"))
    }

    /// The elements as lists within lists, and Python's own numbers; without axes, the number.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        elements::lists(py, &self.tensor)
    }

    /// The one element as a number of Python's.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        elements::single_element(py, &self.tensor)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        elements::truth(py, &self.tensor)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyInt>().call1((elements::single_element(py, &self.tensor)?,))
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyFloat>().call1((elements::single_element(py, &self.tensor)?,))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyComplex>().call1((elements::single_element(py, &self.tensor)?,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        elements::index(py, &self.tensor)
    }

    /// The tensor as a pyarrow array; pyarrow calls this.
    #[pyo3(signature = (r#type=None))]
    fn __arrow_array__<'py>(
        &self,
        py: Python<'py>,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = PyArray::from_tensor(py, self.to_become_arrow(), None, None, None)?;
        py.import("pyarrow")?.call_method1("array", (array, r#type))
    }

    /// For pickle: the elements in row-major order. They have to be where the CPU can read.
    fn __reduce_ex__<'py>(
        slf: &Bound<'py, Self>,
        protocol: i32,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        pickle::tensor(slf, protocol)
    }

    /// For copy.copy: a row-major, writable copy.
    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        let copy = unlocked(py, self.tensor.nbytes(), || self.tensor.copied())?;
        let (field, meaning) = (self.field.clone(), self.meaning.clone());
        Ok(Self { field, meaning, ..Self::from(copy) })
    }

    /// For copy.deepcopy: as copy.copy.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__copy__(py)
    }

    /// The tensor as a jax.Array; jax.numpy calls this. Without it, JAX would use the attribute dtype, which is a str.
    fn __jax_array__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        convert::jax_array(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let class = slf.get_type().getattr(intern!(slf.py(), "__qualname__"))?;
        let this = slf.get();
        let (shape, strides) = (this.get_shape(slf.py())?, this.get_strides(slf.py())?);
        let (dtype, device) = (this.tensor.dtype(), this.tensor.device());
        let readonly = if this.is_read_only() { ", read-only" } else { "" };
        Ok(format!(
            "<arrow_dlpack.{class} {dtype}, shape {shape}, strides {strides}, {device}{readonly}>"
        ))
    }

    // PyO3 requires the slots in this block (its `multiple-pymethods` would link every class of pyo3-arrow, and
    // triple the size of the wheel); buffer.rs implements them.
    #[expect(unsafe_code, reason = "the signature of the slot")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: B1, CPython calls the slot.
        unsafe { buffer::fill(slf, view, flags) }
    }

    #[expect(unsafe_code, reason = "the signature of the slot")]
    unsafe fn __releasebuffer__(&self, view: *mut Py_buffer) {
        // SAFETY: B2, CPython calls the slot.
        unsafe { buffer::release(view) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.producer.0)
    }
}

impl PyTensor {
    /// The extent of the first axis.
    fn rows(&self, otherwise: &'static str) -> PyResult<usize> {
        match self.tensor.shape().first() {
            Some(&rows) => Ok(rows.try_into().map_err(|_| Error::Overflow("number of rows"))?),
            None => Err(PyTypeError::new_err(otherwise)),
        }
    }
}
