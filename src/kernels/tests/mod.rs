//! Compares the loops with their simplest implementation.

mod columns;
mod encode;
mod numbers;
mod tensors;

use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::convert::item_size;
use super::convert::{CellValues, Cells};
use super::fill::FillBytes;
use crate::alloc::Fresh;
use crate::error::Error;
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::tensor::{ManagedTensor, TensorSpec};

const BOOL: DLDataType = DLDataType::BOOL;

/// A xorshift generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).expect("31 bits") % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next().to_le_bytes()[3]).collect()
    }

    /// `len` random bits, after `offset` other bits.
    fn bits(
        &mut self,
        offset: usize,
        len: usize,
        mut bit: impl FnMut(&mut Self) -> bool,
    ) -> BooleanBuffer {
        BooleanBuffer::collect_bool(offset + len, |_| bit(self)).slice(offset, len)
    }

    /// Random validity with a null in one of `one_in` cells.
    fn nulls(&mut self, offset: usize, len: usize, one_in: usize) -> NullBuffer {
        NullBuffer::new(self.bits(offset, len, |random| random.below(one_in) != 0))
    }
}

fn words<'a>(bytes: &'a [u8], dtype: DLDataType, nulls: Option<&'a NullBuffer>) -> Cells<'a> {
    Cells { values: CellValues::Words { bytes, dtype }, nulls }
}

fn concatenate(
    chunks: &[Cells<'_>],
    dtype: DLDataType,
    fill: Option<&FillBytes>,
) -> Result<Fresh, Error> {
    let items: usize = chunks.iter().map(Cells::len).sum();
    Fresh::in_parts(items * item_size(dtype), |out| {
        super::concatenate(chunks, dtype, fill, None, out)
    })
}

fn interleave<'a>(
    columns: &[impl AsRef<[Cells<'a>]> + Sync],
    rows: usize,
    dtype: DLDataType,
    fill: Option<&'a FillBytes>,
) -> Result<Fresh, Error> {
    Fresh::in_parts(columns.len() * rows * item_size(dtype), |out| {
        super::interleave(columns, rows, dtype, fill, None, out)
    })
}

fn bytes_of(fresh: Fresh) -> Vec<u8> {
    fresh.into_buffer().to_vec()
}

fn dtype(code: u8, bits: u8) -> DLDataType {
    DLDataType::scalar(DLDataTypeCode(code), bits)
}

/// A tensor whose first element is `origin` bytes into `bytes`.
fn tensor(
    bytes: &[u8],
    origin: usize,
    dtype: DLDataType,
    padded: bool,
    shape: &[i64],
    strides: &[i64],
) -> ManagedTensor {
    let memory = Fresh::build::<u8>(bytes.len(), |out| out.extend_from_slice(bytes));
    let flags = if padded { DLPackFlags::IS_SUBBYTE_TYPE_PADDED } else { DLPackFlags::default() };
    let memory = memory.expect("a few bytes");
    ManagedTensor::from_fresh_at(memory, origin, TensorSpec::new(dtype, flags, shape, strides))
        .expect("it is true")
}

/// The distance of each element from the first one, in row-major order.
fn positions(shape: &[i64], strides: &[i64]) -> Vec<i64> {
    let (Some((extent, shape)), Some((stride, strides))) =
        (shape.split_first(), strides.split_first())
    else {
        return vec![0];
    };
    let inner = positions(shape, strides);
    (0..*extent).flat_map(|index| inner.iter().map(move |at| index * stride + at)).collect()
}
