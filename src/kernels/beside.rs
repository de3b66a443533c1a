//! Puts columns with several cells a row beside each other.
//!
//! They are copied row by row: each is a part of the row as it is, where taking it for as many columns would take its
//! cells apart first.

use std::{mem, ops::Range};

use super::columns::{ColumnReader, TILE, interleave, prepare, readers};
use super::convert::{Cells, item_size};
use super::threads::{Fill, Layout, Threads, fill_rows, product};
use super::{fill::FillBytes, transpose_tile::transpose_tile};
use crate::memory::{self, Fresh, Unwritten};
use crate::{Error, ffi::DLDataType, task};

/// Puts columns side by side, as `dtype`, row by row. Each row of a column has `widths` cells, as many for all of its
/// chunks, and each column has `rows` rows. Nulls become `fill`; without one, null cells are unspecified.
///
/// Columns of one cell that stand together are interleaved first. A misfit's row is that of the matrix.
///
/// # Errors
///
/// As [`concatenate`].
pub(crate) fn side_by_side<'a>(
    columns: &[impl AsRef<[Cells<'a>]> + Sync],
    widths: &[usize],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
    threads: Threads,
) -> Result<Fresh, Error> {
    if widths.iter().all(|&width| width == 1) {
        return interleave(columns, rows, dtype, fill, threads);
    }
    let size = item_size(dtype);
    let row = product(widths.iter().sum(), size)?;
    let chunks = prepare(columns, dtype, fill)?;
    let tile = (TILE / row.max(1)).min(1024).min(rows);
    let layout = Layout { rows, row, step: tile.max(1) };
    fill_rows(layout, threads, || {
        // A row that is longer than a tile is cut.
        let scratch = memory::zeros(if tile == 0 { TILE } else { tile * row })?;
        let narrow = memory::zeros(tile * row)?;
        Ok(Rows { columns: readers(columns, &chunks), widths, scratch, narrow, tile, size, dtype })
    })
}

/// Writes rows tile by tile.
struct Rows<'a> {
    columns: Vec<ColumnReader<'a>>,
    widths: &'a [usize],
    /// Memory for the cells of a tile that must be cast first.
    scratch: Vec<u8>,
    /// Memory for the columns of one cell, interleaved.
    narrow: Vec<u8>,
    /// Rows of a tile; 0 where it has less than one.
    tile: usize,
    size: usize,
    dtype: DLDataType,
}

impl Fill for Rows<'_> {
    fn fill(&mut self, rows: Range<usize>, out: &mut Unwritten<'_>) -> Result<(), Error> {
        for (column, width) in self.columns.iter_mut().zip(self.widths) {
            column.seek(rows.start * width);
        }
        if self.tile == 0 {
            return rows.into_iter().try_for_each(|_| self.long_row(out));
        }
        for start in rows.clone().step_by(self.tile) {
            self.tile(self.tile.min(rows.end - start), out)?;
        }
        Ok(())
    }
}

impl Rows<'_> {
    fn long_row(&mut self, out: &mut Unwritten<'_>) -> Result<(), Error> {
        let (size, dtype) = (self.size, self.dtype);
        let columns = self.columns.iter_mut().zip(self.widths).enumerate();
        for (index, (column, &width)) in columns {
            for start in (0..width).step_by(TILE / size) {
                let cells = (TILE / size).min(width - start);
                let read = column.read(cells, &mut self.scratch, size);
                out.extend_from_slice(read.map_err(|(misfit, first)| {
                    misfit.at(first, index, dtype).in_row(|cell| cell / width)
                })?);
            }
        }
        Ok(())
    }

    fn tile(&mut self, rows: usize, out: &mut Unwritten<'_>) -> Result<(), Error> {
        let (size, dtype) = (self.size, self.dtype);
        let (mut scratch, mut narrow) = (self.scratch.as_mut_slice(), self.narrow.as_mut_slice());
        let mut parts: Vec<(&[u8], usize)> = Vec::new();
        let mut singles: Vec<&[u8]> = Vec::new();
        let mut columns = self.columns.iter_mut().zip(self.widths).enumerate().peekable();
        while let Some((index, (column, &width))) = columns.next() {
            let place;
            (place, scratch) = mem::take(&mut scratch).split_at_mut(rows * width * size);
            let read = column.read(rows * width, place, size);
            let read = read.map_err(|(misfit, first)| {
                misfit.at(first, index, dtype).in_row(|cell| cell / width)
            })?;
            if width != 1 {
                parts.push((read, width * size));
                continue;
            }
            singles.push(read);
            if columns.peek().is_none_or(|(_, (_, width))| **width != 1) {
                let each = singles.len() * size;
                let place;
                (place, narrow) = mem::take(&mut narrow).split_at_mut(rows * each);
                transpose_tile(&singles, 0, place, size);
                parts.push((place, each));
                singles.clear();
            }
        }
        for row in 0..rows {
            for (part, each) in &parts {
                out.extend_from_slice(&part[row * each..][..*each]);
            }
        }
        Ok(())
    }
}

/// [`concatenate`] of columns with `widths` cells a row: each of these cells is a column of the result.
///
/// # Errors
///
/// As [`concatenate`].
pub(crate) fn one_behind_the_other<'a>(
    columns: &[impl AsRef<[Cells<'a>]>],
    widths: &[usize],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
) -> Result<Fresh, Error> {
    let size = item_size(dtype);
    let chunks = prepare(columns, dtype, fill)?;
    let mut readers = readers(columns, &chunks);
    let cells = product(widths.iter().sum(), rows)?;
    if cells == 0 {
        return Fresh::build::<u8>(0, |_| {});
    }
    let widest = widths.iter().copied().max().unwrap_or(1);
    let tile = (TILE / (widest * size)).clamp(1, 4096).min(rows);
    let mut scratch = memory::zeros(product(product(tile, widest)?, size)?)?;
    let mut out = 0;
    Fresh::write::<u8>(product(cells, size)?, |all| {
        for (index, (column, &width)) in readers.iter_mut().zip(widths).enumerate() {
            for start in (0..rows).step_by(tile) {
                task::check()?;
                let here = tile.min(rows - start);
                let read = column.read(here * width, &mut scratch, size);
                let read = read.map_err(|(misfit, first)| {
                    misfit.at(first, index, dtype).in_row(|cell| cell / width)
                })?;
                for cell in 0..width {
                    let to = &mut all[(out + cell * rows + start) * size..][..here * size];
                    let from = read.chunks_exact(size).skip(cell).step_by(width);
                    for (to, from) in to.chunks_exact_mut(size).zip(from) {
                        to.copy_from_slice(from);
                    }
                }
            }
            out += rows * width;
        }
        Ok(())
    })
}
