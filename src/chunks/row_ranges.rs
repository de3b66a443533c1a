//! The range of each row among all values: offsets, offsets and sizes, or byte views. Other code may still write to
//! their memory.

use std::{iter, mem, ops::Range};

use arrow_array::types::{self, ByteArrayType};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericListArray, GenericListViewArray, OffsetSizeTrait,
    StructArray, cast::AsArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{DataType, FieldRef};

use crate::alloc::{self, Fresh};
use crate::{Error, OffsetsProblem, ffi::DLDataType, task};

/// Offsets or sizes of 32 or 64 bits.
pub(crate) struct Integers {
    bytes: Buffer,
    is_large: bool,
}

/// The range of each row's values.
pub(crate) enum Bounds {
    Offsets(Integers),
    /// Offsets and sizes of list views.
    Views(Integers, Integers),
    /// Byte views, whose values are in several buffers, so that only their lengths count.
    ByteViews(ScalarBuffer<u128>),
}

impl Integers {
    pub(crate) fn new<O: OffsetSizeTrait>(numbers: &ScalarBuffer<O>) -> Self {
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
        let bytes = Fresh::copied(iter::once(self.bytes.as_slice()))?.into_buffer();
        Ok(Self { bytes, ..*self })
    }
}

/// What rows of different lengths consist of.
#[derive(Clone, Copy)]
pub(crate) enum RowItems<'a> {
    Bytes(&'a Buffer),
    List(&'a ArrayRef, &'a FieldRef),
    Map(&'a StructArray),
}

impl<'a> RowItems<'a> {
    /// The array of the items; `None` for bytes.
    pub(crate) fn array(self) -> Option<&'a dyn Array> {
        match self {
            Self::Bytes(_) => None,
            Self::List(values, _) => Some(values),
            Self::Map(entries) => Some(entries),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::List(values, _) => values.len(),
            Self::Map(entries) => entries.len(),
        }
    }
}

impl Bounds {
    /// The bounds and the items of an array whose rows differ in length; `None` for other types and for byte views.
    pub(crate) fn of(array: &dyn Array) -> Option<(Self, RowItems<'_>)> {
        fn bytes<T: ByteArrayType>(array: &GenericByteArray<T>) -> (Bounds, RowItems<'_>) {
            (
                Bounds::Offsets(Integers::new(array.offsets().inner())),
                RowItems::Bytes(array.values()),
            )
        }
        fn list<'a, O: OffsetSizeTrait>(
            list: &'a GenericListArray<O>,
            item: &'a FieldRef,
        ) -> (Bounds, RowItems<'a>) {
            let offsets = Integers::new(list.offsets().inner());
            (Bounds::Offsets(offsets), RowItems::List(list.values(), item))
        }
        fn view<'a, O: OffsetSizeTrait>(
            list: &'a GenericListViewArray<O>,
            item: &'a FieldRef,
        ) -> (Bounds, RowItems<'a>) {
            let bounds = Bounds::Views(Integers::new(list.offsets()), Integers::new(list.sizes()));
            (bounds, RowItems::List(list.values(), item))
        }
        Some(match array.data_type() {
            DataType::Utf8 => bytes(array.as_bytes::<types::Utf8Type>()),
            DataType::LargeUtf8 => bytes(array.as_bytes::<types::LargeUtf8Type>()),
            DataType::Binary => bytes(array.as_bytes::<types::BinaryType>()),
            DataType::LargeBinary => bytes(array.as_bytes::<types::LargeBinaryType>()),
            DataType::List(item) => list(array.as_list::<i32>(), item),
            DataType::LargeList(item) => list(array.as_list::<i64>(), item),
            DataType::ListView(item) => view(array.as_list_view::<i32>(), item),
            DataType::LargeListView(item) => view(array.as_list_view::<i64>(), item),
            DataType::Map(..) => {
                let map = array.as_map();
                (Self::Offsets(Integers::new(map.offsets().inner())), RowItems::Map(map.entries()))
            }
            _ => return None,
        })
    }

    /// The dtype of the offsets, or the one that they would have.
    pub(crate) fn dtype(&self) -> DLDataType {
        let is_small =
            matches!(self, Self::Offsets(numbers) | Self::Views(numbers, _) if !numbers.is_large);
        if is_small { DLDataType::INT32 } else { DLDataType::INT64 }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Offsets(offsets) => offsets.len().saturating_sub(1),
            Self::Views(offsets, _) => offsets.len(),
            Self::ByteViews(views) => views.len(),
        }
    }

    /// The range of an existing row.
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        match self {
            Self::Offsets(offsets) => offsets.at(row).as_usize()..offsets.at(row + 1).as_usize(),
            Self::Views(offsets, sizes) => {
                let start = offsets.at(row).as_usize();
                start..start.saturating_add(sizes.at(row).as_usize())
            }
            Self::ByteViews(views) => 0..ByteView::from(views[row]).length.as_usize(),
        }
    }

    /// The bounds of the first values of each row, at most `most`; those of byte views are as they were.
    pub(crate) fn cut(&self, width: usize) -> Result<Self, Error> {
        if let Self::ByteViews(views) = self {
            return Ok(Self::ByteViews(views.clone()));
        }
        let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let ranges = || (0..self.rows()).map(|row| self.range(row));
        let starts = alloc::collect(ranges().map(|range| number(range.start)))?;
        let sizes = alloc::collect(ranges().map(|range| number(range.len().min(width))))?;
        Ok(Self::Views(Integers::new::<i64>(&starts.into()), Integers::new::<i64>(&sizes.into())))
    }

    /// The offsets buffer, if there is one.
    pub(crate) fn buffer(&self) -> Option<&Buffer> {
        match self {
            Self::Offsets(offsets) => Some(&offsets.bytes),
            _ => None,
        }
    }

    /// The offsets, if there are any of this width; otherwise none.
    pub(crate) fn offsets<O: OffsetSizeTrait>(&self) -> &[O] {
        match self {
            Self::Offsets(offsets) if offsets.is_large == O::IS_LARGE => offsets.bytes.typed_data(),
            _ => &[],
        }
    }

    /// The start of the first row and the end of the last one, also without rows; `None` without offsets.
    pub(crate) fn ends(&self) -> Option<Range<usize>> {
        let Self::Offsets(offsets) = self else { return None };
        let last = offsets.len().checked_sub(1)?;
        Some(offsets.at(0).as_usize()..offsets.at(last).as_usize())
    }

    /// A copy, checked.
    pub(crate) fn snapshot(self, values: usize) -> Result<Self, Error> {
        let copied = match &self {
            Self::Offsets(offsets) => Self::Offsets(offsets.copied()?),
            Self::Views(starts, sizes) => Self::Views(starts.copied()?, sizes.copied()?),
            Self::ByteViews(views) => {
                alloc::probe_alloc(views.inner().len())?;
                Self::ByteViews(views.to_vec().into())
            }
        };
        copied.check(values)?;
        Ok(copied)
    }

    /// Checks that offsets are not negative and do not decrease, and that all rows are within this many values.
    pub(crate) fn check(&self, values: usize) -> Result<(), Error> {
        let beyond = match self {
            Self::Offsets(offsets) => {
                check_rising(offsets)?;
                self.ends().map(|ends| ends.end).filter(|&end| end > values)
            }
            Self::Views(starts, sizes) => {
                let mut ends = starts.iter().zip(sizes.iter()).map(end);
                ends.find(|&end| end > values)
            }
            // `place` checks each view against its buffer.
            Self::ByteViews(_) => None,
        };
        let Some(end) = beyond else { return Ok(()) };
        let offset = i64::try_from(end).unwrap_or(i64::MAX);
        Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }))
    }

    /// The lengths of the rows; null rows have length 0.
    pub(crate) fn lengths<'a>(
        &'a self,
        nulls: Option<&'a NullBuffer>,
    ) -> impl Iterator<Item = usize> + 'a {
        let is_null = move |row| nulls.is_some_and(|nulls| nulls.is_null(row));
        let mut start = self.ends().map_or(0, |ends| ends.start);
        (0..self.rows()).map(move |row| {
            let length = match self {
                // Each offset ends a row and starts the next one: it is read once.
                Self::Offsets(offsets) => {
                    let end = offsets.at(row + 1).as_usize();
                    end.saturating_sub(mem::replace(&mut start, end))
                }
                _ => self.range(row).len(),
            };
            if is_null(row) { 0 } else { length }
        })
    }
}

