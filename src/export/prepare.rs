//! Plans a conversion, to one tensor or to one for each column, which runs later.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::FieldRef;

use super::column::{Axes, Column};
use super::options::{ExportOptions, NullPolicy, Order};
use super::source::{IntoSource, Source, check_columns, check_type, empty};
use super::{
    cells::CellArray,
    dense_lists::{DenseLists, RowLength},
    lists::read_row,
    share::share,
    table::Matrix,
};
use crate::alloc::Unwritten;
use crate::chunks::column;
use crate::error::Refusals;
use crate::exported::Exported;
use crate::{CopyReason, Error, ManagedTensor, Plan, arrow_types, ffi::DLDataType};

/// A planned conversion that has not run yet.
///
/// It holds the source, and no memory for the result.
#[must_use]
pub struct Prepared {
    values: Kind,
    mask: Option<Box<Kind>>,
}

/// What takes a copy is in boxes: what is shared is moved often, and a move of the largest would take longer than the
/// share.
pub(super) enum Kind {
    /// The result is ready: no copy is needed.
    Shared(ManagedTensor),
    Column(Box<Column>),
    /// A column of lists of one length.
    DenseLists(Box<DenseLists>),
    Matrix(Box<Matrix>),
}

/// Plans what [`tensor`](super::tensor) does, and [`mask`](super::mask) too with [`NullPolicy::Masked`], without
/// running it.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
///
/// let array = BooleanArray::from(vec![true, false, true]);
/// let prepared = export::prepare(&array, &ExportOptions::default())?;
/// assert_eq!(prepared.plan().to_string(), "copies 3 bytes: Arrow stores booleans as bits");
/// assert_eq!((prepared.dtype(), &*prepared.shape()), (DLDataType::BOOL, &[3][..]));
/// assert_eq!(prepared.run()?.values.as_bool_bytes(), Some(&[1, 0, 1][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// Chunks with different dictionaries get the codes of one:
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Array, ArrayRef, DictionaryArray, types::Int8Type};
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{Field, FieldRef};
///
/// let chunk = |words: Vec<&str>| -> ArrayRef {
///     Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>())
/// };
/// let chunks = [chunk(vec!["to", "be"]), chunk(vec!["be", "or"])];
/// let field = Field::new("word", chunks[0].data_type().clone(), true);
/// let options = ExportOptions::default().with_physical(true);
/// let words = export::prepare((&chunks[..], &field), &options)?.run()?;
/// assert_eq!(words.values.as_slice::<i8>(), Some(&[0, 1, 1, 2][..]));
/// assert_eq!(words.dictionary.map(|words| words.len()), Some(3));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`](super::tensor), except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<Prepared, Error> {
    source.into_source().as_table(|source| prepare_column(source, options))
}

/// [`prepare`] of what is a column even if it is a struct, and of tables.
pub(crate) fn prepare_column(
    source: Source<'_>,
    options: &ExportOptions,
) -> Result<Prepared, Error> {
    prepared(source, options, RowLength::Any)
}

/// [`prepare`] of a column of a table: lists are refused, whatever their lengths, because what a column of a table
/// becomes follows from its type.
pub(crate) fn prepare_by_type<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<Prepared, Error> {
    let source = source.into_source();
    if is_lists(source) {
        // The refusal of lists as cells, in which the type of their items counts too.
        chunks(source, options).map(drop)?;
    }
    prepare_column(source, options)
}

/// [`prepare`] of lists whose rows have this length. Another column is prepared as it is.
pub(crate) fn prepare_dense(
    source: Source<'_>,
    options: &ExportOptions,
    length: RowLength<'_>,
) -> Result<Prepared, Error> {
    prepared(source, options, length)
}

