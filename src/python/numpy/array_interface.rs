//! The array interfaces: a dictionary that describes an array and its address.
//!
//! Sources: <https://numpy.org/doc/stable/reference/arrays.interface.html> and
//! <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>. Any Python code can write such a
//! dictionary, so this module checks everything but the address, which cannot be checked.
#![expect(unsafe_code, reason = "takes the address that an object gives")]

use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use super::super::protocols::has_buffer;
use super::buffer_import::ArraySpec;
use super::{buffer_import, item};
use crate::ffi::{DLDevice, DLDeviceType};
use crate::python::describe::{described, type_name, wrong};
use crate::{ManagedTensor, layout};

/// The device of an array whose interface says only that it is a CUDA device.
const CUDA: DLDevice = DLDevice { device_type: DLDeviceType::CUDA, device_id: 0 };

/// The tensor of `object.__array_interface__`.
pub(in crate::python) fn tensor(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyAny>,
) -> PyResult<ManagedTensor> {
    let interface = Interface::new(object, "__array_interface__", interface, &[3])?;
    let spec = interface.array_spec(DLDevice::CPU)?;
    let offset = match interface.get("offset")? {
        None => 0i64,
        Some(offset) => interface.integer("offset", "an integer", &offset)?,
    };
    let Ok(origin) = usize::try_from(offset) else {
        return interface.refuse(format!("offset is {offset}"));
    };
    let data = interface.get("data")?;
    if let Some(pair) = data.as_ref().and_then(|data| data.cast::<PyTuple>().ok()) {
        if origin != 0 {
            return interface.refuse(format!("offset is {offset}, which is for buffers only"));
        }
        return interface.tensor_at(pair, &spec);
    }
    let buffer = data.as_ref().unwrap_or(object);
    if !has_buffer(buffer) {
        let must = "a tuple (address, readonly), an object with the buffer protocol, or absent if the \
                    object has it";
        return Err(interface.wrong("data", must, buffer));
    }
    buffer_import::tensor_from_buffer(buffer, origin, &spec)
}

/// The tensor of `object.__cuda_array_interface__`. The memory is not read.
pub(in crate::python) fn cuda_tensor(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyAny>,
) -> PyResult<ManagedTensor> {
    let interface = Interface::new(object, "__cuda_array_interface__", interface, &[2, 3])?;
    if let Some(stream) = interface.get("stream")? {
        let stream: i64 = interface.integer("stream", "an integer or None", &stream)?;
        return interface.refuse(if stream == 0 {
            "stream is 0, which the interface rules out: it may be either of two streams".to_owned()
        } else {
            format!(
                "work on stream {stream} must end first, and this library cannot wait for it: \
                 synchronise, and present stream None"
            )
        });
    }
    let spec = interface.array_spec(CUDA)?;
    let data = interface.required("data")?;
    let pair = data.cast::<PyTuple>();
    let pair = pair.map_err(|_| interface.wrong("data", "a tuple (address, readonly)", &data))?;
    interface.tensor_at(pair, &spec)
}

/// The dictionary and its object, which messages name and the tensor keeps alive.
struct Interface<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    name: &'static str,
    entries: &'a Bound<'py, PyDict>,
}

impl<'a, 'py> Interface<'a, 'py> {
    /// An interface of one of the `known` versions, and without a mask.
    fn new(
        object: &'a Bound<'py, PyAny>,
        name: &'static str,
        interface: &'a Bound<'py, PyAny>,
        known: &[i64],
    ) -> PyResult<Self> {
        let must = || format!("{}.{name} must be a dict", type_name(object));
        let entries = interface.cast::<PyDict>().map_err(|_| wrong(interface, &must()))?;
        let this = Self { object, name, entries };
        let version: i64 = this.integer("version", "an integer", &this.required("version")?)?;
        if !known.contains(&version) {
            return this.refuse(format!("version is {version}, and this library knows {known:?}"));
        }
        if this.get("mask")?.is_some() {
            let problem =
                "it has a mask, and a tensor has no place for one: fill what it hides first";
            return this.refuse(problem.to_owned());
        }
        Ok(this)
    }

