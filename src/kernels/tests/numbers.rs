//! Tests of casts between all numeric types, against decimal arithmetic.

use arrow_buffer::NullBuffer;
use half::f16;

use super::super::can_convert;
use super::{BOOL, Random, bytes_of, concatenate, dtype, words};
use crate::dtype::for_each_numeric;
use crate::ffi::DLDataType;
use crate::{Error, Number};

/// Conversion to all decimal digits of a value, and to the value nearest to a decimal.
trait Text: Copy {
    const DTYPE: DLDataType;
    fn of(bits: u64) -> Self;
    fn digits(self) -> String;
    /// For integers the exact value, if there is one; for floats none that is infinite, unless the digits are.
    fn parse(digits: &str) -> Option<Self>;
    fn bytes(self) -> Vec<u8>;
}

macro_rules! text {
    ($($type:ty, $digits:expr, $parse:expr;)*) => {$(
        impl Text for $type {
            const DTYPE: DLDataType = <$type as crate::Element>::DTYPE;

            fn of(bits: u64) -> Self {
                let mut bytes = [0; size_of::<Self>()];
                bytes.copy_from_slice(&bits.to_ne_bytes()[..size_of::<Self>()]);
                Self::from_ne_bytes(bytes)
            }

            fn digits(self) -> String {
                $digits(self)
            }

            fn parse(digits: &str) -> Option<Self> {
                $parse(digits)
            }

            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
        }
    )*};
}
text! {
    i8, |value: i8| value.to_string(), |digits| whole(digits)?.parse().ok();
    i16, |value: i16| value.to_string(), |digits| whole(digits)?.parse().ok();
    i32, |value: i32| value.to_string(), |digits| whole(digits)?.parse().ok();
    i64, |value: i64| value.to_string(), |digits| whole(digits)?.parse().ok();
    u8, |value: u8| value.to_string(), |digits| whole(digits)?.parse().ok();
    u16, |value: u16| value.to_string(), |digits| whole(digits)?.parse().ok();
    u32, |value: u32| value.to_string(), |digits| whole(digits)?.parse().ok();
    u64, |value: u64| value.to_string(), |digits| whole(digits)?.parse().ok();
    f16, |value: f16| all_digits(value.to_f64()), |digits: &str| {
        digits.parse().ok().map(nearest_half).filter(|near| near.is_finite() || !is_number(digits))
    };
    f32, |value: f32| all_digits(value.into()), |digits: &str| {
        digits.parse().ok().filter(|near: &f32| near.is_finite() || !is_number(digits))
    };
    f64, all_digits, |digits: &str| digits.parse().ok();
}

/// The integer part, if the fraction is zero.
fn whole(digits: &str) -> Option<&str> {
    match digits.split_once('.') {
        Some((_, fraction)) if fraction.contains(|digit| digit != '0') => None,
        Some(("-0", _)) => Some("0"),
        Some((whole, _)) => Some(whole),
        None => Some(digits),
    }
}

/// Whether the digits are those of a finite number.
fn is_number(digits: &str) -> bool {
    digits.ends_with(|end: char| end.is_ascii_digit())
}

fn all_digits(value: f64) -> String {
    // The least float64 has that many digits.
    format!("{value:.1075}")
}

/// Compares all float16 values.
fn nearest_half(value: f64) -> f16 {
    let magnitude =
        |code: u16| if code == 0x7C00 { 65536.0 } else { f16::from_bits(code).to_f64() };
    let codes: Vec<u16> = (0..=0x7C00).collect();
    let next = codes.partition_point(|code| magnitude(*code) <= value.abs());
    let (below, above) = (codes[next.saturating_sub(1)], codes[next.min(0x7C00)]);
    let (down, up) = (value.abs() - magnitude(below), magnitude(above) - value.abs());
    let code = if down < up || down == up && below % 2 == 0 { below } else { above };
    if value.is_nan() { f16::NAN } else { f16::from_bits(code).copysign(f16::from_f64(value)) }
}

