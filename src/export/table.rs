//! Tables as matrices: each row of the table is a row of the matrix.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
#[cfg(feature = "pyo3")]
use arrow_schema::DataType;
use arrow_schema::{Field, Fields, Schema};

use super::cells::{CellArray, CellBuffer, NullCount};
use super::column::{Target, claim_cells, merge};
use super::options::{ExportOptions, NullPolicy, Order, ReadAs};
use super::source::{check_columns, check_type, empty};
use crate::alloc::{self, Fresh, Unwritten};
use crate::error::Refusals;
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::tensor::TensorSpec;
use crate::{CopyReason, Error, ManagedTensor, Plan, kernels, tensor};

/// A planned matrix, with its cost.
pub(crate) struct Matrix {
    pub(super) plan: Plan,
    pub(super) target: Target,
    order: Order,
    fields: Fields,
    columns: Columns,
    rows: usize,
    pub(super) shape: [i64; 2],
}

/// The chunks of all columns in one vector, with the same number for each column: a vector for each column would
/// dominate the time for a table of a thousand columns and few rows.
struct Columns {
    chunks: Vec<CellArray>,
    each: usize,
    /// Cells in a row of each column.
    widths: Vec<usize>,
    /// The columns whose chunks have different dictionaries.
    of_several: Vec<usize>,
}

impl Columns {
    fn len(&self) -> usize {
        self.chunks.len() / self.each
    }

    /// Columns of the matrix.
    fn width(&self) -> Result<usize, Error> {
        let widths = self.widths.iter().try_fold(0, |sum: usize, &width| sum.checked_add(width));
        widths.ok_or(Error::Overflow("length"))
    }

    fn iter(&self) -> impl Iterator<Item = &[CellArray]> {
        self.chunks.chunks_exact(self.each)
    }
}

impl Matrix {
    /// Plans the conversion of a table's columns.
    pub(super) fn new(
        batches: &[RecordBatch],
        schema: &Schema,
        options: &ExportOptions,
    ) -> Result<Self, Error> {
        let columns = columns(batches, schema, options.reading(), |chunks| {
            if options.nulls == NullPolicy::Refuse {
                let mut nulls = NullCount::default();
                chunks.iter().for_each(|chunk| nulls.add(chunk));
                nulls.refuse()?;
            }
            CellArray::is_of_several_dictionaries(chunks)
        })?;
        let mut reasons = Vec::new();
        if !columns.of_several.is_empty() {
            reasons.push(CopyReason::Dictionaries);
        }
        let mut refusals = Refusals::default();
        let mut common: Option<DLDataType> = None;
        for (field, chunks) in schema.fields().iter().zip(columns.iter()) {
            let dtype = chunks[0].dtype;
            let joined = match (common, options.dtype) {
                (Some(common), None) => {
                    promote(common, dtype).ok_or(Error::CannotCast { from: dtype, to: common })
                }
                _ => Ok(dtype),
            };
            common = refusals.note(field.name(), joined)?.or(common);
        }
        refusals.finish()?;
        let target = Target::new(common.ok_or(Error::NoColumns)?, options)?;
        let mut refusals = Refusals::default();
        for (field, chunks) in schema.fields().iter().zip(columns.iter()) {
            for chunk in chunks {
                match refusals.note(field.name(), target.reasons(chunk))? {
                    Some(more) => merge(&mut reasons, more),
                    None => break,
                }
            }
        }
        refusals.finish()?;
        Self::decide(target, reasons, columns, schema.fields(), options)
    }

    /// [`Self::new`] for the validity of the cells.
    pub(super) fn mask(
        batches: &[RecordBatch],
        schema: &Schema,
        options: &ExportOptions,
    ) -> Result<Self, Error> {
        let columns = columns(batches, schema, options.reading(), |_| Ok(false))?;
        let target = Target::mask(options.threads);
        Self::decide(target, vec![CopyReason::Mask], columns, schema.fields(), options)
    }

