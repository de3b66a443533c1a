//! Selects the requested columns of a table. The others are not read, so that their types cause no error.
//!
//! The structure of a table is read as one with fewer children. For an array this is a new structure, which owns
//! the whole one and releases it.

use std::borrow::Cow;

use arrow_schema::{FieldRef, extension::EXTENSION_TYPE_NAME_KEY};
use pyo3::{exceptions::PyValueError, prelude::*};

use super::schema::{MAX_FIELDS, field_from, metadata_of, struct_of};
use super::structs::{ArrowArray, ArrowSchema, Checked};
use crate::columns;

/// The field of a schema, for a table only with the columns of these names, if any are given; and which of the
/// children these are, if they are not all.
pub(super) fn field_of(
    schema: &ArrowSchema,
    wanted: Option<&[String]>,
) -> PyResult<(FieldRef, Option<Pick>)> {
    let some = wanted.map(|wanted| picked(schema, wanted)).transpose()?.flatten();
    if let Some((field, pick)) = some {
        return Ok((field, Some(pick)));
    }
    Ok((field_from(schema).map_err(PyValueError::new_err)?, None))
}

/// The same; `None` if it is no table, or all columns are requested.
fn picked(schema: &ArrowSchema, wanted: &[String]) -> PyResult<Option<(FieldRef, Pick)>> {
    let columns = columns_of(schema).map_err(PyValueError::new_err)?;
    let Some(columns) = columns else { return Ok(None) };
    let names: Vec<_> = columns.iter().map(|column| name_of(column)).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut positions = columns::positions(&names, &wanted)?;
    positions.sort_unstable();
    positions.dedup();
    if positions.len() == columns.len() {
        return Ok(None);
    }
    let kept: Vec<_> = positions.iter().map(|&at| columns[at]).collect();
    let field = struct_of(schema, &kept).map_err(PyValueError::new_err)?;
    Ok(Some((field, Pick { positions, among: columns.len() })))
}

/// The columns of a table's schema; `None` if it is no table, or has more columns than are checked.
fn columns_of(schema: &ArrowSchema) -> Checked<Option<Vec<&ArrowSchema>>> {
    let is_struct = schema.format() == Some(c"+s");
    let is_too_wide = usize::try_from(schema.n_children()).is_ok_and(|count| count >= MAX_FIELDS);
    if !is_struct || schema.dictionary().is_some() || is_too_wide {
        return Ok(None);
    }
    schema.check_metadata()?;
    // An extension type that is stored as a struct is a column, and no table.
    if metadata_of(schema, "")?.contains_key(EXTENSION_TYPE_NAME_KEY) {
        return Ok(None);
    }
    schema.children()?.collect::<Checked<_>>().map(Some)
}

/// A column's name. A name that is not valid text cannot be asked for.
fn name_of(column: &ArrowSchema) -> Cow<'_, str> {
    column.name().map_or(Cow::Borrowed(""), |name| name.to_string_lossy())
}

/// A selection of the children of a struct, in their order.
pub(super) struct Pick {
    positions: Vec<usize>,
    /// How many children there are in all.
    among: usize,
}

/// The array with the selected children.
pub(super) fn wanted_of(pick: Option<&Pick>, array: ArrowArray) -> Checked<ArrowArray> {
    let Some(Pick { positions, among }) = pick else { return Ok(array) };
    if usize::try_from(array.n_children()) != Ok(*among) {
        return Err(format!(
            "the Arrow array of a table is malformed: {} children where {among} are expected",
            array.n_children()
        ));
    }
    array.into_part(positions)
}
