//! Selects the requested columns of a table. The others are not read, so that their types cause no error.
//!
//! The structure of a table is read as one with fewer children. For an array this is a new structure, which owns
//! the whole one and releases it.
#![expect(unsafe_code, reason = "leaves children of foreign structures out")]

use std::{borrow::Cow, ffi::CStr, mem::ManuallyDrop, ptr};

use arrow_schema::{FieldRef, extension::EXTENSION_TYPE_NAME_KEY};
use pyo3::{exceptions::PyValueError, prelude::*};

use super::ffi::{Checked, children, fenced};
use super::schema::{MAX_FIELDS, check_metadata, field_from, schema_at};
use super::structs::{ArrowArray, ArrowSchema};
use crate::names;

/// The field of a schema, for a table only with the columns of these names, if any are given; and which of the
/// children these are, if they are not all.
///
/// # Safety
///
/// `schema` points to a structure that meets S1.
pub(in crate::python) unsafe fn field_of(
    schema: *const ArrowSchema,
    wanted: Option<&[String]>,
) -> PyResult<(FieldRef, Option<Pick>)> {
    if let Some(wanted) = wanted {
        // SAFETY: the caller's promise.
        if let Some((field, pick)) = unsafe { picked(schema, wanted) }? {
            return Ok((field, Some(pick)));
        }
    }
    // SAFETY: the caller's promise.
    let field = unsafe { field_from(schema) };
    Ok((field.map_err(PyValueError::new_err)?, None))
}

/// The same; `None` if it is no table, or all columns are requested.
///
/// # Safety
///
/// That of [`field_of`].
unsafe fn picked(
    schema: *const ArrowSchema,
    wanted: &[String],
) -> PyResult<Option<(FieldRef, Pick)>> {
    // SAFETY: the caller's promise.
    let columns = unsafe { columns_of(schema) }.map_err(PyValueError::new_err)?;
    let Some(columns) = columns else { return Ok(None) };
    let names: Vec<_> = columns.iter().map(|column| name_of(column)).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut positions = names::positions(&names, &wanted)?;
    positions.sort_unstable();
    positions.dedup();
    if positions.len() == columns.len() {
        return Ok(None);
    }
    let column = |&at: &usize| ptr::from_ref(columns[at]).cast_mut();
    let mut kept: Vec<_> = positions.iter().map(column).collect();
    // SAFETY: the caller's promise. Of the two only the whole one is ever released.
    let mut part = ManuallyDrop::new(unsafe { schema.read() });
    part.n_children = count(kept.len()).map_err(PyValueError::new_err)?;
    part.children = kept.as_mut_ptr();
    // SAFETY: S1 holds of fewer children too, and there are pointers to them until this returns.
    let field = unsafe { field_from(&raw const *part) }.map_err(PyValueError::new_err)?;
    Ok(Some((field, Pick { positions, among: columns.len() })))
}

/// The columns of a table's schema; `None` if it is no table, or has more columns than are checked.
///
/// # Safety
///
/// `schema` points to a structure that meets S1, for as long as the result is used.
unsafe fn columns_of<'a>(schema: *const ArrowSchema) -> Checked<Option<Vec<&'a ArrowSchema>>> {
    // SAFETY: the caller's promise.
    let schema = unsafe { schema_at(schema) }?;
    // SAFETY: S1, texts end with a NUL.
    let is_struct = !schema.format.is_null() && unsafe { CStr::from_ptr(schema.format) } == c"+s";
    let is_too_wide = usize::try_from(schema.n_children).is_ok_and(|count| count >= MAX_FIELDS);
    if !is_struct || !schema.dictionary.is_null() || is_too_wide {
        return Ok(None);
    }
    // SAFETY: S1.
    unsafe { check_metadata(schema.metadata) }?;
    // An extension type that is stored as a struct is a column, and no table.
    if fenced(|| schema.theirs().metadata())?.contains_key(EXTENSION_TYPE_NAME_KEY) {
        return Ok(None);
    }
    let columns = children(schema.n_children, schema.children)?;
    // SAFETY: S1 holds for children.
    columns.map(|column| unsafe { schema_at(column) }).collect::<Checked<_>>().map(Some)
}

/// A column's name. A name that is not valid text cannot be asked for.
fn name_of(column: &ArrowSchema) -> Cow<'_, str> {
    match column.name.is_null() {
        true => Cow::Borrowed(""),
        // SAFETY: S1, texts end with a NUL.
        false => unsafe { CStr::from_ptr(column.name) }.to_string_lossy(),
    }
}

fn count(children: usize) -> Checked<i64> {
    i64::try_from(children).map_err(|_| format!("{children} columns are too many"))
}

/// A selection of the children of a struct, in their order.
pub(in crate::python) struct Pick {
    positions: Vec<usize>,
    /// How many children there are in all.
    among: usize,
}

impl Pick {
    /// An array structure that has these children and no others. It meets S1 if `whole` does, which it owns.
    pub(in crate::python) fn of(&self, whole: ArrowArray) -> Checked<ArrowArray> {
        if usize::try_from(whole.n_children) != Ok(self.among) {
            return Err(format!(
                "the Arrow array of a table is malformed: {} children where {} are expected",
                whole.n_children, self.among
            ));
        }
        let all: Vec<_> = children(whole.n_children, whole.children)?.collect();
        let mut kept: Vec<_> = self.positions.iter().map(|&at| all[at].cast_mut()).collect();
        let (n_children, children) = (count(kept.len())?, kept.as_mut_ptr());
        // SAFETY: of the two only the whole one is released as its producer wants it: nothing fails from here on.
        let mut part = unsafe { ptr::from_ref(&whole).read() };
        (part.n_children, part.children) = (n_children, children);
        part.release = Some(release);
        part.private_data = Box::into_raw(Box::new(Whole { array: whole, kept })).cast();
        Ok(part)
    }
}

/// What a part of a structure stands for.
#[expect(dead_code, reason = "owns what the part points to")]
struct Whole {
    array: ArrowArray,
    kept: Vec<*mut ArrowArray>,
}

/// Releases the whole structure. Its producer releases the children with it, these and all others.
unsafe extern "C" fn release(part: *mut ArrowArray) {
    // SAFETY: called once, by the interface, with a structure that `Pick::of` has made.
    unsafe {
        drop(Box::from_raw((*part).private_data.cast::<Whole>()));
        (*part).release = None;
    }
}

/// The selected children of an array.
pub(in crate::python) fn wanted_of(pick: Option<&Pick>, array: ArrowArray) -> Checked<ArrowArray> {
    match pick {
        Some(pick) => pick.of(array),
        None => Ok(array),
    }
}
