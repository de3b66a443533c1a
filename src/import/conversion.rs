//! Decides which dtypes can be stored in which element types, and how elements are converted.

use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::DataType;

use super::field_layout::FieldLayout;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{
    CopyReason, Error, ManagedTensor, dtype, extension::Extension, kernels, memory::Fresh,
};

/// The Arrow type that holds the values of a dtype, and the conversion of elements to it.
pub(super) fn natural(dtype: DLDataType) -> Result<(DataType, Conversion), Error> {
    if let Some(data_type) = dtype.to_arrow() {
        return Ok((data_type, Conversion::Keep));
    }
    Ok(match (dtype.lanes, dtype.code, dtype.bits) {
        (1, DLDataTypeCode::BOOL, _) => (DataType::Boolean, Conversion::Bits),
        (1, DLDataTypeCode::COMPLEX, 32) => (DataType::Float16, Conversion::Split),
        (1, DLDataTypeCode::COMPLEX, 64) => (DataType::Float32, Conversion::Split),
        (1, DLDataTypeCode::COMPLEX, 128) => (DataType::Float64, Conversion::Split),
        (1, DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => {
            (DataType::Float32, Conversion::Floats)
        }
        (1, DLDataTypeCode::INT, ..8) => (DataType::Int8, Conversion::Integers),
        (1, DLDataTypeCode::UINT, ..8) => (DataType::UInt8, Conversion::Integers),
        _ => return Err(Error::UnsupportedDtype { dtype, way_out: way_out(dtype) }),
    })
}

fn way_out(dtype: DLDataType) -> &'static str {
    match (dtype.code, dtype.lanes) {
        (_, 2..) if dtype.bits < 8 => {
            "several of its elements are in a byte: view it as bytes first, as PyTorch's x.view(torch.uint8) does"
        }
        (_, 2..) => "view it with its lanes as one more axis first",
        (DLDataTypeCode::FLOAT, _) => "convert it to float32 or float64 first",
        (DLDataTypeCode::INT | DLDataTypeCode::UINT, _) => {
            "convert it to 8, 16, 32 or 64 bits first"
        }
        _ => "convert it to a numeric type first",
    }
}

/// The conversion of a tensor's elements to those of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// The bytes are kept.
    Keep,
    /// The bytes are kept; each element becomes two.
    Split,
    /// Bytes become bits.
    Bits,
    /// Floats without an Arrow type become float32.
    Floats,
    /// Integers of under 8 bits become int8 or uint8.
    Integers,
}

impl Conversion {
    /// The conversion of a dtype to the element type, and extension type, of a field.
    pub(super) fn between(dtype: DLDataType, field_layout: &FieldLayout) -> Option<Self> {
        let FieldLayout { element, extension, .. } = field_layout;
        if let Some(Extension::Bool8) = extension {
            return (dtype.code == DLDataTypeCode::BOOL).then_some(Self::Keep);
        }
        if let Some(named) = extension.as_ref().and_then(Extension::dtype) {
            return (named == dtype && stores(element, dtype)).then_some(Self::Keep);
        }
        if physical(element) == Some(dtype) {
            return Some(Self::Keep);
        }
        match natural(dtype) {
            Ok((natural, conversion)) if natural == *element => Some(conversion),
            _ => None,
        }
    }

    /// Whether a contiguous and aligned tensor can be shared.
    pub(super) fn keeps_bytes(self) -> bool {
        matches!(self, Self::Keep | Self::Split)
    }

    /// Why the elements have to be copied, if they do.
    pub(super) fn reason(self, dtype: DLDataType, is_packed: bool) -> Option<CopyReason> {
        let cast = |to| Some(CopyReason::Cast { from: dtype, to });
        match self {
            Self::Keep | Self::Split => is_packed.then_some(CopyReason::Packed(dtype)),
            Self::Bits => Some(CopyReason::Bits),
            Self::Floats => cast(DLDataType::FLOAT32),
            Self::Integers => cast(DLDataType::scalar(dtype.code, 8)),
        }
    }

    /// Bytes that `size` elements take after the conversion.
    pub(super) fn nbytes(self, dtype: DLDataType, size: usize) -> usize {
        match self {
            Self::Keep | Self::Split => size.saturating_mul(dtype.item_bits(true) / 8),
            Self::Bits => size.div_ceil(8),
            Self::Floats => size.saturating_mul(4),
            Self::Integers => size,
        }
    }

    /// Converts the elements, in row-major order.
    pub(super) fn run(self, tensor: &ManagedTensor) -> Result<Buffer, Error> {
        let fresh = match self {
            Self::Bits => return kernels::pack_bools(tensor).map(BooleanBuffer::into_inner),
            Self::Keep | Self::Split if tensor.itemsize().is_none() => kernels::unpack(tensor),
            Self::Keep | Self::Split => kernels::gather(tensor),
            Self::Floats => kernels::widen(tensor),
            Self::Integers => kernels::widen_integers(tensor),
        };
        fresh.map(Fresh::into_buffer)
    }
}

/// The dtype that a numeric type, or a type stored as integers, has in memory.
fn physical(element: &DataType) -> Option<DLDataType> {
    match element {
        // Codes alone do not make a dictionary array.
        DataType::Dictionary(..) => None,
        _ => DLDataType::from_arrow(element).or_else(|| dtype::physical(element)),
    }
}

/// Whether one value of a type has the bytes of one element, or of one part of a complex element.
fn stores(element: &DataType, dtype: DLDataType) -> bool {
    let width = match element {
        DataType::FixedSizeList(part, 2) => {
            return natural(dtype) == Ok((part.data_type().clone(), Conversion::Split));
        }
        DataType::FixedSizeBinary(size) => usize::try_from(*size).ok(),
        other => other.primitive_width(),
    };
    width == Some(dtype.item_bits(true) / 8)
}