fn prepared(
    source: Source<'_>,
    options: &ExportOptions,
    length: RowLength<'_>,
) -> Result<Prepared, Error> {
    let values = values_of(source, options, length)?;
    let mask = match options.nulls {
        NullPolicy::Masked => Some(Box::new(mask_of(source, options, length)?)),
        _ => None,
    };
    Ok(Prepared { values, mask })
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("plan", &self.plan())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// What [`run`](Self::run) will copy, and why.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let prepared = export::prepare(&Int64Array::from(vec![1, 2, 3]), &options)?;
    /// assert_eq!(prepared.plan().to_string(), "copies 12 bytes: int64 becomes float32");
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    pub fn plan(&self) -> Plan {
        let plans = [Some(&self.values), self.mask.as_deref()];
        let steps = plans.into_iter().flatten().filter_map(Kind::plan);
        Plan { steps: steps.flat_map(|plan| &plan.steps).cloned().collect() }
    }

    /// The element type of the values.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let prepared = export::prepare(&Int64Array::from(vec![1, 2, 3]), &options)?;
    /// assert_eq!(prepared.dtype(), DLDataType::FLOAT32);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        match &self.values {
            Kind::Shared(tensor) => tensor.dtype(),
            Kind::Column(column) => column.planned.target.dtype,
            Kind::DenseLists(lists) => lists.dtype(),
            Kind::Matrix(matrix) => matrix.target.dtype,
        }
    }

    /// The shape of the values, in elements.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let prepared = export::prepare(&Int64Array::from(vec![1, 2, 3]), &options)?;
    /// assert_eq!(*prepared.shape(), [3]);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> Cow<'_, [i64]> {
        self.values.shape()
    }

    /// Bytes that the plan copies.
    pub(crate) fn bytes_copied(&self) -> usize {
        let bytes = |kind: &Kind| kind.plan().map_or(0, Plan::bytes_copied);
        bytes(&self.values).saturating_add(self.mask.as_deref().map_or(0, bytes))
    }

    /// Runs the plan.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let prepared = export::prepare(&Int64Array::from(vec![1, 2, 3]), &options)?;
    /// assert_eq!(prepared.run()?.values.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ValueDoesNotFit` and `TooManyValues`, wrapped in `Column` for tables; `OutOfMemory`.
    pub fn run(self) -> Result<Exported, Error> {
        // First the mask, which holds the source too: then the values may have no other holder.
        let mask = self.mask.map(|mask| mask.run()).transpose()?.map(|(mask, _)| mask);
        let (values, dictionary) = self.values.run()?;
        Ok(Exported { values, mask, dictionary })
    }
}

impl Kind {
    fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Shared(_) => None,
            Self::Column(column) => Some(&column.planned.plan),
            Self::DenseLists(lists) => Some(&lists.plan),
            Self::Matrix(matrix) => Some(&matrix.plan),
        }
    }

    pub(super) fn shape(&self) -> Cow<'_, [i64]> {
        match self {
            Self::Shared(tensor) => tensor.shape().into(),
            Self::Column(column) => column.shape().into(),
            Self::DenseLists(lists) => lists.shape[..].into(),
            Self::Matrix(matrix) => matrix.shape[..].into(),
        }
    }

    /// Writes the values to memory as large as they are: a table's matrix in the order that was asked for, all others in
    /// that of the memory, by default row-major.
    pub(super) fn write_to(
        self,
        order: Option<Order>,
        mut out: Unwritten<'_>,
    ) -> Result<(), Error> {
        let is_row_major = order != Some(Order::ColumnMajor);
        match self {
            Self::Matrix(matrix) => matrix.write_to(out),
            Self::Column(column) if is_row_major && column.is_row_major() => column.write_to(out),
            Self::DenseLists(lists) if is_row_major && !lists.is_padded() => {
                Self::Column(lists.into_column()?.into()).write_to(order, out)
            }
            // Rows whose axes are permuted, or which are padded first, and columns of rows.
            other => {
                let (values, _) = other.run()?;
                let axes: Vec<usize> = (0..values.ndim()).rev().collect();
                let values = if is_row_major { values } else { values.transposed(&axes) };
                values.append_to(&mut out)?;
                out.finish();
                Ok(())
            }
        }
    }

    /// Runs the plan; also returns the dictionary, if the values are codes.
    pub(super) fn run(self) -> Result<(ManagedTensor, Option<ArrayRef>), Error> {
        match self {
            Self::Shared(tensor) => Ok((tensor, None)),
            Self::Column(column) => column.run(),
            Self::DenseLists(lists) => lists.run(),
            Self::Matrix(matrix) => Ok((matrix.run()?, None)),
        }
    }
}

/// Plans [`tensor`](super::tensor).
pub(super) fn values_of(
    source: Source<'_>,
    options: &ExportOptions,
    length: RowLength<'_>,
) -> Result<Kind, Error> {
    if let Some(shared) = share(source, options) {
        return shared.map(Kind::Shared);
    }
    Ok(match source {
        Source::Table(batches, schema) => {
            Kind::Matrix(Matrix::new(batches, schema, options)?.into())
        }
        _ if is_lists(source) => Kind::DenseLists(DenseLists::new(source, options, length)?.into()),
        _ => {
            let chunks = chunks(source, options)?;
            let many = CopyReason::Chunks(chunks.len());
            Kind::Column(axes_of(source, Column::new(chunks, many, options)?).into())
        }
    })
}

/// Plans [`mask`](super::mask).
pub(super) fn mask_of(
    source: Source<'_>,
    options: &ExportOptions,
    length: RowLength<'_>,
) -> Result<Kind, Error> {
    Ok(match source {
        Source::Table(batches, schema) => {
            Kind::Matrix(Matrix::mask(batches, schema, options)?.into())
        }
        _ if is_lists(source) => {
            Kind::DenseLists(DenseLists::mask(source, options, length)?.into())
        }
        _ => {
            let chunks = chunks(source, options)?;
            let column = Column::mask(chunks, options.copy, options.threads)?;
            Kind::Column(axes_of(source, column).into())
        }
    })
}

