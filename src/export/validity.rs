//! Finds the null cells. In a nested type a null parent makes its cells null too.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

use super::dense::{CellBuffer, Dense, Level};
use crate::{Error, ffi::DLDataType, memory};

/// The nulls of the chunks of one column.
#[derive(Default)]
pub(super) struct NullCount {
    /// The type of the first chunk that has nulls.
    data_type: Option<DataType>,
    cells: usize,
    null_cells: usize,
    /// Rows without cells can be null too.
    rows: usize,
    null_rows: usize,
}

impl NullCount {
    pub(super) fn add(&mut self, chunk: &Dense) {
        self.cells += chunk.len();
        self.rows = self.rows.saturating_add(chunk.rows);
        if !chunk.levels.is_empty() {
            self.data_type.get_or_insert_with(|| chunk.data_type.clone());
            self.null_cells += chunk.null_count();
            self.null_rows +=
                chunk.levels.iter().map(|level| level.nulls.null_count()).sum::<usize>();
        }
    }

    /// The error for nulls, if there are any.
    pub(super) fn refuse(self) -> Result<(), Error> {
        let Some(data_type) = self.data_type else { return Ok(()) };
        let (null_count, len) = match self.cells {
            0 => (self.null_rows, self.rows),
            cells => (self.null_cells, cells),
        };
        Err(Error::Nulls { data_type, null_count, len })
    }
}

impl Dense {
    /// Number of null cells, at any level.
    pub(super) fn null_count(&self) -> usize {
        match self.len() {
            0 => 0,
            len => len - valid(&self.levels, 0..len),
        }
    }

    /// Which cells are valid, `None` if all are.
    pub(super) fn validity(&self) -> Result<Option<NullBuffer>, Error> {
        match self.levels.as_slice() {
            [] | [Level { cells: 1, .. }] => {}
            _ => memory::probe_alloc(self.len().div_ceil(8))?,
        }
        let levels = self.levels.iter().map(|level| match level.cells {
            1 => level.nulls.clone(),
            cells => level.nulls.expand(cells),
        });
        Ok(levels
            .reduce(|outer, inner| NullBuffer::union(Some(&outer), Some(&inner)).unwrap_or(outer)))
    }

    /// A copy with the validity as its cells, of the same shape.
    pub(super) fn mask(&self) -> Result<Self, Error> {
        let bits = match self.validity()? {
            Some(nulls) => nulls.into_inner(),
            None => {
                memory::probe_alloc(self.len().div_ceil(8))?;
                BooleanBuffer::new_set(self.len())
            }
        };
        let (item, order, cells) = (self.item.clone(), self.order.clone(), CellBuffer::Bits(bits));
        let cells = Self::of_cells(DataType::Boolean, self.rows, cells, DLDataType::BOOL);
        Ok(Self { item, order, ..cells })
    }
}

/// Number of these cells that are valid at all levels.
fn valid(levels: &[Level], cells: Range<usize>) -> usize {
    let Some((Level { nulls, cells: each }, inner)) = levels.split_first() else {
        return cells.len();
    };
    let (first, count) = (cells.start / each, cells.len() / each);
    if inner.is_empty() && count == nulls.len() {
        return (count - nulls.null_count()) * each; // counted already
    }
    let rows = nulls.inner().slice(first, count);
    if inner.is_empty() {
        return rows.count_set_bits() * each;
    }
    let runs = rows.set_slices().map(|(start, end)| (first + start) * each..(first + end) * each);
    runs.map(|run| valid(inner, run)).sum()
}
