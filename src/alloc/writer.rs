//! Writes new memory once, from its first byte to its last: in parts, by several threads; strip by strip of columns;
//! past the caches.
//!
//! A strip is some columns of all rows. Code that writes wide rows one after the other would read every column again for
//! each few rows, and more lines of columns at once than the L1 cache has places for.
//!
//! Stores past the caches are for large results: of the time without, a copy of 100 chunks takes 0.55, a matrix of 64 MB
//! 0.4, casts and nulls 0.8 to 0.95.
//!
//! - R1: the first `len` bytes of a part are written.
//! - R2: the bytes of all parts of a result that are full are counted once, and the parts are disjoint.
//! - R3: what is written has a value, so that memory that had values before keeps having some.
//! - G1: the first `done` bytes of each row of a grid are written.
//! - G2: its `memory` has `rows` rows of `row` bytes.
//! - G3: each grid has a lifetime that no other grid has, so that none can take another one's place: a grid is lent to a
//!   function that is generic over it, and the lifetime is invariant.
//! - G4: it stays on its thread, whose fence orders what it streams, and what was streamed is not written again before.
//! - E1: before anybody reads or writes what [`stream_line`] wrote, on any thread, the thread that called it drops a
//!   [`Fence`]: by the documentation of `_mm_sfence` all that comes earlier is a race.
#![expect(unsafe_code, reason = "writes to memory, and takes it for written")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, ptr, slice};

use stores::fence;
pub(super) use stores::stream_line;

use crate::Element;

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
    /// Writes all of this memory: `fill` calls [`Self::finish`] for the part, or for each part of it. If it fails, the
    /// memory is written in part.
    ///
    /// # Panics
    ///
    /// If a part is missing.
    fn fill_all<E>(
        memory: &mut [MaybeUninit<u8>],
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (total, written) = (memory.len(), AtomicUsize::new(0));
        fill(Unwritten { memory, len: 0, total, written: &written })?;
        assert_eq!(written.into_inner(), total, "a part is missing");
        Ok(())
    }

    /// Appends `count` elements to a vector with capacity for them, as [`Self::fill_all`] writes them.
    ///
    /// # Panics
    ///
    /// If the capacity does not suffice, or a part is missing.
    pub(super) fn append<T: Element, E>(
        out: &mut Vec<T>,
        count: usize,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = out.len() + count;
        Self::fill_all(bytes_of(&mut out.spare_capacity_mut()[..count]), fill)?;
        // SAFETY: R2, and the memory was cut to parts only: all bytes are written, and any bytes are elements. Threads
        // that wrote some of them have ended, because the parts borrowed the vector.
        unsafe { out.set_len(len) };
        Ok(())
    }

    /// Cuts off the first `nbytes`, which are not written yet.
    ///
    /// # Panics
    ///
    /// If there are fewer, or some are written.
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
            copy_streamed(bytes, out);
        } else {
            // SAFETY: both have this length, and `out` is borrowed mutably.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast(), bytes.len())
            };
        }
        self.len += bytes.len();
    }

    /// Writes zeros, to be overwritten.
    pub(crate) fn zeros(&mut self, nbytes: usize) -> &mut [u8] {
        let out = &mut self.memory[self.len..][..nbytes];
        out.fill(MaybeUninit::new(0));
        self.len += nbytes;
        // SAFETY: these bytes were just written, and are borrowed mutably.
        unsafe { slice::from_raw_parts_mut(out.as_mut_ptr().cast(), nbytes) }
    }

    /// The bytes that are not written yet.
    pub(super) fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.memory[self.len..]
    }

    /// Takes `nbytes` more bytes for written.
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

/// Memory for a result that a caller has.
pub(crate) struct Place<'a>(&'a mut [MaybeUninit<u8>]);

impl<'a> Place<'a> {
    pub(crate) fn uninit<T: Element>(memory: &'a mut [MaybeUninit<T>]) -> Self {
        Self(bytes_of(memory))
    }

    pub(crate) fn initialised<T: Element>(memory: &'a mut [T]) -> Self {
        let (start, count) = (memory.as_mut_ptr().cast::<MaybeUninit<T>>(), memory.len());
        // SAFETY: the same memory, borrowed as long; R3, and any bytes are elements.
        Self(bytes_of(unsafe { slice::from_raw_parts_mut(start, count) }))
    }

    /// # Safety
    ///
    /// These bytes can be written to, and nothing in Rust borrows them, for as long as the place is there.
    #[cfg(feature = "pyo3")]
    pub(crate) unsafe fn at(start: *mut u8, nbytes: usize) -> Self {
        if nbytes == 0 {
            return Self(&mut []);
        }
        // SAFETY: these bytes can be written to, and nothing in Rust borrows them during `'a`.
        Self(unsafe { slice::from_raw_parts_mut(start.cast(), nbytes) })
    }