fn is_lists(source: Source<'_>) -> bool {
    let data_type = match source {
        Source::Array(array, None) => array.data_type(),
        Source::Array(_, Some(field)) | Source::Chunks(_, field) => field.data_type(),
        Source::Row(..) | Source::Table(..) => return false,
    };
    arrow_types::is_variable_list(data_type)
}

/// The chunks of a source that is not a table, at least one.
fn chunks(source: Source<'_>, options: &ExportOptions) -> Result<Vec<CellArray>, Error> {
    let field = &source.field();
    let read = |array: &dyn Array| {
        check_type(array, field)?;
        CellArray::new(array, field, options.reading())
    };
    match source {
        Source::Array(array, _) => Ok(vec![read(array)?]),
        Source::Row(array, _, index) => {
            check_type(array, field)?;
            Ok(vec![read_row(array, field, index, options.reading())?])
        }
        Source::Chunks([], _) => Ok(vec![read(&empty(field)?)?]),
        Source::Chunks(arrays, _) => arrays.iter().map(|array| read(array)).collect(),
        Source::Table(..) => unreachable!("a table is a matrix"),
    }
}

/// The column without the axis of rows, if the source is a single row.
fn axes_of(source: Source<'_>, mut column: Column) -> Column {
    if matches!(source, Source::Row(..)) {
        column.planned.axes = Axes::Row;
    }
    column
}

/// A planned conversion of a table's columns to one tensor each.
#[must_use]
pub struct PreparedColumns(Vec<(FieldRef, Prepared)>);

/// Plans what [`columns`](super::columns) does, as [`prepare`] does for one tensor.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, BooleanArray, Float32Array, RecordBatch};
/// use arrow_dlpack::{ExportOptions, export};
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let y: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", y)])?;
/// let options = ExportOptions::default();
/// let prepared = export::prepare_columns(&batch, &options)?;
/// assert_eq!(prepared.plan().to_string(), "copies 2 bytes: Arrow stores booleans as bits");
/// assert_eq!(prepared.run()?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`columns`](super::columns), except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare_columns<'a, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<PreparedColumns, Error> {
    source.into_source().as_table(|source| columns_of(source, options))
}

fn columns_of(source: Source<'_>, options: &ExportOptions) -> Result<PreparedColumns, Error> {
    let Source::Table(batches, schema) = source else {
        let field = source.field().into_owned();
        let prepared = prepare_column(source, options);
        let prepared = prepared.map_err(|error| Error::in_column(field.name(), error))?;
        return Ok(PreparedColumns(vec![(Arc::new(field), prepared)]));
    };
    let count = check_columns(batches, schema)?;
    let (mut columns, mut refusals) = (Vec::with_capacity(count), Refusals::default());
    for (index, field) in schema.fields().iter().enumerate() {
        let prepared = prepare_by_type((&*column(batches, index), &**field), options);
        let prepared = refusals.note(field.name(), prepared)?;
        columns.extend(prepared.map(|prepared| (Arc::clone(field), prepared)));
    }
    refusals.finish()?;
    Ok(PreparedColumns(columns))
}

impl fmt::Debug for PreparedColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.iter().map(|(field, prepared)| (field.name(), prepared)))
            .finish()
    }
}

impl PreparedColumns {
    /// What [`run`](Self::run) will copy, column by column.
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let batch = record_batch!(("x", Float32, [0.5, 1.5]), ("y", Boolean, [true, false]))?;
    /// let prepared = export::prepare_columns(&batch, &ExportOptions::default())?;
    /// assert_eq!(prepared.plan().to_string(), "copies 2 bytes: Arrow stores booleans as bits");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plan(&self) -> Plan {
        let steps = self.0.iter().flat_map(|(_, prepared)| prepared.plan().steps);
        Plan { steps: steps.collect() }
    }

    /// Bytes that the plan copies.
    pub(crate) fn bytes_copied(&self) -> usize {
        let bytes = self.0.iter().map(|(_, prepared)| prepared.bytes_copied());
        bytes.fold(0, usize::saturating_add)
    }

    /// Runs the plan: returns a tensor for each column, with its field.
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let batch = record_batch!(("x", Float32, [0.5, 1.5]), ("y", Boolean, [true, false]))?;
    /// let prepared = export::prepare_columns(&batch, &ExportOptions::default())?;
    /// let columns = prepared.run()?;
    /// assert_eq!((columns[1].0.name().as_str(), columns[1].1.values.shape()), ("y", &[2][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Prepared::run`], wrapped in `Column`.
    pub fn run(self) -> Result<Vec<(FieldRef, Exported)>, Error> {
        let made = |(field, prepared): (FieldRef, Prepared)| match prepared.run() {
            Ok(made) => Ok((field, made)),
            Err(error) => Err(Error::in_column(field.name(), error)),
        };
        self.0.into_iter().map(made).collect()
    }
}
