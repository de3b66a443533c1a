//! Copies the elements of any strided tensor into contiguous memory.

use std::iter;

use super::transpose::{BETWEEN_CHECKS, Tiles};
use super::{array, simd::strided};
use crate::{Error, ManagedTensor, alloc::Fresh, layout, task};

/// Copies the elements of `tensor`, in row-major order, into fresh memory aligned to 64 bytes.
///
/// Supports strides of any sign and size, broadcast axes and misaligned addresses.
///
/// # Errors
///
/// `UnreadableDevice`; `OutOfMemory`, which broadcast axes can cause with a few bytes of input; `PackedStrides` for
/// strided elements of under 8 bits; those of [`task::check`].
pub(crate) fn gather(tensor: &ManagedTensor) -> Result<Fresh, Error> {
    let (bytes, origin) = readable(tensor)?;
    if tensor.nbytes() == 0 {
        return Fresh::build::<u8>(0, |_| ());
    }
    let Some(itemsize) = tensor.itemsize() else {
        return match tensor.row_major_obstacle() {
            None => Fresh::copied(iter::once(bytes)),
            Some(_) => Err(Error::PackedStrides { dtype: tensor.dtype() }),
        };
    };

    let mut walk = Walk::new(tensor, origin, itemsize)?;
    let size = tensor.size();
    if let Some(tiles) = walk.tiles(itemsize) {
        return match itemsize {
            1 => Fresh::write(size, |out| tiles.write(out, bytes, u8::from_ne_bytes)),
            2 => Fresh::write(size, |out| tiles.write(out, bytes, u16::from_ne_bytes)),
            4 => Fresh::write(size, |out| tiles.write(out, bytes, u32::from_ne_bytes)),
            8 => Fresh::write(size, |out| tiles.write(out, bytes, u64::from_ne_bytes)),
            _ => Fresh::write(size, |out| tiles.write(out, bytes, u128::from_ne_bytes)),
        };
    }
    match itemsize {
        1 => Fresh::try_build(size, |out| walk.append_to(out, bytes, u8::from_ne_bytes)),
        2 => Fresh::try_build(size, |out| walk.append_to(out, bytes, u16::from_ne_bytes)),
        4 => Fresh::try_build(size, |out| walk.append_to(out, bytes, u32::from_ne_bytes)),
        8 => Fresh::try_build(size, |out| walk.append_to(out, bytes, u64::from_ne_bytes)),
        16 => Fresh::try_build(size, |out| walk.append_to(out, bytes, u128::from_ne_bytes)),
        // An element of any other size becomes one more axis, of bytes.
        _ => {
            walk.push_inner(itemsize, 1);
            Fresh::try_build(tensor.nbytes(), |out| walk.append_to(out, bytes, u8::from_ne_bytes))
        }
    }
}

/// All bytes from the lowest element to the end of the highest, and the position of the first.
pub(super) fn readable(tensor: &ManagedTensor) -> Result<(&[u8], usize), Error> {
    tensor.span().ok_or(Error::UnreadableDevice { device: tensor.device() })
}

/// The positions of a tensor's elements in row-major order: from `origin` on, along `axes`, in bytes or bits.
pub(super) struct Walk {
    origin: usize,
    axes: Vec<Axis>,
}

/// `len` positions, `step` apart; `reach` is `len * step`.
struct Axis {
    len: usize,
    step: isize,
    reach: isize,
}

impl Axis {
    fn new(extent: i64, stride: i64, item: usize) -> Option<Self> {
        let step = isize::try_from(stride).ok()?.checked_mul(isize::try_from(item).ok()?)?;
        let len = isize::try_from(extent).ok()?;
        // `reach` is one step beyond the last element and can overflow, but is only ever subtracted again.
        Some(Self { len: usize::try_from(len).ok()?, step, reach: len.wrapping_mul(step) })
    }
}

impl Walk {
    /// For a tensor with at least one element; an element takes `item` units.
    pub(super) fn new(tensor: &ManagedTensor, origin: usize, item: usize) -> Result<Self, Error> {
        let mut axes = Vec::with_capacity(tensor.ndim() + 1);
        for (extent, stride) in layout::coalesce(tensor.shape(), &tensor.strides()) {
            axes.push(Axis::new(extent, stride, item).ok_or(Error::Overflow("span of strides"))?);
        }
        Ok(Self { origin, axes })
    }

    /// The same elements in tiles, if they are words that are contiguous along another axis than the last.
    fn tiles(&self, itemsize: usize) -> Option<Tiles> {
        let axes = self.axes.iter().map(|axis| (axis.len, axis.step));
        matches!(itemsize, 1 | 2 | 4 | 8 | 16).then(|| Tiles::new(axes, self.origin, itemsize))?
    }

    /// Splits each element into `len` parts, `step` units apart.
    pub(super) fn push_inner(&mut self, len: usize, step: isize) {
        if len > 1 {
            // `reach` is not used for the last axis.
            self.axes.push(Axis { len, step, reach: 0 });
        }
    }

    /// Calls `each` with the first position, the number of positions and their step along the last axis, for each
    /// position of the outer axes, in row-major order.
    pub(super) fn runs(
        &self,
        mut each: impl FnMut(usize, usize, isize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((run, outer)) = self.axes.split_last() else {
            return each(self.origin, 1, 0);
        };
        let mut index = vec![0; outer.len()];
        let mut at = self.origin;
        loop {
            each(at, run.len, run.step)?;
            let all_wrapped = outer.iter().zip(&mut index).rev().all(|(axis, index)| {
                *index += 1;
                at = at.wrapping_add_signed(axis.step);
                let wrapped = *index == axis.len;
                if wrapped {
                    *index = 0;
                    at = at.wrapping_add_signed(axis.reach.wrapping_neg());
                }
                wrapped
            });
            if all_wrapped {
                return Ok(());
            }
        }
    }

    /// Appends the result of `map` for the `N` bytes at each position.
    ///
    /// # Errors
    ///
    /// Those of [`task::check`].
    pub(super) fn append_to<const N: usize, U>(
        &self,
        out: &mut Vec<U>,
        bytes: &[u8],
        map: impl Fn([u8; N]) -> U,
    ) -> Result<(), Error> {
        let mut left = BETWEEN_CHECKS;
        self.runs(|mut at, mut len, step| {
            while len > left {
                at = append_run(out, bytes, at, left, step, &map);
                len -= left;
                left = BETWEEN_CHECKS;
                task::check()?;
            }
            append_run(out, bytes, at, len, step, &map);
            left -= len;
            Ok(())
        })
    }
}

/// Appends the result of `map` for the `N` bytes at each of `len` positions from `at` on, and returns the position
/// after them.
pub(super) fn append_run<const N: usize, U>(
    out: &mut Vec<U>,
    bytes: &[u8],
    at: usize,
    len: usize,
    step: isize,
    map: impl Fn([u8; N]) -> U,
) -> usize {
    if usize::try_from(step) == Ok(N) {
        let end = at + len * N;
        out.extend(bytes[at..end].chunks_exact(N).map(|item| map(array(item))));
        end
    } else {
        out.extend(strided(bytes, at, len, step).map(map));
        let len = isize::try_from(len).unwrap_or_default();
        at.wrapping_add_signed(step.wrapping_mul(len))
    }
}
