//! What is asked for.

use arrow_schema::FieldRef;

use crate::copy::CopyPolicy;

/// How to import. Later options will have defaults that change nothing.
///
/// ```
/// use arrow_dlpack::{Import, Representation};
/// let options = Import { representation: Representation::Opaque, ..Default::default() };
/// # assert_ne!(options, Import::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// Whether the array may or must have memory of its own.
    pub copy: CopyPolicy,
    /// Which of the Arrow types that can hold the tensor it becomes.
    pub representation: Representation,
}

/// Which of the Arrow types that can hold a tensor it becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// The one that Arrow's users expect, as [`from_dlpack`](super::from_dlpack) lists them.
    #[default]
    Natural,
    /// Booleans as `arrow.bool8`: a byte each, zero-copy, whatever the bytes are.
    Bool8,
    /// What Arrow has no type for as `arrow.opaque`, bit for bit: bfloat16, the floats of 8, 6 and 4
    /// bits, integers of under 8 bits, complex numbers.
    Opaque,
    /// Axes after the first as nested lists, row-major, rather than as `arrow.fixed_shape_tensor`.
    FixedSizeList,
    /// This very field, name, nullability and metadata included. Its storage must hold the bytes that
    /// the tensor has; nothing is converted that [`Self::Natural`] would not convert.
    Field(FieldRef),
}
