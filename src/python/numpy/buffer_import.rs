//! Tensors over memory of a Python object, which is its buffer or an address that it gives. A tensor keeps the
//! object alive.
//!
//! Source: <https://docs.python.org/3/c-api/buffer.html>.
//!
//! - **L1** `PyMemoryOwner::buffer` came from a `Box`, was filled by `PyObject_GetBuffer` and has not been
//!   released. It is not moved, because exporters point into it, and it is not changed. What it points to
//!   is valid until it is released. Its content is the exporter's promise, which is checked here as far as it can be.
//! - **L2** An address that an object gave is valid as the object described it, as long as the object and
//!   the dictionary with the address live. That is the protocol's promise, which cannot be checked.
#![expect(unsafe_code, reason = "holds a Py_buffer, and makes tensors at given addresses")]

use std::ffi::{CStr, c_int};
use std::ptr::{self, NonNull};
use std::slice;

use pyo3::ffi::{self, Py_buffer, Py_ssize_t};
use pyo3::{exceptions::PyBufferError, prelude::*};

use super::item;
use crate::ffi::{DLDataType, DLDevice, DLPackFlags};
use crate::pending::{PendingException, attached};
use crate::{Error, ManagedTensor, layout, tensor::Description};

/// `PyBUF_MAX_NDIM`, and NumPy's limit.
pub(in crate::python) const MAX_NDIM: usize = 64;

/// The owner of borrowed memory; dropping it, on any thread, gives the memory back at once.
struct PyMemoryOwner {
    buffer: Option<NonNull<Py_buffer>>,
    objects: Vec<Py<PyAny>>,
}

// SAFETY: the pointers in a Py_buffer belong to no thread; it is read here (L1), and written to by
// CPython alone, when it is filled and when it is released, attached both times.
unsafe impl Send for PyMemoryOwner {}
// SAFETY: of a shared one the buffer is read, which nothing changes (L1).
unsafe impl Sync for PyMemoryOwner {}

impl Drop for PyMemoryOwner {
    fn drop(&mut self) {
        // Without an interpreter nothing can be given back. A `Py` that is dropped on a detached thread
        // would wait for the next thread that attaches, whenever that will be.
        attached(|_| {
            // SAFETY: attached until both are gone. Releasing may run Python code, and a deleter may
            // be called with an exception in flight.
            let _pending = unsafe { PendingException::set_aside_attached() };
            if let Some(buffer) = self.buffer.take() {
                // SAFETY: L1, and it is not used again.
                unsafe {
                    ffi::PyBuffer_Release(buffer.as_ptr());
                    drop(Box::from_raw(buffer.as_ptr()));
                }
            }
            self.objects.clear();
        });
    }
}

impl PyMemoryOwner {
    /// The buffer of an object, requested with `flags`. It is valid for as long as the owner lives (L1).
    fn buffer_of(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<(Self, NonNull<Py_buffer>)> {
        let buffer = NonNull::from(Box::leak(Box::new(Py_buffer::new())));
        // SAFETY: attached to Python, and the structure is ours.
        let code = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), buffer.as_ptr(), flags) };
        if code != 0 {
            // SAFETY: it came from a `Box`, and holds nothing.
            drop(unsafe { Box::from_raw(buffer.as_ptr()) });
            return Err(PyErr::fetch(object.py()));
        }
        // From here on L1, and it is released whatever happens.
        Ok((Self { buffer: Some(buffer), objects: Vec::new() }, buffer))
    }
}

/// A tensor over an object's buffer, which stays exported for as long as the tensor lives.
pub(in crate::python) fn buffer(object: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
    let (owner, view) = PyMemoryOwner::buffer_of(object, ffi::PyBUF_FULL_RO)?;
    // SAFETY: L1, the owner outlives the borrow.
    let view = unsafe { view.as_ref() };
    let overflow = |_| Error::Overflow("size in bytes");
    let refuse = |message: String| Err(PyBufferError::new_err(message));

    let ndim = usize::try_from(view.ndim).map_err(|_| Error::NegativeNdim(view.ndim))?;
    check_ndim(ndim)?;
    for (name, array) in
        [("shape", view.shape), ("strides", view.strides), ("suboffsets", view.suboffsets)]
    {
        if !array.is_aligned() {
            return refuse(format!("the {name} of the buffer are at a misaligned address"));
        }
    }
    // SAFETY: L1, each of these is NULL or has `ndim` values; they are aligned, as was checked.
    let (shape, strides, suboffsets) = unsafe {
        (values(view.shape, ndim), values(view.strides, ndim), values(view.suboffsets, ndim))
    };
    if suboffsets.is_some_and(|offsets| offsets.iter().any(|&offset| offset >= 0)) {
        return refuse(
            "the buffer has suboffsets, so its rows lie anywhere: copy it first, with \
             memoryview(x).tobytes()"
                .to_owned(),
        );
    }
    let format = if view.format.is_null() {
        c"B" // by the protocol
    } else {
        // SAFETY: L1.
        unsafe { CStr::from_ptr(view.format) }
    };
    let itemsize = usize::try_from(view.itemsize).map_err(overflow)?;
    let dtype = item::of_format(&format.to_string_lossy(), itemsize)?;
    let itemsize = dtype.item_bits(false) / 8;

    let shape = shape_of(view, shape, ndim)?;
    let strides = match strides {
        Some(strides) => layout::from_bytes(&shape, &all_wide(strides)?, itemsize)?,
        // ctypes leaves them out.
        None => layout::row_major(&shape),
    };
    let nbytes = layout::element_count(&shape)?.checked_mul(itemsize);
    if nbytes.is_none_or(|nbytes| Py_ssize_t::try_from(nbytes) != Ok(view.len)) {
        return refuse(format!(
            "the buffer says that it has {} bytes, but items of {itemsize} bytes in the shape {shape:?}",
            view.len
        ));
    }
    let spec = ArraySpec { device: DLDevice::CPU, dtype, is_padded: false, shape, strides };
    let description = describe(view.buf.cast(), view.readonly != 0, &spec);
    // SAFETY: L1, for as long as the owner lives.
    Ok(unsafe { ManagedTensor::pack(owner, &description) }?)
}

