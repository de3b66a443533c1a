//! Arrays that cannot change: checked copies of memory that other code may still write to.
//!
//! A foreign array is checked when it is imported, and shares its memory. If its producer breaks its promise
//! and writes to values, the result is wrong values. But arrow's kernels index memory by offsets, sizes, views,
//! codes, run ends and type ids without another check, and Rust relies on texts being UTF-8. So code that
//! indexes by them uses a copy ([`addresses`]), and code that reads texts copies those too ([`everything`]).

use std::{borrow::Cow, iter, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, OffsetSizeTrait, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder, ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{ArrowError, DataType, UnionMode};

use super::{checked::checked, footprint::item_width, runs::runs_of};
use crate::alloc::{self, Fresh};
use crate::{Error, arrow_types::most, task};

type Copied<T> = Result<T, ArrowError>;

/// The same values in the same memory, with copied offsets, codes and other indices, which no other code can change.
pub(crate) fn addresses(array: &ArrayRef) -> Result<ArrayRef, Error> {
    if has_addresses(array.data_type()) {
        checked(|| Ok(make_array(copy(&array.to_data(), false)?)))
    } else {
        Ok(Arc::clone(array))
    }
}

/// [`addresses`] of chunks. Chunks that share a dictionary share its copy.
pub(crate) fn chunks(chunks: &[ArrayRef]) -> Result<Vec<ArrayRef>, Error> {
    let mut last: Option<(ArrayData, ArrayData)> = None;
    let each = chunks.iter().map(|chunk| {
        let DataType::Dictionary(key, _) = chunk.data_type() else { return addresses(chunk) };
        checked(|| {
            let data = chunk.to_data();
            let values = &data.child_data()[0];
            let known = last.take().filter(|(known, _)| known.ptr_eq(values));
            let own = match known {
                Some((_, own)) => own,
                None => copy(&numbered(values, key), false)?,
            };
            last = Some((values.clone(), own.clone()));
            let keys = bytes_of(&data, key.primitive_width().unwrap_or(0))?;
            let builder = ArrayData::builder(data.data_type().clone()).len(data.len());
            let builder = builder.nulls(validity(data.nulls())?).add_buffer(keys);
            Ok(make_array(builder.add_child_data(own).build()?))
        })
    });
    each.collect()
}

/// The same values in new memory.
pub(crate) fn everything(array: &dyn Array) -> Result<ArrayRef, Error> {
    checked(|| Ok(make_array(copy(&array.to_data(), true)?)))
}

/// Whether arrays of a type have offsets, codes or other indices.
fn has_addresses(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => has_addresses(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_addresses(field.data_type())),
        DataType::Null | DataType::Boolean | DataType::FixedSizeBinary(_) => false,
        other => !other.is_primitive(),
    }
}

/// A copy of an array from its first row on; with `all`, its values are copied too.
fn copy(data: &ArrayData, all: bool) -> Copied<ArrayData> {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeListView,
        LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
    };

    let (data_type, rows, start) = (data.data_type(), data.len(), data.offset());
    if rows == 0 {
        return Ok(ArrayData::new_empty(data_type));
    }
    let child = |index: usize| &data.child_data()[index];
    // The items of the buffers that belong to rows, of these widths.
    let items = |widths: &[usize]| {
        let buffers = data.buffers().iter().zip(widths);
        let items = buffers.map(|(buffer, width)| section(buffer, start * width, rows * width));
        items.collect::<Copied<Vec<_>>>()
    };
    let children = || {
        let children = data.child_data().iter();
        children.map(|child| copy(child, all)).collect::<Copied<Vec<_>>>()
    };
    let columns = || {
        let columns = data.child_data().iter();
        columns.map(|column| copy(&slice(column, start, rows), all)).collect::<Copied<Vec<_>>>()
    };
    let nulls = validity(data.nulls())?;
    let builder = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls.clone());
    let builder = match data_type {
        Null => builder,
        Utf8 | Binary => builder.buffers(bytes::<i32>(data, all)?),
        LargeUtf8 | LargeBinary => builder.buffers(bytes::<i64>(data, all)?),
        Utf8View | BinaryView => views(data, all, nulls.as_ref(), builder)?,
        List(_) | Map(..) => lists::<i32>(data, all, builder)?,
        LargeList(_) => lists::<i64>(data, all, builder)?,
        ListView(_) => builder.buffers(items(&[4, 4])?).child_data(children()?),
        LargeListView(_) => builder.buffers(items(&[8, 8])?).child_data(children()?),
        FixedSizeList(_, size) => {
            let size = size.as_usize();
            builder.add_child_data(copy(&slice(child(0), start * size, rows * size), all)?)
        }
        Struct(_) => builder.child_data(columns()?),
        Union(_, UnionMode::Sparse) => builder.buffers(items(&[1])?).child_data(columns()?),
        Union(_, UnionMode::Dense) => builder.buffers(items(&[1, 4])?).child_data(children()?),
        Dictionary(key, _) => {
            let width = key.primitive_width().unwrap_or(0);
            builder.buffers(items(&[width])?).add_child_data(copy(&numbered(child(0), key), all)?)
        }
        RunEndEncoded(..) => {
            let runs = runs_of(child(0), start, rows);
            let of_rows = |index: usize| slice(child(index), runs.start, runs.len());
            let ends = copy(&of_rows(0), true)?;
            builder.offset(start).add_child_data(ends).add_child_data(copy(&of_rows(1), all)?)
        }
        _ if !all => return Ok(data.clone()),
        DataType::Boolean => {
            let bits = BooleanBuffer::new(data.buffers()[0].clone(), start, rows);
            builder.add_buffer(whole(&bits.sliced())?)
        }
        other => builder.buffers(items(&[item_width(other).unwrap_or(0)])?),
    };
    builder.build()
}

