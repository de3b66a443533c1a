//! Gathers elements whose memory runs along another axis than the last.
//!
//! A loop along the last axis reads or writes a whole cache line for each element of these. In tiles, the
//! lines that are read and written stay in the nearest cache until all of their bytes have been used.

use super::bytes::array;

/// Steps along the last axis that are taken before going on along the run.
const TILE: usize = 128;

/// An axis: its length, its step in bytes in memory, and in elements in the output.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    step: isize,
    out: usize,
}

/// A way through memory that is better taken in tiles.
pub(super) struct Tiles {
    origin: usize,
    /// All but the next two.
    outer: Vec<Axis>,
    /// Along which the elements lie one behind the other in memory.
    run: Axis,
    /// The last one, along which they will.
    last: Axis,
}

impl Tiles {
    /// `axes` are lengths and steps in bytes, from the first axis to the last, without any that could
    /// be merged; the elements take `itemsize` bytes.
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

    /// Writes what `map` makes of the `N` bytes of each element to its place in `out`.
    pub(super) fn write<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        map: impl Fn([u8; N]) -> U,
    ) {
        let mut index = vec![0; self.outer.len()];
        let (mut at, mut to) = (self.origin, 0);
        loop {
            self.write_plane(&mut out[to..], bytes, at, &map);
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
                return;
            }
        }
    }

    fn write_plane<const N: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        at: usize,
        map: &impl Fn([u8; N]) -> U,
    ) {
        let mut from = at;
        for start in (0..self.last.len).step_by(TILE) {
            let len = TILE.min(self.last.len - start);
            let mut place = 0;
            while self.run.len - place >= 8 {
                self.write_lines::<N, 8, U>(&mut out[start..], bytes, from, place, len, map);
                place += 8;
            }
            while place < self.run.len {
                self.write_lines::<N, 1, U>(&mut out[start..], bytes, from, place, len, map);
                place += 1;
            }
            let step = self.last.step.wrapping_mul(isize::try_from(len).unwrap_or_default());
            from = from.wrapping_add_signed(step);
        }
    }

    /// Writes `len` elements of each of `G` neighbours along the run.
    fn write_lines<const N: usize, const G: usize, U>(
        &self,
        out: &mut [U],
        bytes: &[u8],
        from: usize,
        place: usize,
        len: usize,
        map: &impl Fn([u8; N]) -> U,
    ) {
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
    }
}
