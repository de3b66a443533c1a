//! Checks what arrow-rs takes for granted about schemas, and makes the fields that they describe.
#![expect(unsafe_code, reason = "looks into foreign structures")]

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};

use super::ffi::{Checked, children, fenced};
use super::structs::{ArrowSchema, Structure};
use crate::possible::{self, MAX_DEPTH};

/// The most fields of a schema, at all levels: far more than tables have. Children may point to the same
/// structure repeatedly, and then a few structures describe more fields than can be counted.
pub(in crate::python) const MAX_FIELDS: usize = 1 << 20;

/// The field that a schema structure describes.
///
/// # Safety
///
/// `schema` points to a structure that meets S1.
pub(in crate::python) unsafe fn field_from(schema: *const ArrowSchema) -> Checked<FieldRef> {
    // SAFETY: the caller's promise.
    let field = unsafe { field_at(schema, MAX_DEPTH, &mut { MAX_FIELDS }) }?;
    possible::check(field.data_type()).map_err(|error| error.to_string())?;
    Ok(field)
}

/// The same. Fields of numbers and structs, which most tables consist of, are built here, where their texts
/// have just been read: for thousands of columns arrow-rs's conversion takes twice the time.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1.
unsafe fn field_at(
    schema: *const ArrowSchema,
    depth: usize,
    fields: &mut usize,
) -> Checked<FieldRef> {
    // SAFETY: the caller's promise.
    let Node { schema, format, name, depth } = unsafe { check_node(schema, depth, fields) }?;
    let data_type = match (format, schema.dictionary.is_null()) {
        ("+s", true) => {
            let fields = children(schema.n_children, schema.children)?
                // SAFETY: S1 holds for children.
                .map(|child| unsafe { field_at(child, depth, fields) })
                .collect::<Checked<Vec<_>>>()?;
            Some(DataType::Struct(fields.into()))
        }
        (_, true) if schema.n_children == 0 => number(format),
        _ => None,
    };
    let Some(data_type) = data_type else {
        // SAFETY: the caller's promise; it has been checked itself.
        unsafe { check_below(schema, depth, fields) }?;
        return fenced(|| Field::try_from(schema.theirs()).map(Arc::new));
    };
    let field = Field::new(name, data_type, schema.theirs().nullable());
    Ok(Arc::new(match schema.metadata.is_null() {
        true => field,
        false => field.with_metadata(fenced(|| schema.theirs().metadata())?),
    }))
}

/// The type of numbers of this format.
pub(in crate::python) fn number(format: &str) -> Option<DataType> {
    Some(match format {
        "c" => DataType::Int8,
        "C" => DataType::UInt8,
        "s" => DataType::Int16,
        "S" => DataType::UInt16,
        "i" => DataType::Int32,
        "I" => DataType::UInt32,
        "l" => DataType::Int64,
        "L" => DataType::UInt64,
        "e" => DataType::Float16,
        "f" => DataType::Float32,
        "g" => DataType::Float64,
        _ => return None,
    })
}

/// A schema structure that has been checked, without its children.
pub(in crate::python) struct Node<'a> {
    pub(in crate::python) schema: &'a ArrowSchema,
    pub(in crate::python) format: &'a str,
    name: &'a str,
    /// Levels that there may be below it.
    pub(in crate::python) depth: usize,
}

/// Checks everything that arrow-rs assumes about a schema, without its children.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1, for as long as the result is used.
pub(in crate::python) unsafe fn check_node<'a>(
    schema: *const ArrowSchema,
    depth: usize,
    fields: &mut usize,
) -> Checked<Node<'a>> {
    // SAFETY: the caller's promise.
    let schema = unsafe { schema_at(schema) }?;
    let text = |text: *const c_char| {
        // SAFETY: S1, texts end with a NUL.
        if text.is_null() { Some("") } else { unsafe { CStr::from_ptr(text) }.to_str().ok() }
    };
    let (Some(format), Some(name), false) =
        (text(schema.format), text(schema.name), schema.format.is_null())
    else {
        return Err("the Arrow schema's format or name is not a text".to_owned());
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the Arrow type is nested more than {MAX_DEPTH} levels deep"));
    };
    // Checked before the pointers to the children are followed.
    let below = usize::try_from(schema.n_children).unwrap_or(0);
    match fields.checked_sub(1) {
        Some(left) if below <= left => *fields = left,
        _ => return Err(format!("the Arrow type has more than {MAX_FIELDS} fields")),
    }
    if let Some(own) = format.strip_prefix("_pl") {
        let cast = match name {
            "" => "x.cast(polars.Int64)".to_owned(),
            _ => format!("frame.cast({{\"{name}\": polars.Int64}})"),
        };
        return Err(format!(
            "column \"{name}\" is of a type of polars' own, {own}, which Arrow has not: cast it, as {cast} does, \
             or leave it out"
        ));
    }
    if format.starts_with("w:-") || format.starts_with("+w:-") {
        return Err("the Arrow schema has a negative size".to_owned());
    }
    let needed = match format {
        "+l" | "+L" | "+vl" | "+vL" | "+m" => 1,
        "+r" => 2,
        _ if format.starts_with("+w") => 1,
        _ => 0,
    };
    if schema.n_children < needed {
        return Err(format!("the Arrow schema has {} children", schema.n_children));
    }
    // SAFETY: S1.
    unsafe { check_metadata(schema.metadata) }?;
    Ok(Node { schema, format, name, depth })
}

/// The same for the children of a schema, at all levels.
///
/// # Safety
///
/// The schema meets S1.
unsafe fn check_below(schema: &ArrowSchema, depth: usize, fields: &mut usize) -> Checked {
    let dictionary = Some(schema.dictionary.cast_const()).filter(|below| !below.is_null());
    for below in children(schema.n_children, schema.children)?.chain(dictionary) {
        // SAFETY: S1 holds for children and for the dictionary.
        unsafe {
            let Node { schema, depth, .. } = check_node(below, depth, fields)?;
            check_below(schema, depth, fields)?;
        }
    }
    Ok(())
}

/// A schema structure that is not NULL or released.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1, for as long as the result is used.
pub(in crate::python) unsafe fn schema_at<'a>(
    schema: *const ArrowSchema,
) -> Checked<&'a ArrowSchema> {
    if schema.is_null() || !schema.is_aligned() {
        return Err("the Arrow schema has a child that is not there".to_owned());
    }
    // SAFETY: the caller's promise.
    let schema = unsafe { &*schema };
    match schema.is_released() {
        true => Err("the Arrow schema has been released already".to_owned()),
        false => Ok(schema),
    }
}

/// Checks metadata entry by entry: arrow-rs allocates for as many as it claims before it reads them.
///
/// # Safety
///
/// `metadata` is NULL, or what S1 says of a schema's.
pub(in crate::python) unsafe fn check_metadata(metadata: *const c_char) -> Checked {
    if metadata.is_null() {
        return Ok(());
    }
    let mut at = metadata.cast::<i32>();
    // SAFETY: S1, the number of entries comes first, not aligned; an entry is two texts.
    let entries = unsafe { at.read_unaligned() };
    for _ in 0..2 * i64::from(entries) {
        // SAFETY: S1, behind what came before there is a length, and behind that a text of it.
        let length = unsafe {
            at = at.add(1);
            at.read_unaligned()
        };
        let Ok(bytes) = usize::try_from(length) else {
            return Err(format!("the Arrow schema's metadata has a text of length {length}"));
        };
        // SAFETY: as above.
        at = unsafe { at.byte_add(bytes) };
    }
    Ok(())
}
