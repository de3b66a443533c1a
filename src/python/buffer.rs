//! The buffer protocol of `Tensor`.
//!
//! Source: <https://docs.python.org/3/c-api/buffer.html>; format characters are those of the `struct`
//! module, with `Z` for complex as NumPy and PEP 3118 have it.
#![expect(unsafe_code, reason = "fills and frees a Py_buffer")]

use std::ffi::{CStr, c_int, c_long};
use std::ptr::{self, NonNull};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi::{self, Py_buffer, Py_ssize_t};
use pyo3::prelude::*;

use super::tensor::PyTensor;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::layout;
use crate::memory::ManagedTensor;

/// CPython's limit, `PyBUF_MAX_NDIM`.
const MAX_NDIM: usize = 64;

/// Fills `view` as `flags` ask; it then owns a reference to the tensor, which keeps the memory.
///
/// # Safety
///
/// B1: the contract of `bf_getbuffer`: `view` is NULL, or a `Py_buffer` that is ours to fill.
pub(super) unsafe fn fill(
    tensor: Bound<'_, PyTensor>,
    view: *mut Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("view is NULL"));
    }
    // SAFETY: B1. NULL means "not filled", should the next line fail.
    unsafe { (*view).obj = ptr::null_mut() };
    let answer = Answer::new(tensor.get().managed(), flags)?;
    let has = |flag| flags & flag == flag;
    // NULL if it was not requested, and if there are no axes.
    let given = |wanted: bool, values: &[Py_ssize_t]| {
        if wanted && !values.is_empty() { values.as_ptr().cast_mut() } else { ptr::null_mut() }
    };
    let Extents { shape, strides } = &*answer.extents;
    let format = if has(ffi::PyBUF_FORMAT) { answer.format.as_ptr() } else { ptr::null() };
    let (shape, strides) =
        (given(has(ffi::PyBUF_ND), shape), given(has(ffi::PyBUF_STRIDES), strides));
    // SAFETY: B1, and the fields are valid for as long as the reference is held (I2).
    unsafe {
        (*view).buf = answer.start.cast();
        (*view).len = answer.nbytes;
        (*view).itemsize = answer.itemsize;
        (*view).readonly = c_int::from(answer.readonly);
        (*view).ndim = answer.ndim;
        (*view).format = format.cast_mut();
        (*view).shape = shape;
        (*view).strides = strides;
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = Box::into_raw(answer.extents).cast();
        (*view).obj = tensor.into_ptr();
    }
    Ok(())
}

/// Frees what `fill` allocated.
///
/// # Safety
///
/// B2: the contract of `bf_releasebuffer`: `view` was filled by [`fill`], and is released once.
pub(super) unsafe fn release(view: *mut Py_buffer) {
    // SAFETY: B2.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Extents>()) });
}

/// The arrays that a `Py_buffer` points to; it owns them through `internal`.
struct Extents {
    /// In elements.
    shape: Box<[Py_ssize_t]>,
    /// In bytes.
    strides: Box<[Py_ssize_t]>,
}

/// The contents of a `Py_buffer`, computed before any of it is written.
struct Answer {
    start: *mut u8,
    nbytes: Py_ssize_t,
    itemsize: Py_ssize_t,
    ndim: c_int,
    readonly: bool,
    format: &'static CStr,
    extents: Box<Extents>,
}

