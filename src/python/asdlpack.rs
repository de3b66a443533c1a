//! `asdlpack`: a tensor of any object that exposes its memory.
#![expect(unsafe_code, reason = "lets Python write to what an object exposes")]

use std::sync::Arc;

use pyo3::{intern, prelude::*, types::PyCapsule};

use super::advice::Expected;
use super::data::Data;
use super::dlpack::request::CopyArg;
use super::errors::Asked;
use super::numpy::{array_interface, buffer_import, refusal};
use super::protocols::{attribute, has_buffer, is_arrow};
use super::runtime::RecursionGuard;
use super::runtime::unlocked;
use super::tensor::PyTensor;
use crate::ExportOptions;

/// asdlpack(obj, /, *, copy=None)
/// --
///
/// A Tensor of any object that exposes its memory, which the tensor shares and keeps alive. It has the object's
/// shape, strides and dtype, and is read-only if the object is.
///
/// >>> import array
/// >>> from arrow_dlpack import asdlpack
/// >>> asdlpack(array.array("f", [1.0, 2.0, 3.0]))
/// <arrow_dlpack.Tensor float32, shape (3,), strides (1,), cpu>
/// >>> asdlpack(memoryview(b"abcdef")[::-2])
/// <arrow_dlpack.Tensor uint8, shape (3,), strides (-2,), cpu, read-only>
///
/// The protocols are tried in this order:
///
/// - __arrow_c_array__ or __arrow_c_stream__: as to_tensor, with only the option copy. Objects that have
///   __array_interface__ too are skipped here: as Arrow data, Pillow's images are columns without height and
///   width;
/// - __dlpack__, or a DLPack capsule: as Tensor.from_dlpack;
/// - __array_interface__;
/// - __cuda_array_interface__: the memory is not read. The interface does not name the device, so device 0
///   is assumed. Its stream must be None;
/// - the buffer protocol: bytes, bytearray, array.array, mmap, memoryview, ctypes. While the tensor
///   lives the buffer is in use: a bytearray cannot be resized, a mmap not closed.
///
/// Later writes to the object's memory show in the tensor. copy=True copies it;
/// copy=False fails where the object says that it would have to copy.
///
/// Raises TypeError for an object that has none of these, UnsupportedError for elements that are not
/// plain numbers in the machine's byte order, BufferError for impossible or unsupported descriptions. An
/// exception of the object's own method is passed on: NumPy's __dlpack__ raises BufferError for structured
/// arrays, texts and the other byte order.
#[pyfunction]
#[pyo3(signature = (obj, /, *, copy=None), text_signature = None)]
pub(super) fn asdlpack<'py>(
    obj: &Bound<'py, PyAny>,
    copy: Option<CopyArg>,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = obj.py();
    let _level = RecursionGuard::enter(py)?;
    if let (Ok(tensor), None | Some(CopyArg(false))) = (obj.cast::<PyTensor>(), &copy) {
        return Bound::new(py, tensor.get().share(py));
    }
    let interface = attribute(obj, intern!(py, "__array_interface__"))?;
    if interface.is_none() && is_arrow(obj)? {
        let options = ExportOptions::default().with_copy(copy.map(|copy| copy.0));
        return Ok(Data::read(obj, None)?.to_tensor(py, &options, Asked::Protocol)?.cast_into()?);
    }
    let has_dlpack = attribute(obj, intern!(py, "__dlpack__"))?.is_some();
    if has_dlpack || obj.is_instance_of::<PyCapsule>() {
        return Bound::new(py, PyTensor::from_dlpack(obj, None, copy)?);
    }
    refusal::refuse(obj)?;
    let tensor = if let Some(interface) = interface {
        array_interface::tensor(obj, &interface)?
    } else if let Some(interface) = attribute(obj, intern!(py, "__cuda_array_interface__"))? {
        array_interface::cuda_tensor(obj, &interface)?
    } else if has_buffer(obj) {
        buffer_import::buffer(obj)?
    } else {
        return Err(Expected::Any.got(obj));
    };
    if let Some(CopyArg(true)) = copy {
        let copy = unlocked(py, tensor.nbytes(), || tensor.copied())?;
        return Bound::new(py, PyTensor::from(copy));
    }
    // The object has said that no stream needs to be waited for.
    // SAFETY: the memory is a Python object's, and no code in Rust has it but this.
    let tensor = unsafe { PyTensor::received(Arc::new(tensor)) };
    Bound::new(py, PyTensor { synchronised: true, ..tensor })
}
