//! Details of errors: about masks, offsets, and exclusive or writable memory, the error of a reader, and the formatting of
//! messages.

use std::sync::Arc;
use std::{error, fmt};

use arrow_schema::{DataType, Field, FieldRef};

use crate::ffi::{DLDataType, DLDataTypeCode, DLDevice};
use crate::number::StoredNumbers;

/// Why a mask is refused; the message of [`Error::BadMask`](super::Error::BadMask).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskProblem {
    /// The mask is not bool.
    #[error("a mask is bool, true where a value is valid, not {0}")]
    Dtype(DLDataType),
    /// The mask's shape is neither that of the rows nor that of the elements.
    #[error(
        "a mask of shape {mask:?} fits neither the rows nor the elements of a tensor of shape {shape:?}"
    )]
    Shape {
        /// The mask's extents.
        mask: Vec<i64>,
        /// The tensor's extents.
        shape: Vec<i64>,
    },
    /// The elements of a row are not values of the array, so only rows can be null.
    #[error(
        "in {} no element can be null, only a row: pass a mask of one value for each row",
        Described(field)
    )]
    NoItems {
        /// The field of the array.
        field: FieldRef,
    },
    /// The requested field is not nullable.
    #[error("the field {name:?} is not nullable, and the mask hides {hidden} of {len} values")]
    NotNullable {
        /// The field's name.
        name: String,
        /// Number of values that the mask makes null.
        hidden: usize,
        /// Number of all values.
        len: usize,
    },
}

/// Why offsets are refused; the message of [`Error::BadOffsets`](super::Error::BadOffsets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetsProblem {
    /// The offsets are not integers of 8 to 64 bits.
    #[error("they are {0}, not integers")]
    Dtype(DLDataType),
    /// There are no offsets: even without rows there must be one.
    #[error("there are none, but there must be one more than rows")]
    Missing,
    /// An offset is negative.
    #[error("offset {index} is {offset}")]
    Negative {
        /// Index of the offset.
        index: usize,
        /// The offset.
        offset: i64,
    },
    /// An offset is less than the one before.
    #[error("offset {index} is {offset}, less than the {previous} before it")]
    Decreasing {
        /// Index of the offset.
        index: usize,
        /// The offset.
        offset: i64,
        /// The offset before it.
        previous: i64,
    },
    /// The last offset is greater than the number of values.
    #[error("the last one is {offset}, but there are {values} values")]
    Beyond {
        /// The last offset.
        offset: i64,
        /// Number of values.
        values: usize,
    },
    /// An offset does not fit the array's offset type. Offsets are never truncated.
    #[error(
        "offset {index} is {offset}, more than the largest {}",
        if *is_large { "int64" } else { "int32: ask for a large type, LargeList of lists or LargeUtf8 of texts (in pyarrow large_string)" }
    )]
    TooLarge {
        /// Index of the offset.
        index: usize,
        /// The offset.
        offset: u64,
        /// Whether the array's offsets are of 64 bits, rather than 32.
        is_large: bool,
    },
}

/// Why a result is not written to memory; the message of [`Error::BadDestination`](super::Error::BadDestination).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationProblem {
    /// The result has another dtype.
    #[error("it is of {found}, and the result of {needed}")]
    Dtype {
        /// The dtype of the result.
        needed: DLDataType,
        /// The dtype of the memory.
        found: DLDataType,
    },
    /// The result has another shape.
    #[error("its shape is {found:?}, and that of the result {needed:?}")]
    Shape {
        /// The shape of the result.
        needed: Vec<i64>,
        /// The shape of the memory.
        found: Vec<i64>,
    },
    /// The result has another number of elements.
    #[error("it has room for {}, and the shape of the result is {needed:?}", Count(*found, "element"))]
    Size {
        /// The shape of the result.
        needed: Vec<i64>,
        /// Elements that fit the memory.
        found: usize,
    },
    /// There are gaps between the elements, or they are in another order.
    #[error(
        "its elements are not in row-major order without gaps, nor is it such a matrix in column-major order"
    )]
    Strided,
    /// It must not be written to, as far as is known.
    #[error(
        "it is read-only, or comes by the ABI before DLPack 1.0, which cannot say that it is not"
    )]
    ReadOnly,
    /// The CPU cannot write to it.
    #[error("it is on {0}, where the CPU cannot write")]
    Unreachable(DLDevice),
    /// It is memory of the source.
    #[error("the source has some of the same memory, which would change while it is read")]
    Overlapping,
}

