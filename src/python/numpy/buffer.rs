//! The buffer protocol of `Tensor`.
//!
//! Source: <https://docs.python.org/3/c-api/buffer.html>; format characters are those of the `struct`
//! module, with `Z` for complex as NumPy and PEP 3118 have it.
#![expect(unsafe_code, reason = "fills and frees a Py_buffer")]

use std::ffi::{CStr, c_int};
use std::ptr::{self, NonNull};

use pyo3::ffi::{self, Py_buffer, Py_ssize_t};
use pyo3::{exceptions::PyBufferError, prelude::*};

use super::buffer_import::MAX_NDIM;
use super::item;
use crate::python::lent_tensor::LentTensor;
use crate::python::tensor::PyTensor;
use crate::{Error, layout};

/// Fills `view` as `flags` ask; it then owns a reference to the tensor, which keeps the memory.
///
/// # Safety
///
/// B1: the contract of `bf_getbuffer`: `view` is NULL, or a `Py_buffer` that is ours to fill.
pub(in crate::python) unsafe fn fill(
    tensor: Bound<'_, PyTensor>,
    view: *mut Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("view is NULL"));
    }
    // SAFETY: B1. NULL means "not filled", should the next line fail.
    unsafe { (*view).obj = ptr::null_mut() };
    let this = &tensor.get().tensor;
    let (format, itemsize) = checked(this, flags)?;
    let fits = |_| Error::Overflow("size in bytes");
    let len = this.nbytes().try_into().map_err(fits)?;
    let ndim = this.ndim().try_into().map_err(fits)?;
    let readonly = this.is_read_only().into();
    let extents = Box::new(extents(this, itemsize)?);
    // A buffer's address is not NULL, even if it is empty.
    let start = if this.data().is_null() { NonNull::dangling().as_ptr() } else { this.data() };
    let has = |flag| flags & flag == flag;
    // NULL if it was not requested, and if there are no axes.
    let given = |wanted: bool, values: &[Py_ssize_t]| {
        if wanted && !values.is_empty() { values.as_ptr().cast_mut() } else { ptr::null_mut() }
    };
    let format = if has(ffi::PyBUF_FORMAT) { format.as_ptr() } else { ptr::null() };
    let shape = given(has(ffi::PyBUF_ND), &extents.shape);
    let strides = given(has(ffi::PyBUF_STRIDES), &extents.strides);
    // SAFETY: B1, and the fields are valid for as long as the reference is held (I2).
    unsafe {
        (*view).buf = start.cast();
        (*view).len = len;
        (*view).itemsize = itemsize;
        (*view).readonly = readonly;
        (*view).ndim = ndim;
        (*view).format = format.cast_mut();
        (*view).shape = shape;
        (*view).strides = strides;
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = Box::into_raw(extents).cast();
        (*view).obj = tensor.into_ptr();
    }
    Ok(())
}

/// Frees what `fill` allocated.
///
/// # Safety
///
/// B2: the contract of `bf_releasebuffer`: `view` was filled by [`fill`], and is released once.
pub(in crate::python) unsafe fn release(view: *mut Py_buffer) {
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

/// The format and the item size of a tensor's buffer, if it has one of the kind that `flags` ask for.
fn checked(tensor: &LentTensor, flags: c_int) -> PyResult<(&'static CStr, Py_ssize_t)> {
    let has = |flag| flags & flag == flag;
    let refuse = |message: String| Err(PyBufferError::new_err(message));
    let (device, dtype) = (tensor.device(), tensor.dtype());
    if !device.is_host_readable() {
        return Err(Error::UnreadableDevice { device }.into());
    }
    let (Some(format), Some(itemsize)) = (item::format_of(dtype), tensor.itemsize()) else {
        return refuse(format!("dtype {dtype} has no buffer format: use from_dlpack"));
    };
    if tensor.is_read_only() && has(ffi::PyBUF_WRITABLE) {
        return refuse("the tensor is read-only".to_owned());
    }
    if tensor.ndim() > MAX_NDIM {
        return refuse(format!("{} axes are more than the {MAX_NDIM} of a buffer", tensor.ndim()));
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
    let itemsize = itemsize.try_into().map_err(|_| Error::Overflow("size in bytes"))?;
    Ok((format, itemsize))
}

fn is_column_major(tensor: &LentTensor) -> bool {
    let reversed = |values: &[i64]| values.iter().rev().copied().collect::<Vec<_>>();
    let (shape, strides) = (reversed(tensor.shape()), reversed(&tensor.strides()));
    layout::row_major_obstacle(&shape, &strides).is_none()
}

/// Shape, and strides in bytes; strides that have no meaning are replaced by valid ones.
fn extents(tensor: &LentTensor, itemsize: Py_ssize_t) -> Result<Extents, Error> {
    let overflow = Error::Overflow("span of strides");
    let strides = if tensor.size() == 0 {
        layout::row_major(tensor.shape()).into()
    } else {
        tensor.strides()
    };
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