/// The values of a dictionary that its keys can number. arrow's kernels panic for one that has more.
fn numbered<'a>(values: &'a ArrayData, keys: &DataType) -> Cow<'a, ArrayData> {
    match most(keys) {
        most if most < values.len() => Cow::Owned(slice(values, 0, most)),
        _ => Cow::Borrowed(values),
    }
}

/// [`ArrayData::slice`], but for structs, whose children it slices in arrow-rs 59 without a reset of the offset.
fn slice(data: &ArrayData, start: usize, len: usize) -> ArrayData {
    match data.data_type() {
        DataType::Struct(_) => make_array(data.clone()).slice(start, len).into_data(),
        _ => data.slice(start, len),
    }
}

/// Texts or binaries: copies their offsets, each of them read once, and with `all` the bytes between the first and
/// the last.
fn bytes<O: Offset>(data: &ArrayData, all: bool) -> Copied<Vec<Buffer>> {
    let bytes = &data.buffers()[1];
    let (offsets, rows) = offsets::<O>(data, bytes.len())?;
    // Cut, because arrow-rs checks all of them, for each slice of an array.
    let values = bytes.slice_with_length(rows.start, rows.len());
    Ok(vec![offsets, if all { whole(&values)? } else { values }])
}

/// [`bytes`] for lists.
fn lists<O: Offset>(
    data: &ArrayData,
    all: bool,
    builder: ArrayDataBuilder,
) -> Copied<ArrayDataBuilder> {
    let items = &data.child_data()[0];
    let (offsets, rows) = offsets::<O>(data, items.len())?;
    let items = copy(&slice(items, rows.start, rows.len()), all)?;
    Ok(builder.add_buffer(offsets).add_child_data(items))
}

/// A copy of all offsets, which begins at 0, and the range of the values, checked against their number.
fn offsets<O: Offset>(data: &ArrayData, values: usize) -> Copied<(Buffer, Range<usize>)> {
    let offsets = &data.buffers()[0].typed_data::<O>()[data.offset()..=data.offset() + data.len()];
    let (offsets, ranges) = rebased(iter::once((offsets, values)))?;
    Ok((offsets, ranges[0].clone()))
}

/// Offsets, whose sums may wrap where other code writes to them.
pub(super) trait Offset: OffsetSizeTrait + ArrowNativeTypeOp {}
impl Offset for i32 {}
impl Offset for i64 {}

