//! What a null becomes.

use arrow_buffer::NullBuffer;
use arrow_buffer::bit_chunk_iterator::BitChunks;

use super::gather::array;

/// The bits of one item of some dtype, at the front.
pub(crate) type Item = [u8; 16];

/// Writes `item` over each of `cells` that is null, the first of them being cell `start`.
pub(super) fn fill(cells: &mut [u8], nulls: &NullBuffer, start: usize, item: &Item, size: usize) {
    let bits = BitChunks::new(nulls.validity(), nulls.offset() + start, cells.len() / size);
    match size {
        1 => select(cells, bits, u8::from_ne_bytes(array(&item[..1]))),
        2 => select(cells, bits, u16::from_ne_bytes(array(&item[..2]))),
        4 => select_wide(cells, bits, u32::from_ne_bytes(array(&item[..4]))),
        8 => scatter::<8>(cells, bits, array(&item[..8])),
        _ => scatter::<16>(cells, bits, *item),
    }
}

/// Goes through all cells, several at once: the nulls cost nothing, however many there are.
fn select<W: Word>(cells: &mut [u8], bits: BitChunks<'_>, item: W) {
    let size = size_of::<W>();
    let mut blocks = cells.chunks_exact_mut(64 * size);
    for (valid, cells) in bits.iter().zip(&mut blocks) {
        if valid != u64::MAX {
            select_block(cells, valid, item);
        }
    }
    let rest = blocks.into_remainder();
    select_block(rest, bits.remainder_bits(), item);
}

/// Up to 64 cells.
#[inline(always)]
fn select_block<W: Word>(cells: &mut [u8], valid: u64, item: W) {
    let mut masks = [0; 64];
    for (byte, masks) in valid.to_le_bytes().iter().zip(masks.chunks_exact_mut(8)) {
        masks.copy_from_slice(&MASKS[usize::from(*byte)]);
    }
    for (mask, cell) in masks.iter().zip(cells.chunks_exact_mut(size_of::<W>())) {
        W::select(cell, *mask, item);
    }
}

/// -1 for each bit of the byte that is set, the lowest first.
static MASKS: [[i8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut row = 0;
    while row < 256 {
        let mut bit = 0;
        while bit < 8 {
            if row >> bit & 1 == 1 {
                table[row][bit] = -1;
            }
            bit += 1;
        }
        row += 1;
    }
    table
};

/// An item of which a vector register holds several.
trait Word: Copy {
    /// Keeps the cell where the mask is -1, makes it the item where it is 0.
    fn select(cell: &mut [u8], mask: i8, item: Self);
}

macro_rules! word {
    ($($word:ty, $signed:ty;)*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn select(cell: &mut [u8], mask: i8, item: Self) {
                let mask = Self::from_ne_bytes(<$signed>::from(mask).to_ne_bytes());
                let value = Self::from_ne_bytes(array(cell));
                cell.copy_from_slice(&((value ^ item) & mask ^ item).to_ne_bytes());
            }
        }
    )*};
}
word! { u8, i8; u16, i16; u32, i32; }

/// As `select`, for cells of which four fill a register: their masks come ready from a table.
fn select_wide(cells: &mut [u8], bits: BitChunks<'_>, item: u32) {
    let mut blocks = cells.chunks_exact_mut(64 * 4);
    for (valid, cells) in bits.iter().zip(&mut blocks) {
        if valid == u64::MAX {
            continue;
        }
        for (group, cells) in cells.chunks_exact_mut(4 * 4).enumerate() {
            let [low, ..] = (valid >> (4 * group)).to_le_bytes();
            let masks = &WIDE_MASKS[usize::from(low & 15)];
            // Spelled out, or the compiler does them one at a time.
            for lane in 0..4 {
                let cell = &mut cells[4 * lane..4 * lane + 4];
                let value = u32::from_ne_bytes(array(cell));
                cell.copy_from_slice(&((value ^ item) & masks[lane] ^ item).to_ne_bytes());
            }
        }
    }
    select_block(blocks.into_remainder(), bits.remainder_bits(), item);
}

/// All ones for each of the four bits that is set.
static WIDE_MASKS: [[u32; 4]; 16] = {
    let mut table = [[0; 4]; 16];
    let mut row = 0;
    while row < 64 {
        if (row / 4) >> (row % 4) & 1 == 1 {
            table[row / 4][row % 4] = u32::MAX;
        }
        row += 1;
    }
    table
};

/// Goes from null to null: of wide cells, too few fit into a register to go through all of them.
fn scatter<const N: usize>(cells: &mut [u8], bits: BitChunks<'_>, item: [u8; N]) {
    let words = bits.iter().chain([bits.remainder_bits()]);
    for (valid, cells) in words.zip(cells.chunks_mut(64 * N)) {
        let all = u64::MAX >> (64 - cells.len() / N);
        let mut nulls = !valid & all;
        if nulls == 0 {
            continue;
        }
        // A few stores too many, to the last null again, are cheaper than a number of them that the
        // CPU cannot foresee.
        let mut last = 0;
        for _ in 0..nulls.count_ones().next_multiple_of(8) {
            if nulls != 0 {
                last = nulls.trailing_zeros();
            }
            let at = usize::try_from(last).unwrap_or(0) * N;
            cells[at..at + N].copy_from_slice(&item);
            nulls &= nulls.wrapping_sub(1);
        }
    }
}
