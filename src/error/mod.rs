//! The one error type: every variant is a fact with its numbers, and says what to do next where
//! there is something to do.

mod problems;
mod reader;
mod refusals;
mod words;

use arrow_schema::{ArrowError, DataType, FieldRef};

use crate::copy::CopyReason;
use crate::ffi::{DLDataType, DLDevice};
use crate::scalar::Scalar;
pub use problems::{ExclusiveObstacle, MaskProblem, OffsetsProblem, WriteObstacle};
pub use reader::ReaderError;
pub(crate) use refusals::Refusals;
pub(crate) use words::{Count, Names};
use words::{Described, OnePerLine, instead, known};

/// Why a conversion was refused or a tensor rejected.
///
/// Whatever was passed by value is released before the error is returned, exactly once.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Arrow's types.
    /// Types can be written down of which there is no array, such as lists of a negative size.
    #[error("there is no array of type {data_type}")]
    NoSuchType {
        /// The type.
        data_type: DataType,
    },
    /// Types within types are followed so far and no further.
    #[error("the type is nested more than {most} levels deep: flatten it first")]
    TooDeep {
        /// As many are followed.
        most: usize,
    },

    // Arrow to tensor.
    /// A tensor has no place for nulls.
    #[error(
        "{data_type} array has {} in {len} values, and a tensor cannot hold nulls: drop \
         them, or choose a fill value, NaN or a mask by ExportOptions::with_nulls",
        Count(*null_count, "null")
    )]
    Nulls {
        /// The array's type.
        data_type: DataType,
        /// Values within the slice that are null, or in something that is.
        null_count: usize,
        /// Values in the slice; several in a row of a nested type.
        len: usize,
    },
    /// A mask of rows says nothing about the values in them.
    #[error(
        "the rows hold {} in {len} values of {data_type}, and a tensor cannot hold nulls: drop them, or \
         choose a fill value or NaN by ExportOptions::with_nulls (a mask is of the rows)",
        Count(*null_count, "null")
    )]
    NullsInRows {
        /// The type of the values.
        data_type: DataType,
        /// Values that are null in rows that are not, or in something that is.
        null_count: usize,
        /// Values in the rows.
        len: usize,
    },
    /// This Arrow type has no tensor form here.
    #[error("{data_type} has no tensor form: {way_out}")]
    UnsupportedType {
        /// The array's type.
        data_type: DataType,
        /// What to do instead.
        way_out: &'static str,
    },
    /// An extension type says what the bytes mean, and this one is not understood here.
    #[error(
        "extension type {name:?} (stored as {data_type}) has no tensor form of its own: use \
         ExportOptions::with_physical for its storage"
    )]
    UnsupportedExtension {
        /// The value of `ARROW:extension:name`.
        name: String,
        /// The storage type.
        data_type: DataType,
    },
    /// A number with a meaning, such as a time, that would be lost without a word.
    #[error(
        "{data_type} is not just a number: use ExportOptions::with_physical for its {dtype} values"
    )]
    NotJustNumbers {
        /// The array's type.
        data_type: DataType,
        /// What it is stored as.
        dtype: DLDataType,
    },
    /// The metadata of an extension type is not what its specification asks for.
    #[error("extension type {name:?} is malformed: {problem}")]
    MalformedExtension {
        /// The value of `ARROW:extension:name`.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The values of one element type cannot become another.
    #[error("{from} cannot become {to}: {}", instead(*from, *to))]
    CannotCast {
        /// The element type that is there.
        from: DLDataType,
        /// The element type that was asked for.
        to: DLDataType,
    },
    /// No dtype has this name.
    #[error("{name:?} is not the name of a dtype: {known}", name = .0, known = known(.0))]
    UnknownDtype(
        /// What was asked for.
        String,
    ),
    /// Another error, in words that fit the function that was asked.
    #[cfg(feature = "pyo3")]
    #[doc(hidden)]
    #[error("{words}")]
    Worded {
        /// What is said of it.
        words: String,
        /// The error.
        error: Box<Error>,
    },
    /// A column of a table, and what is wrong with it.
    #[error("column {name:?}: {error}")]
    Column {
        /// Its name.
        name: String,
        /// What is wrong.
        error: Box<Error>,
    },
    /// Several columns of a table, and what is wrong with each.
    #[error("{} columns are refused:{}", errors.len(), OnePerLine(errors))]
    Columns {
        /// A [`Self::Column`] for each.
        errors: Vec<Error>,
    },
    /// Codes of different dictionaries say nothing together, and nested values are not told apart.
    #[error("the chunks of {data_type} have different dictionaries: unify them first")]
    DifferentDictionaries {
        /// The array's type.
        data_type: DataType,
    },
    /// Each value has a code, and there are more values than codes.
    #[error(
        "the dictionaries of the chunks have {count} distinct values, too many for keys of {keys}{}",
        match keys {
            DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 =>
                ": cast the column to a dictionary with int32 keys first",
            _ => "",
        }
    )]
    TooManyValues {
        /// Distinct values, as far as they were counted.
        count: usize,
        /// The type of the codes.
        keys: DataType,
    },
    /// A fill value that the elements cannot be.
    #[error("nulls cannot be filled with {value}: {dtype} does not hold it")]
    FillDoesNotFit {
        /// The value.
        value: Scalar,
        /// The result's element type.
        dtype: DLDataType,
    },
    /// Offsets are int32 or int64.
    #[error("offsets are int32 or int64, not {0}")]
    NoOffsets(
        /// What was asked for.
        DLDataType,
    ),
    /// More values than the offsets can count.
    #[error("offset {offset} does not fit {dtype}: ask for int64 offsets")]
    OffsetDoesNotFit {
        /// The first one that does not.
        offset: i64,
        /// What was asked for.
        dtype: DLDataType,
    },
    /// There is no such row.
    #[error("there is no row {index} among {len}")]
    NoSuchRow {
        /// Which one was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// A column of a matrix has one value a row.
    #[error(
        "{data_type} has rows of shape {shape:?}, and a matrix one value a row and column: convert it on its own"
    )]
    ManyValues {
        /// The column's type.
        data_type: DataType,
        /// The shape of one row.
        shape: Vec<i64>,
    },
    /// A matrix has no element type without columns.
    #[error("a table without columns has no element type")]
    NoColumns,
    /// Array and field were not made for each other.
    #[error("the field says {field}, but the array is {array}")]
    FieldMismatch {
        /// The field's type.
        field: DataType,
        /// The array's type.
        array: DataType,
    },
    /// Names that no column has.
    #[error(
        "there {} {} among [{}]",
        if missing.len() == 1 { "is no column" } else { "are no columns" },
        Names(missing),
        Names(names)
    )]
    NoSuchColumns {
        /// All of them.
        missing: Vec<String>,
        /// The columns' names.
        names: Vec<String>,
    },
    /// A name is to be that of one column.
    #[error("{count} columns are called {}", Names(&[name]))]
    SeveralColumns {
        /// The name.
        name: String,
        /// How many columns have it.
        count: usize,
    },
    /// A table's batches have a column for each field of its schema.
    #[error("the schema has {fields} fields, but there is a batch of {columns} columns")]
    ColumnCount {
        /// Fields of the schema.
        fields: usize,
        /// Columns of the first batch that has another number of them.
        columns: usize,
    },
    /// [`crate::export::into_tensor`] could not have the memory to itself.
    #[error("this array cannot be handed over: {0}; share or copy it instead")]
    NotExclusive(
        /// What stands in the way.
        ExclusiveObstacle,
    ),

    // Tensor to Arrow.
    /// No Arrow array has this element type.
    #[error("dtype {dtype} has no Arrow type here: {way_out}")]
    UnsupportedDtype {
        /// The tensor's element type.
        dtype: DLDataType,
        /// What to do instead.
        way_out: &'static str,
    },
    /// The representation that was asked for is for other element types.
    #[error("{dtype} cannot be represented as {representation}")]
    NoRepresentation {
        /// The tensor's element type.
        dtype: DLDataType,
        /// What was asked for.
        representation: &'static str,
    },
    /// The field that was asked for holds other elements, or another number of them.
    #[error(
        "{dtype} elements of shape {shape:?} cannot become {}: ask for a type of the same elements and \
         the same shape after the first axis, or convert the tensor first",
        Described(field)
    )]
    CannotBecome {
        /// The tensor's element type.
        dtype: DLDataType,
        /// The tensor's extents.
        shape: Vec<i64>,
        /// What was asked for.
        field: FieldRef,
    },
    /// Arrow counts the values of a row, or of a list within one, with 31 bits.
    #[error(
        "a list of shape {shape:?} has more values than the {} that Arrow allows: make the first axis \
         longer and the others shorter",
        i32::MAX
    )]
    RowTooLarge {
        /// Extents after the first; one of them where they were to be lists within lists.
        shape: Vec<i64>,
    },
    /// Not the number of axes that is needed.
    #[error("{what} must have {expected} dimension{}, not {ndim}", if *expected == 1 { "" } else { "s" })]
    WrongRank {
        /// What the tensor is for.
        what: &'static str,
        /// Number of axes that it must have.
        expected: usize,
        /// Number of axes that it has.
        ndim: usize,
    },
    /// There are not as many names as a matrix has columns.
    #[error("there are {names} names for {columns} columns")]
    NameCount {
        /// Names that were given.
        names: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// A table's columns are identified by their names.
    #[error("several columns are named {0:?}")]
    DuplicateName(
        /// The name.
        String,
    ),
    /// The columns of a table must be of one length.
    #[error("column {name:?} has {rows} rows, but the first column has {expected}")]
    UnequalRows {
        /// The first column that differs.
        name: String,
        /// Its number of rows.
        rows: usize,
        /// That of the first column.
        expected: usize,
    },
    /// These are no offsets of rows.
    #[error("the offsets are not offsets of rows: {0}")]
    BadOffsets(
        /// What is wrong with them.
        OffsetsProblem,
    ),
    /// This is no mask of that tensor.
    #[error("{0}")]
    BadMask(
        /// What is wrong with it.
        MaskProblem,
    ),
    /// A string is not UTF-8.
    #[error(
        "{} not UTF-8: ask for a binary type instead",
        row.map_or("what lies before the first row is".into(), |row| format!("row {row} is"))
    )]
    NotUtf8 {
        /// The first such row; `None` for what lies before the first one, which arrow-rs 59 reads too.
        row: Option<usize>,
    },
    /// The memory is not the CPU's to read.
    #[error("tensor is on {device}, which the CPU cannot read: copy it to the CPU first")]
    UnreadableDevice {
        /// Where the tensor is.
        device: DLDevice,
    },
    /// A copy is unavoidable and was forbidden.
    #[error("copying was forbidden, but {reason}: {} would have to be copied", Count(*nbytes, "byte"))]
    CopyForbidden {
        /// What makes the copy unavoidable.
        reason: CopyReason,
        /// Size of the copy.
        nbytes: usize,
    },
    /// Elements smaller than a byte have no addresses.
    #[error(
        "cannot gather strided elements of {dtype}: packed elements of under 8 bits have no address of their own"
    )]
    PackedStrides {
        /// The tensor's element type.
        dtype: DLDataType,
    },
    /// The legacy ABI has no flag for padded elements.
    #[error(
        "{0} elements in a byte each cannot be said in the legacy ABI: hand it over by into_raw"
    )]
    LegacyCannotPad(
        /// The tensor's element type.
        DLDataType,
    ),
    /// Conversions to integers are exact or nothing.
    #[error(
        "value {value} in row {row} does not fit {dtype}: ask for a dtype that holds every value"
    )]
    ValueDoesNotFit {
        /// The value, written out.
        value: String,
        /// The element type asked for.
        dtype: DLDataType,
        /// Which column, counted from 0; 0 where there is only one.
        column: usize,
        /// Which row, counted from 0 over all chunks; which value, where a row has several.
        row: usize,
    },
    /// An array that contradicts itself, or that an arrow-rs kernel refuses.
    #[error("{0}")]
    InvalidArray(
        /// What is wrong with it.
        String,
    ),
    /// The process was forked while another thread used what a stream has in common.
    #[error("this dictionary grew while the process was forked: ask for it before that")]
    Forked,
    /// A reader of record batches failed; its error is the source of this one.
    #[error(transparent)]
    Reader(
        /// What it said.
        ReaderError,
    ),
    /// A reader of record batches panicked, or a conversion of what it read.
    #[error("reading a batch panicked: {0}")]
    Panicked(
        /// The panic's message.
        String,
    ),
    /// [`BatchOptions`](crate::batches::BatchOptions) that do not go together.
    #[error("{0}")]
    InvalidOptions(
        /// What is wrong with them.
        &'static str,
    ),
    /// The system has no more threads.
    #[error("no thread to read ahead: {0}")]
    NoThread(
        /// What it said.
        String,
    ),
    /// The allocator said no.
    #[error("cannot allocate {}", Count(*nbytes, "byte"))]
    OutOfMemory {
        /// Size that was asked for.
        nbytes: usize,
    },

    // Looking at a tensor.
    /// The elements were asked for as another type than they are.
    #[error("the elements are {found}, not {expected}")]
    DtypeMismatch {
        /// What was asked for.
        expected: DLDataType,
        /// The tensor's element type.
        found: DLDataType,
    },
    /// The tensor must not be written to, or it is unknown whether a write is safe.
    #[error("cannot write to this tensor: {0}; copy it first")]
    NotWritable(
        /// What stands in the way.
        WriteObstacle,
    ),

    /// The owner of a tensor's memory has more of it, or less.
    #[error("the elements take {}, and their owner has {found}", Count(*needed, "byte"))]
    WrongLength {
        /// Bytes that the elements take.
        needed: usize,
        /// Bytes that the owner has.
        found: usize,
    },
    /// There are not as many elements in one shape as in the other.
    #[error("shape {from:?} cannot be reshaped to {to:?}")]
    CannotReshape {
        /// The tensor's shape.
        from: Vec<i64>,
        /// What was asked for.
        to: Vec<i64>,
    },
    /// There is no such position along an axis.
    #[error("position {position} is not on axis {axis}, which has {extent}")]
    NoSuchPosition {
        /// Which axis.
        axis: usize,
        /// What was asked for.
        position: i64,
        /// Number of positions.
        extent: i64,
    },
    /// Only axes of extent 1 can repeat.
    #[error("shape {from:?} cannot be broadcast to {to:?}")]
    CannotBroadcast {
        /// The tensor's shape.
        from: Vec<i64>,
        /// What was asked for.
        to: Vec<i64>,
    },

    // A descriptor that cannot be true.
    /// A different major version is a different ABI; only its deleter was called.
    #[error("DLPack version {major}.x is not supported: this library speaks 1.x")]
    UnsupportedVersion {
        /// The producer's major version.
        major: u32,
    },
    /// The managed tensor itself is NULL.
    #[error("the managed tensor is a NULL pointer")]
    NullTensor,
    /// `ndim` is negative.
    #[error("ndim is {0}")]
    NegativeNdim(
        /// The value found.
        i32,
    ),
    /// There are more axes than any tensor has.
    #[error("{ndim} axes are more than the {most} that a tensor may have")]
    TooManyAxes {
        /// Number of axes.
        ndim: usize,
        /// As many are taken.
        most: usize,
    },
    /// The managed tensor is not where one could be. It has not been read, so its deleter is not known and has
    /// not been called: what it owns stays.
    #[error(
        "no tensor is at the misaligned address {address:#x}: it is not read, nor can it be deleted"
    )]
    MisalignedTensor {
        /// Where it was said to be.
        address: usize,
    },
    /// There are axes, but no extents.
    #[error("shape is NULL although ndim is {0}")]
    NullShape(
        /// Number of axes.
        usize,
    ),
    /// A pointer to `int64_t` is not aligned as one.
    #[error("the {0} pointer is not aligned to 8 bytes")]
    MisalignedDescriptor(
        /// `shape` or `strides`.
        &'static str,
    ),
    /// An extent is negative.
    #[error("extent of axis {axis} is {extent}")]
    NegativeExtent {
        /// Which axis.
        axis: usize,
        /// The value found.
        extent: i64,
    },
    /// Strides were given in bytes, and an element of a tensor is its unit.
    #[error(
        "stride of axis {axis} is {stride} byte{}, which is no multiple of the {itemsize} bytes of an \
         element: copy it first",
        if stride.unsigned_abs() == 1 { "" } else { "s" }
    )]
    FractionalStride {
        /// Which axis.
        axis: usize,
        /// The value found, in bytes.
        stride: i64,
        /// Bytes of an element.
        itemsize: usize,
    },
    /// Shape, strides and element size describe more than an address space holds.
    #[error("the tensor does not fit the address space: its {0} overflows")]
    Overflow(
        /// Which quantity.
        &'static str,
    ),
    /// There are elements, but no memory.
    #[error("data is NULL although the tensor has {}", Count(*nbytes, "byte"))]
    NullData {
        /// Size of the elements.
        nbytes: usize,
    },
    /// Code, bits and lanes do not go together.
    #[error("no dtype has code {}, {} bits and {} lanes", .0.code.0, .0.bits, .0.lanes)]
    InvalidDtype(
        /// The element type found.
        DLDataType,
    ),
}

