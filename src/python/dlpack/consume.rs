//! Asks a producer for its tensor, in CPU-readable memory where the CPU has to read it.

use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::types::{PyCapsule, PyType};
use pyo3::{intern, prelude::*};

use super::request::{DlDeviceArg, Request};
use super::{capsule, exchange, request};
use crate::ffi::{DLDevice, DLPackFlags, DLPackVersion};
use crate::python::advice::{Expected, of_dtype, of_elements, of_layout};
use crate::python::array::PyArray;
use crate::python::data::Data;
use crate::python::describe::{described, type_name};
use crate::python::errors::placed;
use crate::python::numpy::refusal;
use crate::python::protocols::{attribute, is_arrow};
use crate::python::runtime::{RecursionGuard, call, unlocked};
use crate::python::tensor::PyTensor;
use crate::{Error, ExportOptions, ManagedTensor};

/// A producer's capsule, and whether the producer accepted the arguments.
pub(in crate::python) struct Answer<'py> {
    pub(in crate::python) capsule: Bound<'py, PyCapsule>,
    understood: bool,
}

/// Calls `x.__dlpack__` with those arguments that are not `None`.
///
/// A producer that predates the keywords raises `TypeError` for them, and is called again without. It cannot
/// honour a keyword that it did not get: where the keyword matters, its answer is refused.
pub(in crate::python) fn ask<'py>(
    x: &Bound<'py, PyAny>,
    request: Request<'py>,
) -> PyResult<Answer<'py>> {
    let py = x.py();
    let (copy, synchronises) = (request.copy, request.stream.is_some());
    let is_newest = request.max_version == Some(DLPackVersion::CURRENT);
    let is_usual = is_newest && request.dl_device.is_none() && copy.is_none() && !synchronises;
    let _level = RecursionGuard::enter(py)?;
    let first = if is_usual { capsule::call_newest(x) } else { None };
    let (answer, understood) = if let Some(Ok(answer)) = first {
        (answer, true)
    } else {
        let method = attribute(x, intern!(py, "__dlpack__"))?;
        let Some(method) = method else { return Err(Expected::Tensor.got(x)) };
        let first = if let Some(answer) = first {
            answer
        } else {
            call(&method, Some(&request.keywords(py)?))
        };
        match first {
            // If its refusal is itself a TypeError, the second call raises it again.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let again = call(&method, None);
                let is_class = x.is_instance_of::<PyType>();
                let said = |error| if is_class { Expected::Tensor.got(x) } else { error };
                (again.map_err(said)?, false)
            }
            answer => (answer?, true),
        }
    };
    let capsule = answer.cast_into::<PyCapsule>().map_err(|error| {
        PyTypeError::new_err(format!(
            "{}.__dlpack__ returned {}, which is not a capsule",
            type_name(x),
            described(&error.into_inner())
        ))
    })?;
    if !understood && (copy == Some(false) || synchronises) {
        return Err(PyBufferError::new_err(format!(
            "{}.__dlpack__ takes no {}",
            type_name(x),
            if synchronises {
                "stream, so its work cannot be synchronised"
            } else {
                "copy=False, so it may have copied"
            }
        )));
    }
    Ok(Answer { capsule, understood })
}

/// The error of a producer, with a note where its dtype is NumPy's alone, as times, texts and objects are, its layout
/// PyTorch's, or its type Arrow's.
#[cold]
fn noted(x: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = x.py();
    let way_out = match of_layout(x) {
        Ok(Some(way_out)) => Ok(Some(way_out.to_owned())),
        _ if error.is_instance_of::<PyTypeError>(py) && is_foreign_arrow(x) => {
            of_arrow(x).map(Some)
        }
        // JAX raises the latter for integers of four bits and fewer.
        _ if error.is_instance_of::<PyBufferError>(py)
            || error.is_instance_of::<PyRuntimeError>(py) =>
        {
            match of_dtype(x, "x") {
                Ok(None) => of_elements(x).map(|way_out| way_out.map(str::to_owned)),
                way_out => way_out.map(|way_out| way_out.map(|way_out| way_out.to_string())),
            }
        }
        _ => return error,
    };
    if let Ok(Some(way_out)) = way_out {
        // The error itself matters more than its note.
        let _added = error.value(py).call_method1("add_note", (way_out,));
    }
    error
}