/// Why lengths are refused; the message of [`Error::BadLengths`](super::Error::BadLengths).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LengthsProblem {
    /// The lengths are not integers.
    #[error("they are {0}, not integers")]
    Dtype(DLDataType),
    /// There is not one length for each row.
    #[error("there are {lengths} for {rows} rows")]
    Count {
        /// Number of lengths.
        lengths: i64,
        /// Number of rows.
        rows: i64,
    },
    /// A length is negative, or greater than that of the padded rows.
    #[error("row {row} cannot have {length} of {width} values")]
    Row {
        /// The first such row.
        row: usize,
        /// Its length.
        length: i128,
        /// The length of the padded rows.
        width: i64,
    },
}

/// Why an array is not exclusive; the message of [`Error::NotExclusive`](super::Error::NotExclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExclusiveObstacle {
    /// The array or its buffer has another owner.
    #[error("its memory has other owners")]
    Shared,
    /// The array is a slice that does not begin at the start of its buffer.
    #[error("it does not begin where its buffer begins")]
    Sliced,
    /// The memory is not known to be from Rust's allocator: it is foreign, or came through the C data interface.
    #[error("its memory is not known to be from Rust's allocator")]
    Foreign,
}

/// Why a tensor cannot be written to; the message of [`Error::NotWritable`](super::Error::NotWritable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteObstacle {
    /// The producer flagged it read-only, or used the legacy ABI, which has no such flag.
    #[error("it is read-only")]
    ReadOnly,
    /// The tensor is not known to be the only way to its memory; see [`crate::ManagedTensor::assume_exclusive`].
    #[error("its memory may have other owners")]
    Shared,
    /// Two indices may refer to the same element, as along a broadcast axis.
    #[error(
        "its elements may overlap, the stride of axis {axis} being {stride} where {needed} would \
         keep them apart"
    )]
    Overlapping {
        /// The axis whose stride is too small.
        axis: usize,
        /// Its stride, in elements.
        stride: i64,
        /// The least stride that steps over all elements of the axes with smaller strides.
        needed: u64,
    },
}

type Cause = dyn error::Error + Send + Sync;

/// The error of a reader of record batches, mostly an [`ArrowError`](arrow_schema::ArrowError), as
/// [`source`](error::Error::source).
#[derive(Clone, Debug)]
pub struct ReaderError {
    cause: Arc<Cause>,
    /// Whether it comes before the rows that were read before it.
    is_urgent: bool,
}

// An error is read after a panic, and nothing in it changes.
impl std::panic::UnwindSafe for ReaderError {}
impl std::panic::RefUnwindSafe for ReaderError {}

impl ReaderError {
    pub(crate) fn new(cause: impl Into<Box<Cause>>) -> Self {
        Self { cause: cause.into().into(), is_urgent: false }
    }

    /// An error that does not wait for the rows that were read before it.
    #[cfg(feature = "pyo3")]
    pub(crate) fn urgent(cause: impl Into<Box<Cause>>) -> Self {
        Self { is_urgent: true, ..Self::new(cause) }
    }

    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// The error of the reader.
    pub(crate) fn get_ref(&self) -> &(dyn error::Error + Send + Sync + 'static) {
        &*self.cause
    }
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the reader failed: {}", self.cause)
    }
}

/// By hand, because thiserror would make the `Arc` the source, in place of the reader's error.
impl error::Error for ReaderError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&*self.cause)
    }
}

/// Equal if they are the same error, not if they have the same message.
impl PartialEq for ReaderError {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cause, &other.cause)
    }
}