    pub(crate) fn nbytes(&self) -> usize {
        self.0.len()
    }

    /// Writes all of it. If that fails, it is written in part.
    ///
    /// # Panics
    ///
    /// If a part is missing.
    pub(crate) fn fill<E>(
        self,
        fill: impl FnOnce(Unwritten<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        Unwritten::fill_all(self.0, fill)
    }
}

fn bytes_of<T>(memory: &mut [MaybeUninit<T>]) -> &mut [MaybeUninit<u8>] {
    let nbytes = size_of_val(memory);
    // SAFETY: the same memory, borrowed as long; neither the bytes nor the items need a value.
    unsafe { slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), nbytes) }
}

/// Rows of which some bytes are not written yet.
pub(crate) struct Grid<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    rows: usize,
    /// Bytes of a row.
    row: usize,
    done: usize,
    /// Bytes of each row that strips have begun to write: more than are done after a panic.
    begun: usize,
    is_streamed: bool,
    /// Invariant (G3), and not `Send` (G4).
    invariant: PhantomData<*mut &'a ()>,
}

impl Grid<'_> {
    /// Writes over the rows of `row` bytes, which is not 0, that `bytes` holds.
    pub(crate) fn over(bytes: &mut [u8], row: usize, write: impl FnOnce(&mut Grid<'_>)) {
        let rows = bytes.len() / row;
        // SAFETY: these bytes, which are borrowed as long, and a grid only writes bytes that have a value.
        let memory = unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), rows * row) };
        let (is_streamed, invariant) = (false, PhantomData);
        write(&mut Grid { memory, rows, row, done: 0, begun: 0, is_streamed, invariant });
    }

    /// Writes `rows` rows of `row` bytes each, neither of them 0.
    ///
    /// # Panics
    ///
    /// If they do not fit, or `write` does not write all strips.
    pub(crate) fn append<E>(
        out: &mut Unwritten<'_>,
        rows: usize,
        row: usize,
        write: impl FnOnce(&mut Grid<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let nbytes = rows.saturating_mul(row);
        let (is_streamed, invariant) = (out.is_streamed(), PhantomData);
        let memory = &mut out.spare()[..nbytes];
        let fence = is_streamed.then_some(Fence);
        let mut grid = Grid { memory, rows, row, done: 0, begun: 0, is_streamed, invariant };
        write(&mut grid)?;
        drop(fence);
        assert_eq!(grid.done, row, "a strip is missing");
        // SAFETY: G1, all rows are written; G3, it is this grid that says so.
        unsafe { out.advance(nbytes) };
        Ok(())
    }

    /// Writes `W` bytes of each row, from the byte `at` on, which is no later than where the strips before end.
    /// `lines` has those of `K` rows from one on; some of the last rows may be asked for twice.
    ///
    /// # Panics
    ///
    /// There are fewer rows or bytes, or some before these are missing.
    #[inline(always)]
    pub(crate) fn strip<const W: usize, const K: usize>(
        &mut self,
        at: usize,
        lines: impl Fn(usize) -> [[u8; W]; K],
    ) {
        assert!(at <= self.done && at + W <= self.row && K <= self.rows, "no such strip");
        // It writes over bytes of the strip before, or of one that panicked.
        if self.is_streamed && at < self.begun {
            drop(Fence);
        }
        self.begun = self.begun.max(at + W);
        let memory: *mut u8 = self.memory.as_mut_ptr().cast();
        let (row_bytes, is_streamed) = (self.row, self.is_streamed);
        let write = |row: usize, line: &[u8; W]| {
            let start = memory.wrapping_add(row * row_bytes + at);
            // SAFETY: by G2 and what was asserted these are `W` bytes of the memory, which is borrowed mutably: `row` is
            // one of the rows. What is streamed begins with a cache line and is one; E1, by `append`, and G4: the grid
            // of `over` streams nothing.
            unsafe {
                if is_streamed && W == LINE && start.addr() % LINE == 0 {
                    stream_line(line.as_ptr().cast(), start.cast());
                } else {
                    ptr::copy_nonoverlapping(line.as_ptr(), start, W);
                }
            }
        };
        // Whole groups alone, a loop of a known length: with the last rows in it, a matrix takes a third longer.
        let whole = self.rows - self.rows % K;
        for first in (0..whole).step_by(K) {
            for (index, line) in lines(first).iter().enumerate() {
                write(first + index, line);
            }
        }
        if whole < self.rows {
            let first = self.rows - K;
            for (row, line) in (whole..self.rows).zip(&lines(first)[whole - first..]) {
                write(row, line);
            }
        }
        self.done = self.done.max(at + W);
    }
}

