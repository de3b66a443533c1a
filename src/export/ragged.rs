//! Rows that differ in length: all values in one tensor, and the offset at which each row begins.

use std::fmt;

use arrow_array::{ArrayRef, OffsetSizeTrait};
use arrow_buffer::Buffer;

use super::column::{ColumnPlan, mask_plan};
use super::lists::{Lists, Rows};
use super::options::{ExportOptions, NullPolicy};
use super::source::IntoSource;
use crate::alloc::Fresh;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::task::Steps;
use crate::tensor::TensorSpec;
use crate::{CopyPolicy, CopyReason, Error, ManagedTensor, Plan};

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
/// assert!(export::prepare_ragged(&texts, None, &options)?.plan().is_zero_copy());
/// let prepared = export::prepare_ragged(&texts.slice(1, 3), None, &options)?;
/// assert_eq!(prepared.plan().to_string(), "copies 16 bytes: the offsets begin at 2, not at 0");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`ragged`](super::ragged), except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare_ragged<'a, F>(
    source: impl IntoSource<'a, F>,
    offset_type: Option<DLDataType>,
    options: &ExportOptions,
) -> Result<PreparedRagged, Error> {
    let may_share = options.copy != CopyPolicy::Always;
    let is_shared = |one: &Rows| may_share && one.is_shared(offset_type);
    let rows = Lists::read(source.into_source(), options, is_shared)?;
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

impl fmt::Debug for PreparedRagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedRagged").field("plan", &self.plan()).finish_non_exhaustive()
    }
}

impl PreparedRagged {
    /// What [`run`](Self::run) will copy, and why.
    ///
    /// ```
    /// use arrow_array::StringArray;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let texts = StringArray::from(vec!["to", "be"]);
    /// let offsets = Some(DLDataType::INT64);
    /// let prepared = export::prepare_ragged(&texts, offsets, &ExportOptions::default())?;
    /// assert_eq!(prepared.plan().to_string(), "copies 24 bytes: int32 becomes int64");
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Runs the plan.
    ///
    /// ```
    /// use arrow_array::StringArray;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let texts = StringArray::from(vec!["to", "be"]);
    /// let offsets = Some(DLDataType::INT64);
    /// let prepared = export::prepare_ragged(&texts, offsets, &ExportOptions::default())?;
    /// let ragged = prepared.run()?;
    /// assert_eq!(ragged.values.as_slice::<u8>(), Some(&b"tobe"[..]));
    /// assert_eq!(ragged.offsets.as_slice::<i64>(), Some(&[0, 2, 4][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
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
        let plan = Plan::decide(reasons, nbytes, copy)?;
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
