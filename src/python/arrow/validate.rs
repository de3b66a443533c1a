//! Checks what arrow-rs takes for granted about arrays.
#![expect(unsafe_code, reason = "looks into foreign structures")]

use std::ffi::c_void;

use arrow_data::{BufferSpec, layout};
use arrow_schema::DataType;

use super::ffi::{Checked, children};
use super::structs::{ArrowArray, Structure};
use crate::possible::child_types;

/// The most buffers of a view array: an `int32` numbers them, and one more has their sizes. Fewer on 32-bit
/// machines, whose address space is smaller.
const MAX_VARIADIC: usize = (1 << 31) / size_of::<*const c_void>();

/// Checks everything that arrow-rs assumes about an array, and returns how many bytes are misaligned. The type
/// bounds the depth.
pub(in crate::python) fn check_array(array: &ArrowArray, data_type: &DataType) -> Checked<usize> {
    let malformed = |what| format!("the Arrow array of {data_type} is malformed: {what}");
    let end = check_length(array).map_err(malformed)?;
    let mut moved = check_buffers(array, data_type, end).map_err(malformed)?;
    let types = child_types(data_type);
    if usize::try_from(array.n_children) != Ok(types.len()) {
        let (found, expected) = (array.n_children, types.len());
        return Err(malformed(format!("{found} children where {expected} are expected")));
    }
    for (child, (child_type, needed)) in children(array.n_children, array.children)?.zip(types) {
        let child = child_of(child)?;
        let needed = needed.checked_mul(end).and_then(|needed| i64::try_from(needed).ok());
        if needed.is_none_or(|needed| child.length < needed) {
            return Err(malformed(format!("a child of length {} is too short", child.length)));
        }
        moved += check_array(child, child_type)?;
    }
    match data_type {
        DataType::Dictionary(_, values) => {
            Ok(moved + check_array(child_of(array.dictionary)?, values)?)
        }
        _ if array.dictionary.is_null() => Ok(moved),
        _ => Err(malformed("a dictionary where none is expected".to_owned())),
    }
}

/// The end of the rows, counted from the start of the buffers.
fn check_length(array: &ArrowArray) -> Checked<usize> {
    let (length, offset, nulls) = (array.length, array.offset, array.null_count);
    let end = match (usize::try_from(length), usize::try_from(offset)) {
        (Ok(length), Ok(offset)) => length.checked_add(offset),
        _ => None,
    };
    let Some(end) = end else { return Err(format!("length {length}, offset {offset}")) };
    if nulls < -1 || nulls > length {
        return Err(format!("null_count {nulls} of length {length}"));
    }
    Ok(end)
}

/// How many bytes of the buffers of so many rows are misaligned.
fn check_buffers(array: &ArrowArray, data_type: &DataType, end: usize) -> Checked<usize> {
    let (number, other);
    let (buffers, has_validity, is_variadic) = match values_of_number(data_type) {
        Some(values) => {
            number = [values];
            (number.as_slice(), true, false)
        }
        None => {
            other = layout(data_type);
            (other.buffers.as_slice(), other.can_contain_null_mask, other.variadic)
        }
    };
    let fixed = buffers.len() + usize::from(has_validity);
    let count = usize::try_from(array.n_buffers).unwrap_or(usize::MAX);
    // View arrays have any number of variadic buffers that a view can number, and then the buffer of their sizes.
    let expected = match data_type {
        // By the interface it has none; polars exports one, which is ignored.
        DataType::Null => count <= 1,
        _ if is_variadic => count > fixed && count - fixed <= MAX_VARIADIC,
        _ => count == fixed,
    };
    if !expected {
        return Err(format!("{} buffers where {fixed} are expected", array.n_buffers));
    }
    if count > 0 && (array.buffers.is_null() || !array.buffers.is_aligned()) {
        return Err("no pointer to its buffers".to_owned());
    }
    let width = |buffer: &BufferSpec| match buffer {
        BufferSpec::FixedWidth { byte_width, .. } => *byte_width,
        _ => 1,
    };
    let widest = buffers.iter().map(width).max().unwrap_or(1);
    let bytes = end.checked_add(1).and_then(|end| end.checked_mul(widest));
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        let (length, offset) = (array.length, array.offset);
        return Err(format!("length {length} and offset {offset} exceed the address space"));
    }
    if let Some(problem) = check_sizes(array, data_type, count) {
        return Err(problem.to_owned());
    }
    let mut moved = 0;
    for (index, buffer) in buffers.iter().enumerate() {
        if let BufferSpec::FixedWidth { byte_width, alignment } = buffer {
            let index = index + usize::from(has_validity);
            // SAFETY: S1, `count` pointers are there.
            let start = unsafe { array.buffers.add(index).read() };
            if start.addr() % alignment != 0 {
                moved += end * byte_width;
            }
        }
    }
    Ok(moved)
}

/// The buffer of values of numbers, which [`layout`] allocates a vector for.
fn values_of_number(data_type: &DataType) -> Option<BufferSpec> {
    let byte_width = data_type.primitive_width().filter(|_| data_type.is_numeric())?;
    let alignment = match byte_width {
        8 => align_of::<u64>(),
        1 | 2 | 4 => byte_width,
        _ => return None,
    };
    Some(BufferSpec::FixedWidth { byte_width, alignment })
}

pub(in crate::python) fn child_of<'a>(child: *const ArrowArray) -> Checked<&'a ArrowArray> {
    if child.is_null() || !child.is_aligned() {
        return Err("the Arrow array has a child or a dictionary that is not there".to_owned());
    }
    // SAFETY: S1 holds for children, which live as long as their parent.
    let child = unsafe { &*child };
    if child.is_released() {
        return Err("the Arrow array has a child that has been released already".to_owned());
    }
    Ok(child)
}

/// Whether what tells the sizes of other buffers can be read: offsets of texts, and sizes of views' buffers. What they
/// say is checked where it is read, once, because other code may write to it. Of an array without rows nothing is read.
fn check_sizes(array: &ArrowArray, data_type: &DataType, count: usize) -> Option<&'static str> {
    let is_there = |index: usize, size: usize| {
        // SAFETY: S1, `count` pointers are there.
        let start = unsafe { array.buffers.add(index).read() };
        !start.is_null() && start.addr() % size == 0
    };
    let offsets = match data_type {
        _ if array.length == 0 => return None,
        DataType::Utf8 | DataType::Binary => is_there(1, size_of::<i32>()),
        DataType::LargeUtf8 | DataType::LargeBinary => is_there(1, size_of::<i64>()),
        DataType::Utf8View | DataType::BinaryView if count > 3 => {
            let is_there = is_there(count - 1, align_of::<i64>());
            return (!is_there).then_some("its buffer sizes are missing or misaligned");
        }
        _ => return None,
    };
    (!offsets).then_some("its offsets are missing or misaligned")
}
