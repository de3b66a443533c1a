//! The error type of the crate. Every variant states a fact with its numbers, and its message ends with advice where
//! there is some.

mod details;
mod hint;
mod kind;
mod refusals;

use arrow_schema::{ArrowError, DataType, FieldRef};

use crate::arrow_types::{MAX_DEPTH, TypeFault};
use crate::ffi::{DLDataType, DLDevice};
use crate::{CopyReason, Number};
pub(crate) use details::{Count, Names, RefusedColumns};
use details::{Described, instead, known, numbers_of, stored};
pub use details::{
    DestinationProblem, ExclusiveObstacle, LengthsProblem, MaskProblem, OffsetsProblem,
    ReaderError, WriteObstacle,
};
pub use hint::Hint;
pub use kind::ErrorKind;
pub(crate) use refusals::Refusals;

/// Why a conversion was refused, or a tensor is invalid.
///
/// Arguments that were passed by value are released, exactly once, before the error is returned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Arrow types.
    /// No array of this type can exist: for example, lists of a negative size, or decimals of no digits.
    #[error("there is no array of type {data_type}")]
    NoSuchType {
        /// The type.
        data_type: DataType,
    },
    /// A type with more levels of nesting than this crate follows.
    #[error("the type is nested more than {most} levels deep: flatten it first")]
    TooDeep {
        /// The limit.
        most: usize,
    },

    // Arrow to tensor.
    /// The array has nulls, and the options do not say how to export them.
    #[error(
        "{data_type} array has {} in {len} values, and a tensor cannot hold nulls: {}",
        Count(*null_count, "null"),
        self.advice()
    )]
    Nulls {
        /// The array's type.
        data_type: DataType,
        /// Null values within the slice, counting those with a null parent.
        null_count: usize,
        /// Values in the slice, which may be several per row of a nested type.
        len: usize,
    },
    /// The values within ragged rows have nulls, which a mask of the rows cannot express.
    #[error(
        "the rows hold {} in {len} values of {data_type}, and a tensor cannot hold nulls: {}",
        Count(*null_count, "null"),
        self.advice()
    )]
    NullsInRows {
        /// The type of the values.
        data_type: DataType,
        /// Null values within valid rows, counting those with a null parent.
        null_count: usize,
        /// Values in the rows.
        len: usize,
    },
    /// This Arrow type has no tensor form.
    #[error("{data_type} has no tensor form: {hint}")]
    UnsupportedType {
        /// The array's type.
        data_type: DataType,
        /// What to do instead.
        hint: Hint,
    },
    /// The rows of this Arrow type have one length each, or it has no tensor form at all.
    #[error("{} is not ragged, as lists, texts and binaries are: {hint}", stored(extension.as_deref(), data_type))]
    NotRagged {
        /// The value of `ARROW:extension:name`, if there is one.
        extension: Option<String>,
        /// The array's type, of an extension type that of its storage.
        data_type: DataType,
        /// What to do instead.
        hint: Hint,
    },
    /// This extension type is unknown, and so is the meaning of its storage.
    #[error(
        "{} has no tensor form of its own: {}",
        stored(Some(name), data_type),
        self.advice()
    )]
    UnsupportedExtension {
        /// The value of `ARROW:extension:name`.
        name: String,
        /// The storage type.
        data_type: DataType,
        /// Whether its values are the items of rows.
        in_rows: bool,
    },
    /// A number with a meaning, such as a time, which a tensor would lose.
    #[error("{data_type} is not just a number: {}", self.advice())]
    NotJustNumbers {
        /// The array's type.
        data_type: DataType,
        /// The dtype of its physical values.
        dtype: DLDataType,
    },
    /// The metadata of an extension type violates its specification.
    #[error("extension type {name:?} is malformed: {problem}")]
    MalformedExtension {
        /// The value of `ARROW:extension:name`.
        name: String,
        /// The problem.
        problem: String,
    },
    /// There is no conversion between these element types.
    #[error("{from} cannot become {to}: {}", instead(*from, *to))]
    CannotCast {
        /// The element type of the values.
        from: DLDataType,
        /// The requested element type.
        to: DLDataType,
    },
    /// No dtype has this name.
    #[error("{name:?} is not the name of a dtype: {known}", name = .0, known = known(.0))]
    UnknownDtype(String),
    /// The error of one column of a table.
    #[error("column {name:?}: {error}")]
    Column {
        /// Its name.
        name: String,
        /// The error.
        error: Box<Error>,
    },
    /// The errors of several columns of a table.
    #[error("{}", RefusedColumns(errors))]
    Columns {
        /// One [`Self::Column`] per column.
        errors: Vec<Error>,
    },
    /// The chunks' dictionaries differ, and have nested values, which are not unified.
    #[error(
        "the chunks of {data_type} have different dictionaries: decode each chunk to its values first"
    )]
    DifferentDictionaries {
        /// The array's type.
        data_type: DataType,
    },
    /// The unified dictionary has more values than its key type can number.
    #[error(
        "the dictionaries of the chunks have {count} distinct values, too many for keys of {keys}{}",
        if keys.primitive_width() < Some(4) {
            ": cast the column to a dictionary with int32 keys first"
        } else { "" }
    )]
    TooManyValues {
        /// Distinct values, as far as they were counted.
        count: usize,
        /// The key type.
        keys: DataType,
    },
    /// Values of these types are no words of categories: lists, structs and other nested types.
    #[error(
        "words are texts, binaries, numbers, booleans, decimals or times, and none of {data_type}"
    )]
    NoCategories {
        /// The words' type.
        data_type: DataType,
    },
    /// Two words of categories are one value.
    #[error("the categories {first} and {second} are one value")]
    EqualCategories {
        /// Position of the first one.
        first: i32,
        /// Position of the second one.
        second: i32,
    },
    /// The values of a column cannot be words of its categories.
    #[error("{values} has no values that are words of {words}: cast one of them")]
    OtherCategories {
        /// The words' type.
        words: DataType,
        /// The column's type.
        values: DataType,
    },
    /// A value is no word of the categories, and unknown ones have no code.
    #[error(
        "{value}{}, which is not among the {categories} categories: {}",
        if *more > 0 { format!(" and {more} more") } else { String::new() },
        self.advice()
    )]
    NotACategory {
        /// The first such value.
        value: String,
        /// The row that has it, of the column that was read.
        row: usize,
        /// How many other values are no words either.
        more: usize,
        /// How many words there are.
        categories: usize,
    },
    /// The dtype cannot hold the fill value. It is an error of a column without nulls too: whether a conversion works does
    /// not depend on the data.
    #[error(
        "nulls cannot be filled with {value}: {dtype} does not hold it, whether there are nulls or not; {}",
        self.advice()
    )]
    FillDoesNotFit {
        /// The value.
        value: Number,
        /// The result's element type.
        dtype: DLDataType,
    },
    /// The dtype cannot hold the value that rows are padded with.
    #[error("rows cannot be padded with {value}: {dtype} does not hold it; {}", self.advice())]
    PadDoesNotFit {
        /// The value.
        value: Number,
        /// The result's element type.
        dtype: DLDataType,
    },
    /// A row is longer than rows may be, and is not to be cut.
    #[error(
        "row {row} has {length} values, more than the {most} of max_length: cut it, or raise max_length"
    )]
    RowTooLong {
        /// The first such row.
        row: usize,
        /// Its length.
        length: usize,
        /// The greatest length.
        most: usize,
    },
    /// Rows differ in length, so that they are no axis of a tensor.
    #[error(
        "row {row} has {length} values, and the rows before it have {expected}: {}",
        self.advice()
    )]
    RowLength {
        /// The first row that differs.
        row: usize,
        /// Its length.
        length: usize,
        /// The length of the rows before it, or the one that was asked for.
        expected: usize,
    },
    /// The requested dtype, which is not one of offsets: int32 or int64.
    #[error("offsets are int32 or int64, not {0}")]
    NoOffsets(DLDataType),
    /// The requested dtype is too narrow for the offsets.
    #[error("offset {offset} does not fit {dtype}: {}", self.advice())]
    OffsetDoesNotFit {
        /// The first offset that does not fit.
        offset: i64,
        /// The requested dtype.
        dtype: DLDataType,
    },
    /// The row index is out of range.
    #[error("there is no row {index} among {len}")]
    NoSuchRow {
        /// The requested row.
        index: usize,
        /// The number of rows.
        len: usize,
    },
    /// A column of tensors whose axes are permuted, which cannot be columns of a matrix.
    #[error(
        "{data_type} has rows of shape {shape:?} whose axes are permuted, and a matrix takes values as they lie in memory: convert the column alone, or make it row-major, as from_dlpack of its tensor is"
    )]
    ManyValues {
        /// The column's type.
        data_type: DataType,
        /// The shape of one row.
        shape: Vec<i64>,
    },
    /// A matrix of no columns has no element type.
    #[error("a table without columns has no element type")]
    NoColumns,
    /// The array's type is not that of the field.
    #[error("the field says {field}, but the array is {array}")]
    FieldMismatch {
        /// The field's type.
        field: DataType,
        /// The array's type.
        array: DataType,
    },
    /// No column has these names.
    #[error(
        "there {} {} among [{}]",
        if missing.len() == 1 { "is no column" } else { "are no columns" },
        Names(missing),
        Names(names)
    )]
    NoSuchColumns {
        /// All missing names.
        missing: Vec<String>,
        /// The names of the columns.
        names: Vec<String>,
    },
    /// Several columns have the requested name, which therefore stands for none of them.
    #[error("{count} columns are called {}: {}", Names(&[name]), self.advice())]
    SeveralColumns {
        /// The name.
        name: String,
        /// How many columns have it.
        count: usize,
    },
    /// A column is asked for twice, where its name stands for one.
    #[error("the column {} is asked for twice", Names(&[.0]))]
    AskedTwice(String),
    /// A batch has another number of columns than the schema.
    #[error("the schema has {fields} fields, but there is a batch of {columns} columns")]
    ColumnCount {
        /// Fields of the schema.
        fields: usize,
        /// Columns of the first such batch.
        columns: usize,
    },
    /// [`crate::export::into_tensor`] needs an array without other owners, and this is why it has none.
    #[error("this array cannot be handed over: {0}; share or copy it instead")]
    NotExclusive(ExclusiveObstacle),

    // Tensor to Arrow.
    /// No Arrow array has this element type.
    #[error("{dtype} has no Arrow type here: {hint}")]
    UnsupportedDtype {
        /// The tensor's element type.
        dtype: DLDataType,
        /// What to do instead.
        hint: Hint,
    },
    /// The requested representation does not exist for this element type.
    #[error("{dtype} cannot be represented as {representation}")]
    NoRepresentation {
        /// The tensor's element type.
        dtype: DLDataType,
        /// The requested representation.
        representation: &'static str,
    },
    /// The requested field is for other elements, or another number of them.
    #[error(
        "{dtype} elements of shape {shape:?} cannot become {}: {}",
        Described(field),
        self.advice()
    )]
    CannotBecome {
        /// The tensor's element type.
        dtype: DLDataType,
        /// The tensor's extents.
        shape: Vec<i64>,
        /// The requested field.
        field: FieldRef,
    },
    /// The requested field is not of rows of different lengths; it may be that of their items.
    #[error("{} is no type of rows that differ in length: {}", Described(field), self.advice())]
    NotRows {
        /// The requested field.
        field: FieldRef,
    },
    /// A row, or a list within one, has more values than a fixed-size list can have: its size is an i32.
    #[error(
        "a list of shape {shape:?} has more values than the {} that Arrow allows: make the first axis \
         longer and the others shorter",
        i32::MAX
    )]
    RowTooLarge {
        /// Extents after the first; for nested lists only one of them.
        shape: Vec<i64>,
    },
    /// The tensor has the wrong number of axes.
    #[error("{what} must have {expected} dimension{}, not {ndim}", if *expected == 1 { "" } else { "s" })]
    WrongRank {
        /// The role of the tensor.
        what: &'static str,
        /// Required number of axes.
        expected: usize,
        /// Number of axes of the tensor.
        ndim: usize,
    },
    /// The number of names is not that of the matrix's columns.
    #[error("there are {names} names for {columns} columns")]
    NameCount {
        /// Number of names.
        names: usize,
        /// Number of the matrix's columns.
        columns: usize,
    },
    /// Two of the names that the columns of a new table are to have are equal.
    #[error("several columns are named {0:?}")]
    DuplicateName(String),
    /// The columns of a table differ in length.
    #[error("column {name:?} has {rows} rows, but the first column has {expected}")]
    ColumnLength {
        /// The first column that differs.
        name: String,
        /// Its number of rows.
        rows: usize,
        /// Number of rows of the first column.
        expected: usize,
    },
    /// The offsets are invalid.
    #[error("the offsets are not offsets of rows: {0}")]
    BadOffsets(OffsetsProblem),
    /// The lengths are not those of padded rows.
    #[error("the lengths are not lengths of rows: {0}")]
    BadLengths(LengthsProblem),
    /// The mask is not one of this tensor.
    #[error("{0}")]
    BadMask(MaskProblem),
    /// A string is not valid UTF-8.
    #[error(
        "{} not UTF-8: ask for a binary type instead",
        row.map_or("what lies before the first row is".into(), |row| format!("row {row} is"))
    )]
    NotUtf8 {
        /// The first such row; `None` for values before the first row, which arrow-rs 59 checks too.
        row: Option<usize>,
    },
    /// The CPU cannot read the tensor's memory.
    #[error("tensor is on {device}, which the CPU cannot read: copy it to the CPU first")]
    UnreadableDevice {
        /// The tensor's device.
        device: DLDevice,
    },
    /// A copy is needed, and was forbidden.
    #[error(
        "copying was forbidden, but {reason}: {} would have to be copied{}{}",
        Count(*nbytes, "byte"),
        if self.hint().is_some() { "; " } else { "" },
        self.advice()
    )]
    CopyForbidden {
        /// Why the copy is needed.
        reason: CopyReason,
        /// Bytes of the copy.
        nbytes: usize,
    },
    /// Packed elements of under 8 bits have no addresses, so that strides cannot be applied.
    #[error(
        "cannot gather elements of {dtype}: packed elements of under 8 bits have no address of their own"
    )]
    PackedStrides {
        /// The tensor's element type.
        dtype: DLDataType,
    },
    /// The legacy ABI has no flag for padded elements, of this type.
    #[error("the legacy ABI has no flag for padded {dtype} elements: {}", self.advice(), dtype = .0)]
    LegacyCannotPad(DLDataType),
    /// A value changes in the requested dtype. Conversions to integers must be exact, and those to floats must not make
    /// a finite value infinite.
    #[error(
        "value {value} in row {row} does not fit {dtype}: ask for a dtype that holds every value"
    )]
    ValueDoesNotFit {
        /// The value.
        value: Number,
        /// The requested element type.
        dtype: DLDataType,
        /// Index of the column, from 0; 0 for a single column.
        column: usize,
        /// Index of the row, from 0 over all chunks.
        row: usize,
    },
    /// An integer that is no value of the requested type: a decimal of more digits, a time that no day has, a part of a day.
    #[error(
        "the number {value} of row {row} is no value of {data_type}, which stores {}",
        numbers_of(data_type)
    )]
    NotAValue {
        /// The number, as it would be stored.
        value: i64,
        /// The requested type, of lists that of their items.
        data_type: DataType,
        /// Index of the row, from 0.
        row: usize,
    },
    /// The array is inconsistent, or an arrow-rs kernel refuses it: the problem.
    #[error("{0}")]
    InvalidArray(String),
    /// The process was forked while another thread held the lock of a stream's dictionary.
    #[error(
        "another thread was using this dictionary when the process was forked: read it before the fork"
    )]
    Forked,
    /// A reader of record batches failed; the source is this error of the reader.
    #[error(transparent)]
    Reader(ReaderError),
    /// A reader of record batches, or the conversion of its batches, panicked with this message.
    #[error("reading a batch panicked: {0}")]
    Panicked(String),
    /// [`BatchOptions`](crate::batches::BatchOptions) that contradict one another, or codes in place of values.
    #[error("{0}")]
    InvalidOptions(&'static str),
    /// The operating system could not start a thread, and this is its message.
    #[error("no thread to read ahead: {0}")]
    NoThread(String),
    /// An allocation failed.
    #[error("cannot allocate {}", Count(*nbytes, "byte"))]
    OutOfMemory {
        /// Requested bytes.
        nbytes: usize,
    },

    // Access to a tensor.
    /// The requested element type is not the tensor's.
    #[error("the elements are {found}, not {expected}")]
    DtypeMismatch {
        /// The requested element type.
        expected: DLDataType,
        /// The tensor's element type.
        found: DLDataType,
    },
    /// The tensor is read-only, or may have other holders.
    #[error("cannot write to this tensor: {0}; copy it first")]
    NotWritable(WriteObstacle),

    /// The result cannot be written to memory of the caller's.
    #[error("cannot write the result to this memory: {0}")]
    BadDestination(DestinationProblem),
    /// The owner's memory is not of the length that dtype and shape need.
    #[error("the elements take {}, and their owner has {found}", Count(*needed, "byte"))]
    WrongLength {
        /// Bytes of the elements.
        needed: usize,
        /// Bytes of the owner's memory.
        found: usize,
    },
    /// The shape is one of another number of elements.
    #[error("shape {shape:?} is one of {}, not of {found}", Count(*needed, "element"))]
    ElementCount {
        /// The requested shape.
        shape: Vec<i64>,
        /// Its number of elements.
        needed: usize,
        /// Number of elements that were passed.
        found: usize,
    },
    /// The shapes differ in their number of elements, or several extents of the new one are to be computed.
    #[error(
        "shape {from:?} cannot be reshaped to {to:?}{}",
        if to.iter().filter(|&&extent| extent == -1).count() > 1 { ": only one extent can be -1" } else { "" }
    )]
    CannotReshape {
        /// The tensor's shape.
        from: Vec<i64>,
        /// The requested shape.
        to: Vec<i64>,
    },
    /// The index is out of range for the axis.
    #[error("position {position} is not on axis {axis}, which has {extent}")]
    NoSuchPosition {
        /// The axis.
        axis: usize,
        /// The requested index.
        position: i64,
        /// The extent of the axis.
        extent: i64,
    },
    /// Only axes of extent 1 can be broadcast.
    #[error("shape {from:?} cannot be broadcast to {to:?}")]
    CannotBroadcast {
        /// The tensor's shape.
        from: Vec<i64>,
        /// The requested shape.
        to: Vec<i64>,
    },

    // Invalid descriptors.
    /// Another major version is another ABI. Only the deleter was called.
    #[error("DLPack version {major}.x is not supported: this library speaks 1.x")]
    UnsupportedVersion {
        /// The producer's major version.
        major: u32,
    },
    /// The managed tensor itself is NULL.
    #[error("the managed tensor is a NULL pointer")]
    NullTensor,
    /// `ndim` is negative: the value found.
    #[error("ndim is {0}")]
    NegativeNdim(i32),
    /// The tensor has more axes than this crate supports.
    #[error("{ndim} axes are more than the {most} that a tensor may have")]
    TooManyAxes {
        /// Number of axes.
        ndim: usize,
        /// The limit.
        most: usize,
    },
    /// The pointer is not aligned for a managed tensor. It was not read, so its deleter was not called, and the
    /// tensor leaks.
    #[error(
        "a managed tensor cannot be at the misaligned address {address:#x}: it was not read, and its \
         deleter was not called"
    )]
    MisalignedTensor {
        /// The pointer's address.
        address: usize,
    },
    /// `shape` is NULL, but `ndim` is this, not 0.
    #[error("shape is NULL although ndim is {0}")]
    NullShape(usize),
    /// A pointer to `int64_t` is misaligned: `shape` or `strides`.
    #[error("the {0} pointer is not aligned to 8 bytes")]
    MisalignedDescriptor(&'static str),
    /// An extent is negative.
    #[error("extent of axis {axis} is {extent}")]
    NegativeExtent {
        /// The axis.
        axis: usize,
        /// The value found.
        extent: i64,
    },
    /// A stride in bytes is not a multiple of the element size.
    #[error(
        "stride of axis {axis} is {stride} byte{}, which is no multiple of the {itemsize} bytes of an \
         element: {}",
        if stride.unsigned_abs() == 1 { "" } else { "s" },
        self.advice()
    )]
    FractionalStride {
        /// The axis.
        axis: usize,
        /// The stride, in bytes.
        stride: i64,
        /// Bytes of an element.
        itemsize: usize,
    },
    /// Shape, strides and element size describe more memory than the address space has: this quantity overflows.
    #[error("the tensor does not fit the address space: its {0} overflows")]
    Overflow(&'static str),
    /// `data` is NULL, but the tensor has elements.
    #[error("data is NULL although the tensor has {}", Count(*nbytes, "byte"))]
    NullData {
        /// Bytes of the elements.
        nbytes: usize,
    },
    /// The combination of code, bits and lanes is invalid.
    #[error("no dtype has code {}, {} bits and {} lanes", .0.code.0, .0.bits, .0.lanes)]
    InvalidDtype(DLDataType),
}

