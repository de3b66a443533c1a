//! Copies columns of an Arrow table into one block of memory.

use super::bits::append_bits;
use super::convert::{Cells, Chunk, Misfit, item_size};
use super::fill::FillBytes;
use super::transpose_tile::{LINE, lines, transpose_tile};
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory::{self, Fresh, Grid};

/// Bytes that are processed at once: a block stays in the L1 cache from the first step to the last.
const BLOCK: usize = 16 << 10;

/// The same for all columns together, if they must be cast first; a cast pays off for many rows at once.
const TILE: usize = 256 << 10;

/// Rows are assembled in the L1 cache and then copied to uninitialised memory. A copy of whole lines does not read
/// the destination first, which item by item stores do.
const STAGE: usize = 16 << 10;

/// Rows of at least this many bytes are wide, and are not staged: a strip of columns, one cache line of each row, is
/// read and written from the first row to the last. This takes half the time: a stage of many columns holds few rows,
/// so it reads a line or two from each of many pages, and does not fit the L1 cache.
const WIDE: usize = 512;

/// Wide rows that are assembled at once: one cache line of each stays in the L2 cache.
const DEEP: usize = 1024;

/// Concatenates chunks, as `dtype`. Nulls become `fill`; without one, null cells are unspecified.
///
/// # Errors
///
/// `ValueDoesNotFit`, `OutOfMemory`; `UnsupportedDtype` where `can_convert` is false.
pub(crate) fn concatenate(
    chunks: &[Cells<'_>],
    dtype: DLDataType,
    fill: Option<&FillBytes>,
) -> Result<Fresh, Error> {
    let chunks = prepare(&[chunks], dtype, fill)?;
    let size = item_size(dtype);
    let rows = chunks.iter().map(Chunk::len).sum();
    Fresh::try_build::<u8>(product(rows, size)?, |out| {
        let mut first = 0;
        for chunk in &chunks {
            append(chunk, out, size).map_err(|misfit| misfit.at(first, 0, dtype))?;
            first += chunk.len();
        }
        Ok(())
    })
}

fn append(chunk: &Chunk<'_>, out: &mut Vec<u8>, size: usize) -> Result<(), Misfit> {
    let len = chunk.len();
    if let Some(bytes) = chunk.verbatim(0, len) {
        chunk.append_to(out, bytes);
    } else if let Some(bits) = chunk.bits() {
        append_bits(bits, out);
    } else {
        let block = BLOCK / size;
        for start in (0..len).step_by(block) {
            let end = out.len();
            out.resize(end + block.min(len - start) * size, 0);
            chunk.write(start, &mut out[end..])?;
        }
    }
    Ok(())
}

/// Interleaves columns row by row, as `dtype`. Nulls become `fill`; without one, null cells are unspecified. Each
/// column has `rows` rows, in chunks of any lengths.
///
/// # Errors
///
/// As [`concatenate`].
pub(crate) fn interleave<'a>(
    columns: &[impl AsRef<[Cells<'a>]>],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
) -> Result<Fresh, Error> {
    let size = item_size(dtype);
    let row = product(columns.len(), size)?;
    let chunks = prepare(columns, dtype, fill)?;
    let mut rest = chunks.as_slice();
    let columns = columns.iter().map(|chunks| {
        let (own, others) = rest.split_at(chunks.as_ref().len());
        rest = others;
        ColumnReader::new(own)
    });
    let mut columns: Vec<_> = columns.collect();
    Fresh::try_build::<u8>(product(rows, row)?, |out| {
        if row == 0 {
            return Ok(());
        }
        if row >= WIDE && rows >= 16 {
            return match size {
                1 => append_wide::<1, 16, 64>(&mut columns, rows, out, dtype),
                2 => append_wide::<2, 8, 32>(&mut columns, rows, out, dtype),
                4 => append_wide::<4, 4, 16>(&mut columns, rows, out, dtype),
                8 => append_wide::<8, 2, 8>(&mut columns, rows, out, dtype),
                _ => append_wide::<16, 1, 4>(&mut columns, rows, out, dtype),
            };
        }
        let tile = (TILE / row).next_multiple_of(64).clamp(64, 4096);
        let staged = (STAGE / row).next_multiple_of(16).clamp(64, tile).min(rows.max(1));
        memory::probe_alloc(product(tile.min(rows) + staged, row)?)?;
        let mut scratch = vec![0; tile.min(rows) * row];
        let mut stage = vec![0; staged * row];
        let mut spare = Vec::with_capacity(columns.len());
        for start in (0..rows).step_by(tile) {
            let rows = tile.min(rows - start);
            let mut items = emptied(spare);
            let scratch = scratch.chunks_exact_mut(rows * size);
            for (index, (column, scratch)) in columns.iter_mut().zip(scratch).enumerate() {
                let read = column.read(rows, scratch, size);
                items.push(read.map_err(|(misfit, first)| misfit.at(first, index, dtype))?);
            }
            for start in (0..rows).step_by(stage.len() / row) {
                let rows = (stage.len() / row).min(rows - start);
                transpose_tile(&items, start, &mut stage[..rows * row], size);
                out.extend_from_slice(&stage[..rows * row]);
            }
            spare = emptied(items);
        }
        Ok(())
    })
}

/// Interleaves columns of wide rows, in strips of `G` columns, which fill a cache line of a row. `K` items of `N`
/// bytes fill a register, and there are at least `K` rows.
fn append_wide<const N: usize, const K: usize, const G: usize>(
    columns: &mut [ColumnReader<'_>],
    mut rows: usize,
    out: &mut Vec<u8>,
    dtype: DLDataType,
) -> Result<(), Error> {
    let last = columns.len() - G;
    let mut scratch = vec![0; LINE * rows.min(2 * DEEP)];
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
                grid.strip::<LINE, K>(first * N, |row| lines::<N, K>(&items, row));
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
struct ColumnReader<'a> {
    chunks: &'a [Chunk<'a>],
    /// Position in the first chunk.
    at: usize,
    /// Number of rows before the first chunk.
    first: usize,
}

impl<'a> ColumnReader<'a> {
    fn new(chunks: &'a [Chunk<'a>]) -> Self {
        Self { chunks, at: 0, first: 0 }
    }

    /// The items of the next rows: borrowed from the chunk if they need no conversion, else in `scratch`. A misfit is
    /// returned with the row at which its chunk begins.
    fn read<'s>(
        &mut self,
        rows: usize,
        scratch: &'s mut [u8],
        size: usize,
    ) -> Result<&'s [u8], (Misfit, usize)>
    where
        'a: 's,
    {
        let mut done = 0;
        while done < rows {
            let chunk = &self.chunks[0];
            let len = (rows - done).min(chunk.len() - self.at);
            if len == 0 {
                self.first += chunk.len();
                (self.chunks, self.at) = (&self.chunks[1..], 0);
                continue;
            }
            let start = self.at;
            self.at += len;
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

/// Prepares the chunks of all columns in one vector: there may be thousands of columns with one chunk each.
fn prepare<'a>(
    columns: &[impl AsRef<[Cells<'a>]>],
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
) -> Result<Vec<Chunk<'a>>, Error> {
    let count = columns.iter().map(|chunks| chunks.as_ref().len()).sum();
    memory::probe_alloc(product(count, size_of::<Chunk<'_>>())?)?;
    let mut prepared = Vec::with_capacity(count);
    for cells in columns.iter().flat_map(AsRef::as_ref) {
        prepared.push(Chunk::new(*cells, dtype, fill)?);
    }
    Ok(prepared)
}

fn product(count: usize, size: usize) -> Result<usize, Error> {
    count.checked_mul(size).ok_or(Error::Overflow("size in bytes"))
}
