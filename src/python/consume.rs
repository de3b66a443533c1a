//! Asking a producer for its tensor.

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::capsule;
use super::request::{self, DeviceArg, VersionArg, described, type_name};
use crate::error::Error;
use crate::ffi::{DLDevice, DLPackFlags, DLPackVersion};
use crate::memory::ManagedTensor;

/// What to ask a producer for.
#[derive(Clone, Copy, Default)]
pub(super) struct Request {
    /// Where the tensor shall be; `None` for where it is.
    pub(super) device: Option<DLDevice>,
    /// Whether it may or must be copied.
    pub(super) copy: Option<bool>,
}

impl Request {
    /// The tensor of any object with `__dlpack__`, or of a capsule of either name. If it comes back at
    /// all, it is on the device that was asked for, and copied if that was asked for.
    pub(super) fn take(self, x: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
        if let Ok(capsule) = x.cast::<PyCapsule>() {
            return self.fulfil(capsule::take(capsule)?, false);
        }
        let Some(method) = x.getattr_opt(intern!(x.py(), "__dlpack__"))? else {
            return Err(PyTypeError::new_err(format!(
                "expected an object with __dlpack__ or a DLPack capsule, got {}",
                type_name(x)
            )));
        };
        let version = Some(VersionArg(DLPackVersion::CURRENT));
        let device = self.device.map(DeviceArg);
        let keywords = request::keywords(x.py(), None, version, device, self.copy)?;
        let (answer, understood) = match method.call((), Some(&keywords)) {
            Ok(answer) => (answer, true),
            // A producer from before the keywords, or one whose refusal is a TypeError: it says it again.
            Err(error) if error.is_instance_of::<PyTypeError>(x.py()) => (method.call0()?, false),
            Err(error) => return Err(error),
        };
        let capsule = answer.cast_into::<PyCapsule>().map_err(|error| {
            PyTypeError::new_err(format!(
                "{}.__dlpack__ returned {}, which is not a capsule",
                type_name(x),
                described(&error.into_inner())
            ))
        })?;
        let tensor = capsule::take(&capsule)?;
        if !understood && self.copy == Some(false) {
            return Err(PyBufferError::new_err(format!(
                "{}.__dlpack__ does not take copy=False, so nobody can promise that it did not copy",
                type_name(x)
            )));
        }
        self.fulfil(tensor, understood)
    }

    /// Does here what the producer left undone, or says why not. `understood`: the producer was told
    /// what is wanted.
    fn fulfil(self, tensor: ManagedTensor, understood: bool) -> PyResult<ManagedTensor> {
        let copied = tensor.flags().contains(DLPackFlags::IS_COPIED);
        if copied && self.copy == Some(false) {
            return Err(PyBufferError::new_err("the producer made a copy although copy=False"));
        }
        let device = tensor.device();
        let elsewhere = self.device.is_some_and(|wanted| wanted != device);
        let uncopied = self.copy == Some(true) && !copied;
        if !elsewhere && !uncopied {
            return Ok(tensor);
        }
        let onto_cpu = self.device.is_none_or(|wanted| wanted == DLDevice::CPU);
        if device.is_host_readable() && onto_cpu && self.copy != Some(false) {
            return Ok(tensor.copied()?);
        }
        if elsewhere {
            let wanted = self.device.unwrap_or(DLDevice::CPU);
            return Err(PyBufferError::new_err(format!(
                "the tensor was asked for on {wanted}, and is on {device}"
            )));
        }
        if understood {
            // Memory that only its producer can copy: it was told to, and not every one sets the flag.
            return Ok(tensor);
        }
        Err(Error::UnreadableDevice { device }.into())
    }
}
