//! Casts numbers from one type to another: the only loops that need `as`.
#![expect(clippy::as_conversions, reason = "the casts that round or wrap, each with its check")]

use half::{bf16, f16};

use super::array;
use crate::Number;
use crate::dtype::for_each_numeric;
use crate::ffi::DLDataType;

/// Casts a block of items. Returns `false` if some value does not fit; then the output is unspecified.
pub(super) type Cast = fn(&[u8], &mut [u8]) -> bool;

/// The number in another type, and whether the conversion is allowed.
///
/// Conversions to integers must be exact; conversions to floats round to nearest, ties to even. A finite value must not
/// become infinite either, which [`each`] sees.
trait To<T> {
    fn to(self) -> (T, bool);
}

macro_rules! to_float {
    ($($from:ty => $to:ty, $convert:expr;)*) => {$(
        impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> ($to, bool) {
                ($convert(self), true)
            }
        }
    )*};
}

macro_rules! from_integer {
    ($from:ty => $($to:ty)*) => {
        $(impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> ($to, bool) {
                (self as $to, <$to>::try_from(self).is_ok())
            }
        })*
        to_float! {
            // Integers that float32 has to round are infinite in float16 anyway.
            $from => f16, |value| to_half(value as f32);
            $from => bf16, |value| to_bfloat(to_odd(to_odd_double(i128::from(value))));
            $from => f32, |value| value as f32;
            $from => f64, |value| value as f64;
        }
    };
}

macro_rules! from_float {
    ($from:ty => $($to:ty)*) => {$(
        impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> ($to, bool) {
                // `as` saturates, and `MAX` as a float may round up to a number that does not fit.
                const END: $from = (<$to>::MAX / 2 + 1) as $from * 2.0;
                let to = self as $to;
                (to, to as $from == self && self < END)
            }
        }
    )*};
}

macro_rules! from_half {
    ($($to:ty)*) => {$(
        impl To<$to> for f16 {
            #[inline(always)]
            fn to(self) -> ($to, bool) {
                from_half(self).to()
            }
        }
    )*};
}