impl From<TypeFault> for Error {
    fn from(fault: TypeFault) -> Self {
        match fault {
            TypeFault::Impossible(data_type) => Self::NoSuchType { data_type },
            TypeFault::TooDeep => Self::TooDeep { most: MAX_DEPTH },
        }
    }
}

/// [`ArrowError::ExternalError`] with this error as its source.
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
    /// The error of a cell that does not fit, with the row of this cell in place of its index.
    pub(crate) fn in_row(mut self, row_of: impl FnOnce(usize) -> usize) -> Self {
        if let Self::ValueDoesNotFit { row, .. } = &mut self {
            *row = row_of(*row);
        }
        self
    }

    /// A closure that makes the error for a quantity that overflows.
    pub(crate) fn overflow(quantity: &'static str) -> impl FnOnce() -> Self {
        move || Self::Overflow(quantity)
    }

    /// The error for rows whose offsets have changed since they were planned.
    pub(crate) fn offsets_changed() -> Self {
        Self::InvalidArray("its offsets were changed during the conversion".to_owned())
    }

    /// Of lists that are to be dense in batches, and may be null.
    pub(crate) const NO_LENGTH: Self = Self::InvalidOptions(
        "null rows get the length of the others, which a batch may not have: say it, as Dense(384) for rows of 384 values",
    );

    /// Of a dictionary column of an encoder, whose rows come from any source.
    pub(crate) const CODES_OF_ONE_SOURCE: Self = Self::InvalidOptions(
        "codes of a dictionary are those of one source: Categories of its words are codes everywhere",
    );

    /// The error, wrapped with the name of its column.
    pub(crate) fn in_column(name: &str, error: Self) -> Self {
        match error {
            // It is of no column: it interrupted the conversion.
            Self::Reader(_) => error,
            error => Self::Column { name: name.to_owned(), error: Box::new(error) },
        }
    }

    /// What kind of problem it is; of several columns that of all their errors, or [`ErrorKind::Several`].
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{ErrorKind, ExportOptions, export};
    ///
    /// let batch = record_batch!(("x", Int32, [Some(1), None]))?;
    /// let refused = export::tensor(&batch, &ExportOptions::default()).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Nulls); // as of the column alone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        let mut kinds = self.leaves().map(|(_, error)| ErrorKind::of(error));
        let first = kinds.next().unwrap_or(ErrorKind::Several);
        if kinds.all(|kind| kind == first) { first } else { ErrorKind::Several }
    }

    /// The errors of all columns of a table, each with the name of its column; otherwise the error itself, without a name.
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{Error, ExportOptions, export};
    ///
    /// let batch = record_batch!(("x", Int32, [Some(1), None]), ("y", Utf8, ["a", "b"]))?;
    /// let refused = export::columns(&batch, &ExportOptions::default()).unwrap_err();
    /// let columns: Vec<_> = refused.leaves().map(|(column, _)| column).collect();
    /// assert_eq!(columns, [Some("x"), Some("y")]);
    /// assert!(matches!(refused.leaves().next(), Some((_, Error::Nulls { null_count: 1, .. }))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leaves(&self) -> impl Iterator<Item = (Option<&str>, &Self)> {
        let mut leaves = Vec::new();
        self.add_leaves(None, &mut leaves);
        leaves.into_iter()
    }

    fn add_leaves<'a>(
        &'a self,
        column: Option<&'a str>,
        leaves: &mut Vec<(Option<&'a str>, &'a Self)>,
    ) {
        match self {
            Self::Column { name, error } => error.add_leaves(Some(name), leaves),
            Self::Columns { errors } => {
                errors.iter().for_each(|error| error.add_leaves(column, leaves));
            }
            error => leaves.push((column, error)),
        }
    }

    /// Whether the type, the rank or the nulls are refused, whatever the options are.
    ///
    /// Python raises these as `TypeError` too, as pyarrow does. Errors that depend on an option must never be among
    /// them: consumers handle a `TypeError` by calling again without options.
    ///
    /// ```
    /// use arrow_array::{Int32Array, StringArray};
    /// use arrow_dlpack::{ExportOptions, export, ffi::DLDataType};
    ///
    /// assert!(export::array(&StringArray::from(vec!["a"])).unwrap_err().is_type_refusal());
    /// let narrow = ExportOptions::default().with_dtype(DLDataType::INT8);
    /// let refused = export::tensor(&Int32Array::from(vec![300]), &narrow).unwrap_err();
    /// assert!(!refused.is_type_refusal());
    /// ```
    #[must_use]
    pub fn is_type_refusal(&self) -> bool {
        let mut kinds = self.leaves().map(|(_, error)| ErrorKind::of(error));
        kinds.all(|kind| matches!(kind, ErrorKind::Nulls | ErrorKind::Type))
    }
}
