//! What a conversion copies, and why: decided once, before anything is done.
//!
//! A conversion is prepared first. What is prepared says what it will copy (its [`Plan`]), and does just
//! that when it is run; what `copy=False` forbids is a plan with a step in it.

use core::fmt;

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::ffi::DLDataType;

/// What a conversion copies. Without steps it is zero-copy: the result is the same memory.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::{Export, export};
/// use arrow_schema::{DataType, Field};
///
/// let array = BooleanArray::from(vec![true, false, true]);
/// let field = Field::new("x", DataType::Boolean, false);
/// let plan = export::explain((&array, &field), &Export::default())?;
/// assert_eq!(plan.bytes_copied(), 3);
/// assert_eq!(plan.to_string(), "copies 3 bytes: Arrow stores booleans as bits");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Plan {
    /// Each allocation that is written to, in order.
    pub steps: Vec<Step>,
}

/// One allocation that a conversion makes and fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its size.
    pub nbytes: usize,
    /// Why the memory that is there would not do: at least one reason.
    pub reasons: Vec<CopyReason>,
}

impl Plan {
    /// Whether the result is the memory that is there already.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.steps.is_empty()
    }

    /// Bytes that will be written.
    #[must_use]
    pub fn bytes_copied(&self) -> usize {
        self.steps.iter().fold(0, |sum, step| sum.saturating_add(step.nbytes))
    }

    /// A plan of one step, or of none if there is no reason for it, nor one asked for.
    ///
    /// # Errors
    ///
    /// `CopyForbidden` if `copy` forbids what there is a reason for.
    pub(crate) fn of(
        mut reasons: Vec<CopyReason>,
        nbytes: usize,
        copy: CopyPolicy,
    ) -> Result<Self, Error> {
        match (copy, reasons.first()) {
            (CopyPolicy::Never, Some(&reason)) => {
                return Err(Error::CopyForbidden { reason, nbytes });
            }
            (CopyPolicy::Always, None) => reasons.push(CopyReason::Requested),
            _ => {}
        }
        let steps = if reasons.is_empty() { Vec::new() } else { vec![Step { nbytes, reasons }] };
        Ok(Self { steps })
    }

    /// Whether nothing is in the way of sharing but that a copy was asked for.
    pub(crate) fn is_just_requested(&self) -> bool {
        matches!(self.steps.as_slice(), [step] if step.reasons == [CopyReason::Requested])
    }

    /// This plan, and then another.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("zero-copy");
        }
        for (index, step) in self.steps.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copies {} byte{}: ", self.nbytes, if self.nbytes == 1 { "" } else { "s" })?;
        for (index, reason) in self.reasons.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{reason}")?;
        }
        Ok(())
    }
}

/// Why memory is copied: the words of [`Plan`] and of [`Error::CopyForbidden`].
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
    /// Offsets and texts are valid or not, and must not become so after they were checked.
    #[error("it is checked, and somebody could still write to it")]
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
