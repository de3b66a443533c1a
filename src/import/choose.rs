//! Chooses the field that a tensor becomes, and the layout of its storage.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};

use super::conversion::{Conversion, natural};
use super::{field_layout::FieldLayout, form::Form, options::Representation};
use crate::extension::{Dimensions, Extension};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{Error, layout, possible};

/// A field, and the layout of its storage.
pub(super) struct Choice {
    pub(super) field: FieldRef,
    pub(super) field_layout: FieldLayout,
    /// The conversion of the tensor's elements to the stored ones, if there is one.
    pub(super) conversion: Option<Conversion>,
    /// Whether the rows would be shared if the field had another permutation, which nobody asked for.
    pub(super) is_permuted: bool,
}

/// The requested field, or else a nameless nullable one.
pub(super) fn choose(form: &Form<'_>, representation: &Representation) -> Result<Choice, Error> {
    if let Representation::Field(field) = representation {
        let is_possible = match possible::check(field.data_type()) {
            Err(Error::NoSuchType { .. }) => false,
            checked => checked.map(|()| true)?,
        };
        let (field_layout, field) = (FieldLayout::of(field)?, Arc::clone(field));
        let conversion = Conversion::between(form.dtype, &field_layout).filter(|_| is_possible);
        return Ok(Choice { field, field_layout, conversion, is_permuted: false });
    }
    let (item, extension, is_pair) = item(form.dtype, representation)?;
    let element = match item.data_type() {
        // A list without an extension type is a pair: its items are the elements.
        DataType::FixedSizeList(part, _) if extension.is_none() => part.data_type().clone(),
        other => other.clone(),
    };
    let mut field_layout =
        FieldLayout { extents: Vec::new(), order: Vec::new(), element, extension };
    let conversion = Conversion::between(form.dtype, &field_layout);
    let mut extents = form.row_shape().to_vec();
    extents.extend(is_pair.then_some(2));

    let mut is_permuted = false;
    let flat = form.shape.len() < 2 || *representation == Representation::FixedSizeList;
    if flat && extents.len() >= possible::MAX_DEPTH {
        return Err(possible::TOO_DEEP);
    }
    let field = if flat {
        field_layout.order = (0..extents.len()).collect();
        field_layout.extents.clone_from(&extents);
        extents.iter().rev().try_fold(item, |item, &extent| list(item, &[extent]))?
    } else {
        let mut permutation = permutation(form, conversion, is_pair);
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
    Ok(Choice { field: Arc::new(field), field_layout, conversion, is_permuted })
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
    form: &Form<'_>,
    conversion: Option<Conversion>,
    is_pair: bool,
) -> Option<Vec<usize>> {
    if form.is_packed || !conversion?.keeps_bytes() {
        return None;
    }
    let axes = layout::dense_order(form.shape, &form.strides)?;
    // The inverse of `axes`, without the axis of rows, which is the first.
    let mut places = vec![0; axes.len() - 1];
    for (place, axis) in axes.into_iter().skip(1).enumerate() {
        places[axis - 1] = place;
    }
    places.extend(is_pair.then_some(places.len()));
    let in_order = places.iter().copied().eq(0..places.len());
    (!in_order).then_some(places)
}
