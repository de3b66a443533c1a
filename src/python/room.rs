//! Whether there is room for what arrow-rs is about to make. It aborts the process where memory runs out, and a
//! few bytes can ask for more than there is: a run of 2^60 values, one text that a million rows share, a
//! stream that hands out the same chunk again and again. So it is asked only for what fits.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::join;
use super::structure::fenced;
use crate::error::Error;
use crate::memory;

/// Chunks as one array.
pub(super) fn joined(chunks: &[ArrayRef]) -> PyResult<ArrayRef> {
    check_joined(chunks)?;
    fenced(|| join::concat(chunks)).map_err(PyValueError::new_err)
}

/// An error unless chunks would fit memory as one array.
pub(super) fn check_joined(chunks: &[ArrayRef]) -> Result<(), Error> {
    let sum = |of: fn(&dyn Array) -> Option<usize>| {
        chunks.iter().try_fold(0_usize, |sum, chunk| sum.checked_add(of(chunk)?))
    };
    if chunks.len() > 1 {
        let rows = sum(|chunk| Some(chunk.len())).filter(|&rows| i64::try_from(rows).is_ok());
        rows.ok_or(Error::Overflow("number of rows"))?;
        reserve(sum(|chunk| stored(chunk)))?;
    }
    Ok(())
}

/// An error unless an array would fit memory as another type.
pub(super) fn check_cast(array: &dyn Array, wanted: &DataType) -> Result<(), Error> {
    reserve(null_size(wanted, array.len()))?;
    reserve(spread(array))
}

/// `None` are more bytes than can be counted.
fn reserve(nbytes: Option<usize>) -> Result<(), Error> {
    memory::room(nbytes.unwrap_or(usize::MAX))
}

/// About as many bytes as the values of an array take where they are, less what copies of it share.
fn stored(array: &dyn Array) -> Option<usize> {
    let width = |width: usize| array.len().checked_mul(width);
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => width(16),
        DataType::Dictionary(key, _) => width(key.primitive_width()?),
        _ => array.to_data().get_slice_memory_size().ok(),
    }
}

/// About as many bytes as the values of an array take once each of them is written down by itself; what is
/// written down so already counts for nothing.
fn spread(array: &dyn Array) -> Option<usize> {
    let of_each = |values: &dyn Array, indices: &mut dyn Iterator<Item = (usize, usize)>| {
        let size = value_size(values);
        let mut each = indices.map(|(index, times)| size(index).checked_mul(times));
        each.try_fold(0_usize, |sum, size| sum.checked_add(size?))
    };
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => {
            of_each(array, &mut (0..array.len()).map(|row| (row, 1)))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let values = dictionary.values();
            if values.is_empty() {
                return Some(0);
            }
            let keys = dictionary.normalized_keys();
            of_each(values, &mut keys.into_iter().map(|key| (key, 1)))
        }
        DataType::RunEndEncoded(..) => {
            let data = array.to_data();
            let [ends, values] = data.child_data() else { return None };
            let (first, last) = (data.offset(), data.offset().checked_add(data.len())?);
            let ends = cast(&make_array(ends.clone()), &DataType::Int64).ok()?;
            let mut start = first;
            let runs = ends.as_primitive::<Int64Type>().values().iter().map(|&end| {
                let end = usize::try_from(end).unwrap_or(0).clamp(start, last);
                end - std::mem::replace(&mut start, end)
            });
            of_each(&make_array(values.clone()), &mut runs.enumerate())
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let sizes = list.sizes().iter().map(|&size| usize::try_from(size).unwrap_or(0));
            sizes.sum::<usize>().checked_mul(mean_size(list.values()))
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let mut sizes = list.sizes().iter().map(|&size| usize::try_from(size).unwrap_or(0));
            sizes.try_fold(0, usize::checked_add)?.checked_mul(mean_size(list.values()))
        }
        _ => {
            array.to_data().child_data().iter().try_fold(0_usize, |sum, child| {
                sum.checked_add(spread(&make_array(child.clone()))?)
            })
        }
    }
}

/// The size of each value.
fn value_size(values: &dyn Array) -> Box<dyn Fn(usize) -> usize + '_> {
    match values.data_type() {
        DataType::Utf8 => Box::new(|index| values.as_string::<i32>().value(index).len()),
        DataType::LargeUtf8 => Box::new(|index| values.as_string::<i64>().value(index).len()),
        DataType::Utf8View => Box::new(|index| values.as_string_view().value(index).len()),
        DataType::Binary => Box::new(|index| values.as_binary::<i32>().value(index).len()),
        DataType::LargeBinary => Box::new(|index| values.as_binary::<i64>().value(index).len()),
        DataType::BinaryView => Box::new(|index| values.as_binary_view().value(index).len()),
        _ => {
            let size = mean_size(values);
            Box::new(move |_| size)
        }
    }
}

fn mean_size(values: &dyn Array) -> usize {
    let size = values.to_data().get_slice_memory_size().unwrap_or(usize::MAX);
    size.div_ceil(values.len().max(1))
}

/// About as many bytes as so many nulls take, which take none until they are of a type; `None` if they cannot
/// be counted.
fn null_size(data_type: &DataType, len: usize) -> Option<usize> {
    let add = |sum: usize, field: &FieldRef| sum.checked_add(null_size(field.data_type(), len)?);
    match data_type {
        DataType::FixedSizeList(item, size) => {
            null_size(item.data_type(), len.checked_mul(usize::try_from(*size).ok()?)?)
        }
        DataType::FixedSizeBinary(size) => len.checked_mul(usize::try_from(*size).ok()?),
        DataType::Struct(fields) => fields.iter().try_fold(len, add),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field).try_fold(len, add),
        // Offsets and views have up to 16 bytes.
        other => len.checked_mul(other.primitive_width().unwrap_or(16)),
    }
}
