//! Arrow to DLPack: which types, which nulls, which copies.
//!
//! Three doors lead out of Arrow:
//!
//! - **share** ([`to_dlpack`], the default): zero-copy and read-only, because others may hold the
//!   array too;
//! - **copy** ([`CopyPolicy::Always`]): the consumer's own memory, writable, flagged `IS_COPIED`;
//! - **give** ([`give`]): the array is handed over, zero-copy and writable, if nobody else holds it.
//!
//! Whatever cannot be shared as it is (booleans, filled nulls, chunks, tables) is copied once, if that is
//! allowed; [`explain`] tells before.

mod column;
mod dense;
mod give;
mod matrix;
mod primitive;
mod ragged;
mod refusal;
mod row;

#[cfg(feature = "pyo3")]
pub(crate) use dense::same_values;
#[cfg(feature = "pyo3")]
pub(crate) use primitive::vector;
pub(crate) use ragged::{PreparedRagged, is_ragged};
pub(crate) use refusal::nulls;
#[cfg(feature = "pyo3")]
pub(crate) use refusal::way_out;

use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{Field, Schema};

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;
use crate::plan::{CopyReason, Plan};
use crate::possible;
use crate::scalar::Scalar;
use column::Prepared;
use dense::Dense;
pub use give::{GiveError, give};
use matrix::Matrix;
pub use ragged::Ragged;

/// How to export.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{Export, NullPolicy, to_dlpack};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let field = Field::new("column", DataType::Int32, true);
/// let options = Export { nulls: NullPolicy::Fill((-1).into()), ..Default::default() };
/// let tensor = to_dlpack(&column, &field, &options)?;
/// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, -1, 3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Export {
    /// Whether the tensor may or must have memory of its own.
    pub copy: CopyPolicy,
    /// What becomes of nulls.
    pub nulls: NullPolicy,
    /// Whether numbers with a meaning may go without it: times, decimals of up to 64 bits, dictionary
    /// codes, the storage of extension types that have no tensor form of their own.
    pub physical: bool,
    /// The element type of the result, if not that of the values. Integers must fit it, and what
    /// becomes an integer must be one; floats round.
    pub dtype: Option<DLDataType>,
    /// How a table's matrix lies in memory.
    pub order: Order,
}

/// What becomes of nulls, at all levels of nested types; those outside of a slice do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum NullPolicy {
    /// They are an error.
    #[default]
    Refuse,
    /// They become this value; null rows of nested types are filled with it.
    Fill(Scalar),
    /// They become NaN. Integers and booleans become floats for it, whether there are nulls or not: of 32
    /// bits, of 64 for integers of 32 and 64, as pyarrow's `null_to_nan` does.
    Nan,
    /// They keep whatever value lies under them: [`mask`] tells which these are.
    Masked,
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Row after row: C order.
    #[default]
    RowMajor,
    /// Column after column: Fortran order. Zero-copy if the columns lie so already, as slices of one buffer
    /// (those of [`import::columns`](crate::import::columns) do): neighbours in memory are not enough.
    ColumnMajor,
}

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// An array, as its field says.
    Array(&'a dyn Array, &'a Field),
    /// Arrays one behind the other.
    Chunks(&'a [ArrayRef], &'a Field),
    /// One row of an array, without the axis of rows: the only way for rows that differ in shape.
    Row(&'a dyn Array, &'a Field, usize),
    /// A table, as a matrix (rows, columns).
    Table(&'a [RecordBatch], &'a Schema),
}

impl<'a, A: Array> From<(&'a A, &'a Field)> for Source<'a> {
    fn from((array, field): (&'a A, &'a Field)) -> Self {
        Self::Array(array, field)
    }
}

impl<'a> From<&'a RecordBatch> for Source<'a> {
    fn from(batch: &'a RecordBatch) -> Self {
        Self::Table(std::slice::from_ref(batch), batch.schema_ref())
    }
}

/// An Arrow array as a tensor: on the CPU, strides given, zero-copy where the memory allows it.
///
/// The field tells what the array means: extension types are on it. Nested arrays of fixed size have an
/// axis for each level.
///
/// ```
/// use arrow_array::{Array, Int32Array};
/// use arrow_dlpack::{Export, to_dlpack};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![10, 20, 30, 40]);
/// let field = Field::new("column", DataType::Int32, false);
/// let tensor = to_dlpack(&column.slice(1, 2), &field, &Export::default())?;
/// assert_eq!(tensor.shape(), [2]);
/// assert_eq!(tensor.data(), column.values()[1..].as_ptr().cast_mut().cast());
/// assert!(tensor.is_read_only());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `Nulls` if there are nulls in the slice and nothing is said about them; `UnsupportedType`,
/// `UnsupportedExtension` or `NotJustNumbers`; `MalformedExtension`; `FieldMismatch`; `CannotCast`,
/// `ValueDoesNotFit` and `FillDoesNotFit` for the dtype and the fill value that were asked for;
/// `CopyForbidden` if only a copy would do; `OutOfMemory`.
pub fn to_dlpack(
    array: &dyn Array,
    field: &Field,
    options: &Export,
) -> Result<ManagedTensor, Error> {
    tensor(Source::Array(array, field), options)
}

