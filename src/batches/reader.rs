//! Reads a source chunk by chunk and cuts it to blocks of a fixed number of rows.
//!
//! A block is a list of pieces of chunks: one, which shares the chunk's memory, or several, which the conversion
//! concatenates as it copies.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use super::categories::Categories;
use super::options::{BatchOptions, Form, Shard, Shuffle};
use super::shuffle::Pool;
use crate::chunks::{Coded, checked, concat_batches};
use crate::export::UniformMatrix;
use crate::ffi::DLDataType;
use crate::{CopyPolicy, CopyReason, Error, task};

/// The source of chunks, with the bytes that were moved to align each.
pub(crate) type BatchChunks = Box<dyn Iterator<Item = Result<(RecordBatch, usize), Error>> + Send>;

pub(super) struct Reader {
    chunks: BatchChunks,
    /// Positions of the columns to read.
    columns: Vec<usize>,
    /// How columns are read as codes.
    codes: Vec<Option<Codes>>,
    /// The schema of the columns that are read.
    schema: SchemaRef,
    options: BatchOptions,
    pool: Option<Pool>,
    /// Rows that were read, and that no block contains yet.
    pending: VecDeque<Piece>,
    rows: usize,
    blocks: usize,
    end: Option<Result<(), Error>>,
}

impl Reader {
    /// Reads these columns, as the fields of `schema`.
    pub(super) fn new(
        chunks: BatchChunks,
        columns: Vec<usize>,
        codes: Vec<Option<Codes>>,
        schema: SchemaRef,
        options: &BatchOptions,
    ) -> Self {
        let size = options.batch_size.unwrap_or(1);
        let pool = |Shuffle { rows, seed }| Pool::new(rows.max(size), size, seed, &schema);
        Self {
            chunks,
            columns,
            codes,
            pool: options.shuffle.map(pool),
            schema,
            options: options.clone(),
            pending: VecDeque::new(),
            rows: 0,
            blocks: 0,
            end: None,
        }
    }