    fn decide(
        target: Target,
        mut reasons: Vec<CopyReason>,
        columns: Columns,
        fields: &Fields,
        options: &ExportOptions,
    ) -> Result<Self, Error> {
        let first = columns.iter().next().ok_or(Error::NoColumns)?;
        let rows: usize = first.iter().map(|chunk| chunk.rows).sum();
        if columns.each > 1 {
            reasons.push(CopyReason::Chunks(columns.each));
        }
        let width = columns.width()?;
        let is_one = match options.order {
            Order::RowMajor => columns.len() == 1,
            Order::ColumnMajor => columns.widths == [1],
        };
        if !is_one && (target.is_mask || !is_one_run(&columns, options.order)) {
            reasons.push(match options.order {
                Order::RowMajor => CopyReason::Rows(width),
                Order::ColumnMajor => CopyReason::Columns(width),
            });
        }
        let cells = rows.checked_mul(width).ok_or(Error::Overflow("size in bytes"))?;
        if cells == 0 {
            reasons.clear();
        }
        let extent = |count| i64::try_from(count).map_err(|_| Error::Overflow("length"));
        let shape = [extent(rows)?, extent(width)?];
        let plan = Plan::decide(reasons, target.nbytes(cells)?, options.copy)?;
        let (order, fields) = (options.order, fields.clone());
        Ok(Self { plan, target, order, fields, columns, rows, shape })
    }

    /// Runs the plan.
    pub(super) fn run(mut self) -> Result<ManagedTensor, Error> {
        let Self { plan, target, order, columns, shape, .. } = &mut self;
        let (order, shape) = (*order, *shape);
        let strides = match order {
            Order::RowMajor => [shape[1], 1],
            Order::ColumnMajor => [1, shape[0].max(1)],
        };
        let dtype = target.dtype;
        let spec = TensorSpec::new(dtype, target.flags(), &shape, &strides);
        if plan.is_zero_copy() {
            let run = self.columns.chunks.into_iter().filter_map(|chunk| match chunk.storage {
                CellBuffer::Words(buffer) => Some(buffer),
                CellBuffer::Bits(_) | CellBuffer::Decimals(..) => None,
            });
            return ManagedTensor::from_run(run.collect(), spec);
        }
        if columns.len() == 1 && (order == Order::RowMajor || columns.widths == [1]) {
            if let Some(memory) =
                claim_cells(plan.is_just_requested(), &mut columns.chunks[0].storage)
            {
                return ManagedTensor::from_fresh(memory, spec.copied());
            }
        }
        let nbytes = target.nbytes(columns.chunks.iter().map(CellArray::len).sum())?;
        self.settle()?;
        let memory = Fresh::in_parts(nbytes, |out| self.write(out))?;
        ManagedTensor::from_fresh(memory, spec.copied())
    }

    /// Writes the cells, in the order that was asked for, to memory as large as they are.
    pub(super) fn write_to(mut self, out: Unwritten<'_>) -> Result<(), Error> {
        self.settle()?;
        self.write(out)
    }

    /// Makes the chunks those whose cells are the matrix's.
    fn settle(&mut self) -> Result<(), Error> {
        let Self { target, fields, columns, .. } = self;
        if target.is_mask {
            columns.chunks = alloc::try_collect(columns.chunks.iter().map(CellArray::mask))?;
        }
        for &column in &columns.of_several {
            let (chunks, field) = (&mut columns.chunks[column * columns.each..], &fields[column]);
            CellArray::unify(&mut chunks[..columns.each])
                .map_err(|error| Error::in_column(field.name(), error))?;
        }
        Ok(())
    }

    fn write(&self, out: Unwritten<'_>) -> Result<(), Error> {
        let Self { target, order, fields, columns, rows, .. } = self;
        let (dtype, rows) = (target.dtype, *rows);
        let validities = columns.chunks.iter().map(CellArray::validity);
        let validities = validities.collect::<Result<Vec<_>, Error>>()?;
        let cells = columns.chunks.iter().zip(&validities);
        let cells: Vec<_> = cells.map(|(chunk, nulls)| chunk.cells(nulls.as_ref())).collect();
        let (fill, threads) = (target.fill.as_ref(), target.threads);
        let written = match order {
            Order::RowMajor => {
                let chunks: Vec<_> = cells.chunks_exact(columns.each).collect();
                kernels::interleave_wide(&chunks, &columns.widths, rows, dtype, fill, threads, out)
            }
            Order::ColumnMajor if columns.widths.iter().any(|&width| width != 1) => {
                let chunks: Vec<_> = cells.chunks_exact(columns.each).collect();
                kernels::concat_columns(&chunks, &columns.widths, rows, dtype, fill, out)
            }
            Order::ColumnMajor => kernels::concatenate(&cells, dtype, fill, threads, out),
        };
        written.map_err(|error| of_column(error, fields, rows))
    }
}

