//! Rows that differ in length: all values in one tensor, and the offset at which each row begins.

mod offsets;
mod rows;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::column::Column;
use super::dense::Dense;
use super::options::{ExportOptions, NullPolicy};
use super::refusal;
use super::source::{Source, check_type, empty};
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
#[must_use]
pub struct PreparedRagged {
    plan: Plan,
    values: Column,
    offsets: Offsets,
    mask: Option<Column>,
}

/// Plans what [`ragged`](super::ragged) does.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{DataType, Field};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let field = Field::new("text", DataType::Utf8, false);
/// let options = ExportOptions::default();
/// assert!(export::prepare_ragged((&texts, &field), &options, None)?.plan().is_zero_copy());
/// let slice = texts.slice(1, 3);
/// let prepared = export::prepare_ragged((&slice, &field), &options, None)?;
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
    let (chunks, field): (Vec<&dyn Array>, _) = match source.into() {
        Source::Array(array, field) => (vec![array], field),
        Source::Chunks([], field) => {
            none = empty(field)?;
            (vec![&none], field)
        }
        Source::Chunks(chunks, field) => {
            (chunks.iter().map(|chunk| -> &dyn Array { chunk }).collect(), field)
        }
        Source::Row(array, field, index) if index < array.len() => {
            row = array.slice(index, 1);
            (vec![&row], field)
        }
        Source::Row(array, _, index) => return Err(Error::NoSuchRow { index, len: array.len() }),
        Source::Table(_, schema) => {
            return Err(refusal::not_ragged(&DataType::Struct(schema.fields().clone())));
        }
    };
    let is_one = chunks.len() == 1;
    let (mut rows, mut null_count) = (Vec::with_capacity(chunks.len()), 0);
    for &chunk in &chunks {
        check_type(chunk, field)?;
        let read = Rows::read(chunk, field, options.physical)?;
        let as_it_is = is_one && options.copy != CopyPolicy::Always && read.is_shared(offset_type);
        rows.push(if as_it_is { read } else { read.settled()? });
        null_count += chunk.null_count();
    }
    if options.nulls == NullPolicy::Refuse && null_count > 0 {
        let (data_type, len) = (field.data_type().clone(), chunks.iter().map(|chunk| chunk.len()));
        return Err(Error::Nulls { data_type, null_count, len: len.sum() });
    }
    let (values, moved) = values_of(&rows, options)?;
    let (offsets, offsets_plan) = Offsets::new(rows, moved, offset_type, options.copy)?;
    let mut plan = values.plan.clone().and(offsets_plan);
    let mask = match options.nulls {
        NullPolicy::Masked => {
            let masks = memory::try_collect(chunks.into_iter().map(Dense::of_rows))?;
            Some(Column::mask(masks, options.copy)?)
        }
        _ => None,
    };
    if let Some(mask) = &mask {
        plan = plan.and(mask.plan.clone());
    }
    Ok(PreparedRagged { plan, values, offsets, mask })
}

/// The values, and whether their positions relative to each other change.
fn values_of(rows: &[Rows], options: &ExportOptions) -> Result<(Column, bool), Error> {
    // The mask is of the rows, so nulls within the rows are refused.
    let inner = options.clone().with_nulls(match options.nulls {
        NullPolicy::Masked => NullPolicy::Refuse,
        policy => policy,
    });
    let (mut pieces, mut dropped) = (Vec::new(), false);
    for chunk in rows {
        let (more, has_dropped) = chunk.pieces(options.physical)?;
        pieces.extend(more);
        dropped |= has_dropped;
    }
    let many = match rows {
        _ if dropped => CopyReason::NullRows,
        [_] => CopyReason::Scattered,
        _ => CopyReason::Chunks(rows.len()),
    };
    if pieces.is_empty() {
        pieces.push(Dense::bytes(arrow_buffer::Buffer::default()));
    }
    let moved = pieces.len() > 1 || dropped;
    Ok((Column::new(pieces, many, &inner).map_err(refusal::in_rows)?, moved))
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
    /// `ValueDoesNotFit`, `TooManyValues`; `OutOfMemory`.
    pub fn run(self) -> Result<Ragged, Error> {
        let (values, dictionary) = self.values.run()?;
        let offsets = self.offsets.run()?;
        let mask = self.mask.map(Column::run).transpose()?.map(|(mask, _)| mask);
        Ok(Ragged { values, offsets, mask, dictionary })
    }
}
