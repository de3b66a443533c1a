//! Memory that is written once, from its first byte to its last.
//!
//! R1: the first `len` bytes of a part are written.
//! R2: the bytes of all parts of a vector that are full are counted once, and the parts are disjoint.
#![expect(unsafe_code, reason = "writes to memory, and lengthens a vector by it")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, mem::MaybeUninit, ptr, slice};

use super::streamed::{self, STREAMED};

/// Bytes from which on a piece of a large result is written past the caches: it takes a fence.
const LONG: usize = 4 << 10;

/// Uninitialised memory of a result, or of a part of one.
pub(crate) struct Unwritten<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    len: usize,
    /// Bytes of the result.
    total: usize,
    /// Bytes of the parts that are full.
    written: &'a AtomicUsize,
}

impl<'a> Unwritten<'a> {
    /// Appends `nbytes` to a vector with capacity for them: `fill` calls [`Self::finish`] for the part, or for each part
    /// of it.
    ///
    /// # Panics
    ///
    /// If the capacity does not suffice, or a part is missing.
    pub(super) fn append<E>(
        out: &mut Vec<u8>,
        nbytes: usize,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = out.len() + nbytes;
        let written = AtomicUsize::new(0);
        let memory = &mut out.spare_capacity_mut()[..nbytes];
        fill(Unwritten { memory, len: 0, total: nbytes, written: &written })?;
        assert_eq!(written.into_inner(), nbytes, "a part is missing");
        // SAFETY: R2, and the memory was cut to parts only: all bytes are written. Threads that wrote some of them have
        // ended, because the parts borrowed the vector.
        unsafe { out.set_len(len) };
        Ok(())
    }

    /// Cuts off the first `nbytes`, which are not written yet.
    ///
    /// # Panics
    ///
    /// If there are not so many, or some are written.
    pub(crate) fn split_to(&mut self, nbytes: usize) -> Self {
        assert_eq!(self.len, 0, "memory is cut before it is written");
        let (memory, rest) = mem::take(&mut self.memory).split_at_mut(nbytes);
        self.memory = rest;
        Unwritten { memory, ..*self }
    }

    /// Whether the result is so large that it is written past the caches.
    pub(crate) fn is_streamed(&self) -> bool {
        self.total >= STREAMED
    }

    /// Bytes that are not written yet.
    pub(crate) fn left(&self) -> usize {
        self.memory.len() - self.len
    }

    /// Writes these bytes after those that are written.
    ///
    /// # Panics
    ///
    /// If fewer are left; so do the other functions that write.
    #[inline(always)]
    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let is_streamed = bytes.len() >= LONG && self.is_streamed();
        let out = &mut self.memory[self.len..][..bytes.len()];
        if is_streamed {
            streamed::copy(bytes, out);
        } else {
            // SAFETY: both have this length, and `out` is borrowed mutably.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast(), bytes.len())
            };
        }
        self.len += bytes.len();
    }

    /// Writes so many zeros, to be overwritten.
    pub(crate) fn zeros(&mut self, nbytes: usize) -> &mut [u8] {
        let out = &mut self.memory[self.len..][..nbytes];
        out.fill(MaybeUninit::new(0));
        self.len += nbytes;
        // SAFETY: so many bytes, just written, and borrowed mutably.
        unsafe { slice::from_raw_parts_mut(out.as_mut_ptr().cast(), nbytes) }
    }

    /// The bytes that are not written yet.
    pub(super) fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.memory[self.len..]
    }

    /// Takes so many more bytes for written.
    ///
    /// # Safety
    ///
    /// The first `nbytes` of [`Self::spare`] are written.
    pub(super) unsafe fn advance(&mut self, nbytes: usize) {
        self.len += nbytes;
    }

    /// Counts the part as full.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(crate) fn finish(self) {
        assert_eq!(self.left(), 0, "filled exactly");
        // The sum is read after the threads have ended.
        self.written.fetch_add(self.len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_filled_in_any_order_and_by_any_thread() {
        let mut out = Vec::with_capacity(16);
        out.push(7);
        let appended = Unwritten::append(&mut out, 6, |mut part| {
            let mut first = part.split_to(2);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    assert_eq!((part.left(), part.total), (4, 6));
                    part.extend_from_slice(&[3]);
                    part.zeros(2)[1] = 5;
                    part.extend_from_slice(&[6]);
                    part.finish();
                });
            });
            first.extend_from_slice(&[1, 2]);
            first.finish();
            Ok::<(), ()>(())
        });
        assert_eq!(appended, Ok(()));
        assert_eq!(out, [7, 1, 2, 3, 0, 5, 6]);
        assert_eq!(Unwritten::append(&mut out, 3, |_| Err("no")), Err("no"));
        assert_eq!(out.len(), 7);
    }

    #[test]
    #[should_panic(expected = "a part is missing")]
    fn a_part_that_is_not_finished_is_missing() {
        let _ = Unwritten::append(&mut Vec::with_capacity(4), 4, |mut rest| {
            let mut part = rest.split_to(2);
            part.zeros(2);
            part.finish();
            rest.zeros(2);
            Ok::<(), ()>(())
        });
    }

    #[test]
    #[should_panic(expected = "filled exactly")]
    fn a_part_that_is_not_full_is_not_finished() {
        let _ = Unwritten::append(&mut Vec::with_capacity(4), 4, |mut part| {
            part.zeros(2);
            part.finish();
            Ok::<(), ()>(())
        });
    }
}
