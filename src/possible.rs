//! Checks for types that no array can have. arrow-rs panics when it makes an array of such a type, or, for decimals of a
//! precision that is none, takes it.

use arrow_schema::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, TimeUnit,
};

use crate::error::Error;

/// Most levels of nested types: as many as NumPy and PyTorch allow axes. The limit is needed because types are
/// followed recursively.
pub(crate) const MAX_DEPTH: usize = 64;

/// The error for more levels.
pub(crate) const TOO_DEEP: Error = Error::TooDeep { most: MAX_DEPTH };

/// Checks that arrays of a type can exist.
///
/// # Errors
///
/// `NoSuchType`, `TooDeep`.
pub(crate) fn check(data_type: &DataType) -> Result<(), Error> {
    within(data_type, MAX_DEPTH)
}

fn within(data_type: &DataType, levels: usize) -> Result<(), Error> {
    let Some(levels) = levels.checked_sub(1) else { return Err(TOO_DEEP) };
    let possible = match data_type {
        DataType::Time32(unit) => matches!(unit, TimeUnit::Second | TimeUnit::Millisecond),
        DataType::Time64(unit) => matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond),
        DataType::Decimal32(precision, _) => (1..=DECIMAL32_MAX_PRECISION).contains(precision),
        DataType::Decimal64(precision, _) => (1..=DECIMAL64_MAX_PRECISION).contains(precision),
        DataType::Decimal128(precision, _) => (1..=DECIMAL128_MAX_PRECISION).contains(precision),
        DataType::Decimal256(precision, _) => (1..=DECIMAL256_MAX_PRECISION).contains(precision),
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) => *size >= 0,
        DataType::Dictionary(key, _) => key.is_dictionary_key_type(),
        DataType::RunEndEncoded(ends, _) => ends.data_type().is_run_ends_type(),
        DataType::Union(children, _) => !children.is_empty(),
        DataType::Map(entries, _) => {
            matches!(entries.data_type(), DataType::Struct(pair) if pair.len() == 2)
        }
        _ => true,
    };
    if !possible {
        return Err(Error::NoSuchType { data_type: data_type.clone() });
    }
    match data_type {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _)
        | DataType::RunEndEncoded(_, child) => within(child.data_type(), levels),
        DataType::Dictionary(_, values) => within(values, levels),
        DataType::Struct(children) => {
            children.iter().try_for_each(|child| within(child.data_type(), levels))
        }
        DataType::Union(children, _) => {
            children.iter().try_for_each(|(_, child)| within(child.data_type(), levels))
        }
        _ => Ok(()),
    }
}
