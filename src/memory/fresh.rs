//! Memory with one owner.

use arrow_buffer::{ArrowNativeType, Buffer};

use super::huge;
use super::zeroed::zeroed;
use crate::error::Error;

/// A buffer of Rust's allocator with one owner, which may therefore write to it.
pub(crate) struct Fresh(Buffer);

/// What Arrow recommends, and what JAX, MLX and minarrow need in order to share what they are given.
const ALIGNMENT: usize = 64;

/// Room for `len` values behind those that it has, where the room is aligned to 64 bytes. This is once for each
/// type, and not once for each of the many that fill it.
#[inline(never)]
fn reserved<T: ArrowNativeType>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::<T>::new();
    // The allocator aligns to 16 bytes or so: leave room to begin further on.
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

    /// As [`Self::build`], for a `fill` that writes in an order of its own, to what is 0 until then.
    pub(crate) fn write<T: ArrowNativeType>(
        len: usize,
        fill: impl FnOnce(&mut [T]),
    ) -> Result<Self, Error> {
        let nbytes = len.saturating_mul(size_of::<T>());
        let slack = ALIGNMENT / size_of::<T>();
        let values = zeroed::<T>(len.saturating_add(slack));
        let mut values = values.ok_or(Error::OutOfMemory { nbytes })?;
        huge::advise(&mut values);
        let start = values.as_ptr().align_offset(ALIGNMENT).min(slack);
        fill(&mut values[start..start + len]);
        Ok(Self::of(values, start, len))
    }

    /// So many values of a vector, from `start` on.
    #[inline(never)]
    fn of<T: ArrowNativeType>(values: Vec<T>, start: usize, len: usize) -> Self {
        let (start, nbytes) = (start * size_of::<T>(), len * size_of::<T>());
        Self(Buffer::from_vec(values).slice_with_length(start, nbytes))
    }

    /// The memory of a vector, as it is.
    pub(crate) fn from_vec<T: ArrowNativeType>(values: Vec<T>) -> Self {
        Self(Buffer::from_vec(values))
    }

    pub(super) fn none() -> Self {
        Self(Buffer::default())
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.0
    }

    /// So many bytes of it, from `start` on.
    pub(super) fn part(self, start: usize, len: usize) -> Self {
        Self(self.0.slice_with_length(start, len))
    }

    /// Memory whose buffer has no other holder.
    pub(super) fn alone(buffer: Buffer) -> Self {
        Self(buffer)
    }

    /// [`Self::into_buffer`] for what begins where its allocation does, and may have been written to: a buffer's
    /// pointer is for reading, and is made anew.
    pub(super) fn into_written_buffer(self) -> Buffer {
        self.0.into_mutable().map_or_else(|buffer| buffer, Buffer::from)
    }

    pub(crate) fn into_buffer(self) -> Buffer {
        self.0
    }
}
