//! Writes rows strip by strip of columns, to uninitialised memory or over what is there.
//!
//! Each strip is some columns of all rows. Code that writes wide rows one after the other would read every
//! column again for each few rows, and more lines of columns at once than the L1 cache has places for.
//!
//! G1: the first `done` bytes of each row are written.
//! G2: `memory` has `rows` rows of `row` bytes.
//! G3: each grid has a lifetime that no other grid has, so that none can take another one's place: a grid is lent to a
//! function that is generic over it, and the lifetime is invariant.
//! G4: it stays on its thread, whose fence orders what it streams, and what was streamed is not written again before.
#![expect(unsafe_code, reason = "writes to memory, and takes it for written")]

use std::{marker::PhantomData, mem::MaybeUninit, ptr, slice};

use super::streamed::{self, Fence, LINE};
use super::unwritten::Unwritten;

/// Rows of which some bytes are not written yet.
pub(crate) struct Grid<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    rows: usize,
    /// Bytes of a row.
    row: usize,
    done: usize,
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
        let (done, is_streamed, invariant) = (0, false, PhantomData);
        write(&mut Grid { memory, rows, row, done, is_streamed, invariant });
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
        let (done, is_streamed, invariant) = (0, out.is_streamed(), PhantomData);
        let memory = &mut out.spare()[..nbytes];
        let fence = is_streamed.then_some(Fence);
        let mut grid = Grid { memory, rows, row, done, is_streamed, invariant };
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
    /// There are not so many rows or bytes, or some before these are missing.
    #[inline(always)]
    pub(crate) fn strip<const W: usize, const K: usize>(
        &mut self,
        at: usize,
        lines: impl Fn(usize) -> [[u8; W]; K],
    ) {
        assert!(at <= self.done && at + W <= self.row && K <= self.rows, "no such strip");
        // It writes over bytes of the strip before.
        if self.is_streamed && at < self.done {
            drop(Fence);
        }
        let memory: *mut u8 = self.memory.as_mut_ptr().cast();
        for next in (0..self.rows).step_by(K) {
            let first = next.min(self.rows - K);
            for (row, line) in (first..).zip(&lines(first)).skip(next - first) {
                let start = memory.wrapping_add(row * self.row + at);
                // SAFETY: by G2 and what was asserted these are `W` bytes of the memory, which is borrowed mutably:
                // `row` is one of the rows, as there are `K` from `first` on. What is streamed begins with a cache
                // line and is one; E1, by `append`, and G4: the grid of `over` streams nothing.
                unsafe {
                    if self.is_streamed && W == LINE && start.addr() % LINE == 0 {
                        streamed::line(line.as_ptr().cast(), start.cast());
                    } else {
                        ptr::copy_nonoverlapping(line.as_ptr(), start, W);
                    }
                }
            }
        }
        self.done = self.done.max(at + W);
    }
}

#[cfg(test)]
mod tests {
    use super::super::streamed::STREAMED;
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