    /// The tensor at an address and whether it is read-only, as the object gave them.
    fn tensor_at(&self, pair: &Bound<'py, PyTuple>, spec: &ArraySpec) -> PyResult<ManagedTensor> {
        let (address, readonly) = self.address(pair)?;
        // SAFETY: L2: object and dictionary are kept.
        unsafe { buffer_import::tensor_from_address(self.objects(), address, readonly, spec) }
    }

    /// An entry; `None` also for an entry that is Python's None.
    fn get(&self, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.entries.get_item(key)?.filter(|value| !value.is_none()))
    }

    fn required(&self, key: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.get(key)? {
            Some(value) => Ok(value),
            None => self.refuse(format!("it has no {key:?}")),
        }
    }

    /// The error for an entry of the wrong type.
    fn wrong(&self, key: &str, must: &str, value: &Bound<'_, PyAny>) -> PyErr {
        wrong(value, &format!("{key:?} of {}.{} must be {must}", type_name(self.object), self.name))
    }

    /// The error for an entry of the right type with an impossible value.
    fn refuse<T>(&self, problem: String) -> PyResult<T> {
        let (owner, name) = (type_name(self.object), self.name);
        Err(PyBufferError::new_err(format!("{owner}.{name}: {problem}")))
    }

    fn integer<T>(&self, key: &str, must: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
    where
        T: for<'b> FromPyObject<'b, 'py, Error = PyErr>,
    {
        let py = value.py();
        value.extract().or_else(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(py) {
                self.refuse(format!("{key:?} has {}, which does not fit", described(value)))
            } else if error.is_instance_of::<PyTypeError>(py) {
                Err(self.wrong(key, must, value))
            } else {
                Err(error)
            }
        })
    }

    fn integers(&self, key: &str, value: &Bound<'py, PyAny>) -> PyResult<Vec<i64>> {
        let tuple = value.cast::<PyTuple>();
        let must = "a tuple of integers";
        let tuple = tuple.map_err(|_| self.wrong(key, must, value))?;
        tuple.iter().map(|value| self.integer(key, must, &value)).collect()
    }

    /// Element type, shape and strides.
    fn array_spec(&self, device: DLDevice) -> PyResult<ArraySpec> {
        let typestr = self.required("typestr")?;
        let text = typestr.cast::<PyString>();
        let text = text.map_err(|_| self.wrong("typestr", "a str", &typestr))?;
        let dtype = item::of_typestr(&text.to_string_lossy())?;
        let shape = self.integers("shape", &self.required("shape")?)?;
        buffer_import::check_ndim(shape.len())?;
        layout::element_count(&shape)?;
        let strides = match self.get("strides")? {
            None => layout::row_major(&shape),
            Some(strides) => {
                let strides = self.integers("strides", &strides)?;
                if strides.len() != shape.len() {
                    return self.refuse(format!(
                        "it has {} strides for {} axes",
                        strides.len(),
                        shape.len()
                    ));
                }
                layout::from_bytes(&shape, &strides, dtype.item_bits(false) / 8)?
            }
        };
        Ok(ArraySpec { device, dtype, is_padded: false, shape, strides })
    }

    fn address(&self, given: &Bound<'py, PyTuple>) -> PyResult<(usize, bool)> {
        let must = "a tuple (address, readonly) of an integer and a bool";
        let pair = given.extract::<(Bound<'py, PyAny>, Bound<'py, PyBool>)>();
        let (address, readonly) = pair.map_err(|_| self.wrong("data", must, given))?;
        Ok((self.integer("data", must, &address)?, readonly.is_true()))
    }

    /// The objects to keep alive while the address is used: an entry of the dictionary keeps the memory of
    /// NumPy's scalars.
    fn objects(&self) -> Vec<Py<PyAny>> {
        vec![self.object.clone().unbind(), self.entries.clone().into_any().unbind()]
    }
}
