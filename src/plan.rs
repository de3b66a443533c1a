//! What a conversion copies, and why: decided once, before anything is done.
//!
//! A conversion is prepared first. What is prepared says what it will copy (its [`Plan`]), and does just
//! that when it is run; what `copy=False` forbids is a plan with a step in it.

use core::fmt;

use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;

/// What a conversion copies. Without steps it is zero-copy: the result is the same memory.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{DataType, Field};
///
/// let array = BooleanArray::from(vec![true, false, true]);
/// let field = Field::new("x", DataType::Boolean, false);
/// let plan = export::explain((&array, &field), &ExportOptions::default())?;
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
