//! The offsets of ragged tensors.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::Buffer;

use super::super::column::ColumnPlan;
use super::rows::Rows;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::tensor::TensorSpec;
use crate::{CopyPolicy, CopyReason, Error, ManagedTensor, Plan, alloc::Fresh, task::Steps};

/// The planned offsets.
pub(super) struct Offsets {
    pub(super) plan: Plan,
    dtype: DLDataType,
    pub(super) rows: usize,
}

impl Offsets {
    /// Plans the offsets of at least one chunk with these values; `dropped` says whether null rows have more.
    pub(super) fn new(
        chunks: &[Rows],
        values: &ColumnPlan,
        dropped: bool,
        wanted: Option<DLDataType>,
        copy: CopyPolicy,
    ) -> Result<Self, Error> {
        let own = chunks[0].bounds.dtype();
        let dtype = wanted.unwrap_or(own);
        if dtype != DLDataType::INT32 && dtype != DLDataType::INT64 {
            return Err(Error::NoOffsets(dtype));
        }
        let rows: usize = chunks.iter().map(|chunk| chunk.bounds.rows()).sum();
        let nbytes = (rows + 1) * dtype.item_bits(false) / 8;
        let first = chunks[0].ends.as_ref().map_or(0, |ends| ends.start);
        let mut reasons = Vec::new();
        if chunks.len() > 1 {
            reasons.push(CopyReason::Chunks(chunks.len()));
        } else if own_offsets(chunks).is_none() {
            reasons.push(CopyReason::NoLastOffset);
        } else if values.is_many || dropped {
            reasons.push(CopyReason::NullRows);
        } else if first > 0 {
            let first = i64::try_from(first).map_err(|_| Error::Overflow("offset"))?;
            reasons.push(CopyReason::Rebased(first));
        }
        if dtype != own {
            reasons.push(CopyReason::Cast { from: own, to: dtype });
        }
        let plan = Plan::of(reasons, nbytes, copy)?;
        if dtype == DLDataType::INT32 && i32::try_from(values.rows).is_err() {
            return Err(Error::OffsetDoesNotFit { offset: values.rows, dtype });
        }
        Ok(Self { plan, dtype, rows })
    }

    /// Runs the plan for rows with as many values as were planned.
    pub(super) fn run(self, chunks: &[Rows]) -> Result<ManagedTensor, Error> {
        let Self { plan, dtype, rows } = self;
        let count = rows + 1;
        let extent = i64::try_from(count).map_err(|_| Error::Overflow("length"))?;
        if let (true, Some(buffer)) = (plan.is_zero_copy(), own_offsets(chunks)) {
            let buffer = buffer.slice_with_length(0, count * dtype.item_bits(false) / 8);
            let flags = DLPackFlags::default();
            return ManagedTensor::from_shared(
                buffer,
                TensorSpec::new(dtype, flags, &[extent], &[1]),
            );
        }
        let memory = if dtype == DLDataType::INT32 {
            Fresh::try_build::<i32>(count, |out| sums(chunks, out))?
        } else {
            Fresh::try_build::<i64>(count, |out| sums(chunks, out))?
        };
        ManagedTensor::from_fresh(
            memory,
            TensorSpec::new(dtype, DLPackFlags::IS_COPIED, &[extent], &[1]),
        )
    }
}

/// The offsets of a single chunk; the buffer of an empty array may be empty.
fn own_offsets(chunks: &[Rows]) -> Option<&Buffer> {
    match chunks {
        [one] => one.bounds.buffer().filter(|buffer| !buffer.is_empty()),
        _ => None,
    }
}

/// The start of each row when rows are concatenated, and the end of the last one. `O` is wide enough.
fn sums<O: OffsetSizeTrait>(chunks: &[Rows], out: &mut Vec<O>) -> Result<(), Error> {
    let (mut end, mut steps) = (0, Steps::default());
    out.push(O::zero());
    for rows in chunks {
        let own = rows.bounds.offsets::<O>();
        if let (0, Some((&first, rest))) = (rows.null_count(), own.split_first()) {
            let by = O::usize_as(end) - first;
            for some in rest.chunks(1 << 16) {
                out.extend(some.iter().map(|&offset| offset + by));
                steps.done(size_of_val(some))?;
            }
            end = out.last().map_or(0, |last| last.as_usize());
            continue;
        }
        for length in rows.bounds.lengths(rows.nulls.as_ref()) {
            end += length;
            out.push(O::usize_as(end));
            steps.done(size_of::<O>())?;
        }
    }
    Ok(())
}
