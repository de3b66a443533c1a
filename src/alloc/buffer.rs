//! Memory with one owner, and allocations that grow with the data: they return an error where `Vec` or arrow-rs would
//! abort the process.
//!
//! A probe allocates and frees: 18 ns for a megabyte, 4 to 6 µs for 64 MB or more, whose copy takes milliseconds. Zeros,
//! for writes in any order, are written unless the allocator has new pages of the system for them.
#![expect(
    unsafe_code,
    reason = "allocates by hand, and knows what a buffer does not say: that it has one holder"
)]

use std::alloc::{Layout, alloc_zeroed};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

use super::huge_pages;
use super::writer::Unwritten;
use crate::task::Steps;
use crate::{Element, Error};

/// A buffer of Rust's allocator with one owner, which may therefore write to it.
pub(crate) struct Fresh {
    buffer: Buffer,
    /// Whether it may have been written to by another pointer than the buffer's, which is then not good for reading.
    is_stale: bool,
}

/// Arrow's recommendation, and what JAX, MLX and minarrow require to share memory.
const ALIGNMENT: usize = 64;

/// A vector with padding and capacity for `len` values after it, so that these are aligned to 64 bytes. Not
/// inlined, so that there is one instance for each type and not one for each caller.
#[inline(never)]
fn aligned<T: ArrowNativeType>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::<T>::new();
    // The allocator aligns to 16 bytes or so: reserve more, for the padding.
    let slack = ALIGNMENT / size_of::<T>();
    values
        .try_reserve_exact(len.saturating_add(slack))
        .map_err(|_| Error::OutOfMemory { nbytes: len.saturating_mul(size_of::<T>()) })?;
    huge_pages::advise(values.spare_capacity_mut());
    let start = values.as_ptr().align_offset(ALIGNMENT).min(slack);
    values.resize(start, T::default());
    Ok(values)
}

impl Fresh {
    /// Memory for `len` values, aligned to 64 bytes, which `fill` appends to the vector it gets.
    pub(crate) fn build<T: ArrowNativeType>(
        len: usize,
        fill: impl FnOnce(&mut Vec<T>),
    ) -> Result<Self, Error> {
        Self::try_build(len, |values| {
            fill(values);
            Ok(())
        })
    }

    /// As [`Self::build`], for a `fill` that can fail.
    pub(crate) fn try_build<T: ArrowNativeType>(
        len: usize,
        fill: impl FnOnce(&mut Vec<T>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut values = aligned::<T>(len)?;
        let start = values.len();
        fill(&mut values)?;
        debug_assert_eq!(values.len(), start + len, "filled exactly");
        Ok(Self::from_part(values, start, len))
    }

    /// As [`Self::build`], for a `fill` that can cut the memory to parts, and fails.
    pub(crate) fn in_parts(
        nbytes: usize,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut values = aligned::<u8>(nbytes)?;
        let start = values.len();
        Unwritten::append(&mut values, nbytes, fill)?;
        Ok(Self::from_part(values, start, nbytes))
    }

    /// [`Self::in_parts`] as a vector, which is not aligned beyond its elements.
    pub(crate) fn vector<T: Element>(
        count: usize,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), Error>,
    ) -> Result<Vec<T>, Error> {
        let mut values = reserved(count)?;
        huge_pages::advise(values.spare_capacity_mut());
        Unwritten::append(&mut values, count, fill)?;
        Ok(values)
    }

