//! Rows that differ in length: all values one behind the other, and where each row begins.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericListArray, OffsetSizeTrait, types};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::column::Column;
use super::dense::Dense;
use super::options::{ExportOptions, NullPolicy};
use super::refusal;
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::{Error, OffsetsProblem};
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::{self, Fresh, ManagedTensor};
use crate::plan::Plan;

/// Rows of different lengths as tensors: row `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// This is what `torch.nested.nested_tensor_from_jagged` takes, and CSR's two arrays.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ragged {
    /// The values of all rows: 1-D, or n-D if each value is a tensor.
    pub values: ManagedTensor,
    /// One more than rows, from 0 on, in values: int32 or int64.
    pub offsets: ManagedTensor,
    /// Which rows are not null, as booleans; only if they were asked for.
    pub mask: Option<ManagedTensor>,
    /// What the values stand for, if they are the codes of a dictionary.
    pub dictionary: Option<ArrayRef>,
}

/// A ragged tensor that could be made, and what it would cost.
pub(crate) struct PreparedRagged {
    pub(crate) plan: Plan,
    values: Column,
    offsets: Offsets,
    mask: Option<Column>,
}

/// Where the offsets come from.
enum Offsets {
    /// They are there already.
    Share(Buffer, DLDataType),
    /// The sums of the lengths of these rows, those of null ones being 0.
    Make(Bounds, Option<NullBuffer>, DLDataType),
}

/// Where rows and values are.
///
/// An array's offsets may be memory that another language writes to. Of those that are handed on as they are
/// only the first and the last are read, once each; all others are followed in a copy, which is what is checked.
pub(super) struct Rows {
    bounds: Bounds,
    /// Where the first row begins and the last one ends, if they lie one behind the other.
    ends: Option<Range<usize>>,
    /// The array's own offsets, to be handed on.
    own: Option<Buffer>,
    nulls: Option<NullBuffer>,
    values: Source,
}

/// Where each row's values are among all.
enum Bounds {
    Offsets32(ScalarBuffer<i32>),
    Offsets64(ScalarBuffer<i64>),
    /// Offsets and sizes.
    Views32(ScalarBuffer<i32>, ScalarBuffer<i32>),
    Views64(ScalarBuffer<i64>, ScalarBuffer<i64>),
    /// Only their lengths: the values are elsewhere.
    Lengths(Vec<usize>),
}

impl From<ScalarBuffer<i32>> for Bounds {
    fn from(offsets: ScalarBuffer<i32>) -> Self {
        Self::Offsets32(offsets)
    }
}

impl From<ScalarBuffer<i64>> for Bounds {
    fn from(offsets: ScalarBuffer<i64>) -> Self {
        Self::Offsets64(offsets)
    }
}

impl Bounds {
    /// The type of the offsets, or what it would be.
    fn dtype(&self) -> DLDataType {
        match self {
            Self::Offsets32(_) | Self::Views32(..) => DLDataType::INT32,
            Self::Offsets64(_) | Self::Views64(..) | Self::Lengths(_) => DLDataType::INT64,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Offsets32(offsets) => offsets.len().saturating_sub(1),
            Self::Offsets64(offsets) => offsets.len().saturating_sub(1),
            Self::Views32(offsets, _) => offsets.len(),
            Self::Views64(offsets, _) => offsets.len(),
            Self::Lengths(lengths) => lengths.len(),
        }
    }

    /// Of a row that there is.
    fn range(&self, row: usize) -> Range<usize> {
        fn of<O: OffsetSizeTrait>(start: O, end: O) -> Range<usize> {
            start.as_usize()..end.as_usize()
        }
        match self {
            Self::Offsets32(offsets) => of(offsets[row], offsets[row + 1]),
            Self::Offsets64(offsets) => of(offsets[row], offsets[row + 1]),
            Self::Views32(offsets, sizes) => of(offsets[row], offsets[row] + sizes[row]),
            Self::Views64(offsets, sizes) => of(offsets[row], offsets[row] + sizes[row]),
            Self::Lengths(lengths) => 0..lengths[row],
        }
    }

