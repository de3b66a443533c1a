//! The bytes that arrow's `take` reserves and writes.

use arrow_array::{Array, cast::AsArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::bounds::{Bounds, Items};
use super::size::{of_each_row, of_rows, of_type, reserve};
use crate::Error;

/// Bytes of a batch from which on memory is asked for.
const SMALL: usize = 1 << 20;

/// An error unless the result of a `take` of all rows, in any order, fits memory.
pub(crate) fn check_taken(array: &dyn Array) -> Result<(), Error> {
    let taken = || {
        let written = of_rows(array)?.checked_add(of_take(array, array.len())?)?;
        written.checked_add(of_type(array.data_type(), array.len())?)
    };
    reserve(taken())
}

/// An error unless the result of a `take` of these rows fits memory. [`check_taken`] has asked for all rows before, but what
/// was free then may be in use by now.
pub(crate) fn check_taken_at(array: &dyn Array, which: &[u64]) -> Result<(), Error> {
    let taken = || {
        let (rows, ahead) = (which.len(), of_take(array, which.len())?);
        let items = match Bounds::of(array) {
            Some((bounds, items)) => {
                let lengths = which.iter().map(|row| bounds.range(row.as_usize()).len());
                of_some(items, lengths.fold(0, usize::saturating_add))?.checked_add(ahead)?
            }
            None => of_mean(array, rows)?.checked_add(ahead)?,
        };
        of_type(array.data_type(), rows)?.checked_add(items)
    };
    let mean =
        || of_type(array.data_type(), which.len())?.checked_add(of_mean(array, which.len())?);
    // What is small is not asked for: to add up the lengths takes a tenth of the time of a shuffle of texts.
    if mean().is_some_and(|nbytes| nbytes < SMALL) { Ok(()) } else { reserve(taken()) }
}

/// The bytes that arrow's `take` of so many rows reserves besides those that it writes: for lists it assumes their mean length,
/// and what their items consist of it puts into buffers that double, of which old and new are there at once.
fn of_take(array: &dyn Array, rows: usize) -> Option<usize> {
    let mean = |values: &dyn Array| {
        let items = values.len().checked_div(array.len()).unwrap_or(0).checked_mul(rows)?;
        of_type(values.data_type(), items)?.checked_add(of_mean(values, items)?.checked_mul(2)?)
    };
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let items = rows.checked_mul(usize::try_from(*size).ok()?)?;
            let values = of_take(array.as_fixed_size_list().values(), items)?;
            items.checked_mul(4)?.checked_add(values)
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.try_fold(0, |sum: usize, column| sum.checked_add(of_take(column, rows)?))
        }
        DataType::Union(fields, _) => fields.iter().try_fold(rows, |sum, (id, _)| {
            sum.checked_add(of_take(array.as_union().child(id), rows)?)
        }),
        // Each row may be a run of its own: its value, and its end and index in buffers that double, beside the place of each
        // row twice.
        DataType::RunEndEncoded(..) => {
            let whole = of_each_row(array)?.between(0, array.len())?;
            let values = whole.checked_div(array.len()).unwrap_or(0).checked_add(1)?;
            rows.checked_mul(values.checked_add(64)?)
        }
        _ => match Bounds::of(array) {
            Some((Bounds::Offsets(_), items)) => items.array().map_or(Some(0), mean),
            _ => Some(0),
        },
    }
}

/// The bytes of so many of the items of rows.
fn of_some(items: Items<'_>, count: usize) -> Option<usize> {
    let Some(values) = items.array() else { return Some(count) };
    of_type(values.data_type(), count)?.checked_add(of_mean(values, count)?)
}

/// The bytes of the items of so many rows, if these have as many as all rows have on average.
fn of_mean(array: &dyn Array, rows: usize) -> Option<usize> {
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let items = rows.checked_mul(usize::try_from(*size).ok()?)?;
            of_mean(array.as_fixed_size_list().values(), items)
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.try_fold(0, |sum: usize, column| sum.checked_add(of_mean(column, rows)?))
        }
        DataType::Union(fields, _) => fields.iter().try_fold(0, |sum: usize, (id, _)| {
            sum.checked_add(of_mean(array.as_union().child(id), rows)?)
        }),
        _ => match Bounds::of(array) {
            Some((_, items)) => {
                let count = u128::try_from(items.len()).ok()? * u128::try_from(rows).ok()?;
                let mean = count.checked_div(u128::try_from(array.len()).ok()?).unwrap_or(0);
                of_some(items, usize::try_from(mean).ok()?)
            }
            None => Some(0),
        },
    }
}
