//! Which field a tensor becomes.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};

use super::conversion::{Conversion, natural};
use super::form::Form;
use super::options::Representation;
use crate::error::Error;
use crate::extension::{Dimensions, Extension};
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::layout;
use crate::possible;

/// The field that was asked for, or else a nameless and nullable one.
pub(super) fn field(form: &Form<'_>, representation: &Representation) -> Result<FieldRef, Error> {
    if let Representation::Field(field) = representation {
        return Ok(Arc::clone(field));
    }
    let (item, is_pair) = item(form.dtype, representation)?;
    let mut extents = form.row_shape().to_vec();
    extents.extend(is_pair.then_some(2));

    let flat = form.shape.len() < 2 || *representation == Representation::FixedSizeList;
    if flat && extents.len() >= possible::MAX_DEPTH {
        return Err(possible::TOO_DEEP);
    }
    let field = if flat {
        extents.iter().rev().try_fold(item, |item, &extent| list(item, &[extent]))?
    } else {
        let dimensions = Dimensions { permutation: permutation(form, &item, is_pair), names: None };
        let storage = list(item, &extents)?;
        // The metadata has the extents as they are in memory.
        let mut shape = extents.clone();
        for (extent, place) in extents.iter().zip(dimensions.order(extents.len())) {
            shape[place] = *extent;
        }
        Extension::FixedShapeTensor { shape, dimensions }.annotate(storage)
    };
    Ok(Arc::new(field))
}

/// What one element becomes, nameless for now, and whether it is two of them.
fn item(dtype: DLDataType, representation: &Representation) -> Result<(Field, bool), Error> {
    let (data_type, is_pair) = natural(dtype)?;
    let natural = |data_type| Field::new("", data_type, true);
    let opaque = |storage| (Extension::opaque(dtype).annotate(natural(storage)), false);
    let refused = |representation| Err(Error::NoRepresentation { dtype, representation });
    match representation {
        Representation::Bool8 if dtype.code == DLDataTypeCode::BOOL => {
            Ok((Extension::Bool8.annotate(natural(DataType::Int8)), false))
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
        _ => Ok((natural(data_type), is_pair)),
    }
}

/// A list, nameless for now, of as many items as an array of these extents has.
fn list(item: Field, extents: &[i64]) -> Result<Field, Error> {
    let size = layout::element_count(extents).ok().and_then(|size| i32::try_from(size).ok());
    let size = size.ok_or_else(|| Error::RowTooLarge { shape: extents.to_vec() })?;
    let item = item.with_name(Field::LIST_FIELD_DEFAULT_NAME);
    Ok(Field::new("", DataType::FixedSizeList(Arc::new(item), size), true))
}

/// The permutation that lets the axes of a row stay where they are, unless they are in order, or not
/// one behind the other in any order, or the elements have to become others anyway.
fn permutation(form: &Form<'_>, item: &Field, is_pair: bool) -> Option<Vec<usize>> {
    let extension = Extension::of(item).ok()?;
    let conversion = Conversion::between(form.dtype, item.data_type(), extension.as_ref())?;
    if form.is_packed || !conversion.keeps_bytes() {
        return None;
    }
    let axes = layout::dense_order(form.shape, &form.strides)?;
    // Places of axes, rather than axes in places; without the axis of the rows, which is the first.
    let mut places = vec![0; axes.len() - 1];
    for (place, axis) in axes.into_iter().skip(1).enumerate() {
        places[axis - 1] = place;
    }
    places.extend(is_pair.then_some(places.len()));
    let in_order = places.iter().copied().eq(0..places.len());
    (!in_order).then_some(places)
}
