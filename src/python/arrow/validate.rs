//! Checks what arrow-rs takes for granted about arrays, which trusts what it imports: a negative length panics, a
//! short child reads out of bounds. Everything that a structure shows by itself is checked. That buffers are as long
//! as the lengths say cannot be, and is the producer's promise.
#![expect(unsafe_code, reason = "reads the buffers of foreign structures")]

use std::{ffi::c_void, mem, ops::Deref, slice};

use arrow_data::{BufferSpec, DataTypeLayout, layout};
use arrow_schema::{DataType, FieldRef};

use super::structs::{ArrowArray, Checked, Structure};
use crate::arrow_types::child_types;
use crate::tensor::release_foreign;

/// The most buffers of a view array: an `int32` numbers them, and one more has their sizes. Fewer on 32-bit
/// machines, whose address space is smaller.
const MAX_VARIADIC: usize = (1 << 31) / size_of::<*const c_void>();

/// An array structure and what the schema beside it says of its type: the field, or the columns of a table. It is released
/// when this is dropped.
///
/// **S3** Schema and array came together, in one pair or from one stream; what was left out of one was left out of the
/// other.
pub(in crate::python) struct TypedArray<T = FieldRef> {
    array: ArrowArray,
    schema: T,
}

/// Some columns of a table: their positions and types.
pub(super) struct PlainColumns {
    pub(super) columns: Vec<(usize, DataType)>,
    /// How many columns the table has.
    pub(super) among: usize,
}

impl<T> TypedArray<T> {
    /// # Safety
    ///
    /// S3, with the schema that `schema` was made of.
    pub(super) unsafe fn new(array: ArrowArray, schema: T) -> Self {
        Self { array, schema }
    }

    pub(in crate::python) fn array(&self) -> &ArrowArray {
        &self.array
    }

    pub(super) fn schema(&self) -> &T {
        &self.schema
    }

    /// The structure, which is not released.
    pub(super) fn into_inner(mut self) -> ArrowArray {
        mem::replace(&mut self.array, ArrowArray::released())
    }
}

impl TypedArray {
    /// The structure, if arrow-rs may have it, and how many bytes are misaligned.
    pub(super) fn checked(&self) -> Checked<(CheckedArray<'_>, usize)> {
        CheckedArray::new(&self.array, self.schema.data_type())
    }
}

impl TypedArray<PlainColumns> {
    /// Its columns, each as [`TypedArray::checked`] has it.
    pub(super) fn columns(
        &self,
    ) -> Checked<impl Iterator<Item = Checked<(CheckedArray<'_>, usize)>>> {
        let PlainColumns { columns, among } = &self.schema;
        if usize::try_from(self.array.n_children()) != Ok(*among) {
            return Err(format!("{} children where {among} are expected", self.array.n_children()));
        }
        Ok(columns
            .iter()
            .map(|(at, data_type)| CheckedArray::new(self.array.child(*at)?, data_type)))
    }
}

impl<T> Drop for TypedArray<T> {
    fn drop(&mut self) {
        let array = mem::replace(&mut self.array, ArrowArray::released());
        release_foreign(move || drop(array));
    }
}

/// An array structure that has been checked.
///
/// **S2** It meets S1, and its type is that of S3. It has passed [`check`], at all levels: its lengths are no overflow, neither as
/// elements nor as bytes, its buffers and children are as many as the type has, and parallel children are as long as it
/// needs.
#[derive(Clone, Copy)]
pub(super) struct CheckedArray<'a> {
    array: &'a ArrowArray,
    data_type: &'a DataType,
}

impl<'a> CheckedArray<'a> {
    /// Only for a [`TypedArray`], of its type.
    fn new(array: &'a ArrowArray, data_type: &'a DataType) -> Checked<(Self, usize)> {
        let moved = check(array, data_type)?;
        Ok((Self { array, data_type }, moved))
    }

