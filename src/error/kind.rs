//! What kinds of errors there are.

use super::Error;

/// What kind of problem an [`Error`] is, for callers that treat some kinds alike. A new variant of `Error` is of one of
/// these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There are nulls, and the options do not say what they become.
    Nulls,
    /// A type, or rows that differ in length, for which there is no form on the other side, whatever the options are.
    Type,
    /// A value that does not fit its dtype, or an option that does not fit the data.
    Value,
    /// A column that is not there, or not only once.
    Name,
    /// What does not go together: a field and its array, a mask and its tensor, a shape and its elements.
    Mismatch,
    /// A copy is needed, and forbidden.
    Copy,
    /// An allocation failed.
    Memory,
    /// The CPU cannot read the memory.
    Device,
    /// A descriptor of a tensor is no valid one.
    Descriptor,
    /// The reader of record batches failed.
    Reader,
    /// A thread, or a process, cannot go on.
    System,
    /// Errors of several columns, of several kinds: see [`Error::leaves`].
    Several,
}

impl ErrorKind {
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Nulls { .. } | Error::NullsInRows { .. } => Self::Nulls,
            Error::NoSuchType { .. }
            | Error::TooDeep { .. }
            | Error::UnsupportedType { .. }
            | Error::NotRagged { .. }
            | Error::UnsupportedExtension { .. }
            | Error::NotJustNumbers { .. }
            | Error::MalformedExtension { .. }
            | Error::UnsupportedDtype { .. }
            | Error::RowTooLarge { .. }
            | Error::RowLength { .. }
            | Error::NoCategories { .. }
            | Error::OtherCategories { .. } => Self::Type,
            Error::CannotCast { .. }
            | Error::UnknownDtype(_)
            | Error::FillDoesNotFit { .. }
            | Error::PadDoesNotFit { .. }
            | Error::RowTooLong { .. }
            | Error::ValueDoesNotFit { .. }
            | Error::NotAValue { .. }
            | Error::EqualCategories { .. }
            | Error::NotACategory { .. }
            | Error::NameCount { .. }
            | Error::NoOffsets(_)
            | Error::TooManyValues { .. }
            | Error::InvalidArray(_)
            | Error::InvalidOptions(_)
            | Error::BadDestination(_)
            | Error::OffsetDoesNotFit { .. } => Self::Value,
            Error::NoSuchColumns { .. } | Error::SeveralColumns { .. } | Error::AskedTwice(_) => {
                Self::Name
            }
            Error::DifferentDictionaries { .. }
            | Error::NoSuchRow { .. }
            | Error::ManyValues { .. }
            | Error::NoColumns
            | Error::FieldMismatch { .. }
            | Error::ColumnCount { .. }
            | Error::NotExclusive(_)
            | Error::NoRepresentation { .. }
            | Error::CannotBecome { .. }
            | Error::NotRows { .. }
            | Error::WrongRank { .. }
            | Error::DuplicateName(_)
            | Error::ColumnLength { .. }
            | Error::BadOffsets(_)
            | Error::BadLengths(_)
            | Error::BadMask(_)
            | Error::NotUtf8 { .. }
            | Error::PackedStrides { .. }
            | Error::LegacyCannotPad(_)
            | Error::DtypeMismatch { .. }
            | Error::NotWritable(_)
            | Error::WrongLength { .. }
            | Error::ElementCount { .. }
            | Error::CannotReshape { .. }
            | Error::NoSuchPosition { .. }
            | Error::CannotBroadcast { .. } => Self::Mismatch,
            Error::CopyForbidden { .. } => Self::Copy,
            Error::OutOfMemory { .. } => Self::Memory,
            Error::UnreadableDevice { .. } => Self::Device,
            Error::UnsupportedVersion { .. }
            | Error::NullTensor
            | Error::NegativeNdim(_)
            | Error::TooManyAxes { .. }
            | Error::MisalignedTensor { .. }
            | Error::NullShape(_)
            | Error::MisalignedDescriptor(_)
            | Error::NegativeExtent { .. }
            | Error::FractionalStride { .. }
            | Error::Overflow(_)
            | Error::NullData { .. }
            | Error::InvalidDtype(_) => Self::Descriptor,
            Error::Reader(_) => Self::Reader,
            Error::Forked | Error::NoThread(_) | Error::Panicked(_) => Self::System,
            Error::Column { .. } | Error::Columns { .. } => Self::Several,
        }
    }
}
