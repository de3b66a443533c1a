//! Copies columns of an Arrow table into one block of memory, which is as large as the result.
//!
//! Columns with several cells a row are copied row by row: each is a part of the row as it is, where taking it for as many
//! columns would take its cells apart first.

use std::mem;
use std::ops::Range;

use super::convert::{CellChunk, Cells, Misfit, item_size};
use super::fill::FillBytes;
use super::threads::{Fill, Layout, Threads, fill_rows, product};
use super::transpose::{DEEP, LINE, append_rows, fills_registers, lines, transpose_tile};
use crate::alloc::{self, Grid, Unwritten};
use crate::ffi::DLDataType;
use crate::{Error, task};

/// Bytes of all columns together that are read at once, if they must be cast first; a cast pays off for many rows at
/// once.
pub(super) const TILE: usize = 256 << 10;

/// Bytes of rows that are assembled in the L2 cache and then copied to uninitialised memory, where they cannot be written
/// there at once. A copy of whole lines does not read the destination first, which item by item stores do.
const STAGE: usize = 64 << 10;

/// Rows of at least this many bytes are wide: a strip of columns, one cache line of each row, is read, cast, and written
/// from the first row to the last, since a tile of many columns holds few rows.
const WIDE: usize = 512;

/// Concatenates chunks, as `dtype`. Nulls become `fill`; without one, null cells are unspecified.
///
/// # Errors
///
/// `ValueDoesNotFit`, `OutOfMemory`; `UnsupportedDtype` where `can_convert` is false.
pub(crate) fn concatenate(
    chunks: &[Cells<'_>],
    dtype: DLDataType,
    fill: Option<&FillBytes>,
    threads: Threads,
    out: Unwritten<'_>,
) -> Result<(), Error> {
    let chunks = prepare(&[chunks], dtype, fill)?;
    let (rows, row) = (chunks.iter().map(CellChunk::len).sum(), item_size(dtype));
    // Whole words of validity bits.
    let layout = Layout { rows, row, step: 64 };
    fill_rows(out, layout, threads, || Ok(ItemWriter { items: ColumnReader::new(&chunks), dtype }))
}

/// Writes items one after the other.
struct ItemWriter<'a> {
    items: ColumnReader<'a>,
    dtype: DLDataType,
}

impl Fill for ItemWriter<'_> {
    fn fill(&mut self, rows: Range<usize>, part: &mut Unwritten<'_>) -> Result<(), Error> {
        let items = &mut self.items;
        items.seek(rows.start);
        let mut left = rows.len();
        while let Some((chunk, start, len)) = items.part(left) {
            let misfit = |misfit: Misfit| misfit.at(items.first, 0, self.dtype);
            chunk.append(start, len, part).map_err(misfit)?;
            left -= len;
        }
        Ok(())
    }
}

/// Interleaves columns row by row, as `dtype`. Nulls become `fill`; without one, null cells are unspecified. Each
/// column has `rows` rows, in chunks of any lengths.
///
/// # Errors
///
/// As [`concatenate`].
pub(crate) fn interleave<'a>(
    columns: &[impl AsRef<[Cells<'a>]> + Sync],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
    threads: Threads,
    out: Unwritten<'_>,
) -> Result<(), Error> {
    let size = item_size(dtype);
    let row = product(columns.len(), size)?;
    let chunks = prepare(columns, dtype, fill)?;
    let readers = || readers(columns, &chunks);
    if row >= WIDE && rows >= 16 {
        let layout = Layout { rows, row, step: DEEP };
        return fill_rows(out, layout, threads, || Ok(WideRowWriter { columns: readers(), dtype }));
    }
    let tile = (TILE / row.max(1)).next_multiple_of(64).clamp(64, 4096);
    let layout = Layout { rows, row, step: tile };
    let is_cast = !readers().iter().all(ColumnReader::is_verbatim);
    fill_rows(out, layout, threads, || {
        let scratch = alloc::zeros(if is_cast { product(tile.min(rows), row)? } else { 0 })?;
        let spare = Vec::with_capacity(columns.len());
        Ok(RowWriter { columns: readers(), scratch, stage: Vec::new(), spare, tile, size, dtype })
    })
}

/// Writes rows tile by tile.
struct RowWriter<'a> {
    columns: Vec<ColumnReader<'a>>,
    /// Memory for a tile, unless all columns are read where they are.
    scratch: Vec<u8>,
    /// Memory for rows that are not written where they go at once, from when it is needed.
    stage: Vec<u8>,
    /// Memory for the items of each column.
    spare: Vec<&'static [u8]>,
    /// Rows of a tile.
    tile: usize,
    size: usize,
    dtype: DLDataType,
}