/// [`ArrowError::ExternalError`], with this error in it.
///
/// ```
/// use std::error::Error as _;
/// use arrow_dlpack::Error;
/// use arrow_schema::ArrowError;
///
/// let error = ArrowError::from(Error::NoColumns);
/// assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&Error::NoColumns));
/// ```
impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

impl Error {
    /// Makes the error for a quantity that overflows, when it is needed.
    pub(crate) fn overflow(quantity: &'static str) -> impl FnOnce() -> Self {
        move || Self::Overflow(quantity)
    }

    /// The error with the name of the column that it is about.
    pub(crate) fn in_column(name: &str, error: Self) -> Self {
        Self::Column { name: name.to_owned(), error: Box::new(error) }
    }

    /// Whether no option could have helped: the type, the rank or the nulls are refused as such.
    ///
    /// Python raises these as `TypeError` too, as pyarrow does. Whatever depends on an option must
    /// never be one: consumers answer a `TypeError` by asking again without options.
    #[must_use]
    pub fn is_type_refusal(&self) -> bool {
        match self {
            #[cfg(feature = "pyo3")]
            Self::Worded { error, .. } => error.is_type_refusal(),
            Self::Column { error, .. } => error.is_type_refusal(),
            Self::Columns { errors } => errors.iter().all(Self::is_type_refusal),
            Self::NoSuchType { .. }
            | Self::TooDeep { .. }
            | Self::Nulls { .. }
            | Self::NullsInRows { .. }
            | Self::UnsupportedType { .. }
            | Self::UnsupportedExtension { .. }
            | Self::NotJustNumbers { .. }
            | Self::MalformedExtension { .. }
            | Self::UnsupportedDtype { .. }
            | Self::RowTooLarge { .. } => true,
            _ => false,
        }
    }

    /// Whether memory is what is missing, for a column or as it is. `MemoryError` in Python.
    #[cfg(feature = "pyo3")]
    pub(crate) fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Column { error, .. } => error.is_out_of_memory(),
            Self::Columns { errors } => errors.iter().all(Self::is_out_of_memory),
            _ => matches!(self, Self::OutOfMemory { .. }),
        }
    }

    /// Whether an option asks for what the values do not allow: a dtype or a fill value that does not
    /// fit them. `ValueError` in Python; options of `__dlpack__` are never among them.
    #[cfg(feature = "pyo3")]
    pub(crate) fn is_wrong_value(&self) -> bool {
        match self {
            Self::Worded { error, .. } | Self::Column { error, .. } => error.is_wrong_value(),
            Self::Columns { errors } => errors.iter().all(Self::is_wrong_value),
            Self::CannotCast { .. }
            | Self::UnknownDtype(_)
            | Self::FillDoesNotFit { .. }
            | Self::ValueDoesNotFit { .. }
            | Self::NoOffsets(_)
            | Self::TooManyValues { .. }
            | Self::InvalidArray(_)
            | Self::InvalidOptions(_)
            | Self::OffsetDoesNotFit { .. } => true,
            _ => false,
        }
    }
}
