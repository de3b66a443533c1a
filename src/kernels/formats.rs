//! Elements without an Arrow type, as a type that Arrow has; floats without CPU support, of 8, 6 and 4 bits, among them.
//!
//! Source: the formats of the
//! [OCP](https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf) and of `ml_dtypes`,
//! whose names `dlpack.h` uses.

use arrow_buffer::ArrowNativeType;

use super::gather::{Walk, gather, readable};
use crate::alloc::Fresh;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::{Error, Hint, ManagedTensor};

/// Widens bfloat16 and the floats of 8, 6 and 4 bits, packed or padded, to float32: exactly, in row-major order, with
/// the lanes of an element adjacent.
///
/// # Errors
///
/// `UnreadableDevice`, `OutOfMemory`; `UnsupportedDtype` for any other dtype.
pub(crate) fn widen(tensor: &ManagedTensor) -> Result<Fresh, Error> {
    let dtype = tensor.dtype();
    if let Some(table) = table(dtype) {
        return codes(tensor, |code| table[usize::from(code)]);
    }
    if dtype.code != DLDataTypeCode::BFLOAT || dtype.bits != 16 {
        return Err(unsupported(dtype));
    }
    let (bytes, origin) = readable(tensor)?;
    let len = lanes(tensor)?;
    if len == 0 {
        return Fresh::build::<f32>(0, |_| ());
    }
    let mut walk = Walk::new(tensor, origin, 2 * usize::from(dtype.lanes))?;
    walk.push_inner(usize::from(dtype.lanes), 2);
    Fresh::try_build(len, |out| walk.append_to(out, bytes, from_bfloat))
}

/// A bfloat16 is the upper half of a float32.
pub(super) fn from_bfloat(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16)
}

/// Unpacks elements of under 8 bits, packed or padded, to a byte each: the bits are unchanged, in the low ones.
///
/// # Errors
///
/// `UnreadableDevice`, `OutOfMemory`.
pub(crate) fn unpack(tensor: &ManagedTensor) -> Result<Fresh, Error> {
    if tensor.dtype().bits >= 8 { gather(tensor) } else { codes(tensor, |code| code) }
}

/// Widens integers of under 8 bits, packed or padded, to int8 or uint8.
///
/// # Errors
///
/// `UnreadableDevice`, `OutOfMemory`; `UnsupportedDtype` for any other dtype.
pub(crate) fn widen_integers(tensor: &ManagedTensor) -> Result<Fresh, Error> {
    let dtype = tensor.dtype();
    match dtype.code {
        DLDataTypeCode::UINT if dtype.bits < 8 => codes(tensor, |code| code),
        DLDataTypeCode::INT if dtype.bits < 8 => {
            // Shifts the top bit to the top, and back with the sign.
            let shift = 8 - dtype.bits;
            codes(tensor, |code| i8::from_ne_bytes([code << shift]) >> shift)
        }
        _ => Err(unsupported(dtype)),
    }
}

fn unsupported(dtype: DLDataType) -> Error {
    Error::UnsupportedDtype { dtype, hint: Hint::Text("convert it to a numeric type first") }
}

/// Number of lanes in all elements.
fn lanes(tensor: &ManagedTensor) -> Result<usize, Error> {
    let lanes = usize::from(tensor.dtype().lanes);
    tensor.size().checked_mul(lanes).ok_or(Error::Overflow("number of elements"))
}

/// The result of `map` for each lane of up to 8 bits.
fn codes<U: ArrowNativeType>(
    tensor: &ManagedTensor,
    map: impl Fn(u8) -> U,
) -> Result<Fresh, Error> {
    let dtype = tensor.dtype();
    let (bytes, origin) = readable(tensor)?;
    let len = lanes(tensor)?;
    if len == 0 {
        return Fresh::build::<U>(0, |_| ());
    }
    let parts = usize::from(dtype.lanes);
    let bits = usize::from(dtype.bits);
    let mask = u8::MAX >> (8 - dtype.bits);
    if tensor.itemsize() == Some(parts) {
        let mut walk = Walk::new(tensor, origin, parts)?;
        walk.push_inner(parts, 1);
        return Fresh::try_build(len, |out| walk.append_to(out, bytes, |[code]| map(code & mask)));
    }
    if tensor.is_contiguous() {
        return Fresh::build(len, |out| match bits {
            1 => append_packed::<1, U>(out, bytes, len, map),
            2 => append_packed::<2, U>(out, bytes, len, map),
            4 => append_packed::<4, U>(out, bytes, len, map),
            6 => append_packed::<6, U>(out, bytes, len, map),
            _ => out.extend((0..len).map(|index| map(code(bytes, index * bits, mask)))),
        });
    }
    let overflow = || Error::Overflow("size in bits");
    let origin = origin.checked_mul(8).ok_or_else(overflow)?;
    let mut walk = Walk::new(tensor, origin, parts * bits)?;
    walk.push_inner(parts, isize::from(dtype.bits));
    Fresh::try_build(len, |out| {
        walk.runs(|mut at, len, step| {
            out.extend((0..len).map(|_| {
                let code = code(bytes, at, mask);
                at = at.wrapping_add_signed(step);
                map(code)
            }));
            Ok(())
        })
    })
}

