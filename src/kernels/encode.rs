//! Encodes one value in the bits of a dtype.

use super::cast::{cast, exact};
use super::{
    array,
    fill::FillBytes,
    formats::{self, from_bfloat},
};
use crate::Number;
use crate::ffi::{DLDataType, DLDataTypeCode};

impl Number {
    /// Encodes the value in `dtype`; elements of under 8 bits use the low bits of their byte.
    ///
    /// `None` if the dtype cannot hold the value: integers must be exact in every dtype, a finite value must stay
    /// finite, and NaN, infinity and fractions need a dtype that has them. Fractions round in float16, float32,
    /// float64 and bfloat16, and must be exact in the smaller floats.
    pub(crate) fn encode(self, dtype: DLDataType) -> Option<FillBytes> {
        if dtype.lanes != 1 || !dtype.is_valid() {
            return None;
        }
        match dtype.code {
            DLDataTypeCode::INT | DLDataTypeCode::UINT => integer(self.to_integer()?, dtype),
            DLDataTypeCode::BOOL => {
                let value = self.to_integer()?;
                (value == 0 || value == 1).then(|| integer(value, DLDataType::UINT8))?
            }
            // The bytes after the real part are the imaginary part: zero.
            DLDataTypeCode::COMPLEX => {
                let part = DLDataType::scalar(DLDataTypeCode::FLOAT, dtype.bits / 2);
                float(self.to_float()?, part)
            }
            _ => match formats::table(dtype) {
                Some(table) => code(self.to_float()?, &table[..], dtype),
                None => float(self.to_float()?, dtype),
            },
        }
    }

    fn to_integer(self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Int(value) => Some(value),
            Self::Float(value) => {
                let signed = convert::<8>(value, DLDataType::INT64).map(i64::from_ne_bytes);
                let unsigned = || convert::<8>(value, DLDataType::UINT64).map(u64::from_ne_bytes);
                signed.map(i128::from).or_else(|| unsigned().map(i128::from))
            }
        }
    }

    fn to_float(self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            Self::Int(value) => exact(value),
            Self::Float(value) => Some(value),
        }
    }
}

fn integer(value: i128, dtype: DLDataType) -> Option<FillBytes> {
    let bits = u32::from(dtype.bits);
    let unsigned = u128::from_ne_bytes(value.to_ne_bytes());
    let fits = match dtype.code {
        DLDataTypeCode::INT => matches!(value.checked_shr(bits - 1), Some(0 | -1)),
        // `checked_shr` refuses a shift by 128 bits, which would leave 0.
        _ => value >= 0 && unsigned.checked_shr(bits).unwrap_or(0) == 0,
    };
    fits.then(|| (unsigned & (u128::MAX >> (128 - bits))).to_le_bytes())
}

fn float(value: f64, dtype: DLDataType) -> Option<FillBytes> {
    let item = convert(value, dtype)?;
    let back = match dtype {
        DLDataType::FLOAT16 => half::f16::from_ne_bytes(array(&item[..2])).to_f64(),
        DLDataType::FLOAT32 => f32::from_ne_bytes(array(&item[..4])).into(),
        DLDataType::BFLOAT16 => from_bfloat(array(&item[..2])).into(),
        _ => value,
    };
    let whole = value.fract() == 0.0;
    let kept = if whole { back == value } else { back.is_finite() == value.is_finite() };
    kept.then_some(item)
}

/// The code of this value, with the same sign of zero if the format has one.
fn code(value: f64, table: &[f32], dtype: DLDataType) -> Option<FillBytes> {
    let codes = 1usize << dtype.bits;
    let find =
        |same: &dyn Fn(f64) -> bool| table[..codes].iter().position(|code| same(f64::from(*code)));
    let code = if value.is_nan() {
        find(&f64::is_nan)
    } else {
        find(&|code| code.to_bits() == value.to_bits()).or_else(|| find(&|code| code == value))
    };
    code.and_then(|code| u128::try_from(code).ok()).map(u128::to_le_bytes)
}

fn convert<const N: usize>(value: f64, dtype: DLDataType) -> Option<[u8; N]> {
    let mut out = [0; N];
    let cast = cast(DLDataType::FLOAT64, dtype)?;
    cast(&value.to_ne_bytes(), &mut out).then_some(out)
}
