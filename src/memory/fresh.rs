//! Memory with one owner.
#![expect(unsafe_code, reason = "a buffer does not say that it has one holder")]

use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

use super::{huge, unwritten::Unwritten, zeroed::zeroed};
use crate::{Error, task::Steps};

/// A buffer of Rust's allocator with one owner, which may therefore write to it.
pub(crate) struct Fresh(Buffer);

/// Arrow's recommendation, and what JAX, MLX and minarrow require to share memory.
const ALIGNMENT: usize = 64;

/// A vector with padding and capacity for `len` values after it, so that these are aligned to 64 bytes. Not
/// inlined, so that there is one instance for each type and not one for each caller.
#[inline(never)]
fn reserved<T: ArrowNativeType>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::<T>::new();
    // The allocator aligns to 16 bytes or so: reserve more, for the padding.
    let slack = ALIGNMENT / size_of::<T>();
    values
        .try_reserve_exact(len.saturating_add(slack))
        .map_err(|_| Error::OutOfMemory { nbytes: len.saturating_mul(size_of::<T>()) })?;
    huge::advise(values.spare_capacity_mut());
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
        let mut values = reserved::<T>(len)?;
        let start = values.len();
        fill(&mut values)?;
        debug_assert_eq!(values.len(), start + len, "filled exactly");
        Ok(Self::of(values, start, len))
    }

    /// As [`Self::build`], for a `fill` that can cut the memory to parts, and fails.
    pub(crate) fn in_parts(
        nbytes: usize,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut values = reserved::<u8>(nbytes)?;
        let start = values.len();
        Unwritten::append(&mut values, nbytes, fill)?;
        Ok(Self::of(values, start, nbytes))
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
        huge::advise(&mut values);
        let start = values.as_ptr().align_offset(ALIGNMENT).min(slack);
        fill(&mut values[start..start + len])?;
        Ok(Self::of(values, start, len))
    }

    /// The `len` values of a vector from `start` on.
    #[inline(never)]
    fn of<T: ArrowNativeType>(values: Vec<T>, start: usize, len: usize) -> Self {
        let (start, nbytes) = (start * size_of::<T>(), len * size_of::<T>());
        Self(Buffer::from_vec(values).slice_with_length(start, nbytes))
    }

    /// The memory of a vector, as it is.
    pub(crate) fn from_vec<T: ArrowNativeType>(values: Vec<T>) -> Self {
        Self(Buffer::from_vec(values))
    }

    /// Memory that has no other holder, and came from Rust's allocator.
    pub(super) fn from_mutable(memory: MutableBuffer) -> Self {
        Self(memory.into())
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.0
    }

    /// The `len` bytes from `start` on.
    pub(super) fn part(self, start: usize, len: usize) -> Self {
        Self(self.0.slice_with_length(start, len))
    }

    /// # Safety
    ///
    /// The buffer has no other holder, and its memory came from Rust's allocator.
    pub(super) unsafe fn alone(buffer: Buffer) -> Self {
        Self(buffer)
    }

    /// [`Self::into_buffer`] for memory that begins at its allocation and may have been written to. The buffer
    /// is made anew, because writes invalidate the pointer that the old one reads by.
    pub(super) fn into_written_buffer(self) -> Buffer {
        self.0.into_mutable().map_or_else(|buffer| buffer, Buffer::from)
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        self.0
    }
}