impl Fill for RowWriter<'_> {
    fn fill(&mut self, rows: Range<usize>, part: &mut Unwritten<'_>) -> Result<(), Error> {
        let Self { columns, scratch, stage, spare, tile, size, dtype } = self;
        let row = columns.len() * *size;
        // Past the caches go whole lines only.
        let is_direct = !part.is_streamed() || row % LINE == 0;
        columns.iter_mut().for_each(|column| column.seek(rows.start));
        for start in rows.clone().step_by(*tile) {
            let rows = (*tile).min(rows.end - start);
            let mut items = emptied(mem::take(spare));
            let mut scratch = scratch.chunks_exact_mut(rows * *size);
            for (index, column) in columns.iter_mut().enumerate() {
                let scratch = scratch.next().unwrap_or_default();
                let read = column.read(rows, scratch, *size);
                items.push(read.map_err(|(misfit, first)| misfit.at(first, index, *dtype))?);
            }
            if is_direct && fills_registers(items.len(), rows, *size) {
                append_rows(&items, rows, part, *size);
            } else {
                append_staged(&items, rows, part, *size, stage)?;
            }
            *spare = emptied(items);
        }
        Ok(())
    }
}

/// As [`append_rows`], by way of `stage`.
fn append_staged(
    items: &[&[u8]],
    rows: usize,
    out: &mut Unwritten<'_>,
    size: usize,
    stage: &mut Vec<u8>,
) -> Result<(), Error> {
    let row = items.len() * size;
    let most = (STAGE / row).next_multiple_of(16).clamp(64, 4096);
    if stage.len() < most.min(rows) * row {
        *stage = alloc::zeros(most.min(rows) * row)?;
    }
    for start in (0..rows).step_by(most) {
        let stage = &mut stage[..most.min(rows - start) * row];
        transpose_tile(items, start, stage, size);
        out.extend_from_slice(stage);
    }
    Ok(())
}

/// Writes wide rows strip by strip.
struct WideRowWriter<'a> {
    columns: Vec<ColumnReader<'a>>,
    dtype: DLDataType,
}

impl Fill for WideRowWriter<'_> {
    fn fill(&mut self, rows: Range<usize>, part: &mut Unwritten<'_>) -> Result<(), Error> {
        let Self { columns, dtype } = self;
        columns.iter_mut().for_each(|column| column.seek(rows.start));
        match item_size(*dtype) {
            1 => append_wide::<1, 16, 64>(columns, rows.len(), part, *dtype),
            2 => append_wide::<2, 8, 32>(columns, rows.len(), part, *dtype),
            4 => append_wide::<4, 4, 16>(columns, rows.len(), part, *dtype),
            8 => append_wide::<8, 2, 8>(columns, rows.len(), part, *dtype),
            _ => append_wide::<16, 1, 4>(columns, rows.len(), part, *dtype),
        }
    }
}

