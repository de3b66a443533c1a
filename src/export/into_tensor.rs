//! Converts arrays without other owners to writable tensors.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeBinaryArray, FixedSizeListArray, PrimitiveArray,
    types,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field};

use super::{ExportOptions, to_dlpack};
use crate::copy::CopyPolicy;
use crate::dtype::for_each_numeric;
use crate::error::{Error, ExclusiveObstacle};
use crate::ffi::DLPackFlags;
use crate::memory::{self, Fresh, ManagedTensor};

const PADDED: DLPackFlags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;

/// Converts an array to a writable tensor without copying: what [`to_dlpack`] would share, for an array without other
/// owners.
///
/// The array must have no other owner and begin at the start of its buffer. Its memory must come from Rust's
/// allocator or from a tensor of this crate, such as a copy or an earlier result of this function. The tensor can be
/// written to, imported as an array and converted again, any number of times, in the same memory. If one of these
/// conditions fails, the error contains the array, as for [`Buffer::into_vec`](arrow_buffer::Buffer::into_vec). (An array that an import had to
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
    let options = ExportOptions::default().with_copy(CopyPolicy::Never);
    let shared = match to_dlpack(&array, field, &options) {
        Ok(shared) => shared,
        Err(error) => return refuse(array, error),
    };
    let (dtype, flags) = (shared.dtype(), shared.flags().intersection(PADDED));
    let is_empty = shared.size() == 0;
    let (shape, strides) = (shared.shape().to_vec(), shared.strides().into_owned());
    drop(shared);
    let memory = if is_empty { Ok(Fresh::from_vec(Vec::<u8>::new())) } else { claim(array) };
    match memory {
        Ok(memory) => ManagedTensor::from_fresh(memory, 0, dtype, flags, &shape, &strides)
            .map_err(|_| unreachable!("a tensor that was valid is valid")),
        Err((array, obstacle)) => refuse(array, Error::NotExclusive(obstacle)),
    }
}

/// The memory of an array without nulls whose values begin at its start; otherwise the array.
type Claimed = Result<Fresh, (ArrayRef, ExclusiveObstacle)>;

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        fn claim(array: ArrayRef) -> Claimed {
            match array.data_type() {
                _ if Arc::strong_count(&array) > 1 => Err((array, ExclusiveObstacle::Shared)),
                $(DataType::$arrow => claim_values::<types::$type>(array),)*
                DataType::FixedSizeList(..) => claim_list(array),
                DataType::FixedSizeBinary(_) => claim_binary(array),
                _ => Err((array, ExclusiveObstacle::Foreign)),
            }
        }
    };
}
for_each_numeric!(dispatch);

// In each arm the clone outlives the original array, so that the buffer has one owner unless it is shared.

fn claim_values<T: ArrowPrimitiveType>(array: ArrayRef) -> Claimed {
    let (data_type, values, nulls) = array.as_primitive::<T>().clone().into_parts();
    drop(array);
    memory::claim(values.into_inner()).map_err(|(buffer, obstacle)| {
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), nulls);
        let array: ArrayRef = Arc::new(values.with_data_type(data_type));
        (array, obstacle)
    })
}

fn claim_binary(array: ArrayRef) -> Claimed {
    let (width, values, nulls) = array.as_fixed_size_binary().clone().into_parts();
    drop(array);
    memory::claim(values).map_err(|(buffer, obstacle)| {
        let array: ArrayRef = Arc::new(FixedSizeBinaryArray::new(width, buffer, nulls));
        (array, obstacle)
    })
}

fn claim_list(array: ArrayRef) -> Claimed {
    let (item, size, values, nulls) = array.as_fixed_size_list().clone().into_parts();
    drop(array);
    claim(values).map_err(|(values, obstacle)| {
        let array: ArrayRef = Arc::new(FixedSizeListArray::new(item, size, values, nulls));
        (array, obstacle)
    })
}

/// The error of [`into_tensor`], with the array that was passed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntoTensorError {
    /// The array, unchanged.
    pub array: ArrayRef,
    /// Why the array was refused.
    pub error: Error,
}

impl fmt::Display for IntoTensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for IntoTensorError {}

/// Drops the array.
impl From<IntoTensorError> for Error {
    fn from(refused: IntoTensorError) -> Self {
        refused.error
    }
}
