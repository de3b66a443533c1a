//! Checks what arrow-rs takes for granted about schemas, and makes the fields that they describe.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, ffi::Flags};

use super::structs::{self, ArrowSchema, Checked, fenced};
use crate::Error;
use crate::arrow_types::{self, MAX_DEPTH, child_types, item_of};

/// The most fields of a schema, at all levels: far more than tables have. Children may point to the same
/// structure repeatedly, and then a few structures describe more fields than can be counted.
pub(in crate::python) const MAX_FIELDS: usize = 1 << 20;

/// The field that a schema structure describes.
pub(super) fn field_from(schema: &ArrowSchema) -> Checked<FieldRef> {
    let field = field_at(schema, None, MAX_DEPTH, &mut { MAX_FIELDS })?;
    arrow_types::check(field.data_type()).map_err(|fault| Error::from(fault).to_string())?;
    Ok(field)
}

/// The same of a struct with these children of its and no others.
pub(super) fn struct_of(schema: &ArrowSchema, children: &[&ArrowSchema]) -> Checked<FieldRef> {
    let mut fields = MAX_FIELDS;
    let Node { name, depth, .. } = check_node(schema, MAX_DEPTH, &mut fields)?;
    let children = children.iter().map(|child| field_at(child, None, depth, &mut fields));
    let field = field_of(schema, name, DataType::Struct(children.collect::<Checked<_>>()?))?;
    arrow_types::check(field.data_type()).map_err(|fault| Error::from(fault).to_string())?;
    Ok(field)
}

/// The field. Those of numbers and structs, which most tables consist of, are built here, where their texts
/// have just been read: for thousands of columns arrow-rs's conversion takes twice the time.
///
/// `column`: the column of a table that it is within, whose name errors tell.
fn field_at(
    schema: &ArrowSchema,
    column: Option<&str>,
    depth: usize,
    fields: &mut usize,
) -> Checked<FieldRef> {
    let is_outermost = depth == MAX_DEPTH;
    let Node { format, name, depth } = check_node(schema, depth, fields)?;
    let column = column.unwrap_or(name);
    refuse_polars(format, column)?;
    let data_type = match (format, schema.dictionary().is_none()) {
        ("+s", true) => {
            // The fields of the outermost struct are columns.
            let within = (!is_outermost).then_some(column);
            let children = schema.children()?.map(|child| field_at(child?, within, depth, fields));
            Some(DataType::Struct(children.collect::<Checked<_>>()?))
        }
        (_, true) if schema.n_children() == 0 => number(format),
        _ => None,
    };
    match data_type {
        Some(data_type) => field_of(schema, name, data_type),
        None => {
            check_below(schema, column, depth, fields)?;
            fenced(|| Field::try_from(schema.as_arrow_rs()).map(Arc::new))
        }
    }
}

fn field_of(schema: &ArrowSchema, name: &str, data_type: DataType) -> Checked<FieldRef> {
    let field = Field::new(name, data_type, schema.as_arrow_rs().nullable());
    Ok(Arc::new(match schema.has_metadata() {
        true => field.with_metadata(metadata_of(schema, name)?),
        false => field,
    }))
}

/// The metadata of the schema or of a field. arrow-rs takes texts only.
pub(super) fn metadata_of(schema: &ArrowSchema, name: &str) -> Checked<HashMap<String, String>> {
    fenced(|| schema.as_arrow_rs().metadata()).map_err(|why| {
        let whose = if name.is_empty() { "a schema".to_owned() } else { format!("field {name:?}") };
        format!(
            "the metadata of {whose} is no text: leave it out, in pyarrow by x.replace_schema_metadata() and a field's \
             with_metadata(None) ({why})"
        )
    })
}

/// The type of numbers of this format.
pub(super) fn number(format: &str) -> Option<DataType> {
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

/// What a schema structure says of itself, without its children.
pub(super) struct Node<'a> {
    pub(super) format: &'a str,
    name: &'a str,
    /// Levels that there may be below it.
    pub(super) depth: usize,
}

