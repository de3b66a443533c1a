//! Descriptors drawn from a fuzzer's bytes: mostly of the kind that frameworks make, some of each lie that
//! a field can tell. Memory is there wherever a descriptor could be believed.

use arbitrary::{Result, Unstructured};
use arrow_dlpack::ffi::{DLDataType, DLDevice, DLPackFlags, DLPackVersion};

use crate::support::{Abi, Data, Ints, Producer, device, dtype};
use crate::truth::{Extent, Truth, is_readable, to_usize};

/// Bytes of a tensor that is worth looking at: bugs show in small ones, and large ones are slow.
const SMALL: i128 = 1 << 11;

/// Elements of every size, some of them without a name.
const DTYPES: [(u8, u8, u16); 36] = [
    (0, 8, 1),
    (0, 16, 1),
    (0, 32, 1),
    (0, 64, 1),
    (1, 8, 1),
    (1, 16, 1),
    (1, 32, 1),
    (1, 64, 1),
    (2, 16, 1),
    (2, 32, 1),
    (2, 64, 1),
    (4, 16, 1),
    (5, 32, 1),
    (5, 64, 1),
    (5, 128, 1),
    (6, 8, 1),
    (7, 8, 1),
    (8, 8, 1),
    (10, 8, 1),
    (12, 8, 1),
    (14, 8, 1),
    (15, 6, 1),
    (16, 6, 1),
    (17, 4, 1),
    (0, 4, 1),
    (1, 4, 1),
    (0, 2, 1),
    (1, 2, 1),
    (0, 1, 1),
    (1, 1, 1),
    (3, 64, 1),
    (2, 32, 4),
    (1, 8, 3),
    (1, 4, 2),
    (2, 128, 1),
    (99, 20, 1),
];

const WHOLE: [i64; 12] = [
    -1,
    i64::MIN,
    i64::MAX,
    1 << 31,
    1 << 32,
    (1 << 32) + 1,
    1 << 61,
    1 << 62,
    -(1 << 31),
    i64::MIN + 1,
    i64::MAX - 1,
    7919,
];

/// One in so many, and never when the bytes have run out.
pub(crate) fn rarely(u: &mut Unstructured<'_>, one_in: u8) -> Result<bool> {
    Ok(u.int_in_range(0..=one_in - 1)? == one_in - 1)
}

pub(crate) fn abi(u: &mut Unstructured<'_>) -> Result<Abi> {
    u.choose(&Abi::BOTH).copied()
}

pub(crate) fn dtype_of(u: &mut Unstructured<'_>) -> Result<DLDataType> {
    if rarely(u, 16)? {
        return Ok(dtype(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?));
    }
    let &(code, bits, lanes) = u.choose(&DTYPES)?;
    Ok(dtype(code, bits, lanes))
}

/// Extents of up to five axes, most of them small.
pub(crate) fn shape(u: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let ndim = if rarely(u, 32)? { u.int_in_range(0..=66)? } else { u.int_in_range(0..=5)? };
    (0..ndim)
        .map(|_| match u.int_in_range(0..=31)? {
            0 => Ok(0),
            1 => u.choose(&WHOLE).copied(),
            2 => u.int_in_range(6..=40),
            _ => u.int_in_range(1..=4),
        })
        .collect()
}

/// Strides for a shape: of the axes in some order, with gaps, backwards, broadcast, and any others.
pub(crate) fn strides(u: &mut Unstructured<'_>, shape: &[i64]) -> Result<Vec<i64>> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if u.ratio(1, 2)? {
        for last in (1..order.len()).rev() {
            order.swap(last, u.choose_index(last + 1)?);
        }
    }
    let is_plain = u.ratio(1, 2)?;
    let mut step = 1i64;
    let mut strides = vec![0; shape.len()];
    for &axis in order.iter().rev() {
        strides[axis] = step;
        let mut extent = shape[axis].max(1);
        if !is_plain {
            match u.int_in_range(0..=15)? {
                0 => strides[axis] = 0,
                1 | 2 => strides[axis] = -step,
                3 => strides[axis] = step.saturating_mul(2),
                4 => extent = extent.saturating_add(1),
                5 => strides[axis] = u.int_in_range(-9..=9)?,
                6 if rarely(u, 4)? => strides[axis] = *u.choose(&WHOLE)?,
                _ => {}
            }
        }
        step = step.saturating_mul(extent);
    }
    Ok(strides)
}

fn device_of(u: &mut Unstructured<'_>) -> Result<DLDevice> {
    Ok(match u.int_in_range(0..=15)? {
        0 => device(*u.choose(&[3, 11, 13])?, u.int_in_range(-1..=2)?),
        1 => device(u.int_in_range(-1..=20)?, u.int_in_range(-1..=2)?),
        2 => device(1, u.arbitrary()?),
        3 if rarely(u, 4)? => device(u.arbitrary()?, u.arbitrary()?),
        _ => device(1, 0),
    })
}