    /// The pieces of the next batch, `None` at the end.
    ///
    /// An error of the source is returned after all rows before it, and ends the iteration. One of [`task::check`] is
    /// returned at once.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Piece>>, Error> {
        let next = match self.pool.take() {
            None => self.block(self.options.batch_size)?,
            Some(mut pool) => {
                let drawn = self.drawn(&mut pool);
                self.pool = Some(pool);
                drawn?.map(|batch| vec![Piece::whole(batch)])
            }
        };
        let is_left_out =
            |pieces: &_| self.options.drop_last && Some(rows_of(pieces)) != self.options.batch_size;
        match (next.filter(|pieces| !is_left_out(pieces)), &mut self.end) {
            (None, Some(end)) => mem::replace(end, Ok(())).map(|()| None),
            (next, _) => Ok(next),
        }
    }

    /// Whether the batch that was returned last is one only because the source failed: it lacks rows, or was drawn from
    /// fewer.
    pub(super) fn is_cut(&self) -> bool {
        self.options.batch_size.is_some() && matches!(self.end, Some(Err(_)))
    }

    fn drawn(&mut self, pool: &mut Pool) -> Result<Option<RecordBatch>, Error> {
        if let Some(state) = self.options.resume.take() {
            let rows = self.block(Some(state.rows))?.unwrap_or_default();
            if rows_of(&rows) < state.rows {
                return Err(Error::InvalidOptions("the source lacks rows of the shuffle's state"));
            }
            pool.resume(&rows.iter().map(Piece::batch).collect::<Vec<_>>(), state)?;
        }
        if let Some(batch) = pool.next()? {
            return Ok(Some(batch));
        }
        let size = self.options.batch_size.unwrap_or(1);
        let (mut pieces, mut wanted, mut is_over) = (Pieces::default(), pool.rows_to_read(), false);
        while wanted >= size {
            // Without shards, all wanted blocks are read as one.
            let rows = if self.options.shard.count == 1 { wanted / size * size } else { size };
            let block = self.block(Some(rows))?.unwrap_or_default();
            is_over = rows_of(&block) < rows;
            wanted -= rows_of(&block);
            pieces.extend(&block)?;
            if is_over {
                break;
            }
        }
        pool.refill(&pieces.into_batches(), is_over)?;
        pool.next()
    }

    /// The pieces of the next block of this shard, of this many rows or of one chunk.
    fn block(&mut self, size: Option<usize>) -> Result<Option<Vec<Piece>>, Error> {
        let Shard { index, count } = self.options.shard;
        loop {
            let wanted = size.unwrap_or(1);
            while self.rows < wanted && self.end.is_none() {
                task::check()?;
                self.end = match self.pull() {
                    Ok(true) => None,
                    Ok(false) => Some(Ok(())),
                    Err(error) if is_urgent(&error) => return Err(error),
                    Err(error) => Some(Err(error)),
                };
            }
            let whole = self.pending.front().map_or(0, Piece::rows);
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

    /// Reads a chunk; returns whether there may be another one.
    fn pull(&mut self) -> Result<bool, Error> {
        let Some(next) = self.chunks.next() else { return Ok(false) };
        let (chunk, nbytes) = next?;
        // A chunk without rows may lack its dictionary.
        if chunk.num_rows() == 0 {
            return Ok(true);
        }
        // Rows of size 0 take no memory, so their number can overflow.
        let rows = self.rows.checked_add(chunk.num_rows());
        let rows = rows.ok_or(Error::Overflow("number of rows"))?;
        if nbytes > 0 && self.options.export.copy == CopyPolicy::Never {
            return Err(Error::CopyForbidden { reason: CopyReason::Realigned, nbytes });
        }
        let column = |(&at, codes): (&usize, &Option<Codes>)| match codes {
            None => Ok(Arc::clone(chunk.column(at))),
            Some(codes) => codes.read(chunk.column(at), self.options.export.copy),
        };
        let columns = self.columns.iter().zip(&self.codes).map(column);
        let columns = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.num_rows()));
        let schema = Arc::clone(&self.schema);
        let read = || RecordBatch::try_new_with_options(schema, columns, &options);
        self.pending.push_back(Piece::whole(checked(read)?));
        self.rows = rows;
        Ok(true)
    }

    /// Takes this many of the pending rows.
    fn take(&mut self, mut rows: usize) -> Vec<Piece> {
        self.rows -= rows;
        let mut pieces = Vec::with_capacity(1);
        while let Some(first) = self.pending.front_mut().filter(|_| rows > 0) {
            if rows < first.rows() {
                pieces.push(first.split_to(rows));
                break;
            }
            rows -= first.rows();
            pieces.extend(self.pending.pop_front());
        }
        pieces
    }
}

/// How a column is read as codes, which stand for the same values in all chunks.
pub(super) enum Codes {
    /// Those of its dictionaries, as one.
    Dictionary(Arc<Coded>),
    /// The positions of its values, of this field, among given words, as this type.
    Categories(Categories, FieldRef, DataType),
}

impl Codes {
    /// `dtype`: the one that the column's options ask for, which decides with others what a matrix of the codes is.
    pub(super) fn of(
        field: &FieldRef,
        form: &Form,
        dtype: Option<DLDataType>,
        physical: bool,
    ) -> Result<Option<Self>, Error> {
        Ok(match form {
            Form::Arrow => None,
            Form::Categories(categories) => {
                let checked = categories.check(field);
                checked.map_err(|error| Error::in_column(field.name(), error))?;
                let is_long = dtype == Some(DLDataType::INT64);
                let data_type = if is_long { DataType::Int64 } else { DataType::Int32 };
                Some(Self::Categories(categories.clone(), Arc::clone(field), data_type))
            }
            _ if physical => Coded::new(field)?.map(|coded| Self::Dictionary(Arc::new(coded))),
            _ => None,
        })
    }

