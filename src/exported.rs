//! What an export returns, and [`import::columns`](crate::import::columns) takes.

use arrow_array::ArrayRef;

use crate::ManagedTensor;

/// The result of [`Prepared::run`](crate::export::Prepared::run), and a column of
/// [`export::columns`](crate::export::columns).
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The values.
    pub values: ManagedTensor,
    /// The validity of the values, as booleans of the same shape; with [`NullPolicy::Masked`](crate::NullPolicy::Masked)
    /// only.
    pub mask: Option<ManagedTensor>,
    /// The values of the dictionary, if `values` are its codes.
    pub dictionary: Option<ArrayRef>,
}

impl From<ManagedTensor> for Exported {
    /// Values without nulls.
    fn from(values: ManagedTensor) -> Self {
        Self { values, mask: None, dictionary: None }
    }
}