    /// The offsets as they are, if there are any.
    fn buffer(&self) -> Option<&Buffer> {
        match self {
            Self::Offsets32(offsets) => Some(offsets.inner()),
            Self::Offsets64(offsets) => Some(offsets.inner()),
            Self::Views32(..) | Self::Views64(..) | Self::Lengths(_) => None,
        }
    }

    /// Where the first row begins and the last one ends, even if there is none; of offsets only.
    fn ends(&self) -> Option<Range<usize>> {
        match self {
            Self::Offsets32(offsets) => {
                Some(offsets.first()?.as_usize()..offsets.last()?.as_usize())
            }
            Self::Offsets64(offsets) => {
                Some(offsets.first()?.as_usize()..offsets.last()?.as_usize())
            }
            Self::Views32(..) | Self::Views64(..) | Self::Lengths(_) => None,
        }
    }

    /// A copy, in which all rows lie among so many values.
    fn settled(&self, values: usize) -> Result<Self, Error> {
        let beyond = |offset: usize| {
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            Error::BadOffsets(OffsetsProblem::Beyond { offset, values })
        };
        let settled = match self {
            Self::Offsets32(offsets) => Self::Offsets32(rising(offsets)?),
            Self::Offsets64(offsets) => Self::Offsets64(rising(offsets)?),
            Self::Views32(starts, sizes) => Self::Views32(copied(starts)?, copied(sizes)?),
            Self::Views64(starts, sizes) => Self::Views64(copied(starts)?, copied(sizes)?),
            Self::Lengths(_) => return Err(Error::BadOffsets(OffsetsProblem::None)),
        };
        match &settled {
            Self::Views32(starts, sizes) => within(starts, sizes, values).map_err(beyond)?,
            Self::Views64(starts, sizes) => within(starts, sizes, values).map_err(beyond)?,
            _ => match settled.ends() {
                Some(ends) if ends.end > values => return Err(beyond(ends.end)),
                _ => {}
            },
        }
        Ok(settled)
    }

    /// The lengths of the rows, those of null ones being 0.
    fn lengths<'a>(&'a self, nulls: Option<&'a NullBuffer>) -> impl Iterator<Item = usize> + 'a {
        let is_null = move |row| nulls.is_some_and(|nulls| nulls.is_null(row));
        (0..self.rows()).map(move |row| if is_null(row) { 0 } else { self.range(row).len() })
    }
}

fn copied<O: OffsetSizeTrait>(numbers: &[O]) -> Result<ScalarBuffer<O>, Error> {
    Ok(memory::collect(numbers.iter().copied())?.into())
}

/// A copy of offsets, none of which is less than the one before it.
fn rising<O: OffsetSizeTrait>(offsets: &[O]) -> Result<ScalarBuffer<O>, Error> {
    let offsets = copied(offsets)?;
    let wide = |offset: O| offset.to_i64().unwrap_or(i64::MAX);
    if let Some(first) = offsets.first().filter(|&&first| first < O::zero()) {
        let offset = wide(*first);
        return Err(Error::BadOffsets(OffsetsProblem::Negative { index: 0, offset }));
    }
    match offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        None => Ok(offsets),
        Some(index) => {
            let (offset, previous) = (wide(offsets[index + 1]), wide(offsets[index]));
            let index = index + 1;
            Err(Error::BadOffsets(OffsetsProblem::Decreasing { index, offset, previous }))
        }
    }
}

/// The end of the first row that does not lie among so many values, if there is one.
fn within<O: OffsetSizeTrait>(starts: &[O], sizes: &[O], values: usize) -> Result<(), usize> {
    let end = |(start, size): (&O, &O)| match (start.to_usize(), size.to_usize()) {
        (Some(start), Some(size)) => start.saturating_add(size),
        _ => usize::MAX,
    };
    match starts.iter().zip(sizes).map(end).find(|&end| end > values) {
        Some(end) => Err(end),
        None => Ok(()),
    }
}

enum Source {
    List(ArrayRef, FieldRef),
    Bytes(Buffer),
    /// Of each row, wherever it is.
    Views(Vec<Buffer>),
}

