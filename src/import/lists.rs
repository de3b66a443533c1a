//! Rows of one length in a type of lists of any length: a matrix as `List`, of which many readers know no fixed-size one.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, cast::AsArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};

use crate::{Error, OffsetsProblem, alloc, arrow_types};

/// The field with a list of fixed size in place of each of its outer lists, by the extents of these rows; `None` if it is
/// no list, or of more levels than the rows have axes.
///
/// # Errors
///
/// `BadOffsets` where 32 bits do not count the values.
pub(super) fn of_fixed_size(
    field: &Field,
    rows: usize,
    extents: &mut dyn Iterator<Item = i64>,
) -> Result<Option<FieldRef>, Error> {
    let (DataType::List(item) | DataType::LargeList(item)) = field.data_type() else {
        return Ok(None);
    };
    let Some(extent) = extents.next() else { return Ok(None) };
    let Ok(size) = i32::try_from(extent) else { return Ok(None) };
    let values = usize::try_from(extent).ok().and_then(|extent| rows.checked_mul(extent));
    let values = values.ok_or(Error::Overflow("number of values"))?;
    if matches!(field.data_type(), DataType::List(_)) && i32::try_from(values).is_err() {
        let offset = values.try_into().unwrap_or(u64::MAX);
        return Err(Error::BadOffsets(OffsetsProblem::TooLarge {
            index: rows,
            offset,
            is_large: false,
        }));
    }
    let item = of_fixed_size(item, values, extents)?.unwrap_or_else(|| Arc::clone(item));
    Ok(Some(Arc::new(field.clone().with_data_type(DataType::FixedSizeList(item, size)))))
}

/// An array of the type that [`of_fixed_size`] returned, as one of this field: the same values, and offsets.
pub(super) fn of_any_size(array: ArrayRef, field: &Field) -> Result<ArrayRef, Error> {
    match field.data_type() {
        DataType::List(item) => with_offsets::<i32>(&array, item),
        DataType::LargeList(item) => with_offsets::<i64>(&array, item),
        _ => Ok(array),
    }
}

fn with_offsets<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, Error> {
    let fixed = array.as_fixed_size_list();
    let size = usize::try_from(fixed.value_length()).unwrap_or_default();
    // `of_fixed_size` has counted them.
    let offsets = (0..fixed.len() + 1).map(|row| O::usize_as(row * size));
    let offsets = OffsetBuffer::new(alloc::collect(offsets)?.into());
    let values = of_any_size(Arc::clone(fixed.values()), item)?;
    let nulls = fixed.nulls().cloned();
    let lists = GenericListArray::try_new(Arc::clone(item), offsets, values, nulls);
    Ok(Arc::new(lists.unwrap_or_else(arrow_types::impossible)))
}
