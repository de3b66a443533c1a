//! What a descriptor says, by `dlpack.h` and exact arithmetic; nothing here is the library's. The oracle of
//! `tests/hostile.rs` and of the fuzz targets, in a file of its own for those who need one.

use arrow_dlpack::ffi::DLDevice;

use crate::support::{Ints, Producer, is_dtype};

/// What is to be read out of a descriptor that can be believed.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) shape: Vec<i64>,
    /// Row-major ones, where none were given.
    pub(crate) strides: Vec<i64>,
    pub(crate) size: i128,
    pub(crate) nbytes: i128,
    /// From one element to the next.
    pub(crate) item_bits: i128,
    pub(crate) extent: Extent,
}

/// Bytes below the first element, and from it on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) below: i128,
    pub(crate) above: i128,
}

/// The last address: `SIZE_MAX`, which is the most elements that can be counted too.
const LAST: i128 = (1 << usize::BITS) - 1;

/// The most bytes that can be next to each other: `PTRDIFF_MAX`.
const MAX: i128 = LAST / 2;

/// How far apart two bytes can be: the part of the largest address space that is a program's.
const FARTHEST: i128 = if MAX < 1 << 56 { MAX } else { 1 << 56 };

/// More than anyone has.
pub(crate) const MOST_AXES: i32 = 256;

/// kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged.
pub(crate) fn is_readable(device: DLDevice) -> bool {
    [1, 3, 11, 13].contains(&device.device_type.0)
}

impl Truth {
    /// `None` if the descriptor contradicts itself, wherever its memory is.
    pub(crate) fn of(producer: &Producer) -> Option<Self> {
        let Producer { dtype, ndim, .. } = *producer;
        if !is_dtype(dtype) {
            return None;
        }
        let ndim = usize::try_from(ndim).ok().filter(|_| ndim <= MOST_AXES)?;
        let shape = ints(&producer.shape, ndim)?;
        let strides = ints(&producer.strides, ndim)?;
        let shape = match shape {
            Some(shape) => shape,
            None if ndim == 0 => Vec::new(),
            None => return None,
        };
        if shape.iter().any(|&extent| extent < 0) {
            return None;
        }
        let size = if shape.contains(&0) {
            0
        } else {
            shape.iter().try_fold(1i128, |size, &extent| size.checked_mul(extent.into()))?
        };
        // "By default, sub-byte types are packed", unless the flag says otherwise; others take whole bytes.
        let padded = producer.flags.0 & 4 != 0;
        let bits = i128::from(dtype.bits);
        let lane = if bits < 8 && !padded { bits } else { (bits + 7) / 8 * 8 };
        let item_bits = lane * i128::from(dtype.lanes);
        let in_bytes = |count: i128| count.checked_mul(item_bits).map(|bits| (bits + 7) / 8);
        let nbytes = in_bytes(size).filter(|&bytes| bytes <= MAX)?;
        if size > LAST {
            return None;
        }
        let row_major = row_major(&shape);
        // "When strides is NULL, it indicates the tensor is compact and row-majored."
        let strides = strides.unwrap_or_else(|| row_major.clone());
        let mut extent = Extent { below: 0, above: nbytes };
        let means = |axis: usize| shape[axis] > 1;
        if size > 0 && (0..ndim).any(|axis| means(axis) && strides[axis] != row_major[axis]) {
            let (mut below, mut above) = (0i128, 1i128);
            for axis in (0..ndim).filter(|&axis| means(axis)) {
                let reach = i128::from(shape[axis] - 1) * i128::from(strides[axis]);
                i64::try_from(reach).ok()?;
                if reach < 0 { below -= reach } else { above += reach }
            }
            if below > LAST || above > LAST {
                return None;
            }
            extent = Extent { below: in_bytes(below)?, above: in_bytes(above)? };
            if extent.below > MAX || extent.above > MAX {
                return None;
            }
        }
        Some(Self { shape, strides, size, nbytes, item_bits, extent })
    }

    /// Whether a CPU can find all elements, if the descriptor says that `data` is at this address.
    pub(crate) fn is_reachable(&self, data: usize, byte_offset: u64) -> bool {
        if self.nbytes == 0 {
            return true;
        }
        let first = i128::try_from(data).expect("64 bits") + i128::from(byte_offset);
        let Extent { below, above } = self.extent;
        data != 0
            && first <= LAST
            && first - below > 0
            && first + above <= LAST
            && below + above <= FARTHEST
    }

    /// Whether a consumer has to believe it, if it says that `data` is at this address.
    pub(crate) fn is_believable(&self, producer: &Producer, data: usize) -> bool {
        // "If the tensor is of size zero, then the data pointer should be set to NULL"; a handle of another
        // device may be anything.
        producer.version.major == 1
            && (!is_readable(producer.device) || self.is_reachable(data, producer.byte_offset))
    }

    /// Whether the elements lie one behind the other.
    pub(crate) fn is_contiguous(&self) -> bool {
        let expected = row_major(&self.shape);
        let axes = self.shape.iter().zip(&self.strides).zip(&expected);
        self.size == 0
            || axes
                .into_iter()
                .all(|((&extent, stride), expected)| extent == 1 || stride == expected)
    }
}

/// The values, `None` inside for a NULL pointer, and outside for one that must not be read.
fn ints(ints: &Ints, ndim: usize) -> Option<Option<Vec<i64>>> {
    match ints {
        _ if ndim == 0 => Some(None),
        Ints::Null => Some(None),
        Ints::Values(values) => Some(Some(values[..ndim].to_vec())),
        Ints::Misaligned(_) | Ints::Address(_) => None,
    }
}

/// An extent of 0 counts as 1.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

/// The elements in row-major order, one behind the other; those of under a byte in the low bits of one each.
pub(crate) fn elements(truth: &Truth, bytes: &[u8], origin: usize) -> Vec<u8> {
    let mut found = Vec::new();
    if truth.size == 0 {
        return found;
    }
    let step = |axis: usize| i64::try_from(i128::from(truth.strides[axis]) * truth.item_bits);
    // Of axes of one element the strides mean nothing.
    let steps: Vec<i64> = (0..truth.shape.len())
        .map(|axis| if truth.shape[axis] > 1 { step(axis).expect("small") } else { 0 })
        .collect();
    let item_bits = to_usize(truth.item_bits);
    let mut index = vec![0i64; truth.shape.len()];
    let mut bit = i64::try_from(origin * 8).expect("small");
    loop {
        let at = usize::try_from(bit).expect("inside the memory");
        if truth.item_bits % 8 == 0 {
            found.extend_from_slice(&bytes[at / 8..at / 8 + item_bits / 8]);
        } else {
            let read = |bit: usize| (bytes[bit / 8] >> (bit % 8)) & 1;
            found.push((0..item_bits.min(8)).map(|n| read(at + n) << n).sum());
        }
        let next = (0..index.len()).rev().find(|&axis| {
            index[axis] += 1;
            bit += steps[axis];
            if index[axis] == truth.shape[axis] {
                bit -= steps[axis] * index[axis];
                index[axis] = 0;
            }
            index[axis] != 0
        });
        if next.is_none() {
            return found;
        }
    }
}

pub(crate) fn to_usize(value: i128) -> usize {
    usize::try_from(value).expect("a small number")
}
