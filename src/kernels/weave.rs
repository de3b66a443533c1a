//! Columns side by side.

use super::gather::array;

/// Writes the items of each column, which lie one behind the other, as rows, which do so in `tile`.
pub(super) fn weave(columns: &[&[u8]], tile: &mut [u8], size: usize) {
    match size {
        1 => weave_words::<1>(columns, tile),
        2 => weave_words::<2>(columns, tile),
        4 => weave_words::<4>(columns, tile),
        8 => weave_words::<8>(columns, tile),
        _ => weave_words::<16>(columns, tile),
    }
}

fn weave_words<const N: usize>(columns: &[&[u8]], tile: &mut [u8]) {
    let row = columns.len() * N;
    let mut at = 0;
    let mut rest = columns;
    while let Some((group, others)) = rest.split_first_chunk::<8>() {
        weave_group::<N, 8>(group, tile, row, at);
        (rest, at) = (others, at + 8 * N);
    }
    if let Some((group, others)) = rest.split_first_chunk::<4>() {
        weave_group::<N, 4>(group, tile, row, at);
        (rest, at) = (others, at + 4 * N);
    }
    for column in rest {
        weave_group::<N, 1>(&[column], tile, row, at);
        at += N;
    }
}

/// Several columns at once: more of each row is written before it is left.
fn weave_group<const N: usize, const G: usize>(
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
