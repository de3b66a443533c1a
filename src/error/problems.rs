//! What is wrong with a mask or with offsets, and what keeps memory from being handed over or written to.

use arrow_schema::FieldRef;

use super::words::Described;
use crate::ffi::DLDataType;

/// What is wrong with a mask; the words of [`Error::BadMask`](super::Error::BadMask).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskProblem {
    /// It is not bool.
    #[error("a mask is bool, true where a value is valid, not {0}")]
    Dtype(
        /// Its element type.
        DLDataType,
    ),
    /// It is neither for the rows nor for the elements.
    #[error(
        "a mask of shape {mask:?} fits neither the rows nor the elements of a tensor of shape {shape:?}"
    )]
    Shape {
        /// The mask's extents.
        mask: Vec<i64>,
        /// The tensor's extents.
        shape: Vec<i64>,
    },
    /// The elements of a row are no values of their own.
    #[error(
        "in {} no element can be null, only a row: pass a mask of one value for each row",
        Described(field)
    )]
    NoItems {
        /// What the tensor becomes.
        field: FieldRef,
    },
    /// The field that was asked for rules nulls out.
    #[error("the field {name:?} is not nullable, and the mask hides {hidden} of {len} values")]
    NotNullable {
        /// The field's name.
        name: String,
        /// Values that the mask hides.
        hidden: usize,
        /// All of them.
        len: usize,
    },
}

/// What is wrong with offsets; the words of [`Error::BadOffsets`](super::Error::BadOffsets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetsProblem {
    /// They are no integers of 8 to 64 bits.
    #[error("they are {0}, not integers")]
    Dtype(
        /// Their element type.
        DLDataType,
    ),
    /// Even without rows there is one.
    #[error("there are none, where there must be one more than rows")]
    None,
    /// Offsets count from the first value.
    #[error("offset {index} is {offset}")]
    Negative {
        /// Which offset.
        index: usize,
        /// The value found.
        offset: i64,
    },
    /// A row cannot end before it begins.
    #[error("offset {index} is {offset}, less than the {previous} before it")]
    Decreasing {
        /// Which offset.
        index: usize,
        /// The value found.
        offset: i64,
        /// The one before.
        previous: i64,
    },
    /// A row cannot end behind the last value.
    #[error("the last one is {offset}, but there are {values} values")]
    Beyond {
        /// The last offset.
        offset: i64,
        /// Number of values.
        values: usize,
    },
    /// The array's offsets are of a narrower type. Nothing is ever truncated.
    #[error(
        "offset {index} is {offset}, which does not fit {} bits{}", if *is_large { 64 } else { 32 },
        if *is_large { "" } else { ": ask for a large type, such as LargeList" }
    )]
    TooLarge {
        /// Which offset.
        index: usize,
        /// The value found.
        offset: u64,
        /// Whether the array's offsets have 64 bits, rather than 32.
        is_large: bool,
    },
}

/// What keeps an array from being handed over; the words of [`Error::NotExclusive`](super::Error::NotExclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExclusiveObstacle {
    /// The array or its buffer has another holder.
    #[error("others hold its memory too")]
    Shared,
    /// The array is a slice that begins further on than its buffer does.
    #[error("it does not begin where its buffer begins")]
    Sliced,
    /// The memory is not from Rust's allocator, or came through C, which does not say so.
    #[error("its memory is not known to be from Rust's allocator")]
    Foreign,
}

/// What keeps a tensor from being written to; the words of [`Error::NotWritable`](super::Error::NotWritable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteObstacle {
    /// The producer said so, or could not say anything, which the legacy ABI cannot.
    #[error("it is read-only")]
    ReadOnly,
    /// Nothing says that this tensor is the only way to its memory; see
    /// [`crate::ManagedTensor::assume_exclusive`].
    #[error("others may hold its memory too")]
    Shared,
    /// Two positions may be the same element, as along a broadcast axis.
    #[error(
        "its elements may overlap, the stride of axis {axis} being {stride} where {needed} would \
         keep them apart"
    )]
    Overlapping {
        /// The axis whose stride is too small.
        axis: usize,
        /// Its stride, in elements.
        stride: i64,
        /// The least stride that steps over everything that axes of smaller strides reach.
        needed: u64,
    },
}