/// The error with the name of the column. In column-major order the kernel counted rows over all columns.
fn of_column(error: Error, fields: &Fields, rows: usize) -> Error {
    let Error::ValueDoesNotFit { value, dtype, column, row } = error else { return error };
    let (column, row) = (column + row / rows, row % rows);
    let name = fields.get(column).map_or("", |field| field.name());
    Error::in_column(name, Error::ValueDoesNotFit { value, dtype, column, row })
}

/// A matrix that is a copy, and of which any rows are copied alike: of one chunk without nulls. The rows of a batch take
/// no plan of their own.
#[derive(Clone)]
pub(crate) struct UniformMatrix(Arc<Matrix>);

impl UniformMatrix {
    /// Plans the matrix of these columns. `None` if it is another one, or cannot be planned.
    pub(crate) fn new(
        batch: &RecordBatch,
        schema: &Schema,
        options: &ExportOptions,
    ) -> Option<Self> {
        if options.nulls == NullPolicy::Masked || options.order != Order::RowMajor {
            return None;
        }
        let matrix = Matrix::new(slice::from_ref(batch), schema, options).ok()?;
        let has_rows = |chunk: &CellArray| chunk.valid_cells(&(0..0)).is_some();
        let is_uniform = !matrix.plan.is_zero_copy()
            && matrix.columns.len() > 1
            && matrix.columns.chunks.iter().all(has_rows);
        is_uniform.then(|| Self(Arc::new(matrix)))
    }

    /// These rows.
    ///
    /// # Errors
    ///
    /// As of [`Matrix::run`].
    pub(crate) fn rows(&self, rows: Range<usize>) -> Result<ManagedTensor, Error> {
        let Matrix { target, fields, columns, shape, .. } = &*self.0;
        let cells = columns.chunks.iter().filter_map(|chunk| chunk.valid_cells(&rows));
        let cells: Vec<_> = cells.collect();
        let (chunks, widths) = (cells.chunks_exact(1).collect::<Vec<_>>(), &columns.widths);
        let (dtype, fill, len) = (target.dtype, target.fill.as_ref(), rows.len());
        let nbytes = target.nbytes(len.saturating_mul(columns.width()?))?;
        let memory = Fresh::in_parts(nbytes, |out| {
            kernels::interleave_wide(&chunks, widths, len, dtype, fill, target.threads, out)
        });
        let memory = memory.map_err(|error| of_column(error, fields, len))?;
        let rows = i64::try_from(len).map_err(|_| Error::Overflow("length"))?;
        let flags = target.flags().union(DLPackFlags::IS_COPIED);
        ManagedTensor::from_fresh(
            memory,
            TensorSpec::new(dtype, flags, &[rows, shape[1]], &[shape[1], 1]),
        )
    }
}

/// The chunks of each column, at least one, without the empty ones among several. Otherwise the errors of all columns
/// that cannot be read, or fail `check`.
fn columns(
    batches: &[RecordBatch],
    schema: &Schema,
    read_as: ReadAs,
    check: impl Fn(&[CellArray]) -> Result<bool, Error>,
) -> Result<Columns, Error> {
    let fields = check_columns(batches, schema)?;
    let batches: Vec<_> = batches.iter().filter(|batch| batch.num_rows() > 0).collect();
    let each = batches.len().max(1);
    let mut chunks = Vec::with_capacity(fields * each);
    let mut column = |index: usize, field: &Field| {
        let read = |array: &dyn Array| {
            check_type(array, field)?;
            let cells = CellArray::new(array, field, read_as)?;
            // The cells of a row lie in memory in the order that they have in a row of the matrix.
            if cells.order.is_sorted() {
                return Ok(cells);
            }
            let data_type = field.data_type().clone();
            Err(Error::ManyValues { data_type, shape: cells.item.to_vec() })
        };
        let before = chunks.len();
        for batch in &batches {
            chunks.push(read(batch.column(index))?);
        }
        if batches.is_empty() {
            chunks.push(read(&empty(field)?)?);
        }
        check(&chunks[before..])
    };
    let mut refusals = Refusals::default();
    let mut of_several = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        if refusals.note(field.name(), column(index, field))? == Some(true) {
            of_several.push(index);
        }
    }
    refusals.finish()?;
    let widths = chunks.iter().step_by(each).map(CellArray::cells_in_a_row).collect();
    Ok(Columns { chunks, each, widths, of_several })
}

