//! Lists whose rows have one length, as columns of a matrix.

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, FixedSizeListArray, UInt64Array};
use arrow_schema::{DataType, Field};
use arrow_select::take::take;

use crate::chunks::{Bounds, Items, addresses, checked, reserve, size};
use crate::{CopyPolicy, CopyReason, Error};

/// Lists as fixed-size lists: over the same values, or over copies where null rows have to be padded, or rows do not lie
/// one behind the other. `length` is that of all rows so far.
pub(super) fn of_one_length(
    lists: &ArrayRef,
    length: &OnceLock<usize>,
    copy: CopyPolicy,
) -> Result<ArrayRef, Error> {
    let lists = addresses(lists)?;
    let Some((bounds, Items::List(values, item))) = Bounds::of(&lists) else { return Ok(lists) };
    bounds.check(values.len())?;
    let valid = |row: &usize| lists.is_valid(*row);
    let rows = 0..lists.len();
    for row in rows.clone().filter(valid) {
        let found = bounds.range(row).len();
        let expected = *length.get_or_init(|| found);
        if found != expected {
            return Err(Error::UnevenRows { row, length: found, expected });
        }
    }
    let length = length.get().copied().unwrap_or(0);
    let overflow = || Error::Overflow("length");
    let count = rows.len().checked_mul(length).ok_or_else(overflow)?;
    let first = rows.clone().next().map_or(0, |row| bounds.range(row).start);
    let lies = |row: usize| bounds.range(row) == (first + row * length..first + (row + 1) * length);
    let values = if count == 0 {
        values.slice(0, 0)
    } else if rows.clone().all(lies) {
        values.slice(first, count)
    } else {
        let nbytes = size::of_type(values.data_type(), count);
        if copy == CopyPolicy::Never {
            let nbytes = nbytes.unwrap_or(usize::MAX);
            return Err(Error::CopyForbidden { reason: CopyReason::Scattered, nbytes });
        }
        reserve(nbytes.and_then(|nbytes| nbytes.checked_add(count.checked_mul(9)?)))?;
        let cells = rows.flat_map(|row| {
            let start = valid(&row).then(|| bounds.range(row).start);
            (0..length).map(move |cell| Some(u64::try_from(start? + cell).unwrap_or(u64::MAX)))
        });
        let cells = cells.collect::<UInt64Array>();
        checked(|| take(values, &cells, None))?
    };
    let item = Arc::new(Field::clone(item).with_nullable(true));
    let length = i32::try_from(length).map_err(|_| overflow())?;
    let (rows, nulls) = (lists.len(), lists.nulls().cloned());
    let made =
        checked(|| FixedSizeListArray::try_new_with_length(item, length, values, nulls, rows));
    Ok(Arc::new(made?))
}

/// Whether a column of this type is read by [`of_one_length`].
pub(super) fn is_of_lists(data_type: &DataType) -> bool {
    use DataType::{LargeList, LargeListView, List, ListView};
    matches!(data_type, List(_) | LargeList(_) | ListView(_) | LargeListView(_))
}
