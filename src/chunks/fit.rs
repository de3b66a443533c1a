//! Checks that the memory that arrow-rs is about to allocate is available. arrow-rs aborts the process when
//! memory runs out, and a small input can have a huge result. So this crate calls its kernels only for results
//! that fit: `size` computes their size, by type and at every depth, and [`reserve`] checks it.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::size;
use crate::error::Error;
use crate::memory;

/// An error unless so many bytes can be allocated; `None` stands for a number that overflows.
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

/// An error unless the concatenation of the chunks, as arrow's kernels make it, fits memory.
pub(crate) fn check_appended(chunks: &[ArrayRef], data_type: &DataType) -> Result<(), Error> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let written = || {
        chunks.iter().try_fold(size::of_type(data_type, rows)?, |sum, chunk| {
            sum.checked_add(size::of_rows(chunk)?)
        })
    };
    reserve(written())
}

/// An error unless the result of a `take` of all rows, in any order, fits memory.
pub(crate) fn check_taken(array: &dyn Array) -> Result<(), Error> {
    let taken = || {
        let written = size::of_rows(array)?.checked_add(size::of_take(array, array.len())?)?;
        written.checked_add(size::of_type(array.data_type(), array.len())?)
    };
    reserve(taken())
}
