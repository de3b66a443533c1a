//! `__dlpack__` of our classes, with as little overhead per call as possible.
//!
//! Every exchange of a tensor calls it, and PyO3's methods spend most of their time on reading keywords. So
//! this method is registered by hand, by the vectorcall protocol: it reads the usual keywords from the caller's
//! stack, and shares memory at once in the default case. All other calls take the usual path, with its errors.
#![expect(unsafe_code, reason = "implements a method of CPython's C API")]

use std::ffi::{CStr, c_int};
use std::slice;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use pyo3::{Borrowed, PyClass, ffi};

use super::request::{CopyArg, DlDeviceArg, Request, VersionArg};
use super::{capsule, consume, request};
use crate::export::Source;
use crate::fence::fenced;
use crate::ffi::{DLDevice, DLDeviceType, DLPackVersion};
use crate::python::array::PyArray;
use crate::python::runtime::{exported, unlocked};
use crate::python::tensor::PyTensor;
use crate::tensor::{Outgoing, Vector};
use crate::{Error, ExportOptions, ManagedTensor};

/// A class with `__dlpack__`.
pub(in crate::python) trait Produces: PyClass<Frozen = True> + Sync {
    /// The docstring of the method, with its signature.
    const METHOD_DOC: &'static CStr;

    /// The memory shared as a tensor, for a consumer on the CPU that supports versions up to `newest` and passes
    /// no other options. `None` if the object cannot be shared that way.
    fn share_outgoing(&self, newest: DLPackVersion) -> Option<Outgoing>;

    /// The same, for a consumer of the legacy ABI.
    ///
    /// # Safety
    ///
    /// It goes to the consumer, and code in Rust does not borrow its memory: Python may write to it.
    unsafe fn share(&self) -> Option<ManagedTensor>;

    /// `__dlpack__` with any arguments.
    fn dlpack<'py>(&self, py: Python<'py>, request: Request<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// The descriptor of a class's `__dlpack__`.
pub(in crate::python) fn method<T: Produces>(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // Once for each class, which lives as long as the process.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"__dlpack__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call::<T> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: T::METHOD_DOC.as_ptr(),
    }));
    let class = py.get_type::<T>();
    // SAFETY: attached to Python, with a live class and a definition that is never freed.
    unsafe {
        let descriptor = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Ok(Bound::from_owned_ptr_or_err(py, descriptor)?.unbind())
    }
}

/// The keywords, in the order of [`Request`].
const NAMES: [&str; 4] = ["stream", "max_version", "dl_device", "copy"];

/// The method itself.
///
/// # Safety
///
/// F1, the vectorcall protocol: attached to Python; `slf` is a live instance of `T`, which the descriptor
/// checks; `kwnames` is NULL or a tuple of texts; `args` points to `nargs` and then as many live objects.
unsafe extern "C" fn call<T: Produces>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: F1.
    let work = || unsafe { answer::<T>(slf, args, nargs, kwnames) };
    match fenced(work) {
        Ok(answer) => answer,
        // A panic must not cross C.
        Err(_) => Python::attach(|py| {
            to_c(py, Err(PyRuntimeError::new_err("__dlpack__ panicked: this is a bug")))
        }),
    }
}

/// # Safety
///
/// F1.
unsafe fn answer<T: Produces>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: F1.
    let (py, given) = unsafe {
        let count = if kwnames.is_null() { 0 } else { ffi::PyTuple_Size(kwnames) };
        let (nargs, count) = (usize::try_from(nargs), usize::try_from(count));
        let values = match (nargs, count) {
            (Ok(0), Ok(count)) if count > 0 => slice::from_raw_parts(args, count),
            _ => &[],
        };
        (Python::assume_attached(), values)
    };
    // SAFETY: F1.
    let this = unsafe { Borrowed::from_ptr(py, slf).cast_unchecked::<T>() };
    if nargs == 0 {
        // SAFETY: F1.
        if let Some(version) = unsafe { usual(py, kwnames, given) } {
            let capsule = match version {
                Some(newest) if newest.major >= DLPackVersion::CURRENT.major => {
                    this.get().share_outgoing(newest).map(|tensor| capsule::versioned(py, tensor))
                }
                // SAFETY: it goes into a capsule.
                _ => unsafe { this.get().share() }.map(|tensor| capsule::new(py, tensor, None)),
            };
            if let Some(capsule) = capsule {
                return to_c(py, capsule);
            }
        }
    }
    // From here on PyO3 may drop references, so it must know that this thread is attached.
    Python::attach(|py| {
        // SAFETY: F1.
        let answer = unsafe { read(py, nargs, kwnames, given) }
            .and_then(|request| this.get().dlpack(py, request));
        to_c(py, answer)
    })
}