impl PreparedRagged {
    /// Decides what becomes of an array of lists, texts or binaries.
    pub(crate) fn new(
        array: &dyn Array,
        field: &Field,
        options: &ExportOptions,
        offset_type: Option<DLDataType>,
    ) -> Result<Self, Error> {
        let rows = Rows::read(array, field, options.physical)?;
        let as_it_is = options.copy != CopyPolicy::Always && rows.is_shared(offset_type);
        let rows = if as_it_is { rows } else { rows.settled()? };
        if options.nulls == NullPolicy::Refuse && array.null_count() > 0 {
            return Err(refusal::nulls(array, array.null_count()));
        }
        let (values, moved) = rows.values(options)?;
        let (offsets, offsets_plan) = rows.offsets(moved, offset_type, options.copy)?;
        let mut plan = values.plan.clone().and(offsets_plan);
        let mask = match options.nulls {
            NullPolicy::Masked => {
                let mask = Dense::of_rows(array)?;
                Some(Column::mask(vec![mask], options.copy)?)
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
        let (values, dictionary) = self.values.run()?;
        let offsets = self.offsets.run()?;
        let mask = self.mask.map(Column::run).transpose()?.map(|(mask, _)| mask);
        Ok(Ragged { values, offsets, mask, dictionary })
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
        let (bounds, values) = match array.data_type() {
            DataType::List(item) => Self::lists(array.as_list::<i32>(), item),
            DataType::LargeList(item) => Self::lists(array.as_list::<i64>(), item),
            DataType::Utf8 => Self::bytes(array.as_bytes::<types::Utf8Type>()),
            DataType::LargeUtf8 => Self::bytes(array.as_bytes::<types::LargeUtf8Type>()),
            DataType::Binary => Self::bytes(array.as_bytes::<types::BinaryType>()),
            DataType::LargeBinary => Self::bytes(array.as_bytes::<types::LargeBinaryType>()),
            DataType::ListView(item) => {
                let list = array.as_list_view::<i32>();
                let bounds = Bounds::Views32(list.offsets().clone(), list.sizes().clone());
                (bounds, Source::List(list.values().clone(), item.clone()))
            }
            DataType::LargeListView(item) => {
                let list = array.as_list_view::<i64>();
                let bounds = Bounds::Views64(list.offsets().clone(), list.sizes().clone());
                (bounds, Source::List(list.values().clone(), item.clone()))
            }
            DataType::Utf8View => Self::views(array.as_string_view())?,
            DataType::BinaryView => Self::views(array.as_binary_view())?,
            other => return Err(refusal::not_ragged(other)),
        };
        let (own, nulls) = (bounds.buffer().cloned(), array.nulls().cloned());
        let rows = Self { ends: bounds.ends(), bounds, own, nulls, values };
        rows.check_ends()?;
        Ok(rows)
    }

    /// Whether the offsets can be handed on as they are.
    fn is_shared(&self, wanted: Option<DLDataType>) -> bool {
        let own = self.bounds.dtype();
        let starts_at_0 = self.ends.as_ref().is_some_and(|ends| ends.start == 0);
        starts_at_0 && self.null_count() == 0 && wanted.is_none_or(|wanted| wanted == own)
    }

    /// The same rows, which nobody else can change.
    pub(super) fn settled(self) -> Result<Self, Error> {
        let Self { bounds, own, nulls, values, .. } = self;
        let nulls = nulls.map(|nulls| {
            memory::probe_alloc(nulls.len().div_ceil(8))?;
            let bits = nulls.inner().sliced();
            let bits = BooleanBuffer::new(Buffer::from_slice_ref(bits.as_slice()), 0, nulls.len());
            Ok::<_, Error>(NullBuffer::new(bits))
        });
        let bounds = match &values {
            Source::Views(_) => bounds,
            Source::List(items, _) => bounds.settled(items.len())?,
            Source::Bytes(bytes) => bounds.settled(bytes.len())?,
        };
        Ok(Self { ends: bounds.ends(), bounds, own, nulls: nulls.transpose()?, values })
    }

    fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    fn check_ends(&self) -> Result<(), Error> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let values = match &self.values {
            Source::List(items, _) => items.len(),
            Source::Bytes(bytes) => bytes.len(),
            Source::Views(_) => return Ok(()),
        };
        let wide = |offset: usize| i64::try_from(offset).unwrap_or(i64::MAX);
        let (offset, previous) = (wide(ends.end), wide(ends.start));
        if ends.end > values {
            return Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }));
        }
        if ends.end < ends.start {
            let index = self.bounds.rows();
            return Err(Error::BadOffsets(OffsetsProblem::Decreasing { index, offset, previous }));
        }
        Ok(())
    }

    fn lists<O: OffsetSizeTrait>(list: &GenericListArray<O>, item: &FieldRef) -> (Bounds, Source)
    where
        ScalarBuffer<O>: Into<Bounds>,
    {
        let bounds = list.offsets().inner().clone().into();
        (bounds, Source::List(list.values().clone(), item.clone()))
    }

    fn bytes<T: types::ByteArrayType>(array: &GenericByteArray<T>) -> (Bounds, Source)
    where
        ScalarBuffer<T::Offset>: Into<Bounds>,
    {
        let bounds = array.offsets().inner().clone().into();
        (bounds, Source::Bytes(array.values().clone()))
    }

    fn views<T: types::ByteViewType>(
        array: &arrow_array::GenericByteViewArray<T>,
    ) -> Result<(Bounds, Source), Error> {
        // Each view is read once.
        let view = |(row, &view): (usize, &u128)| {
            let view = arrow_data::ByteView::from(view);
            let len = usize::try_from(view.length).unwrap_or(0);
            if view.length <= arrow_data::MAX_INLINE_VIEW_LEN {
                // Short ones are in the view itself, behind their length.
                return Ok(array.views().inner().slice_with_length(16 * row + 4, len));
            }
            let at = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
            let block = array.data_buffers().get(at(view.buffer_index));
            let values = block.map_or(0, Buffer::len);
            match (block, at(view.offset).saturating_add(len)) {
                (Some(block), end) if end <= values => {
                    Ok(block.slice_with_length(at(view.offset), len))
                }
                (_, end) => {
                    let offset = i64::try_from(end).unwrap_or(i64::MAX);
                    Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }))
                }
            }
        };
        // What is under a null may be no view at all.
        let nulls = array.nulls();
        let views = array.views().iter().enumerate();
        let buffers = memory::try_collect(views.map(|(row, bits)| match nulls {
            Some(nulls) if nulls.is_null(row) => Ok(Buffer::default()),
            _ => view((row, bits)),
        }))?;
        let bounds = Bounds::Lengths(memory::collect(buffers.iter().map(Buffer::len))?);
        Ok((bounds, Source::Views(buffers)))
    }

    /// The values of the only row there is.
    pub(super) fn only(&self, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            Source::Views(buffers) => Ok(Dense::bytes(buffers[0].clone())),
            _ => self.chunk(&self.bounds.range(0), physical),
        }
    }

    /// The values, and whether they come to lie elsewhere relative to each other.
    fn values(&self, options: &ExportOptions) -> Result<(Column, bool), Error> {
        let inner = options
            .clone()
            // Masks are of rows: what is in them has none.
            .with_nulls(match options.nulls {
                NullPolicy::Masked => NullPolicy::Refuse,
                policy => policy,
            });
        if let Source::Views(buffers) = &self.values {
            let mut chunks = memory::collect(buffers.iter().cloned().map(Dense::bytes))?;
            if chunks.is_empty() {
                chunks.push(Dense::bytes(Buffer::default()));
            }
            return Ok((Column::new(chunks, CopyReason::Scattered, &inner)?, true));
        }
        let (runs, dropped) = self.runs()?;
        let many = if dropped { CopyReason::NullRows } else { CopyReason::Scattered };
        let chunks = runs.iter().map(|run| self.chunk(run, options.physical));
        let chunks = memory::try_collect(chunks)?;
        let values = Column::new(chunks, many, &inner).map_err(refusal::in_rows)?;
        Ok((values, runs.len() > 1 || dropped))
    }

    fn chunk(&self, run: &Range<usize>, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            Source::List(values, item) => {
                let values = values.slice(run.start, run.len());
                Dense::new(&values, item, physical).map_err(refusal::in_rows)
            }
            Source::Bytes(bytes) => Ok(Dense::bytes(bytes.slice_with_length(run.start, run.len()))),
            Source::Views(_) => Ok(Dense::bytes(Buffer::default())),
        }
    }

    /// Runs of values that belong to valid rows, at least one; and whether null rows have values.
    fn runs(&self) -> Result<(Vec<Range<usize>>, bool), Error> {
        if let (Some(ends), 0) = (&self.ends, self.null_count()) {
            return Ok((vec![ends.clone()], false));
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut dropped = false;
        for row in 0..self.bounds.rows() {
            let range = self.bounds.range(row);
            if range.is_empty() {
                continue;
            }
            if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                dropped = true;
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => {
                    let nbytes = 2 * size_of_val(runs.as_slice());
                    runs.try_reserve(1).map_err(|_| Error::OutOfMemory { nbytes })?;
                    runs.push(range);
                }
            }
        }
        if runs.is_empty() {
            runs.push(0..0);
        }
        Ok((runs, dropped))
    }

    /// The offsets, and what they cost.
    fn offsets(
        self,
        moved: bool,
        wanted: Option<DLDataType>,
        copy: CopyPolicy,
    ) -> Result<(Offsets, Plan), Error> {
        let null_count = self.null_count();
        let Self { bounds, ends, nulls, own: buffer, .. } = self;
        let own = bounds.dtype();
        let dtype = wanted.unwrap_or(own);
        if dtype != DLDataType::INT32 && dtype != DLDataType::INT64 {
            return Err(Error::NoOffsets(dtype));
        }
        let nbytes = (bounds.rows() + 1) * dtype.item_bits(false) / 8;
        let first = ends.as_ref().map_or(0, |ends| ends.start);
        // An empty array may have no offset at all.
        let buffer = buffer.filter(|buffer| buffer.len() >= nbytes.min(8));
        let mut reasons = Vec::new();
        if buffer.is_none() {
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
            return Ok((Offsets::Share(buffer.slice_with_length(0, nbytes), dtype), plan));
        }
        let last = match (ends, null_count) {
            (Some(ends), 0) => Some(ends.len()),
            _ => bounds.lengths(nulls.as_ref()).try_fold(0, usize::checked_add),
        };
        let last = last.ok_or(Error::Overflow("offset"))?;
        let offset = i64::try_from(last).map_err(|_| Error::Overflow("offset"))?;
        if dtype == DLDataType::INT32 && i32::try_from(offset).is_err() {
            return Err(Error::OffsetDoesNotFit { offset, dtype });
        }
        Ok((Offsets::Make(bounds, nulls, dtype), plan))
    }
}

