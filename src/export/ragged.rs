//! Rows that differ in length: all values one behind the other, and where each row begins.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListViewArray, OffsetSizeTrait, types};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::column::Prepared;
use super::dense::Dense;
use super::{Export, NullPolicy, refusal};
use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::{Fresh, ManagedTensor};
use crate::plan::{CopyReason, Plan};

/// Rows of different lengths as tensors: row `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// This is what `torch.nested.nested_tensor_from_jagged` takes, and CSR's two arrays.
#[derive(Debug)]
pub struct Ragged {
    /// The values of all rows: 1-D, or n-D if each value is a tensor.
    pub values: ManagedTensor,
    /// One more than rows, from 0 on, in values: int32 or int64.
    pub offsets: ManagedTensor,
    /// Which rows are not null, as booleans; only if they were asked for.
    pub mask: Option<ManagedTensor>,
}

/// A ragged tensor that could be made, and what it would cost.
pub(crate) struct PreparedRagged {
    pub(crate) plan: Plan,
    values: Prepared,
    offsets: Offsets,
    mask: Option<Prepared>,
}

/// Where the offsets come from.
enum Offsets {
    /// They are there already.
    Share(Buffer, DLDataType),
    Make(Vec<i64>, DLDataType),
}

/// Where rows and values are.
pub(super) struct Rows {
    /// Where each row's values are among all.
    ranges: Vec<Range<usize>>,
    /// The offsets as they are, if there are any.
    offsets: Option<Buffer>,
    /// Where the first row begins, even if there is none.
    first: usize,
    dtype: DLDataType,
    values: Source,
}

enum Source {
    List(arrow_array::ArrayRef, arrow_schema::FieldRef),
    Bytes(Buffer),
    /// Of each row, wherever it is.
    Views(Vec<Buffer>),
}

impl PreparedRagged {
    /// Decides what becomes of an array of lists, texts or binaries.
    pub(crate) fn new(
        array: &dyn Array,
        field: &Field,
        options: &Export,
        offset_type: Option<DLDataType>,
    ) -> Result<Self, Error> {
        let rows = Rows::read(array, field, options.physical)?;
        if options.nulls == NullPolicy::Refuse && array.null_count() > 0 {
            return Err(refusal::nulls(array, array.null_count()));
        }
        let (values, moved) = rows.values(array, options)?;
        let (offsets, offsets_plan) = rows.offsets(array, moved, offset_type, options.copy)?;
        let mut plan = values.plan.clone().and(offsets_plan);
        let mask = match options.nulls {
            NullPolicy::Masked => {
                let mask = Dense::of_rows(array);
                Some(Prepared::mask(&[mask], options.copy)?)
            }
            _ => None,
        };
        if let Some(mask) = &mask {
            plan = plan.and(mask.plan.clone());
        }
        Ok(Self { plan, values, offsets, mask })
    }

    /// Does what the plan says.
    pub(crate) fn run(self) -> Result<Ragged, Error> {
        Ok(Ragged {
            values: self.values.run()?,
            offsets: self.offsets.run()?,
            mask: self.mask.map(Prepared::run).transpose()?,
        })
    }
}

