//! A source, read chunk by chunk and cut into blocks of exactly so many rows.
//!
//! A block is the pieces of the chunks that it lies in: one, which shares the chunk's memory, or several across
//! an edge, which the conversion puts together, in the one copy that it makes anyway.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use super::options::BatchOptions;
use super::shuffle::{Pool, joined};
use crate::chunks::{Coded, checked};
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;

/// Where chunks come from, and how many bytes of each had to be moved to be one.
pub(crate) type Chunks = Box<dyn Iterator<Item = Result<(RecordBatch, usize), Error>> + Send>;

/// Called between the steps of what may take long; what it returns ends it.
pub(crate) type Pause<'a> = dyn FnMut() -> Result<(), Error> + 'a;

pub(super) struct Reader {
    chunks: Chunks,
    /// Which of their columns.
    columns: Vec<usize>,
    /// Which of these are codes.
    coded: Vec<Option<Arc<Coded>>>,
    /// Of what is read.
    schema: SchemaRef,
    /// Rows of a batch; `None` for as many as there are in a chunk.
    size: Option<usize>,
    drop_last: bool,
    /// Whether what arrives may have been moved on its way in.
    copy: CopyPolicy,
    /// (index, count): of each `count` blocks, the one that this reader takes.
    shard: (usize, usize),
    pool: Option<Pool>,
    /// Rows that were read and are in no block yet.
    pending: VecDeque<RecordBatch>,
    rows: usize,
    blocks: usize,
    end: Option<Result<(), Error>>,
}

impl Reader {
    /// Of these columns, as fields that any rows may be null in.
    pub(super) fn new(
        chunks: Chunks,
        columns: Vec<usize>,
        coded: Vec<Option<Arc<Coded>>>,
        schema: &Schema,
        options: &BatchOptions,
    ) -> Self {
        let nullable = |field: &Arc<Field>| Field::clone(field).with_nullable(true);
        let fields: Vec<_> = schema.fields().iter().map(nullable).collect();
        let size = options.batch_size;
        let pool = |(rows, seed): (usize, u64)| Pool::new(rows.max(size.unwrap_or(1)), seed);
        Self {
            chunks,
            columns,
            coded,
            schema: Arc::new(Schema::new(fields)),
            size,
            drop_last: options.drop_last,
            copy: options.export.copy,
            shard: options.shard,
            pool: options.shuffle.map(pool),
            pending: VecDeque::new(),
            rows: 0,
            blocks: 0,
            end: None,
        }
    }

    /// The pieces of the next batch, `None` at the end.
    ///
    /// An error in the source ends it, and comes when everything before it has been handed out. `pause` is
    /// called between the steps, and what it returns comes at once.
    pub(super) fn next(
        &mut self,
        pause: &mut Pause<'_>,
    ) -> Result<Option<Vec<RecordBatch>>, Error> {
        let next = match self.pool.take() {
            None => self.block(self.size, pause)?,
            Some(mut pool) => {
                let drawn = self.drawn(&mut pool, pause);
                self.pool = Some(pool);
                drawn?
            }
        };
        let is_left_out = |pieces: &_| self.drop_last && Some(rows_of(pieces)) != self.size;
        match (next.filter(|pieces| !is_left_out(pieces)), &mut self.end) {
            (None, Some(end)) => mem::replace(end, Ok(())).map(|()| None),
            (next, _) => Ok(next),
        }
    }

    fn drawn(
        &mut self,
        pool: &mut Pool,
        pause: &mut Pause<'_>,
    ) -> Result<Option<Vec<RecordBatch>>, Error> {
        let size = self.size.unwrap_or(usize::MAX);
        if pool.is_low() {
            let (mut pieces, mut wanted) = (Pieces::default(), pool.wanted());
            while wanted >= size {
                // Where all blocks are for this reader, they come as one.
                let rows = if self.shard.1 == 1 { wanted / size * size } else { size };
                let Some(block) = self.block(Some(rows), pause)? else { break };
                wanted -= rows_of(&block);
                pieces.extend(block)?;
            }
            pool.refill(pieces.into_batches())?;
        }
        let rows = pool.len().min(size);
        if rows == 0 { Ok(None) } else { Ok(Some(vec![pool.draw(rows)?])) }
    }