/// How many columns are refused, the first errors, each cut to a few lines, and the number of the others.
pub(crate) struct RefusedColumns<'a, E>(pub(crate) &'a [E]);

impl<E: fmt::Display> fmt::Display for RefusedColumns<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        const LONGEST: usize = 300;
        write!(f, "{} columns are refused:", self.0.len())?;
        for error in self.0.iter().take(SHOWN) {
            let text = error.to_string();
            let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
            let more = if end < text.len() { "..." } else { "" };
            write!(f, "\n  {}{more}", &text[..end])?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// The first names, each cut to its beginning, and the number of the others.
pub(crate) struct Names<'a, N>(pub(crate) &'a [N]);

impl<N: AsRef<str>> fmt::Display for Names<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 30;
        const LONGEST: usize = 100;
        for (at, name) in self.0.iter().map(AsRef::as_ref).take(SHOWN).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match name.char_indices().nth(LONGEST) {
                Some((end, _)) => write!(f, "{comma}{:?}...", &name[..end])?,
                None => write!(f, "{comma}{name:?}")?,
            }
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// A count of things, whose name gets an s for the plural.
pub(crate) struct Count(pub(crate) usize, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, name) = self;
        write!(f, "{count} {name}{}", if *count == 1 { "" } else { "s" })
    }
}

/// Advice for an unknown dtype: the name that was probably meant, or the libraries whose names are known.
pub(super) fn known(name: &str) -> String {
    match DLDataType::named_like(name) {
        Some(meant) => format!("did you mean {:?}?", meant.to_string()),
        None => "use a name of NumPy or ml_dtypes, such as \"float32\"".to_owned(),
    }
}

/// The numbers that store values of a type, and what to do with others.
pub(super) fn numbers_of(data_type: &DataType) -> String {
    match (StoredNumbers::of(data_type), data_type) {
        (Some(StoredNumbers::Within(least, most)), DataType::Time32(_) | DataType::Time64(_)) => {
            format!("{least} to {most}: durations store others")
        }
        (Some(StoredNumbers::Within(least, most)), _) => format!(
            "{least} to {most}, in units of the last digit: ask for more digits, or for integers, and cast those"
        ),
        (Some(StoredNumbers::Days), _) => format!(
            "multiples of {}, the days: timestamps store others",
            StoredNumbers::MILLISECONDS_OF_A_DAY
        ),
        (None, _) => "all".to_owned(),
    }
}

/// A type, by the name of the extension type that it is the storage of.
pub(super) fn stored(extension: Option<&str>, data_type: &DataType) -> String {
    match extension {
        Some(name) => format!("extension type {name:?} (stored as {data_type})"),
        None => data_type.to_string(),
    }
}

/// Advice for a conversion between dtypes that does not exist.
pub(super) fn instead(from: DLDataType, to: DLDataType) -> &'static str {
    use DLDataTypeCode as Code;
    let is_small = |dtype: DLDataType| dtype.code == Code::BFLOAT || dtype.code.0 > Code::BOOL.0;
    match to.code {
        Code::BOOL => "compare it with 0 first",
        _ if is_small(from) => "ask for float32 or float64, which hold its values",
        _ if from.code == Code::COMPLEX || to.code == Code::COMPLEX => {
            "convert it in the framework, which defines what happens to the imaginary part"
        }
        _ if is_small(to) => {
            "ask for float32 and let the framework round it, as PyTorch's x.to(torch.float8_e5m2) and NumPy's \
             x.astype(ml_dtypes.float4_e2m1fn) do"
        }
        _ => "ask for an integer of 8 to 64 bits or a float of 16 to 64",
    }
}

/// A field's type, with its extension type if it has one.
pub(super) struct Described<'a>(pub(super) &'a Field);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = self.0.data_type();
        match self.0.extension_type_name() {
            None => storage.fmt(f),
            Some(name) => {
                let metadata = self.0.extension_type_metadata().unwrap_or_default();
                write!(f, "{name}{metadata} stored as {storage}")
            }
        }
    }
}
