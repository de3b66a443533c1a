//! The elements as Python and NumPy values.

use pyo3::exceptions::{PyBufferError, PyImportError, PyValueError};
use pyo3::types::{PyMemoryView, PyString};
use pyo3::{intern, prelude::*};

use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::python::errors::unsupported;
use crate::python::runtime::unlocked;
use crate::python::tensor::PyTensor;
use crate::tensor::TensorSpec;
use crate::{Error, ManagedTensor, layout};

/// `__array__` as NumPy 2 calls it. NumPy prefers the buffer protocol, where the tensor supports it.
///
/// The array shares the memory if possible, and is read-only if the tensor is. For a dtype that NumPy lacks it
/// has that of ml_dtypes. `is_own` says that the memory has no other owner.
pub(in crate::python) fn array<'py>(
    tensor: &Bound<'py, PyTensor>,
    is_own: bool,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let device = tensor.get().tensor.device();
    if !device.is_host_readable() {
        return Err(Error::UnreadableDevice { device }.into());
    }
    let (array, is_new) = as_it_is(tensor, copy)?;
    let numpy = py.import(intern!(py, "numpy"))?;
    let wanted = match dtype {
        None => None,
        Some(dtype) => {
            let wanted = numpy.call_method1(intern!(py, "dtype"), (dtype,))?;
            (!wanted.eq(array.getattr(intern!(py, "dtype"))?)?).then_some(wanted)
        }
    };
    match wanted {
        None if copy == Some(true) && !(is_own || is_new) => {
            array.call_method0(intern!(py, "copy"))
        }
        None => Ok(array),
        Some(wanted) if copy == Some(false) => Err(PyValueError::new_err(format!(
            "copy=False, but {} elements become {wanted} only by a copy",
            tensor.get().tensor.dtype()
        ))),
        Some(wanted) => array.call_method1(intern!(py, "astype"), (wanted,)),
    }
}

/// The array of the dtype that corresponds to the tensor's, and whether its memory is its own.
fn as_it_is<'py>(
    tensor: &Bound<'py, PyTensor>,
    copy: Option<bool>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = tensor.py();
    let this = &tensor.get().tensor;
    let dtype = this.dtype();
    if !is_of_ml_dtypes(dtype) {
        return Ok((viewed(tensor)?, false));
    }
    let class = ml_dtype(py, dtype)?;
    if dtype.bits >= 8 {
        let integers = Bound::new(py, tensor.get().as_integers()?)?;
        return Ok((viewed(&integers)?.call_method1(intern!(py, "view"), (class,))?, false));
    }
    // ml_dtypes stores them in a byte each, whose other bits must be 0.
    if copy == Some(false) {
        return Err(PyValueError::new_err(format!(
            "copy=False, but {dtype} elements have a byte each in NumPy, which takes a copy"
        )));
    }
    let is_float = !matches!(dtype.code, DLDataTypeCode::INT | DLDataTypeCode::UINT);
    let bytes = unlocked(py, this.size(), || -> Result<_, Error> {
        let bytes = this.in_bytes();
        let code = if is_float { DLDataTypeCode::UINT } else { dtype.code };
        let (byte, flags) = (DLDataType::scalar(code, 8), DLPackFlags::IS_COPIED);
        let (shape, strides) = (this.shape(), layout::row_major(this.shape()));
        ManagedTensor::from_fresh(bytes?, TensorSpec::new(byte, flags, shape, &strides))
    });
    let bytes = viewed(&Bound::new(py, PyTensor::from(bytes?))?)?;
    let name = if is_float { intern!(py, "view") } else { intern!(py, "astype") };
    Ok((bytes.call_method1(name, (class,))?, true))
}

/// The array over a tensor's buffer.
fn viewed<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let view = PyMemoryView::from(tensor)?;
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (view,))
}

/// Whether NumPy lacks the dtype and ml_dtypes may have it.
fn is_of_ml_dtypes(dtype: DLDataType) -> bool {
    let code = match (dtype.code, dtype.bits) {
        (DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => true,
        (DLDataTypeCode::INT | DLDataTypeCode::UINT, bits) => bits < 8,
        (code, bits) => code == DLDataTypeCode::COMPLEX && bits == 32,
    };
    code && dtype.lanes == 1
}

/// The class of ml_dtypes.
fn ml_dtype(py: Python<'_>, dtype: DLDataType) -> PyResult<Bound<'_, PyAny>> {
    let class = match py.import(intern!(py, "ml_dtypes")) {
        Ok(module) => module.getattr_opt(dtype.to_string())?,
        Err(error) if error.is_instance_of::<PyImportError>(py) => None,
        Err(error) => return Err(error),
    };
    class.ok_or_else(|| {
        unsupported(format!(
            "NumPy has no {dtype}: install ml_dtypes, which has, or take the values as Arrow's, with \
             numpy.asarray(x.to_arrow())"
        ))
    })
}

/// The `jax.Array` of a tensor: made from a NumPy array, or on another device from the tensor itself.
pub(in crate::python) fn jax_array<'py>(
    tensor: &Bound<'py, PyTensor>,
) -> PyResult<Bound<'py, PyAny>> {
    if !tensor.get().tensor.device().is_host_readable() {
        return tensor.py().import("jax.numpy")?.call_method1("from_dlpack", (tensor,));
    }
    to_jax(&array(tensor, false, None, None)?)
}

/// The `jax.Array` of one of NumPy's, whose values it has.
pub(in crate::python) fn to_jax<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    array.py().import(FRAMEWORKS)?.call_method1("check_jax_array", (array,))?;
    array.py().import("jax.numpy")?.call_method1("asarray", (array,))
}

/// Converts the refusal of `copy=False` to a `ValueError`, which NumPy expects.
pub(in crate::python) fn numpy_error(py: Python<'_>, error: PyErr, copy: Option<bool>) -> PyErr {
    // Other refusals are `UnsupportedError`.
    if copy == Some(false) && error.get_type(py).is(py.get_type::<PyBufferError>()) {
        return PyValueError::new_err(error.value(py).to_string());
    }
    error
}

/// The Python module that knows the frameworks.
pub(in crate::python) const FRAMEWORKS: &str = "arrow_dlpack._frameworks";

/// An iterator over what a method of the object returns for 0, 1, 2 and so on, `len` times.
pub(in crate::python) fn each<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    len: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let builtins = object.py().import("builtins")?;
    let indices = builtins.call_method1("range", (len,))?;
    builtins.call_method1("map", (object.getattr(method)?, indices))
}
