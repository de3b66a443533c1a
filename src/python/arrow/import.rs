//! Makes arrays of arrow-rs from Arrow's C structures, once they are checked.
//!
//! Each level of a nested array is an array here, which is checked by itself: its children are cut to the rows
//! that it has, where they are parallel to it, and else they may be [`SharedChildren`]. arrow-rs's own import checks children
//! as often as there are slices of their parent, makes an `ArrayData` for each number and struct, which takes most
//! of the time for a batch of a thousand columns, and takes some valid arrays for others.
#![expect(unsafe_code, reason = "shares the buffers of foreign structures")]

use std::{ops::Range, ptr::NonNull, str, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, OffsetSizeTrait, StructArray, make_array, new_empty_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields, UnionMode};

use super::shared_children::SharedChildren;
use super::validate::{Bytes, CheckedArray, TypedArray};
use crate::alloc::{self, Fresh};
use crate::chunks::{checked, runs_of};
use crate::{Error, arrow_types::child_types, import};

type ArrowResult<T = ArrayRef> = Result<T, ArrowError>;

/// Takes over an array structure, and returns how many bytes of it are not aligned to their values, which
/// are moved. Numeric arrays are checked in constant time, apart from a count of nulls if there are any;
/// other arrays are checked in full, because offsets and keys index memory, except for children that are known.
pub(super) fn array_from(
    array: TypedArray,
    known: Option<&SharedChildren>,
) -> Result<(ArrayRef, usize), Error> {
    let owner = Arc::new(array);
    let (array, moved) = owner.checked().map_err(Error::InvalidArray)?;
    alloc::probe_alloc(moved)?;
    known.inspect(|known| known.begin());
    let part = Part { array, owner: &owner, known };
    let array = checked(|| part.rows(0, part.array.len()))?;
    Ok((array, moved))
}

/// The error of a column, with its name.
fn within(name: &str, error: ArrowError) -> ArrowError {
    use ArrowError::{CDataInterface, InvalidArgumentError};
    match error {
        InvalidArgumentError(told) => InvalidArgumentError(format!("\"{name}\": {told}")),
        CDataInterface(told) => CDataInterface(format!("\"{name}\": {told}")),
        other => other,
    }
}

/// A structure that is the owner's, or below it.
#[derive(Clone, Copy)]
struct Part<'a> {
    array: CheckedArray<'a>,
    owner: &'a Arc<TypedArray>,
    /// `None` outside of streams, and below a child that is known or becomes it.
    known: Option<&'a SharedChildren>,
}

impl<'a> Part<'a> {
    /// A range of rows as an array.
    fn rows(self, from: usize, len: usize) -> ArrowResult {
        use DataType::{Binary, Boolean, Dictionary, LargeBinary, LargeUtf8, Struct, Utf8};
        let data_type = self.array.data_type();
        if len == 0 && !data_type.is_nested() && !matches!(data_type, Dictionary(..)) {
            return Ok(new_empty_array(data_type));
        }
        if let Some(numbers) = self.numbers(from, len) {
            return Ok(numbers);
        }
        match data_type {
            Struct(fields) => self.structs(fields, from, len),
            Boolean => self.bits(from, len),
            Utf8 | Binary => self.texts::<i32>(from, len),
            LargeUtf8 | LargeBinary => self.texts::<i64>(from, len),
            _ => self.others(from, len),
        }
    }

    /// A structure below this one.
    fn below(self, array: CheckedArray<'a>) -> Self {
        Self { array, ..self }
    }

    fn child(self, index: usize) -> Self {
        self.below(self.array.child(index))
    }