/// A new reference, or NULL with the exception set.
#[inline]
fn to_c(py: Python<'_>, answer: PyResult<Bound<'_, PyAny>>) -> *mut ffi::PyObject {
    answer.map_or_else(
        |error| {
            error.restore(py);
            std::ptr::null_mut()
        },
        Bound::into_ptr,
    )
}

fn names(py: Python<'_>) -> &[Py<PyString>; 4] {
    static INTERNED: PyOnceLock<[Py<PyString>; 4]> = PyOnceLock::new();
    INTERNED.get_or_init(py, || NAMES.map(|name| PyString::intern(py, name).unbind()))
}

/// The version, if one is given and the other arguments ask for no more than sharing with a consumer on the
/// CPU; `None` if the full path must decide.
///
/// # Safety
///
/// F1, without positional arguments.
unsafe fn usual(
    py: Python<'_>,
    kwnames: *mut ffi::PyObject,
    given: &[*mut ffi::PyObject],
) -> Option<Option<DLPackVersion>> {
    let names = names(py);
    // SAFETY: it is always there.
    let none = unsafe { ffi::Py_None() };
    let mut version = None;
    for (index, &value) in (0..).zip(given) {
        // SAFETY: F1, there are as many names as values.
        let name = unsafe { ffi::PyTuple_GetItem(kwnames, index) };
        if value == none {
            // Only whether it is one of the four matters; they are compared by identity.
            if names.iter().any(|known| known.as_ptr() == name) {
                continue;
            }
            return None;
        }
        if name == names[1].as_ptr() {
            // SAFETY: F1.
            version = Some(unsafe { version_of(py, value) }?);
        } else if name == names[2].as_ptr() {
            // SAFETY: F1.
            let (device_type, _) = unsafe { pair(value) }?;
            if c_int::try_from(device_type) != Ok(DLDeviceType::CPU.0) {
                return None;
            }
        } else {
            return None;
        }
    }
    Some(version)
}

/// A version. Consumers pass the same constant tuple each time: the first few tuples are cached, and recognised
/// by their addresses.
///
/// # Safety
///
/// As [`pair`].
unsafe fn version_of(py: Python<'_>, object: *mut ffi::PyObject) -> Option<DLPackVersion> {
    static KEPT: [PyOnceLock<(Py<PyAny>, DLPackVersion)>; 4] = [const { PyOnceLock::new() }; 4];
    let mut free = None;
    for kept in &KEPT {
        match kept.get(py) {
            Some((tuple, version)) if tuple.as_ptr() == object => return Some(*version),
            Some(_) => {}
            None => {
                free = Some(kept);
                break;
            }
        }
    }
    // SAFETY: `object` is live, and this thread attached.
    let (major, minor) = unsafe { pair(object) }?;
    let version = DLPackVersion { major: major.try_into().ok()?, minor: minor.try_into().ok()? };
    if let Some(free) = free {
        // SAFETY: `object` is live, and this thread attached. If another thread was faster, this reference is dropped.
        let tuple = unsafe { Bound::from_borrowed_ptr(py, object) };
        let _ = free.set(py, (tuple.unbind(), version));
    }
    Some(version)
}

/// A tuple of two integers.
///
/// # Safety
///
/// `object` is live, and this thread attached.
unsafe fn pair(object: *mut ffi::PyObject) -> Option<(i64, i64)> {
    // SAFETY: `object` is live, and this thread attached; items of a tuple are live. If an item is no integer, or
    // too large, the exception is dropped: the full path raises it again.
    unsafe {
        if ffi::PyTuple_CheckExact(object) == 0 || ffi::PyTuple_Size(object) != 2 {
            return None;
        }
        let read = |index| {
            let item = ffi::PyTuple_GetItem(object, index);
            if ffi::PyLong_CheckExact(item) == 0 {
                return None;
            }
            let value = ffi::PyLong_AsLongLong(item);
            if value == -1 && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(value)
        };
        Some((read(0)?, read(1)?))
    }
}

/// All arguments, each with its own error.
///
/// # Safety
///
/// F1.
unsafe fn read<'py>(
    py: Python<'py>,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
    given: &[*mut ffi::PyObject],
) -> PyResult<Request<'py>> {
    if nargs > 0 {
        return Err(PyTypeError::new_err(format!(
            "__dlpack__() takes keyword arguments only, and was given {nargs} without a keyword"
        )));
    }
    let mut values: [Option<Bound<'py, PyAny>>; 4] = [const { None }; 4];
    for (index, &value) in (0..).zip(given) {
        // SAFETY: F1, there are as many names as values.
        let (name, value) = unsafe {
            let name = ffi::PyTuple_GetItem(kwnames, index);
            (Borrowed::from_ptr(py, name), Borrowed::from_ptr(py, value))
        };
        let name = name.cast::<PyString>()?;
        let name = name.to_cow()?;
        let Some(place) = NAMES.iter().position(|known| *known == name) else {
            return Err(PyTypeError::new_err(format!(
                "__dlpack__() got an unexpected keyword argument '{name}'"
            )));
        };
        values[place] = (!value.is_none()).then(|| value.to_owned());
    }
    let [stream, max_version, dl_device, copy] = values;
    let max_version = max_version.map(|value| value.extract::<VersionArg>()).transpose()?;
    let copy = copy.map(|value| value.extract::<CopyArg>()).transpose()?;
    let dl_device = dl_device.map(|value| value.extract::<DlDeviceArg>()).transpose()?;
    Ok(Request {
        stream,
        max_version: max_version.map(|version| version.0),
        dl_device: dl_device.map(|device| device.0),
        copy: copy.map(|copy| copy.0),
    })
}