/// Interleaves columns of wide rows, in strips of `G` columns, which fill a cache line of a row. `K` items of `N`
/// bytes fill a register, and there are at least `K` rows.
fn append_wide<const N: usize, const K: usize, const G: usize>(
    columns: &mut [ColumnReader<'_>],
    mut rows: usize,
    out: &mut Unwritten<'_>,
    dtype: DLDataType,
) -> Result<(), Error> {
    let last = columns.len() - G;
    let mut scratch = alloc::zeros(LINE * rows.min(2 * DEEP))?;
    while rows > 0 {
        let deep = if rows < 2 * DEEP { rows } else { DEEP };
        Grid::append(out, deep, columns.len() * N, |grid| {
            let mut first = 0;
            loop {
                // The last strip overlaps the one before, so that it has `G` columns too.
                let next = if first < last { last.min(first + G) } else { columns.len() };
                let mut items: [&[u8]; G] = [&[]; G];
                let strip = columns[first..].iter_mut().zip(scratch.chunks_exact_mut(deep * N));
                for ((index, items), (column, scratch)) in (first..).zip(&mut items).zip(strip) {
                    let mut read = *column;
                    *items = read
                        .read(deep, scratch, N)
                        .map_err(|(misfit, first)| misfit.at(first, index, dtype))?;
                    if index < next {
                        *column = read;
                    }
                }
                grid.strip::<LINE, K>(first * N, |row| lines::<N, K, LINE>(&items, row));
                if first == last {
                    return Ok::<(), Error>(());
                }
                first = next;
            }
        })?;
        rows -= deep;
    }
    Ok(())
}

/// The vector without its items, for items of another lifetime: collecting an empty iterator reuses the allocation.
fn emptied<'b>(mut items: Vec<&[u8]>) -> Vec<&'b [u8]> {
    items.clear();
    items.into_iter().map(|_| -> &'b [u8] { &[] }).collect()
}

/// A column with its read position.
#[derive(Clone, Copy)]
pub(super) struct ColumnReader<'a> {
    chunks: &'a [CellChunk<'a>],
    /// Position in the first chunk.
    at: usize,
    /// Number of rows before the first chunk.
    first: usize,
}

impl<'a> ColumnReader<'a> {
    fn new(chunks: &'a [CellChunk<'a>]) -> Self {
        Self { chunks, at: 0, first: 0 }
    }

    /// Whether all rows can be read where they are.
    fn is_verbatim(&self) -> bool {
        matches!(self.chunks, [chunk] if chunk.verbatim(0, 0).is_some() && !chunk.has_fill())
    }

    /// Goes on to a row behind those that were read.
    pub(super) fn seek(&mut self, row: usize) {
        while let [chunk, others @ ..] = self.chunks {
            if row - self.first < chunk.len() {
                break;
            }
            self.first += chunk.len();
            self.chunks = others;
        }
        self.at = row - self.first;
    }

    /// At most `most` of the next rows, in one chunk: the chunk, the position in it, and how many. `None` if `most` is 0.
    fn part(&mut self, most: usize) -> Option<(&'a CellChunk<'a>, usize, usize)> {
        if most == 0 {
            return None;
        }
        loop {
            let chunk = &self.chunks[0];
            let (start, len) = (self.at, most.min(chunk.len() - self.at));
            if len > 0 {
                self.at += len;
                return Some((chunk, start, len));
            }
            self.first += chunk.len();
            (self.chunks, self.at) = (&self.chunks[1..], 0);
        }
    }

    /// The items of the next rows: borrowed from the chunk if they need no conversion, else in `scratch`. A misfit is
    /// returned with the row at which its chunk begins.
    pub(super) fn read<'s>(
        &mut self,
        rows: usize,
        scratch: &'s mut [u8],
        size: usize,
    ) -> Result<&'s [u8], (Misfit, usize)>
    where
        'a: 's,
    {
        let mut done = 0;
        while let Some((chunk, start, len)) = self.part(rows - done) {
            match chunk.verbatim(start, len) {
                Some(items) if len == rows && !chunk.has_fill() => return Ok(items),
                _ => {}
            }
            let out = &mut scratch[done * size..(done + len) * size];
            chunk.write(start, out).map_err(|misfit| (misfit, self.first))?;
            done += len;
        }
        Ok(scratch)
    }
}

/// The readers of columns, whose chunks have been prepared.
pub(super) fn readers<'a, 'b>(
    columns: &[impl AsRef<[Cells<'a>]>],
    mut chunks: &'b [CellChunk<'b>],
) -> Vec<ColumnReader<'b>> {
    let columns = columns.iter().map(|column| {
        let (own, others) = chunks.split_at(column.as_ref().len());
        chunks = others;
        ColumnReader::new(own)
    });
    columns.collect()
}