    pub(super) fn array(self) -> &'a ArrowArray {
        self.array
    }

    pub(super) fn data_type(self) -> &'a DataType {
        self.data_type
    }

    /// The rows.
    pub(super) fn len(self) -> usize {
        usize::try_from(self.array.length()).unwrap_or(0)
    }

    /// The rows before the first one.
    pub(super) fn offset(self) -> usize {
        usize::try_from(self.array.offset()).unwrap_or(0)
    }

    /// The end of the rows, counted from the start of the buffers.
    fn end(self) -> usize {
        self.offset() + self.len()
    }

    /// The bits of the validity, from the start of the buffer to the last row; `None` if no row is null.
    pub(super) fn validity(self) -> Option<Bytes<'a>> {
        use DataType::{Null, RunEndEncoded, Union};
        if self.array.null_count() == 0
            || matches!(self.data_type, Null | Union(..) | RunEndEncoded(..))
        {
            return None;
        }
        // SAFETY: S1, S2: the buffer has a bit for each row.
        unsafe { self.bytes(0, self.end().div_ceil(8)) }
    }

    /// The values of a primitive type, or the bits of booleans, from the start of the buffer to the last row; `None` for
    /// other types, and if there are none.
    pub(super) fn values(self) -> Option<Bytes<'a>> {
        let len = match self.data_type {
            DataType::Boolean => self.end().div_ceil(8),
            number => self.end() * number.primitive_width()?,
        };
        // SAFETY: S1, S2: the buffer has a value, or a bit, for each row.
        unsafe { self.bytes(1, len) }
    }

    /// The offsets of texts or binaries, at least one, and their bytes, as many as the last offset says.
    pub(super) fn texts(self) -> Checked<[Option<Bytes<'a>>; 2]> {
        use DataType::{Binary, LargeBinary, LargeUtf8, Utf8};
        let width = match self.data_type {
            Utf8 | Binary => 4,
            LargeUtf8 | LargeBinary => 8,
            other => unreachable!("{other} has no texts"),
        };
        // SAFETY: S1, S2: one offset more than rows.
        let offsets = unsafe { self.bytes(1, (self.end() + 1) * width) };
        let last = offsets.map_or(0, |offsets| number(&offsets[self.end() * width..]));
        // SAFETY: S1: the buffer ends at the last offset, which has been read once.
        Ok([offsets, unsafe { self.bytes(2, byte_count(last)?) }])
    }

    /// The buffers whose items have a width in bytes, and that, from their start to the last row.
    pub(super) fn fixed(self) -> Vec<(usize, Option<Bytes<'a>>)> {
        let DataTypeLayout { buffers, can_contain_null_mask, .. } = layout(self.data_type);
        let items = self.end() + usize::from(has_offsets(self.data_type));
        let buffer = |(index, spec): (usize, &BufferSpec)| {
            let BufferSpec::FixedWidth { byte_width: width, .. } = *spec else { return None };
            let index = index + usize::from(can_contain_null_mask);
            // SAFETY: S1, S2: the layout of the type says how many items there are.
            Some((width, unsafe { self.bytes(index, items * width) }))
        };
        buffers.iter().enumerate().filter_map(buffer).collect()
    }

    /// The buffers that the views of texts or binaries refer to; none for other types.
    pub(super) fn variadic(self) -> Checked<Vec<Option<Bytes<'a>>>> {
        let count = usize::try_from(self.array.n_buffers()).unwrap_or(0);
        // Validity, views, the buffers, and their sizes.
        let count = count.saturating_sub(3);
        if !matches!(self.data_type, DataType::Utf8View | DataType::BinaryView) || count == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: S1, S2: the last buffer has their sizes.
        let sizes = unsafe { self.bytes(2 + count, count * 8) }.map_or(&[][..], Bytes::get);
        let buffers = sizes.chunks_exact(8).zip(2..).map(|(size, index)| {
            // SAFETY: S1: the buffer has its size in bytes, which is read once.
            Ok(unsafe { self.bytes(index, byte_count(number(size))?) })
        });
        buffers.collect()
    }

    /// A child of a type that has it.
    pub(super) fn child(self, index: usize) -> Self {
        let data_type = match self.data_type {
            DataType::Struct(fields) => fields[index].data_type(),
            other => child_types(other)[index].0,
        };
        // S2 holds for children.
        Self {
            array: self.array.child(index).unwrap_or_else(|_| unreachable!("it was there")),
            data_type,
        }
    }

    /// The values of a dictionary.
    pub(super) fn dictionary(self) -> Option<Self> {
        let DataType::Dictionary(_, data_type) = self.data_type else { return None };
        // S2 holds for the dictionary.
        Some(Self { array: self.array.dictionary()?.ok()?, data_type })
    }

    /// The first `len` bytes of a buffer; `None` if it is NULL. Nothing is read of an array without rows.
    ///
    /// # Safety
    ///
    /// By S1 the buffer is that long.
    unsafe fn bytes(self, index: usize, len: usize) -> Option<Bytes<'a>> {
        if self.array.length() == 0 {
            return Some(Bytes(&[]));
        }
        let start = self.array.buffer(index).filter(|start| !start.is_null())?;
        // SAFETY: the buffer has `len` bytes by S1, for as long as the array lives, which `'a` borrows.
        Some(Bytes(unsafe { slice::from_raw_parts(start, len) }))
    }
}

