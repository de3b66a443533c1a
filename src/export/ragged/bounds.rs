//! The range of each row among all values: offsets, or offsets and sizes.

use std::ops::Range;

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};

use crate::error::{Error, OffsetsProblem};
use crate::ffi::DLDataType;
use crate::memory;

/// The range of each row's values.
pub(super) enum Bounds {
    Offsets32(ScalarBuffer<i32>),
    Offsets64(ScalarBuffer<i64>),
    /// Offsets and sizes of list views.
    Views32(ScalarBuffer<i32>, ScalarBuffer<i32>),
    Views64(ScalarBuffer<i64>, ScalarBuffer<i64>),
    /// Lengths only, for byte views, whose values are in several buffers.
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
    /// The dtype of the offsets, or the one that they would have.
    pub(super) fn dtype(&self) -> DLDataType {
        match self {
            Self::Offsets32(_) | Self::Views32(..) => DLDataType::INT32,
            Self::Offsets64(_) | Self::Views64(..) | Self::Lengths(_) => DLDataType::INT64,
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Offsets32(offsets) => offsets.len().saturating_sub(1),
            Self::Offsets64(offsets) => offsets.len().saturating_sub(1),
            Self::Views32(offsets, _) => offsets.len(),
            Self::Views64(offsets, _) => offsets.len(),
            Self::Lengths(lengths) => lengths.len(),
        }
    }

    /// The range of an existing row.
    pub(super) fn range(&self, row: usize) -> Range<usize> {
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

    /// The offsets buffer, if there is one.
    pub(super) fn buffer(&self) -> Option<&Buffer> {
        match self {
            Self::Offsets32(offsets) => Some(offsets.inner()),
            Self::Offsets64(offsets) => Some(offsets.inner()),
            Self::Views32(..) | Self::Views64(..) | Self::Lengths(_) => None,
        }
    }

    /// The start of the first row and the end of the last one, also without rows; `None` without offsets.
    pub(super) fn ends(&self) -> Option<Range<usize>> {
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

    /// A copy, checked: all rows are within this many values.
    pub(super) fn settled(self, values: usize) -> Result<Self, Error> {
        let beyond = |offset: usize| {
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            Error::BadOffsets(OffsetsProblem::Beyond { offset, values })
        };
        let settled = match &self {
            Self::Offsets32(offsets) => Self::Offsets32(rising(offsets)?),
            Self::Offsets64(offsets) => Self::Offsets64(rising(offsets)?),
            Self::Views32(starts, sizes) => Self::Views32(copied(starts)?, copied(sizes)?),
            Self::Views64(starts, sizes) => Self::Views64(copied(starts)?, copied(sizes)?),
            Self::Lengths(_) => return Ok(self),
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

    /// The lengths of the rows; null rows have length 0.
    pub(super) fn lengths<'a>(
        &'a self,
        nulls: Option<&'a NullBuffer>,
    ) -> impl Iterator<Item = usize> + 'a {
        let is_null = move |row| nulls.is_some_and(|nulls| nulls.is_null(row));
        (0..self.rows()).map(move |row| if is_null(row) { 0 } else { self.range(row).len() })
    }
}

fn copied<O: OffsetSizeTrait>(numbers: &[O]) -> Result<ScalarBuffer<O>, Error> {
    Ok(memory::collect(numbers.iter().copied())?.into())
}

/// A copy of offsets, checked to be non-negative and non-decreasing.
fn rising<O: OffsetSizeTrait>(offsets: &[O]) -> Result<ScalarBuffer<O>, Error> {
    let offsets = copied(offsets)?;
    let mut previous = O::zero();
    for (index, &offset) in offsets.iter().enumerate() {
        if offset < previous {
            let [offset, previous] = [offset, previous].map(|it| it.to_i64().unwrap_or(i64::MAX));
            return Err(Error::BadOffsets(match index {
                0 => OffsetsProblem::Negative { index, offset },
                _ => OffsetsProblem::Decreasing { index, offset, previous },
            }));
        }
        previous = offset;
    }
    Ok(offsets)
}

/// Checks that each row is within this many values; otherwise returns the end of the first one that is not.
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
