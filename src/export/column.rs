//! One column: what its plan depends on, the conversion of its values, and the tensor that is then built of its chunks.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::cells::{CellArray, CellBuffer, NullCount, are_several};
use super::options::{ExportOptions, NullPolicy};
use crate::alloc::{self, Fresh, Unwritten};
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::kernels::{self, FillBytes, Threads};
use crate::tensor::{self, TensorSpec};
use crate::{CopyPolicy, CopyReason, Error, ManagedTensor, Number, Plan};

/// A planned tensor: what it costs, and what becomes of its chunks.
pub(super) struct ColumnPlan {
    pub(super) plan: Plan,
    pub(super) target: Target,
    /// Whether more than one chunk has cells.
    pub(super) is_many: bool,
    /// Whether the chunks have different dictionaries.
    of_several: bool,
    pub(super) rows: i64,
    pub(super) axes: Axes,
}

/// A planned tensor with its chunks.
pub(super) struct Column {
    pub(super) planned: ColumnPlan,
    chunks: Vec<CellArray>,
    /// Whether the only chunk is new memory, which has the values that were planned.
    is_made: bool,
}

/// What the axis of rows becomes.
#[derive(Clone, Copy)]
pub(super) enum Axes {
    Rows,
    /// Nothing: it has extent 1.
    Row,
    /// The axes of lists of one length, whose values the rows are.
    Lists([i64; 2]),
}

impl Axes {
    fn shape(self, mut shape: Vec<i64>) -> Vec<i64> {
        match self {
            Self::Rows => {}
            Self::Row => drop(shape.remove(0)),
            Self::Lists(lists) => drop(shape.splice(0..1, lists)),
        }
        shape
    }

    fn strides(self, mut strides: Vec<i64>) -> Vec<i64> {
        match self {
            Self::Rows => {}
            Self::Row => drop(strides.remove(0)),
            Self::Lists([_, length]) => {
                strides.insert(0, strides[0].saturating_mul(length.max(1)));
            }
        }
        strides
    }

    /// Values that the first axis has for each row of the source.
    fn values_in_a_row(self) -> usize {
        match self {
            Self::Rows | Self::Row => 1,
            Self::Lists([_, length]) => usize::try_from(length).unwrap_or(1),
        }
    }
}

/// The plan of a mask of this many cells.
pub(super) fn mask_plan(cells: usize, copy: CopyPolicy) -> Result<Plan, Error> {
    Plan::decide(if cells == 0 { Vec::new() } else { vec![CopyReason::Mask] }, cells, copy)
}

impl ColumnPlan {
    /// The plan of the validity, in place of the values.
    pub(super) fn into_mask(self, cells: usize, copy: CopyPolicy) -> Result<Self, Error> {
        let target = Target::mask(self.target.threads);
        Ok(Self { plan: mask_plan(cells, copy)?, target, ..self })
    }

    /// The column of these chunks, at least one, of which a [`Survey`] was made.
    ///
    /// # Errors
    ///
    /// `InvalidArray` if they have changed since then, so that they are not what was planned.
    pub(super) fn with_chunks(self, mut chunks: Vec<CellArray>) -> Result<Column, Error> {
        let mut filled = (0..chunks.len()).filter(|&index| chunks[index].len() > 0);
        let (first, is_many) = (filled.next(), filled.next().is_some());
        if rows(&chunks)? != self.rows || is_many != self.is_many {
            return Err(Error::offsets_changed());
        }
        if let (Some(only), false) = (first, is_many) {
            chunks.swap(0, only);
            chunks.truncate(1);
        }
        let is_as_planned = |only: &CellArray| only.is_made && self.target.fill.is_none();
        let is_made = matches!(&chunks[..], [only] if is_as_planned(only));
        Ok(Column { planned: self, chunks, is_made })
    }

    /// [`Self::with_chunks`] for bytes that have been put together in memory of their own.
    pub(super) fn with_gathered(self, bytes: Buffer) -> Result<Column, Error> {
        let chunks = vec![CellArray::bytes(bytes)];
        match rows(&chunks)? == self.rows {
            true => Ok(Column { planned: self, chunks, is_made: true }),
            false => Err(Error::offsets_changed()),
        }
    }
}

impl Column {
    /// Plans a tensor of at least one chunk of one type; `many` is the reason for the copy of several chunks.
    pub(super) fn new(
        chunks: Vec<CellArray>,
        many: CopyReason,
        options: &ExportOptions,
    ) -> Result<Self, Error> {
        let mut survey = Survey::new(options);
        chunks.iter().for_each(|chunk| survey.add(chunk));
        survey.finish(many)?.with_chunks(chunks)
    }