/// Prepares the chunks of all columns in one vector: there may be thousands of columns with one chunk each.
pub(super) fn prepare<'a>(
    columns: &[impl AsRef<[Cells<'a>]>],
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
) -> Result<Vec<CellChunk<'a>>, Error> {
    let count = columns.iter().map(|chunks| chunks.as_ref().len()).sum();
    alloc::probe_alloc(product(count, size_of::<CellChunk<'_>>())?)?;
    let mut prepared = Vec::with_capacity(count);
    for cells in columns.iter().flat_map(AsRef::as_ref) {
        prepared.push(CellChunk::new(*cells, dtype, fill)?);
    }
    Ok(prepared)
}

/// Puts columns side by side, as `dtype`, row by row. Each row of a column has `widths` cells, as many for all of its
/// chunks, and each column has `rows` rows. Nulls become `fill`; without one, null cells are unspecified.
///
/// Columns of one cell that stand together are interleaved first. A misfit's row is that of the matrix.
///
/// # Errors
///
/// As [`concatenate`].
pub(crate) fn interleave_wide<'a>(
    columns: &[impl AsRef<[Cells<'a>]> + Sync],
    widths: &[usize],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
    threads: Threads,
    out: Unwritten<'_>,
) -> Result<(), Error> {
    if widths.iter().all(|&width| width == 1) {
        return interleave(columns, rows, dtype, fill, threads, out);
    }
    let size = item_size(dtype);
    let row = product(widths.iter().sum(), size)?;
    let chunks = prepare(columns, dtype, fill)?;
    let tile = (TILE / row.max(1)).min(1024).min(rows);
    let layout = Layout { rows, row, step: tile.max(1) };
    fill_rows(out, layout, threads, || {
        // A row that is longer than a tile is cut.
        let scratch = alloc::zeros(if tile == 0 { TILE } else { tile * row })?;
        let narrow = alloc::zeros(tile * row)?;
        Ok(GroupedRows {
            columns: readers(columns, &chunks),
            widths,
            scratch,
            narrow,
            tile,
            size,
            dtype,
        })
    })
}

/// Writes rows tile by tile.
struct GroupedRows<'a> {
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

impl Fill for GroupedRows<'_> {
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

impl GroupedRows<'_> {
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
pub(crate) fn concat_columns<'a>(
    columns: &[impl AsRef<[Cells<'a>]>],
    widths: &[usize],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
    mut out: Unwritten<'_>,
) -> Result<(), Error> {
    let size = item_size(dtype);
    let chunks = prepare(columns, dtype, fill)?;
    let mut readers = readers(columns, &chunks);
    let widest = widths.iter().copied().max().unwrap_or(1);
    let tile = (TILE / (widest * size).max(1)).clamp(1, 4096).min(rows);
    let mut scratch = alloc::zeros(product(product(tile, widest)?, size)?)?;
    let mut stage = alloc::zeros(product(tile, size)?)?;
    for (index, (column, &width)) in readers.iter_mut().zip(widths).enumerate() {
        let parts = (0..width).map(|_| out.split_to(rows * size));
        let mut parts = alloc::collect(parts)?;
        for start in (0..rows).step_by(tile.max(1)) {
            task::check()?;
            let here = tile.min(rows - start);
            let read = column.read(here * width, &mut scratch, size);
            let read = read.map_err(|(misfit, first)| {
                misfit.at(first, index, dtype).in_row(|cell| cell / width)
            })?;
            for (cell, part) in parts.iter_mut().enumerate() {
                let from = read.chunks_exact(size).skip(cell).step_by(width);
                let stage = &mut stage[..here * size];
                for (to, from) in stage.chunks_exact_mut(size).zip(from) {
                    to.copy_from_slice(from);
                }
                part.extend_from_slice(stage);
            }
        }
        parts.into_iter().for_each(Unwritten::finish);
    }
    out.finish();
    Ok(())
}
