//! Errors for data without a tensor form, with advice.

use arrow_array::Array;
use arrow_schema::{DataType, Field};

use crate::arrow_types::is_ragged;
use crate::{Error, dtype, ffi::DLDataType};

/// The error for a type that cannot be exported.
pub(super) fn unsupported(data_type: &DataType) -> Error {
    Error::UnsupportedType { data_type: data_type.clone(), way_out: way_out(data_type) }
}

/// The error for `ragged` of a type that has no offsets.
pub(super) fn not_ragged(data_type: &DataType) -> Error {
    let way_out = match data_type {
        DataType::Dictionary(_, values) if is_ragged(values) => "cast it to its values first",
        DataType::Decimal128(..) | DataType::Decimal256(..) => FLAT_DECIMALS,
        DataType::FixedSizeList(item, _) if is_ragged(item.data_type()) => {
            "flatten the lists first, whose items alone are ragged"
        }
        DataType::Boolean | DataType::FixedSizeList(..) | DataType::FixedSizeBinary(_) => FLAT,
        DataType::Null => "cast it to the lists, texts or binaries that you mean",
        number if DLDataType::from_arrow(number).is_some() => FLAT,
        number if dtype::physical(number).is_some() => FLAT_INTEGERS,
        other => way_out(other),
    };
    Error::NotRagged { data_type: data_type.clone(), way_out }
}

/// Advice for types whose rows have one length, and what else their tensors need.
pub(crate) const FLAT: &str = "use export::tensor";
pub(crate) const FLAT_INTEGERS: &str =
    "use export::tensor, with ExportOptions::with_physical for its integers";
pub(crate) const FLAT_DECIMALS: &str = "use export::tensor, with dtype float64";

/// The error for the values in ragged rows.
pub(super) fn in_rows(error: Error) -> Error {
    match error {
        Error::Nulls { data_type, null_count, len } => {
            Error::NullsInRows { data_type, null_count, len }
        }
        Error::UnsupportedType { data_type, way_out } if way_out == self::way_out(&data_type) => {
            let way_out = match &data_type {
                DataType::Struct(_) => {
                    "the rows' items are structs: flatten one level first, for a table of them"
                }
                DataType::Null => {
                    "the rows' items are all null: cast it to lists of the type you mean"
                }
                DataType::Decimal128(..) | DataType::Decimal256(..) => "ask for dtype float64",
                other if !is_ragged(other) => way_out,
                other if other.is_list() => {
                    "the rows' items are lists themselves: flatten one level first"
                }
                _ => {
                    "as items of lists such values have none: flatten the lists first, and use \
                     export::ragged of that"
                }
            };
            Error::UnsupportedType { data_type, way_out }
        }
        error => error,
    }
}

/// The error for rows that are tensors of different shapes.
pub(super) fn variable_shape(data_type: &DataType) -> Error {
    let way_out = "its rows differ in shape: take the tensors one by one, with Source::Row";
    Error::UnsupportedType { data_type: data_type.clone(), way_out }
}

/// The error for an extension type without a tensor form.
pub(super) fn extension(field: &Field) -> Error {
    let name = field.extension_type_name().unwrap_or_default().to_owned();
    Error::UnsupportedExtension { name, data_type: field.data_type().clone() }
}

/// The error for nulls under the default policy.
pub(crate) fn nulls(array: &dyn Array, null_count: usize) -> Error {
    Error::Nulls { data_type: array.data_type().clone(), null_count, len: array.len() }
}

/// The match names every type, so that a type that Arrow adds does not compile until it has advice.
pub(crate) fn way_out(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Interval(_) => "split it into numeric columns first",
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            "ask for dtype float64, if that is exact enough, or cast it to a decimal of up to 64 bits"
        }
        DataType::RunEndEncoded(..) => "decode it first",
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => {
            "its rows differ in length: use export::ragged, for all values and where each row begins"
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => {
            "its rows may differ in length: use export::ragged, or cast it to a fixed-size list if they do not"
        }
        DataType::Struct(_) => "export its fields one by one, or all of them as a RecordBatch",
        DataType::Map(..) | DataType::Union(..) => "convert its children one by one",
        DataType::Null => {
            "cast it to the type you mean, or ask for a dtype and say what its nulls become by ExportOptions::with_nulls"
        }
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
        | DataType::Float64 => "an array of this type is not stored as arrow-rs stores it",
    }
}