/// The offsets of all chunks as those of one array, and the range of each chunk's values that belong to its rows.
/// `chunks` gives the offsets of each chunk and the number of its values.
///
/// Other code may write to the offsets, so each is read once, and the copies are checked.
pub(super) fn rebased<'a, O: Offset>(
    chunks: impl ExactSizeIterator<Item = (&'a [O], usize)> + Clone,
) -> Result<(Buffer, Vec<Range<usize>>), ArrowError> {
    let each = chunks.clone().map(|(own, _)| (own.len().saturating_sub(1), length(own)));
    // The chunks may be one array many times, with more values than there are addresses.
    let (rows, values) =
        each.fold((0, 0usize), |sum, (rows, values)| (sum.0 + rows, sum.1.saturating_add(values)));
    if O::from_usize(values).is_none() {
        // More than the machine has is out of memory, whatever the width of the offsets.
        alloc::probe_alloc(values)?;
        return Err(ArrowError::OffsetOverflowError(values));
    }
    let mut ranges = alloc::reserved(chunks.len())?;
    let offsets = Fresh::try_build::<O>(rows + 1, |offsets| {
        offsets.push(O::zero());
        for (own, values) in chunks {
            let Some((&first, own)) = own.split_first().filter(|(_, own)| !own.is_empty()) else {
                ranges.push(0..0);
                continue;
            };
            task::check()?;
            let start = offsets.len() - 1;
            let base = offsets[start];
            let by = base.sub_wrapping(first);
            offsets.extend(own.iter().map(|offset| offset.add_wrapping(by)));
            let length = offsets[offsets.len() - 1].sub_wrapping(base);
            let range = first.to_usize().zip(length.to_usize());
            let range = range.map(|(first, length)| first..first.saturating_add(length));
            match range.filter(|range| offsets[start..].is_sorted() && range.end <= values) {
                Some(range) => ranges.push(range),
                None => return Err(not_of_rows()),
            }
        }
        Ok(())
    })?;
    Ok((offsets.into_buffer(), ranges))
}

pub(super) fn not_of_rows() -> Error {
    Error::InvalidArray("the offsets are not offsets of rows".to_owned())
}

/// The number of values between the first offset and the last.
fn length<O: Offset>(offsets: &[O]) -> usize {
    match offsets {
        [first, .., last] => last.sub_wrapping(*first).to_usize().unwrap_or(0),
        _ => 0,
    }
}

/// Copies views, and with `all` their bytes: only the bytes that views refer to, unless views
/// overlap so that these are more.
fn views(
    data: &ArrayData,
    all: bool,
    nulls: Option<&NullBuffer>,
    builder: ArrayDataBuilder,
) -> Copied<ArrayDataBuilder> {
    let (views, blocks) = (bytes_of(data, 16)?, &data.buffers()[1..]);
    if !all {
        return Ok(builder.add_buffer(views).add_buffers(blocks.to_vec()));
    }
    let is_long = |row: usize, view: &u128| {
        !nulls.is_some_and(|nulls| nulls.is_null(row))
            && ByteView::from(*view).length > MAX_INLINE_VIEW_LEN
    };
    let mut views = alloc::collect(views.typed_data::<u128>().iter().copied())?;
    let long = views.iter().enumerate().filter(|(row, view)| is_long(*row, view));
    let needed = long.map(|(_, &view)| ByteView::from(view).length.as_usize());
    let (needed, held) =
        (needed.fold(0, usize::saturating_add), blocks.iter().map(Buffer::len).sum());
    if needed > held || u32::try_from(needed).is_err() {
        let blocks = blocks.iter().map(whole).collect::<Copied<Vec<_>>>()?;
        return Ok(builder.add_buffer(Buffer::from_vec(views)).add_buffers(blocks));
    }
    alloc::probe_alloc(needed)?;
    let mut bytes = Vec::with_capacity(needed);
    for (row, bits) in views.iter_mut().enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            *bits = 0; // whatever it was, arrow-rs would look where it points
        }
        if !is_long(row, bits) {
            continue;
        }
        let view = ByteView::from(*bits);
        let (at, length) = (view.offset.as_usize(), view.length.as_usize());
        let block = blocks.get(view.buffer_index.as_usize());
        let text = block.and_then(|block| block.get(at..)?.get(..length)).ok_or_else(|| {
            ArrowError::InvalidArgumentError(format!("the view of row {row} points nowhere"))
        })?;
        let offset = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(text);
        *bits = view.with_buffer_index(0).with_offset(offset).into();
    }
    Ok(builder.add_buffer(Buffer::from_vec(views)).add_buffer(Buffer::from_vec(bytes)))
}

/// A copy of the validity, with its nulls counted again.
pub(crate) fn validity(nulls: Option<&NullBuffer>) -> Copied<Option<NullBuffer>> {
    let copied = |nulls: &NullBuffer| {
        let bits = whole(&nulls.inner().sliced())?;
        Ok(NullBuffer::new(BooleanBuffer::new(bits, 0, nulls.len())))
    };
    nulls.map(copied).transpose()
}

/// The items of the first buffer that belong to rows.
fn bytes_of(data: &ArrayData, width: usize) -> Copied<Buffer> {
    section(&data.buffers()[0], data.offset() * width, data.len() * width)
}

fn section(buffer: &Buffer, start: usize, len: usize) -> Copied<Buffer> {
    whole(&buffer.slice_with_length(start, len))
}

fn whole(buffer: &Buffer) -> Copied<Buffer> {
    Ok(Fresh::copied(iter::once(buffer.as_slice()))?.into_buffer())
}
