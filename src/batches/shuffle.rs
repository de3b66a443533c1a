//! Draws rows at random from a pool, which is refilled from the source.
//!
//! The result depends on the seed and on the number of rows, and not on the chunks of the source.

use std::mem;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, RecordBatch, RecordBatchOptions, UInt64Array, make_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::chunks::{self, addresses, check_taken, checked};
use crate::error::Error;
use crate::{kernels, memory};

pub(super) struct Pool {
    /// Least number of rows to draw from, as long as the source has more.
    least: usize,
    /// Rows of a batch.
    size: usize,
    random: Random,
    /// The rows that were read, of which those at `left` have not been drawn.
    rows: Option<RecordBatch>,
    left: Vec<u64>,
    /// Rows in the order in which they were drawn.
    drawn: Option<RecordBatch>,
}

impl Pool {
    pub(super) fn new(least: usize, size: usize, seed: u64) -> Self {
        Self { least, size, random: Random(seed), rows: None, left: Vec::new(), drawn: None }
    }

    /// Rows to read for a refill: as many as `least`, so that the rows that remain are copied once per row read.
    pub(super) fn wanted(&self) -> usize {
        self.least.saturating_mul(2).saturating_sub(self.left.len())
    }

    /// The next batch of drawn rows, `None` if a refill has to draw more.
    pub(super) fn next(&mut self) -> Option<RecordBatch> {
        let drawn = self.drawn.take()?;
        let rows = drawn.num_rows();
        if rows > self.size {
            self.drawn = Some(drawn.slice(self.size, rows - self.size));
        }
        Some(drawn.slice(0, rows.min(self.size)))
    }

    /// Adds rows, and draws whole batches until `least` rows are left, or all rows if the source `is_over`.
    ///
    /// All batches are drawn at once, column by column, which a cache holds better than the rows of all columns.
    pub(super) fn refill(&mut self, more: Vec<RecordBatch>, is_over: bool) -> Result<(), Error> {
        let rows =
            more.iter().map(RecordBatch::num_rows).fold(self.left.len(), usize::saturating_add);
        if rows == 0 {
            return Ok(());
        }
        // Rows of size 0 take no memory, but `left` has a number for each row, and a draw another one.
        memory::probe_alloc(rows.saturating_mul(2 * size_of::<u64>()))?;
        let left = mem::take(&mut self.left);
        let mut batches = Vec::with_capacity(more.len() + 1);
        if let Some(rows) = self.rows.take().filter(|_| !left.is_empty()) {
            batches.push(gathered(&rows, left)?);
        }
        batches.extend(more);
        let rows = joined(batches)?;
        for column in rows.columns() {
            check_taken(column)?;
        }
        self.left = (0..).take(rows.num_rows()).collect();
        let ahead = rows.num_rows().saturating_sub(self.least);
        // A pool that is not full draws one batch at least.
        let count = if is_over { rows.num_rows() } else { (ahead / self.size).max(1) * self.size };
        let mut drawn = Vec::with_capacity(count);
        for _ in 0..count.min(rows.num_rows()) {
            let at = self.random.below(self.left.len());
            drawn.push(self.left.swap_remove(at));
        }
        self.drawn = Some(gathered(&rows, drawn)?);
        self.rows = Some(rows).filter(|_| !self.left.is_empty());
        Ok(())
    }
}

fn gathered(rows: &RecordBatch, which: Vec<u64>) -> Result<RecordBatch, Error> {
    let (count, which) = (which.len(), UInt64Array::from(which));
    let columns = rows.columns().iter().map(|column| taken(column, &which));
    let columns = columns.collect::<Result<_, Error>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    checked(|| RecordBatch::try_new_with_options(rows.schema(), columns, &options))
}

/// The rows of a column at these positions. Numbers without nulls, and fixed-size lists of them, take a third of the time
/// that arrow-select needs as the package is built.
fn taken(column: &ArrayRef, which: &UInt64Array) -> Result<ArrayRef, Error> {
    if column.null_count() > 0 {
        return checked(|| take(column, which, None));
    }
    if let (DataType::FixedSizeList(item, size), Some(list)) =
        (column.data_type(), column.as_fixed_size_list_opt())
    {
        if list.values().null_count() == 0 && *size > 0 {
            if let Some(values) = items(list.values(), size.as_usize(), which)? {
                let lists = || FixedSizeListArray::try_new(Arc::clone(item), *size, values, None);
                return Ok(Arc::new(checked(lists)?));
            }
        }
    }
    match items(column, 1, which)? {
        Some(items) => Ok(items),
        None => checked(|| take(column, which, None)),
    }
}

/// Rows of so many numbers each; `None` for other types.
fn items(values: &ArrayRef, each: usize, which: &UInt64Array) -> Result<Option<ArrayRef>, Error> {
    let Some(width) = values.data_type().primitive_width() else { return Ok(None) };
    let data = values.to_data();
    let bytes = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
    let taken = kernels::take(&bytes, each * width, which.values())?.into_buffer();
    let made = ArrayData::builder(data.data_type().clone()).len(which.len() * each);
    checked(|| Ok(Some(make_array(made.add_buffer(taken).build()?))))
}

/// Concatenates batches. The result's offsets, views and the like are copies, which no other code can change.
pub(super) fn joined(batches: Vec<RecordBatch>) -> Result<RecordBatch, Error> {
    let schema = batches[0].schema();
    if let [batch] = batches.as_slice() {
        let columns = batch.columns().iter().map(addresses);
        let columns = columns.collect::<Result<_, _>>()?;
        return checked(|| RecordBatch::try_new(schema, columns));
    }
    let columns = 0..schema.fields().len();
    let columns = columns.map(|index| chunks::joined(&chunks::column(&batches, index)));
    let columns = columns.collect::<Result<Vec<_>, Error>>()?;
    checked(|| RecordBatch::try_new(schema, columns))
}

/// SplitMix64 (Steele, Lea and Flood, 2014), which is not for cryptography.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, uniform up to a bias of at most `end` / 2^64.
    fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next()) * u128::try_from(end).unwrap_or(0)) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }
}
