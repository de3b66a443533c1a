//! A source, read chunk by chunk and cut into blocks of exactly so many rows.
//!
//! A block is the pieces of the chunks that it lies in: one, which shares the chunk's memory, or several across
//! an edge, which the conversion puts together, in the one copy that it makes anyway.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::shuffle::{Pool, joined};
use crate::chunks::{Coded, batch, checked};
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;
use crate::python::source::Stream;

/// What a batch is to be like.
pub(super) struct Cut {
    /// Rows of a batch; `None` for as many as there are in a chunk.
    pub(super) size: Option<usize>,
    pub(super) drop_last: bool,
    /// Whether what arrives may have been moved on its way in.
    pub(super) copy: CopyPolicy,
    /// Of so many readers of the same source, the one that takes every so manieth block from this one on.
    pub(super) shard: (usize, usize),
}

/// Where chunks come from.
pub(super) enum Origin {
    Stream(Stream),
    Array(Option<ArrayRef>, usize),
}

impl Origin {
    /// The next chunk, and how many bytes of it were moved.
    fn next(&mut self) -> Result<Option<(ArrayRef, usize)>, String> {
        match self {
            Self::Stream(stream) => stream.next(),
            Self::Array(array, moved) => Ok(array.take().map(|array| (array, *moved))),
        }
    }
}

pub(super) struct Reader {
    origin: Origin,
    /// That of a chunk, which is a struct; `None` if it is a column.
    schema: Option<Schema>,
    /// Which of the columns.
    columns: Vec<usize>,
    /// Which of these are codes.
    coded: Vec<Option<Arc<Coded>>>,
    cut: Cut,
    pool: Option<Pool>,
    /// Rows that were read and are in no block yet.
    pending: VecDeque<RecordBatch>,
    rows: usize,
    blocks: usize,
    end: Option<PyResult<()>>,
}

impl Reader {
    pub(super) fn new(
        origin: Origin,
        schema: Option<Schema>,
        columns: Vec<usize>,
        coded: Vec<Option<Arc<Coded>>>,
        cut: Cut,
        pool: Option<Pool>,
    ) -> Self {
        Self {
            origin,
            schema,
            columns,
            coded,
            cut,
            pool,
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
        pause: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<Option<Vec<RecordBatch>>> {
        let next = match self.pool.take() {
            None => self.block(self.cut.size, pause)?,
            Some(mut pool) => {
                let drawn = self.drawn(&mut pool, pause);
                self.pool = Some(pool);
                drawn?
            }
        };
        let is_left_out = |pieces: &_| self.cut.drop_last && Some(rows_of(pieces)) != self.cut.size;
        match (next.filter(|pieces| !is_left_out(pieces)), &mut self.end) {
            (None, Some(end)) => mem::replace(end, Ok(())).map(|()| None),
            (next, _) => Ok(next),
        }
    }

    fn drawn(
        &mut self,
        pool: &mut Pool,
        pause: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<Option<Vec<RecordBatch>>> {
        let size = self.cut.size.unwrap_or(usize::MAX);
        if pool.is_low() {
            let (mut pieces, mut room) = (Pieces::default(), pool.room());
            while room >= size {
                // Where all blocks are for this reader, they come as one.
                let rows = if self.cut.shard.1 == 1 { room / size * size } else { size };
                let Some(block) = self.block(Some(rows), pause)? else { break };
                room -= rows_of(&block);
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
        pause: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<Option<Vec<RecordBatch>>> {
        let (index, count) = self.cut.shard;
        loop {
            let wanted = size.unwrap_or(1);
            while self.rows < wanted && self.end.is_none() {
                pause()?;
                self.pull();
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

    fn pull(&mut self) {
        match self.chunk() {
            Ok(Some((chunk, _))) if chunk.num_rows() == 0 => {}
            Ok(Some((chunk, rows))) => {
                self.rows = rows;
                self.pending.push_back(chunk);
            }
            Ok(None) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error)),
        }
    }

    /// The next chunk, and how many rows there are with it.
    fn chunk(&mut self) -> PyResult<Option<(RecordBatch, usize)>> {
        let next = self.origin.next().map_err(PyValueError::new_err)?;
        let Some((chunk, nbytes)) = next else { return Ok(None) };
        // Rows may take no memory at all.
        let rows = self.rows.checked_add(chunk.len());
        let rows = rows.ok_or_else(|| PyValueError::new_err("the number of rows overflows"))?;
        let batch = self.batch(&chunk)?;
        if nbytes > 0 && batch.num_rows() > 0 && self.cut.copy == CopyPolicy::Never {
            let reason = CopyReason::Realigned;
            return Err(Error::CopyForbidden { reason, nbytes }.into());
        }
        Ok(Some((self.with_codes(batch)?, rows)))
    }

    fn batch(&self, chunk: &ArrayRef) -> Result<RecordBatch, Error> {
        match &self.schema {
            Some(schema) => {
                let batch = batch(chunk, schema)?;
                checked(|| batch.project(&self.columns))
            }
            None => {
                checked(|| RecordBatch::try_from_iter_with_nullable([("", chunk.clone(), true)]))
            }
        }
    }

    /// The chunk with the codes of the stream, which stand for the same values in all chunks.
    fn with_codes(&self, batch: RecordBatch) -> PyResult<RecordBatch> {
        // Without rows there may be no dictionary either.
        if batch.num_rows() == 0 || self.coded.iter().all(Option::is_none) {
            return Ok(batch);
        }
        let schema = batch.schema();
        let read = |((column, field), coded): ((&ArrayRef, &FieldRef), &Option<Arc<Coded>>)| {
            Ok(match coded {
                None => (Arc::clone(column), Arc::clone(field)),
                Some(coded) => (coded.read(column, self.cut.copy)?, Arc::clone(&coded.codes)),
            })
        };
        let columns = batch.columns().iter().zip(schema.fields()).zip(&self.coded).map(read);
        let (columns, fields): (_, Vec<_>) =
            columns.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
        let schema = Arc::new(Schema::new(fields));
        Ok(checked(|| RecordBatch::try_new(schema, columns))?)
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
    fn extend(&mut self, pieces: Vec<RecordBatch>) -> PyResult<()> {
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
