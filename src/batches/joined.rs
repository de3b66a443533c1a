//! Concatenates rows whose indices no other code can change.

use arrow_array::{ArrayRef, RecordBatch};

use crate::Error;
use crate::chunks::{self, addresses, checked};

/// Concatenates batches. The result's offsets, views and the like are copies, which no other code can change.
pub(super) fn joined(batches: Vec<RecordBatch>) -> Result<RecordBatch, Error> {
    let schema = batches[0].schema();
    let columns = 0..schema.fields().len();
    let columns = columns.map(|index| as_one(&chunks::column(&batches, index)));
    let columns = columns.collect::<Result<Vec<_>, Error>>()?;
    checked(|| RecordBatch::try_new(schema, columns))
}

/// [`joined`] of one column, of at least one chunk.
pub(super) fn as_one(chunks: &[ArrayRef]) -> Result<ArrayRef, Error> {
    match chunks {
        [chunk] => addresses(chunk),
        _ => chunks::joined(chunks),
    }
}