/// Bytes of a buffer of a checked array, and of nothing else.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn get(self) -> &'a [u8] {
        self.0
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

/// The first number of four or eight bytes.
fn number(bytes: &[u8]) -> i64 {
    if let Some(bytes) = bytes.first_chunk() {
        return i64::from_ne_bytes(*bytes);
    }
    bytes.first_chunk().map_or(-1, |bytes| i32::from_ne_bytes(*bytes).into())
}

/// How many bytes a buffer has, by an array's own word: an offset, or a size.
fn byte_count(said: i64) -> Checked<usize> {
    let within = usize::try_from(said).ok().filter(|&count| isize::try_from(count).is_ok());
    within.ok_or_else(|| format!("a buffer of {said} bytes"))
}

/// Whether the first buffer after the validity has one item more than rows.
fn has_offsets(data_type: &DataType) -> bool {
    use DataType::{Binary, LargeBinary, LargeList, LargeUtf8, List, Map, Utf8};
    matches!(data_type, List(_) | LargeList(_) | Map(..) | Utf8 | LargeUtf8 | Binary | LargeBinary)
}

/// Checks everything that arrow-rs assumes about an array, and returns how many bytes are misaligned. The type
/// bounds the depth.
fn check(array: &ArrowArray, data_type: &DataType) -> Checked<usize> {
    let malformed = |what| format!("the Arrow array of {data_type} is malformed: {what}");
    let end = check_length(array).map_err(malformed)?;
    let mut moved = check_buffers(array, data_type, end).map_err(malformed)?;
    let types = child_types(data_type);
    if usize::try_from(array.n_children()) != Ok(types.len()) {
        let (found, expected) = (array.n_children(), types.len());
        return Err(malformed(format!("{found} children where {expected} are expected")));
    }
    for (child, (child_type, needed)) in array.children()?.zip(types) {
        let child = child?;
        let needed = needed.checked_mul(end).and_then(|needed| i64::try_from(needed).ok());
        if needed.is_none_or(|needed| child.length() < needed) {
            return Err(malformed(format!("a child of length {} is too short", child.length())));
        }
        moved += check(child, child_type)?;
    }
    match (data_type, array.dictionary()) {
        (DataType::Dictionary(_, values), Some(dictionary)) => {
            Ok(moved + check(dictionary?, values)?)
        }
        (DataType::Dictionary(..), None) => {
            Err("the Arrow array has a dictionary that is not there".to_owned())
        }
        (_, None) => Ok(moved),
        (_, Some(_)) => Err(malformed("a dictionary where none is expected".to_owned())),
    }
}