/// The memory of an array interface, described as a tensor is.
pub(in crate::python) struct ArraySpec {
    pub(in crate::python) device: DLDevice,
    pub(in crate::python) dtype: DLDataType,
    /// Whether elements of under 8 bits have a byte each.
    pub(in crate::python) is_padded: bool,
    pub(in crate::python) shape: Vec<i64>,
    pub(in crate::python) strides: Vec<i64>,
}

/// A tensor over an object's buffer. `spec` describes its bytes from `origin` on.
pub(in crate::python) fn tensor_from_buffer(
    object: &Bound<'_, PyAny>,
    origin: usize,
    spec: &ArraySpec,
) -> PyResult<ManagedTensor> {
    assert!(spec.device.is_cpu(), "a buffer is the CPU's");
    let (owner, view) = PyMemoryOwner::buffer_of(object, ffi::PyBUF_SIMPLE)?;
    // SAFETY: L1, the owner outlives the borrow.
    let view = unsafe { view.as_ref() };
    let len = usize::try_from(view.len).map_err(|_| Error::Overflow("size in bytes"))?;
    let start = view.buf.cast::<u8>().wrapping_add(origin);
    let description = describe(start, view.readonly != 0, spec);
    // SAFETY: L1: the buffer has these bytes for as long as the owner lives.
    let tensor = unsafe { ManagedTensor::within(owner, &description, origin, len) }?;
    tensor.ok_or_else(|| {
        PyBufferError::new_err(format!(
            "shape {:?} and strides {:?} reach beyond the {len} bytes of the buffer, from offset \
             {origin} on",
            spec.shape, spec.strides
        ))
    })
}

/// A tensor over memory at an address that an object gave. `objects` are kept: the object, and the
/// dictionary with the address.
///
/// # Safety
///
/// L2, for these objects.
pub(in crate::python) unsafe fn tensor_from_address(
    objects: Vec<Py<PyAny>>,
    address: usize,
    readonly: bool,
    spec: &ArraySpec,
) -> PyResult<ManagedTensor> {
    // Python passes addresses as integers.
    let description = describe(ptr::with_exposed_provenance_mut(address), readonly, spec);
    let owner = PyMemoryOwner { buffer: None, objects };
    // SAFETY: L2 for these objects, which the owner keeps.
    let tensor = unsafe { ManagedTensor::pack(owner, &description) }?;
    // The core leaves this to other devices, where NULL may be an address.
    if address == 0 && tensor.nbytes() > 0 {
        return Err(Error::NullData { nbytes: tensor.nbytes() }.into());
    }
    Ok(tensor)
}

fn describe(data: *mut u8, readonly: bool, spec: &ArraySpec) -> Description<'_> {
    let &ArraySpec { device, dtype, is_padded, ref shape, ref strides } = spec;
    let flag = |is, flag| if is { flag } else { DLPackFlags::default() };
    let flags = flag(readonly, DLPackFlags::READ_ONLY)
        .union(flag(is_padded, DLPackFlags::IS_SUBBYTE_TYPE_PADDED));
    Description { data, byte_offset: 0, device, dtype, flags, shape, strides }
}

pub(in crate::python) fn check_ndim(ndim: usize) -> PyResult<()> {
    if ndim <= MAX_NDIM {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!("{ndim} axes are more than {MAX_NDIM}")))
}

/// The values of an array, `None` if it is NULL.
///
/// # Safety
///
/// `array` is aligned, and is NULL or has `len` values that stay as they are for as long as the result is used.
unsafe fn values<'a>(array: *const Py_ssize_t, len: usize) -> Option<&'a [Py_ssize_t]> {
    // SAFETY: it is aligned, and has `len` values that stay as they are during `'a`.
    (!array.is_null()).then(|| unsafe { slice::from_raw_parts(array, len) })
}

/// The extents of a buffer; computed if the exporter left them out.
fn shape_of(
    view: &ffi::Py_buffer,
    shape: Option<&[Py_ssize_t]>,
    ndim: usize,
) -> Result<Vec<i64>, Error> {
    match (shape, ndim) {
        (Some(shape), _) => all_wide(shape),
        (None, 0) => Ok(Vec::new()),
        // The protocol allows it: one axis is as long as the buffer.
        (None, 1) => Ok(vec![wide(view.len)? / wide(view.itemsize)?.max(1)]),
        (None, _) => Err(Error::NullShape(ndim)),
    }
}

fn all_wide(sizes: &[Py_ssize_t]) -> Result<Vec<i64>, Error> {
    sizes.iter().map(|&size| wide(size)).collect()
}

fn wide(size: Py_ssize_t) -> Result<i64, Error> {
    i64::try_from(size).map_err(|_| Error::Overflow("size in bytes"))
}
