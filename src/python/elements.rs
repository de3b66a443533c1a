//! The elements of a tensor as Python numbers.

use arrow_buffer::{ArrowNativeType, Buffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyComplex, PyList};
use pyo3::{IntoPyObjectExt, prelude::*};

use super::run::unlocked;
use crate::{Error, ManagedTensor, ffi::DLDataTypeCode, kernels, layout, memory};

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
    let unsupported = |way_out| Err(Error::UnsupportedDtype { dtype, way_out }.into());
    if dtype.lanes != 1 {
        return unsupported("view it with its lanes as one more axis first");
    }
    // The elements as numbers of Rust's.
    let read = match (dtype.code, dtype.bits) {
        (DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => kernels::widen,
        (DLDataTypeCode::INT | DLDataTypeCode::UINT, ..8) => kernels::widen_integers,
        _ => kernels::gather,
    };
    let bytes = || unlocked(py, nbytes, || read(tensor)).map(memory::Fresh::into_buffer);
    match (dtype.code, dtype.bits) {
        (DLDataTypeCode::BOOL, _) => objects(py, bytes()?.iter().map(|&byte| byte != 0)),
        (DLDataTypeCode::INT, ..=8) => numbers::<i8>(py, &bytes()?),
        (DLDataTypeCode::INT, 16) => numbers::<i16>(py, &bytes()?),
        (DLDataTypeCode::INT, 32) => numbers::<i32>(py, &bytes()?),
        (DLDataTypeCode::INT, 64) => numbers::<i64>(py, &bytes()?),
        (DLDataTypeCode::UINT, ..=8) => numbers::<u8>(py, &bytes()?),
        (DLDataTypeCode::UINT, 16) => numbers::<u16>(py, &bytes()?),
        (DLDataTypeCode::UINT, 32) => numbers::<u32>(py, &bytes()?),
        (DLDataTypeCode::UINT, 64) => numbers::<u64>(py, &bytes()?),
        (DLDataTypeCode::FLOAT, 16) => {
            objects(py, bytes()?.typed_data::<half::f16>().iter().map(|value| value.to_f64()))
        }
        (DLDataTypeCode::FLOAT, 64) => numbers::<f64>(py, &bytes()?),
        (DLDataTypeCode::FLOAT, 32) | (DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => {
            numbers::<f32>(py, &bytes()?)
        }
        (DLDataTypeCode::COMPLEX, 64) => complex::<f32>(py, &bytes()?),
        (DLDataTypeCode::COMPLEX, 128) => complex::<f64>(py, &bytes()?),
        _ => unsupported("convert it first"),
    }
}

fn objects<'py, T: IntoPyObjectExt<'py>>(
    py: Python<'py>,
    values: impl Iterator<Item = T>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    values.map(|value| value.into_bound_py_any(py)).collect()
}

fn numbers<'py, T: ArrowNativeType + IntoPyObjectExt<'py>>(
    py: Python<'py>,
    bytes: &Buffer,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    objects(py, bytes.typed_data::<T>().iter().copied())
}

fn complex<'py, T: ArrowNativeType + Into<f64>>(
    py: Python<'py>,
    bytes: &Buffer,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let pairs = bytes.typed_data::<T>().chunks_exact(2);
    objects(py, pairs.map(|pair| PyComplex::from_doubles(py, pair[0].into(), pair[1].into())))
}
