//! A field as axes of elements, and which elements can be stored as which.

use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, Field};

use super::choose;
use crate::dtype;
use crate::error::Error;
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels;
use crate::memory::{Fresh, ManagedTensor};
use crate::plan::CopyReason;

/// What a field stores in each of its values.
pub(super) struct Storage<'a> {
    /// Extents, from the outermost axis in memory to the innermost.
    pub(super) extents: Vec<i64>,
    /// Logical axis `i` is axis `order[i]` in memory.
    pub(super) order: Vec<usize>,
    /// What the elements are.
    pub(super) element: &'a DataType,
    /// What the elements mean, if they are more than numbers.
    pub(super) extension: Option<Extension>,
}

impl<'a> Storage<'a> {
    /// Descends to the elements. Extension types that say nothing of tensors are as good as their
    /// storage.
    ///
    /// # Errors
    ///
    /// `MalformedExtension`.
    pub(super) fn of(mut field: &'a Field) -> Result<Self, Error> {
        let (mut extents, mut order) = (Vec::new(), Vec::new());
        loop {
            let extension = Extension::of(field)?;
            let element = field.data_type();
            match (&extension, element) {
                (Some(Extension::Bool8), _) => {}
                (Some(opaque), _) if opaque.dtype().is_some() => {}
                (
                    Some(Extension::FixedShapeTensor { shape, dimensions }),
                    DataType::FixedSizeList(item, _),
                ) => {
                    let outer = extents.len();
                    order.extend(dimensions.order(shape.len()).iter().map(|axis| outer + axis));
                    extents.extend_from_slice(shape);
                    field = item;
                    continue;
                }
                (_, DataType::FixedSizeList(item, size)) => {
                    order.push(extents.len());
                    extents.push(i64::from(*size));
                    field = item;
                    continue;
                }
                (_, DataType::FixedSizeBinary(size)) => {
                    order.push(extents.len());
                    extents.push(i64::from(*size));
                    let element = &DataType::UInt8;
                    return Ok(Self { extents, order, element, extension: None });
                }
                _ => {}
            }
            return Ok(Self { extents, order, element, extension });
        }
    }
}

/// How the elements of a tensor become those of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// They are the same bytes.
    Keep,
    /// They are the same bytes, but two elements each.
    Split,
    /// Bytes become bits.
    Bits,
    /// Floats that Arrow lacks become float32.
    Floats,
    /// Integers of under 8 bits become those of 8.
    Integers,
}

impl Conversion {
    /// The one that an element type of Arrow, perhaps of an extension type, asks for.
    pub(super) fn between(
        dtype: DLDataType,
        element: &DataType,
        extension: Option<&Extension>,
    ) -> Option<Self> {
        if let Some(Extension::Bool8) = extension {
            return (dtype.code == DLDataTypeCode::BOOL).then_some(Self::Keep);
        }
        if let Some(named) = extension.and_then(Extension::dtype) {
            return (named == dtype && stores(element, dtype)).then_some(Self::Keep);
        }
        if physical(element) == Some(dtype) {
            return Some(Self::Keep);
        }
        match choose::natural(dtype) {
            Ok((natural, is_pair)) if natural == *element => Some(match dtype.code {
                _ if is_pair => Self::Split,
                DLDataTypeCode::BOOL => Self::Bits,
                DLDataTypeCode::INT | DLDataTypeCode::UINT => Self::Integers,
                _ => Self::Floats,
            }),
            _ => None,
        }
    }

    /// Whether a tensor that lies as it should can stay where it is.
    pub(super) fn keeps_bytes(self) -> bool {
        matches!(self, Self::Keep | Self::Split)
    }

    /// Why the elements themselves have to be copied, if they have to.
    pub(super) fn reason(self, dtype: DLDataType, is_packed: bool) -> Option<CopyReason> {
        let cast = |to| Some(CopyReason::Cast { from: dtype, to });
        match self {
            Self::Keep | Self::Split => is_packed.then_some(CopyReason::Packed(dtype)),
            Self::Bits => Some(CopyReason::Bits),
            Self::Floats => cast(DLDataType::FLOAT32),
            Self::Integers => cast(DLDataType::scalar(dtype.code, 8)),
        }
    }

    /// Bytes that `size` elements take afterwards.
    pub(super) fn nbytes(self, dtype: DLDataType, size: usize) -> usize {
        match self {
            Self::Keep | Self::Split => size.saturating_mul(dtype.item_bits(true) / 8),
            Self::Bits => size.div_ceil(8),
            Self::Floats => size.saturating_mul(4),
            Self::Integers => size,
        }
    }

    /// The elements in row-major order.
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

/// The dtype of the integers that Arrow stores under another name, or of a numeric type.
fn physical(element: &DataType) -> Option<DLDataType> {
    match element {
        // Its codes are not enough to make one.
        DataType::Dictionary(..) => None,
        _ => DLDataType::from_arrow(element).or_else(|| dtype::physical(element)),
    }
}

/// Whether each value of a type is the bytes of one element: a complex number can be its two parts.
fn stores(element: &DataType, dtype: DLDataType) -> bool {
    let width = match element {
        DataType::FixedSizeList(part, 2) => {
            return choose::natural(dtype) == Ok((part.data_type().clone(), true));
        }
        DataType::FixedSizeBinary(size) => usize::try_from(*size).ok(),
        other => other.primitive_width(),
    };
    width == Some(dtype.item_bits(true) / 8)
}

/// The alignment that Arrow needs for values of a type.
pub(super) fn alignment(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeList(item, _) => alignment(item.data_type()),
        other => other.primitive_width().unwrap_or(1),
    }
}
