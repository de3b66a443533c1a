//! What has no tensor form, and the way out of it.

use arrow_schema::DataType;

use crate::error::Error;

/// The error for a type that no family here converts.
pub(super) fn unsupported(data_type: &DataType) -> Error {
    Error::UnsupportedType { data_type: data_type.clone(), way_out: way_out(data_type) }
}

/// Every type is named, so that one that Arrow adds asks for an answer.
fn way_out(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "cast it to uint8 first, since Arrow stores it as bits",
        DataType::Timestamp(..)
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Duration(_) => "cast it to int64 first, and keep its unit in mind",
        DataType::Date32 | DataType::Time32(_) => {
            "cast it to int32 first, and keep its unit in mind"
        }
        DataType::Interval(_) => "split it into numeric columns first",
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "cast it to float64 first, if that is exact enough",
        DataType::Dictionary(..) => {
            "convert its indices (pyarrow: array.indices), or decode it if its values are numbers"
        }
        DataType::RunEndEncoded(..) => "decode it first",
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => "encode it as numbers first, such as dictionary indices",
        DataType::FixedSizeBinary(_) => {
            "convert its bytes as a uint8 array, and reshape the tensor"
        }
        DataType::FixedSizeList(..) => "flatten it first, and reshape the tensor",
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => "its rows differ in length: convert its flattened values",
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => {
            "convert its children one by one"
        }
        DataType::Null => "cast it to the type you mean, and fill it",
        DataType::Int8
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
