//! Converts one chunk of a column to another dtype.

use std::borrow::Cow;

use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::bits::{append_bits, normalise, unpack_bits};
use super::cast::{self, Cast};
use super::fill::{FillBytes, append_filled, fill};
use super::formats::{self, DecodeTable};
use super::{array, decimal::Decimals, formats::from_bfloat};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{Error, Hint, Number, alloc::Unwritten};

/// Bytes that are cast at once: a block stays in the L1 cache from the first step to the last.
const BLOCK: usize = 16 << 10;

/// One chunk of a column: contiguous cells.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub(crate) values: CellValues<'a>,
    /// One validity bit for each cell.
    pub(crate) nulls: Option<&'a NullBuffer>,
}

/// The values of the cells; those of null cells are unspecified.
#[derive(Clone, Copy)]
pub(crate) enum CellValues<'a> {
    /// Unaligned items of a dtype; elements of under 8 bits take a byte each.
    Words { bytes: &'a [u8], dtype: DLDataType },
    /// Arrow's booleans.
    Bits(&'a BooleanBuffer),
    /// Unaligned decimals, which are float64.
    Decimals(&'a [u8], Decimals),
}

impl Cells<'_> {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        match self.values {
            CellValues::Words { bytes, dtype } => bytes.len() / item_size(dtype),
            CellValues::Bits(bits) => bits.len(),
            CellValues::Decimals(bytes, decimals) => bytes.len() / decimals.width,
        }
    }
}

/// Bytes of one item; elements of under 8 bits take a byte.
pub(super) fn item_size(dtype: DLDataType) -> usize {
    dtype.item_bits(true) / 8
}

/// Whether values of `from` can become `to`: the same dtype, if its items have 1, 2, 4, 8 or 16 bytes; numbers and
/// booleans to numbers and bfloat16; floats without an Arrow type to float32 and float64.
pub(crate) fn can_convert(from: DLDataType, to: DLDataType) -> bool {
    CastSteps::between(from, to).is_some()
}

/// A conversion in two steps: to a dtype that can be cast, and then the cast.
struct CastSteps {
    decode: Decode,
    cast: Option<Cast>,
}

enum Decode {
    /// The items are cast, or copied, as they are.
    Nothing,
    /// Bits or bytes to bytes of 0 and 1.
    Bool,
    /// bfloat16 to float32.
    Bfloat,
    /// Floats of 8, 6 and 4 bits to float32.
    Code(Box<DecodeTable>),
}

impl CastSteps {
    fn between(from: DLDataType, to: DLDataType) -> Option<Self> {
        let bool = from.code == DLDataTypeCode::BOOL;
        if from == to {
            let decode = if bool { Decode::Bool } else { Decode::Nothing };
            let moves = matches!(item_size(from), 1 | 2 | 4 | 8 | 16);
            return moves.then_some(Self { decode, cast: None });
        }
        let (decode, between) = match formats::table(from) {
            _ if from.lanes != 1 => return None,
            Some(table) => (Decode::Code(table), DLDataType::FLOAT32),
            None if from == DLDataType::BFLOAT16 => (Decode::Bfloat, DLDataType::FLOAT32),
            None if bool => (Decode::Bool, DLDataType::UINT8),
            None => {
                return Some(Self { decode: Decode::Nothing, cast: Some(cast::cast(from, to)?) });
            }
        };
        if between == DLDataType::FLOAT32 && to != DLDataType::FLOAT64 {
            return (to == between).then_some(Self { decode, cast: None });
        }
        let cast = if between == to { None } else { Some(cast::cast(between, to)?) };
        Some(Self { decode, cast })
    }
}

/// A chunk with its conversion.
pub(super) struct CellChunk<'a> {
    cells: Cells<'a>,
    fill: Option<&'a FillBytes>,
    steps: CastSteps,
    from: DLDataType,
    to: DLDataType,
}