/// [`to_dlpack`] without a field and with default options.
///
/// # Errors
///
/// As [`to_dlpack`].
pub fn array(array: &dyn Array) -> Result<ManagedTensor, Error> {
    if let Some(vector) = primitive::vector(array) {
        return Ok(vector.share());
    }
    let field = Field::new("", array.data_type().clone(), true);
    to_dlpack(array, &field, &Export::default())
}

/// [`to_dlpack`] for any source: an array, chunks, one row, a table.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array, Int8Array, RecordBatch};
/// use arrow_dlpack::{Export, export};
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let y: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", y)])?;
/// let matrix = export::tensor(&batch, &Export::default())?;
/// assert_eq!(matrix.shape(), [2, 2]);
/// assert_eq!(matrix.as_slice::<f32>(), Some(&[0.5, 1.0, 1.5, 2.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`]; for tables within `Column`, with `ManyValues` for columns of more than one value a
/// row, and `NoColumns`; `NoSuchRow`.
pub fn tensor<'a>(source: impl Into<Source<'a>>, options: &Export) -> Result<ManagedTensor, Error> {
    let source = source.into();
    if let Some(shared) = share(source, options) {
        return shared;
    }
    Job::new(source, options)?.run()
}

/// Most arrays are numbers to be shared, for which there is nothing to prepare: these, `None` for others.
#[inline]
pub(crate) fn share(source: Source<'_>, options: &Export) -> Option<Result<ManagedTensor, Error>> {
    let Source::Array(array, field) = source else { return None };
    let plain = field.metadata().is_empty() && array.data_type() == field.data_type();
    if !plain || *options != Export::default() {
        return None;
    }
    match primitive::vector(array) {
        Some(vector) => Some(Ok(vector.share())),
        None => primitive::nested(array),
    }
}

/// Which values of [`tensor`] are valid: booleans, True where they are, of the same shape.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{Export, export};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let field = Field::new("column", DataType::Int32, true);
/// let mask = export::mask((&column, &field), &Export::default())?;
/// assert_eq!((mask.dtype().to_string(), mask.shape()), ("bool".to_owned(), &[3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`]. A mask is always made: `CopyForbidden` with [`CopyPolicy::Never`].
pub fn mask<'a>(source: impl Into<Source<'a>>, options: &Export) -> Result<ManagedTensor, Error> {
    Job::mask(source.into(), options)?.run()
}

/// What [`tensor`] will copy, and [`mask`] too with [`NullPolicy::Masked`].
///
/// # Errors
///
/// As those, but for values that do not fit.
pub fn explain<'a>(source: impl Into<Source<'a>>, options: &Export) -> Result<Plan, Error> {
    let source = source.into();
    let plan = Job::new(source, options)?.plan().clone();
    Ok(match options.nulls {
        NullPolicy::Masked => plan.and(Job::mask(source, options)?.plan().clone()),
        _ => plan,
    })
}

