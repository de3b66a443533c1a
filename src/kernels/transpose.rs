//! Gathers elements that are contiguous along another axis than the last, and interleaves contiguous columns to rows.
//!
//! A loop along the last axis would read or write a whole cache line for each element. With tiles, cache lines stay
//! in the L1 cache until all of their bytes have been used.

use std::array::from_fn;
use std::convert::Infallible;

use super::array;
use super::simd::Lanes;
use crate::alloc::{Grid, Unwritten};
use crate::{Error, task};

/// Elements between two checks whether the conversion is to end: milliseconds.
pub(super) const BETWEEN_CHECKS: usize = 1 << 20;

/// Length of a tile along the last axis.
const TILE: usize = 128;

/// An axis: its length, its step in memory in bytes, and its step in the output in elements.
#[derive(Clone, Copy)]
struct TileAxis {
    len: usize,
    step: isize,
    out: usize,
}

/// A gather that is done in tiles.
pub(super) struct Tiles {
    origin: usize,
    /// All axes but `run` and `last`.
    outer: Vec<TileAxis>,
    /// The axis along which elements are contiguous in memory.
    run: TileAxis,
    /// The last axis, along which elements are contiguous in the output.
    last: TileAxis,
}

impl Tiles {
    /// `axes` are lengths and steps in bytes, from the first axis to the last, merged where possible; the elements
    /// take `itemsize` bytes.
    pub(super) fn new(
        axes: impl DoubleEndedIterator<Item = (usize, isize)>,
        origin: usize,
        itemsize: usize,
    ) -> Option<Self> {
        let mut out = 1;
        let axes = axes.rev().map(|(len, step)| {
            let axis = TileAxis { len, step, out };
            out *= len;
            axis
        });
        let mut outer: Vec<TileAxis> = axes.collect();
        let is_run = |axis: &TileAxis| usize::try_from(axis.step) == Ok(itemsize);
        let run = outer.iter().position(is_run).filter(|&position| position > 0)?;
        let run = outer.remove(run);
        let last = outer.remove(0);
        Some(Self { origin, outer, run, last })
    }

    /// Writes the result of `map` for the `N` bytes of each element to its position in `out`.
    ///
    /// # Errors
    ///
    /// Those of [`task::check`].
    pub(super) fn write<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        map: impl Fn([u8; N]) -> U,
    ) -> Result<(), Error> {
        let mut left = BETWEEN_CHECKS;
        let mut index = vec![0; self.outer.len()];
        let (mut at, mut to) = (self.origin, 0);
        loop {
            self.write_plane(&mut out[to..], bytes, at, &map, &mut left)?;
            let done = self.outer.iter().zip(&mut index).all(|(axis, index)| {
                *index += 1;
                at = at.wrapping_add_signed(axis.step);
                to += axis.out;
                let wrapped = *index == axis.len;
                if wrapped {
                    let len = isize::try_from(axis.len).unwrap_or_default();
                    at = at.wrapping_add_signed(len.wrapping_mul(axis.step).wrapping_neg());
                    to -= axis.len * axis.out;
                    *index = 0;
                }
                wrapped
            });
            if done {
                return Ok(());
            }
        }
    }

    fn write_plane<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        at: usize,
        map: &impl Fn([u8; N]) -> U,
        left: &mut usize,
    ) -> Result<(), Error> {
        let mut from = at;
        for start in (0..self.last.len).step_by(TILE) {
            let len = TILE.min(self.last.len - start);
            let (mut place, out) = (0, &mut out[start..]);
            while place < self.run.len {
                // Fewer than eight neighbours, such as the channels of an image, are read at once too: one by one they
                // take twice the time.
                place += match self.run.len - place {
                    8.. => self.write_lines::<N, 8, U>(out, bytes, from, place, len, map),
                    4.. => self.write_lines::<N, 4, U>(out, bytes, from, place, len, map),
                    3 => self.write_lines::<N, 3, U>(out, bytes, from, place, len, map),
                    2 => self.write_lines::<N, 2, U>(out, bytes, from, place, len, map),
                    _ => self.write_lines::<N, 1, U>(out, bytes, from, place, len, map),
                };
            }
            let step = self.last.step.wrapping_mul(isize::try_from(len).unwrap_or_default());
            from = from.wrapping_add_signed(step);
            let Some(less) = left.checked_sub(len.saturating_mul(self.run.len)) else {
                *left = BETWEEN_CHECKS;
                task::check()?;
                continue;
            };
            *left = less;
        }
        Ok(())
    }

    /// Writes `len` elements of each of `G` neighbours along `run`, and returns `G`.
    fn write_lines<const N: usize, const G: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        from: usize,
        place: usize,
        len: usize,
        map: &impl Fn([u8; N]) -> U,
    ) -> usize {
        let mut lines = out[place * self.run.out..].chunks_mut(self.run.out);
        let mut lines: [&mut [U]; G] =
            std::array::from_fn(|_| &mut lines.next().unwrap_or_default()[..len]);
        let mut at = from + place * N;
        for index in 0..len {
            let items = &bytes[at..at + G * N];
            for (line, item) in lines.iter_mut().zip(items.chunks_exact(N)) {
                line[index] = map(array(item));
            }
            at = at.wrapping_add_signed(self.last.step);
        }
        G
    }
}

