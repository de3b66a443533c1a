//! The values that replace nulls.

use arrow_buffer::{NullBuffer, bit_chunk_iterator::BitChunks};

use super::{array, simd::Lanes};
use crate::alloc::Unwritten;

/// The fill value as the bytes of one item of the dtype, from the first byte on.
pub(crate) type FillBytes = [u8; 16];

/// Overwrites each null cell with `item`; `start` is the position of the first cell.
pub(super) fn fill(
    cells: &mut [u8],
    nulls: &NullBuffer,
    start: usize,
    item: &FillBytes,
    size: usize,
) {
    let bits = BitChunks::new(nulls.validity(), nulls.offset() + start, cells.len() / size);
    match size {
        1 => fill_blocks::<1, 64>(cells, bits, item),
        2 => fill_blocks::<2, 128>(cells, bits, item),
        4 => fill_blocks::<4, 256>(cells, bits, item),
        8 => fill_blocks::<8, 512>(cells, bits, item),
        _ => fill_blocks::<16, 1024>(cells, bits, item),
    }
}

/// Appends `cells`, with `item` in place of each null cell; `start` is the position of the first cell.
pub(super) fn append_filled(
    out: &mut Unwritten<'_>,
    cells: &[u8],
    nulls: &NullBuffer,
    start: usize,
    item: &FillBytes,
    size: usize,
) {
    let bits = BitChunks::new(nulls.validity(), nulls.offset() + start, cells.len() / size);
    match size {
        1 => append_blocks::<1, 64>(out, cells, bits, item),
        2 => append_blocks::<2, 128>(out, cells, bits, item),
        4 => append_blocks::<4, 256>(out, cells, bits, item),
        8 => append_blocks::<8, 512>(out, cells, bits, item),
        _ => append_blocks::<16, 1024>(out, cells, bits, item),
    }
}

fn fill_blocks<const N: usize, const BLOCK: usize>(
    cells: &mut [u8],
    bits: BitChunks<'_>,
    item: &FillBytes,
) {
    let item = repeated::<N>(item);
    let (mut block, mut filled) = ([0; BLOCK], [0; BLOCK]);
    for (valid, cells) in bits.iter_padded().zip(cells.chunks_mut(BLOCK)) {
        if valid != u64::MAX {
            block[..cells.len()].copy_from_slice(cells);
            select::<N, BLOCK>(&block, valid, item, &mut filled);
            cells.copy_from_slice(&filled[..cells.len()]);
        }
    }
}

/// Fills and appends in one pass: a second pass would read back what has left the cache.
fn append_blocks<const N: usize, const BLOCK: usize>(
    out: &mut Unwritten<'_>,
    cells: &[u8],
    bits: BitChunks<'_>,
    item: &FillBytes,
) {
    let item = repeated::<N>(item);
    let (mut block, mut filled) = ([0; BLOCK], [0; BLOCK]);
    let blocks = cells.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    for (valid, cells) in bits.iter().zip(blocks) {
        select::<N, BLOCK>(cells, valid, item, &mut filled);
        out.extend_from_slice(&filled);
    }
    block[..rest.len()].copy_from_slice(rest);
    select::<N, BLOCK>(&block, bits.remainder_bits(), item, &mut filled);
    out.extend_from_slice(&filled[..rest.len()]);
}

/// A register of repeated items of `N` bytes.
fn repeated<const N: usize>(item: &FillBytes) -> Lanes {
    let mut bytes = [0; 16];
    for cell in bytes.chunks_exact_mut(N) {
        cell.copy_from_slice(&item[..N]);
    }
    Lanes::load(&bytes)
}

/// Writes the 64 cells of a validity word, with the item in place of null ones. The time does not depend on the
/// number of nulls.
#[inline(always)]
fn select<const N: usize, const BLOCK: usize>(
    cells: &[u8],
    valid: u64,
    item: Lanes,
    out: &mut [u8; BLOCK],
) {
    for (index, (cells, out)) in cells.chunks_exact(16).zip(out.chunks_exact_mut(16)).enumerate() {
        let [low, high, ..] = (valid >> (16 / N * index)).to_le_bytes().map(usize::from);
        let mask = match N {
            1 => {
                let mut mask = [0; 16];
                mask[..8].copy_from_slice(&MASKS_1[low]);
                mask[8..].copy_from_slice(&MASKS_1[high]);
                mask
            }
            2 => MASKS_2[low],
            4 => MASKS_4[low % 16],
            8 => MASKS_8[low % 4],
            _ => MASKS_16[low % 2],
        };
        let selected = item.select(Lanes::load(&array(cells)), Lanes::load(&mask));
        let mut bytes = [0; 16];
        selected.store(&mut bytes);
        out.copy_from_slice(&bytes);
    }
}

static MASKS_1: [[u8; 8]; 256] = masks::<1, 8, 256>(u8::MAX);
static MASKS_2: [[u8; 16]; 256] = masks::<2, 16, 256>(u8::MAX);
static MASKS_4: [[u8; 16]; 16] = masks::<4, 16, 16>(u8::MAX);
static MASKS_8: [[u8; 16]; 4] = masks::<8, 16, 4>(u8::MAX);
static MASKS_16: [[u8; 16]; 2] = masks::<16, 16, 2>(u8::MAX);

/// For each bit pattern, cells of `N` bytes that are all `set` where a bit is 1, and 0 elsewhere, the lowest bit first.
pub(super) const fn masks<const N: usize, const BYTES: usize, const ROWS: usize>(
    set: u8,
) -> [[u8; BYTES]; ROWS] {
    let mut masks = [[0; BYTES]; ROWS];
    let mut row = 0;
    while row < ROWS {
        let mut byte = 0;
        while byte < BYTES {
            if row >> (byte / N) & 1 == 1 {
                masks[row][byte] = set;
            }
            byte += 1;
        }
        row += 1;
    }
    masks
}
