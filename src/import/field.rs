//! The field that a tensor becomes and the layout of its storage: the metadata of a tensor, a field as axes of elements, and
//! which dtypes can be stored in which element types.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::lists;
use super::options::Representation;
use crate::alloc::Fresh;
use crate::arrow_types::{self, TypeFault};
use crate::extension::{Dimensions, Extension};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{CopyReason, Error, Hint, ManagedTensor, dtype, kernels, layout};

/// A field, and the layout of its storage.
pub(super) struct Choice {
    pub(super) field: FieldRef,
    /// The field in which the elements are stored before it has offsets, if the field is lists of any length.
    pub(super) stored: Option<FieldRef>,
    pub(super) field_layout: FieldLayout,
    /// The conversion of the tensor's elements to the stored ones, if there is one.
    pub(super) conversion: Option<Conversion>,
    /// Whether the rows would be shared if the field had another permutation, which was not asked for.
    pub(super) is_permuted: bool,
}

/// The requested field, or else a nameless nullable one.
pub(super) fn choose(
    metadata: &Metadata<'_>,
    representation: &Representation,
) -> Result<Choice, Error> {
    if let Representation::Field(field) = representation {
        let is_possible = match arrow_types::check(field.data_type()) {
            Err(TypeFault::Impossible(_)) => false,
            checked => checked.map(|()| true)?,
        };
        let stored = lists::of_fixed_size(field, metadata.rows()?, &mut metadata.stored_extents())?;
        let field_layout = FieldLayout::of(stored.as_ref().unwrap_or(field))?;
        let conversion = Conversion::between(metadata.dtype, &field_layout).filter(|_| is_possible);
        let field = Arc::clone(field);
        return Ok(Choice { field, stored, field_layout, conversion, is_permuted: false });
    }
    let (item, extension, is_pair) = item(metadata.dtype, representation)?;
    let element = match item.data_type() {
        // A list without an extension type is a pair: its items are the elements.
        DataType::FixedSizeList(part, _) if extension.is_none() => part.data_type().clone(),
        other => other.clone(),
    };
    let mut field_layout =
        FieldLayout { extents: Vec::new(), order: Vec::new(), element, extension };
    let conversion = Conversion::between(metadata.dtype, &field_layout);
    let mut extents = metadata.row_shape().to_vec();
    extents.extend(is_pair.then_some(2));

    let mut is_permuted = false;
    let flat = metadata.shape.len() < 2 || *representation == Representation::FixedSizeList;
    if flat && extents.len() >= arrow_types::MAX_DEPTH {
        return Err(TypeFault::TooDeep.into());
    }
    let field = if flat {
        field_layout.order = (0..extents.len()).collect();
        field_layout.extents.clone_from(&extents);
        extents.iter().rev().try_fold(item, |item, &extent| list(item, &[extent]))?
    } else {
        let mut permutation = permutation(metadata, conversion, is_pair);
        if *representation != Representation::Permuted {
            // Many readers ignore a permutation or read it wrongly, so a type has one only on request.
            is_permuted = permutation.take().is_some();
        }
        let dimensions = Dimensions { permutation, names: None };
        let list = list(item, &extents)?;
        // `arrow.fixed_shape_tensor` stores the extents in memory order.
        field_layout.order = dimensions.order(extents.len());
        field_layout.extents.clone_from(&extents);
        for (extent, &place) in extents.iter().zip(&field_layout.order) {
            field_layout.extents[place] = *extent;
        }
        let shape = field_layout.extents.clone();
        Extension::FixedShapeTensor { shape, dimensions }.annotate(list)
    };
    Ok(Choice { field: Arc::new(field), stored: None, field_layout, conversion, is_permuted })
}

/// The nameless field of one element; its extension type; and whether it stores two values for each element.
fn item(
    dtype: DLDataType,
    representation: &Representation,
) -> Result<(Field, Option<Extension>, bool), Error> {
    let (data_type, conversion) = natural(dtype)?;
    let is_pair = conversion == Conversion::Split;
    let natural = |data_type| Field::new("", data_type, true);
    let named = |extension: Extension, storage| {
        (extension.annotate(natural(storage)), Some(extension), false)
    };
    let opaque = |storage| named(Extension::opaque(dtype), storage);
    let refused = |representation| Err(Error::NoRepresentation { dtype, representation });
    match representation {
        Representation::Bool8 if dtype.code == DLDataTypeCode::BOOL => {
            Ok(named(Extension::Bool8, DataType::Int8))
        }
        Representation::Bool8 => refused("arrow.bool8, which is for bool"),
        Representation::Opaque if is_pair => {
            list(natural(data_type), &[2]).map(|pair| opaque(pair.data_type().clone()))
        }
        Representation::Opaque if dtype.code == DLDataTypeCode::BFLOAT => {
            Ok(opaque(DataType::UInt16))
        }
        Representation::Opaque
            if dtype.to_arrow().is_some() || dtype.code == DLDataTypeCode::BOOL =>
        {
            refused("arrow.opaque, which is for what Arrow has no type for")
        }
        Representation::Opaque => Ok(opaque(DataType::UInt8)),
        _ => Ok((natural(data_type), None, is_pair)),
    }
}