/// Whether it is another library's Arrow data, of which `__dlpack__` takes fewer types than `to_tensor`.
fn is_foreign_arrow(x: &Bound<'_, PyAny>) -> bool {
    let has_dlpack = || x.hasattr(intern!(x.py(), "__dlpack__"));
    !x.is_instance_of::<PyArray>() && has_dlpack().unwrap_or(false) && is_arrow(x).unwrap_or(false)
}

/// What makes a tensor of Arrow data, or why nothing does.
fn of_arrow(x: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = x.py();
    let said = Data::read(x, None)?.explain(py, &ExportOptions::default());
    Ok(match said {
        Ok(_) => {
            "it is Arrow data: to_tensor(x) makes a tensor of it, and Array(x) an Array".to_owned()
        }
        Err(refusal) => format!("it is Arrow data, and to_tensor(x) says: {}", refusal.value(py)),
    })
}

/// What the caller requests of a tensor.
#[derive(Clone, Copy)]
pub(in crate::python) struct Wanted {
    /// The device that it must be on; `None` for the one that it is on.
    pub(in crate::python) device: Option<DLDevice>,
    /// Whether it may or must be copied.
    pub(in crate::python) copy: Option<bool>,
    /// Whether memory that the CPU can read, such as pinned memory, is as good as the CPU's own.
    pub(in crate::python) host_readable_is_cpu: bool,
}

impl Wanted {
    /// The tensor of any object with `__dlpack__`, or of a capsule of either name; through the C exchange API
    /// where the object's type has it and it gives what `__dlpack__` would. The result is on the requested
    /// device, and is a copy if one was requested.
    pub(in crate::python) fn take(self, x: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
        // A table takes no options and its functions do not synchronise, so it serves requests that need neither.
        if self.copy.is_none() && self.device.is_none_or(DLDevice::is_cpu) {
            if let Some(tensor) = exchange::take(x)? {
                return Ok(tensor);
            }
        }
        self.take_by_method(x)
    }

    /// The same without the exchange API.
    pub(in crate::python) fn take_by_method(self, x: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
        if let Ok(capsule) = x.cast::<PyCapsule>() {
            return self.fulfil(x.py(), capsule::take(capsule), false);
        }
        refusal::refuse(x)?;
        let Self { copy, device: dl_device, .. } = self;
        let max_version = Some(DLPackVersion::CURRENT);
        let answer = ask(x, Request { stream: None, max_version, dl_device, copy });
        let answer = answer.map_err(|error| self.elsewhere(x, noted(x, error)))?;
        self.fulfil(x.py(), capsule::take(&answer.capsule), answer.understood)
    }

    /// The error of a producer that was asked for another device than the CPU, with its type, the device and the reason.
    fn elsewhere(self, x: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
        let py = x.py();
        let Some(device) = self.device.filter(|device| !device.is_cpu()) else { return error };
        let is_refusal = error.is_instance_of::<PyBufferError>(py)
            || error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyRuntimeError>(py);
        if !is_refusal || error.is_instance_of::<PyTypeError>(py) {
            return error;
        }
        let reason: String = error.value(py).to_string().chars().take(200).collect();
        let refusal = PyBufferError::new_err(format!(
            "{} does not copy to {device}, and says {reason:?}: copy it first, with a library of that device",
            type_name(x)
        ));
        refusal.set_cause(py, Some(error));
        refusal
    }

    /// Makes the copy or the move that the producer did not make, or returns why it cannot. What needs neither is
    /// returned as it came: a tensor is large, and a move costs time.
    #[inline]
    fn fulfil(
        self,
        py: Python<'_>,
        taken: PyResult<ManagedTensor>,
        understood: bool,
    ) -> PyResult<ManagedTensor> {
        if taken.as_ref().is_ok_and(|tensor| !self.is_fulfilled_by(tensor)) {
            return self.fulfil_here(py, taken?, understood);
        }
        taken
    }

