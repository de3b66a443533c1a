//! Whether a conversion may copy, and why it must.

use crate::ffi::DLDataType;

/// `copy` of the [array API standard](https://data-apis.org/array-api/latest/API_specification/generated/array_api.from_dlpack.html):
/// `None`, `False` and `True`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPolicy {
    /// Share the memory if possible; otherwise copy.
    #[default]
    IfNeeded,
    /// Share the memory or return an error.
    Never,
    /// Always copy, so that the result has exclusive memory.
    Always,
}

impl From<Option<bool>> for CopyPolicy {
    fn from(copy: Option<bool>) -> Self {
        match copy {
            None => Self::IfNeeded,
            Some(false) => Self::Never,
            Some(true) => Self::Always,
        }
    }
}

/// Why memory is copied: part of a [`Plan`](crate::Plan) and of
/// [`Error::CopyForbidden`](crate::Error::CopyForbidden).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyReason {
    /// [`CopyPolicy::Always`].
    #[error("a copy was asked for")]
    Requested,
    /// The elements are not contiguous in row-major order.
    #[error("stride of axis {axis} is {stride} elements where contiguous data has {expected}")]
    Strided {
        /// The last axis whose stride is not the row-major one.
        axis: usize,
        /// Its stride.
        stride: i64,
        /// Its row-major stride.
        expected: i64,
    },
    /// The axes of each row are contiguous, but in another order than row-major. A type with a permutation, as
    /// [`Representation::Permuted`](crate::Representation::Permuted) makes one, would keep that order.
    #[error("the axes of its rows lie in another order than row-major")]
    Permuted,
    /// The address is not aligned as Arrow needs.
    #[error("the data is not aligned to {align} bytes")]
    Misaligned {
        /// The alignment that the element type needs, in bytes.
        align: usize,
    },
    /// Misaligned buffers from Arrow's C data interface, which arrow-rs copies on import.
    #[error("buffers of the Arrow structure are not aligned to their values")]
    Realigned,
    /// The chunks have different dictionaries.
    #[error("the dictionaries of its chunks are unified")]
    Dictionaries,
    /// Arrow's Boolean packs eight values in a byte; a tensor has one byte per value.
    #[error("Arrow stores booleans as bits")]
    Bits,
    /// arrow.bool8 allows any byte; a tensor only 0 and 1.
    #[error("some booleans are bytes other than 0 and 1")]
    BoolBytes,
    /// Offsets and strings are checked, and must not change afterwards.
    #[error("it is checked, and other code could still write to it")]
    Checked,
    /// Elements of under 8 bits, of this type, are packed in a tensor, and take a byte each in Arrow.
    #[error("{0} elements share bytes")]
    Packed(DLDataType),
    /// The values are cast.
    #[error("{from} becomes {to}")]
    Cast {
        /// The element type of the values.
        from: DLDataType,
        /// The element type of the result.
        to: DLDataType,
    },
    /// Arrow has no type for elements of this dtype, and stores their values in another way. An extension type, as
    /// [`Representation::Bool8`](crate::Representation::Bool8) and
    /// [`Representation::Opaque`](crate::Representation::Opaque) make one, would keep the elements.
    #[error("{}", match .to {
        Some(to) => format!("{from} becomes {to}"),
        None => Self::Bits.to_string(),
    })]
    Stored {
        /// The element type of the tensor.
        from: DLDataType,
        /// The element type of the values; `None` for bits.
        to: Option<DLDataType>,
    },
    /// Decimals are stored as integers, and become floats.
    #[error("decimals become {0}")]
    Decimals(
        /// The element type of the result.
        DLDataType,
    ),
    /// Nulls are replaced by values.
    #[error("{count} {} replaced", if *count == 1 { "null is" } else { "nulls are" })]
    Filled {
        /// Number of nulls.
        count: usize,
    },
    /// Arrow's validity packs eight values in a byte; a tensor's mask has one byte per value.
    #[error("the mask is made of validity bits")]
    Mask,
    /// This many chunks are concatenated.
    #[error("{0} chunks are put together")]
    Chunks(usize),
    /// This many columns of a table become a row-major matrix.
    #[error("{0} columns are put side by side")]
    Rows(usize),
    /// This many columns of a table become a column-major matrix, and are not contiguous slices of one buffer.
    #[error("{0} columns are not slices of one buffer, one behind the other")]
    Columns(usize),
    /// The rows of views are not contiguous.
    #[error("the rows do not lie one behind the other")]
    Scattered,
    /// Null rows have values, which are left out.
    #[error("values of null rows are dropped")]
    NullRows,
    /// Rows of different lengths get this length.
    #[error("rows are padded to {0} value{s}", s = if *.0 == 1 { "" } else { "s" })]
    Padded(usize),
    /// The lengths of rows, which Arrow does not store.
    #[error("the lengths are made of offsets")]
    Lengths,
    /// The offsets of a slice begin at this offset, not at 0.
    #[error("the offsets begin at {0}, not at 0")]
    Rebased(i64),
    /// Views have an offset and a size per row; ragged tensors need offsets alone, one more than rows.
    #[error("views have no offset behind the last row")]
    NoLastOffset,
}