impl Answer {
    fn new(tensor: &ManagedTensor, flags: c_int) -> PyResult<Self> {
        let has = |flag| flags & flag == flag;
        let refuse = |message: String| Err(PyBufferError::new_err(message));
        let (device, dtype) = (tensor.device(), tensor.dtype());
        if !device.is_host_readable() {
            return Err(Error::UnreadableDevice { device }.into());
        }
        let (Some(format), Some(itemsize)) = (format(dtype), tensor.itemsize()) else {
            return refuse(format!("dtype {dtype} has no buffer format: use from_dlpack"));
        };
        let readonly = tensor.is_read_only();
        if readonly && has(ffi::PyBUF_WRITABLE) {
            return refuse("the tensor is read-only".to_owned());
        }
        if tensor.ndim() > MAX_NDIM {
            return refuse(format!(
                "{} axes are more than the {MAX_NDIM} of a buffer",
                tensor.ndim()
            ));
        }
        let (rows, columns) = (tensor.is_contiguous(), is_column_major(tensor));
        let contiguity = [
            (ffi::PyBUF_C_CONTIGUOUS, rows, "row-major"),
            (ffi::PyBUF_F_CONTIGUOUS, columns, "column-major"),
            (ffi::PyBUF_ANY_CONTIGUOUS, rows || columns, "contiguous"),
        ];
        for (flag, holds, name) in contiguity {
            if has(flag) && !holds {
                return refuse(format!("the tensor is not {name}"));
            }
        }
        if !has(ffi::PyBUF_STRIDES) && !rows {
            return refuse("the tensor is not row-major, and no strides were asked for".to_owned());
        }
        // A buffer's address is not NULL, even if it is empty.
        let start =
            if tensor.data().is_null() { NonNull::dangling().as_ptr() } else { tensor.data() };
        let fits = |_| Error::Overflow("size in bytes");
        Ok(Self {
            start,
            nbytes: tensor.nbytes().try_into().map_err(fits)?,
            itemsize: itemsize.try_into().map_err(fits)?,
            ndim: tensor.ndim().try_into().map_err(fits)?,
            readonly,
            format,
            extents: Box::new(extents(tensor, itemsize)?),
        })
    }
}

fn is_column_major(tensor: &ManagedTensor) -> bool {
    let reversed = |values: &[i64]| values.iter().rev().copied().collect::<Vec<_>>();
    let (shape, strides) = (reversed(tensor.shape()), reversed(&tensor.strides()));
    layout::row_major_obstacle(&shape, &strides).is_none()
}

/// Shape, and strides in bytes; strides that have no meaning are replaced by valid ones.
fn extents(tensor: &ManagedTensor, itemsize: usize) -> Result<Extents, Error> {
    let overflow = Error::Overflow("span of strides");
    let strides = if tensor.size() == 0 {
        layout::row_major(tensor.shape()).into()
    } else {
        tensor.strides()
    };
    let itemsize = Py_ssize_t::try_from(itemsize).map_err(|_| overflow.clone())?;
    let bytes = |(&extent, &stride): (&i64, &i64)| match extent {
        1 => Some(itemsize),
        _ => Py_ssize_t::try_from(stride).ok()?.checked_mul(itemsize),
    };
    Ok(Extents {
        shape: tensor
            .shape()
            .iter()
            .map(|&extent| Py_ssize_t::try_from(extent).map_err(|_| overflow.clone()))
            .collect::<Result<_, _>>()?,
        strides: tensor
            .shape()
            .iter()
            .zip(strides.iter())
            .map(|axis| bytes(axis).ok_or(overflow.clone()))
            .collect::<Result<_, _>>()?,
    })
}

fn format(dtype: DLDataType) -> Option<&'static CStr> {
    // NumPy has a type for each of C's, and its int64 is C's long where that has 64 bits: "q" would be
    // numpy.longlong, which equals it and is another class.
    const LONG: (&CStr, &CStr) = if size_of::<c_long>() == 8 { (c"l", c"L") } else { (c"q", c"Q") };
    const FORMATS: &[(DLDataType, &CStr)] = &[
        (DLDataType::INT8, c"b"),
        (DLDataType::INT16, c"h"),
        (DLDataType::INT32, c"i"),
        (DLDataType::INT64, LONG.0),
        (DLDataType::UINT8, c"B"),
        (DLDataType::UINT16, c"H"),
        (DLDataType::UINT32, c"I"),
        (DLDataType::UINT64, LONG.1),
        (DLDataType::FLOAT16, c"e"),
        (DLDataType::FLOAT32, c"f"),
        (DLDataType::FLOAT64, c"d"),
        (DLDataType::BOOL, c"?"),
        (DLDataType::scalar(DLDataTypeCode::COMPLEX, 64), c"Zf"),
        (DLDataType::scalar(DLDataTypeCode::COMPLEX, 128), c"Zd"),
    ];
    FORMATS.iter().find(|(known, _)| *known == dtype).map(|(_, format)| *format)
}
