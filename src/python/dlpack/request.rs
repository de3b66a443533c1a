//! The keyword arguments of `__dlpack__` and `from_dlpack`, as the array API standard has them.
//!
//! A wrong argument is a `TypeError` that names it; a valid one that cannot be met is a `BufferError`, never a
//! `TypeError`, because consumers retry after a `TypeError` without keywords, which would lose `copy=False`.

use pyo3::exceptions::PyBufferError;
use pyo3::{intern, prelude::*, types::PyDict};

use crate::ffi::{DLDevice, DLDeviceType, DLPackVersion};
use crate::python::describe::{argument, described, wrong};

argument!(VersionArg(DLPackVersion) = version);

/// `max_version`: a pair of integers from 0 on.
fn version(object: &Bound<'_, PyAny>) -> PyResult<DLPackVersion> {
    let (major, minor) = object
        .extract::<(u32, u32)>()
        .map_err(|_| wrong(object, "max_version must be a tuple (major, minor)"))?;
    Ok(DLPackVersion { major, minor })
}

argument!(CopyArg(bool), "copy must be True, False or None");
argument!(AddressArg(usize), "address must be an integer from 0 to 2**64 - 1");

argument!(DeviceArg(DLDevice) = device);

/// `device`: "cpu", "cuda:0" and their like, an object whose `str` is one, such as PyTorch's and JAX's devices,
/// or a DLPack pair.
fn device(object: &Bound<'_, PyAny>) -> PyResult<DLDevice> {
    if let Ok((device_type, device_id)) = object.extract::<(i32, i32)>() {
        return Ok(DLDevice { device_type: DLDeviceType(device_type), device_id });
    }
    // The `str` of a number, a list or None never names a device.
    let text = object.str()?.to_string();
    device_of(&text).ok_or_else(|| {
        wrong(
            object,
            "device must be \"cpu\", \"cuda:0\" or another device's name and number, a device of \
             PyTorch's or JAX's, or a tuple (device_type, device_id) of DLPack",
        )
    })
}

/// The device of a name and a number, which defaults to 0.
fn device_of(text: &str) -> Option<DLDevice> {
    let (name, id) = text.split_once(':').unwrap_or((text, "0"));
    let digits = !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit());
    let device_type = match name {
        "gpu" => DLDeviceType::CUDA,
        "hip" => DLDeviceType::ROCM,
        "mps" => DLDeviceType::METAL,
        "xpu" => DLDeviceType::ONE_API,
        name => DLDeviceType::ALL.iter().find(|(kind, _)| kind.name() == Some(name))?.0,
    };
    let device_id = if digits { id.parse().ok()? } else { return None };
    Some(DLDevice { device_type, device_id })
}

argument!(DlDeviceArg(DLDevice) = dl_device);

/// `dl_device`: a pair `(device_type, device_id)`, as the array API has it, or "cpu".
fn dl_device(object: &Bound<'_, PyAny>) -> PyResult<DLDevice> {
    if object.extract::<&str>().is_ok_and(|name| name == "cpu") {
        return Ok(DLDevice::CPU);
    }
    let (device_type, device_id) = object
        .extract::<(i32, i32)>()
        .map_err(|_| wrong(object, "device must be \"cpu\" or a tuple (device_type, device_id)"))?;
    Ok(DLDevice { device_type: DLDeviceType(device_type), device_id })
}

/// The arguments of `__dlpack__`.
pub(in crate::python) struct Request<'py> {
    pub(in crate::python) stream: Option<Bound<'py, PyAny>>,
    pub(in crate::python) max_version: Option<DLPackVersion>,
    pub(in crate::python) dl_device: Option<DLDevice>,
    pub(in crate::python) copy: Option<bool>,
}

impl<'py> Request<'py> {
    /// The arguments that are not `None`.
    pub(in crate::python) fn keywords(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { stream, max_version, dl_device, copy } = self;
        let keywords = PyDict::new(py);
        if let Some(stream) = stream {
            keywords.set_item(intern!(py, "stream"), stream)?;
        }
        if let Some(DLPackVersion { major, minor }) = max_version {
            keywords.set_item(intern!(py, "max_version"), (major, minor))?;
        }
        if let Some(DLDevice { device_type, device_id }) = dl_device {
            keywords.set_item(intern!(py, "dl_device"), (device_type.0, device_id))?;
        }
        if let Some(copy) = copy {
            keywords.set_item(intern!(py, "copy"), copy)?;
        }
        Ok(keywords)
    }
}

/// Refuses a stream: the CPU has none, and only the producer can synchronise with another device.
pub(in crate::python) fn refuse_stream(
    stream: Option<&Bound<'_, PyAny>>,
    device: DLDevice,
) -> PyResult<()> {
    match stream {
        None => Ok(()),
        Some(stream) => Err(PyBufferError::new_err(format!(
            "stream must be None for memory on {device}{}, got {}",
            if device.is_cpu() { "" } else { " without its producer" },
            described(stream)
        ))),
    }
}

/// Accepts any valid stream, because there is nothing to wait for. The standard allows integers from -1 on, and
/// rules out CUDA's 0, which is ambiguous.
pub(in crate::python) fn check_stream(stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let is_stream = |stream: &Bound<'_, PyAny>| {
        stream.extract::<i64>().is_ok_and(|stream| stream >= -1 && stream != 0)
    };
    match stream {
        Some(stream) if !is_stream(stream) => {
            Err(PyBufferError::new_err(format!("there is no stream {}", described(stream))))
        }
        _ => Ok(()),
    }
}

/// Whether two devices are the same one; there is one CPU, whatever its number.
pub(in crate::python) fn same_device(one: DLDevice, other: DLDevice) -> bool {
    one == other || (one.is_cpu() && other.is_cpu())
}

/// Refuses a device other than the one that the memory is on.
pub(in crate::python) fn refuse_other_device(
    wanted: Option<DLDevice>,
    device: DLDevice,
) -> PyResult<()> {
    match wanted {
        Some(wanted) if !same_device(wanted, device) => {
            let way_out = if wanted.is_cpu() { ": copy it to the CPU first" } else { "" };
            Err(PyBufferError::new_err(format!(
                "cannot export to {wanted}: the memory is on {device}{way_out}"
            )))
        }
        _ => Ok(()),
    }
}

/// The error for host-readable memory of another device, which only a copy moves to the CPU.
pub(in crate::python) fn moving_copies(device: DLDevice) -> PyErr {
    PyBufferError::new_err(format!(
        "copy=False, but moving from {device} to {} takes a copy",
        DLDevice::CPU
    ))
}
