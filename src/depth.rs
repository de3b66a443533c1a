//! How deep types may be nested. Whoever looks into one goes down a call a level, here and in arrow-rs, and
//! drops it so: what nobody bounds overflows the stack.

use arrow_schema::{DataType, FieldRef};

use crate::error::Error;

/// Levels of nesting in a type, the innermost included; arrow C++ takes as many.
pub(crate) const MAX_DEPTH: usize = 64;

/// # Errors
///
/// `TooDeep`.
pub(crate) fn check(data_type: &DataType) -> Result<(), Error> {
    if exceeds(data_type, MAX_DEPTH) { Err(Error::TooDeep { max: MAX_DEPTH }) } else { Ok(()) }
}

/// Whether a type has more than so many levels.
fn exceeds(data_type: &DataType, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    let deep = |field: &FieldRef| exceeds(field.data_type(), levels);
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => deep(item),
        DataType::Struct(fields) => fields.iter().any(deep),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| deep(field)),
        DataType::RunEndEncoded(ends, values) => deep(ends) || deep(values),
        DataType::Dictionary(_, values) => exceeds(values, levels),
        _ => false,
    }
}