/// A nameless list field whose size is the product of these extents.
fn list(item: Field, extents: &[i64]) -> Result<Field, Error> {
    let size = layout::element_count(extents).ok().and_then(|size| i32::try_from(size).ok());
    let size = size.ok_or_else(|| Error::RowTooLarge { shape: extents.to_vec() })?;
    let item = item.with_name(Field::LIST_FIELD_DEFAULT_NAME);
    Ok(Field::new("", DataType::FixedSizeList(Arc::new(item), size), true))
}

/// The permutation that lets the memory of a row stay as it is; `None` if the axes are in order, if the row is not
/// contiguous in any order, or if the elements are converted anyway.
fn permutation(
    metadata: &Metadata<'_>,
    conversion: Option<Conversion>,
    is_pair: bool,
) -> Option<Vec<usize>> {
    if metadata.is_packed || !conversion?.keeps_bytes() {
        return None;
    }
    let axes = layout::dense_order(metadata.shape, &metadata.strides)?;
    // The inverse of `axes`, without the axis of rows, which is the first.
    let mut places = vec![0; axes.len() - 1];
    for (place, axis) in axes.into_iter().skip(1).enumerate() {
        places[axis - 1] = place;
    }
    places.extend(is_pair.then_some(places.len()));
    let in_order = places.iter().copied().eq(0..places.len());
    (!in_order).then_some(places)
}

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
        _ => return Err(Error::UnsupportedDtype { dtype, hint: Hint::Text(way_out(dtype)) }),
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
        let stored = |to| Some(CopyReason::Stored { from: dtype, to });
        // Elements that share bytes are copied whatever the type.
        let cast = |to| match is_packed {
            true => Some(CopyReason::Cast { from: dtype, to }),
            false => stored(Some(to)),
        };
        match self {
            Self::Keep | Self::Split => is_packed.then_some(CopyReason::Packed(dtype)),
            Self::Bits => stored(None),
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

/// The metadata of a tensor, or of a part of one, which needs no access to its memory.
pub(super) struct Metadata<'a> {
    pub(super) dtype: DLDataType,
    /// Whether several elements share a byte.
    pub(super) is_packed: bool,
    pub(super) shape: &'a [i64],
    pub(super) strides: Cow<'a, [i64]>,
}

impl<'a> Metadata<'a> {
    pub(super) fn of(tensor: &'a ManagedTensor) -> Self {
        Self {
            dtype: tensor.dtype(),
            is_packed: tensor.itemsize().is_none(),
            shape: tensor.shape(),
            strides: tensor.strides(),
        }
    }

    /// Extents of one value of the array: all but the first.
    pub(super) fn row_shape(&self) -> &'a [i64] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// Extents of one value as Arrow stores it: a complex element is two numbers.
    fn stored_extents(&self) -> impl Iterator<Item = i64> + use<'a> {
        let pair = (self.dtype.code == DLDataTypeCode::COMPLEX).then_some(2);
        self.row_shape().iter().copied().chain(pair)
    }

    /// Number of rows: 1 for a tensor without axes.
    pub(super) fn rows(&self) -> Result<usize, Error> {
        let rows = self.shape.first().copied().unwrap_or(1);
        usize::try_from(rows).map_err(|_| Error::Overflow("number of rows"))
    }

    pub(super) fn cannot_become(&self, field: &FieldRef) -> Error {
        let (dtype, shape, field) = (self.dtype, self.shape.to_vec(), Arc::clone(field));
        Error::CannotBecome { dtype, shape, field }
    }
}

/// The storage of one value of a field.
pub(super) struct FieldLayout {
    /// Extents, from the outermost axis in memory to the innermost.
    pub(super) extents: Vec<i64>,
    /// Logical axis `i` is axis `order[i]` in memory.
    pub(super) order: Vec<usize>,
    /// The type of the elements.
    pub(super) element: DataType,
    /// The extension type of the elements, if they have one.
    pub(super) extension: Option<Extension>,
}

impl FieldLayout {
    /// Descends to the elements. Extension types that do not concern tensors are read as their storage.
    ///
    /// # Errors
    ///
    /// `MalformedExtension`.
    pub(super) fn of(mut field: &Field) -> Result<Self, Error> {
        let (mut extents, mut order) = (Vec::new(), Vec::new());
        loop {
            let extension = Extension::of(field)?;
            let (element, outer) = (field.data_type(), extents.len());
            let is_element = extension.as_ref().is_some_and(|extension| {
                *extension == Extension::Bool8 || extension.dtype().is_some()
            });
            match (&extension, element) {
                (Some(Extension::FixedShapeTensor { shape, dimensions }), _) => {
                    order.extend(dimensions.order(shape.len()).iter().map(|axis| outer + axis));
                    extents.extend_from_slice(shape);
                }
                (_, DataType::FixedSizeList(_, size) | DataType::FixedSizeBinary(size))
                    if !is_element =>
                {
                    order.push(outer);
                    extents.push(i64::from(*size));
                }
                _ => return Ok(Self { extents, order, element: element.clone(), extension }),
            }
            match element {
                DataType::FixedSizeList(item, _) => field = item,
                // Its elements are bytes.
                _ => {
                    let (element, extension) = (DataType::UInt8, None);
                    return Ok(Self { extents, order, element, extension });
                }
            }
        }
    }
}

/// The alignment that arrow-rs needs for values of a type.
pub(super) fn alignment(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeList(item, _) => alignment(item.data_type()),
        other => other.primitive_width().unwrap_or(1),
    }
}
