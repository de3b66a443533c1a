//! The range of each row among all values: offsets, or offsets and sizes.

use std::ops::Range;

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};

use crate::error::{Error, OffsetsProblem};
use crate::ffi::DLDataType;
use crate::memory;

/// Offsets or sizes of 32 or 64 bits.
pub(super) struct Numbers {
    bytes: Buffer,
    is_large: bool,
}

/// The range of each row's values.
pub(super) enum Bounds {
    Offsets(Numbers),
    /// Offsets and sizes of list views.
    Views(Numbers, Numbers),
    /// Lengths only, for byte views, whose values are in several buffers.
    Lengths(Vec<usize>),
}

impl Numbers {
    pub(super) fn new<O: OffsetSizeTrait>(numbers: &ScalarBuffer<O>) -> Self {
        Self { bytes: numbers.inner().clone(), is_large: O::IS_LARGE }
    }

    fn len(&self) -> usize {
        self.bytes.len() / if self.is_large { 8 } else { 4 }
    }

    fn at(&self, index: usize) -> i64 {
        match self.is_large {
            true => self.bytes[8 * index..].first_chunk().map_or(0, |&it| i64::from_ne_bytes(it)),
            false => {
                self.bytes[4 * index..].first_chunk().map_or(0, |&it| i32::from_ne_bytes(it).into())
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.len()).map(|index| self.at(index))
    }

    fn copied(&self) -> Result<Self, Error> {
        memory::probe_alloc(self.bytes.len())?;
        Ok(Self { bytes: Buffer::from_slice_ref(&self.bytes), ..*self })
    }
}

impl Bounds {
    /// The dtype of the offsets, or the one that they would have.
    pub(super) fn dtype(&self) -> DLDataType {
        match self {
            Self::Offsets(numbers) | Self::Views(numbers, _) if !numbers.is_large => {
                DLDataType::INT32
            }
            _ => DLDataType::INT64,
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Offsets(offsets) => offsets.len().saturating_sub(1),
            Self::Views(offsets, _) => offsets.len(),
            Self::Lengths(lengths) => lengths.len(),
        }
    }

    /// The range of an existing row.
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        match self {
            Self::Offsets(offsets) => offsets.at(row).as_usize()..offsets.at(row + 1).as_usize(),
            Self::Views(offsets, sizes) => {
                let start = offsets.at(row).as_usize();
                start..start + sizes.at(row).as_usize()
            }
            Self::Lengths(lengths) => 0..lengths[row],
        }
    }

    /// The offsets buffer, if there is one.
    pub(super) fn buffer(&self) -> Option<&Buffer> {
        match self {
            Self::Offsets(offsets) => Some(&offsets.bytes),
            _ => None,
        }
    }

    /// The start of the first row and the end of the last one, also without rows; `None` without offsets.
    pub(super) fn ends(&self) -> Option<Range<usize>> {
        let Self::Offsets(offsets) = self else { return None };
        let last = offsets.len().checked_sub(1)?;
        Some(offsets.at(0).as_usize()..offsets.at(last).as_usize())
    }

    /// A copy, checked: all rows are within this many values.
    pub(super) fn settled(self, values: usize) -> Result<Self, Error> {
        let settled = match &self {
            Self::Offsets(offsets) => {
                let offsets = offsets.copied()?;
                check_rising(&offsets)?;
                Self::Offsets(offsets)
            }
            Self::Views(starts, sizes) => Self::Views(starts.copied()?, sizes.copied()?),
            Self::Lengths(_) => return Ok(self),
        };
        let beyond = match &settled {
            Self::Views(starts, sizes) => {
                let mut ends = starts.iter().zip(sizes.iter()).map(end);
                ends.find(|&end| end > values)
            }
            settled => settled.ends().map(|ends| ends.end).filter(|&end| end > values),
        };
        let Some(end) = beyond else { return Ok(settled) };
        let offset = i64::try_from(end).unwrap_or(i64::MAX);
        Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }))
    }

    /// The lengths of the rows; null rows have length 0.
    pub(super) fn lengths<'a>(
        &'a self,
        nulls: Option<&'a NullBuffer>,
    ) -> impl Iterator<Item = usize> + 'a {
        let is_null = move |row| nulls.is_some_and(|nulls| nulls.is_null(row));
        (0..self.rows()).map(move |row| if is_null(row) { 0 } else { self.range(row).len() })
    }
}

/// Checks that offsets are non-negative and non-decreasing.
fn check_rising(offsets: &Numbers) -> Result<(), Error> {
    let mut previous = 0;
    for (index, offset) in offsets.iter().enumerate() {
        if offset < previous {
            return Err(Error::BadOffsets(match index {
                0 => OffsetsProblem::Negative { index, offset },
                _ => OffsetsProblem::Decreasing { index, offset, previous },
            }));
        }
        previous = offset;
    }
    Ok(())
}

/// The end of a row of a list view.
fn end((start, size): (i64, i64)) -> usize {
    match (usize::try_from(start), usize::try_from(size)) {
        (Ok(start), Ok(size)) => start.saturating_add(size),
        _ => usize::MAX,
    }
}