    /// [`Self::new`] for the validity of the chunks.
    pub(super) fn mask(
        chunks: Vec<CellArray>,
        copy: CopyPolicy,
        threads: Threads,
    ) -> Result<Self, Error> {
        let planned = ColumnPlan {
            plan: mask_plan(chunks.iter().map(CellArray::len).sum(), copy)?,
            target: Target::mask(threads),
            is_many: chunks.len() > 1,
            of_several: false,
            rows: rows(&chunks)?,
            axes: Axes::Rows,
        };
        Ok(Self { planned, chunks, is_made: false })
    }

    /// Whether the values become another dtype: only then some may not fit, and only then no memory is taken over.
    pub(super) fn is_cast(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.dtype != self.planned.target.dtype)
    }

    pub(super) fn shape(&self) -> Vec<i64> {
        self.planned.axes.shape(self.chunks[0].shape(self.planned.rows))
    }

    /// Runs the plan. Also returns the dictionary, if the values are codes.
    pub(super) fn run(mut self) -> Result<(ManagedTensor, Option<ArrayRef>), Error> {
        self.settle()?;
        let dictionary = self.chunks[0].dictionary.clone();
        Ok((self.into_tensor()?, dictionary))
    }

    /// Writes the values, as they come to lie, to memory as large as they are.
    pub(super) fn write_to(mut self, out: Unwritten<'_>) -> Result<(), Error> {
        self.settle()?;
        self.write(out)
    }

    /// Whether the values come to lie in row-major order.
    pub(super) fn is_row_major(&self) -> bool {
        self.chunks[0].order.is_sorted()
    }

    /// Makes the chunks those whose cells are the values.
    fn settle(&mut self) -> Result<(), Error> {
        if self.planned.target.is_mask {
            self.chunks = alloc::try_collect(self.chunks.iter().map(CellArray::mask))?;
        }
        if self.planned.of_several {
            CellArray::unify(&mut self.chunks)?;
        }
        Ok(())
    }

    fn into_tensor(mut self) -> Result<ManagedTensor, Error> {
        let shape = self.shape();
        let Self { planned, chunks, is_made } = &mut self;
        let ColumnPlan { plan, target, rows, axes, .. } = planned;
        let strides = axes.strides(chunks[0].strides(*rows));
        let dtype = target.dtype;
        let spec = TensorSpec::new(dtype, target.flags(), &shape, &strides);
        if plan.is_zero_copy() {
            let buffer = match &chunks[0].storage {
                CellBuffer::Words(buffer) => buffer.clone(),
                // Only without cells: booleans and decimals with cells are copied.
                CellBuffer::Bits(_) | CellBuffer::Decimals(..) => Buffer::default(),
            };
            return ManagedTensor::from_shared(buffer, spec);
        }
        let is_made = *is_made && chunks[0].dtype == dtype;
        if let Some(memory) =
            claim_cells(is_made || plan.is_just_requested(), &mut chunks[0].storage)
        {
            return ManagedTensor::from_fresh(memory, spec.copied());
        }
        let nbytes = target.nbytes(chunks.iter().map(CellArray::len).sum())?;
        let memory = Fresh::in_parts(nbytes, |out| self.write(out))?;
        ManagedTensor::from_fresh(memory, spec.copied())
    }

    fn write(&self, out: Unwritten<'_>) -> Result<(), Error> {
        let Self { planned: ColumnPlan { target, axes, .. }, chunks, .. } = self;
        let validities = alloc::try_collect(chunks.iter().map(CellArray::validity))?;
        let cells = chunks.iter().zip(&validities);
        let cells = alloc::collect(cells.map(|(chunk, nulls)| chunk.cells(nulls.as_ref())))?;
        let in_a_row = chunks[0].cells_in_a_row().saturating_mul(axes.values_in_a_row());
        let fill = target.fill.as_ref();
        kernels::concatenate(&cells, target.dtype, fill, target.threads, out)
            .map_err(|error| error.in_row(|cell| cell / in_a_row.max(1)))
    }
}

fn rows(chunks: &[CellArray]) -> Result<i64, Error> {
    extent(chunks.iter().try_fold(0_usize, |rows, chunk| rows.checked_add(chunk.rows)))
}

/// The buffer itself, if it has all that the plan asks for and no other owner: this is so for randomly drawn rows, once
/// their batches have been dropped.
pub(super) fn claim_cells(is_made: bool, storage: &mut CellBuffer) -> Option<Fresh> {
    let CellBuffer::Words(buffer) = storage else { return None };
    if !is_made {
        return None;
    }
    match tensor::claim(std::mem::take(buffer)) {
        Ok(memory) => Some(memory),
        Err((shared, _)) => {
            *buffer = shared;
            None
        }
    }
}

