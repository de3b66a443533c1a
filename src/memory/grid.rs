//! Rows that are written strip by strip of columns, to memory that nothing has been written to.
//!
//! Each strip goes down all rows. Whoever writes wide rows one after the other has to look at every column for
//! each few of them.
//!
//! G1: of each row the first `done` bytes are written.
#![expect(unsafe_code, reason = "writes to memory, and lengthens a vector by it")]

use std::mem::MaybeUninit;
use std::ptr;

/// Rows of which some bytes are not written yet.
pub(crate) struct Grid<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    rows: usize,
    /// Bytes of a row.
    row: usize,
    done: usize,
}

impl Grid<'_> {
    /// Appends so many rows of so many bytes, which are not 0, to a vector that has room for them.
    ///
    /// # Panics
    ///
    /// It has no room, or `write` does not write all strips.
    pub(crate) fn append<E>(
        out: &mut Vec<u8>,
        rows: usize,
        row: usize,
        write: impl FnOnce(&mut Grid<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = out.len() + rows * row;
        let memory = &mut out.spare_capacity_mut()[..rows * row];
        let mut grid = Grid { memory, rows, row, done: 0 };
        write(&mut grid)?;
        assert_eq!(grid.done, row, "a strip is missing");
        // SAFETY: G1, all rows are written. No other grid can have taken this one's place: its lifetime is
        // known to nobody else.
        unsafe { out.set_len(len) };
        Ok(())
    }

    /// Writes `W` bytes of each row, from the byte `at` on, which is no later than where the strips before end.
    /// `lines` has those of `K` rows from one on; of the last rows some may be asked for twice.
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
        for first in (0..self.rows).step_by(K) {
            let first = first.min(self.rows - K);
            for (row, line) in (first..).zip(&lines(first)) {
                let cells = &mut self.memory[row * self.row + at..][..W];
                // SAFETY: both have `W` bytes, and nobody else has these cells.
                unsafe { ptr::copy_nonoverlapping(line.as_ptr(), cells.as_mut_ptr().cast(), W) };
            }
        }
        self.done = self.done.max(at + W);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_that_overlap_make_rows() {
        let mut out = Vec::with_capacity(100);
        out.push(7);
        let line =
            |at: usize| move |row: usize| [[row, at], [row + 1, at]].map(|line| line.map(digit));
        let append = Grid::append(&mut out, 3, 5, |grid| {
            for at in [0, 2, 3] {
                grid.strip::<2, 2>(at, line(at));
            }
            Ok::<(), ()>(())
        });
        assert_eq!(append, Ok(()));
        assert_eq!(out, [7, 0, 0, 0, 0, 3, 1, 0, 1, 1, 3, 2, 0, 2, 2, 3]);
        let failed = Grid::append(&mut out, 3, 5, |_| Err("no"));
        assert_eq!((failed, out.len()), (Err("no"), 16));
    }

    #[test]
    #[should_panic(expected = "a strip is missing")]
    fn what_is_not_written_is_not_there() {
        let append = |grid: &mut Grid<'_>| {
            grid.strip::<4, 1>(0, |_| [[0; 4]]);
            Ok::<(), ()>(())
        };
        let _ = Grid::append(&mut Vec::with_capacity(10), 2, 5, append);
    }

    #[test]
    #[should_panic(expected = "no such strip")]
    fn a_strip_leaves_no_gap() {
        let append = |grid: &mut Grid<'_>| {
            grid.strip::<4, 1>(1, |_| [[0; 4]]);
            Ok::<(), ()>(())
        };
        let _ = Grid::append(&mut Vec::with_capacity(10), 2, 5, append);
    }

    fn digit(number: usize) -> u8 {
        u8::try_from(number).expect("it is small")
    }
}
