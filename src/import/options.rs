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
    ///
    /// ```
    /// use arrow_dlpack::{CopyPolicy, Error, ImportOptions, ManagedTensor, from_dlpack};
    ///
    /// let options = ImportOptions::default().with_copy(CopyPolicy::Never);
    /// assert!(from_dlpack(ManagedTensor::from(vec![1, 2]), &options).is_ok());
    /// let refused = from_dlpack(ManagedTensor::from(vec![true, false]), &options);
    /// assert!(matches!(refused, Err(Error::CopyForbidden { .. })));
    /// ```
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<CopyPolicy>) -> Self {
        self.copy = copy.into();
        self
    }

    /// Sets [`representation`](Self::representation).
    ///
    /// ```
    /// use arrow_dlpack::{ImportOptions, ManagedTensor, Representation, from_dlpack};
    /// use arrow_schema::DataType;
    ///
    /// let matrix = ManagedTensor::from_vec(vec![1, 2, 3, 4], &[2, 2])?;
    /// let options = ImportOptions::default().with_representation(Representation::FixedSizeList);
    /// let (_, field) = from_dlpack(matrix, &options)?;
    /// assert!(matches!(field.data_type(), DataType::FixedSizeList(_, 2)));
    /// assert_eq!(field.extension_type_name(), None);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
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
    /// the elements as [`Self::Canonical`] converts them. Rows of one length may be `List` or `LargeList`, which share the
    /// values as fixed-size lists do, for readers that have no such type.
    Field(FieldRef),
}