/// Facts about the chunks of a column, added up chunk by chunk, so that the chunks need not exist at once.
pub(super) struct Survey<'a> {
    options: &'a ExportOptions,
    /// The target of all chunks.
    target: Option<Result<Target, Error>>,
    reasons: Vec<CopyReason>,
    /// The type of the last chunk.
    data_type: DataType,
    /// Counted only if nulls are refused.
    nulls: NullCount,
    dictionaries: Vec<ArrayRef>,
    /// `None` if they overflow: chunks without cells take no memory.
    rows: Option<usize>,
    cells: usize,
    /// How many chunks have cells.
    filled: usize,
}

impl<'a> Survey<'a> {
    pub(super) fn new(options: &'a ExportOptions) -> Self {
        Self {
            options,
            target: None,
            reasons: Vec::new(),
            data_type: DataType::Null,
            nulls: NullCount::default(),
            dictionaries: Vec::new(),
            rows: Some(0),
            cells: 0,
            filled: 0,
        }
    }

    pub(super) fn add(&mut self, chunk: &CellArray) {
        self.rows = self.rows.and_then(|rows| rows.checked_add(chunk.rows));
        self.cells += chunk.len();
        self.filled += usize::from(chunk.len() > 0);
        if self.options.nulls == NullPolicy::Refuse {
            self.nulls.add(chunk);
        }
        let is_new =
            |own: &&ArrayRef| !self.dictionaries.last().is_some_and(|last| Arc::ptr_eq(last, own));
        self.dictionaries.extend(chunk.dictionary.as_ref().filter(is_new).cloned());
        self.data_type.clone_from(&chunk.data_type);
        let target = self.target.get_or_insert_with(|| Target::new(chunk.dtype, self.options));
        if let Ok(known) = target {
            match known.reasons(chunk) {
                Ok(more) => merge(&mut self.reasons, more),
                Err(error) => *target = Err(error),
            }
        }
    }

    /// Adds a chunk that is copied for the same reasons as the one before.
    pub(super) fn add_uniform(&mut self, rows: usize, cells: usize) {
        self.rows = self.rows.and_then(|sum| sum.checked_add(rows));
        self.cells += cells;
        self.filled += usize::from(cells > 0);
    }

    /// The plan for the chunks, of which there was at least one; `many` is the reason for a copy of several.
    pub(super) fn finish(self, many: CopyReason) -> Result<ColumnPlan, Error> {
        let Self { options, target, mut reasons, data_type, nulls, dictionaries, .. } = self;
        let Self { rows, cells, filled, .. } = self;
        let rows = extent(rows)?;
        nulls.refuse()?;
        let target = target.unwrap_or(Err(Error::Overflow("number of chunks")))?;
        let of_several = filled != 1 && are_several(&dictionaries, &data_type)?;
        if filled > 1 {
            reasons.extend(of_several.then_some(CopyReason::Dictionaries));
            reasons.push(many);
        }
        if cells == 0 {
            // An empty result needs no copy.
            reasons.clear();
        }
        let plan = Plan::decide(reasons, target.nbytes(cells)?, options.copy)?;
        Ok(ColumnPlan { plan, target, is_many: filled > 1, of_several, rows, axes: Axes::Rows })
    }
}

/// The number of rows as an extent.
pub(super) fn extent(rows: Option<usize>) -> Result<i64, Error> {
    rows.and_then(|rows| i64::try_from(rows).ok()).ok_or(Error::Overflow("length"))
}

/// Adds reasons that are not listed yet, and sums the counts of nulls.
pub(super) fn merge(reasons: &mut Vec<CopyReason>, more: Vec<CopyReason>) {
    for reason in more {
        let known = reasons.iter_mut().find(|known| match (&**known, &reason) {
            (CopyReason::Filled { .. }, CopyReason::Filled { .. }) => true,
            (known, reason) => known == reason,
        });
        match (known, reason) {
            (Some(CopyReason::Filled { count: sum }), CopyReason::Filled { count }) => {
                *sum += count
            }
            (Some(_), _) => {}
            (None, reason) => reasons.push(reason),
        }
    }
}

/// The conversion of the values, which is the same for all columns of a tensor.
pub(super) struct Target {
    pub(super) dtype: DLDataType,
    /// The value that replaces nulls; `None` keeps the values of null slots.
    pub(super) fill: Option<FillBytes>,
    /// Whether the result is the validity of the values.
    pub(super) is_mask: bool,
    pub(super) threads: Threads,
}

impl Target {
    /// The target of a mask.
    pub(super) fn mask(threads: Threads) -> Self {
        Self { dtype: DLDataType::BOOL, fill: None, is_mask: true, threads }
    }

