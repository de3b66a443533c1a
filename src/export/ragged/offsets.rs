//! The offsets of ragged tensors.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{Buffer, NullBuffer};

use super::rows::Rows;
use crate::chunks::Bounds;
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::{Fresh, ManagedTensor};
use crate::plan::Plan;

/// The source of the offsets.
pub(super) enum Offsets {
    /// The array's own offsets.
    Share(Buffer, DLDataType),
    /// Running sums of the lengths of these rows; null rows have length 0.
    Make(Vec<(Bounds, Option<NullBuffer>)>, DLDataType),
}

impl Offsets {
    /// Plans the offsets of at least one chunk, with their cost. `moved` says whether the positions of values
    /// relative to each other change.
    pub(super) fn new(
        mut chunks: Vec<Rows>,
        moved: bool,
        wanted: Option<DLDataType>,
        copy: CopyPolicy,
    ) -> Result<(Self, Plan), Error> {
        let own = chunks[0].bounds.dtype();
        let dtype = wanted.unwrap_or(own);
        if dtype != DLDataType::INT32 && dtype != DLDataType::INT64 {
            return Err(Error::NoOffsets(dtype));
        }
        let rows: usize = chunks.iter().map(|chunk| chunk.bounds.rows()).sum();
        let nbytes = (rows + 1) * dtype.item_bits(false) / 8;
        let first = chunks[0].ends.as_ref().map_or(0, |ends| ends.start);
        // The offsets buffer of an empty array may be empty.
        let buffer = chunks[0].own.take().filter(|buffer| buffer.len() >= nbytes.min(8));
        let mut reasons = Vec::new();
        if chunks.len() > 1 {
            reasons.push(CopyReason::Chunks(chunks.len()));
        } else if buffer.is_none() {
            reasons.push(CopyReason::NoLastOffset);
        } else if moved {
            reasons.push(CopyReason::NullRows);
        } else if first > 0 {
            let first = i64::try_from(first).map_err(|_| Error::Overflow("offset"))?;
            reasons.push(CopyReason::Rebased(first));
        }
        if dtype != own {
            reasons.push(CopyReason::Cast { from: own, to: dtype });
        }
        let plan = Plan::of(reasons, nbytes, copy)?;
        if let (true, Some(buffer)) = (plan.is_zero_copy(), buffer) {
            return Ok((Self::Share(buffer.slice_with_length(0, nbytes), dtype), plan));
        }
        let last = chunks.iter().map(values).try_fold(0_usize, |sum, len| sum.checked_add(len?));
        let offset = last.and_then(|last| i64::try_from(last).ok());
        let offset = offset.ok_or(Error::Overflow("offset"))?;
        if dtype == DLDataType::INT32 && i32::try_from(offset).is_err() {
            return Err(Error::OffsetDoesNotFit { offset, dtype });
        }
        let chunks = chunks.into_iter().map(|chunk| (chunk.bounds, chunk.nulls));
        Ok((Self::Make(chunks.collect(), dtype), plan))
    }

    pub(super) fn run(self) -> Result<ManagedTensor, Error> {
        let shape = |count: usize| i64::try_from(count).map_err(|_| Error::Overflow("length"));
        match self {
            Self::Share(buffer, dtype) => {
                let extent = shape(buffer.len() * 8 / dtype.item_bits(false))?;
                ManagedTensor::from_shared(buffer, dtype, DLPackFlags::default(), &[extent], &[1])
            }
            Self::Make(chunks, dtype) => {
                let count = chunks.iter().map(|(bounds, _)| bounds.rows()).sum::<usize>() + 1;
                let memory = if dtype == DLDataType::INT32 {
                    Fresh::build::<i32>(count, |out| sums(&chunks, out))?
                } else {
                    Fresh::build::<i64>(count, |out| sums(&chunks, out))?
                };
                let (extent, flags) = (shape(count)?, DLPackFlags::IS_COPIED);
                ManagedTensor::from_fresh(memory, 0, dtype, flags, &[extent], &[1])
            }
        }
    }
}

/// Number of values in the valid rows.
fn values(rows: &Rows) -> Option<usize> {
    match (&rows.ends, rows.null_count()) {
        (Some(ends), 0) => Some(ends.len()),
        _ => rows.bounds.lengths(rows.nulls.as_ref()).try_fold(0, usize::checked_add),
    }
}

/// The start of each row when rows are concatenated, and the end of the last one. `O` is wide enough.
fn sums<O: OffsetSizeTrait>(chunks: &[(Bounds, Option<NullBuffer>)], out: &mut Vec<O>) {
    let mut end = 0;
    out.push(O::zero());
    for (bounds, nulls) in chunks {
        out.extend(bounds.lengths(nulls.as_ref()).map(|length| {
            end += length;
            O::usize_as(end)
        }));
    }
}