/// The code at bit `at`, which may span two bytes.
fn code(bytes: &[u8], at: usize, mask: u8) -> u8 {
    let next = bytes.get(at / 8 + 1).copied().unwrap_or(0);
    let [code, _] = (u16::from_le_bytes([bytes[at / 8], next]) >> (at % 8)).to_le_bytes();
    code & mask
}

/// The result of `map` for `len` packed codes: eight of them take `BITS` bytes.
fn append_packed<const BITS: usize, U: ArrowNativeType>(
    out: &mut Vec<U>,
    bytes: &[u8],
    len: usize,
    map: impl Fn(u8) -> U,
) {
    let mask = u8::MAX >> (8 - BITS);
    for group in bytes.chunks_exact(BITS).take(len / 8) {
        let mut word = [0; 8];
        word[..BITS].copy_from_slice(group);
        let word = u64::from_le_bytes(word);
        let eight: [U; 8] = std::array::from_fn(|index| {
            let [code, ..] = (word >> (index * BITS)).to_le_bytes();
            map(code & mask)
        });
        out.extend_from_slice(&eight);
    }
    out.extend((len / 8 * 8..len).map(|index| map(code(bytes, index * BITS, mask))));
}

/// The value of each code point of a format.
pub(super) type DecodeTable = [f32; 256];

/// The table of one of these dtypes; `None` for others. Bits that the format does not have are ignored.
pub(super) fn table(dtype: DLDataType) -> Option<Box<DecodeTable>> {
    let format = Format::of(dtype.code)?;
    let mut table = Box::new([0.0; 256]);
    for (code, value) in (0..=u8::MAX).zip(table.iter_mut()) {
        *value = format.decode(code);
    }
    Some(table)
}

/// One sign bit, `exponent` bits with a bias, `mantissa` bits, and the codes that are not finite numbers.
struct Format {
    exponent: u8,
    mantissa: u8,
    bias: i16,
    special: Special,
}

#[derive(PartialEq, Eq)]
enum Special {
    /// The highest exponent is infinity and NaN, as in IEEE 754.
    Ieee,
    /// `fn`: no infinity; all ones are NaN.
    Finite,
    /// `fn` in 6 and 4 bits: no infinity and no NaN.
    Numbers,
    /// `fnuz`: no infinity; the code of negative zero is NaN.
    OneZero,
    /// `fnu`: no sign, no zero and no infinity; all ones are NaN.
    Scale,
}

impl Format {
    fn of(code: DLDataTypeCode) -> Option<Self> {
        let (exponent, mantissa, bias, special) = match code {
            DLDataTypeCode::FLOAT8_E3M4 => (3, 4, 3, Special::Ieee),
            DLDataTypeCode::FLOAT8_E4M3 => (4, 3, 7, Special::Ieee),
            DLDataTypeCode::FLOAT8_E4M3B11FNUZ => (4, 3, 11, Special::OneZero),
            DLDataTypeCode::FLOAT8_E4M3FN => (4, 3, 7, Special::Finite),
            DLDataTypeCode::FLOAT8_E4M3FNUZ => (4, 3, 8, Special::OneZero),
            DLDataTypeCode::FLOAT8_E5M2 => (5, 2, 15, Special::Ieee),
            DLDataTypeCode::FLOAT8_E5M2FNUZ => (5, 2, 16, Special::OneZero),
            DLDataTypeCode::FLOAT8_E8M0FNU => (8, 0, 127, Special::Scale),
            DLDataTypeCode::FLOAT6_E2M3FN => (2, 3, 1, Special::Numbers),
            DLDataTypeCode::FLOAT6_E3M2FN => (3, 2, 3, Special::Numbers),
            DLDataTypeCode::FLOAT4_E2M1FN => (2, 1, 1, Special::Numbers),
            _ => return None,
        };
        Some(Self { exponent, mantissa, bias, special })
    }

    fn decode(&self, code: u8) -> f32 {
        let ones = |bits: u8| (1u8 << bits) - 1;
        if self.special == Special::Scale {
            return if code == u8::MAX { f32::NAN } else { power_of_two(i16::from(code) - 127) };
        }
        let fraction = code & ones(self.mantissa);
        let exponent = code >> self.mantissa & ones(self.exponent);
        let negative = code >> (self.mantissa + self.exponent) & 1 == 1;
        let full = exponent == ones(self.exponent);

        let magnitude = match self.special {
            Special::Ieee if full && fraction == 0 => f32::INFINITY,
            Special::Ieee if full => f32::NAN,
            Special::Finite if full && fraction == ones(self.mantissa) => f32::NAN,
            Special::OneZero if negative && exponent == 0 && fraction == 0 => f32::NAN,
            // Subnormal numbers have the least exponent, and no implicit leading one.
            _ => {
                let implied = u8::from(exponent != 0) << self.mantissa;
                let scale = i16::from(exponent.max(1)) - self.bias - i16::from(self.mantissa);
                f32::from(implied + fraction) * power_of_two(scale)
            }
        };
        if negative { -magnitude } else { magnitude }
    }
}

/// 2 to the power of -127 to 127.
fn power_of_two(exponent: i16) -> f32 {
    match u32::try_from(exponent + 127) {
        Ok(biased @ 1..) => f32::from_bits(biased << 23),
        // The only subnormal one.
        _ => f32::from_bits(1 << 22),
    }
}