impl Rows {
    pub(super) fn read(array: &dyn Array, field: &Field, physical: bool) -> Result<Self, Error> {
        match Extension::of(field)? {
            Some(Extension::Other(name)) if name == "arrow.json" => {}
            Some(Extension::VariableShapeTensor { .. }) => {
                return Err(refusal::variable_shape(field.data_type()));
            }
            Some(_) if !physical => return Err(refusal::extension(field)),
            _ => {}
        }
        Ok(match array.data_type() {
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                let values = Source::List(list.values().clone(), item.clone());
                Self::contiguous(list.offsets().inner(), DLDataType::INT32, values)
            }
            DataType::LargeList(item) => {
                let list = array.as_list::<i64>();
                let values = Source::List(list.values().clone(), item.clone());
                Self::contiguous(list.offsets().inner(), DLDataType::INT64, values)
            }
            DataType::Utf8 => Self::bytes(array.as_bytes::<types::Utf8Type>(), DLDataType::INT32),
            DataType::LargeUtf8 => {
                Self::bytes(array.as_bytes::<types::LargeUtf8Type>(), DLDataType::INT64)
            }
            DataType::Binary => {
                Self::bytes(array.as_bytes::<types::BinaryType>(), DLDataType::INT32)
            }
            DataType::LargeBinary => {
                Self::bytes(array.as_bytes::<types::LargeBinaryType>(), DLDataType::INT64)
            }
            DataType::ListView(item) => {
                let list = array.as_list_view::<i32>();
                Self::list_view(list, item, DLDataType::INT32)
            }
            DataType::LargeListView(item) => {
                let list = array.as_list_view::<i64>();
                Self::list_view(list, item, DLDataType::INT64)
            }
            DataType::Utf8View => Self::views(array.as_string_view()),
            DataType::BinaryView => Self::views(array.as_binary_view()),
            other => return Err(refusal::not_ragged(other)),
        })
    }

    fn contiguous<O: OffsetSizeTrait>(
        offsets: &ScalarBuffer<O>,
        dtype: DLDataType,
        values: Source,
    ) -> Self {
        let ranges = offsets.windows(2).map(|pair| pair[0].as_usize()..pair[1].as_usize());
        let first = offsets.first().map_or(0, |offset| offset.as_usize());
        let offsets = Some(offsets.inner().clone());
        Self { ranges: ranges.collect(), offsets, first, dtype, values }
    }

    fn bytes<T: types::ByteArrayType>(
        array: &arrow_array::GenericByteArray<T>,
        dtype: DLDataType,
    ) -> Self {
        let values = Source::Bytes(array.values().clone());
        Self::contiguous(array.offsets().inner(), dtype, values)
    }

    fn list_view<O: OffsetSizeTrait>(
        list: &GenericListViewArray<O>,
        item: &arrow_schema::FieldRef,
        dtype: DLDataType,
    ) -> Self {
        let rows = list.offsets().iter().zip(list.sizes().iter());
        let ranges = rows.map(|(start, size)| start.as_usize()..start.as_usize() + size.as_usize());
        let values = Source::List(list.values().clone(), item.clone());
        Self { ranges: ranges.collect(), offsets: None, first: 0, dtype, values }
    }

    fn views<T: types::ByteViewType>(array: &arrow_array::GenericByteViewArray<T>) -> Self {
        let view = |(row, &view): (usize, &u128)| {
            let view = arrow_data::ByteView::from(view);
            let len = usize::try_from(view.length).unwrap_or(0);
            if view.length <= arrow_data::MAX_INLINE_VIEW_LEN {
                // Short ones are in the view itself, behind their length.
                return array.views().inner().slice_with_length(16 * row + 4, len);
            }
            let at = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
            array.data_buffers()[at(view.buffer_index)].slice_with_length(at(view.offset), len)
        };
        // What is under a null may be no view at all.
        let nulls = array.nulls();
        let buffers: Vec<Buffer> = array
            .views()
            .iter()
            .enumerate()
            .map(|(row, bits)| match nulls {
                Some(nulls) if nulls.is_null(row) => Buffer::default(),
                _ => view((row, bits)),
            })
            .collect();
        let mut end = 0;
        let ranges = buffers.iter().map(|buffer| {
            let start = end;
            end += buffer.len();
            start..end
        });
        let (ranges, dtype) = (ranges.collect(), DLDataType::INT64);
        Self { ranges, offsets: None, first: 0, dtype, values: Source::Views(buffers) }
    }

    /// The values of the only row there is.
    pub(super) fn only(&self, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            Source::Views(buffers) => Ok(Dense::bytes(buffers[0].clone())),
            _ => self.chunk(&self.ranges[0], physical),
        }
    }

    /// The values, and whether they come to lie elsewhere relative to each other.
    fn values(&self, array: &dyn Array, options: &Export) -> Result<(Prepared, bool), Error> {
        let inner = Export {
            // Masks are of rows: what is in them has none.
            nulls: match options.nulls {
                NullPolicy::Masked => NullPolicy::Refuse,
                policy => policy,
            },
            ..options.clone()
        };
        if let Source::Views(buffers) = &self.values {
            let mut chunks: Vec<Dense> = buffers.iter().cloned().map(Dense::bytes).collect();
            if chunks.is_empty() {
                chunks.push(Dense::bytes(Buffer::default()));
            }
            return Ok((Prepared::new(chunks, CopyReason::Scattered, &inner)?, true));
        }
        let (runs, dropped) = self.runs(array);
        let many = if dropped { CopyReason::NullRows } else { CopyReason::Scattered };
        let mut chunks = Vec::with_capacity(runs.len());
        for run in &runs {
            chunks.push(self.chunk(run, options.physical)?);
        }
        Ok((Prepared::new(chunks, many, &inner)?, runs.len() > 1 || dropped))
    }

    fn chunk(&self, run: &Range<usize>, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            Source::List(values, item) => {
                Dense::new(&values.slice(run.start, run.len()), item, physical)
            }
            Source::Bytes(bytes) => Ok(Dense::bytes(bytes.slice_with_length(run.start, run.len()))),
            Source::Views(_) => Ok(Dense::bytes(Buffer::default())),
        }
    }

    /// Runs of values that belong to valid rows, at least one; and whether null rows have values.
    fn runs(&self, array: &dyn Array) -> (Vec<Range<usize>>, bool) {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut dropped = false;
        for (row, range) in self.ranges.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            if array.is_null(row) {
                dropped = true;
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => runs.push(range.clone()),
            }
        }
        if runs.is_empty() {
            runs.push(0..0);
        }
        (runs, dropped)
    }

    /// The offsets, and what they cost.
    fn offsets(
        &self,
        array: &dyn Array,
        moved: bool,
        wanted: Option<DLDataType>,
        copy: CopyPolicy,
    ) -> Result<(Offsets, Plan), Error> {
        let dtype = wanted.unwrap_or(self.dtype);
        if dtype != DLDataType::INT32 && dtype != DLDataType::INT64 {
            return Err(Error::NoOffsets(dtype));
        }
        let mut reasons = Vec::new();
        if self.offsets.is_none() {
            reasons.push(CopyReason::NoLastOffset);
        } else if moved {
            reasons.push(CopyReason::NullRows);
        } else if self.first > 0 {
            let first = i64::try_from(self.first).map_err(|_| Error::Overflow("offset"))?;
            reasons.push(CopyReason::Rebased(first));
        }
        if dtype != self.dtype {
            reasons.push(CopyReason::Cast { from: self.dtype, to: dtype });
        }
        let rows = self.ranges.len();
        let nbytes = (rows + 1) * dtype.item_bits(false) / 8;
        let buffer = self.offsets.as_ref().filter(|buffer| buffer.len() >= nbytes);
        if buffer.is_none() && reasons.is_empty() {
            // An empty array may have no offset at all.
            reasons.push(CopyReason::NoLastOffset);
        }
        let plan = Plan::of(reasons, nbytes, copy)?;
        if let (true, Some(buffer)) = (plan.is_zero_copy(), buffer) {
            return Ok((Offsets::Share(buffer.slice_with_length(0, nbytes), dtype), plan));
        }
        let mut offsets = vec![0];
        let mut end = 0usize;
        for (row, range) in self.ranges.iter().enumerate() {
            end += if array.is_null(row) { 0 } else { range.len() };
            let offset = i64::try_from(end).map_err(|_| Error::Overflow("offset"))?;
            if dtype == DLDataType::INT32 && i32::try_from(offset).is_err() {
                return Err(Error::OffsetDoesNotFit { offset, dtype });
            }
            offsets.push(offset);
        }
        Ok((Offsets::Make(offsets, dtype), plan))
    }
}

impl Offsets {
    fn run(self) -> Result<ManagedTensor, Error> {
        let shape = |count: usize| i64::try_from(count).map_err(|_| Error::Overflow("length"));
        match self {
            Self::Share(buffer, dtype) => {
                let extent = shape(buffer.len() * 8 / dtype.item_bits(false))?;
                ManagedTensor::over_shared(buffer, dtype, DLPackFlags::default(), &[extent], &[1])
            }
            Self::Make(offsets, dtype) => {
                let extent = shape(offsets.len())?;
                let memory = if dtype == DLDataType::INT32 {
                    Fresh::build::<i32>(offsets.len(), |out| {
                        out.extend(
                            offsets.iter().map(|&offset| i32::try_from(offset).unwrap_or(0)),
                        );
                    })?
                } else {
                    Fresh::build::<i64>(offsets.len(), |out| out.extend_from_slice(&offsets))?
                };
                let flags = DLPackFlags::IS_COPIED;
                ManagedTensor::over_fresh(memory, 0, dtype, flags, &[extent], &[1])
            }
        }
    }
}

/// Whether rows of the type differ in length.
pub(crate) fn is_ragged(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}
