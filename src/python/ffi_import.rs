//! Makes arrays of arrow-rs from Arrow's C structures, once they are checked.
//!
//! This module imports plain numbers and structs itself, which most tables consist of, because arrow-rs makes
//! an `ArrayData` for each array first, which takes most of the time for a batch of a thousand columns.
//! arrow-rs imports all other arrays.
#![expect(unsafe_code, reason = "takes foreign structures over")]

use std::ffi::c_void;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use arrow_array::ffi::from_ffi_and_data_type;
use arrow_array::{Array, ArrayRef, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields};

use super::arrow_c::{ArrowArray, Structure};
use super::arrow_workarounds::repaired;
use super::ffi_validate::{Checked, check_array, child_types, fenced};
use crate::import;
use crate::memory::release_foreign;

/// Takes over an array structure, and returns how many bytes of it are not aligned to their values, which
/// arrow-rs moves. Numeric arrays are checked in constant time, apart from a count of nulls if there are any;
/// other arrays are checked in full, because offsets and keys index memory.
pub(super) fn array_from(
    mut array: ArrowArray,
    data_type: &DataType,
) -> Checked<(ArrayRef, usize)> {
    let moved = check_array(&array, data_type)?;
    // SAFETY: it has been checked, so there is a child for each type.
    unsafe { correct(&raw mut array, data_type) };
    let owner = Arc::new(OwnedArray(array));
    let part = Part { array: &owner.0, owner: &owner };
    // SAFETY: checked, corrected, and its own owner.
    let array = fenced(|| unsafe { part.rows(data_type, 0, part.array.len()) })?;
    Ok((array, moved))
}

/// Corrects three things that arrow-rs relies on: removes the buffers of null arrays, which have none by the
/// interface; marks the null count as unknown unless it is 0, so that arrow-rs counts; and sets the offset of texts
/// and binaries without rows to 0, because arrow-rs 60 takes the entry there, which has not been checked, for the
/// size of their bytes. (`arrow_workarounds` replaces such arrays by new ones.)
///
/// # Safety
///
/// `array` is ours, meets S1 and has passed [`check_array`].
unsafe fn correct(array: *mut ArrowArray, data_type: &DataType) {
    // SAFETY: the caller's promise; children and dictionaries are owned by their parent.
    unsafe {
        match data_type {
            DataType::Null => (*array).n_buffers = 0,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
                if (*array).length == 0 =>
            {
                (*array).offset = 0;
            }
            _ if (*array).null_count > 0 => (*array).null_count = -1,
            _ => {}
        }
        for (index, (child_type, _)) in child_types(data_type).into_iter().enumerate() {
            correct((*array).children.add(index).read(), child_type);
        }
        if let DataType::Dictionary(_, values) = data_type {
            correct((*array).dictionary, values);
        }
    }
}

/// A structure that is released when its last user is dropped.
pub(super) struct OwnedArray(pub(super) ArrowArray);

impl OwnedArray {
    /// The structure, which is not released.
    pub(super) fn into_inner(mut self) -> ArrowArray {
        mem::replace(&mut self.0, ArrowArray::released())
    }
}

impl Drop for OwnedArray {
    fn drop(&mut self) {
        let array = mem::replace(&mut self.0, ArrowArray::released());
        release_foreign(move || drop(array));
    }
}

/// A structure, or one below it.
#[derive(Clone, Copy)]
struct Part<'a> {
    array: &'a ArrowArray,
    owner: &'a Arc<OwnedArray>,
}

impl Part<'_> {
    /// A range of rows as an array.
    ///
    /// # Safety
    ///
    /// The structure is the owner's or below it, meets S1, has passed [`check_array`] for this type and is
    /// [`correct`]; it has these rows.
    unsafe fn rows(
        self,
        data_type: &DataType,
        from: usize,
        len: usize,
    ) -> Result<ArrayRef, ArrowError> {
        // SAFETY: the caller's promise, each time.
        unsafe {
            if let DataType::Struct(fields) = data_type {
                return self.structs(fields, from, len);
            }
            if let Some(numbers) = self.numbers(data_type, from, len) {
                return Ok(numbers);
            }
            self.through_array_data(data_type, from, len)
        }
    }

    /// [`rows`](Self::rows) of structs.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn structs(
        self,
        fields: &Fields,
        from: usize,
        len: usize,
    ) -> Result<ArrayRef, ArrowError> {
        // SAFETY: the caller's promise; structs have a validity.
        let nulls = unsafe { self.nulls(from, len) };
        let start = self.array.offset() + from;
        let mut columns = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            // SAFETY: the caller's promise holds for children, which are as long as their parent's end.
            let column = unsafe {
                let child = Part { array: self.array.child(index), owner: self.owner };
                child.rows(field.data_type(), start, len)
            }?;
            let is_hidden = |inner| nulls.as_ref().is_some_and(|outer| outer.contains(inner));
            if !field.is_nullable() && !column.nulls().is_none_or(is_hidden) {
                return Err(ArrowError::InvalidArgumentError(format!(
                    "field {:?} is not nullable, and has nulls",
                    field.name()
                )));
            }
            columns.push(column);
        }
        // SAFETY: a column for each field, of its type and so many rows; what is not nullable has no nulls
        // but where the struct has.
        let array =
            unsafe { StructArray::new_unchecked_with_length(fields.clone(), columns, nulls, len) };
        Ok(Arc::new(array))
    }

    /// [`rows`](Self::rows) of a primitive type; `None` for any other, and if the values cannot be shared.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn numbers(self, data_type: &DataType, from: usize, len: usize) -> Option<ArrayRef> {
        let width = data_type.primitive_width()?;
        if len == 0 {
            return None;
        }
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

    /// [`rows`](Self::rows) as arrow-rs imports them.
    ///
    /// # Safety
    ///
    /// That of [`rows`](Self::rows).
    unsafe fn through_array_data(
        self,
        data_type: &DataType,
        from: usize,
        len: usize,
    ) -> Result<ArrayRef, ArrowError> {
        let mut shared = self.shared();
        if len > 0 {
            // Each slice of a struct has its children whole: of many slices, each would check all of their rows. The number
            // of nulls is 0 or unknown, as `correct` left it.
            shared.offset += i64::try_from(from).unwrap_or(0);
            shared.length = i64::try_from(len).unwrap_or(0);
        }
        // SAFETY: the caller's promise, of which the rows are a part.
        let data = unsafe { from_ffi_and_data_type(shared.into_theirs(), data_type.clone()) }?;
        let data = repaired(data)?;
        if !data_type.is_primitive() {
            data.validate_full()?;
        }
        let array = make_array(data);
        Ok(if array.len() == len { array } else { array.slice(from, len) })
    }

    /// A copy of the structure, whose release drops a reference to the owner.
    fn shared(self) -> ArrowArray {
        unsafe extern "C" fn release(array: *mut ArrowArray) {
            // SAFETY: called once, by the interface, with the array that was made below.
            unsafe {
                drop(Arc::from_raw((*array).private_data.cast::<OwnedArray>()));
                (*array).release = None;
            }
        }
        // SAFETY: of the two, only the owner's is released as its producer wants it.
        let mut shared = unsafe { ptr::from_ref(self.array).read() };
        shared.release = Some(release);
        shared.private_data = Arc::into_raw(Arc::clone(self.owner)).cast_mut().cast::<c_void>();
        shared
    }
}