impl<'a> CellChunk<'a> {
    pub(super) fn new(
        cells: Cells<'a>,
        to: DLDataType,
        fill: Option<&'a FillBytes>,
    ) -> Result<Self, Error> {
        let from = match cells.values {
            CellValues::Words { dtype, .. } => dtype,
            CellValues::Bits(_) => DLDataType::BOOL,
            CellValues::Decimals(..) => DLDataType::FLOAT64,
        };
        let steps = CastSteps::between(from, to).ok_or(Error::UnsupportedDtype {
            dtype: from,
            hint: Hint::Text("cast it to the dtype of the others first"),
        })?;
        let nulls = cells.nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(Self { cells: Cells { nulls, ..cells }, fill, steps, from, to })
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are nulls to fill.
    pub(super) fn has_fill(&self) -> bool {
        self.fill.is_some() && self.cells.nulls.is_some()
    }

    /// Fills the nulls in `out`, which has the items from `start` on.
    fn fill(&self, start: usize, out: &mut [u8]) {
        if let (Some(nulls), Some(item)) = (self.cells.nulls, self.fill) {
            fill(out, nulls, start, item, item_size(self.to));
        }
    }

    /// Appends `len` items from `start` on, with the nulls filled.
    pub(super) fn append(
        &self,
        start: usize,
        len: usize,
        out: &mut Unwritten<'_>,
    ) -> Result<(), Misfit> {
        let size = item_size(self.to);
        if let Some(verbatim) = self.verbatim(start, len) {
            match (self.cells.nulls, self.fill) {
                (Some(nulls), Some(item)) => append_filled(out, verbatim, nulls, start, item, size),
                _ => out.extend_from_slice(verbatim),
            }
        } else if let Some(bits) = self.bits() {
            append_bits(bits, start, len, out);
        } else {
            let block = BLOCK / size;
            // Cast in a cache, and copied past it: a cast that stores item by item reads the memory first.
            let is_copied = out.is_streamed() && len >= block;
            let mut scratch = vec![0; if is_copied { block * size } else { 0 }];
            for at in (start..start + len).step_by(block) {
                let nbytes = block.min(start + len - at) * size;
                if is_copied {
                    self.write(at, &mut scratch[..nbytes])?;
                    out.extend_from_slice(&scratch[..nbytes]);
                } else {
                    self.write(at, out.zeros(nbytes))?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of `len` items from `start` on, if only nulls change.
    pub(super) fn verbatim(&self, start: usize, len: usize) -> Option<&'a [u8]> {
        match (&self.steps, self.cells.values) {
            (
                CastSteps { decode: Decode::Nothing, cast: None },
                CellValues::Words { bytes, .. },
            ) => Some(items(bytes, self.from, start, len)),
            _ => None,
        }
    }

    /// The bits, if they only become bytes of 0 and 1.
    fn bits(&self) -> Option<&'a BooleanBuffer> {
        match (&self.steps, self.cells.values) {
            (CastSteps { cast: None, .. }, CellValues::Bits(bits)) if !self.has_fill() => {
                Some(bits)
            }
            _ => None,
        }
    }

    /// Writes items from `start` on until `out` is full.
    pub(super) fn write(&self, start: usize, out: &mut [u8]) -> Result<(), Misfit> {
        if let Some(cast) = self.steps.cast {
            let len = out.len() / item_size(self.to);
            if !cast(&self.decoded(start, len), out) {
                self.check(start, len, cast)?;
            }
        } else {
            self.decode(start, out);
        }
        self.fill(start, out);
        Ok(())
    }

    /// `len` items from `start` on, in the dtype that is cast.
    fn decoded(&self, start: usize, len: usize) -> Cow<'a, [u8]> {
        let size = match (&self.steps.decode, self.cells.values) {
            (Decode::Nothing, CellValues::Words { bytes, .. }) => {
                return items(bytes, self.from, start, len).into();
            }
            (Decode::Nothing, CellValues::Decimals(..)) => size_of::<f64>(),
            (Decode::Nothing | Decode::Bool, _) => 1,
            (Decode::Bfloat | Decode::Code(_), _) => size_of::<f32>(),
        };
        let mut out = vec![0; len * size];
        self.decode(start, &mut out);
        out.into()
    }

    fn decode(&self, start: usize, out: &mut [u8]) {
        let bytes = match self.cells.values {
            CellValues::Bits(bits) => return unpack_bits(bits, start, out),
            CellValues::Decimals(bytes, decimals) => {
                let items = &bytes[start * decimals.width..];
                return decimals.write(items, out, self.steps.cast.is_some());
            }
            CellValues::Words { bytes, .. } => &bytes[start * item_size(self.from)..],
        };
        match &self.steps.decode {
            Decode::Nothing => out.copy_from_slice(&bytes[..out.len()]),
            Decode::Bool => normalise(&bytes[..out.len()], out),
            Decode::Bfloat => {
                for (item, out) in bytes.chunks_exact(2).zip(out.chunks_exact_mut(4)) {
                    out.copy_from_slice(&from_bfloat(array(item)).to_ne_bytes());
                }
            }
            Decode::Code(table) => {
                for (code, out) in bytes.iter().zip(out.chunks_exact_mut(4)) {
                    out.copy_from_slice(&table[usize::from(*code)].to_ne_bytes());
                }
            }
        }
    }

    /// Finds the cell that does not fit, and ignores null cells.
    fn check(&self, start: usize, len: usize, cast: Cast) -> Result<(), Misfit> {
        let from = self.decoded(start, len);
        let mut out = [0; 16];
        let out = &mut out[..item_size(self.to)];
        for (cell, item) in (start..).zip(from.chunks_exact(item_size(self.from))) {
            let null = self.cells.nulls.is_some_and(|nulls| nulls.is_null(cell));
            if !null && !cast(item, out) {
                return Err(Misfit { cell, value: self.scalar(cell, item) });
            }
        }
        Ok(())
    }

    /// A value for an error; of a decimal the nearest float64, which is not the one that is cast.
    fn scalar(&self, cell: usize, item: &[u8]) -> Number {
        let mut nearest = [0; size_of::<f64>()];
        let scalar = match self.cells.values {
            CellValues::Decimals(bytes, decimals) => {
                decimals.write(&bytes[cell * decimals.width..], &mut nearest, false);
                cast::scalar(&nearest, self.from)
            }
            _ => cast::scalar(item, self.from),
        };
        // What was cast is of such a dtype.
        scalar.unwrap_or(Number::Float(f64::NAN))
    }
}

/// A value that does not fit.
pub(super) struct Misfit {
    cell: usize,
    value: Number,
}

impl Misfit {
    /// The error, for a chunk that begins at row `start` of a column.
    pub(super) fn at(self, start: usize, column: usize, dtype: DLDataType) -> Error {
        Error::ValueDoesNotFit { value: self.value, dtype, column, row: start + self.cell }
    }
}

fn items(bytes: &[u8], dtype: DLDataType, start: usize, len: usize) -> &[u8] {
    let size = item_size(dtype);
    &bytes[start * size..(start + len) * size]
}
