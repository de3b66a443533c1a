//! DLPack to Arrow: which dtypes and devices, adopted or gathered.

mod primitive;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::{Field, FieldRef};

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels;
use crate::memory::{self, ManagedTensor};
use crate::plan::CopyReason;

/// How to import. Later options will have defaults that change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// Whether the array may or must have memory of its own.
    pub copy: CopyPolicy,
}

/// A tensor as an Arrow array and the field that describes it (nullable, as Arrow's default is, and
/// nameless).
///
/// A contiguous, aligned tensor in memory that the CPU can read is adopted: its deleter runs when the
/// last slice of the array goes. Any other strides, and misaligned data, are gathered into memory of
/// our own, and the deleter runs at once. A tensor without axes becomes one value.
///
/// ```
/// use arrow_array::{Array, Float32Array, cast::AsArray, types::Float32Type};
/// use arrow_dlpack::{Import, export, from_dlpack};
///
/// let source = Float32Array::from(vec![0.5, 1.5]);
/// let (array, field) = from_dlpack(export::array(&source)?, &Import::default())?;
/// assert_eq!(array.as_primitive::<Float32Type>(), &source);
/// assert_eq!(array.data_type(), field.data_type());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `UnsupportedDtype`, `UnsupportedRank`, `UnreadableDevice`; `CopyForbidden` if only a copy would
/// do; `OutOfMemory`. The tensor has been released by then.
pub fn from_dlpack(tensor: ManagedTensor, options: &Import) -> Result<(ArrayRef, FieldRef), Error> {
    let array = convert(tensor, options)?;
    let field = Field::new("", array.data_type().clone(), true);
    Ok((array, Arc::new(field)))
}

/// [`from_dlpack`] without a field and with default options.
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn array(tensor: ManagedTensor) -> Result<ArrayRef, Error> {
    convert(tensor, &Import::default())
}

fn convert(tensor: ManagedTensor, options: &Import) -> Result<ArrayRef, Error> {
    if tensor.ndim() > 1 {
        return Err(Error::UnsupportedRank { ndim: tensor.ndim() });
    }
    primitive::import(tensor, options)
}

fn unsupported(dtype: DLDataType) -> Error {
    Error::UnsupportedDtype { dtype, way_out: way_out(dtype) }
}

/// The tensor's elements as one run aligned to `align` bytes: adopted if they lie so, else gathered.
fn buffer(tensor: ManagedTensor, align: usize, copy: CopyPolicy) -> Result<Buffer, Error> {
    let device = tensor.device();
    if !device.is_host_readable() {
        return Err(Error::UnreadableDevice { device });
    }
    let aligned = tensor.data().addr() % align == 0;
    let misaligned = (!aligned).then_some(CopyReason::Misaligned { align });
    match (copy, tensor.row_major_obstacle().or(misaligned)) {
        (CopyPolicy::IfNeeded | CopyPolicy::Never, None) => {
            memory::adopt(tensor).ok_or(Error::UnreadableDevice { device })
        }
        (CopyPolicy::Never, Some(reason)) => {
            Err(Error::CopyForbidden { reason, nbytes: tensor.nbytes() })
        }
        (CopyPolicy::IfNeeded, Some(_)) | (CopyPolicy::Always, _) => {
            kernels::gather(&tensor).map(memory::Fresh::into_buffer)
        }
    }
}

fn way_out(dtype: DLDataType) -> &'static str {
    match (dtype.code, dtype.lanes) {
        (_, 2..) => "view it with its lanes as one more axis first",
        (DLDataTypeCode::BOOL, _) => "convert it to uint8 first",
        (DLDataTypeCode::COMPLEX, _) => "take its real and imaginary parts first",
        (DLDataTypeCode::FLOAT | DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => {
            "convert it to float32 or float64 first"
        }
        (DLDataTypeCode::INT | DLDataTypeCode::UINT, _) => {
            "convert it to 8, 16, 32 or 64 bits first"
        }
        _ => "convert it to a numeric type first",
    }
}
