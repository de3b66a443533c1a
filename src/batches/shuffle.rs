//! Draws rows at random from a pool, which is refilled from the source.
//!
//! The result depends on the seed and on the number of rows, and not on the chunks of the source.

use std::mem;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;

use crate::chunks::{self, addresses, check_taken, checked};
use crate::error::Error;
use crate::memory;

pub(super) struct Pool {
    /// Least number of rows to draw from, as long as the source has more.
    least: usize,
    random: Random,
    rows: Option<RecordBatch>,
    /// Positions of the rows that have not been drawn.
    left: Vec<u64>,
}

impl Pool {
    pub(super) fn new(least: usize, seed: u64) -> Self {
        Self { least, random: Random(seed), rows: None, left: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    pub(super) fn is_low(&self) -> bool {
        self.left.len() < self.least
    }

    /// Rows to read for a refill: as many as `least`, so that the rows that remain are copied once per row read.
    pub(super) fn wanted(&self) -> usize {
        self.least.saturating_mul(2).saturating_sub(self.left.len())
    }

    /// Adds rows.
    pub(super) fn refill(&mut self, more: Vec<RecordBatch>) -> Result<(), Error> {
        if more.is_empty() {
            return Ok(());
        }
        let rows =
            more.iter().map(RecordBatch::num_rows).fold(self.left.len(), usize::saturating_add);
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
        self.rows = Some(rows);
        Ok(())
    }

    /// Draws this many rows; the pool must have them.
    pub(super) fn draw(&mut self, rows: usize) -> Result<RecordBatch, Error> {
        let mut drawn = Vec::with_capacity(rows);
        for _ in 0..rows {
            let at = self.random.below(self.left.len());
            drawn.push(self.left.swap_remove(at));
        }
        let rows = self.rows.as_ref().ok_or(Error::Overflow("number of rows"))?;
        gathered(rows, drawn)
    }
}

fn gathered(rows: &RecordBatch, which: Vec<u64>) -> Result<RecordBatch, Error> {
    checked(|| take_record_batch(rows, &UInt64Array::from(which)))
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
