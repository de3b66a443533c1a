//! Draws rows at random from a pool, which is refilled from the source.
//!
//! The result depends on the seed and on the number of rows, and not on the chunks of the source.

mod column;
mod items;
mod resume;

use std::{ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, cast::AsArray, types::UInt64Type};
use arrow_schema::SchemaRef;

use super::epoch::Random;
use crate::chunks::{self, checked};
use crate::{Error, alloc, task::Steps};
use column::PooledColumn;
pub(crate) use column::rows_at;
use items::{Drawn as _, PooledItems};
pub(crate) use resume::{Resume, resume};

/// All batches until the next refill are drawn at once, column by column, because a cache holds one column better than
/// all of them. Of 2 million rows of 17 numbers, arrow-select's `take` for each batch took three times as long.
pub(super) struct Pool {
    /// Least number of rows to draw from, as long as the source has more.
    least: usize,
    /// Rows of a batch.
    size: usize,
    random: Random,
    schema: SchemaRef,
    columns: Vec<PooledColumn>,
    /// Positions of the rows that have not been drawn, and of those that have, for columns that are not of numbers.
    positions: PooledItems<u64>,
    /// Rows that have not been drawn.
    rows: usize,
    /// Rows that have been drawn, and how many of them `next` has returned.
    drawn: usize,
    returned: usize,
}

impl Pool {
    pub(super) fn new(least: usize, size: usize, seed: u64, schema: &SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| PooledColumn::new(field.data_type()));
        Self {
            least,
            size,
            random: Random(seed),
            schema: Arc::clone(schema),
            columns: columns.collect(),
            positions: PooledItems::new(1),
            rows: 0,
            drawn: 0,
            returned: 0,
        }
    }

    /// Rows to read for a refill: as many as `least`, so that the rows that remain are moved once per row read.
    pub(super) fn rows_to_read(&self) -> usize {
        self.least.saturating_mul(2).saturating_sub(self.rows)
    }

    /// The next batch of drawn rows, `None` if a refill has to draw more.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Some(Range { start, end }) = self.advance() else { return Ok(None) };
        let rows = end - start;
        let columns =
            self.columns.iter().map(|column| column.batch(start, rows, self.positions.drawn()));
        let columns = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        checked(|| RecordBatch::try_new_with_options(schema, columns, &options)).map(Some)
    }

    /// The drawn rows of the next batch.
    fn advance(&mut self) -> Option<Range<usize>> {
        let start = self.returned;
        self.returned = self.drawn.min(start.saturating_add(self.size));
        (start < self.returned).then_some(start..self.returned)
    }

    /// Puts the pool into the state that [`resume`] found; it has no rows yet.
    pub(super) fn resume(&mut self, rows: &[RecordBatch], state: Resume) -> Result<(), Error> {
        let Resume { rows: count, left, random } = state;
        self.random = Random(random);
        self.add(rows, count, (left..count).rev().collect())
    }

    /// Leaves out at most this number of drawn batches, and returns how many.
    fn skip(&mut self, batches: usize) -> usize {
        let drawn = self.drawn - self.returned;
        let count = batches.min(drawn.div_ceil(self.size));
        self.returned =
            self.drawn.min(self.returned.saturating_add(count.saturating_mul(self.size)));
        count
    }

    /// The values of the first column, of uint64, in the order of [`Resume`].
    fn numbers(&self) -> Result<Vec<u64>, Error> {
        let Some(column) = self.columns.first() else { return Ok(Vec::new()) };
        let (left, returned) = (column.rest()?, self.drawn - self.returned);
        let left = left.typed_data::<u64>();
        let mut numbers = alloc::reserved(left.len().saturating_add(returned))?;
        numbers.extend_from_slice(left);
        let drawn = column.batch(self.returned, returned, &[])?;
        numbers.extend(drawn.as_primitive::<UInt64Type>().values().iter().rev());
        Ok(numbers)
    }

    /// Adds rows, and draws whole batches until `least` rows are left, or all rows if the source `is_over`.
    pub(super) fn refill(&mut self, more: &[RecordBatch], is_over: bool) -> Result<(), Error> {
        let rows = more.iter().map(RecordBatch::num_rows).fold(self.rows, usize::saturating_add);
        let ahead = rows.saturating_sub(self.least);
        // A pool that is not full draws one batch at least.
        let count = if is_over { rows } else { (ahead / self.size).max(1) * self.size };
        let count = count.min(rows);
        // Rows of size 0 take no memory, but there is a number for each draw.
        alloc::probe_alloc(rows.saturating_add(count).saturating_mul(size_of::<u64>()))?;
        let mut draws = alloc::reserved(count)?;
        let mut steps = Steps::default();
        for drawn in 0..count {
            draws.push(self.random.below(rows - drawn));
            steps.done(size_of::<u64>())?;
        }
        self.add(more, rows, draws)
    }

    /// Adds rows, so that there are this many, and draws some.
    fn add(&mut self, more: &[RecordBatch], rows: usize, draws: Vec<usize>) -> Result<(), Error> {
        let has_others = self.columns.iter().any(PooledColumn::needs_positions);
        let left = has_others.then(|| self.positions.left().to_vec());
        if has_others {
            self.positions.number(rows)?;
            self.positions.draw(&draws)?;
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            let chunks = chunks::column(more, index);
            column.append(&chunks, left.as_deref().unwrap_or_default())?;
            column.draw(&draws)?;
        }
        (self.rows, self.drawn, self.returned) = (rows - draws.len(), draws.len(), 0);
        Ok(())
    }
}
