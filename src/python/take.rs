//! Takes a producer's tensor in CPU-readable memory.

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::consume::Wanted;
use super::error::placed;
use super::protocols::is_arrow;
use super::table::Data;
use super::tensor::PyTensor;
use crate::error::Error;
use crate::ffi::{DLDevice, DLPackFlags};
use crate::memory::ManagedTensor;

/// A producer's tensor, in memory that the CPU can read.
pub(super) fn take(
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

pub(super) fn take_by(
    x: &Bound<'_, PyAny>,
    device: Option<DLDevice>,
    copy: Option<bool>,
    by: impl FnOnce(Wanted, &Bound<'_, PyAny>) -> PyResult<ManagedTensor>,
) -> PyResult<ManagedTensor> {
    let asked = Wanted { device, copy: copy.filter(|&copy| !copy), host_readable_is_cpu: true };
    let tensor = by(asked, x)?;
    let readable = tensor.device().is_host_readable();
    if !readable && device.is_none() && !x.is_instance_of::<PyCapsule>() {
        if copy == Some(false) {
            return Err(Error::UnreadableDevice { device: tensor.device() }.into());
        }
        return Wanted { device: Some(DLDevice::CPU), ..asked }.take(x);
    }
    Ok(tensor)
}

/// A mask: a tensor, or Arrow's booleans.
pub(super) fn take_mask(mask: &Bound<'_, PyAny>) -> PyResult<ManagedTensor> {
    let py = mask.py();
    let taken = if !mask.is_instance_of::<PyTensor>() && is_arrow(mask)? {
        Data::read(mask, None).and_then(|mask| mask.to_managed(py))
    } else {
        take(mask, None, None)
    };
    taken.map_err(|error| placed(py, "mask", error))
}

/// What is left of `copy`: a requested copy is made here, unless the producer made one.
pub(super) fn still_to_copy(tensor: &ManagedTensor, copy: Option<bool>) -> Option<bool> {
    copy.filter(|&copy| !(copy && tensor.flags().contains(DLPackFlags::IS_COPIED)))
}
