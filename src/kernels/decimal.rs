//! Decimals as floats.
#![expect(clippy::as_conversions, reason = "the limbs of wide integers, and floats of them")]

use arrow_buffer::i256;
use arrow_schema::DataType;

use super::array;

/// Decimals in memory: integers of 4, 8, 16 or 32 bytes, in units of 10 to the power of `-scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimals {
    pub(crate) width: usize,
    pub(crate) scale: i8,
}

/// Powers of ten that float64 has.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Bits of a float64 that are zero in all narrower floats, and halfway between two of them.
const NARROW: u64 = (1 << 28) - 1;

/// The highest power of 5 in 64 bits.
const FIVES: u32 = 27;

impl Decimals {
    /// How a type of decimals stores them.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
        match *data_type {
            Decimal32(_, scale)
            | Decimal64(_, scale)
            | Decimal128(_, scale)
            | Decimal256(_, scale) => Some(Self { width: data_type.primitive_width()?, scale }),
            _ => None,
        }
    }

    /// Whether the power of ten between its integers and their values is one that float64 has.
    pub(crate) fn has_exact_scale(self) -> bool {
        usize::from(self.scale.unsigned_abs()) < TENS.len()
    }

    /// Writes items as float64: the nearest one, or, where they `become_narrower`, one that rounds to the narrower
    /// float that is nearest to the decimal.
    pub(super) fn write(self, items: &[u8], out: &mut [u8], become_narrower: bool) {
        match self.width {
            4 => self.each(items, out, |item| {
                self.float(i32::from_ne_bytes(item).into(), become_narrower)
            }),
            8 => self.each(items, out, |item| {
                self.float(i64::from_ne_bytes(item).into(), become_narrower)
            }),
            16 => {
                self.each(items, out, |item| self.float(i128::from_ne_bytes(item), become_narrower))
            }
            _ => self.each(items, out, |item: [u8; 32]| {
                let (low, high) = item.split_at(16);
                let (low, high) =
                    (u128::from_ne_bytes(array(low)), i128::from_ne_bytes(array(high)));
                let value = i256::from_parts(low, high);
                value.to_i128().map_or_else(
                    || self.exact(value, become_narrower),
                    |value| self.float(value, become_narrower),
                )
            }),
        }
    }

    #[inline(always)]
    fn each<const N: usize>(self, items: &[u8], out: &mut [u8], read: impl Fn([u8; N]) -> f64) {
        for (item, out) in items.chunks_exact(N).zip(out.chunks_exact_mut(size_of::<f64>())) {
            out.copy_from_slice(&read(array(item)).to_ne_bytes());
        }
    }

    /// The float of digits that float64 has, in one operation, which rounds once; of others by [`Self::exact`], which
    /// takes fifty times as long.
    #[inline(always)]
    fn float(self, value: i128, becomes_narrower: bool) -> f64 {
        let digits = i64::try_from(value).ok().filter(|digits| digits.unsigned_abs() <= 1 << 53);
        let ten = TENS.get(usize::from(self.scale.unsigned_abs()));
        if let (Some(digits), Some(ten)) = (digits, ten) {
            let digits = digits as f64;
            let near = if self.scale < 0 { digits * ten } else { digits / ten };
            // The product is exact, because 5 to the power of 12 has 28 bits and `near` has 25.
            let is_exact = || (0..=12).contains(&self.scale) && near * ten == digits;
            if !becomes_narrower || near.to_bits() & NARROW != 0 || is_exact() {
                return near;
            }
        }
        self.exact(i256::from_i128(value), becomes_narrower)
    }

    /// The float of any decimal. One that becomes narrower is rounded to odd: see `to_odd` in `cast`.
    #[cold]
    fn exact(self, value: i256, becomes_narrower: bool) -> f64 {
        let mut power = u32::from(self.scale.unsigned_abs());
        let divides = self.scale > 0;
        // As many limbs more than the powers of 5 take: a quotient has more than 64 bits.
        let more = if divides { power.div_ceil(FIVES) as usize + 1 } else { 0 };
        let (low, high) = value.wrapping_abs().to_parts();
        let digits = [low, high as u128].map(|part| [part as u64, (part >> 64) as u64]);
        let mut limbs = [0; 10];
        limbs[more..more + 4].copy_from_slice(digits.as_flattened());
        let mut is_inexact = false;
        while power > 0 {
            let step = power.min(FIVES);
            power -= step;
            match divides {
                true => is_inexact |= divide(&mut limbs[..more + 4], 5_u64.pow(step)) > 0,
                false => multiply(&mut limbs, 5_u64.pow(step)),
            }
        }
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else { return 0.0 };
        let (rest, next) =
            limbs[..top].split_last().map_or((&[][..], 0), |(next, rest)| (rest, *next));
        is_inexact |= rest.iter().any(|&limb| limb != 0);
        // At least 65 bits, the last of which tells whether more follow.
        let bits = u128::from(limbs[top]) << 64 | u128::from(next) | u128::from(is_inexact);
        let exponent = 64 * (top as i64 - 1 - more as i64) - i64::from(self.scale);
        let scale = f64::from_bits(((1023 + exponent) as u64) << 52);
        let float = if becomes_narrower { to_odd(bits) } else { bits as f64 } * scale;
        if value.is_negative() { -float } else { float }
    }
}

/// A number of more than 64 bits as a float, whose last bit is set if it is inexact.
fn to_odd(bits: u128) -> f64 {
    let lost = u128::BITS - f64::MANTISSA_DIGITS - bits.leading_zeros();
    let is_inexact = bits & ((1 << lost) - 1) != 0;
    ((bits >> lost | u128::from(is_inexact)) << lost) as f64
}

/// Multiplies a number of limbs, the lowest first, of which there are enough for the product.
fn multiply(limbs: &mut [u64], by: u64) {
    let mut carry = 0;
    for limb in limbs {
        let product = u128::from(*limb) * u128::from(by) + carry;
        *limb = product as u64;
        carry = product >> 64;
    }
}

/// Divides a number of limbs, the lowest first, and returns the remainder.
fn divide(limbs: &mut [u64], by: u64) -> u128 {
    let mut rest = 0;
    for limb in limbs.iter_mut().rev() {
        let dividend = rest << 64 | u128::from(*limb);
        *limb = (dividend / u128::from(by)) as u64;
        rest = dividend % u128::from(by);
    }
    rest
}