/// Orders the streamed stores before all later ones, when it is dropped.
pub(super) struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        fence();
        #[cfg(test)]
        FENCES.with(|fences| fences.set(fences.get() + 1));
    }
}

#[cfg(test)]
thread_local! {
    /// How many were dropped on this thread.
    static FENCES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Bytes of a result from which on whole cache lines are written past the caches. Otherwise the processor reads each
/// line from memory before it writes it: for 40 MB that takes twice the time. Smaller results are partly still in a
/// cache when the tensor is read.
pub(super) const STREAMED: usize = 16 << 20;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Copies `from`, whole cache lines past the caches.
///
/// # Panics
///
/// If the lengths differ.
pub(super) fn copy_streamed(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    let len = to.len();
    assert_eq!(from.len(), len, "a copy is as long");
    let head = to.as_ptr().align_offset(LINE).min(len);
    let lines = head..head + (len - head) / LINE * LINE;
    let (from, to) = (from.as_ptr(), to.as_mut_ptr().cast::<u8>());
    let _fence = Fence;
    // SAFETY: both have the length; each byte of `to`, which is borrowed mutably, is written once; a cache line begins
    // every LINE bytes from `head` on; E1.
    unsafe {
        ptr::copy_nonoverlapping(from, to, lines.start);
        for at in lines.clone().step_by(LINE) {
            stream_line(from.add(at).cast(), to.add(at).cast());
        }
        ptr::copy_nonoverlapping(from.add(lines.end), to.add(lines.end), len - lines.end);
    }
}

/// Stores that go past the caches, by SSE2, which is there wherever `target_feature = "sse2"` says so. Miri does
/// not know them.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod stores {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use super::LINE;

    /// Copies a cache line.
    ///
    /// # Safety
    ///
    /// `from` can be read, and `to`, which is where a cache line begins, be written; the caller keeps E1.
    #[inline(always)]
    pub(in super::super) unsafe fn stream_line(from: *const [u8; LINE], to: *mut [u8; LINE]) {
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            // SAFETY: a line of `from` can be read, and of `to` be written; the parts of what is aligned are.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }

    pub(super) fn fence() {
        // SAFETY: SSE2 has it.
        unsafe { _mm_sfence() };
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
mod stores {
    use super::LINE;

    /// Copies a cache line.
    ///
    /// # Safety
    ///
    /// `from` can be read, and `to` be written.
    pub(in super::super) unsafe fn stream_line(from: *const [u8; LINE], to: *mut [u8; LINE]) {
        // SAFETY: a line of `from` can be read, and of `to` be written.
        unsafe { std::ptr::copy_nonoverlapping(from, to, 1) };
    }

    pub(super) fn fence() {}
}

#[cfg(test)]
mod unwritten_tests {
    use super::*;

    #[test]
    fn parts_are_filled_in_any_order_and_by_any_thread() {
        let mut out = Vec::<u8>::with_capacity(16);
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
        let _ = Unwritten::append(&mut Vec::<u8>::with_capacity(4), 4, |mut rest| {
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
        let _ = Unwritten::append(&mut Vec::<u8>::with_capacity(4), 4, |mut part| {
            part.zeros(2);
            part.finish();
            Ok::<(), ()>(())
        });
    }
}

#[cfg(test)]
mod grid_tests {

    use super::*;

    fn append<E>(
        out: &mut Vec<u8>,
        rows: usize,
        row: usize,
        write: impl FnOnce(&mut Grid<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        Unwritten::append(out, rows * row, |mut part| {
            Grid::append(&mut part, rows, row, write)?;
            part.finish();
            Ok(())
        })
    }

    assert_not_send!(Grid<'static>);

    /// The lines of a strip are made by a caller's function, whose panic the caller may catch.
    #[test]
    #[cfg_attr(miri, ignore = "too large, and Miri has no such stores")]
    fn a_strip_after_one_that_panicked_begins_with_a_fence() {
        let rows = STREAMED.div_ceil(LINE);
        let fences = || FENCES.with(std::cell::Cell::get);
        let write = |grid: &mut Grid<'_>| {
            let line = |row: usize| if row > 4 { panic!("in the middle") } else { [[7; LINE]] };
            let strip = std::panic::AssertUnwindSafe(|| grid.strip::<LINE, 1>(0, line));
            std::panic::catch_unwind(strip).expect_err("it panics");
            let before = fences();
            grid.strip::<LINE, 1>(0, |_| [[8; LINE]]);
            assert_eq!(fences(), before + 1);
            Ok::<(), ()>(())
        };
        assert_eq!(append(&mut Vec::with_capacity(rows * LINE), rows, LINE, write), Ok(()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too large, and Miri has no such stores")]
    fn a_writer_that_panics_leaves_a_fence_behind() {
        const ROW: usize = 4 * LINE;
        let rows = STREAMED.div_ceil(ROW);
        let mut out = Vec::with_capacity(rows * ROW);
        let before = FENCES.with(std::cell::Cell::get);
        let write = |grid: &mut Grid<'_>| -> Result<(), ()> {
            grid.strip::<LINE, 1>(0, |_| [[7; LINE]]);
            panic!("in the middle")
        };
        let panicked = || append(&mut out, rows, ROW, write);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicked)).expect_err("it panics");
        assert_eq!(FENCES.with(std::cell::Cell::get), before + 1);
    }

    #[test]
    fn what_goes_past_the_caches_is_there() {
        const ROW: usize = 3 * LINE + 8;
        let rows = if cfg!(miri) { 9 } else { STREAMED.div_ceil(ROW) };
        let mut out = Vec::with_capacity(rows * ROW);
        let fill = |row: usize, at: usize| digit((row * 7 + at) % 251);
        let append = append(&mut out, rows, ROW, |grid| {
            for at in [0, LINE, 2 * LINE, ROW - LINE] {
                grid.strip::<LINE, 1>(at, |row| {
                    [std::array::from_fn(|index| fill(row, at + index))]
                });
            }
            Ok::<(), ()>(())
        });
        assert_eq!(append, Ok(()));
        for (row, found) in out.chunks_exact(ROW).enumerate() {
            assert!(found.iter().enumerate().all(|(at, &found)| found == fill(row, at)));
        }
    }

    #[test]
    fn strips_that_overlap_make_rows() {
        let mut out = Vec::with_capacity(100);
        out.push(7);
        let line =
            |at: usize| move |row: usize| [[row, at], [row + 1, at]].map(|line| line.map(digit));
        let appended = append(&mut out, 3, 5, |grid| {
            for at in [0, 2, 3] {
                grid.strip::<2, 2>(at, line(at));
            }
            Ok::<(), ()>(())
        });
        assert_eq!(appended, Ok(()));
        assert_eq!(out, [7, 0, 0, 0, 0, 3, 1, 0, 1, 1, 3, 2, 0, 2, 2, 3]);
        let failed = append(&mut out, 3, 5, |_| Err("no"));
        assert_eq!((failed, out.len()), (Err("no"), 16));
    }

    #[test]
    #[should_panic(expected = "a strip is missing")]
    fn what_is_not_written_is_not_there() {
        let write = |grid: &mut Grid<'_>| {
            grid.strip::<4, 1>(0, |_| [[0; 4]]);
            Ok::<(), ()>(())
        };
        let _ = append(&mut Vec::with_capacity(10), 2, 5, write);
    }

    #[test]
    #[should_panic(expected = "no such strip")]
    fn a_strip_leaves_no_gap() {
        let write = |grid: &mut Grid<'_>| {
            grid.strip::<4, 1>(1, |_| [[0; 4]]);
            Ok::<(), ()>(())
        };
        let _ = append(&mut Vec::with_capacity(10), 2, 5, write);
    }

    fn digit(number: usize) -> u8 {
        u8::try_from(number).expect("it is small")
    }
}

#[cfg(test)]
mod streamed_tests {
    use super::*;

    #[test]
    fn a_copy_writes_each_byte_once_at_any_address() {
        let from: Vec<u8> = (0..=255).cycle().take(5 * LINE).collect();
        for (start, len) in
            [(0, 5), (3, 0), (1, LINE - 1), (1, LINE), (7, 4 * LINE), (LINE, 3 * LINE + 1)]
        {
            let mut to = vec![MaybeUninit::new(0); 6 * LINE];
            copy_streamed(&from[..len], &mut to[start..start + len]);
            // SAFETY: all of them were written, as zeros if not by the copy.
            let to: Vec<u8> = to.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            assert_eq!(to[start..start + len], from[..len], "{len} bytes at {start}");
            assert!(to[..start].iter().chain(&to[start + len..]).all(|byte| *byte == 0));
        }
    }

    #[test]
    #[should_panic(expected = "a copy is as long")]
    fn a_copy_of_another_length_is_refused() {
        copy_streamed(&[1], &mut []);
    }
}
