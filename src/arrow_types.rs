//! Facts about Arrow types: which ones arrays can have, the types of children, and which rows may differ in length.
//! arrow-rs panics when it makes an array of a type that no array can have, or, for decimals of an invalid precision,
//! takes it.

#[cfg(feature = "pyo3")]
use std::mem::discriminant;

use arrow_schema::{
    ArrowError, DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION,
    DECIMAL256_MAX_PRECISION, DataType, FieldRef, TimeUnit, UnionMode,
};
#[cfg(feature = "pyo3")]
use arrow_schema::{Field, Fields};

/// Most levels of nested types: as many as NumPy and PyTorch allow axes. The limit is needed because types are
/// followed recursively.
pub(crate) const MAX_DEPTH: usize = 64;

/// Why there are no arrays of a type, or none that this crate follows. The module of errors imports this one, so that it is
/// an error of the crate only there.
pub(crate) enum TypeFault {
    /// No array can have this type, which is the one that was checked or one within it.
    Impossible(DataType),
    /// It has more than [`MAX_DEPTH`] levels.
    TooDeep,
}

/// Checks that arrays of a type can exist.
pub(crate) fn check(data_type: &DataType) -> Result<(), TypeFault> {
    within(data_type, MAX_DEPTH)
}

fn within(data_type: &DataType, levels: usize) -> Result<(), TypeFault> {
    let Some(levels) = levels.checked_sub(1) else { return Err(TypeFault::TooDeep) };
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
        return Err(TypeFault::Impossible(data_type.clone()));
    }
    match data_type {
        DataType::Dictionary(_, values) => within(values, levels),
        number if number.is_primitive() => Ok(()),
        other => child_types(other).into_iter().try_for_each(|(child, _)| within(child, levels)),
    }
}

/// The types of the children, and how many elements of each belong to one of the parent's (0 where
/// offsets say). The values of a dictionary are no child.
pub(crate) fn child_types(data_type: &DataType) -> Vec<(&DataType, usize)> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => vec![(field.data_type(), 0)],
        DataType::FixedSizeList(field, size) => {
            vec![(field.data_type(), usize::try_from(*size).unwrap_or(0))]
        }
        DataType::Struct(fields) => fields.iter().map(|field| (field.data_type(), 1)).collect(),
        DataType::Union(fields, mode) => {
            let needed = usize::from(*mode == UnionMode::Sparse);
            fields.iter().map(|(_, field)| (field.data_type(), needed)).collect()
        }
        DataType::RunEndEncoded(ends, values) => {
            vec![(ends.data_type(), 0), (values.data_type(), 0)]
        }
        _ => Vec::new(),
    }
}

/// The items of lists of any kind.
pub(crate) fn item_of(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

/// Whether two types are the same but for metadata, the names of lists' items and of what is in maps, and nullability, on
/// which `are_alike` may insist.
#[cfg(feature = "pyo3")]
pub(crate) fn is_renamed(
    one: &DataType,
    other: &DataType,
    are_alike: fn(&Field, &Field) -> bool,
) -> bool {
    let same = |one: &Field, other: &Field| {
        are_alike(one, other) && is_renamed(one.data_type(), other.data_type(), are_alike)
    };
    let all_same = |one: &Fields, other: &Fields| {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
    };
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.iter().map(|one| one.name()).eq(other.iter().map(|other| other.name()))
                && all_same(one, other)
        }
        (DataType::Map(one, sorted), DataType::Map(other, are_sorted)) => {
            let entries = (one.data_type(), other.data_type());
            let (DataType::Struct(fields), DataType::Struct(others)) = entries else {
                return false;
            };
            sorted == are_sorted && are_alike(one, other) && all_same(fields, others)
        }
        (DataType::FixedSizeList(_, one), DataType::FixedSizeList(_, other)) if one != other => {
            false
        }
        _ => match item_of(one).zip(item_of(other)) {
            Some((item, of_other)) => {
                discriminant(one) == discriminant(other) && same(item, of_other)
            }
            None => one == other,
        },
    }
}

/// Whether rows of the type are lists that may differ in length.
pub(crate) fn is_variable_list(data_type: &DataType) -> bool {
    data_type.is_list() && !matches!(data_type, DataType::FixedSizeList(..))
}

/// Whether rows of the type differ in length: lists, texts and binaries.
pub(crate) fn is_ragged(data_type: &DataType) -> bool {
    let is_fixed = matches!(data_type, DataType::FixedSizeBinary(_));
    is_variable_list(data_type) || data_type.is_string() || (data_type.is_binary() && !is_fixed)
}

/// The number of values that keys of a type can number.
pub(crate) fn most(keys: &DataType) -> usize {
    let bits = 8 * keys.primitive_width().unwrap_or(8) - usize::from(keys.is_signed_integer());
    let most = u32::try_from(bits).ok().and_then(|bits| 1_usize.checked_shl(bits));
    most.unwrap_or(usize::MAX)
}

/// Panics: arrow-rs refused an array that this crate has checked, which is a bug here.
pub(crate) fn impossible<T>(error: ArrowError) -> T {
    unreachable!("prepared for Arrow, which says: {error}")
}
