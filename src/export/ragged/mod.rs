//! Rows that differ in length: all values in one tensor, and the offset at which each row begins.

mod lists;
mod offsets;
mod rows;

use arrow_array::ArrayRef;

use super::options::{ExportOptions, NullPolicy};
use super::{column::mask_plan, source::Source};
use crate::{CopyPolicy, Error, ManagedTensor, Plan, ffi::DLDataType};
pub(super) use lists::Lists;
use offsets::Offsets;
pub(super) use rows::Rows;

/// Rows of different lengths as tensors: row `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// This is the layout of `torch.nested.nested_tensor_from_jagged`, and of the values and row pointers of a CSR
/// matrix.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ragged {
    /// The values of all rows: 1-D, or n-D if each value is a tensor.
    pub values: ManagedTensor,
    /// One offset more than rows, beginning with 0, in units of values: int32 or int64.
    pub offsets: ManagedTensor,
    /// The validity of the rows, as booleans, with [`NullPolicy::Masked`](crate::NullPolicy::Masked) only.
    pub mask: Option<ManagedTensor>,
    /// The values of the dictionary, if `values` are its codes.
    pub dictionary: Option<ArrayRef>,
}

/// A planned conversion to [`Ragged`] that has not run yet.
///
/// It holds the source, and no memory for the result.
#[must_use]
pub struct PreparedRagged {
    plan: Plan,
    lists: Lists,
    offsets: Offsets,
    mask: Option<CopyPolicy>,
}

/// Plans what [`ragged`](super::ragged) does.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let options = ExportOptions::default();
/// assert!(export::prepare_ragged(&texts, &options, None)?.plan().is_zero_copy());
/// let prepared = export::prepare_ragged(&texts.slice(1, 3), &options, None)?;
/// assert_eq!(prepared.plan().to_string(), "copies 16 bytes: the offsets begin at 2, not at 0");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`ragged`](super::ragged), except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare_ragged<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
    offset_type: Option<DLDataType>,
) -> Result<PreparedRagged, Error> {
    let may_share = options.copy != CopyPolicy::Always;
    let is_shared = |one: &Rows| may_share && one.is_shared(offset_type);
    let rows = Lists::read(source.into(), options, is_shared)?;
    let lists = Lists::plan(rows, &options.of_rows())?;
    let offsets =
        Offsets::new(&lists.rows, &lists.values, lists.dropped, offset_type, options.copy)?;
    let mut plan = lists.values.plan.clone().and(offsets.plan.clone());
    let mask = (options.nulls == NullPolicy::Masked).then_some(options.copy);
    if let Some(copy) = mask {
        plan = plan.and(mask_plan(offsets.rows, copy)?);
    }
    Ok(PreparedRagged { plan, lists, offsets, mask })
}

impl PreparedRagged {
    /// What [`run`](Self::run) will copy, and why.
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Runs the plan.
    ///
    /// # Errors
    ///
    /// `ValueDoesNotFit`, `TooManyValues`; `BadOffsets` and `InvalidArray` if the offsets were changed since they were
    /// planned; `OutOfMemory`.
    pub fn run(self) -> Result<Ragged, Error> {
        // Offsets are shared only if the values of all rows are contiguous.
        let (rows, values) = match self.offsets.plan.is_zero_copy() {
            true => self.lists.shared()?,
            false => self.lists.snapshot()?,
        };
        let mask = self.mask.map(|copy| Lists::mask(&rows, copy)?.run()).transpose()?;
        let offsets = self.offsets.run(&rows)?;
        // A copy of values that have no other holder takes them over, unless it casts them.
        let rows = if values.is_cast() { rows } else { Vec::new() };
        let (values, dictionary) = values.run().map_err(|error| Lists::in_row(&rows, error))?;
        Ok(Ragged { values, offsets, mask: mask.map(|(mask, _)| mask), dictionary })
    }
}
