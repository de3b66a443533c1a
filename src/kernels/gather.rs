//! The elements of any strided tensor, one behind the other.

use arrow_buffer::ArrowNativeType;

use crate::error::Error;
use crate::layout;
use crate::memory::{Fresh, ManagedTensor};

/// Copies the elements of `tensor`, in row-major order, into fresh memory aligned to 64 bytes.
///
/// Strides of any sign and size, broadcast axes and misaligned addresses are all welcome.
///
/// # Errors
///
/// `UnreadableDevice`; `OutOfMemory`, which a broadcast axis can reach with a few bytes of input;
/// `PackedStrides` for strided elements of under 8 bits.
pub(crate) fn gather(tensor: &ManagedTensor) -> Result<Fresh, Error> {
    let Some((bytes, origin)) = tensor.span() else {
        return Err(Error::UnreadableDevice { device: tensor.device() });
    };
    if tensor.nbytes() == 0 {
        return Fresh::build::<u8>(0, |_| ());
    }
    let Some(itemsize) = tensor.itemsize() else {
        return match tensor.row_major_obstacle() {
            None => Fresh::build::<u8>(bytes.len(), |out| out.extend_from_slice(bytes)),
            Some(_) => Err(Error::PackedStrides { dtype: tensor.dtype() }),
        };
    };

    let mut axes = Vec::with_capacity(tensor.ndim() + 1);
    for (extent, stride) in layout::coalesce(tensor.shape(), &tensor.strides()) {
        axes.push(Axis::new(extent, stride, itemsize).ok_or(Error::Overflow("span of strides"))?);
    }
    let source = Source { bytes, origin, axes };
    let size = tensor.size();
    match itemsize {
        1 => Fresh::build::<u8>(size, |out| source.append_to(out)),
        2 => Fresh::build::<u16>(size, |out| source.append_to(out)),
        4 => Fresh::build::<u32>(size, |out| source.append_to(out)),
        8 => Fresh::build::<u64>(size, |out| source.append_to(out)),
        16 => Fresh::build::<u128>(size, |out| source.append_to(out)),
        // An element of any other size is one more axis, of bytes.
        _ => {
            let mut source = source;
            source.axes.push(Axis { len: itemsize, step: 1, reach: 0 });
            Fresh::build::<u8>(tensor.nbytes(), |out| source.append_to(out))
        }
    }
}

/// `len` positions, `step` bytes apart; `reach` is all of them.
struct Axis {
    len: usize,
    step: isize,
    reach: isize,
}

impl Axis {
    fn new(extent: i64, stride: i64, itemsize: usize) -> Option<Self> {
        let step = isize::try_from(stride).ok()?.checked_mul(isize::try_from(itemsize).ok()?)?;
        let len = isize::try_from(extent).ok()?;
        // One step further than the last element, and so perhaps out of range: it is only ever undone.
        Some(Self { len: usize::try_from(len).ok()?, step, reach: len.wrapping_mul(step) })
    }
}

/// Where to read: from `origin` on, along `axes`.
struct Source<'a> {
    bytes: &'a [u8],
    origin: usize,
    axes: Vec<Axis>,
}

impl Source<'_> {
    /// Runs along the last axis for each position of the others, as an odometer counts.
    fn append_to<T: Word>(&self, out: &mut Vec<T>) {
        let Some((run, outer)) = self.axes.split_last() else {
            return out.push(T::read(&self.bytes[self.origin..self.origin + size_of::<T>()]));
        };
        let mut index = vec![0; outer.len()];
        let mut at = self.origin;
        loop {
            self.append_run(at, run, out);
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
                return;
            }
        }
    }

    fn append_run<T: Word>(&self, mut at: usize, run: &Axis, out: &mut Vec<T>) {
        let word = size_of::<T>();
        if usize::try_from(run.step) == Ok(word) {
            let run = &self.bytes[at..at + run.len * word];
            out.extend(run.chunks_exact(word).map(T::read));
        } else {
            out.extend((0..run.len).map(|_| {
                let value = T::read(&self.bytes[at..at + word]);
                at = at.wrapping_add_signed(run.step);
                value
            }));
        }
    }
}

/// A value of 1 to 16 bytes, read from any address.
trait Word: ArrowNativeType {
    /// `bytes` has the word's size.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! word {
    ($($type:ty)*) => {$(
        impl Word for $type {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<Self>()];
                word.copy_from_slice(bytes);
                Self::from_ne_bytes(word)
            }
        }
    )*};
}
word!(u8 u16 u32 u64 u128);