from_integer!(i8 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(i16 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(i32 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(i64 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(u8 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(u16 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(u32 => i8 i16 i32 i64 u8 u16 u32 u64);
from_integer!(u64 => i8 i16 i32 i64 u8 u16 u32 u64);
from_half!(i8 i16 i32 i64 u8 u16 u32 u64 f64);
from_float!(f32 => i8 i16 i32 i64 u8 u16 u32 u64);
from_float!(f64 => i8 i16 i32 i64 u8 u16 u32 u64);
to_float! {
    f16 => f16, |value| value;
    f16 => f32, from_half;
    f32 => f16, to_half;
    f32 => f32, |value| value;
    f32 => f64, f64::from;
    f64 => f16, nearest_half;
    f64 => f32, |value| value as f32;
    f64 => f64, |value| value;
    f16 => bf16, |value| to_bfloat(from_half(value));
    f32 => bf16, to_bfloat;
    f64 => bf16, |value| to_bfloat(to_odd(value));
}

/// As `f16::from_f32`, but without branches, so that the loop vectorises.
#[inline(always)]
fn to_half(value: f32) -> f16 {
    const INFINITY: u32 = 255 << 23;
    // From here on everything is infinite; smaller values overflow by rounding where they must.
    const TOO_HIGH: u32 = (127 + 16) << 23;
    const NORMAL: u32 = (127 - 14) << 23;
    // Added to a value below the normal float16 range, aligns the last float16 bit with the last bit of the sum.
    const SHIFT: f32 = 0.5;

    let bits = value.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xFFF + odd) >> 13;
    let small = (f32::from_bits(magnitude) + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits());
    let high = if magnitude > INFINITY { 0x7E00 } else { 0x7C00 };
    let half = if magnitude < NORMAL { small } else { normal };
    let half = if magnitude >= TOO_HIGH { high } else { half };
    f16::from_bits((half | bits >> 16 & 0x8000) as u16)
}

/// As `f16::to_f32`, without branches.
#[inline(always)]
fn from_half(value: f16) -> f32 {
    // 2 to the power of 112, the difference of the exponent biases.
    const SCALE: f32 = f32::from_bits((127 + 112) << 23);

    let bits = u32::from(value.to_bits());
    let magnitude = (bits & 0x7FFF) << 13;
    // The product is exact, also for subnormal numbers.
    let finite = (f32::from_bits(magnitude) * SCALE).to_bits();
    let special = magnitude | 255 << 23;
    let magnitude = if magnitude >= 31 << 23 { special } else { finite };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// Rounds to odd: an inexact result is the neighbour whose last bit is set. That is no tie for any narrower float, so
/// that rounding twice gives the same result as rounding the float64 once.
#[inline(always)]
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    // The bits of floats of the same sign are ordered by magnitude.
    let too_far = u32::from(back.abs() > value.abs());
    let inexact = u32::from(back != value);
    f32::from_bits(near.to_bits().wrapping_sub(too_far) | inexact)
}

/// The nearest float16. `f16::from_f64` rounds twice where the processor converts float32 alone.
#[inline(always)]
pub(crate) fn nearest_half(value: f64) -> f16 {
    to_half(to_odd(value))
}

/// As [`to_odd`], of integers of at most 64 bits, which float64 may have to round.
#[inline(always)]
fn to_odd_double(value: i128) -> f64 {
    // The bits that a float64 lacks where there are 64.
    const LOW: u64 = (1 << 11) - 1;

    let magnitude = value.unsigned_abs() as u64;
    let odd = magnitude & !LOW | u64::from(magnitude & LOW != 0) << 11;
    let exact = if magnitude >> f64::MANTISSA_DIGITS == 0 { magnitude } else { odd } as f64;
    if value < 0 { -exact } else { exact }
}

/// As `bf16::from_f32`, without branches.
#[inline(always)]
fn to_bfloat(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1));
    // Rounding could turn a NaN into infinity.
    let bits = if value.is_nan() { bits | 1 << 22 } else { rounded };
    bf16::from_bits((bits >> 16) as u16)
}

/// The float64 of the same value, if there is one.
pub(super) fn exact(value: i128) -> Option<f64> {
    let magnitude = value.unsigned_abs();
    let digits = magnitude.checked_shr(magnitude.trailing_zeros()).unwrap_or(0);
    (digits >> f64::MANTISSA_DIGITS == 0).then_some(value as f64)
}

/// A value that is read from, and written to, unaligned bytes in native order.
trait NativeBytes: Copy {
    /// The highest finite value.
    const MOST: f64;

    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn is_infinite(self) -> bool;
}

fn each<S: NativeBytes + To<D>, D: NativeBytes>(items: &[u8], out: &mut [u8]) -> bool {
    let mut fits = true;
    let places = out.chunks_exact_mut(size_of::<D>());
    for (item, out) in items.chunks_exact(size_of::<S>()).zip(places) {
        let (value, same) = S::read(item).to();
        value.write(out);
        fits &= same;
    }
    if S::MOST > D::MOST {
        // In a second pass, over what is in the L1 cache: in the loop above it takes twice as long.
        let is_infinite = |is, out| is | D::read(out).is_infinite();
        if out.chunks_exact(size_of::<D>()).fold(false, is_infinite) {
            fits &= stay_finite::<S, D>(items, out);
        }
    }
    fits
}

/// Whether only infinite values have become infinite.
#[cold]
fn stay_finite<S: NativeBytes, D: NativeBytes>(items: &[u8], out: &[u8]) -> bool {
    let pairs = items.chunks_exact(size_of::<S>()).zip(out.chunks_exact(size_of::<D>()));
    pairs.fold(true, |stay, (item, out)| {
        stay & (S::read(item).is_infinite() | !D::read(out).is_infinite())
    })
}

macro_rules! items {
    ($($type:ty, $most:expr, |$value:ident| $is_infinite:expr;)*) => {
        $(impl NativeBytes for $type {
            const MOST: f64 = $most;

            #[inline(always)]
            fn is_infinite(self) -> bool {
                let $value = self;
                $is_infinite
            }

            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(array(bytes))
            }

            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

macro_rules! integers {
    ($($type:ty)*) => {
        items!($($type, <$type>::MAX as f64, |_value| false;)*);
    };
}

macro_rules! floats {
    ($($type:ty, $most:expr;)*) => {
        // Without the sign, which the shift drops.
        items!($(
            $type, $most, |value| value.to_bits() << 1 == <$type>::INFINITY.to_bits() << 1;
        )*);
    };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);
floats! {
    f16, f16::MAX.to_f64_const();
    bf16, bf16::MAX.to_f64_const();
    f32, f32::MAX as f64;
    f64, f64::MAX;
}

macro_rules! table {
    ($(($arrow:ident, $code:ident, $bits:literal, $name:ident, $type:ident, $native:ty))*) => {
        trait Castable: NativeBytes + To<bf16> $(+ To<$native>)* {}
        $(impl Castable for $native {})*

        fn cast_from<S: Castable>(to: DLDataType) -> Option<Cast> {
            match to {
                $(DLDataType::$name => Some(each::<S, $native>),)*
                DLDataType::BFLOAT16 => Some(each::<S, bf16>),
                _ => None,
            }
        }

        /// The conversion between two numeric types, or from one of them to bfloat16.
        pub(super) fn cast(from: DLDataType, to: DLDataType) -> Option<Cast> {
            match from {
                $(DLDataType::$name => cast_from::<$native>(to),)*
                _ => None,
            }
        }

        /// A number for an error; `None` if its dtype is not one that [`cast`] converts from.
        pub(super) fn scalar(bytes: &[u8], dtype: DLDataType) -> Option<Number> {
            Some(match dtype {
                $(DLDataType::$name => <$native>::read(bytes).into(),)*
                _ => return None,
            })
        }
    };
}
for_each_numeric!(table);
