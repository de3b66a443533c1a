//! The short cut for arrays of the eleven numeric types, and fixed-size lists of them: shares their one buffer
//! without a plan.

use arrow_array::{Array, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray, types};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field};

use super::options::ExportOptions;
use super::source::Source;
use crate::{Element, Error, ManagedTensor, dtype::for_each_numeric, layout, tensor::Vector};

/// Most axes of a tensor from this short cut; real columns have fewer.
const AXES: usize = 8;

/// The tensor of a plain numeric array that can be shared, without planning; `None` for any other source.
#[inline(always)] // so that the tensor is written where the caller returns it: a move takes a tenth of the call
pub(crate) fn share(
    source: Source<'_>,
    options: &ExportOptions,
) -> Option<Result<ManagedTensor, Error>> {
    let (array, field) = match source {
        Source::Array(array, field) => (array, field),
        Source::Chunks([chunk], field) => (&**chunk, Some(field)),
        _ => return None,
    };
    let is_plain =
        |field: &Field| field.metadata().is_empty() && array.data_type() == field.data_type();
    if !field.is_none_or(is_plain) || !options.are_default() {
        return None;
    }
    match vector(array) {
        Some(vector) => Some(Ok(vector.share())),
        None => nested(array),
    }
}

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// The values of a numeric array without nulls; `None` for any other array.
        #[inline]
        pub(crate) fn vector(array: &dyn Array) -> Option<Vector<'_>> {
            match array.data_type() {
                $(DataType::$arrow => vector_of::<types::$type>(array),)*
                _ => None,
            }
        }

        /// The values of a numeric array, without the `ArrayData` that `to_data` allocates; `None` for any other
        /// array.
        pub(super) fn buffer(array: &dyn Array) -> Option<Buffer> {
            match array.data_type() {
                $(DataType::$arrow => buffer_of::<types::$type>(array),)*
                _ => None,
            }
        }
    };
}
for_each_numeric!(dispatch);

fn buffer_of<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<Buffer> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    Some(array.values().inner().clone())
}

#[inline(always)]
fn vector_of<T: ArrowPrimitiveType<Native: Element>>(array: &dyn Array) -> Option<Vector<'_>> {
    let array = array.as_any().downcast_ref::<PrimitiveArray<T>>()?;
    (array.null_count() == 0).then(|| Vector::new(array.values()))
}

/// The values of nested fixed-size lists of numbers, if no level has nulls; `None` for any other array.
fn nested(array: &dyn Array) -> Option<Result<ManagedTensor, Error>> {
    let (mut shape, mut strides) = ([0; AXES], [0; AXES]);
    *shape.first_mut()? = i64::try_from(array.len()).ok()?;
    let mut ndim = 1;
    let mut array = array;
    while let Some(list) = array.as_any().downcast_ref::<FixedSizeListArray>() {
        let DataType::FixedSizeList(item, size) = list.data_type() else { return None };
        // An item field with metadata may be an extension type, which needs a plan. The values may be longer than the
        // rows need.
        let values = usize::try_from(*size).ok()?.checked_mul(list.len())?;
        let is_plain = item.metadata().is_empty() && list.null_count() == 0;
        if !is_plain || list.values().len() != values {
            return None;
        }
        *shape.get_mut(ndim)? = i64::from(*size);
        ndim += 1;
        array = list.values();
    }
    let vector = vector(array)?;
    let (shape, strides) = (&shape[..ndim], &mut strides[..ndim]);
    layout::write_row_major(shape, strides);
    Some(vector.share_as(shape, strides))
}
