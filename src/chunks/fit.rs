//! Checks that there is memory for what arrow-rs is about to make. It aborts the process where memory runs out, and
//! a few bytes can ask for more than there is. So this crate asks it only for what fits: `size` counts, by type
//! and at every depth, and [`reserve`] is the one limit.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::size;
use crate::error::Error;
use crate::memory;

/// An error unless there is room for so many bytes; `None` are more than can be counted.
pub(crate) fn reserve(nbytes: Option<usize>) -> Result<(), Error> {
    memory::probe_alloc(nbytes.unwrap_or(usize::MAX))
}

/// An error unless the rows of several chunks can be counted.
pub(crate) fn check_joined(chunks: &[ArrayRef]) -> Result<(), Error> {
    let rows = chunks.iter().try_fold(0_usize, |sum, chunk| sum.checked_add(chunk.len()));
    match rows.and_then(|rows| i64::try_from(rows).ok()) {
        None if chunks.len() > 1 => Err(Error::Overflow("number of rows")),
        _ => Ok(()),
    }
}

/// An error unless chunks of one type would fit memory one behind the other, as arrow's kernels put them.
pub(crate) fn check_appended(chunks: &[ArrayRef], data_type: &DataType) -> Result<(), Error> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let written = || {
        chunks.iter().try_fold(size::of_type(data_type, rows)?, |sum, chunk| {
            sum.checked_add(size::of_rows(chunk)?)
        })
    };
    reserve(written())
}

/// An error unless each row of an array could be taken once, in any order.
pub(crate) fn check_taken(array: &dyn Array) -> Result<(), Error> {
    let taken = || {
        let written = size::of_rows(array)?.checked_add(size::of_take(array, array.len())?)?;
        written.checked_add(size::of_type(array.data_type(), array.len())?)
    };
    reserve(taken())
}
