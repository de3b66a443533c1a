//! Booleans: one bit each in Arrow, one byte each in DLPack.

use arrow_buffer::{BooleanBuffer, bit_chunk_iterator::BitChunks};

use super::gather::{Walk, append_run, readable};
use super::{array, fill::masks, simd::Lanes};
use crate::alloc::{Fresh, Unwritten};
use crate::{Error, ManagedTensor, task::Steps};

/// Whether every byte is 0 or 1, as DLPack consumers expect without a guarantee.
///
/// # Errors
///
/// Those of [`task::check`](crate::task::check).
pub(crate) fn are_bools(bytes: &[u8]) -> Result<bool, Error> {
    let mut steps = Steps::default();
    // No branch per byte, but an early end after a block with another byte.
    for block in bytes.chunks(4096) {
        steps.done(block.len())?;
        if block.iter().fold(0, |all, byte| all | byte) > 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes 1 for each byte that is not 0.
pub(super) fn normalise(bytes: &[u8], out: &mut [u8]) {
    for (byte, out) in bytes.iter().zip(out) {
        *out = u8::from(*byte != 0);
    }
}

/// Writes `out.len()` bits, from bit `start` on, as bytes of 0 and 1.
pub(super) fn unpack_bits(bits: &BooleanBuffer, start: usize, out: &mut [u8]) {
    let chunks = BitChunks::new(bits.values(), bits.offset() + start, out.len());
    let mut words = out.chunks_exact_mut(64);
    for (bits, word) in chunks.iter().zip(&mut words) {
        for (byte, out) in bits.to_le_bytes().iter().zip(word.chunks_exact_mut(8)) {
            out.copy_from_slice(&SPREAD[usize::from(*byte)]);
        }
    }
    let rest = chunks.remainder_bits().to_le_bytes();
    for (byte, out) in rest.iter().zip(words.into_remainder().chunks_mut(8)) {
        out.copy_from_slice(&SPREAD[usize::from(*byte)][..out.len()]);
    }
}

/// Appends `len` bits, from bit `start` on, as bytes of 0 and 1. Unlike [`unpack_bits`] it needs no zeroed memory.
pub(super) fn append_bits(bits: &BooleanBuffer, start: usize, len: usize, out: &mut Unwritten<'_>) {
    let chunks = BitChunks::new(bits.values(), bits.offset() + start, len);
    let spread = |bits: u64| {
        let mut word = [0; 64];
        for (byte, out) in bits.to_le_bytes().iter().zip(word.chunks_exact_mut(8)) {
            out.copy_from_slice(&SPREAD[usize::from(*byte)]);
        }
        word
    };
    for bits in chunks.iter() {
        out.extend_from_slice(&spread(bits));
    }
    out.extend_from_slice(&spread(chunks.remainder_bits())[..len % 64]);
}

/// The eight bits of each byte as bytes, the lowest bit first.
static SPREAD: [[u8; 8]; 256] = masks::<1, 8, 256>(1);

/// Packs the bytes of a boolean tensor to Arrow's bits, in row-major order: any byte but 0 is true.
///
/// # Errors
///
/// `UnreadableDevice`, `OutOfMemory`; those of [`task::check`](crate::task::check).
pub(crate) fn pack_bools(tensor: &ManagedTensor) -> Result<BooleanBuffer, Error> {
    const STAGE: usize = 4096;

    let (bytes, origin) = readable(tensor)?;
    let len = tensor.nbytes();
    let packed = Fresh::try_build::<u8>(len.div_ceil(8), |out| {
        let mut steps = Steps::default();
        if tensor.is_contiguous() {
            return bytes.chunks(1 << 20).try_for_each(|block| {
                append_packed(out, block);
                steps.done(block.len())
            });
        }
        // Gathers strided bytes to a small buffer first, which is then packed.
        let mut stage: Vec<u8> = Vec::with_capacity(STAGE);
        Walk::new(tensor, origin, 1)?.runs(|mut at, mut len, step| {
            while len > 0 {
                let part = len.min(STAGE - stage.len());
                at = append_run(&mut stage, bytes, at, part, step, u8::from_ne_bytes);
                len -= part;
                if stage.len() == STAGE {
                    append_packed(out, &stage);
                    stage.clear();
                    steps.done(STAGE)?;
                }
            }
            Ok(())
        })?;
        append_packed(out, &stage);
        Ok(())
    })?;
    Ok(BooleanBuffer::new(packed.into_buffer(), 0, len))
}

/// Appends one bit per byte, 1 if the byte is not 0, and zeros to the end of the last byte.
fn append_packed(out: &mut Vec<u8>, bytes: &[u8]) {
    let blocks = bytes.chunks_exact(64);
    let rest = blocks.remainder();
    out.extend(blocks.flat_map(pack));
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    out.extend_from_slice(&pack(&last)[..rest.len().div_ceil(8)]);
}

/// Packs 64 bytes to bits.
fn pack(bytes: &[u8]) -> [u8; 8] {
    let mut packed = [0; 8];
    for (bytes, packed) in bytes.chunks_exact(16).zip(packed.chunks_exact_mut(2)) {
        packed.copy_from_slice(&Lanes::load(&array(bytes)).nonzero().to_le_bytes());
    }
    packed
}
