//! Makes arrays of arrow-rs from Arrow's C structures, once they are checked.
//!
//! Each level of a nested array is an array here, which is checked by itself: its children are cut to the rows
//! that it has, where they are parallel to it, and else they may be [`Known`]. arrow-rs's own import checks children
//! as often as there are slices of their parent, makes an `ArrayData` for each number and struct, which takes most
//! of the time for a batch of a thousand columns, and takes some valid arrays for others.
#![expect(unsafe_code, reason = "takes foreign structures over")]

use std::{ptr::NonNull, sync::Arc};

use arrow_array::{Array, ArrayRef, OffsetSizeTrait, StructArray, make_array, new_empty_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::{ArrayData, BufferSpec, DataTypeLayout, layout};
use arrow_schema::{ArrowError, DataType, Fields, UnionMode};

use super::contents::{are_texts, runs_of};
use super::ffi::{Checked, fenced};
use super::known::{Known, OwnedArray};
use super::structs::ArrowArray;
use super::validate::check_array;
use super::views::views;
use crate::{import, memory, possible::child_types};

type Made<T = ArrayRef> = Result<T, ArrowError>;

/// Takes over an array structure, and returns how many bytes of it are not aligned to their values, which
/// are moved. Numeric arrays are checked in constant time, apart from a count of nulls if there are any;
/// other arrays are checked in full, because offsets and keys index memory, except for children that are known.
pub(in crate::python) fn array_from(
    array: ArrowArray,
    data_type: &DataType,
    known: Option<&Known>,
) -> Checked<(ArrayRef, usize)> {
    let moved = check_array(&array, data_type)?;
    let owner = Arc::new(OwnedArray(array));
    known.inspect(|known| known.begin());
    let part = Part { array: &owner.0, owner: &owner, known };
    // SAFETY: checked, and its own owner.
    let array = fenced(|| unsafe { part.rows(data_type, 0, part.array.len()) })?;
    Ok((array, moved))
}

/// A structure, or one below it.
#[derive(Clone, Copy)]
struct Part<'a> {
    array: &'a ArrowArray,
    owner: &'a Arc<OwnedArray>,
    /// `None` outside of streams, and below a child that is known or becomes it.
    known: Option<&'a Known>,
}

impl<'a> Part<'a> {
    /// A range of rows as an array.
    ///
    /// # Safety
    ///
    /// The structure is the owner's or below it, meets S1 and has passed [`check_array`] for this type; it has these
    /// rows.
    unsafe fn rows(self, data_type: &DataType, from: usize, len: usize) -> Made {
        use DataType::{Binary, Dictionary, LargeBinary, LargeUtf8, Struct, Utf8};
        if len == 0 && !data_type.is_nested() && !matches!(data_type, Dictionary(..)) {
            return Ok(new_empty_array(data_type));
        }
        // SAFETY: the caller's promise, each time.
        unsafe {
            if let Some(numbers) = self.numbers(data_type, from, len) {
                return Ok(numbers);
            }
            match data_type {
                Struct(fields) => self.structs(fields, from, len),
                Utf8 | Binary => self.bytes::<i32>(data_type, from, len),
                LargeUtf8 | LargeBinary => self.bytes::<i64>(data_type, from, len),
                _ => self.others(data_type, from, len),
            }
        }
    }

    /// A structure below this one.
    fn below(self, array: &'a ArrowArray) -> Self {
        Self { array, ..self }
    }