    /// The pieces of the next block of so many rows, or of a chunk, that is for this reader.
    fn block(
        &mut self,
        size: Option<usize>,
        pause: &mut Pause<'_>,
    ) -> Result<Option<Vec<RecordBatch>>, Error> {
        let (index, count) = self.shard;
        loop {
            let wanted = size.unwrap_or(1);
            while self.rows < wanted && self.end.is_none() {
                pause()?;
                self.end = match self.pull() {
                    Ok(true) => None,
                    Ok(false) => Some(Ok(())),
                    Err(error) => Some(Err(error)),
                };
            }
            let whole = self.pending.front().map_or(0, RecordBatch::num_rows);
            let rows = size.unwrap_or(whole).min(self.rows);
            if rows == 0 {
                return Ok(None);
            }
            let block = self.take(rows);
            self.blocks += 1;
            if (self.blocks - 1) % count == index {
                return Ok(Some(block));
            }
        }
    }

    /// Reads a chunk; whether there may be another one.
    fn pull(&mut self) -> Result<bool, Error> {
        let Some(next) = self.chunks.next() else { return Ok(false) };
        let (chunk, nbytes) = next?;
        // Without rows there may be no dictionary either.
        if chunk.num_rows() == 0 {
            return Ok(true);
        }
        // Rows may take no memory at all.
        let rows = self.rows.checked_add(chunk.num_rows());
        let rows = rows.ok_or(Error::Overflow("number of rows"))?;
        if nbytes > 0 && self.copy == CopyPolicy::Never {
            return Err(Error::CopyForbidden { reason: CopyReason::Realigned, nbytes });
        }
        let column = |(&at, coded): (&usize, &Option<Arc<Coded>>)| match coded {
            None => Ok(Arc::clone(chunk.column(at))),
            // These stand for the same values in all chunks.
            Some(coded) => coded.read(chunk.column(at), self.copy),
        };
        let columns = self.columns.iter().zip(&self.coded).map(column);
        let columns = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.num_rows()));
        let schema = Arc::clone(&self.schema);
        let read = || RecordBatch::try_new_with_options(schema, columns, &options);
        self.pending.push_back(checked(read)?);
        self.rows = rows;
        Ok(true)
    }

    /// So many of the rows that are there.
    fn take(&mut self, mut rows: usize) -> Vec<RecordBatch> {
        self.rows -= rows;
        let mut pieces = Vec::with_capacity(1);
        while rows > 0 {
            let Some(chunk) = self.pending.pop_front() else { break };
            if chunk.num_rows() <= rows {
                rows -= chunk.num_rows();
                pieces.push(chunk);
            } else {
                pieces.push(chunk.slice(0, rows));
                self.pending.push_front(chunk.slice(rows, chunk.num_rows() - rows));
                rows = 0;
            }
        }
        pieces
    }
}

/// Pieces of chunks for a pool. A few rows are less than what it takes to say where they are: so they are put
/// together from time to time.
#[derive(Default)]
struct Pieces {
    together: Vec<RecordBatch>,
    small: Vec<RecordBatch>,
}

impl Pieces {
    fn extend(&mut self, pieces: Vec<RecordBatch>) -> Result<(), Error> {
        const MANY: usize = 1024;
        self.small.extend(pieces);
        if self.small.len() >= MANY {
            self.together.push(joined(mem::take(&mut self.small))?);
        }
        Ok(())
    }

    fn into_batches(mut self) -> Vec<RecordBatch> {
        self.together.append(&mut self.small);
        self.together
    }
}

fn rows_of(pieces: &[RecordBatch]) -> usize {
    pieces.iter().map(RecordBatch::num_rows).sum()
}
