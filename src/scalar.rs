//! One value of any type.

use std::fmt;

/// A value without a type of its own, such as what a null becomes: the type is the tensor's.
///
/// ```
/// use arrow_dlpack::Scalar;
/// assert_eq!(Scalar::from(7u64), Scalar::Int(7));
/// assert_eq!(Scalar::from(0.5).to_string(), "0.5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// True or false; 1 or 0 among numbers.
    Bool(bool),
    /// An integer: any that 64 bits can say, with a sign or without.
    Int(i128),
    /// Any other number.
    Float(f64),
}

macro_rules! from {
    ($variant:ident: $($type:ty)*) => {$(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
from!(Bool: bool);
from!(Int: i8 i16 i32 i64 u8 u16 u32 u64);
from!(Float: f32 f64);

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => fmt::Debug::fmt(value, f),
        }
    }
}