impl Offsets {
    fn run(self) -> Result<ManagedTensor, Error> {
        let shape = |count: usize| i64::try_from(count).map_err(|_| Error::Overflow("length"));
        match self {
            Self::Share(buffer, dtype) => {
                let extent = shape(buffer.len() * 8 / dtype.item_bits(false))?;
                ManagedTensor::from_shared(buffer, dtype, DLPackFlags::default(), &[extent], &[1])
            }
            Self::Make(bounds, nulls, dtype) => {
                let count = bounds.rows() + 1;
                let memory = if dtype == DLDataType::INT32 {
                    Fresh::build::<i32>(count, |out| sums(&bounds, nulls.as_ref(), out))?
                } else {
                    Fresh::build::<i64>(count, |out| sums(&bounds, nulls.as_ref(), out))?
                };
                let (extent, flags) = (shape(count)?, DLPackFlags::IS_COPIED);
                ManagedTensor::from_fresh(memory, 0, dtype, flags, &[extent], &[1])
            }
        }
    }
}

/// Where each row begins if they lie one behind the other, and where the last one ends. The type is wide
/// enough.
fn sums<O: OffsetSizeTrait>(bounds: &Bounds, nulls: Option<&NullBuffer>, out: &mut Vec<O>) {
    let mut end = 0;
    out.push(O::zero());
    out.extend(bounds.lengths(nulls).map(|length| {
        end += length;
        O::usize_as(end)
    }));
}
