//! The table of `Array` and `Tensor`.
//!
//! The header's requirements on callers of these functions, which cannot be checked:
//!
//! - **X1** All but the allocator are called attached to Python, with no exception set.
//! - **X2** A pointer to an object is NULL or a live object. A pointer for a result is NULL or good for
//!   writing it.
//! - **X3** A `DLTensor` that was filled in is used only while the object that it came from lives.
//!   Its pointers are into the object's own tensor, or into the one in its [`BorrowedTensor`].
//! - **X4** No holder of a pointer to the table writes to it.
#![expect(unsafe_code, reason = "is called from C")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::{panic::PanicException, prelude::*, types::PyCapsule};

use super::NAME;
use crate::export::{self, Source};
use crate::fence::fenced;
use crate::ffi::{
    DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackSetError, DLPackVersion, DLTensor,
};
use crate::python::array::PyArray;
use crate::python::describe::described;
use crate::python::dlpack::method::Produces;
use crate::python::errors::Asked;
use crate::python::runtime::exported;
use crate::python::tensor::PyTensor;
use crate::{CopyPolicy, Error, ExportOptions, ManagedTensor};

struct ExchangeApi(DLPackExchangeAPI);

// SAFETY: X4.
unsafe impl Sync for ExchangeApi {}

static API: ExchangeApi = ExchangeApi(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader { version: DLPackVersion::CURRENT, prev_api: ptr::null_mut() },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(from_py_object),
    managed_tensor_to_py_object_no_sync: Some(to_py_object),
    dltensor_from_py_object_no_sync: Some(dltensor_from_py_object),
    current_work_stream: Some(current_work_stream),
});

/// The value of `__dlpack_c_exchange_api__`.
pub(in crate::python) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let table = NonNull::from(&API.0).cast();
    // SAFETY: X4; the table is static, and there is nothing to free.
    unsafe { PyCapsule::new_with_pointer(py, table, NAME) }
}

unsafe extern "C" fn from_py_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    // SAFETY: X1, X2.
    unsafe {
        clear(out);
        answer(out, |py| managed(&*borrowed(py, &object)?))
    }
}

unsafe extern "C" fn to_py_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: X1, X2; the caller's tensor is truthful, and given up if it is taken, as the header says.
    unsafe {
        clear(out);
        answer(out, |py| Ok(wrapped(py, tensor)?.into_ptr().cast()))
    }
}

unsafe extern "C" fn dltensor_from_py_object(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: X1, X2; the user of the result keeps X3.
    unsafe { answer(out, |py| described_by(&*borrowed(py, &object)?)) }
}

unsafe extern "C" fn current_work_stream(
    device_type: DLDeviceType,
    device_id: i32,
    out: *mut *mut c_void,
) -> c_int {
    let device = DLDevice { device_type, device_id };
    // SAFETY: X1, X2.
    unsafe { answer(out, |_py| stream_of(device)) }
}

unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int {
    // SAFETY: X2 for `out`, and the promise of `allocated`; `set_error` takes strings that end with 0.
    unsafe {
        clear(out);
        let no_out = out.is_null() || !out.is_aligned();
        let work =
            || if no_out { Err(CError::new(c"BufferError", NO_OUT)) } else { allocated(prototype) };
        match fenced(work).unwrap_or_else(|words| Err(CError::new(c"SystemError", words))) {
            Ok(tensor) => {
                out.write(tensor.into_raw());
                0
            }
            Err(CError { kind, message }) => {
                if let Some(set_error) = set_error {
                    set_error(error_ctx, kind.as_ptr(), message.as_ptr());
                }
                -1
            }
        }
    }
}

/// How a failure without Python is reported to C: an exception's name, and a message.
struct CError {
    kind: &'static CStr,
    message: CString,
}

impl CError {
    fn new(kind: &'static CStr, message: impl Into<Vec<u8>>) -> Self {
        Self { kind, message: CString::new(message).unwrap_or_default() }
    }
}

impl From<Error> for CError {
    fn from(error: Error) -> Self {
        let is_memory = matches!(error, Error::OutOfMemory { .. });
        let kind = if is_memory { c"MemoryError" } else { c"BufferError" };
        Self::new(kind, Asked::protocol().message(&error, None))
    }
}

const NO_OUT: &str = "the pointer for the result is NULL or misaligned";

/// # Safety
///
/// `prototype` is NULL, or as [`ManagedTensor::like`] asks.
unsafe fn allocated(prototype: *const DLTensor) -> Result<ManagedTensor, CError> {
    if prototype.is_null() {
        return Err(CError::new(c"BufferError", "the prototype is NULL"));
    }
    // SAFETY: it is not NULL, so it can be read, and so can the extents at its `shape`.
    let (device, tensor) = unsafe {
        let device = (&raw const (*prototype).device).read_unaligned();
        (device, device.is_cpu().then(|| ManagedTensor::like(prototype)))
    };
    let message = || format!("cannot allocate on {device}, only on the CPU");
    Ok(tensor.ok_or_else(|| CError::new(c"BufferError", message()))??)
}

