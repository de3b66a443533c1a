//! Finds the null cells: in a nested type, also those in a null parent.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

use super::dense::{CellBuffer, Dense, Level};
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory;

impl Dense {
    /// The error for nulls in chunks of one column, if there are any.
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

    /// Null cells, whatever the level at which they are null.
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

    /// The same rows and axes, where each cell says whether this one's is valid.
    pub(super) fn mask(&self) -> Result<Self, Error> {
        let bits = match self.validity()? {
            Some(nulls) => nulls.into_inner(),
            None => {
                memory::probe_alloc(self.len().div_ceil(8))?;
                BooleanBuffer::new_set(self.len())
            }
        };
        Ok(Self {
            data_type: DataType::Boolean,
            storage: CellBuffer::Bits(bits),
            dtype: DLDataType::BOOL,
            rows: self.rows,
            item: self.item.clone(),
            order: self.order.clone(),
            dictionary: None,
            levels: Vec::new(),
        })
    }
}

/// How many of these cells are valid at all levels.
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