    /// A copy of these bytes, one part behind the other.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; those of [`task::check`](crate::task::check).
    pub(crate) fn copied<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone) -> Result<Self, Error> {
        const BLOCK: usize = 1 << 20;
        let nbytes = parts.clone().map(<[u8]>::len).fold(0, usize::saturating_add);
        let mut steps = Steps::default();
        Self::in_parts(nbytes, |mut out| {
            for block in parts.flat_map(|part| part.chunks(BLOCK)) {
                out.extend_from_slice(block);
                steps.done(block.len())?;
            }
            out.finish();
            Ok(())
        })
    }

    /// As [`Self::try_build`], for a `fill` that writes in any order, to memory that is 0.
    pub(crate) fn write<T: ArrowNativeType>(
        len: usize,
        fill: impl FnOnce(&mut [T]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let nbytes = len.saturating_mul(size_of::<T>());
        let slack = ALIGNMENT / size_of::<T>();
        let values = zeroed::<T>(len.saturating_add(slack));
        let mut values = values.ok_or(Error::OutOfMemory { nbytes })?;
        huge_pages::advise(&mut values);
        let start = values.as_ptr().align_offset(ALIGNMENT).min(slack);
        fill(&mut values[start..start + len])?;
        Ok(Self::from_part(values, start, len))
    }

    /// The `len` values of a vector from `start` on.
    #[inline(never)]
    fn from_part<T: ArrowNativeType>(values: Vec<T>, start: usize, len: usize) -> Self {
        let (start, nbytes) = (start * size_of::<T>(), len * size_of::<T>());
        Self::from_vec(values).part(start, nbytes)
    }

    /// The memory of a vector, as it is.
    pub(crate) fn from_vec<T: ArrowNativeType>(values: Vec<T>) -> Self {
        Self { buffer: Buffer::from_vec(values), is_stale: false }
    }

    /// Memory that has no other holder, and came from Rust's allocator.
    pub(crate) fn from_mutable(memory: MutableBuffer) -> Self {
        Self { buffer: memory.into(), is_stale: false }
    }

    /// Memory that is recovered from whom it was given to.
    ///
    /// # Safety
    ///
    /// The buffer has no other holder, and its memory came from Rust's allocator.
    pub(crate) unsafe fn recovered(buffer: Buffer) -> Self {
        Self { buffer, is_stale: true }
    }

    /// The first byte, by the pointer of the allocation.
    pub(crate) fn start(&self) -> NonNull<u8> {
        let offset = self.buffer.ptr_offset();
        // SAFETY: a buffer begins within its allocation.
        unsafe { self.buffer.data_ptr().add(offset) }
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it begins where its allocation does.
    pub(crate) fn is_whole(&self) -> bool {
        self.buffer.ptr_offset() == 0
    }

    /// The `len` bytes from `start` on.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        Self { buffer: self.buffer.slice_with_length(start, len), ..self }
    }

    /// The buffer that owns the memory.
    ///
    /// # Safety
    ///
    /// Nothing is read by the buffer's own pointer.
    pub(crate) unsafe fn into_owner(self) -> Buffer {
        self.buffer
    }

    /// The vector that the memory was made of, if it is all of it and was one of such values; otherwise the memory back.
    pub(crate) fn into_vec<T: ArrowNativeType>(self) -> Result<Vec<T>, Self> {
        let Self { buffer, is_stale } = self;
        buffer.into_vec().map_err(|buffer| Self { buffer, is_stale })
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        if !self.is_stale {
            return self.buffer;
        }
        let (start, len) = (self.start(), self.len());
        // Made anew, it reads by a pointer that is good.
        self.buffer.into_mutable().map_or_else(
            // SAFETY: the memory is there for as long as the old buffer, by the pointer of the allocation.
            |buffer| unsafe { Buffer::from_custom_allocation(start, len, Arc::new(buffer)) },
            Buffer::from,
        )
    }
}

/// `len` zeros; `None` if `len` is 0 or the allocation fails.
pub(crate) fn zeroed<T: ArrowNativeType>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    // SAFETY: just allocated with the layout of a vector of this capacity; a number of zero bits is 0.
    Some(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}

/// An error unless `nbytes` bytes can be allocated now, aligned as a buffer of arrow-rs is: memory that was freed may be
/// enough without that, and not with it. Called before code that aborts if they cannot.
pub(crate) fn probe_alloc(nbytes: usize) -> Result<(), Error> {
    /// As arrow-rs aligns where it does most strictly.
    #[repr(align(256))]
    struct Line {
        _bytes: [u8; 256],
    }
    const { assert!(align_of::<Line>() >= arrow_buffer::alloc::ALIGNMENT) };
    // The optimiser may remove an allocation that nothing reads.
    match reserved::<Line>(nbytes.div_ceil(size_of::<Line>())) {
        Ok(memory) => drop(black_box(memory)),
        Err(_) => return Err(Error::OutOfMemory { nbytes }),
    }
    Ok(())
}

/// An empty vector with capacity for `count` items.
pub(crate) fn reserved<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(count) {
        Ok(()) => Ok(vector),
        Err(_) => Err(Error::OutOfMemory { nbytes: count.saturating_mul(size_of::<T>()) }),
    }
}

/// Makes capacity for `more` items behind those of a vector.
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), Error> {
    let nbytes = more.saturating_mul(size_of::<T>());
    items.try_reserve(more).map_err(|_| Error::OutOfMemory { nbytes })
}

/// `nbytes` bytes, all 0.
pub(crate) fn zeros(nbytes: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = reserved(nbytes)?;
    bytes.resize(nbytes, 0);
    Ok(bytes)
}

/// All items in a vector.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut vector = reserved(items.len())?;
    vector.extend(items);
    Ok(vector)
}

/// [`collect`] where making an item can fail.
pub(crate) fn try_collect<T>(
    items: impl ExactSizeIterator<Item = Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let mut vector = reserved(items.len())?;
    for item in items {
        vector.push(item?);
    }
    Ok(vector)
}
