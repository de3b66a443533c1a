//! Errors for data without a tensor form, with advice.

use arrow_array::Array;
use arrow_schema::{DataType, Field};

use crate::arrow_types::{is_ragged, item_of};
use crate::extension::Extension;
use crate::{Error, Hint, dtype, ffi::DLDataType};

/// The error for a type that cannot be exported.
pub(super) fn unsupported(data_type: &DataType) -> Error {
    Error::UnsupportedType { data_type: data_type.clone(), hint: hint(data_type) }
}

/// The error for a type that cannot be exported, and not because of this dtype, if one is asked for.
pub(super) fn unsupported_as(data_type: &DataType, dtype: Option<DLDataType>) -> Error {
    match unsupported(data_type) {
        Error::UnsupportedType { data_type, hint: Hint::Decimal } if dtype.is_some() => {
            Error::UnsupportedType { data_type, hint: Hint::DecimalAsFloats }
        }
        error => error,
    }
}

/// The error for `ragged` of a type that has no offsets.
pub(super) fn not_ragged(field: &Field) -> Error {
    let hint = match field.data_type() {
        DataType::Dictionary(_, values) if is_ragged(values) => Hint::DictionaryValues,
        DataType::Null => Hint::Text("cast it to the lists, texts or binaries that you mean"),
        other => rows_of_one_length(other),
    };
    let extension = field.extension_type_name().map(str::to_owned);
    Error::NotRagged { extension, data_type: field.data_type().clone(), hint }
}

/// What makes a tensor of rows of this type, which all have one length.
fn rows_of_one_length(data_type: &DataType) -> Hint {
    match data_type {
        DataType::FixedSizeList(item, _) if is_ragged(item.data_type()) => Hint::FlattenToRagged,
        DataType::FixedSizeList(item, _) => match Extension::of(item) {
            Ok(None) => item_hint(rows_of_one_length(item.data_type())),
            Ok(Some(extension)) if extension.is_of_tensors() => Hint::Tensor,
            _ => Hint::PhysicalTensor,
        },
        DataType::Decimal128(..) | DataType::Decimal256(..) => Hint::FloatTensor,
        DataType::Boolean | DataType::FixedSizeBinary(_) => Hint::Tensor,
        number if DLDataType::from_arrow(number).is_some() => Hint::Tensor,
        number if dtype::physical(number).is_some() => Hint::PhysicalTensor,
        other => hint(other),
    }
}

/// The error for the values in ragged rows.
pub(super) fn in_rows(error: Error) -> Error {
    match error {
        Error::Nulls { data_type, null_count, len } => {
            Error::NullsInRows { data_type, null_count, len }
        }
        // What the values of a dictionary are says nothing of how to take them out of rows.
        Error::NotJustNumbers { data_type, dtype }
            if matches!(data_type, DataType::Dictionary(..)) =>
        {
            Error::UnsupportedType { data_type, hint: Hint::Physical(dtype) }
        }
        Error::UnsupportedType { data_type, hint } => {
            Error::UnsupportedType { data_type, hint: item_hint(hint) }
        }
        Error::UnsupportedExtension { name, data_type, .. } => {
            Error::UnsupportedExtension { name, data_type, in_rows: true }
        }
        error => error,
    }
}

/// The hint for a type whose values are the items of rows.
fn item_hint(hint: Hint) -> Hint {
    match hint {
        Hint::Fields => Hint::FlattenStructs,
        Hint::AllNull => {
            Hint::Text("the rows' items are all null: cast it to lists of the type you mean")
        }
        Hint::Decimal => Hint::Float64,
        Hint::Lists => Hint::FlattenLists,
        Hint::Texts | Hint::Binaries => Hint::FlattenTexts,
        Hint::Entries | Hint::Interval => Hint::FlattenExtensions,
        other => other,
    }
}

/// The error for rows that are tensors of different shapes.
pub(super) fn variable_shape(data_type: &DataType) -> Error {
    Error::UnsupportedType { data_type: data_type.clone(), hint: Hint::RowByRow }
}

/// The error for an extension type without a tensor form.
pub(super) fn extension(field: &Field) -> Error {
    let name = field.extension_type_name().unwrap_or_default().to_owned();
    Error::UnsupportedExtension { name, data_type: field.data_type().clone(), in_rows: false }
}

/// The error for nulls under the default policy.
pub(crate) fn nulls(array: &dyn Array, null_count: usize) -> Error {
    Error::Nulls { data_type: array.data_type().clone(), null_count, len: array.len() }
}

/// Whether a type has a tensor form, is ragged, or gets one from an option, once it is no extension type.
pub(crate) fn has_form(data_type: &DataType) -> bool {
    let has_none = matches!(
        data_type,
        DataType::Struct(_)
            | DataType::Map(..)
            | DataType::Union(..)
            | DataType::Null
            | DataType::Interval(_)
            | DataType::RunEndEncoded(..)
    );
    let item = item_of(data_type).map(|item| item.data_type());
    !has_none && item.is_none_or(|item| has_form(item) && !is_ragged(item))
}

/// What to do with data of a type that has no tensor form. The match names every type, so that a type that Arrow adds does
/// not compile until it has advice.
pub(crate) fn hint(data_type: &DataType) -> Hint {
    match data_type {
        DataType::Interval(_) => Hint::Interval,
        DataType::Decimal128(..) | DataType::Decimal256(..) => Hint::Decimal,
        DataType::RunEndEncoded(..) => Hint::Runs,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Hint::Texts,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Hint::Binaries,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
            if !has_form(data_type) =>
        {
            item_hint(hint(item.data_type()))
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => Hint::Lists,
        DataType::Struct(_) => Hint::Fields,
        DataType::Map(..) => Hint::Entries,
        DataType::Union(..) => Hint::Text("convert its children one by one"),
        DataType::Null => Hint::AllNull,
        DataType::Boolean
        | DataType::Timestamp(..)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Dictionary(..)
        | DataType::FixedSizeBinary(_)
        | DataType::FixedSizeList(..)
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64 => {
            Hint::Text("an array of this type is not stored as arrow-rs stores it")
        }
    }
}
