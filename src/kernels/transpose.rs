//! Gathers elements that are contiguous along another axis than the last.
//!
//! A loop along the last axis would read or write a whole cache line for each element. With tiles, cache lines stay
//! in the L1 cache until all of their bytes have been used.

use super::bytes::array;
use crate::{Error, task};

/// Elements between two checks whether the conversion is to end: milliseconds.
pub(super) const BETWEEN_CHECKS: usize = 1 << 20;

/// Length of a tile along the last axis.
const TILE: usize = 128;

/// An axis: its length, its step in memory in bytes, and its step in the output in elements.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    step: isize,
    out: usize,
}

/// A gather that is done in tiles.
pub(super) struct Tiles {
    origin: usize,
    /// All axes but `run` and `last`.
    outer: Vec<Axis>,
    /// The axis along which elements are contiguous in memory.
    run: Axis,
    /// The last axis, along which elements are contiguous in the output.
    last: Axis,
}

impl Tiles {
    /// `axes` are lengths and steps in bytes, from the first axis to the last, merged where possible; the elements
    /// take `itemsize` bytes.
    pub(super) fn new(
        axes: impl DoubleEndedIterator<Item = (usize, isize)>,
        origin: usize,
        itemsize: usize,
    ) -> Option<Self> {
        let mut out = 1;
        let axes = axes.rev().map(|(len, step)| {
            let axis = Axis { len, step, out };
            out *= len;
            axis
        });
        let mut outer: Vec<Axis> = axes.collect();
        let is_run = |axis: &Axis| usize::try_from(axis.step) == Ok(itemsize);
        let run = outer.iter().position(is_run).filter(|&position| position > 0)?;
        let run = outer.remove(run);
        let last = outer.remove(0);
        Some(Self { origin, outer, run, last })
    }

    /// Writes the result of `map` for the `N` bytes of each element to its position in `out`.
    ///
    /// # Errors
    ///
    /// Those of [`task::check`].
    pub(super) fn write<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        map: impl Fn([u8; N]) -> U,
    ) -> Result<(), Error> {
        let mut left = BETWEEN_CHECKS;
        let mut index = vec![0; self.outer.len()];
        let (mut at, mut to) = (self.origin, 0);
        loop {
            self.write_plane(&mut out[to..], bytes, at, &map, &mut left)?;
            let done = self.outer.iter().zip(&mut index).all(|(axis, index)| {
                *index += 1;
                at = at.wrapping_add_signed(axis.step);
                to += axis.out;
                let wrapped = *index == axis.len;
                if wrapped {
                    let len = isize::try_from(axis.len).unwrap_or_default();
                    at = at.wrapping_add_signed(len.wrapping_mul(axis.step).wrapping_neg());
                    to -= axis.len * axis.out;
                    *index = 0;
                }
                wrapped
            });
            if done {
                return Ok(());
            }
        }
    }

    fn write_plane<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        at: usize,
        map: &impl Fn([u8; N]) -> U,
        left: &mut usize,
    ) -> Result<(), Error> {
        let mut from = at;
        for start in (0..self.last.len).step_by(TILE) {
            let len = TILE.min(self.last.len - start);
            let (mut place, out) = (0, &mut out[start..]);
            while place < self.run.len {
                // Fewer than eight neighbours, such as the channels of an image, are read at once too: one by one they
                // take twice the time.
                place += match self.run.len - place {
                    8.. => self.write_lines::<N, 8, U>(out, bytes, from, place, len, map),
                    4.. => self.write_lines::<N, 4, U>(out, bytes, from, place, len, map),
                    3 => self.write_lines::<N, 3, U>(out, bytes, from, place, len, map),
                    2 => self.write_lines::<N, 2, U>(out, bytes, from, place, len, map),
                    _ => self.write_lines::<N, 1, U>(out, bytes, from, place, len, map),
                };
            }
            let step = self.last.step.wrapping_mul(isize::try_from(len).unwrap_or_default());
            from = from.wrapping_add_signed(step);
            let Some(less) = left.checked_sub(len.saturating_mul(self.run.len)) else {
                *left = BETWEEN_CHECKS;
                task::check()?;
                continue;
            };
            *left = less;
        }
        Ok(())
    }

    /// Writes `len` elements of each of `G` neighbours along `run`, and returns `G`.
    fn write_lines<const N: usize, const G: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        from: usize,
        place: usize,
        len: usize,
        map: &impl Fn([u8; N]) -> U,
    ) -> usize {
        let mut lines = out[place * self.run.out..].chunks_mut(self.run.out);
        let mut lines: [&mut [U]; G] =
            std::array::from_fn(|_| &mut lines.next().unwrap_or_default()[..len]);
        let mut at = from + place * N;
        for index in 0..len {
            let items = &bytes[at..at + G * N];
            for (line, item) in lines.iter_mut().zip(items.chunks_exact(N)) {
                line[index] = map(array(item));
            }
            at = at.wrapping_add_signed(self.last.step);
        }
        G
    }
}
