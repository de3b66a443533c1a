//! Rows that differ in length: all values in one tensor, and the offset at which each row begins.

mod offsets;
mod rows;

use arrow_array::{Array, ArrayRef};

use super::column::Column;
use super::dense::Dense;
use super::options::{ExportOptions, NullPolicy};
use super::refusal;
use super::source::{Source, check_type, empty};
use super::survey::Survey;
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory::{self, ManagedTensor};
use crate::plan::Plan;
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
    rows: Vec<Rows>,
    physical: bool,
    /// Without its chunks, unless the offsets are shared.
    values: Column,
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
    let (row, none);
    let source = source.into();
    let field = &source.field();
    let chunks: Vec<&dyn Array> = match source {
        Source::Array(array, _) => vec![array],
        Source::Chunks([], _) => {
            none = empty(field)?;
            vec![&none]
        }
        Source::Chunks(chunks, _) => chunks.iter().map(|chunk| -> &dyn Array { chunk }).collect(),
        Source::Row(array, _, index) if index < array.len() => {
            row = array.slice(index, 1);
            vec![&row]
        }
        Source::Row(array, _, index) => return Err(Error::NoSuchRow { index, len: array.len() }),
        Source::Table(..) => return Err(refusal::not_ragged(field.data_type())),
    };
    let (mut rows, mut null_count) = (Vec::with_capacity(chunks.len()), 0);
    for &chunk in &chunks {
        check_type(chunk, field)?;
        rows.push(Rows::read(chunk, field, options.physical)?);
        null_count += chunk.null_count();
    }
    let may_share = options.copy != CopyPolicy::Always;
    if !matches!(&rows[..], [one] if may_share && one.is_shared(offset_type)) {
        rows.iter().try_for_each(Rows::check)?;
    }
    if options.nulls == NullPolicy::Refuse && null_count > 0 {
        let (data_type, len) = (field.data_type().clone(), chunks.iter().map(|chunk| chunk.len()));
        return Err(Error::Nulls { data_type, null_count, len: len.sum() });
    }
    let (mut values, only, dropped) = values_of(&rows, options)?;
    let offsets = Offsets::new(&rows, &values, dropped, offset_type, options.copy)?;
    if offsets.plan.is_zero_copy() {
        // Offsets are shared only if the values of all rows are contiguous.
        values = values.with_chunks(only)?;
    }
    let mut plan = values.plan.clone().and(offsets.plan.clone());
    let mask = (options.nulls == NullPolicy::Masked).then_some(options.copy);
    if let Some(copy) = mask {
        plan = plan.and(Column::mask_plan(offsets.rows, copy)?);
    }
    Ok(PreparedRagged { plan, rows, physical: options.physical, values, offsets, mask })
}

/// The column of the values, still without its chunks; its chunk, if there is only one; and whether null rows have values,
/// which are left out.
fn values_of(rows: &[Rows], options: &ExportOptions) -> Result<(Column, Vec<Dense>, bool), Error> {
    // The mask is of the rows, so nulls within the rows are refused.
    let inner = options.clone().with_nulls(match options.nulls {
        NullPolicy::Masked => NullPolicy::Refuse,
        policy => policy,
    });
    let (mut survey, mut dropped, mut only) = (Survey::new(&inner), false, Vec::new());
    for chunk in rows {
        let mut is_first = true;
        dropped |= chunk.each_piece(options.physical, &mut |piece| {
            match piece.uniform_cells().filter(|_| !is_first) {
                Some(cells) => survey.add_uniform(piece.len(), cells.saturating_mul(piece.len())),
                None => {
                    let dense = piece.dense();
                    survey.add(&dense);
                    only = vec![dense];
                }
            }
            is_first = false;
            Ok(())
        })?;
    }
    let many = match rows {
        _ if dropped => CopyReason::NullRows,
        [_] => CopyReason::Scattered,
        _ => CopyReason::Chunks(rows.len()),
    };
    let planned = survey.finish(many).map_err(refusal::in_rows)?;
    Ok((Column::planned(planned), only, dropped))
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
        let Self { mut rows, mut values, .. } = self;
        if !self.offsets.plan.is_zero_copy() {
            rows = memory::try_collect(rows.into_iter().map(Rows::settled))?;
            values = values.with_chunks(pieces(&rows, self.physical)?)?;
        }
        let mask = match self.mask {
            Some(copy) => {
                let masks =
                    rows.iter().map(|rows| Dense::of_rows(rows.bounds.rows(), rows.nulls.as_ref()));
                Some(Column::mask(memory::try_collect(masks)?, copy)?.run()?.0)
            }
            None => None,
        };
        let offsets = self.offsets.run(&rows)?;
        // A copy of values that have no other holder takes them over.
        drop(rows);
        let (values, dictionary) = values.run()?;
        Ok(Ragged { values, offsets, mask, dictionary })
    }
}

/// The values of all valid rows, as contiguous pieces.
fn pieces(rows: &[Rows], physical: bool) -> Result<Vec<Dense>, Error> {
    let mut pieces = Vec::new();
    for chunk in rows {
        chunk.each_piece(physical, &mut |piece| {
            let nbytes = 2 * size_of_val(pieces.as_slice());
            pieces.try_reserve(1).map_err(|_| Error::OutOfMemory { nbytes })?;
            pieces.push(piece.dense());
            Ok(())
        })?;
    }
    Ok(pieces)
}