/// Limits of the types, halfway points, and random values.
fn values<S: Text>(random: &mut Random) -> Vec<S> {
    let edges = [7u32, 8, 10, 11, 12, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 62, 63, 64];
    let edges = edges.map(|bits| 1i128 << bits);
    let edges = edges.iter().flat_map(|edge| [-1, 0, 1].map(|step| edge + step));
    let all = edges.flat_map(|edge| [edge, -edge]).chain(-3..=3).map(|edge| edge.to_string());
    let fractions =
        ["0.5", "-0.5", "255.5", "-0.0", "65519.9", "65520", "1e-7", "1e39", "NaN", "inf"];
    let near: Vec<S> =
        all.chain(fractions.map(String::from)).filter_map(|digits| S::parse(&digits)).collect();
    let masks = [u64::MAX, u64::MAX, 0x7FFF];
    let any = (0..150).map(|index| S::of(random.next() & masks[index % 3]));
    near.into_iter().chain(any).collect()
}

fn check<S: Text, D: Text>() {
    let mut random = Random(21);
    assert!(can_convert(S::DTYPE, D::DTYPE));
    let (mut bytes, mut expected, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for value in values::<S>(&mut random) {
        let digits = value.digits();
        let alone = value.bytes();
        let found = concatenate(&[words(&alone, S::DTYPE, None)], D::DTYPE, None);
        match (D::parse(&digits), found) {
            (Some(same), Ok(found)) => {
                let found = bytes_of(found);
                // NaN payloads may differ.
                if digits != "NaN" {
                    assert_eq!(found, same.bytes(), "{} to {}: {digits}", S::DTYPE, D::DTYPE);
                }
                expected.extend(found);
                valid.push(true);
            }
            (None, Err(Error::ValueDoesNotFit { dtype, column: 0, row: 0, .. })) => {
                assert_eq!(dtype, D::DTYPE);
                expected.extend(vec![77; size_of::<D>()]);
                valid.push(false);
            }
            (same, found) => panic!(
                "{} to {}: {digits}, {:?}, {:?}",
                S::DTYPE,
                D::DTYPE,
                same.map(Text::digits),
                found.err()
            ),
        }
        bytes.extend(alone);
    }
    // All of them at once, with nulls where a value does not fit.
    let nulls = NullBuffer::from(valid);
    let cells = words(&bytes, S::DTYPE, Some(&nulls));
    let found = concatenate(&[cells], D::DTYPE, Some(&[77; 16])).expect("nulls are not looked at");
    assert_eq!(bytes_of(found), expected, "{} to {}", S::DTYPE, D::DTYPE);
}

macro_rules! all_pairs {
    ($(($arrow:ident, $code:ident, $bits:literal, $name:ident, $type:ident, $native:ty))*) => {
        fn check_from<S: Text>() {
            $(check::<S, $native>();)*
        }

        #[test]
        #[cfg_attr(miri, ignore = "takes an hour, and looks at numbers, not at memory")]
        fn every_number_becomes_the_same_or_the_nearest_one() {
            $(check_from::<$native>();)*
        }
    };
}
for_each_numeric!(all_pairs);

#[test]
fn floats_become_the_nearest_bfloat() {
    let mut random = Random(22);
    for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
        // Often halfway between two values, or next to halfway.
        let noise = [0, 1, u64::MAX, random.next()][random.below(4)];
        let bits = (random.next() & !0xFFFF_FFFF_FFFF | 0x8000_0000_0000 & random.next())
            .wrapping_add(noise & 0xF);
        let value = f64::from_bits(bits);
        let found = concatenate(
            &[words(&value.to_ne_bytes(), DLDataType::FLOAT64, None)],
            DLDataType::BFLOAT16,
            None,
        );
        // Halfway from the highest bfloat16 to the power of two that it has no exponent for.
        let has_one = value.is_infinite() || value.is_nan() || value.abs() < 511.0 * 2f64.powi(119);
        assert_eq!(found.is_ok(), has_one, "{value:e}");
        let Ok(found) = found.map(bytes_of) else { continue };
        let found = half::bf16::from_ne_bytes([found[0], found[1]]);
        if value.is_nan() {
            assert!(found.is_nan());
            continue;
        }
        // The neighbours of the result are further away, or as far and odd.
        let distance = |code| (value.abs() - half::bf16::from_bits(code).to_f64()).abs();
        let code = found.to_bits() & 0x7FFF;
        let near = distance(code);
        assert_eq!(found.is_sign_negative(), value.is_sign_negative());
        for other in [code.saturating_sub(1), code + 1] {
            let closer = distance(other) < near || distance(other) == near && code % 2 == 1;
            assert!(other == code || !closer || value.is_infinite(), "{value:e}: {found:e}");
        }
        let single = value.to_string().parse::<f32>().expect("a number");
        if f64::from(single) == value {
            let cells = single.to_ne_bytes();
            let from_single = concatenate(
                &[words(&cells, DLDataType::FLOAT32, None)],
                DLDataType::BFLOAT16,
                None,
            );
            assert_eq!(bytes_of(from_single.expect("floats round")), found.to_ne_bytes());
        }
    }
}

