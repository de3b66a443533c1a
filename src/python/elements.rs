//! The elements of a tensor as Python numbers.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyList};

use super::run::unlocked;
use crate::dtype::for_each_numeric;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels;
use crate::layout;
use crate::memory::{self, ManagedTensor};

/// Bytes of an empty Python list, and of the pointer to it.
const LIST: usize = 64;
/// Bytes of a Python number, and of the pointer to it.
const NUMBER: usize = 40;

/// Nested lists of the elements; without axes, the one element.
pub(super) fn lists<'py>(py: Python<'py>, tensor: &ManagedTensor) -> PyResult<Bound<'py, PyAny>> {
    let mut level = all(py, tensor)?;
    let shape = tensor.shape();
    let Some((_, outer)) = shape.split_last().map(|(last, outer)| (last, outer.len())) else {
        return level.pop().ok_or_else(|| PyValueError::new_err("there is no element"));
    };
    for axis in (1..=outer).rev() {
        let count = layout::element_count(&shape[..axis])?;
        memory::probe_alloc(count.saturating_mul(LIST))?;
        let extent = usize::try_from(shape[axis]).map_err(|_| Error::Overflow("size in bytes"))?;
        let lists = (0..count).map(|list| {
            let items = &level[list * extent..(list + 1) * extent];
            PyList::new(py, items).map(Bound::into_any)
        });
        level = lists.collect::<PyResult<_>>()?;
    }
    Ok(PyList::new(py, level)?.into_any())
}

/// The one element.
pub(super) fn one<'py>(py: Python<'py>, tensor: &ManagedTensor) -> PyResult<Bound<'py, PyAny>> {
    if tensor.size() != 1 {
        return Err(PyValueError::new_err(format!(
            "only a tensor of one element is a number, and this one has {}",
            tensor.size()
        )));
    }
    all(py, tensor)?.pop().ok_or_else(|| PyValueError::new_err("there is no element"))
}

/// Whether the one element is true.
pub(super) fn truth(py: Python<'_>, tensor: &ManagedTensor) -> PyResult<bool> {
    if tensor.size() != 1 {
        return Err(PyValueError::new_err(format!(
            "the truth of a tensor of {} elements is ambiguous: ask numpy.asarray(tensor).any() or .all()",
            tensor.size()
        )));
    }
    one(py, tensor)?.is_truthy()
}

/// The one element of a tensor without axes, if it is an integer.
pub(super) fn index<'py>(py: Python<'py>, tensor: &ManagedTensor) -> PyResult<Bound<'py, PyAny>> {
    let is_integer = matches!(tensor.dtype().code, DLDataTypeCode::INT | DLDataTypeCode::UINT);
    if !is_integer || tensor.ndim() > 0 {
        return Err(PyTypeError::new_err("only an integer tensor without axes is an index"));
    }
    one(py, tensor)
}

/// All elements in row-major order.
fn all<'py>(py: Python<'py>, tensor: &ManagedTensor) -> PyResult<Vec<Bound<'py, PyAny>>> {
    memory::probe_alloc(tensor.size().saturating_mul(NUMBER))?;
    let (dtype, nbytes) = (tensor.dtype(), tensor.nbytes());
    let widened = |widen: fn(&ManagedTensor) -> Result<memory::Fresh, Error>| {
        unlocked(py, nbytes, || widen(tensor)).map(memory::Fresh::into_buffer)
    };
    if dtype.lanes != 1 {
        return Err(Error::UnsupportedDtype {
            dtype,
            way_out: "view it with its lanes as one more axis first",
        }
        .into());
    }
    match (dtype.code, dtype.bits) {
        (DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => {
            objects(py, widened(kernels::widen)?.typed_data::<f32>())
        }
        (DLDataTypeCode::INT, ..8) => {
            objects(py, widened(kernels::widen_integers)?.typed_data::<i8>())
        }
        (DLDataTypeCode::UINT, ..8) => {
            objects(py, widened(kernels::widen_integers)?.typed_data::<u8>())
        }
        (DLDataTypeCode::BOOL, _) => {
            let bytes = widened(kernels::gather)?;
            bytes.iter().map(|&byte| (byte != 0).into_bound_py_any(py)).collect()
        }
        (DLDataTypeCode::COMPLEX, 64) => {
            let parts = widened(kernels::gather)?;
            Ok(complex(py, parts.typed_data::<f32>()))
        }
        (DLDataTypeCode::COMPLEX, 128) => {
            let parts = widened(kernels::gather)?;
            Ok(complex(py, parts.typed_data::<f64>()))
        }
        _ => numeric(py, dtype, || widened(kernels::gather)),
    }
}

macro_rules! numeric {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        fn numeric<'py>(
            py: Python<'py>,
            dtype: DLDataType,
            bytes: impl FnOnce() -> Result<arrow_buffer::Buffer, Error>,
        ) -> PyResult<Vec<Bound<'py, PyAny>>> {
            match dtype {
                $(DLDataType::$dtype => objects(py, bytes()?.typed_data::<$native>()),)*
                _ => Err(Error::UnsupportedDtype { dtype, way_out: "convert it first" }.into()),
            }
        }
    };
}
for_each_numeric!(numeric);

/// A number that converts to a Python number.
trait Number: Copy {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

macro_rules! number {
    ($($native:ty)*) => {
        $(impl Number for $native {
            fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                self.into_bound_py_any(py)
            }
        })*
    };
}
number!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl Number for half::f16 {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.to_f64().into_bound_py_any(py)
    }
}

fn objects<'py, T: Number>(py: Python<'py>, values: &[T]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    values.iter().map(|value| value.object(py)).collect()
}

fn complex<'py, T: Copy + Into<f64>>(py: Python<'py>, parts: &[T]) -> Vec<Bound<'py, PyAny>> {
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| PyComplex::from_doubles(py, pair[0].into(), pair[1].into()).into_any())
        .collect()
}