/// Writes NULL, for a result that may fail.
///
/// # Safety
///
/// X2.
unsafe fn clear<T>(out: *mut *mut T) {
    if !out.is_null() && out.is_aligned() {
        // SAFETY: X2.
        unsafe { out.write(ptr::null_mut()) };
    }
}

/// Writes what `work` makes and returns 0; or sets the exception and returns -1. Without a valid `out`, `work`
/// is not called.
///
/// # Safety
///
/// X1, X2.
unsafe fn answer<T>(out: *mut T, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> c_int {
    // SAFETY: X1, until this returns.
    let py = unsafe { Python::assume_attached() };
    if out.is_null() || !out.is_aligned() {
        PyBufferError::new_err(NO_OUT).restore(py);
        return -1;
    }
    let made = fenced(|| work(py)).unwrap_or_else(|words| Err(PanicException::new_err(words)));
    match made {
        Ok(made) => {
            // SAFETY: X2.
            unsafe { out.write(made) };
            0
        }
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// The object at a pointer, borrowed for as long as the call.
///
/// # Safety
///
/// X2.
unsafe fn borrowed<'a, 'py>(
    py: Python<'py>,
    object: &'a *mut c_void,
) -> PyResult<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: X2; NULL is an error.
    unsafe { Borrowed::from_ptr_or_opt(py, object.cast()) }
        .ok_or_else(|| PyTypeError::new_err("expected an Array or a Tensor, got NULL"))
}

/// The tensor that `__dlpack__` exports without arguments; on another device the tensor is shared without
/// synchronisation.
fn managed(object: &Bound<'_, PyAny>) -> PyResult<*mut DLManagedTensorVersioned> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        // SAFETY: it goes to the consumer that calls the table.
        return Ok(unsafe { tensor.get().tensor.shared() }.into_raw());
    }
    let Ok(array) = object.cast::<PyArray>() else { return Err(wrong_type(object)) };
    let array = array.get();
    if let Some(shared) = array.share_outgoing(DLPackVersion::CURRENT) {
        return Ok(shared.into_raw());
    }
    let source = Source::Array(array.array(), Some(array.field()));
    Ok(exported(object.py(), source, &ExportOptions::default())?.values.into_raw())
}

/// A `DLTensor` whose memory, shape and strides belong to the object (X3).
fn described_by(object: &Bound<'_, PyAny>) -> PyResult<DLTensor> {
    let descriptor = if let Ok(tensor) = object.cast::<PyTensor>() {
        let this = tensor.get();
        if let Some(description) = this.tensor.dl_tensor() {
            return Ok(description);
        }
        // SAFETY: the object keeps it, and its descriptor alone goes to the consumer that calls the table.
        this.borrowed.descriptor(|| Ok(unsafe { this.tensor.shared() }))?
    } else if let Ok(array) = object.cast::<PyArray>() {
        let PyArray { array, field, borrowed } = array.get();
        let options = ExportOptions::default().with_copy(CopyPolicy::Never);
        borrowed.descriptor(|| Ok(export::to_dlpack(array, field, &options)?))?
    } else {
        return Err(wrong_type(object));
    };
    descriptor.ok_or_else(|| PyBufferError::new_err("a tensor of ours has strides"))
}

fn wrong_type(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("expected an Array or a Tensor, got {}", described(object)))
}

/// A new `Tensor` that owns `tensor`. On failure the tensor is unchanged, and the caller deletes it.
///
/// # Safety
///
/// As [`ManagedTensor::from_raw_unless_refused`].
unsafe fn wrapped(
    py: Python<'_>,
    tensor: *mut DLManagedTensorVersioned,
) -> PyResult<Bound<'_, PyTensor>> {
    // SAFETY: the tensor is truthful, and given up only on success.
    let tensor = Arc::new(unsafe { ManagedTensor::from_raw_unless_refused(tensor) }?);
    // SAFETY: it came through C; this function only counts its owners.
    let object = unsafe { PyTensor::received(Arc::clone(&tensor)) };
    Bound::new(py, object).inspect_err(|_| {
        // It has no other owner: the object that could not be made has been dropped.
        let _forgotten = Arc::into_inner(tensor).map(ManagedTensor::forget);
    })
}

/// This crate queues no work. NULL says so for devices that the CPU can read.
fn stream_of(device: DLDevice) -> PyResult<*mut c_void> {
    if device.is_host_readable() {
        return Ok(ptr::null_mut());
    }
    Err(PyBufferError::new_err(format!("arrow_dlpack queues no work on {device}")))
}