/// Whether each column begins where the previous one ends, in one allocation, and the order is column-major.
fn is_one_run(columns: &Columns, order: Order) -> bool {
    let mut before: Option<&Buffer> = None;
    columns.chunks.iter().all(|chunk| match &chunk.storage {
        CellBuffer::Words(buffer) => {
            before.replace(buffer).is_none_or(|before| tensor::follows(before, buffer))
        }
        CellBuffer::Bits(_) | CellBuffer::Decimals(..) => false,
    }) && match order {
        Order::RowMajor => columns.len() == 1,
        Order::ColumnMajor => columns.widths.iter().all(|&width| width == 1),
    }
}

/// The dtype of a matrix of columns of these types, which are of numbers; `None` if there is none.
#[cfg(feature = "pyo3")]
pub(crate) fn matrix_dtype<'a>(
    types: impl Iterator<Item = &'a DataType> + Clone,
    options: &ExportOptions,
) -> Option<DLDataType> {
    let mut dtypes = types.map(DLDataType::from_arrow);
    let all = dtypes.clone();
    let first = dtypes.next()??;
    let common = match options.dtype {
        Some(_) => first,
        None => dtypes.try_fold(first, |common, other| promote(common, other?))?,
    };
    let target = Target::new(common, options).ok().filter(|target| target.dtype.bits >= 8)?;
    let converts = |own: Option<DLDataType>| kernels::can_convert(own?, target.dtype).then_some(());
    all.map(converts).collect::<Option<()>>().map(|()| target.dtype)
}

/// The common dtype of two, as of NumPy's `result_type` and pyarrow's `RecordBatch.to_tensor`; signed integers with
/// `uint64` give `float64`, as in NumPy. bfloat16 holds integers of 8 bits; beside others it is a float32, and so are the
/// floats of 8 bits and less. `None` if there is none. The parts of a `Loader`'s source follow a stricter rule
/// (`_loader/merging.py`), which never rounds unasked: they are files that no one compared, and these columns are asked for
/// as one matrix.
fn promote(one: DLDataType, other: DLDataType) -> Option<DLDataType> {
    use DLDataTypeCode as Code;
    let is_small = |dtype: DLDataType| dtype.code == Code::BFLOAT || dtype.code.0 > Code::BOOL.0;
    let (one, other) = if is_small(other) { (other, one) } else { (one, other) };
    if is_small(one) && other != one {
        return match other.code {
            Code::BOOL if one.code == Code::BFLOAT => Some(one),
            Code::INT | Code::UINT if one.code == Code::BFLOAT && other.bits == 8 => Some(one),
            _ => promote(DLDataType::FLOAT32, other),
        };
    }
    let number = |dtype: DLDataType| matches!(dtype.code, Code::INT | Code::UINT | Code::FLOAT);
    let (low, high) = if rank(one) <= rank(other) { (one, other) } else { (other, one) };
    Some(match (low.code, high.code) {
        _ if low == high => low,
        (Code::BOOL, _) if number(high) => high,
        (Code::UINT, Code::INT) if low.bits < high.bits => high,
        (Code::UINT, Code::INT) if low.bits == 64 => DLDataType::FLOAT64,
        (Code::UINT, Code::INT) => DLDataType::scalar(Code::INT, low.bits * 2),
        (Code::UINT | Code::INT, Code::FLOAT) => {
            let needed = if low.bits <= 8 { 16 } else { low.bits.saturating_mul(2).min(64) };
            DLDataType::scalar(Code::FLOAT, high.bits.max(needed))
        }
        (one, other) if one == other && number(low) => {
            DLDataType::scalar(one, low.bits.max(high.bits))
        }
        _ => return None,
    })
}

/// The order of promotion: booleans, unsigned integers, signed integers, floats.
fn rank(dtype: DLDataType) -> Option<usize> {
    use DLDataTypeCode as Code;
    let codes = [Code::BOOL, Code::UINT, Code::INT, Code::FLOAT];
    codes.iter().position(|&code| code == dtype.code)
}
