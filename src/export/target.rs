//! The conversion of the values of a column.

use super::dense::{CellBuffer, Dense};
use super::options::{ExportOptions, NullPolicy};
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::kernels::{self, FillBytes, Threads};
use crate::{CopyReason, Error, Scalar};

/// The conversion of the values, which is the same for all columns of a tensor.
pub(super) struct Target {
    pub(super) dtype: DLDataType,
    /// The value that replaces nulls; `None` keeps the values of null slots.
    pub(super) fill: Option<FillBytes>,
    /// Whether the result is the validity of the values.
    pub(super) is_mask: bool,
    pub(super) threads: Threads,
}

impl Target {
    /// The target of a mask.
    pub(super) fn mask(threads: Threads) -> Self {
        Self { dtype: DLDataType::BOOL, fill: None, is_mask: true, threads }
    }

    /// The target for values of the dtype `source` under `options`.
    pub(super) fn new(source: DLDataType, options: &ExportOptions) -> Result<Self, Error> {
        let natural = if options.nulls == NullPolicy::Nan { with_nan(source) } else { source };
        let dtype = options.dtype.unwrap_or(natural);
        let value = match options.nulls {
            NullPolicy::Refuse | NullPolicy::Masked => None,
            NullPolicy::Fill(value) => Some(value),
            NullPolicy::Nan => Some(Scalar::Float(f64::NAN)),
        };
        let encode =
            |value: Scalar| value.encode(dtype).ok_or(Error::FillDoesNotFit { value, dtype });
        let (fill, threads) = (value.map(encode).transpose()?, options.threads);
        Ok(Self { dtype, fill, is_mask: false, threads })
    }

    /// Why the cells of a chunk cannot be shared.
    pub(super) fn reasons(&self, chunk: &Dense) -> Result<Vec<CopyReason>, Error> {
        let (from, to) = (chunk.dtype, self.dtype);
        if !kernels::can_convert(from, to) {
            return Err(Error::CannotCast { from, to });
        }
        let mut reasons = Vec::new();
        let count = chunk.null_count();
        if count > 0 && self.fill.is_some() {
            reasons.push(CopyReason::Filled { count });
        }
        match &chunk.storage {
            CellBuffer::Bits(_) => reasons.push(CopyReason::Bits),
            CellBuffer::Words(bytes) if from == DLDataType::BOOL => {
                reasons.extend((!kernels::are_bools(bytes)?).then_some(CopyReason::BoolBytes));
            }
            CellBuffer::Decimals(..) => reasons.push(CopyReason::Decimals(to)),
            CellBuffer::Words(_) => {}
        }
        if from != to && !matches!(chunk.storage, CellBuffer::Decimals(..)) {
            reasons.push(CopyReason::Cast { from, to });
        }
        Ok(reasons)
    }

    /// Bytes of this many cells.
    pub(super) fn nbytes(&self, cells: usize) -> Result<usize, Error> {
        let nbytes = cells.checked_mul(self.dtype.item_bits(true) / 8);
        nbytes.ok_or(Error::Overflow("size in bytes"))
    }

    pub(super) fn flags(&self) -> DLPackFlags {
        // Arrow has no layout for packed elements of under 8 bits.
        if self.dtype.bits < 8 {
            DLPackFlags::IS_SUBBYTE_TYPE_PADDED
        } else {
            DLPackFlags::default()
        }
    }
}

/// The dtype of pyarrow's `null_to_nan`: the smallest float type that is no narrower than `float32` for values that
/// are not floats.
pub(super) fn with_nan(dtype: DLDataType) -> DLDataType {
    match dtype.code {
        DLDataTypeCode::INT | DLDataTypeCode::UINT if dtype.bits > 16 => DLDataType::FLOAT64,
        DLDataTypeCode::INT | DLDataTypeCode::UINT | DLDataTypeCode::BOOL => DLDataType::FLOAT32,
        _ => dtype,
    }
}