    /// The field of the codes.
    pub(super) fn field(&self) -> FieldRef {
        match self {
            Self::Dictionary(coded) => Arc::clone(&coded.codes),
            Self::Categories(_, field, data_type) => {
                Field::new(field.name(), data_type.clone(), true).into()
            }
        }
    }

    /// The dictionary that grows as chunks are read.
    pub(super) fn dictionary(&self) -> Option<Arc<Coded>> {
        match self {
            Self::Dictionary(coded) => Some(Arc::clone(coded)),
            Self::Categories(..) => None,
        }
    }

    pub(super) fn read(&self, chunk: &ArrayRef, copy: CopyPolicy) -> Result<ArrayRef, Error> {
        match self {
            Self::Dictionary(coded) => {
                let codes = coded.read(chunk, copy);
                codes.map_err(|error| Error::in_column(coded.field.name(), error))
            }
            Self::Categories(categories, field, data_type) => {
                categories.read(chunk, field, data_type)
            }
        }
    }
}

/// Pieces of chunks for a pool. A slice of a few rows takes less memory than its description, so small slices are
/// concatenated from time to time.
#[derive(Default)]
struct Pieces {
    together: Vec<RecordBatch>,
    small: Vec<RecordBatch>,
}

impl Pieces {
    fn extend(&mut self, pieces: &[Piece]) -> Result<(), Error> {
        const MANY: usize = 1024;
        self.small.extend(pieces.iter().map(Piece::batch));
        if self.small.len() >= MANY {
            self.together.push(concat_batches(mem::take(&mut self.small))?);
        }
        Ok(())
    }

    fn into_batches(mut self) -> Vec<RecordBatch> {
        self.together.append(&mut self.small);
        self.together
    }
}

fn rows_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(Piece::rows).sum()
}

fn is_urgent(error: &Error) -> bool {
    matches!(error, Error::Reader(error) if error.is_urgent())
}

/// A chunk of the source.
pub(super) struct Chunk {
    batch: RecordBatch,
    /// The plan of all of its rows as a matrix, if one serves any of them.
    matrix: OnceLock<Option<UniformMatrix>>,
}

/// Some rows of a chunk. They are cut out where they are needed: a slice of each column takes longer than to convert
/// a short one.
pub(super) struct Piece {
    chunk: Arc<Chunk>,
    from: usize,
    rows: usize,
}

impl Piece {
    /// All rows of a chunk.
    pub(super) fn whole(batch: RecordBatch) -> Self {
        let rows = batch.num_rows();
        Self { chunk: Arc::new(Chunk { batch, matrix: OnceLock::new() }), from: 0, rows }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Cuts off the first `rows`, of which there are more.
    pub(super) fn split_to(&mut self, rows: usize) -> Self {
        let first = Self { chunk: Arc::clone(&self.chunk), from: self.from, rows };
        (self.from, self.rows) = (self.from + rows, self.rows - rows);
        first
    }

    fn is_all(&self) -> bool {
        self.rows == self.chunk.batch.num_rows()
    }

    pub(super) fn batch(&self) -> RecordBatch {
        match self.is_all() {
            true => self.chunk.batch.clone(),
            false => self.chunk.batch.slice(self.from, self.rows),
        }
    }

    pub(super) fn column(&self, index: usize) -> ArrayRef {
        let column = self.chunk.batch.column(index);
        match self.is_all() {
            true => Arc::clone(column),
            false => column.slice(self.from, self.rows),
        }
    }

    /// The chunk as a matrix of which these rows are some, if one plan serves any of its rows.
    pub(super) fn matrix(
        &self,
        plan: impl FnOnce(&RecordBatch) -> Option<UniformMatrix>,
    ) -> Option<(UniformMatrix, Range<usize>)> {
        if self.is_all() {
            return None;
        }
        let matrix = self.chunk.matrix.get_or_init(|| plan(&self.chunk.batch));
        Some((matrix.clone()?, self.from..self.from + self.rows))
    }
}