    /// [`rows`](Self::rows) of structs.
    fn structs(self, fields: &Fields, from: usize, len: usize) -> ArrowResult {
        let nulls = self.nulls(from, len);
        let start = self.array.offset() + from;
        let mut columns = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let column = self.child(index).rows(start, len);
            let column = column.map_err(|error| within(field.name(), error))?;
            if !field.is_nullable() && column.is_nullable() {
                // Nulls of a dictionary's values, or of runs, are looked for row by row.
                alloc::probe_alloc(len.div_ceil(8))?;
            }
            columns.push(column);
        }
        Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len)?))
    }

    /// [`rows`](Self::rows) of booleans.
    fn bits(self, from: usize, len: usize) -> ArrowResult {
        let start = self.array.offset() + from;
        let bits = self.cut(self.array.values(), 0..(start + len).div_ceil(8))?;
        let values = BooleanBuffer::new(bits, start, len);
        Ok(Arc::new(BooleanArray::new(values, self.nulls(from, len))))
    }

    /// [`rows`](Self::rows) of any other type. Its children are checked before it is.
    fn others(self, from: usize, len: usize) -> ArrowResult {
        let data_type = self.array.data_type();
        let start = self.array.offset() + from;
        let nulls = self.nulls(from, len);
        let buffers = self.buffers(start, len)?;
        let children = self.children(start, len)?;
        let is_view = matches!(data_type, DataType::Utf8View | DataType::BinaryView);
        if let (Some(nulls), true) = (&nulls, is_view) {
            return views(data_type, len, nulls, buffers);
        }
        // The ends of runs count from the start of the whole array.
        let offset = if matches!(data_type, DataType::RunEndEncoded(..)) { start } else { 0 };
        let data = ArrayData::builder(data_type.clone()).offset(offset).len(len).nulls(nulls);
        let data = data.child_data(children).align_buffers(true);
        if !matches!(data_type, DataType::Union(_, UnionMode::Dense)) {
            return Ok(make_array(data.buffers(buffers).build()?));
        }
        // arrow-rs reads the type ids of dense unions twice, and panics where other code has changed one in between.
        let ids = Fresh::copied([&*buffers[0]].into_iter())?.into_buffer();
        Ok(make_array(data.buffers(vec![ids, buffers[1].clone()]).build()?))
    }

    /// The buffers of rows, cut to them; `start` is counted from the start of the buffers.
    fn buffers(self, start: usize, len: usize) -> ArrowResult<Vec<Buffer>> {
        use DataType::{LargeList, List, Map};
        let is_list = matches!(self.array.data_type(), List(_) | LargeList(_) | Map(..));
        let mut buffers = Vec::new();
        for (width, bytes) in self.array.fixed() {
            // Of lists without rows not even the one offset that they should have.
            let cut = match len {
                0 => 0..0,
                _ => start * width..(start + len + usize::from(is_list)) * width,
            };
            buffers.push(self.cut(bytes, cut)?);
        }
        for bytes in self.array.variadic().map_err(ArrowError::CDataInterface)? {
            buffers.push(self.whole_of(bytes)?);
        }
        Ok(buffers)
    }

    /// The children of rows: parallel ones are cut to them, and of runs those that the rows are in. `start` is counted
    /// from the start of the buffers.
    fn children(self, start: usize, len: usize) -> ArrowResult<Vec<ArrayData>> {
        let data_type = self.array.data_type();
        if let Some(values) = self.array.dictionary() {
            return Ok(vec![self.below(values).whole()?]);
        }
        if let DataType::RunEndEncoded(..) = data_type {
            let (ends, values) = (self.child(0), self.child(1));
            let count = ends.array.len().min(values.array.len());
            let ends = ends.rows(0, count)?;
            let runs = runs_of(&ends.to_data(), start, len);
            let values = values.rows(runs.start, runs.len())?;
            return Ok(vec![ends.slice(runs.start, runs.len()).to_data(), values.to_data()]);
        }
        let per_row = match data_type {
            DataType::FixedSizeList(_, size) => Some(usize::try_from(*size).unwrap_or(0)),
            DataType::Union(_, UnionMode::Sparse) => Some(1),
            _ => None,
        };
        let children = 0..child_types(data_type).len();
        let child = |index| match per_row {
            Some(count) => Ok(self.child(index).rows(start * count, len * count)?.to_data()),
            None => self.child(index).whole(),
        };
        children.map(child).collect()
    }

    /// All rows, which offsets or codes refer to.
    fn whole(self) -> ArrowResult<ArrayData> {
        let import = || Part { known: None, ..self }.rows(0, self.array.len());
        let array = match self.known {
            Some(known) if !self.array.data_type().is_primitive() => {
                known.child(self.array, self.owner, import)
            }
            _ => import(),
        };
        Ok(array?.to_data())
    }

    /// [`rows`](Self::rows) of texts or binaries with offsets of this width, at least one.
    fn texts<O: OffsetSizeTrait>(self, from: usize, len: usize) -> ArrowResult {
        let data_type = self.array.data_type();
        let [offsets, values] = self.array.texts().map_err(ArrowError::CDataInterface)?;
        let mut offsets = self.whole_of(offsets)?;
        if offsets.as_ptr().align_offset(align_of::<O>()) != 0 {
            // Of files in memory and streams over a network, as those of Arrow Flight.
            offsets = Buffer::from_slice_ref(offsets.as_slice());
        }
        let values = self.whole_of(values)?;
        let start = self.array.offset() + from;
        let data = ArrayData::builder(data_type.clone()).offset(start).len(len);
        let data = data.nulls(self.nulls(from, len)).add_buffer(offsets).add_buffer(values);
        // SAFETY: the offsets are aligned, one more than rows, and there is a bit for each row (S2); what the offsets say
        // is checked next.
        let data = unsafe { data.build_unchecked() };
        let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
        if !(is_text && are_texts::<O>(&data)) {
            data.validate_data()?;
        }
        Ok(make_array(data))
    }

    /// [`rows`](Self::rows) of a primitive type; `None` for any other, and if the values cannot be shared.
    fn numbers(self, from: usize, len: usize) -> Option<ArrayRef> {
        let data_type = self.array.data_type();
        let width = data_type.primitive_width()?;
        let values = self.array.values().filter(|values| !values.is_empty())?;
        // The strictest alignment of any value; values that need less take the other path.
        if values.as_ptr().align_offset(width.min(16)) != 0 {
            return None;
        }
        let values = self.share(values, 0..values.len());
        let nulls = self.nulls(from, len);
        let start = self.array.offset() + from;
        if let Some(numbers) = import::numeric(data_type, start, len, &values, nulls.as_ref()) {
            return Some(numbers);
        }
        // Times and decimals: a typed array for each would instantiate arrow-array's code once more.
        let data = ArrayData::builder(data_type.clone()).offset(start).len(len).nulls(nulls);
        // SAFETY: the values are aligned, and there are as many bits as values.
        Some(make_array(unsafe { data.add_buffer(values).build_unchecked() }))
    }

    /// The validity of these rows, if any is null.
    fn nulls(self, from: usize, len: usize) -> Option<NullBuffer> {
        let bits = self.array.validity().filter(|bits| !bits.is_empty())?;
        let bits = self.share(bits, 0..bits.len());
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, self.array.offset() + from, len));
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn whole_of(self, bytes: Option<Bytes<'a>>) -> ArrowResult<Buffer> {
        self.cut(bytes, 0..bytes.map_or(0, |bytes| bytes.len()))
    }

    /// These bytes of a buffer of the array; an empty one where none are needed, because the pointer may be anything
    /// then.
    fn cut(self, bytes: Option<Bytes<'a>>, range: Range<usize>) -> ArrowResult<Buffer> {
        if range.is_empty() {
            return Ok(MutableBuffer::new(0).into());
        }
        let missing = || ArrowError::CDataInterface("a buffer of values is null".to_owned());
        Ok(self.share(bytes.ok_or_else(missing)?, range))
    }

    /// Bytes of the array as a buffer, which keeps the owner.
    fn share(self, bytes: Bytes<'a>, range: Range<usize>) -> Buffer {
        let bytes = &bytes.get()[range];
        let (start, owner) = (NonNull::from(bytes).cast(), Arc::clone(self.owner));
        // SAFETY: S1: a checked array's, of which this file has only those of the owner; they are there for as long.
        unsafe { Buffer::from_custom_allocation(start, bytes.len(), owner) }
    }
}