/// Checks everything that arrow-rs assumes about a schema, without its children.
pub(super) fn check_node<'a>(
    schema: &'a ArrowSchema,
    depth: usize,
    fields: &mut usize,
) -> Checked<Node<'a>> {
    let utf8 = |text: &'a CStr| text.to_str().ok();
    let (Some(format), Some(name)) =
        (schema.format().and_then(utf8), schema.name().map_or(Some(""), utf8))
    else {
        return Err("the Arrow schema's format or name is not a text".to_owned());
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the Arrow type is nested more than {MAX_DEPTH} levels deep"));
    };
    // Checked before the pointers to the children are followed.
    let below = usize::try_from(schema.n_children()).unwrap_or(0);
    match fields.checked_sub(1) {
        Some(left) if below <= left => *fields = left,
        _ => return Err(format!("the Arrow type has more than {MAX_FIELDS} fields")),
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
    if schema.n_children() < needed {
        return Err(format!("the Arrow schema has {} children", schema.n_children()));
    }
    schema.check_metadata()?;
    Ok(Node { format, name, depth })
}

/// The same at all levels, of a schema that another library reads: pyarrow ends the process where counts lie.
pub(super) fn check_counts(schema: &ArrowSchema) -> Checked {
    fn check_at(schema: &ArrowSchema, depth: usize, fields: &mut usize) -> Checked {
        if depth == 0 {
            return Ok(()); // pyarrow, which counts levels, has its own words for too many
        }
        let Node { depth, .. } = check_node(schema, depth, fields)?;
        let mut below = schema.children()?.chain(schema.dictionary());
        below.try_for_each(|below| check_at(below?, depth, fields))
    }
    check_at(schema, MAX_DEPTH, &mut { MAX_FIELDS })
}

/// The same for the children of a column's schema, at all levels.
fn check_below(schema: &ArrowSchema, column: &str, depth: usize, fields: &mut usize) -> Checked {
    for below in schema.children()?.chain(schema.dictionary()) {
        let below = below?;
        let Node { format, depth, .. } = check_node(below, depth, fields)?;
        refuse_polars(format, column)?;
        check_below(below, column, depth, fields)?;
    }
    Ok(())
}

/// Refuses a type of polars' that Arrow has not, in a column.
fn refuse_polars(format: &str, column: &str) -> Checked {
    let Some(own) = format.strip_prefix("_pl") else { return Ok(()) };
    let what = match column {
        "" => "a column without a name".to_owned(),
        name => format!("column {name:?}"),
    };
    Err(format!(
        "{what} is of a type of polars' own, {own}, which Arrow has not: cast it to \
         polars.Int64, or polars.Float64 if that is too narrow (lists of it to polars.List of these), or leave it out"
    ))
}

/// The structure of a field, with the flag of maps whose keys are sorted at any level, which arrow-rs reads and does not write.
pub(in crate::python) fn schema_of(field: &Field) -> Result<FFI_ArrowSchema, ArrowError> {
    use DataType::{Dictionary, Map, RunEndEncoded, Struct, Union};
    let (plain, data_type) = (FFI_ArrowSchema::try_from(field)?, field.data_type());
    if !has_sorted_keys(data_type) {
        return Ok(plain);
    }
    let children: Vec<&FieldRef> = match data_type {
        Struct(fields) => fields.iter().collect(),
        Union(fields, _) => fields.iter().map(|(_, field)| field).collect(),
        Map(entries, _) => vec![entries],
        RunEndEncoded(ends, values) => vec![ends, values],
        other => item_of(other).into_iter().collect(),
    };
    let children = children.into_iter().map(|child| schema_of(child)).collect::<Result<_, _>>()?;
    let values = match data_type {
        Dictionary(_, values) => Some(schema_of(&Field::new("", DataType::clone(values), true))?),
        _ => None,
    };
    let is_sorted = matches!(data_type, Map(_, true));
    let own = if is_sorted { Flags::MAP_KEYS_SORTED } else { Flags::empty() };
    let flags = plain.flags().unwrap_or(Flags::empty()).union(own).bits();
    structs::schema(plain.format(), field.name(), flags, field.metadata().clone(), children, values)
}

fn has_sorted_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(_, true) => true,
        DataType::Dictionary(_, values) => has_sorted_keys(values),
        other => child_types(other).into_iter().any(|(child, _)| has_sorted_keys(child)),
    }
}