/// Integers beside what lies halfway between two bfloat16, which another float on the way would hide.
#[test]
fn integers_and_halves_become_the_nearest_bfloat() {
    fn near(bytes: &[u8], dtype: DLDataType) -> f64 {
        let found = concatenate(&[words(bytes, dtype, None)], DLDataType::BFLOAT16, None);
        let found = bytes_of(found.expect("a bfloat16 goes further"));
        half::bf16::from_ne_bytes([found[0], found[1]]).to_f64()
    }
    let step = if cfg!(miri) { 63 } else { 5 };
    let halfway =
        |bits: u32| (257..512u64).step_by(step).map(move |code| code << 55 >> (63 - bits));
    let beside = |middle: u64| [-1, 0, 1].map(|step| middle.saturating_add_signed(step));
    for number in (0..63).flat_map(halfway).flat_map(beside) {
        let cut = (64 - number.leading_zeros()).saturating_sub(8);
        let (low, rest) = (number >> cut, number & ((1 << cut) - 1));
        // To the nearest, and to an even one at a tie.
        let up = u64::from(2 * rest + low % 2 > 1 << cut);
        let expected: f64 = ((low + up) << cut).to_string().parse().expect("a number");
        assert_eq!(near(&number.to_ne_bytes(), DLDataType::UINT64), expected, "{number}");
        let signed = -i64::try_from(number).expect("below its limit");
        assert_eq!(near(&signed.to_ne_bytes(), DLDataType::INT64), -expected, "{signed}");
        if let Ok(short) = i32::try_from(signed) {
            assert_eq!(near(&short.to_ne_bytes(), DLDataType::INT32), -expected, "{short}");
        }
    }
    let most = 2f64.powi(64);
    assert_eq!(near(&u64::MAX.to_ne_bytes(), DLDataType::UINT64), most);
    assert_eq!(near(&i64::MIN.to_ne_bytes(), DLDataType::INT64), -most / 2.0);
    for code in (0..=u16::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
        let found = near(&code.to_ne_bytes(), DLDataType::FLOAT16);
        let expected = half::bf16::from_f32(f16::from_bits(code).to_f32()).to_f64();
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{code}: {found}");
    }
}

#[test]
fn what_can_become_what() {
    let exotic = dtype(10, 8);
    for (from, to, can) in [
        (BOOL, BOOL, true),
        (BOOL, DLDataType::FLOAT16, true),
        (DLDataType::UINT8, BOOL, false),
        (exotic, exotic, true),
        (exotic, DLDataType::FLOAT32, true),
        (exotic, DLDataType::FLOAT64, true),
        (exotic, DLDataType::FLOAT16, false),
        (exotic, DLDataType::INT32, false),
        (DLDataType::BFLOAT16, DLDataType::FLOAT64, true),
        (DLDataType::BFLOAT16, DLDataType::INT8, false),
        (DLDataType::FLOAT32, DLDataType::BFLOAT16, true),
        (DLDataType::INT32, DLDataType::BFLOAT16, true),
        (BOOL, DLDataType::BFLOAT16, true),
        (DLDataType::FLOAT16, DLDataType::BFLOAT16, true),
        (exotic, DLDataType::BFLOAT16, false),
        (DLDataType::FLOAT32, exotic, false),
        (dtype(5, 128), dtype(5, 128), true),
        (dtype(5, 64), dtype(5, 128), false),
        (DLDataType { lanes: 3, ..DLDataType::INT8 }, DLDataType::INT8, false),
        (
            DLDataType { lanes: 3, ..DLDataType::INT8 },
            DLDataType { lanes: 3, ..DLDataType::INT8 },
            false,
        ),
        (
            DLDataType { lanes: 4, ..DLDataType::INT8 },
            DLDataType { lanes: 4, ..DLDataType::INT8 },
            true,
        ),
    ] {
        assert_eq!(can_convert(from, to), can, "{from} to {to}");
    }
    let refused = concatenate(&[words(&[1], DLDataType::UINT8, None)], BOOL, None);
    assert!(matches!(refused, Err(Error::UnsupportedDtype { .. })));
}

