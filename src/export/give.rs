//! Arrays handed over, to be written to.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field};

use super::refusal;
use super::source::check_type;
use crate::dtype::for_each_numeric;
use crate::error::{Error, GiveObstacle};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::{self, ManagedTensor};

/// Hands the array over as a writable tensor, without copying.
///
/// That takes an array that nobody else holds, that begins where its buffer begins, and whose memory
/// came from Rust's allocator, or is that of a tensor of this crate: a copy, or what was given before. Such a tensor
/// can be written to, read as an array and given away again, as often as one likes, in the same memory.
/// Otherwise the array comes back in the error. (An import that has to copy makes an array that does not begin
/// where its buffer does: [`ManagedTensor::copied`] first makes one that can be given.)
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float64Array};
/// use arrow_dlpack::{Error, GiveObstacle, export};
/// use arrow_schema::{DataType, Field};
///
/// let field = Field::new("x", DataType::Float64, false);
/// let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
/// let second_holder = Arc::clone(&array);
///
/// let refused = export::give(array, &field).unwrap_err();
/// assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Shared));
///
/// drop(second_holder);
/// let tensor = export::give(refused.array, &field)?;
/// assert!(!tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::export::GiveError>(())
/// ```
///
/// A loop that works in place:
///
/// ```
/// use arrow_array::Float32Array;
/// use arrow_dlpack::{export, import};
/// use arrow_schema::{DataType, Field};
///
/// let field = Field::new("x", DataType::Float32, false);
/// let mut array = import::array(export::array(&Float32Array::from(vec![1.0, 2.0]))?.copied()?)?;
/// for _ in 0..3 {
///     let mut tensor = export::give(array, &field)?;
///     tensor.as_slice_mut::<f32>().unwrap()[0] *= 2.0;
///     array = import::array(tensor)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`GiveError`], with the array: what [`to_dlpack`](crate::to_dlpack) refuses, and `NotGivable`.
pub fn give(array: ArrayRef, field: &Field) -> Result<ManagedTensor, GiveError> {
    let checked = check_type(&array, field);
    match checked.and_then(|()| {
        field.extension_type_name().map_or(Ok(()), |_| Err(refusal::extension(field)))
    }) {
        Ok(()) => numeric(array),
        Err(error) => Err(GiveError { array, error }),
    }
}

/// Why [`give`] gave nothing, and the array it was passed.
#[derive(Clone, Debug)]
pub struct GiveError {
    /// The array, as it was.
    pub array: ArrayRef,
    /// What stands in the way.
    pub error: Error,
}

impl fmt::Display for GiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for GiveError {}

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        fn numeric(array: ArrayRef) -> Result<ManagedTensor, GiveError> {
            match array.data_type() {
                $(DataType::$arrow => give_as::<types::$type>(array, DLDataType::$dtype),)*
                other => Err(GiveError { error: refusal::not_givable(other), array }),
            }
        }
    };
}
for_each_numeric!(dispatch);

fn give_as<T: ArrowPrimitiveType>(
    array: ArrayRef,
    dtype: DLDataType,
) -> Result<ManagedTensor, GiveError> {
    let refuse = |array, error| Err(GiveError { array, error });
    let Some(typed) = array.as_any().downcast_ref::<PrimitiveArray<T>>() else {
        let error = refusal::not_givable(array.data_type());
        return refuse(array, error);
    };
    let shape = match refuse_nulls(typed).and_then(|()| extent(typed)) {
        Ok(extent) => [extent],
        Err(error) => return refuse(array, error),
    };
    if Arc::strong_count(&array) > 1 {
        return refuse(array, Error::NotGivable(GiveObstacle::Shared));
    }
    // The clone outlives the original, so that its buffer has one owner if no one else has it.
    let (data_type, values, nulls) = typed.clone().into_parts();
    drop(array);
    match memory::claim(values.into_inner()) {
        Ok(memory) => {
            let flags = DLPackFlags::default();
            ManagedTensor::from_fresh(memory, 0, dtype, flags, &shape, &[1])
                .map_err(|_| unreachable!("an array's extent fits its buffer"))
        }
        Err((buffer, obstacle)) => {
            let typed = PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), nulls);
            refuse(Arc::new(typed.with_data_type(data_type)), Error::NotGivable(obstacle))
        }
    }
}

fn refuse_nulls(array: &dyn Array) -> Result<(), Error> {
    match array.null_count() {
        0 => Ok(()),
        null_count => Err(refusal::nulls(array, null_count)),
    }
}

fn extent(array: &dyn Array) -> Result<i64, Error> {
    i64::try_from(array.len()).map_err(|_| Error::Overflow("length"))
}
