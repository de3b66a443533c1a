//! Numbers and booleans that are converted to the dtype of a tensor, and those that store values of a type.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};
use half::{bf16, f16};

/// A value that is converted to the dtype of a tensor, such as one that replaces nulls.
///
/// ```
/// use arrow_dlpack::Number;
/// assert_eq!(Number::from(7u64), Number::Int(7));
/// assert_eq!(Number::from(0.5).to_string(), "0.5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// A boolean; among numbers 1 or 0.
    Bool(bool),
    /// An integer within the range of i64 or u64.
    Int(i128),
    /// Any other number.
    Float(f64),
}

macro_rules! from {
    ($variant:ident: $($type:ty)*) => {$(
        impl From<$type> for Number {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
from!(Bool: bool);
from!(Int: i8 i16 i32 i64 u8 u16 u32 u64);
from!(Float: f16 bf16 f32 f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => {
                #[expect(
                    clippy::as_conversions,
                    reason = "rounds, and is compared with what it rounds"
                )]
                let single = *value as f32;
                // A float32 by its own digits, 0.1 and not 0.10000000149011612, but 2^63 by those of an integer.
                let is_integer = value.fract() == 0.0 && value.abs() < 2_f64.powi(65);
                match f64::from(single) == *value && !is_integer {
                    true => fmt::Debug::fmt(&single, f),
                    false => fmt::Debug::fmt(value, f),
                }
            }
        }
    }
}

/// The integers that store values of a type with fewer values than its integers.
pub(crate) enum StoredNumbers {
    /// The first to the last.
    Within(i64, i64),
    /// Milliseconds that are whole days.
    Days,
}

impl StoredNumbers {
    pub(crate) const MILLISECONDS_OF_A_DAY: i64 = 24 * 60 * 60 * 1000;

    /// `None` where each integer is a value.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        const DAY: i64 = StoredNumbers::MILLISECONDS_OF_A_DAY;
        Some(match data_type {
            DataType::Decimal32(digits, _) | DataType::Decimal64(digits, _) => {
                let most = 10_i64.checked_pow((*digits).into())? - 1;
                Self::Within(-most, most)
            }
            DataType::Time32(TimeUnit::Second) => Self::Within(0, DAY / 1000 - 1),
            DataType::Time32(_) => Self::Within(0, DAY - 1),
            DataType::Time64(TimeUnit::Microsecond) => Self::Within(0, DAY * 1000 - 1),
            DataType::Time64(_) => Self::Within(0, DAY * 1_000_000 - 1),
            DataType::Date64 => Self::Days,
            _ => return None,
        })
    }
}
