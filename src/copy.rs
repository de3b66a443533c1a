//! Whether a conversion may copy, and why it has to.

use crate::ffi::DLDataType;

/// `copy` of the [array API standard](https://data-apis.org/array-api/latest/API_specification/generated/array_api.from_dlpack.html):
/// `None`, `False` and `True`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPolicy {
    /// Share the memory; copy only if that is impossible.
    #[default]
    IfNeeded,
    /// Share the memory or fail.
    Never,
    /// Always copy, so that the result has memory of its own.
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

/// Why memory is copied: the words of [`Plan`](crate::Plan) and of
/// [`Error::CopyForbidden`](crate::Error::CopyForbidden).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyReason {
    /// [`CopyPolicy::Always`].
    #[error("a copy was asked for")]
    Requested,
    /// The elements do not lie one behind the other.
    #[error("stride of axis {axis} is {stride} elements where contiguous data has {expected}")]
    Strided {
        /// The last axis that is not where row-major order puts it.
        axis: usize,
        /// Its stride.
        stride: i64,
        /// The stride that row-major order gives it.
        expected: i64,
    },
    /// The address is not a multiple of what Arrow needs.
    #[error("the data is not aligned to {align} bytes")]
    Misaligned {
        /// The alignment in bytes that the element type needs.
        align: usize,
    },
    /// Buffers that came through Arrow's C interface; arrow-rs moves them on the way in.
    #[error("buffers of the Arrow structure are not aligned to their values")]
    Realigned,
    /// Each chunk has a dictionary of its own.
    #[error("the dictionaries of its chunks are unified")]
    Dictionaries,
    /// Arrow's Boolean has eight values in a byte, a tensor one.
    #[error("Arrow stores booleans as bits")]
    Bits,
    /// arrow.bool8 may hold any byte, a tensor only 0 and 1.
    #[error("some booleans are bytes other than 0 and 1")]
    BoolBytes,
    /// Offsets and texts are checked, and must not change after the check.
    #[error("it is checked, and other code could still write to it")]
    Checked,
    /// Elements of under 8 bits lie without gaps in a tensor, and a byte each in Arrow.
    #[error("{0} elements share bytes")]
    Packed(
        /// The element type.
        DLDataType,
    ),
    /// The values become those of another type.
    #[error("{from} becomes {to}")]
    Cast {
        /// The element type that is there.
        from: DLDataType,
        /// The element type of the result.
        to: DLDataType,
    },
    /// Nulls become values.
    #[error("{count} {} replaced", if *count == 1 { "null is" } else { "nulls are" })]
    Filled {
        /// How many.
        count: usize,
    },
    /// Arrow's validity has eight values in a byte, a tensor's mask one.
    #[error("the mask is made of validity bits")]
    Mask,
    /// Several pieces become one.
    #[error("{0} chunks are put together")]
    Chunks(
        /// How many.
        usize,
    ),
    /// The columns of a table become a row-major matrix.
    #[error("{0} columns are put side by side")]
    Rows(
        /// How many.
        usize,
    ),
    /// The columns of a table become a column-major matrix, and are not slices of one buffer in that order.
    #[error("{0} columns are not slices of one buffer, one behind the other")]
    Columns(
        /// How many.
        usize,
    ),
    /// The rows of views lie anywhere.
    #[error("the rows do not lie one behind the other")]
    Scattered,
    /// Null rows may have values, which must go.
    #[error("values of null rows are dropped")]
    NullRows,
    /// The offsets of a slice.
    #[error("the offsets begin at {0}, not at 0")]
    Rebased(
        /// The first offset.
        i64,
    ),
    /// Views have an offset and a size for each row, ragged tensors one offset more than rows.
    #[error("views have no offset behind the last row")]
    NoLastOffset,
}
