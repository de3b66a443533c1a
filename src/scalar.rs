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

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Scalar {
    fn from(value: u64) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}
