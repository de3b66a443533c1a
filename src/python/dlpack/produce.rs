//! `__dlpack__` of our classes; `fastcall` reads the keywords.

use std::ffi::CStr;

use pyo3::prelude::*;

use super::method::Produces;
use super::request::Request;
use super::{capsule, consume, request};
use crate::ffi::{DLDevice, DLPackVersion};
use crate::memory::{Outgoing, Vector};
use crate::python::array::PyArray;
use crate::python::runtime::{exported, unlocked};
use crate::python::tensor::PyTensor;
use crate::{Error, ExportOptions, ManagedTensor, export::Source};

impl Produces for PyTensor {
    const METHOD_DOC: &'static CStr =
        c"__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

The tensor as a DLPack capsule; consumers call this.

Shares the memory, read-only if it was received so, unless copy=True: then the consumer gets
writable row-major memory of its own. A tensor on another device is exported by its producer,
which gets all the arguments. One that came as a bare capsule has no producer and takes only
stream=None; one of __cuda_array_interface__ has no work to wait for, and takes any stream.";

    fn share_outgoing(&self, newest: DLPackVersion) -> Option<Outgoing> {
        self.tensor.device().is_cpu().then(|| self.shared().into_outgoing(newest))
    }

    fn share(&self) -> Option<ManagedTensor> {
        self.tensor.device().is_cpu().then(|| self.shared())
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
                return capsule::new(py, self.shared(), max_version);
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
                return Ok(self.shared());
            }
        }
        Ok(unlocked(py, tensor.nbytes(), || tensor.read(ManagedTensor::copied))?)
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

    fn share(&self) -> Option<ManagedTensor> {
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