/// Any descriptor, of tensors of this shape and type. Where it could be believed and the CPU would read it,
/// it is true: the memory is there.
pub(crate) fn producer(
    u: &mut Unstructured<'_>,
    abi: Abi,
    dtype: DLDataType,
    shape: Vec<i64>,
) -> Result<Producer> {
    let strides = strides(u, &shape)?;
    let ndim = i32::try_from(shape.len()).unwrap_or(i32::MAX);
    let mut producer = Producer {
        version: DLPackVersion { major: 1, minor: u.int_in_range(0..=9)? },
        flags: DLPackFlags(u.int_in_range(0..=7)?),
        data: Data::Null,
        device: device_of(u)?,
        ndim,
        dtype,
        shape: Ints::Values(shape),
        strides: Ints::Values(strides),
        byte_offset: u.int_in_range(0..=3)? * u.int_in_range(0..=16)?,
        deleter: !rarely(u, 32)?,
    };
    if rarely(u, 4)? {
        producer.strides = Ints::Null;
    }
    if rarely(u, 6)? {
        spoil(u, &mut producer)?;
    }
    if abi == Abi::Legacy {
        // It has no place for them.
        (producer.flags, producer.version.major) = (DLPackFlags(0), 1);
    }
    producer.data = data(u, &mut producer)?;
    Ok(producer)
}

/// Makes one field say something else.
fn spoil(u: &mut Unstructured<'_>, producer: &mut Producer) -> Result<()> {
    match u.int_in_range(0..=6)? {
        0 => producer.version = DLPackVersion { major: u.arbitrary()?, minor: u.arbitrary()? },
        1 => producer.flags = DLPackFlags(u.arbitrary()?),
        2 => producer.ndim = *u.choose(&[-1, i32::MIN, -2, 257, i32::MAX])?,
        3 if producer.ndim > 0 => producer.shape = Ints::Null,
        4 => {
            if let Ints::Values(values) = producer.shape.clone() {
                producer.shape = Ints::Misaligned(values);
            }
        }
        5 => {
            if let Ints::Values(values) = producer.strides.clone() {
                producer.strides = Ints::Misaligned(values);
            }
        }
        _ => producer.byte_offset = u.arbitrary()?,
    }
    Ok(())
}

/// What `data` is: memory from the lowest to the highest element and not a byte more, or an address where
/// it will not be read.
fn data(u: &mut Unstructured<'_>, producer: &mut Producer) -> Result<Data> {
    let truth = Truth::of(producer);
    let readable = is_readable(producer.device);
    let Some(Truth { size, extent: Extent { below, above }, .. }) = truth else {
        return anything(u);
    };
    if size == 0 || !readable && rarely(u, 2)? {
        return anything(u);
    }
    // What takes more than there is can be asked for; what takes a part of it is only slow.
    let item = i128::from(producer.dtype.lanes) * i128::from(producer.dtype.bits.div_ceil(8));
    let whole = size.saturating_mul(item);
    if below + above > SMALL || whole > SMALL && whole < 1 << 58 {
        producer.device = device(2, 0);
        return anything(u);
    }
    if rarely(u, 64)? {
        return Ok(Data::Null);
    }
    let (below, len) = (to_usize(below), to_usize(below + above));
    let seed = u.arbitrary()?;
    // Bools of other bytes than 0 and 1 are for some.
    let mask = if producer.dtype.code.0 == 6 && seed & 1 == 0 { 1 } else { 0xFF };
    let bytes = bytes(seed, len, mask);
    // Behind `byte_offset`, wherever that leads.
    let origin = below.wrapping_sub(usize::try_from(producer.byte_offset).unwrap_or_default());
    let misalign = if rarely(u, 4)? { u.int_in_range(0..=63)? } else { 0 };
    Ok(Data::Bytes { bytes, origin, misalign })
}

fn anything(u: &mut Unstructured<'_>) -> Result<Data> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Data::Null,
        1 => Data::Address(*u.choose(&[1, 8, 4096, usize::MAX, usize::MAX - 63, 1 << 63])?),
        _ => Data::Address(u.arbitrary()?),
    })
}

/// `len` bytes, less the bits that are not in `mask`, from a seed: a fuzzer need not find each of them.
pub(crate) fn bytes(seed: u16, len: usize, mask: u8) -> Vec<u8> {
    let mask = u64::from_ne_bytes([mask; 8]);
    let mut random = crate::support::Random(seed.into());
    let words = (0..len.div_ceil(8)).flat_map(|_| (random.next() & mask).to_ne_bytes());
    let mut bytes: Vec<u8> = words.collect();
    bytes.truncate(len);
    bytes
}