/// Rows that are written at once where a strip is narrower than a cache line: few enough for all of their bytes to
/// stay in the L1 cache until each line is complete.
const ROWS: usize = 64;

/// Wide rows that are assembled at once: one cache line of each stays in the L2 cache.
pub(super) const DEEP: usize = 1024;

/// Bytes of a wide row that are transposed at once: a cache line.
pub(super) const LINE: usize = 64;

/// Whether rows of `columns` items of `size` bytes can be written where they go, without a stage: there are enough
/// columns and rows to fill a register with one item of each.
pub(super) fn fills_registers(columns: usize, rows: usize, size: usize) -> bool {
    columns * size >= 16 && rows * size >= 16
}

/// Appends the first `rows` items of each column as contiguous rows.
///
/// Strips have eight columns where a register has no more: the L1 cache has eight places for lines whose addresses
/// differ by whole pages, as those of large columns do. Past the caches go whole lines only.
///
/// # Panics
///
/// Unless they fill registers, or if a column has fewer items.
pub(super) fn append_rows(columns: &[&[u8]], rows: usize, out: &mut Unwritten<'_>, size: usize) {
    match (size, out.is_streamed()) {
        (1, false) => append::<1, 16, 16>(columns, rows, out),
        (1, true) => append::<1, 16, LINE>(columns, rows, out),
        (2, false) => append::<2, 8, 16>(columns, rows, out),
        (2, true) => append::<2, 8, LINE>(columns, rows, out),
        (4, false) => append::<4, 4, 32>(columns, rows, out),
        (4, true) => append::<4, 4, LINE>(columns, rows, out),
        (8, _) => append::<8, 2, LINE>(columns, rows, out),
        _ => append::<16, 1, LINE>(columns, rows, out),
    }
}

fn append<const N: usize, const K: usize, const W: usize>(
    columns: &[&[u8]],
    rows: usize,
    out: &mut Unwritten<'_>,
) {
    let most = if W == LINE { DEEP } else { ROWS };
    let mut start = 0;
    while start < rows {
        let left = rows - start;
        // The last rows are not so few that they fill no register.
        let rows = if left < 2 * most { left } else { most };
        let Ok(()) = Grid::append(out, rows, columns.len() * N, |grid| {
            write_strips::<N, K, W>(columns, start, grid);
            Ok::<(), Infallible>(())
        });
        start += rows;
    }
}

/// Writes the items of each column from item `start` on as the contiguous rows of `tile`.
pub(super) fn transpose_tile(columns: &[&[u8]], start: usize, tile: &mut [u8], size: usize) {
    match size {
        1 => transpose_words::<1, 16, 16>(columns, start, tile),
        2 => transpose_words::<2, 8, 16>(columns, start, tile),
        4 => transpose_words::<4, 4, 32>(columns, start, tile),
        8 => transpose_words::<8, 2, LINE>(columns, start, tile),
        _ => transpose_words::<16, 1, LINE>(columns, start, tile),
    }
}

fn transpose_words<const N: usize, const K: usize, const W: usize>(
    columns: &[&[u8]],
    start: usize,
    tile: &mut [u8],
) {
    let row = columns.len() * N;
    if columns.len() >= K && tile.len() >= K * row {
        Grid::over(tile, row, |grid| write_strips::<N, K, W>(columns, start, grid));
    } else {
        transpose_few::<N, K>(columns, start, tile);
    }
}