    fn is_fulfilled_by(self, tensor: &ManagedTensor) -> bool {
        let copied = || tensor.flags().contains(DLPackFlags::IS_COPIED);
        self.copy.is_none_or(|copy| copy == copied())
            && self.device.is_none_or(|wanted| self.is_met(wanted, tensor.device()))
    }

    #[cold]
    fn fulfil_here(
        self,
        py: Python<'_>,
        tensor: ManagedTensor,
        understood: bool,
    ) -> PyResult<ManagedTensor> {
        let copied = tensor.flags().contains(DLPackFlags::IS_COPIED);
        if copied && self.copy == Some(false) {
            return Err(PyBufferError::new_err("the producer made a copy although copy=False"));
        }
        let device = tensor.device();
        let wanted = self.device.filter(|&wanted| !self.is_met(wanted, device));
        if device.is_host_readable() && wanted.is_none_or(|wanted| wanted.is_cpu()) {
            if self.copy == Some(false) {
                return Err(request::moving_copies(device));
            }
            return Ok(unlocked(py, tensor.nbytes(), || tensor.copied())?);
        }
        match wanted {
            Some(wanted) => Err(PyBufferError::new_err(format!(
                "the tensor was asked for on {wanted}, and is on {device}"
            ))),
            // Only its producer can copy this memory. It was asked to, and not every producer sets the flag.
            None if understood => Ok(tensor),
            None => Err(Error::UnreadableDevice { device }.into()),
        }
    }

    fn is_met(self, wanted: DLDevice, found: DLDevice) -> bool {
        request::same_device(wanted, found)
            || (self.host_readable_is_cpu && wanted.is_cpu() && found.is_host_readable())
    }
}

/// The result of `x.__dlpack_device__()`, if `x` has the method.
pub(in crate::python) fn device_of(x: &Bound<'_, PyAny>) -> PyResult<Option<DLDevice>> {
    match x.getattr_opt(intern!(x.py(), "__dlpack_device__"))? {
        Some(method) => Ok(Some(method.call0()?.extract::<DlDeviceArg>()?.0)),
        None => Ok(None),
    }
}

/// A producer's tensor, in memory that the CPU can read.
pub(in crate::python) fn take(
    x: &Bound<'_, PyAny>,
    device: Option<DLDevice>,
    copy: Option<bool>,
) -> PyResult<ManagedTensor> {
    if let Some(device) = device.filter(|device| !device.is_host_readable()) {
        return Err(PyBufferError::new_err(format!(
            "an Arrow array is on the CPU, so device cannot be {device}: leave it out, or take a tensor with \
             Tensor.from_dlpack"
        )));
    }
    take_by(x, device, copy, Wanted::take)
}

pub(in crate::python) fn take_by(
    x: &Bound<'_, PyAny>,
    device: Option<DLDevice>,
    copy: Option<bool>,
    by: impl FnOnce(Wanted, &Bound<'_, PyAny>) -> PyResult<ManagedTensor>,
) -> PyResult<ManagedTensor> {
    let asked = Wanted { device, copy: copy.filter(|&copy| !copy), host_readable_is_cpu: true };
    let taken = by(asked, x);
    let Some(found) = taken.as_ref().ok().map(ManagedTensor::device) else { return taken };
    if !found.is_host_readable() && device.is_none() && !x.is_instance_of::<PyCapsule>() {
        if copy == Some(false) {
            return Err(Error::UnreadableDevice { device: found }.into());
        }
        return Wanted { device: Some(DLDevice::CPU), ..asked }.take(x);
    }
    taken
}

/// A mask: a tensor, or Arrow's booleans.
pub(in crate::python) fn take_mask(mask: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
    let py = mask.py();
    let taken = if !mask.is_instance_of::<PyTensor>() && is_arrow(mask)? {
        Data::read(mask, None).and_then(|mask| mask.to_managed(py))
    } else {
        take(mask, None, None)
    };
    taken.map_err(|error| placed(py, "mask", error))
}

/// What is left of `copy`: a requested copy is made here, unless the producer made one.
pub(in crate::python) fn still_to_copy(tensor: &ManagedTensor, copy: Option<bool>) -> Option<bool> {
    copy.filter(|&copy| !(copy && tensor.flags().contains(DLPackFlags::IS_COPIED)))
}