    /// The target for values of the dtype `source` under `options`.
    pub(super) fn new(source: DLDataType, options: &ExportOptions) -> Result<Self, Error> {
        let natural = if options.nulls == NullPolicy::Nan { with_nan(source) } else { source };
        let dtype = options.dtype.unwrap_or(natural);
        let value = match options.nulls {
            NullPolicy::Refuse | NullPolicy::Masked => None,
            NullPolicy::Fill(value) => Some(value),
            NullPolicy::Nan => Some(Number::Float(f64::NAN)),
        };
        let encode =
            |value: Number| value.encode(dtype).ok_or(Error::FillDoesNotFit { value, dtype });
        let (fill, threads) = (value.map(encode).transpose()?, options.threads);
        Ok(Self { dtype, fill, is_mask: false, threads })
    }

    /// Why the cells of a chunk cannot be shared.
    pub(super) fn reasons(&self, chunk: &CellArray) -> Result<Vec<CopyReason>, Error> {
        let (from, to) = (chunk.dtype, self.dtype);
        if !kernels::can_convert(from, to) {
            return Err(Error::CannotCast { from, to });
        }
        let mut reasons = Vec::new();
        let count = chunk.null_count();
        if count > 0 && (self.fill.is_some() || chunk.is_made) {
            reasons.push(CopyReason::Filled { count });
        }
        match &chunk.storage {
            CellBuffer::Bits(_) => reasons.push(CopyReason::Bits),
            CellBuffer::Words(bytes) if from == DLDataType::BOOL => {
                reasons.extend((!kernels::are_bools(bytes)?).then_some(CopyReason::BoolBytes));
            }
            CellBuffer::Decimals(..) => reasons.push(CopyReason::Decimals(to)),
            CellBuffer::Words(_) => {}
        }
        if from != to && !matches!(chunk.storage, CellBuffer::Decimals(..)) {
            reasons.push(CopyReason::Cast { from, to });
        }
        Ok(reasons)
    }

    /// Bytes of this many cells.
    pub(super) fn nbytes(&self, cells: usize) -> Result<usize, Error> {
        let nbytes = cells.checked_mul(self.dtype.item_bits(true) / 8);
        nbytes.ok_or(Error::Overflow("size in bytes"))
    }

    pub(super) fn flags(&self) -> DLPackFlags {
        // Arrow has no layout for packed elements of under 8 bits.
        if self.dtype.bits < 8 {
            DLPackFlags::IS_SUBBYTE_TYPE_PADDED
        } else {
            DLPackFlags::default()
        }
    }
}

/// The dtype of pyarrow's `null_to_nan`: the smallest float type that is no narrower than `float32` for values that
/// are not floats.
pub(super) fn with_nan(dtype: DLDataType) -> DLDataType {
    match dtype.code {
        DLDataTypeCode::INT | DLDataTypeCode::UINT if dtype.bits > 16 => DLDataType::FLOAT64,
        DLDataTypeCode::INT | DLDataTypeCode::UINT | DLDataTypeCode::BOOL => DLDataType::FLOAT32,
        _ => dtype,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int64Type};
    use arrow_array::{
        Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int64Array,
        TimestampSecondArray, UInt64Array,
    };
    use arrow_select::take::take;

    use super::super::{ExportOptions, NullPolicy, prepare};
    use crate::copy::CopyPolicy;
    use crate::ffi::DLPackFlags;

    /// Randomly drawn rows are an example. A buffer with other owners is copied, because they may be read as it is.
    #[test]
    fn a_result_without_other_holders_is_not_copied_again() {
        let pair = |one, other| Some(vec![Some(one), Some(other)]);
        let pairs = [pair(1, 2), pair(3, 4)];
        let arrays: [ArrayRef; 6] = [
            Arc::new(Int64Array::from(vec![1, 2])),
            Arc::new(Int64Array::from(vec![Some(1), None])),
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(pairs, 2)),
            Arc::new(FixedSizeBinaryArray::try_from_iter([b"ab", b"cd"].into_iter()).unwrap()),
            Arc::new(TimestampSecondArray::from(vec![1, 2])),
            Arc::new(["a", "b"].into_iter().collect::<DictionaryArray<Int8Type>>()),
        ];
        let share = ExportOptions::default().with_physical(true).with_nulls(NullPolicy::Masked);
        let options = share.clone().with_copy(CopyPolicy::Always);
        let cases = arrays.iter().flat_map(|array| [(array, false), (array, true)]);
        for (array, is_held) in cases {
            let drawn = take(array, &UInt64Array::from(vec![1, 0, 1]), None).unwrap();
            let address = prepare(&drawn, &share).unwrap().run().unwrap().values.data();
            let holder = is_held.then(|| Arc::clone(&drawn));
            let prepared = prepare(&drawn, &options).unwrap();
            drop(drawn);
            let tensor = prepared.run().unwrap().values;
            assert_eq!(tensor.data() == address, !is_held, "{}", array.data_type());
            assert_eq!(tensor.flags(), DLPackFlags::IS_COPIED);
            drop(holder);
        }
    }
}