    /// [`rows`](Self::rows) of structs.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn structs(self, fields: &Fields, from: usize, len: usize) -> Made {
        // SAFETY: the caller's promise; structs have a validity.
        let nulls = unsafe { self.nulls(from, len) };
        let start = self.array.offset() + from;
        let mut columns = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            // SAFETY: the caller's promise holds for children, which are as long as their parent's end.
            let column =
                unsafe { self.below(self.array.child(index)).rows(field.data_type(), start, len) }?;
            if !field.is_nullable() && column.is_nullable() {
                // Nulls of a dictionary's values, or of runs, are looked for row by row.
                memory::probe_alloc(len.div_ceil(8))?;
            }
            columns.push(column);
        }
        Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len)?))
    }

    /// [`rows`](Self::rows) of any other type. Its children are checked before it is.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn others(self, data_type: &DataType, from: usize, len: usize) -> Made {
        let start = self.array.offset() + from;
        let layout = layout(data_type);
        // SAFETY: the caller's promise.
        let (nulls, buffers, children) = unsafe {
            let nulls = if layout.can_contain_null_mask { self.nulls(from, len) } else { None };
            let buffers = self.buffers(data_type, &layout, start, len)?;
            (nulls, buffers, self.children(data_type, start, len)?)
        };
        if let (Some(nulls), true) = (&nulls, layout.variadic) {
            return views(data_type, len, nulls, buffers);
        }
        // Bits begin within a byte, and the ends of runs count from the start of the whole array.
        let is_within = matches!(data_type, DataType::Boolean | DataType::RunEndEncoded(..));
        let offset = if is_within { start } else { 0 };
        let data = ArrayData::builder(data_type.clone()).offset(offset).len(len).nulls(nulls);
        let data = data.child_data(children).align_buffers(true);
        if !matches!(data_type, DataType::Union(_, UnionMode::Dense)) {
            return Ok(make_array(data.buffers(buffers).build()?));
        }
        // arrow-rs reads the type ids of dense unions twice, and panics where other code has changed one in between.
        memory::probe_alloc(len)?;
        let ids = Buffer::from_slice_ref(&buffers[0]);
        Ok(make_array(data.buffers(vec![ids, buffers[1].clone()]).build()?))
    }

    /// The buffers of rows, cut to them, except for bits; `start` is counted from the start of the buffers.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows), of a type of this layout without bytes.
    unsafe fn buffers(
        self,
        data_type: &DataType,
        layout: &DataTypeLayout,
        start: usize,
        len: usize,
    ) -> Made<Vec<Buffer>> {
        use DataType::{LargeList, List, Map};
        let items = len + usize::from(matches!(data_type, List(_) | LargeList(_) | Map(..)));
        let before = usize::from(layout.can_contain_null_mask);
        let fixed = layout.buffers.iter().enumerate().map(|(index, buffer)| {
            if len == 0 {
                // Not even the one offset that lists without rows should have.
                return or_empty(None, 0);
            }
            let (from, len) = match *buffer {
                BufferSpec::FixedWidth { byte_width, .. } => {
                    (start * byte_width, items * byte_width)
                }
                _ => (0, (start + len).div_ceil(8)),
            };
            // SAFETY: the caller's promise; there are as many items, or bits, and one offset more than lists.
            let whole = unsafe { self.buffer(before + index, from + len) };
            Ok(or_empty(whole, from + len)?.slice_with_length(from, len))
        });
        let mut buffers = fixed.collect::<Result<Vec<_>, ArrowError>>()?;
        let variadic = before + buffers.len()..usize::try_from(self.array.n_buffers).unwrap_or(0);
        if layout.variadic && variadic.len() > 1 {
            for index in variadic.start..variadic.end - 1 {
                // SAFETY: the caller's promise: the last buffer has the sizes of the variadic ones.
                let buffer = unsafe {
                    let sizes = self.array.buffers.add(variadic.end - 1).read().cast::<i64>();
                    let size = byte_count(sizes.add(index - variadic.start).read())?;
                    or_empty(self.buffer(index, size), size)?
                };
                buffers.push(buffer);
            }
        }
        Ok(buffers)
    }

    /// The children of rows: parallel ones are cut to them, and of runs those that the rows are in.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows); `start` is counted from the start of the buffers.
    unsafe fn children(
        self,
        data_type: &DataType,
        start: usize,
        len: usize,
    ) -> Made<Vec<ArrayData>> {
        let per_row = match data_type {
            DataType::FixedSizeList(_, size) => Some(usize::try_from(*size).unwrap_or(0)),
            DataType::Union(_, UnionMode::Sparse) => Some(1),
            _ => None,
        };
        // SAFETY: the caller's promise holds for children and dictionaries; parallel ones are long enough.
        unsafe {
            let child = |index| self.below(self.array.child(index));
            if let DataType::Dictionary(_, values) = data_type {
                return Ok(vec![self.below(&*self.array.dictionary).whole(values)?]);
            }
            if let DataType::RunEndEncoded(ends_field, values_field) = data_type {
                let (ends, values) = (child(0), child(1));
                let count = ends.array.len().min(values.array.len());
                let ends = ends.rows(ends_field.data_type(), 0, count)?;
                let runs = runs_of(&ends, start, len);
                let values = values.rows(values_field.data_type(), runs.start, runs.len())?;
                return Ok(vec![ends.slice(runs.start, runs.len()).to_data(), values.to_data()]);
            }
            let types = child_types(data_type).into_iter().enumerate();
            let children = types.map(|(index, (child_type, _))| match per_row {
                Some(count) => {
                    let rows = child(index).rows(child_type, start * count, len * count);
                    Ok(rows?.to_data())
                }
                None => child(index).whole(child_type),
            });
            children.collect()
        }
    }

    /// All rows, which offsets or codes refer to.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn whole(self, data_type: &DataType) -> Made<ArrayData> {
        let part = Part { known: None, ..self };
        // SAFETY: the caller's promise.
        let import = || unsafe { part.rows(data_type, 0, self.array.len()) };
        let array = match self.known {
            // SAFETY: the caller's promise.
            Some(known) if !data_type.is_primitive() => unsafe {
                known.child(self.array, self.owner, data_type, import)
            },
            _ => import(),
        };
        Ok(array?.to_data())
    }

    /// [`rows`](Self::rows) of texts or binaries, at least one.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows), of a type with offsets of this width.
    unsafe fn bytes<O: OffsetSizeTrait>(
        self,
        data_type: &DataType,
        from: usize,
        len: usize,
    ) -> Made {
        let (start, end) = (self.array.offset() + from, self.array.offset() + self.array.len());
        // SAFETY: the caller's promise; it has been checked that the offsets are there and aligned. The last one, which is
        // read once, says how many bytes there are.
        let (nulls, offsets, values) = unsafe {
            let offsets = or_empty(self.buffer(1, (end + 1) * size_of::<O>()), 1)?;
            let last = byte_count(offsets.typed_data::<O>()[end].to_i64().unwrap_or(-1))?;
            (self.nulls(from, len), offsets, or_empty(self.buffer(2, last), last)?)
        };
        let data = ArrayData::builder(data_type.clone()).offset(start).len(len).nulls(nulls);
        // SAFETY: so many offsets, which are aligned, and as many bits; checked below.
        let data = unsafe { data.add_buffer(offsets).add_buffer(values).build_unchecked() };
        let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
        if !(is_text && are_texts::<O>(&data)) {
            data.validate_data()?;
        }
        Ok(make_array(data))
    }

    /// [`rows`](Self::rows) of a primitive type; `None` for any other, and if the values cannot be shared.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn numbers(self, data_type: &DataType, from: usize, len: usize) -> Option<ArrayRef> {
        let width = data_type.primitive_width()?;
        let end = self.array.offset() + self.array.len();
        // SAFETY: the caller's promise; numbers have a validity and then values, and it has been checked that
        // so many bytes are no overflow.
        let (values, nulls) = unsafe { (self.buffer(1, end * width)?, self.nulls(from, len)) };
        // The strictest alignment of any value; values that need less take the other path.
        if values.as_ptr().align_offset(width.min(16)) != 0 {
            return None;
        }
        let start = self.array.offset() + from;
        if let Some(numbers) = import::numeric(data_type, start, len, &values, nulls.as_ref()) {
            return Some(numbers);
        }
        // Times and decimals: a typed array for each would instantiate arrow-array's code once more.
        let data = ArrayData::builder(data_type.clone()).offset(start).len(len).nulls(nulls);
        // SAFETY: so many values, which are aligned, and as many bits.
        Some(make_array(unsafe { data.add_buffer(values).build_unchecked() }))
    }

    /// The validity of these rows, if any is null.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows), of a type whose first buffer is the validity.
    unsafe fn nulls(self, from: usize, len: usize) -> Option<NullBuffer> {
        if self.array.null_count == 0 {
            return None;
        }
        let end = self.array.offset() + self.array.len();
        // SAFETY: the caller's promise.
        let bits = unsafe { self.buffer(0, end.div_ceil(8)) }?;
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, self.array.offset() + from, len));
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// So many bytes of a buffer; `None` if it is NULL.
    ///
    /// # Safety
    ///
    /// S1; there is such a buffer, and it has so many bytes.
    unsafe fn buffer(self, index: usize, len: usize) -> Option<Buffer> {
        // SAFETY: the caller's promise; the owner releases them when the last buffer has gone.
        unsafe {
            let start = self.array.buffers.add(index).read().cast_mut().cast();
            let owner = Arc::clone(self.owner);
            Some(Buffer::from_custom_allocation(NonNull::new(start)?, len, owner))
        }
    }
}

/// How many bytes a buffer has, by an array's own word: an offset, or a size.
fn byte_count(said: i64) -> Made<usize> {
    let within = usize::try_from(said).ok().filter(|&count| isize::try_from(count).is_ok());
    within.ok_or_else(|| ArrowError::CDataInterface(format!("a buffer of {said} bytes")))
}

/// The buffer of so many bytes; an empty one, if it needs none, because the pointer may be anything then.
fn or_empty(buffer: Option<Buffer>, len: usize) -> Made<Buffer> {
    if len == 0 {
        return Ok(MutableBuffer::new(0).into());
    }
    buffer.ok_or_else(|| ArrowError::CDataInterface("a buffer of values is null".to_owned()))
}
