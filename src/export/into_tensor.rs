//! Converts arrays without other owners to writable tensors.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, FixedSizeListArray, cast::AsArray};
use arrow_schema::{DataType, Field};

use super::{ExportOptions, check_type, refusal, to_dlpack};
use crate::alloc::Fresh;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::tensor::{self, TensorSpec};
use crate::{CopyPolicy, Error, ExclusiveObstacle, ManagedTensor, arrow_types, import::numeric};

const PADDED: DLPackFlags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;

/// Converts an array to a writable tensor without copying: what [`to_dlpack`] would share, for an array without other
/// owners.
///
/// The array must have no other owner and begin at the start of its buffer. Its memory must come from Rust's
/// allocator or from a tensor of this crate, such as a copy or an earlier result of this function. The tensor can be
/// written to, imported as an array and converted again, any number of times, in the same memory. Otherwise the error
/// contains the array, as for [`Buffer::into_vec`](arrow_buffer::Buffer::into_vec). (An array that an import had to
/// copy does not begin at the start of its buffer: import the result of [`ManagedTensor::copied`] instead.)
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float64Array};
/// use arrow_dlpack::{Error, ExclusiveObstacle, export};
///
/// let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
/// let second_holder = Arc::clone(&array);
///
/// let refused = export::into_tensor(array).unwrap_err();
/// assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
///
/// drop(second_holder);
/// let tensor = export::into_tensor(refused.array)?;
/// assert!(!tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// A loop that works in place:
///
/// ```
/// use arrow_array::Float32Array;
/// use arrow_dlpack::{export, import};
///
/// let mut array = import::array(export::array(&Float32Array::from(vec![1.0, 2.0]))?.copied()?)?;
/// for _ in 0..3 {
///     let mut tensor = export::into_tensor(array)?;
///     tensor.as_slice_mut::<f32>().unwrap()[0] *= 2.0;
///     array = import::array(tensor)?;
/// }
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// [`IntoTensorError`], which contains the array: the errors of [`to_dlpack`] with [`CopyPolicy::Never`], and
/// `NotExclusive`.
pub fn into_tensor(array: ArrayRef) -> Result<ManagedTensor, IntoTensorError> {
    let field = Field::new("", array.data_type().clone(), true);
    into_tensor_with_field(array, &field)
}

/// [`into_tensor`] for an array whose field carries more than its type, such as an extension type.
///
/// ```
/// use arrow_dlpack::{ImportOptions, ManagedTensor, export, from_dlpack};
///
/// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[3, 2])?;
/// let (array, field) = from_dlpack(tensor, &ImportOptions::default())?;
/// assert_eq!(field.extension_type_name(), Some("arrow.fixed_shape_tensor"));
/// let mut tensor = export::into_tensor_with_field(array, &field)?;
/// assert_eq!(tensor.shape(), [3, 2]);
/// assert!(tensor.as_slice_mut::<i32>().is_some());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`into_tensor`]; `FieldMismatch`.
pub fn into_tensor_with_field(
    array: ArrayRef,
    field: &Field,
) -> Result<ManagedTensor, IntoTensorError> {
    let refuse = |array, error| Err(IntoTensorError { array, error });
    if arrow_types::is_variable_list(array.data_type()) {
        let error = check_type(&array, field).err();
        let error = error.unwrap_or_else(|| refusal::unsupported(field.data_type()));
        return refuse(array, error);
    }
    let options = ExportOptions::default().with_copy(CopyPolicy::Never);
    let shared = match to_dlpack(&array, field, &options) {
        Ok(shared) => shared,
        Err(error) => return refuse(array, error),
    };
    let (dtype, flags) = (shared.dtype(), shared.flags().intersection(PADDED));
    let is_empty = shared.size() == 0;
    let (shape, strides) = (shared.shape().to_vec(), shared.strides().into_owned());
    drop(shared);
    let memory = if is_empty { Ok(Fresh::from_vec(Vec::<u8>::new())) } else { claim_array(array) };
    match memory {
        Ok(memory) => {
            ManagedTensor::from_fresh(memory, TensorSpec::new(dtype, flags, &shape, &strides))
                .map_err(|_| unreachable!("a tensor that was valid is valid"))
        }
        Err((array, obstacle)) => refuse(array, Error::NotExclusive(obstacle)),
    }
}

/// The memory of an array without nulls whose values begin at its start; otherwise the array.
fn claim_array(array: ArrayRef) -> Result<Fresh, (ArrayRef, ExclusiveObstacle)> {
    if Arc::strong_count(&array) > 1 {
        return Err((array, ExclusiveObstacle::Shared));
    }
    // The values outlive the array, so that their buffer has one owner unless it is shared.
    let (data_type, len, nulls) = (array.data_type().clone(), array.len(), array.nulls().cloned());
    if let DataType::FixedSizeList(item, size) = data_type {
        let values = Arc::clone(array.as_fixed_size_list().values());
        drop(array);
        return claim_array(values).map_err(|(values, obstacle)| {
            let array: ArrayRef = Arc::new(FixedSizeListArray::new(item, size, values, nulls));
            (array, obstacle)
        });
    }
    let width = match data_type {
        DataType::FixedSizeBinary(width) => width,
        _ if DLDataType::from_arrow(&data_type).is_some() => 0,
        _ => return Err((array, ExclusiveObstacle::Foreign)),
    };
    let values = array.to_data().buffers()[0].clone();
    drop(array);
    tensor::claim(values).map_err(|(values, obstacle)| {
        let numbers = numeric(&data_type, 0, len, &values, nulls.as_ref());
        let binaries = || -> ArrayRef { Arc::new(FixedSizeBinaryArray::new(width, values, nulls)) };
        (numbers.unwrap_or_else(binaries), obstacle)
    })
}

/// The error of [`into_tensor`], with the array that was passed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct IntoTensorError {
    /// The array, unchanged.
    pub array: ArrayRef,
    /// Why the array was refused.
    pub error: Error,
}

/// Drops the array.
impl From<IntoTensorError> for Error {
    fn from(refused: IntoTensorError) -> Self {
        refused.error
    }
}
