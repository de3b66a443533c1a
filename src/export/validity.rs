//! Finds the null cells. In a nested type a null parent makes its cells null too.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

use super::dense::{CellBuffer, Dense, Level};
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory;

impl Dense {
    /// The error for nulls in the chunks of one column, if there are any.
    pub(super) fn refuse_nulls(chunks: &[Self]) -> Result<(), Error> {
        let mut levels = chunks.iter().flat_map(|chunk| &chunk.levels).peekable();
        let (Some(Self { data_type, .. }), Some(_)) = (chunks.first(), levels.peek()) else {
            return Ok(());
        };
        let (null_count, len) = match chunks.iter().map(Self::len).sum() {
            // Rows without cells can be null too.
            0 => (
                levels.map(|level| level.nulls.null_count()).sum(),
                chunks.iter().map(|chunk| chunk.rows).sum(),
            ),
            len => (chunks.iter().map(Self::null_count).sum(), len),
        };
        Err(Error::Nulls { data_type: data_type.clone(), null_count, len })
    }

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
    let first = cells.start / each;
    let rows = nulls.inner().slice(first, cells.len() / each);
    if inner.is_empty() {
        return rows.count_set_bits() * each;
    }
    let runs = rows.set_slices().map(|(start, end)| (first + start) * each..(first + end) * each);
    runs.map(|run| valid(inner, run)).sum()
}