/// Lists, texts and binaries as values and offsets.
///
/// Null rows are refused as nulls are everywhere; whatever else is said of nulls makes them empty rows.
///
/// The values are the array's own, but for views, whose bytes lie anywhere, and for null rows that have
/// values, which go; the offsets are those of the array if it is no slice that begins further on, and
/// not of another type than `offset_type`. `options` are for the values; with [`NullPolicy::Masked`] there
/// is a mask of the rows.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::{Export, NullPolicy, export};
/// use arrow_schema::{DataType, Field};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let field = Field::new("text", DataType::Utf8, false);
/// let ragged = export::ragged(&texts, &field, &Export::default(), None)?;
/// assert_eq!(ragged.values.as_slice::<u8>(), Some(&b"tobenot"[..]));
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 4, 4, 7][..]));
///
/// let texts = StringArray::from(vec![Some("to"), None, Some("be")]);
/// assert!(export::ragged(&texts, &field, &Export::default(), None).is_err());
/// let options = Export { nulls: NullPolicy::Masked, ..Default::default() };
/// let ragged = export::ragged(&texts, &field, &options, None)?;
/// assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 2, 4][..]));
/// assert!(ragged.mask.is_some());
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`]; `NoOffsets` and `OffsetDoesNotFit` for the type of the offsets.
pub fn ragged(
    array: &dyn Array,
    field: &Field,
    options: &Export,
    offset_type: Option<DLDataType>,
) -> Result<Ragged, Error> {
    check_type(array, field)?;
    PreparedRagged::new(array, field, options, offset_type)?.run()
}

/// What [`ragged`] will copy.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::{Export, export};
/// use arrow_schema::{DataType, Field};
///
/// let texts = StringArray::from(vec!["to", "be", "", "not"]);
/// let field = Field::new("text", DataType::Utf8, false);
/// assert!(export::explain_ragged(&texts, &field, &Export::default(), None)?.is_zero_copy());
/// let slice = texts.slice(1, 3);
/// let plan = export::explain_ragged(&slice, &field, &Export::default(), None)?;
/// assert_eq!(plan.to_string(), "copies 16 bytes: the offsets begin at 2, not at 0");
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`ragged`], but for values that do not fit.
pub fn explain_ragged(
    array: &dyn Array,
    field: &Field,
    options: &Export,
    offset_type: Option<DLDataType>,
) -> Result<Plan, Error> {
    check_type(array, field)?;
    Ok(PreparedRagged::new(array, field, options, offset_type)?.plan)
}

/// A tensor that could be made.
pub(crate) enum Job {
    Column(Prepared),
    Matrix(Matrix),
}

impl Job {
    pub(crate) fn new(source: Source<'_>, options: &Export) -> Result<Self, Error> {
        Ok(match source {
            Source::Table(batches, schema) => Self::Matrix(Matrix::new(batches, schema, options)?),
            _ => {
                let chunks = chunks(source, options)?;
                let many = CopyReason::Chunks(chunks.len());
                Self::Column(source.axes_of(Prepared::new(chunks, many, options)?))
            }
        })
    }

    pub(crate) fn mask(source: Source<'_>, options: &Export) -> Result<Self, Error> {
        Ok(match source {
            Source::Table(batches, schema) => Self::Matrix(Matrix::mask(batches, schema, options)?),
            _ => {
                let chunks = chunks(source, options)?;
                Self::Column(source.axes_of(Prepared::mask(&chunks, options.copy)?))
            }
        })
    }

    pub(crate) fn plan(&self) -> &Plan {
        match self {
            Self::Column(column) => &column.plan,
            Self::Matrix(matrix) => &matrix.plan,
        }
    }

    pub(crate) fn run(self) -> Result<ManagedTensor, Error> {
        match self {
            Self::Column(column) => column.run(),
            Self::Matrix(matrix) => matrix.run(),
        }
    }
}

impl Source<'_> {
    /// What there may be to look at, in bytes.
    #[cfg(feature = "pyo3")]
    pub(crate) fn nbytes(self) -> usize {
        match self {
            Self::Array(array, _) | Self::Row(array, ..) => array.get_buffer_memory_size(),
            Self::Chunks(chunks, _) => {
                chunks.iter().map(|chunk| chunk.get_buffer_memory_size()).sum()
            }
            Self::Table(batches, _) => {
                let columns = batches.iter().flat_map(RecordBatch::columns);
                columns.map(|column| column.get_buffer_memory_size()).sum()
            }
        }
    }

    fn axes_of(self, prepared: Prepared) -> Prepared {
        match self {
            Self::Row(..) => prepared.without_rows(),
            _ => prepared,
        }
    }
}

/// The chunks of what is no table, at least one.
fn chunks(source: Source<'_>, options: &Export) -> Result<Vec<Dense>, Error> {
    let dense = |array: &dyn Array, field: &Field| {
        check_type(array, field)?;
        Dense::new(array, field, options.physical)
    };
    match source {
        Source::Array(array, field) => Ok(vec![dense(array, field)?]),
        Source::Row(array, field, index) => {
            check_type(array, field)?;
            Ok(vec![row::of(array, field, index, options.physical)?])
        }
        Source::Chunks([], field) => Ok(vec![dense(&empty(field)?, field)?]),
        Source::Chunks(arrays, field) => arrays.iter().map(|array| dense(array, field)).collect(),
        Source::Table(..) => unreachable!("a table is a matrix"),
    }
}

/// An array of the field's type, if there can be one.
fn empty(field: &Field) -> Result<ArrayRef, Error> {
    possible::check(field.data_type())?;
    Ok(new_empty_array(field.data_type()))
}

/// Whether the field is the array's, and its type one that can be followed to the end.
pub(crate) fn check_type(array: &dyn Array, field: &Field) -> Result<(), Error> {
    possible::check(array.data_type())?;
    let (data_type, claimed) = (array.data_type(), field.data_type());
    if data_type == claimed {
        return Ok(());
    }
    Err(Error::FieldMismatch { field: claimed.clone(), array: data_type.clone() })
}