impl Produces for PyTensor {
    const METHOD_DOC: &'static CStr =
        c"__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

The tensor as a DLPack capsule; consumers call this.

Shares the memory, read-only if it was received so, unless copy=True: then the consumer gets
a writable row-major copy. A tensor on another device is exported by its producer,
which gets all the arguments. One that came as a bare capsule has no producer and takes only
stream=None; one of __cuda_array_interface__ has no work to wait for, and takes any stream.";

    fn share_outgoing(&self, newest: DLPackVersion) -> Option<Outgoing> {
        self.tensor.device().is_cpu().then(|| self.lent().into_outgoing(newest))
    }

    unsafe fn share(&self) -> Option<ManagedTensor> {
        self.tensor.device().is_cpu().then(|| self.lent())
    }

    fn dlpack<'py>(&self, py: Python<'py>, request: Request<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(producer) = &self.producer.0 {
            if self.is_part {
                // For a part, the producer makes the stream wait for the work on the whole tensor.
                let own = self.tensor.device();
                request::refuse_other_device(request.dl_device, own)?;
                if request.copy == Some(true) {
                    return Err(Error::UnreadableDevice { device: own }.into());
                }
                let max_version = request.max_version;
                let request = Request { dl_device: None, copy: None, ..request };
                consume::ask(producer.bind(py), request)?;
                return capsule::new(py, self.lent(), max_version);
            }
            return Ok(consume::ask(producer.bind(py), request)?.capsule.into_any());
        }
        let Request { stream, max_version, dl_device: device, copy } = request;
        let stream = stream.as_ref();
        if self.synchronised && !self.tensor.device().is_cpu() {
            request::check_stream(stream)?;
        } else {
            request::refuse_stream(stream, self.tensor.device())?;
        }
        let tensor = self.export(py, device, copy)?;
        capsule::new(py, tensor, max_version)
    }
}

impl PyTensor {
    /// Another tensor over the memory, for a consumer of `__dlpack__`: writable if this one is.
    fn lent(&self) -> ManagedTensor {
        // SAFETY: this file alone calls it, and hands the tensor to a consumer, or to the caller of `share`.
        unsafe { self.tensor.shared() }
    }

    fn export(
        &self,
        py: Python<'_>,
        wanted: Option<DLDevice>,
        copy: Option<bool>,
    ) -> PyResult<ManagedTensor> {
        let tensor = &self.tensor;
        let device = tensor.device();
        // Host-readable memory of another device is moved to the CPU by a copy.
        let moves = wanted.is_some_and(DLDevice::is_cpu) && !device.is_cpu();
        if moves && device.is_host_readable() {
            if copy == Some(false) {
                return Err(request::moving_copies(device));
            }
        } else {
            request::refuse_other_device(wanted, device)?;
            if copy != Some(true) {
                return Ok(self.lent());
            }
        }
        Ok(unlocked(py, tensor.nbytes(), || tensor.copied())?)
    }
}

impl Produces for PyArray {
    const METHOD_DOC: &'static CStr =
        c"__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

The array as a DLPack capsule; consumers call this.

Shares the memory, read-only, unless copy=True: then the consumer gets writable memory of its
own, as it does of booleans, which only a copy can hand over. A consumer that passes no max_version
gets a legacy capsule, which cannot say \"read-only\" and must not be written to all the same.

Raises UnsupportedError for nulls and for types without a tensor form, BufferError for a stream
or a device that is not the CPU's.";

    fn share_outgoing(&self, newest: DLPackVersion) -> Option<Outgoing> {
        self.vector().map(|vector| vector.share_outgoing(newest))
    }

    unsafe fn share(&self) -> Option<ManagedTensor> {
        self.vector().map(Vector::share)
    }

    fn dlpack<'py>(&self, py: Python<'py>, request: Request<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Request { stream, max_version, dl_device, copy } = request;
        request::refuse_stream(stream.as_ref(), DLDevice::CPU)?;
        request::refuse_other_device(dl_device, DLDevice::CPU)?;
        let options = ExportOptions::default().with_copy(copy);
        let tensor = exported(py, Source::Array(&self.array, Some(&self.field)), &options)?;
        capsule::new(py, tensor.values, max_version)
    }
}
