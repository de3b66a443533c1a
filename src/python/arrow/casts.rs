//! Casts in which no value changes.

use arrow_array::{Array, ArrayRef, cast::AsArray, new_null_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;

use super::structs::{Checked, fenced};
use crate::chunks::{everything, footprint, reserve};

/// A snapshot, which no other code can change while arrow's kernels read it.
pub(in crate::python) fn snapshot(array: &ArrayRef) -> Checked<ArrayRef> {
    everything(array).map_err(|error| error.to_string())
}

/// The values as another type. A value that comes back different from a cast there and back is an error.
pub(in crate::python) fn there_and_back(array: &ArrayRef, wanted: &DataType) -> Checked<ArrayRef> {
    let stored = array.data_type();
    if !can_cast_types(stored, wanted) || !can_cast_types(wanted, stored) {
        return Err("there is no way from one to the other and back".to_owned());
    }
    check_memory(bytes_of_cast(array, wanted), array.len())?;
    let there = cast(array, wanted)?;
    match &cast(&there, stored)? == array {
        true => Ok(there),
        false => Err("values would change".to_owned()),
    }
}

pub(in crate::python) fn cast(array: &dyn Array, wanted: &DataType) -> Checked<ArrayRef> {
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    fenced(|| cast_with_options(array, wanted, &checked))
}

/// arrow's kernels abort the process when memory runs out, so they run only if this does not fail.
pub(in crate::python) fn check_memory(nbytes: Option<usize>, rows: usize) -> Checked<()> {
    reserve(nbytes).map_err(|_| format!("{rows} of them do not fit memory"))
}

/// A column of nulls.
pub(in crate::python) fn nulls(data_type: &DataType, rows: usize) -> Checked<ArrayRef> {
    check_memory(footprint::of_type(data_type, rows), rows)?;
    fenced(|| Ok(new_null_array(data_type, rows)))
}

/// A bound of the bytes that a cast of leaves, or of codes of leaves, reserves there and back; `None` stands for a number
/// that overflows.
pub(in crate::python) fn bytes_of_cast(array: &dyn Array, wanted: &DataType) -> Option<usize> {
    // A decimal of 76 digits with 128 zeros behind them; no other number, time or interval is as long.
    const LONGEST_TEXT: usize = 205;
    let all = |array: &dyn Array| footprint::of_each_row(array)?.between(0, array.len());
    let (stored, rows) = (array.data_type(), array.len());
    let is_printed = (stored.is_primitive() || stored == &DataType::Boolean)
        && (wanted.is_string() || wanted.is_binary());
    let printed = if is_printed { rows.checked_mul(LONGEST_TEXT)? } else { 0 };
    let values = match array.as_any_dictionary_opt() {
        Some(codes) => all(codes.values())?,
        None => 0,
    };
    let sums = [footprint::of_type(wanted, rows)?, printed, values];
    let bytes = sums.into_iter().try_fold(all(array)?, usize::checked_add)?;
    // The cast, the way back, and buffers that double, of which old and new are there at once.
    bytes.checked_mul(3)
}

/// Whether values of a type have no children.
pub(in crate::python) fn is_leaf(data_type: &DataType) -> bool {
    data_type.is_primitive()
        || data_type.is_string()
        || data_type.is_binary()
        || data_type == &DataType::Boolean
}
