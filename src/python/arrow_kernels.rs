//! Whether there is room for what arrow-rs is about to make. It aborts the process where memory runs out, and a
//! few bytes can ask for more than there is. So it is asked only for what fits, and what that is, is asked here:
//! `size` and `bound` count, by type and at every depth, and [`reserve`] is the one limit.

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

use super::ffi_validate::{Checked, fenced};
use super::{bound, settled, size};
use crate::error::Error;
use crate::memory;

/// An error unless there is room for so many bytes; `None` are more than can be counted.
fn reserve(nbytes: Option<usize>) -> Result<(), Error> {
    memory::probe_alloc(nbytes.unwrap_or(usize::MAX))
}

/// An error unless the rows of several chunks can be counted.
pub(super) fn check_joined(chunks: &[ArrayRef]) -> Result<(), Error> {
    let rows = chunks.iter().try_fold(0_usize, |sum, chunk| sum.checked_add(chunk.len()));
    match rows.and_then(|rows| i64::try_from(rows).ok()) {
        None if chunks.len() > 1 => Err(Error::Overflow("number of rows")),
        _ => Ok(()),
    }
}

/// An error unless chunks of one type would fit memory one behind the other, as arrow's kernels put them.
pub(super) fn check_appended(chunks: &[ArrayRef], data_type: &DataType) -> Result<(), Error> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let written = || {
        chunks.iter().try_fold(size::of_type(data_type, rows)?, |sum, chunk| {
            sum.checked_add(size::of_rows(chunk)?)
        })
    };
    reserve(written())
}

/// An error unless each row of an array could be taken once, in any order.
pub(super) fn check_taken(array: &dyn Array) -> Result<(), Error> {
    let taken = || {
        let written = size::of_rows(array)?.checked_add(size::of_take(array, array.len())?)?;
        written.checked_add(size::of_type(array.data_type(), array.len())?)
    };
    reserve(taken())
}

/// So many rows of an array, in this order: of one that has passed [`check_taken`], each row once at most.
pub(super) fn taken(array: &dyn Array, rows: &UInt64Array) -> Result<ArrayRef, ArrowError> {
    take(array, rows, None)
}

/// The values of an array as another type, none of which the type cannot hold; the error says what is wrong.
pub(super) fn cast(array: &dyn Array, wanted: &DataType) -> Checked<ArrayRef> {
    let from = array.data_type();
    if !can_cast_types(from, wanted) {
        return Err("there is no way from one to the other".to_owned());
    }
    if !bound::is_known(from, wanted) {
        return Err("nobody knows how much memory that takes".to_owned());
    }
    let array = &settled::everything(array)?;
    if reserve(bound::of_cast(array, wanted)).is_err() {
        return Err(format!("{} of them do not fit memory", array.len()));
    }
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    fenced(|| cast_with_options(array, wanted, &checked))
}
