//! The elements of a tensor as Python numbers.

use arrow_buffer::{ArrowNativeType, Buffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyComplex, PyList};
use pyo3::{IntoPyObjectExt, intern, prelude::*};

use crate::python::errors;
use crate::python::lent_tensor::LentTensor;
use crate::python::runtime::unlocked;
use crate::{Error, alloc, ffi::DLDataTypeCode, layout};

/// Bytes of an empty Python list, of its place in a vector and in another list.
const LIST: usize = 96;
/// Bytes of a Python number, of its place in a vector and in a list.
const NUMBER: usize = 48;
/// Python takes memory for small objects from the system in arenas of this size.
const ARENA: usize = 1 << 20;

/// Nested lists of the elements; without axes, the one element.
pub(in crate::python) fn lists<'py>(
    py: Python<'py>,
    tensor: &LentTensor,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = tensor.shape();
    let inner = (1..shape.len()).map(|axes| layout::element_count(&shape[..axes]));
    let lists = inner.sum::<Result<usize, Error>>()?;
    probe_objects(py, tensor, lists)?;
    let mut level = all_elements(py, tensor)?;
    let Some((_, outer)) = shape.split_last().map(|(last, outer)| (last, outer.len())) else {
        return level.pop().ok_or_else(|| PyValueError::new_err("there is no element"));
    };
    for axis in (1..=outer).rev() {
        let count = layout::element_count(&shape[..axis])?;
        let extent = usize::try_from(shape[axis]).map_err(|_| Error::Overflow("size in bytes"))?;
        let mut lists = alloc::reserved(count)?;
        for list in 0..count {
            let items = &level[list * extent..(list + 1) * extent];
            lists.push(PyList::new(py, items)?.into_any());
        }
        level = lists;
    }
    Ok(PyList::new(py, level)?.into_any())
}

/// The one element.
pub(in crate::python) fn single_element<'py>(
    py: Python<'py>,
    tensor: &LentTensor,
) -> PyResult<Bound<'py, PyAny>> {
    if tensor.size() != 1 {
        return Err(PyValueError::new_err(format!(
            "only a tensor of one element is a number, and this one has {}",
            tensor.size()
        )));
    }
    all_elements(py, tensor)?.pop().ok_or_else(|| PyValueError::new_err("there is no element"))
}

/// Whether the one element is true.
pub(in crate::python) fn truth(py: Python<'_>, tensor: &LentTensor) -> PyResult<bool> {
    if tensor.size() != 1 {
        return Err(PyValueError::new_err(format!(
            "the truth of a tensor of {} elements is ambiguous: ask numpy.asarray(tensor).any() or .all()",
            tensor.size()
        )));
    }
    single_element(py, tensor)?.is_truthy()
}

/// The one element of a tensor without axes, if it is an integer.
pub(in crate::python) fn index<'py>(
    py: Python<'py>,
    tensor: &LentTensor,
) -> PyResult<Bound<'py, PyAny>> {
    let is_integer = matches!(tensor.dtype().code, DLDataTypeCode::INT | DLDataTypeCode::UINT);
    if !is_integer || tensor.ndim() > 0 {
        return Err(PyTypeError::new_err("only an integer tensor without axes is an index"));
    }
    single_element(py, tensor)
}

/// An error unless Python can allocate the elements and this many lists. PyO3 panics where it cannot.
///
/// The system is asked, as Python asks it, because what our allocator keeps would answer for it.
fn probe_objects(py: Python<'_>, tensor: &LentTensor, lists: usize) -> PyResult<()> {
    let numbers = tensor.size().saturating_mul(NUMBER).saturating_add(tensor.nbytes());
    let nbytes = numbers.saturating_add(lists.saturating_mul(LIST));
    if nbytes < ARENA {
        return Ok(());
    }
    // A pool of small objects has a header, and the last one is not full.
    let asked = nbytes.saturating_add(nbytes / 32).saturating_add(2 * ARENA);
    let mmap = py.import(intern!(py, "mmap"))?.getattr(intern!(py, "mmap"))?;
    let found = mmap.call1((-1, asked)).map_err(|_| Error::OutOfMemory { nbytes })?;
    found.call_method0(intern!(py, "close"))?;
    Ok(())
}

/// All elements in row-major order.
fn all_elements<'py>(py: Python<'py>, tensor: &LentTensor) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (dtype, nbytes) = (tensor.dtype(), tensor.nbytes());
    let unsupported = |way_out| {
        Err(errors::unsupported(format!(
            "elements of {dtype} are no values of Python's: {way_out}"
        )))
    };
    if dtype.lanes != 1 && dtype.bits < 8 {
        return unsupported(
            "several are in a byte, and torch.from_dlpack(x).view(torch.uint8) has the bytes",
        );
    }
    if dtype.lanes != 1 {
        return unsupported("its lanes are one more axis of a plain dtype");
    }
    let bytes = || unlocked(py, nbytes, || tensor.numbers()).map(alloc::Fresh::into_buffer);
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
    values: impl ExactSizeIterator<Item = T>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut objects = alloc::reserved(values.len())?;
    for value in values {
        objects.push(value.into_bound_py_any(py)?);
    }
    Ok(objects)
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
