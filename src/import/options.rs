//! The options of an import.

use arrow_schema::FieldRef;

use crate::copy::CopyPolicy;

/// How to import. Later options will have defaults that change nothing.
///
/// ```
/// use arrow_dlpack::{ImportOptions, Representation};
/// let options = ImportOptions::default().with_representation(Representation::Opaque);
/// # assert_ne!(options, ImportOptions::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Whether the array may or must have memory of its own.
    pub copy: CopyPolicy,
    /// Which of the Arrow types that can hold the tensor it becomes.
    pub representation: Representation,
}

impl ImportOptions {
    /// These options with another [`copy`](Self::copy): a policy, or the array API's `Option<bool>`.
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<CopyPolicy>) -> Self {
        self.copy = copy.into();
        self
    }

    /// These options with another [`representation`](Self::representation).
    #[must_use]
    pub fn with_representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }
}

/// Which of the Arrow types that can hold a tensor it becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// The one that Arrow's users expect, as [`from_dlpack`](super::from_dlpack) lists them.
    #[default]
    Canonical,
    /// Booleans as `arrow.bool8`: a byte each, zero-copy, whatever the bytes are.
    Bool8,
    /// What Arrow has no type for as `arrow.opaque`, bit for bit: bfloat16, the floats of 8, 6 and 4
    /// bits, integers of under 8 bits, complex numbers.
    Opaque,
    /// Axes after the first as nested lists, row-major, rather than as `arrow.fixed_shape_tensor`.
    FixedSizeList,
    /// This very field, name, nullability and metadata included. Its storage must hold the bytes that
    /// the tensor has; nothing is converted that [`Self::Canonical`] would not convert.
    Field(FieldRef),
}