/// Texts or binaries as views, of which some rows are null. There the view may be anything, which arrow-rs refuses: then
/// these views are empty, in a copy.
fn views(
    data_type: &DataType,
    len: usize,
    nulls: &NullBuffer,
    mut buffers: Vec<Buffer>,
) -> ArrowResult {
    let made = |buffers| {
        let data = ArrayData::builder(data_type.clone()).len(len).nulls(Some(nulls.clone()));
        data.buffers(buffers).align_buffers(true).build().map(make_array)
    };
    made(buffers.clone()).or_else(|_| {
        let visible = Fresh::write::<i128>(len, |views| {
            for row in nulls.valid_indices() {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&buffers[0][16 * row..][..16]);
                views[row] = i128::from_ne_bytes(bytes);
            }
            Ok(())
        })?;
        buffers[0] = visible.into_buffer();
        made(buffers)
    })
}

/// Whether all rows are texts. Reads the bytes of these rows only: arrow-rs reads those before them too, again for each
/// slice of an array. The array has at least one row, and aligned offsets.
fn are_texts<O: OffsetSizeTrait>(data: &ArrayData) -> bool {
    let offsets = &data.buffers()[0].typed_data::<O>()[data.offset()..=data.offset() + data.len()];
    let (first, last) = (offsets[0].as_usize(), offsets[data.len()].as_usize());
    let bytes = data.buffers()[1].get(first..last);
    bytes.and_then(|bytes| str::from_utf8(bytes).ok()).is_some_and(|text| {
        let is_boundary = |at: &O| text.is_char_boundary(at.as_usize().wrapping_sub(first));
        offsets.is_sorted() && offsets.iter().all(is_boundary)
    })
}
