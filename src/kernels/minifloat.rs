//! Decodes floats without CPU support: those of 8, 6 and 4 bits.
//!
//! Source: the formats of the
//! [OCP](https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf) and of `ml_dtypes`,
//! whose names `dlpack.h` uses.

use crate::ffi::{DLDataType, DLDataTypeCode};

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
