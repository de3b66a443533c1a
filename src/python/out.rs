//! `out=`: a result in memory that the caller has.
#![expect(unsafe_code, reason = "writes to memory of other libraries")]

use std::ops::Range;
use std::sync::Arc;

use arrow_data::ArrayData;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::{intern, prelude::*};

use super::describe::type_name;
use super::dlpack::consume::Wanted;
use super::errors::{Asked, noted, unsupported};
use super::lent_tensor::LentTensor;
use super::numpy::buffer_import::buffer;
use super::runtime::unlocked;
use crate::export::{OutBuffer, Source, prepare_into};
use crate::{DestinationProblem, Error, ExportOptions, Order};

/// Memory of an object of Python, for a result.
pub(super) struct Out<'py> {
    object: Bound<'py, PyAny>,
    tensor: LentTensor,
}

impl<'py> Out<'py> {
    /// The memory of a tensor with `__dlpack__`, or of a writable buffer.
    pub(super) fn of(object: Bound<'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        // A copy would be written in its place.
        let as_it_is = Wanted { device: None, copy: Some(false), host_readable_is_cpu: true };
        let taken = if object.hasattr(intern!(py, "__dlpack__"))? {
            as_it_is.take_by_method(&object)
        } else {
            buffer(&object)
        };
        let tensor = taken.map_err(|error| refused(&object, error))?;
        // SAFETY: N1: nothing here borrows its memory.
        let tensor = unsafe { LentTensor::new(Arc::new(tensor)) };
        Ok(Self { object, tensor })
    }

    /// Writes the values of a source, and returns the object.
    pub(super) fn write(
        mut self,
        source: Source<'_>,
        options: &ExportOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, refuse) = (self.object.py(), |error| Asked::Out.refusal(error));
        self.check(source).map_err(|problem| refuse(Error::BadDestination(problem)))?;
        let order = if self.tensor.is_contiguous() { Order::RowMajor } else { Order::ColumnMajor };
        let (dtype, shape) = (self.tensor.dtype(), self.tensor.shape().to_vec());
        let nbytes = self.tensor.nbytes();
        // SAFETY: `check` has asked whether it is writable. Arrow data that Rust borrows here is that of the source, which it
        // found to lie elsewhere.
        let place = unsafe { self.tensor.place() };
        let out = OutBuffer::new(place, dtype, &shape, order);
        let prepared =
            unlocked(py, source.nbytes(), || prepare_into(source, options, out)).map_err(refuse)?;
        if let Err(error) = unlocked(py, nbytes, || prepared.run()) {
            return Err(noted(py, refuse(error), "some of out may have been written before"));
        }
        Ok(self.object)
    }

    fn check(&self, source: Source<'_>) -> Result<(), DestinationProblem> {
        self.tensor.check_writable()?;
        let start = self.tensor.data().addr();
        let memory = start..start + self.tensor.nbytes();
        let mut overlaps = false;
        source.each_array(|array| overlaps |= touches(&array.to_data(), &memory));
        match overlaps {
            true => Err(DestinationProblem::Overlapping),
            false => Ok(()),
        }
    }
}

/// The error for an object that gives no memory to write to. What its own error advises, such as a copy, is of no use here.
fn refused(out: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let (py, got) = (out.py(), type_name(out));
    let refused = if error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyRuntimeError>(py)
    {
        let like = match is_of_ml_dtypes(out) {
            true => {
                "torch.empty(shape, dtype=torch.bfloat16), as NumPy lends no memory of such a dtype"
            }
            false => "numpy.empty(shape, dtype)",
        };
        let same_memory = if requires_grad(out) {
            ", because it requires a gradient: pass out.detach(), which has the same memory, or"
        } else if is_of_times(out) {
            ", because DLPack has no times: pass out.view(\"int64\"), which has the same memory, or"
        } else {
            ":"
        };
        unsupported(format!(
            "out is {got} whose memory takes no result{same_memory} pass one like {like}"
        ))
    } else if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!(
            "out must be a tensor with __dlpack__ or a writable buffer, got {got}: numpy.empty(shape, dtype) is one"
        ))
    } else {
        return error;
    };
    refused.set_cause(py, Some(error));
    refused
}

/// Whether it is an array of NumPy's of bfloat16, or another dtype that NumPy itself has not.
fn is_of_ml_dtypes(out: &Bound<'_, PyAny>) -> bool {
    let module =
        out.getattr("dtype").and_then(|dtype| dtype.getattr("type")?.getattr("__module__"));
    module.is_ok_and(|module| module.eq("ml_dtypes").unwrap_or(false))
}

/// Whether it is a tensor of PyTorch's that requires a gradient.
fn requires_grad(out: &Bound<'_, PyAny>) -> bool {
    let requires = out.getattr("requires_grad").and_then(|requires| requires.is_truthy());
    requires.unwrap_or(false)
}

/// Whether it is an array of NumPy's of datetime64 or timedelta64.
fn is_of_times(out: &Bound<'_, PyAny>) -> bool {
    let kind = out.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.is_ok_and(|kind| ["M", "m"].iter().any(|of_times| kind.eq(of_times).unwrap_or(false)))
}

/// Whether some buffer of the array has some of this memory.
fn touches(data: &ArrayData, memory: &Range<usize>) -> bool {
    let validity = data.nulls().map(|nulls| nulls.buffer());
    let touches_it = |start: usize, len: usize| start < memory.end && memory.start < start + len;
    data.buffers()
        .iter()
        .chain(validity)
        .any(|buffer| touches_it(buffer.as_ptr().addr(), buffer.len()))
        || data.child_data().iter().any(|child| touches(child, memory))
}
