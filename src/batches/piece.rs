//! Rows of a chunk of the source, which many batches cut.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch};

use crate::export::UniformMatrix;

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
    pub(super) fn all(batch: RecordBatch) -> Self {
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