/// The end of the rows, counted from the start of the buffers.
fn check_length(array: &ArrowArray) -> Checked<usize> {
    let (length, offset, nulls) = (array.length(), array.offset(), array.null_count());
    let end = match (usize::try_from(length), usize::try_from(offset)) {
        (Ok(length), Ok(offset)) => length.checked_add(offset),
        _ => None,
    };
    let Some(end) = end else { return Err(format!("length {length}, offset {offset}")) };
    if nulls < -1 || nulls > length {
        return Err(format!("null_count {nulls} of length {length}"));
    }
    Ok(end)
}

/// How many bytes of the buffers of these rows are misaligned.
fn check_buffers(array: &ArrowArray, data_type: &DataType, end: usize) -> Checked<usize> {
    let (number, other);
    let (buffers, has_validity, is_variadic) = match values_of_number(data_type) {
        Some(values) => {
            number = [values];
            (number.as_slice(), true, false)
        }
        None => {
            other = layout(data_type);
            (other.buffers.as_slice(), other.can_contain_null_mask, other.variadic)
        }
    };
    let fixed = buffers.len() + usize::from(has_validity);
    let count = usize::try_from(array.n_buffers()).unwrap_or(usize::MAX);
    // View arrays have any number of variadic buffers that a view can number, and then the buffer of their sizes.
    let expected = match data_type {
        // By the interface it has none; polars exports one, which is ignored.
        DataType::Null => count <= 1,
        _ if is_variadic => count > fixed && count - fixed <= MAX_VARIADIC,
        _ => count == fixed,
    };
    if !expected {
        return Err(format!("{} buffers where {fixed} are expected", array.n_buffers()));
    }
    if count > 0 && array.buffer(0).is_none() {
        return Err("no pointer to its buffers".to_owned());
    }
    let width = |buffer: &BufferSpec| match buffer {
        BufferSpec::FixedWidth { byte_width, .. } => *byte_width,
        _ => 1,
    };
    let widest = buffers.iter().map(width).max().unwrap_or(1);
    let bytes = end.checked_add(1).and_then(|end| end.checked_mul(widest));
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        let (length, offset) = (array.length(), array.offset());
        return Err(format!("length {length} and offset {offset} exceed the address space"));
    }
    if let Some(problem) = check_sizes(array, data_type, count) {
        return Err(problem.to_owned());
    }
    let mut moved = 0;
    for (index, buffer) in buffers.iter().enumerate() {
        if let BufferSpec::FixedWidth { byte_width, alignment } = buffer {
            let index = index + usize::from(has_validity);
            if array.buffer(index).is_some_and(|start| start.addr() % alignment != 0) {
                moved += end * byte_width;
            }
        }
    }
    Ok(moved)
}

/// The buffer of values of numbers, which [`layout`] allocates a vector for.
fn values_of_number(data_type: &DataType) -> Option<BufferSpec> {
    let byte_width = data_type.primitive_width().filter(|_| data_type.is_numeric())?;
    let alignment = match byte_width {
        8 => align_of::<u64>(),
        1 | 2 | 4 => byte_width,
        _ => return None,
    };
    Some(BufferSpec::FixedWidth { byte_width, alignment })
}

/// Whether what tells the sizes of other buffers can be read: offsets of texts, and sizes of views' buffers. What they
/// say is checked where it is read, once, because other code may write to it. Of an array without rows nothing is read.
fn check_sizes(array: &ArrowArray, data_type: &DataType, count: usize) -> Option<&'static str> {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let is_there = |index: usize, size: usize| {
        array.buffer(index).is_some_and(|start| !start.is_null() && start.addr() % size == 0)
    };
    match data_type {
        _ if array.length() == 0 => None,
        Utf8 | Binary | LargeUtf8 | LargeBinary if !is_there(1, 1) => {
            Some("its offsets are missing")
        }
        Utf8View | BinaryView if count > 3 && !is_there(count - 1, align_of::<i64>()) => {
            Some("its buffer sizes are missing or misaligned")
        }
        _ => None,
    }
}
