//! Rows that are drawn at random from a pool of them, which is filled up again and again.
//!
//! What is drawn depends on the seed and on how many rows there are, and never on the chunks that they came in.

use std::mem;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;

use crate::chunks::{self, addresses, check_taken, checked};
use crate::error::Error;
use crate::memory;

pub(super) struct Pool {
    /// A row is drawn from no fewer than these, as long as the source has more.
    least: usize,
    random: Random,
    rows: Option<RecordBatch>,
    /// Those of the rows that have not been drawn.
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

    /// How many rows are to come: as many again as have to be there, so that what stays is copied once for each
    /// row that comes.
    pub(super) fn wanted(&self) -> usize {
        self.least.saturating_mul(2).saturating_sub(self.left.len())
    }

    /// Puts more rows in.
    pub(super) fn refill(&mut self, more: Vec<RecordBatch>) -> Result<(), Error> {
        if more.is_empty() {
            return Ok(());
        }
        let rows =
            more.iter().map(RecordBatch::num_rows).fold(self.left.len(), usize::saturating_add);
        // The rows themselves may take no memory at all, but each of them has a number here, when it is drawn too.
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

    /// So many of the rows, of which there are as many.
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

/// One batch, whose rows are found by offsets and the like that no other language can change.
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

/// SplitMix64, by Steele, Lea and Flood, 2014: small, and good enough for what is no secret.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, each as likely as the others up to one in 2^64 / `end`.
    fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next()) * u128::try_from(end).unwrap_or(0)) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }
}
