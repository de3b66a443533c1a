//! One row of an array as a tensor.

use arrow_array::{Array, cast::AsArray, types::Int32Type};
use arrow_schema::Field;

use super::refusal;
use super::{cells::CellArray, lists::Rows, options::ReadAs};
use crate::arrow_types::is_ragged;
use crate::extension::{Dimensions, Extension};
use crate::{Error, layout};

/// A row, whose first axis, of extent 1, is the axis of rows.
pub(super) fn read_row(
    array: &dyn Array,
    field: &Field,
    index: usize,
    read_as: ReadAs,
) -> Result<CellArray, Error> {
    let len = array.len();
    if index >= len {
        return Err(Error::NoSuchRow { index, len });
    }
    let row = array.slice(index, 1);
    let dimensions = match Extension::of(field)? {
        Some(Extension::VariableShapeTensor { dimensions, .. }) => Some(dimensions),
        None | Some(Extension::Other(_)) if is_ragged(field.data_type()) => None,
        _ => return CellArray::new(&row, field, read_as),
    };
    if row.is_null(0) {
        // A null row has no shape to fill.
        return Err(refusal::nulls(&row, 1));
    }
    match dimensions {
        Some(dimensions) => variable_shape(&row, &dimensions, read_as),
        None => {
            let values = Rows::read(&row, field, read_as)?.only(read_as)?;
            let extent = i64::try_from(values.rows).map_err(|_| Error::Overflow("length"))?;
            Ok(values.in_one_row(&[extent], &[0]))
        }
    }
}

/// The row of an `arrow.variable_shape_tensor`, whose storage type `Extension::of` has checked.
fn variable_shape(
    row: &dyn Array,
    dimensions: &Dimensions,
    read_as: ReadAs,
) -> Result<CellArray, Error> {
    let row = row.as_struct();
    let (Some(data), Some(shape)) = (row.column_by_name("data"), row.column_by_name("shape"))
    else {
        return Err(refusal::unsupported(row.data_type()));
    };
    for child in [data, shape] {
        if child.is_null(0) {
            return Err(refusal::nulls(child, 1));
        }
    }
    let extents = shape.as_fixed_size_list().value(0);
    if extents.null_count() > 0 {
        return Err(refusal::nulls(&extents, extents.null_count()));
    }
    let item: Vec<i64> =
        extents.as_primitive::<Int32Type>().values().iter().map(|&extent| extent.into()).collect();
    let list = Field::new("data", data.data_type().clone(), true);
    let values = Rows::read(data, &list, read_as)?.only(read_as)?;
    if layout::element_count(&item)? != values.rows {
        return Err(Error::MalformedExtension {
            name: "arrow.variable_shape_tensor".to_owned(),
            problem: format!("a row of shape {item:?} has {} values", values.rows),
        });
    }
    let order = dimensions.order(item.len());
    Ok(values.in_one_row(&item, &order))
}
