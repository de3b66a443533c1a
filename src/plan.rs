//! The copies that a conversion makes, and their reasons, decided before it runs.
//!
//! Each conversion is prepared first. The prepared conversion reports its [`Plan`], and runs exactly that;
//! `copy=False` refuses a plan that has a step.

use core::fmt;

use crate::{CopyPolicy, CopyReason, Error};

/// The copies of a conversion. A plan without steps is zero-copy: the result shares the memory.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let array = BooleanArray::from(vec![true, false, true]);
/// let plan = export::explain(&array, &ExportOptions::default())?;
/// assert_eq!(plan.bytes_copied(), 3);
/// assert_eq!(plan.to_string(), "copies 3 bytes: Arrow stores booleans as bits");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Plan {
    /// The allocations, in order.
    pub steps: Vec<Step>,
}

/// One allocation that a conversion makes and fills.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Size of the allocation, in bytes.
    pub nbytes: usize,
    /// Why the existing memory cannot be shared: at least one reason.
    pub reasons: Vec<CopyReason>,
}

impl Plan {
    /// Whether the result shares the existing memory.
    ///
    /// ```
    /// use arrow_array::{BooleanArray, Int32Array};
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let options = ExportOptions::default();
    /// let numbers = export::explain(&Int32Array::from(vec![1, 2, 3]), &options)?;
    /// let booleans = export::explain(&BooleanArray::from(vec![true, false, true]), &options)?;
    /// assert!(numbers.is_zero_copy() && !booleans.is_zero_copy());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.steps.is_empty()
    }

    /// Bytes of all allocations.
    ///
    /// ```
    /// use arrow_array::{BooleanArray, Int32Array};
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let options = ExportOptions::default();
    /// let numbers = export::explain(&Int32Array::from(vec![1, 2, 3]), &options)?;
    /// let booleans = export::explain(&BooleanArray::from(vec![true, false, true]), &options)?;
    /// assert_eq!((numbers.bytes_copied(), booleans.bytes_copied()), (0, 3));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn bytes_copied(&self) -> usize {
        self.steps.iter().fold(0, |sum, step| sum.saturating_add(step.nbytes))
    }

    /// A plan of one step, or of none if there is no reason for it and none was requested.
    ///
    /// # Errors
    ///
    /// `CopyForbidden` if `copy` forbids a copy that is needed.
    pub(crate) fn decide(
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

    /// Whether the only reason of each copy is that it was requested.
    pub(crate) fn is_just_requested(&self) -> bool {
        matches!(self.steps.as_slice(), [step] if step.reasons == [CopyReason::Requested])
    }

    /// This plan followed by another one.
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