/// Checks that offsets are non-negative and non-decreasing.
fn check_rising(offsets: &Integers) -> Result<(), Error> {
    match offsets.is_large {
        true => rising::<i64>(offsets.bytes.typed_data()),
        false => rising::<i32>(offsets.bytes.typed_data()),
    }
}

fn rising<O: OffsetSizeTrait + Into<i64>>(offsets: &[O]) -> Result<(), Error> {
    const BLOCK: usize = 1 << 20;
    let mut before = O::zero();
    let mut rises = true;
    for block in offsets.chunks(BLOCK) {
        task::check()?;
        rises &= block[0] >= before && block.is_sorted();
        before = block[block.len() - 1];
    }
    if rises {
        return Ok(());
    }
    let previous = |index: usize| index.checked_sub(1).map_or(O::zero(), |before| offsets[before]);
    let falling =
        offsets.iter().copied().enumerate().find(|&(index, offset)| offset < previous(index));
    let Some((index, offset)) = falling else { return Ok(()) };
    let (offset, previous) = (offset.into(), previous(index).into());
    Err(Error::BadOffsets(match index {
        0 => OffsetsProblem::Negative { index, offset },
        _ => OffsetsProblem::Decreasing { index, offset, previous },
    }))
}

/// The end of a row of a list view.
fn end((start, size): (i64, i64)) -> usize {
    match (usize::try_from(start), usize::try_from(size)) {
        (Ok(start), Ok(size)) => start.saturating_add(size),
        _ => usize::MAX,
    }
}

/// The buffer and the range in it where the value of a row is.
///
/// The view is passed by itself, because it may change where it is stored.
pub(crate) fn place<'a>(
    view: u128,
    row: usize,
    views: &'a ScalarBuffer<u128>,
    blocks: &'a [Buffer],
) -> Result<(&'a Buffer, Range<usize>), OffsetsProblem> {
    let view = ByteView::from(view);
    if view.length <= MAX_INLINE_VIEW_LEN {
        // Short values are stored in the view itself, after the length.
        let start = 16 * row + 4;
        return Ok((views.inner(), start..start + view.length.as_usize()));
    }
    let start = view.offset.as_usize();
    let end = start.saturating_add(view.length.as_usize());
    match blocks.get(view.buffer_index.as_usize()) {
        Some(block) if end <= block.len() => Ok((block, start..end)),
        block => {
            let offset = i64::try_from(end).unwrap_or(i64::MAX);
            Err(OffsetsProblem::Beyond { offset, values: block.map_or(0, Buffer::len) })
        }
    }
}
