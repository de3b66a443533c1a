//! The options of an import.

use arrow_schema::FieldRef;

use crate::CopyPolicy;

/// How to import. Options added later will default to the present behaviour.
///
/// ```
/// use arrow_dlpack::{ImportOptions, Representation};
/// let options = ImportOptions::default().with_representation(Representation::Opaque);
/// # assert_ne!(options, ImportOptions::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Whether the memory may or must be copied.
    pub copy: CopyPolicy,
    /// The Arrow type that holds the tensor.
    pub representation: Representation,
}

impl ImportOptions {
    /// Sets [`copy`](Self::copy): a policy, or the array API's `Option<bool>`.
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<CopyPolicy>) -> Self {
        self.copy = copy.into();
        self
    }

    /// Sets [`representation`](Self::representation).
    #[must_use]
    pub fn with_representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }
}

/// The Arrow type that holds a tensor, where there are several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// The usual type, as listed at [`from_dlpack`](super::from_dlpack).
    #[default]
    Canonical,
    /// Booleans as `arrow.bool8`: one byte each, zero-copy, also for bytes other than 0 and 1.
    Bool8,
    /// Dtypes without an Arrow type as `arrow.opaque`, with the same bytes: bfloat16, floats of 8, 6 and 4 bits,
    /// integers of under 8 bits, complex numbers.
    Opaque,
    /// As [`Self::Canonical`], except for rows whose axes lie in another order in memory than row-major, such as those of
    /// channels-last images: the type of their `arrow.fixed_shape_tensor` gets the `permutation` that lets the memory be
    /// shared. Many readers ignore a permutation, or read it wrongly.
    Permuted,
    /// Axes after the first as nested fixed-size lists, row-major, rather than as `arrow.fixed_shape_tensor`.
    FixedSizeList,
    /// Exactly this field, with its name, nullability and metadata. Its storage must hold the bytes of the tensor, or
    /// the elements as [`Self::Canonical`] converts them.
    Field(FieldRef),
}