/// Writes the items of each column from item `start` on as the rows of `grid`: strips of `W` bytes, and of a register,
/// the last of which overlaps the one before. Not inlined: staged rows are written by the same code.
#[inline(never)]
fn write_strips<const N: usize, const K: usize, const W: usize>(
    columns: &[&[u8]],
    start: usize,
    grid: &mut Grid<'_>,
) {
    let mut first = 0;
    while columns.len() - first >= W / N {
        let strip = &columns[first..first + W / N];
        grid.strip::<W, K>(first * N, |row| lines::<N, K, W>(strip, start + row));
        first += W / N;
    }
    while first < columns.len() {
        first = first.min(columns.len() - K);
        let strip = &columns[first..first + K];
        grid.strip::<16, K>(first * N, |row| lines::<N, K, 16>(strip, start + row));
        first += K;
    }
}

/// The lines of `K` rows from `row` on: `W` bytes, with one item of each column. `K` items of `N` bytes fill a
/// register.
#[inline(always)]
pub(super) fn lines<const N: usize, const K: usize, const W: usize>(
    columns: &[&[u8]],
    row: usize,
) -> [[u8; W]; K] {
    let mut lines = [[0; W]; K];
    let (mut columns, mut at) = (columns, 0);
    while let Some((group, others)) = columns.split_first_chunk::<K>() {
        for (line, bytes) in lines.iter_mut().zip(&square::<N, K>(group, row * N)) {
            line[at..at + 16].copy_from_slice(bytes);
        }
        (columns, at) = (others, at + 16);
    }
    lines
}

/// Few columns or rows, which do not fill a register. For two or three columns of four bytes, whole registers are
/// written: the next row overwrites the bytes beyond a row. Other sizes would gain too, but are rare.
fn transpose_few<const N: usize, const K: usize>(
    columns: &[&[u8]],
    mut start: usize,
    mut tile: &mut [u8],
) {
    let row = columns.len() * N;
    if K == 4 && (2..4).contains(&columns.len()) {
        let group = from_fn(|index| columns[index.min(columns.len() - 1)]);
        while (K - 1) * row + 16 <= tile.len() {
            for (index, bytes) in square::<N, K>(&group, start * N).iter().enumerate() {
                tile[index * row..][..16].copy_from_slice(bytes);
            }
            (start, tile) = (start + K, &mut tile[K * row..]);
        }
    }
    let (mut rest, mut at) = (columns, 0);
    while let Some((group, others)) = rest.split_first_chunk::<4>() {
        transpose_items::<N, 4>(&group.map(|column| &column[start * N..]), tile, row, at);
        (rest, at) = (others, at + 4 * N);
    }
    for column in rest {
        transpose_items::<N, 1>(&[&column[start * N..]], tile, row, at);
        at += N;
    }
}

/// Loads `K` columns from byte `start` on and transposes them.
#[inline(always)]
fn square<const N: usize, const K: usize>(columns: &[&[u8]; K], start: usize) -> [[u8; 16]; K] {
    // Loops, because closures in `map` are not always inlined.
    let mut square = [Lanes::load(&[0; 16]); K];
    for (items, column) in square.iter_mut().zip(columns) {
        *items = Lanes::load(&array(&column[start..start + 16]));
    }
    for _ in 0..K.ilog2() {
        // A perfect shuffle of all items: the two halves interleave.
        let mut shuffled = square;
        for index in 0..K / 2 {
            (shuffled[2 * index], shuffled[2 * index + 1]) =
                square[index].zip::<N>(square[K / 2 + index]);
        }
        square = shuffled;
    }
    let mut bytes = [[0; 16]; K];
    for (bytes, items) in bytes.iter_mut().zip(square) {
        items.store(bytes);
    }
    bytes
}

/// Item by item, for several columns at once, so that more of each row is written at a time.
fn transpose_items<const N: usize, const G: usize>(
    columns: &[&[u8]; G],
    tile: &mut [u8],
    row: usize,
    at: usize,
) {
    let rows = tile.len() / row;
    let columns = columns.map(|column| &column[..rows * N]);
    for (index, row) in tile.chunks_exact_mut(row).enumerate() {
        let row = &mut row[at..at + G * N];
        for (column, cell) in columns.iter().zip(row.chunks_exact_mut(N)) {
            let item: [u8; N] = array(&column[index * N..(index + 1) * N]);
            cell.copy_from_slice(&item);
        }
    }
}
