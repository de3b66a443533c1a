//! Interleaves contiguous columns to rows.

use std::array::from_fn;

use super::{bytes::array, lanes::Lanes};

/// Rows that are transposed at once: few enough for all columns to stay in the L1 cache, and enough to read each
/// column by the cache line.
const ROWS: usize = 64;

/// Bytes of a wide row that are transposed at once: a cache line.
pub(super) const LINE: usize = 64;

/// Writes the items of each column from item `start` on as the contiguous rows of `tile`.
pub(super) fn transpose_tile(columns: &[&[u8]], start: usize, tile: &mut [u8], size: usize) {
    match size {
        1 => transpose_words::<1, 16>(columns, start, tile),
        2 => transpose_words::<2, 8>(columns, start, tile),
        4 => transpose_words::<4, 4>(columns, start, tile),
        8 => transpose_words::<8, 2>(columns, start, tile),
        _ => transpose_words::<16, 1>(columns, start, tile),
    }
}

/// Columns that fill a cache line with one item each, as the lines of `K` rows from `row` on.
#[inline(always)]
pub(super) fn lines<const N: usize, const K: usize>(
    columns: &[&[u8]],
    row: usize,
) -> [[u8; LINE]; K] {
    let mut lines = [[0; LINE]; K];
    let (mut columns, mut at) = (columns, 0);
    while let Some((group, others)) = columns.split_first_chunk::<K>() {
        for (line, bytes) in lines.iter_mut().zip(&square::<N, K>(group, row * N)) {
            line[at..at + 16].copy_from_slice(bytes);
        }
        (columns, at) = (others, at + 16);
    }
    lines
}

/// `K` items of `N` bytes fill a register.
fn transpose_words<const N: usize, const K: usize>(
    columns: &[&[u8]],
    mut start: usize,
    tile: &mut [u8],
) {
    let row = columns.len() * N;
    let (whole, rest) = columns.split_at(columns.len() / K * K);
    for tile in tile.chunks_mut(ROWS * row) {
        let rows = tile.len() / row;
        transpose_rest::<N, K>(rest, start, tile, row);
        let (mut groups, mut at) = (whole, 0);
        while let Some((group, others)) = groups.split_first_chunk::<K>() {
            let group = group.map(|column| &column[start * N..(start + rows) * N]);
            transpose_squares::<N, K>(&group, tile, row, at);
            (groups, at) = (others, at + K * N);
        }
        start += rows;
    }
}

/// Transposes squares of `K` rows and `K` columns.
fn transpose_squares<const N: usize, const K: usize>(
    columns: &[&[u8]; K],
    tile: &mut [u8],
    row: usize,
    at: usize,
) {
    let mut squares = tile.chunks_exact_mut(K * row);
    let mut start = 0;
    for rows in &mut squares {
        let square = square::<N, K>(columns, start);
        for (row, bytes) in rows.chunks_exact_mut(row).zip(square) {
            row[at..at + 16].copy_from_slice(&bytes);
        }
        start += 16;
    }
    transpose_items::<N, K>(
        &columns.map(|column| &column[start..]),
        squares.into_remainder(),
        row,
        at,
    );
}

/// The last columns, which do not fill a register. For two or three columns of four bytes, whole registers are
/// written: the next row, or the columns before these, overwrite the bytes beyond a row. Other sizes would gain too,
/// but are rare.
fn transpose_rest<const N: usize, const K: usize>(
    columns: &[&[u8]],
    mut start: usize,
    mut tile: &mut [u8],
    row: usize,
) {
    let mut at = row - columns.len() * N;
    if K == 4 && columns.len() > 1 {
        let group = from_fn(|index| columns[index.min(columns.len() - 1)]);
        while (K - 1) * row + at + 16 <= tile.len() {
            for (index, bytes) in square::<N, K>(&group, start * N).iter().enumerate() {
                tile[index * row + at..][..16].copy_from_slice(bytes);
            }
            (start, tile) = (start + K, &mut tile[K * row..]);
        }
    }
    let mut rest = columns;
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