#[test]
fn bfloats_and_small_floats_become_float32_and_float64() {
    let (half, codes) = ([0x80, 0x3F, 0x20, 0xC0], [0x38, 0xB0, 0x01]);
    let half: Vec<u8> =
        half.chunks(2).flat_map(|x| u16::from_le_bytes([x[0], x[1]]).to_ne_bytes()).collect();
    let wide = |bytes: &[u8], from, to| {
        bytes_of(concatenate(&[words(bytes, from, None)], to, None).expect("exact"))
    };
    assert_eq!(
        wide(&half, DLDataType::BFLOAT16, DLDataType::FLOAT32),
        [1f32, -2.5].map(f32::to_ne_bytes).concat()
    );
    assert_eq!(
        wide(&half, DLDataType::BFLOAT16, DLDataType::FLOAT64),
        [1f64, -2.5].map(f64::to_ne_bytes).concat()
    );
    let expected = [1.0, -0.5, 0.001953125];
    assert_eq!(
        wide(&codes, dtype(10, 8), DLDataType::FLOAT64),
        expected.map(f64::to_ne_bytes).concat()
    );
}

/// Each finite value beside infinite ones, whose block is looked through a second time.
#[test]
fn what_is_infinite_stays_so_and_hides_nothing() {
    for (value, dtype, fits) in [
        (65519.9, DLDataType::FLOAT16, true),
        (65520.0, DLDataType::FLOAT16, false),
        (-65520.0, DLDataType::FLOAT16, false),
        (f64::from(f32::MAX), DLDataType::FLOAT32, true),
        (1e300, DLDataType::FLOAT32, false),
        (3.39e38, DLDataType::BFLOAT16, true),
        (-3.5e38, DLDataType::BFLOAT16, false),
    ] {
        let mut values = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, value, 1.0];
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
        let found = concatenate(&[words(&bytes, DLDataType::FLOAT64, None)], dtype, None);
        match found {
            Ok(_) => assert!(fits, "{value} as {dtype}"),
            Err(Error::ValueDoesNotFit { value: shown, row: 3, .. }) => {
                assert_eq!(shown, Number::Float(value));
                assert!(!fits, "{value} as {dtype}");
            }
            Err(error) => panic!("{error}"),
        }
        // The value of a null has no meaning.
        let nulls = NullBuffer::from(vec![true, true, true, false, true]);
        let cells = words(&bytes, DLDataType::FLOAT64, Some(&nulls));
        let filled = bytes_of(concatenate(&[cells], dtype, Some(&[0; 16])).expect("it is a null"));
        values[3] = 0.0;
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
        let expected = concatenate(&[words(&bytes, DLDataType::FLOAT64, None)], dtype, None);
        // The sign of NaN is anybody's.
        let numbers = |bytes: Vec<u8>| {
            let items = bytes.chunks(usize::from(dtype.bits) / 8).map(<[u8]>::to_vec).enumerate();
            items.filter(|&(row, _)| !values[row].is_nan()).collect::<Vec<_>>()
        };
        let expected = bytes_of(expected.expect("they are infinite"));
        assert_eq!(numbers(filled), numbers(expected));
    }
}
