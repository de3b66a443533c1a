//! Tests of tensors with any strides.

use super::super::{are_bools, pack_bools, unpack, widen, widen_integers};
use super::{BOOL, Random, bytes_of, dtype, positions, tensor};
use crate::error::Error;
use crate::ffi::DLDataType;

/// Shapes and strides, and the number of elements before the first one and from it on.
const LAYOUTS: &[(&[i64], &[i64], i64, i64)] = &[
    (&[], &[], 0, 1),
    (&[0], &[1], 0, 0),
    (&[1], &[-7], 0, 1),
    (&[13], &[1], 0, 13),
    (&[13], &[2], 0, 25),
    (&[13], &[-1], 12, 1),
    (&[13], &[-3], 36, 1),
    (&[9], &[0], 0, 1),
    (&[3, 5], &[5, 1], 0, 15),
    (&[5, 3], &[1, 5], 0, 15),
    (&[3, 5], &[-5, 1], 10, 5),
    (&[3, 0, 5], &[1, 1, 1], 0, 0),
    (&[4, 3], &[0, 2], 0, 5),
    (&[2, 3, 4], &[-20, 5, -1], 23, 11),
    (&[70, 131], &[140, 1], 0, 69 * 140 + 131),
    (&[131, 70], &[-1, 131], 130, 69 * 131 + 1),
];

/// Without the long layouts under Miri.
fn layouts() -> &'static [(&'static [i64], &'static [i64], i64, i64)] {
    if cfg!(miri) { &LAYOUTS[..14] } else { LAYOUTS }
}

fn size(count: i64) -> usize {
    usize::try_from(count).expect("not negative")
}

/// The result of `map` for elements of a byte each.
fn expected<U>(
    bytes: &[u8],
    shape: &[i64],
    strides: &[i64],
    below: i64,
    map: impl Fn(u8) -> U,
) -> Vec<U> {
    positions(shape, strides).iter().map(|at| map(bytes[size(below + at)])).collect()
}

#[test]
fn any_byte_but_zero_is_a_true_bit() {
    let mut random = Random(1);
    for &(shape, strides, below, above) in layouts() {
        for other in [0, 254] {
            let bytes = random.bytes(size(below + above));
            let bytes: Vec<u8> = bytes.iter().map(|byte| byte & (1 | other)).collect();
            let tensor = tensor(&bytes, size(below), BOOL, false, shape, strides);
            let bits = pack_bools(&tensor).expect("readable");
            let expected = expected(&bytes, shape, strides, below, |byte| byte != 0);
            assert_eq!(bits.iter().collect::<Vec<_>>(), expected, "{shape:?} {strides:?}");
        }
    }
}

#[test]
fn runs_of_booleans_of_any_length_are_packed() {
    let mut random = Random(2);
    let many = [4095, 4096, 4097, 12345];
    let (step, many) = if cfg!(miri) { (19, &many[..0]) } else { (1, &many[..]) };
    for len in (0..=200).step_by(step).chain(many.iter().copied()) {
        for bytes in [random.bytes(len), random.bytes(len).iter().map(|byte| byte & 1).collect()] {
            let extent = i64::try_from(len).expect("short");
            let tensor = tensor(&bytes, 0, BOOL, false, &[extent], &[1]);
            let bits = pack_bools(&tensor).expect("readable");
            assert_eq!(bits.len(), len);
            assert!(bits.iter().zip(&bytes).all(|(bit, byte)| bit == (*byte != 0)), "{len}");
            assert_eq!(are_bools(&bytes), Ok(bytes.iter().all(|byte| *byte <= 1)));
        }
    }
    // The only byte other than 0 is the last one, and it lacks the lowest bit.
    let mut bytes = vec![0; 4096 + 65];
    bytes[4096 + 64] = 128;
    assert_eq!(are_bools(&bytes), Ok(false));
    let bits = pack_bools(&tensor(&bytes, 0, BOOL, false, &[4096 + 65], &[1])).expect("readable");
    assert_eq!(bits.set_indices().collect::<Vec<_>>(), [4096 + 64]);
}

/// Packs codes of `bits` bits, the first in the lowest bits.
fn pack(codes: &[u8], bits: usize) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * bits).div_ceil(8)];
    for bit in 0..codes.len() * bits {
        bytes[bit / 8] |= (codes[bit / bits] >> (bit % bits) & 1) << (bit % 8);
    }
    bytes
}

#[test]
fn elements_of_under_a_byte_are_unpacked_whatever_their_strides() {
    let mut random = Random(3);
    let dtypes = [
        (0, 1),
        (0, 2),
        (0, 4),
        (1, 1),
        (1, 2),
        (1, 4),
        (15, 6),
        (16, 6),
        (17, 4),
        (99, 3),
        (99, 7),
    ];
    for (code, bits) in dtypes {
        let width = usize::from(bits);
        for &(shape, strides, below, above) in layouts() {
            // The first element begins at a byte boundary, as a tensor's address does.
            let before = (size(below) * width).div_ceil(8);
            let skipped = before * 8 - size(below) * width;
            let codes: Vec<u8> =
                random.bytes(size(below + above)).iter().map(|code| code >> (8 - bits)).collect();
            let mut one_each = vec![0; skipped];
            one_each
                .extend(codes.iter().flat_map(|code| (0..bits).map(move |bit| code >> bit & 1)));
            let packed = pack(&one_each, 1);

            let of =
                |code: u8| if code >> (bits - 1) == 1 { code | 255 << (bits - 1) } else { code };
            let raw = expected(&codes, shape, strides, below, |code| code);
            let signed = expected(&codes, shape, strides, below, of);
            let noisy: Vec<u8> = codes
                .iter()
                .map(|code| code | 255u8.checked_shl(bits.into()).unwrap_or(0))
                .collect();
            let tensors = [
                tensor(&packed, before, dtype(code, bits), false, shape, strides),
                tensor(&noisy, size(below), dtype(code, bits), true, shape, strides),
            ];
            for tensor in tensors {
                let case = format!("{tensor:?}");
                assert_eq!(bytes_of(unpack(&tensor).expect("readable")), raw, "{case}");
                match code {
                    0 => assert_eq!(
                        bytes_of(widen_integers(&tensor).expect("int")),
                        signed,
                        "{case}"
                    ),
                    1 => {
                        assert_eq!(bytes_of(widen_integers(&tensor).expect("uint")), raw, "{case}")
                    }
                    15..=17 => {
                        let floats = bytes_of(widen(&tensor).expect("a float"));
                        let len = i64::try_from(raw.len()).expect("short");
                        let padded = super::tensor(&raw, 0, tensor.dtype(), true, &[len], &[1]);
                        assert_eq!(floats, bytes_of(widen(&padded).expect("a float")), "{case}");
                    }
                    _ => assert!(matches!(widen(&tensor), Err(Error::UnsupportedDtype { .. }))),
                }
            }
        }
    }
}

#[test]
fn lanes_lie_one_behind_the_other() {
    let codes: Vec<u8> = (0..12).collect();
    let lanes = DLDataType { lanes: 3, ..dtype(1, 4) };
    let backwards = [9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2];
    // Nine codes before the first one are 36 bits: five bytes, of which the first four bits are unused.
    let mut shifted = vec![0];
    shifted.extend(&codes);
    let tensor_of = |strides, bytes: &[u8], origin, padded| {
        tensor(bytes, origin, lanes, padded, &[4], &[strides])
    };
    let whole = unpack(&tensor_of(1, &pack(&codes, 4), 0, false)).expect("readable");
    assert_eq!(bytes_of(whole), codes);
    for tensor in [tensor_of(-1, &pack(&shifted, 4), 5, false), tensor_of(-1, &codes, 9, true)] {
        assert_eq!(bytes_of(unpack(&tensor).expect("readable")), backwards);
    }
    let pairs: Vec<u8> =
        [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()[2..].to_vec()).collect();
    let bfloats = DLDataType { lanes: 2, ..DLDataType::BFLOAT16 };
    let wide = bytes_of(widen(&tensor(&pairs, 4, bfloats, false, &[2], &[-1])).expect("readable"));
    assert_eq!(wide, [3.0f32, 4.0, 1.0, 2.0].map(f32::to_ne_bytes).concat());
}

fn decode(code: u8, bits: u8) -> Vec<f32> {
    let all: Vec<u8> = (0..=255).take(1 << bits).collect();
    let tensor = tensor(&all, 0, dtype(code, bits), true, &[1 << bits], &[1]);
    let bytes = bytes_of(widen(&tensor).expect("a float"));
    bytes.chunks_exact(4).map(|item| f32::from_ne_bytes(item.try_into().expect("four"))).collect()
}

#[test]
fn small_floats_are_what_ml_dtypes_says() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    type Point = (u8, f32);
    // Code, bits; zero, the least subnormal, the least normal number, one, the highest number; then special values.
    #[rustfmt::skip]
    let formats: [(u8, u8, &[Point]); 11] = [
        (7, 8, &[(0, 0.0), (1, 0.015625), (0x10, 0.25), (0x30, 1.0), (0x6F, 15.5), (0x70, INF), (0x71, NAN), (0x80, -0.0), (0xF0, -INF), (0xFF, NAN)]),
        (8, 8, &[(0, 0.0), (1, 0.001953125), (0x08, 0.015625), (0x38, 1.0), (0x77, 240.0), (0x78, INF), (0x79, NAN), (0x80, -0.0), (0xF8, -INF)]),
        (9, 8, &[(0, 0.0), (1, 0.00012207031), (0x08, 0.0009765625), (0x58, 1.0), (0x7F, 30.0), (0x80, NAN), (0xFF, -30.0)]),
        (10, 8, &[(0, 0.0), (1, 0.001953125), (0x08, 0.015625), (0x38, 1.0), (0x7E, 448.0), (0x7F, NAN), (0x80, -0.0), (0xFE, -448.0), (0xFF, NAN)]),
        (11, 8, &[(0, 0.0), (1, 0.0009765625), (0x08, 0.0078125), (0x40, 1.0), (0x7F, 240.0), (0x80, NAN), (0x81, -0.0009765625)]),
        (12, 8, &[(0, 0.0), (1, 0.000015258789), (0x04, 0.000061035156), (0x3C, 1.0), (0x7B, 57344.0), (0x7C, INF), (0x7D, NAN), (0x80, -0.0), (0xFC, -INF)]),
        (13, 8, &[(0, 0.0), (1, 0.0000076293945), (0x04, 0.000030517578), (0x40, 1.0), (0x7F, 57344.0), (0x80, NAN), (0xFF, -57344.0)]),
        (14, 8, &[(0, 5.877472e-39), (1, 1.1754944e-38), (0x7F, 1.0), (0x80, 2.0), (0xFE, 1.7014118e38), (0xFF, NAN)]),
        (15, 6, &[(0, 0.0), (1, 0.125), (0x08, 1.0), (0x1F, 7.5), (0x20, -0.0), (0x3F, -7.5)]),
        (16, 6, &[(0, 0.0), (1, 0.0625), (0x04, 0.25), (0x0C, 1.0), (0x1F, 28.0), (0x20, -0.0), (0x3F, -28.0)]),
        (17, 4, &[(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0), (7, 6.0), (8, -0.0), (15, -6.0)]),
    ];
    for (code, bits, points) in formats {
        let values = decode(code, bits);
        for &(point, value) in points {
            let found = values[usize::from(point)];
            let same = found.to_bits() == value.to_bits() || found.is_nan() && value.is_nan();
            assert!(same, "code {code}, point {point:#x}: {found}, not {value}");
        }
        // Consecutive codes are consecutive values, for either sign.
        for half in values.chunks(if code == 14 { 256 } else { values.len() / 2 }) {
            let numbers: Vec<f32> = half.iter().map(|x| x.abs()).filter(|x| !x.is_nan()).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next), "code {code}");
        }
    }
}

#[test]
fn bfloats_are_the_upper_halves_of_floats() {
    let mut random = Random(5);
    for &(shape, strides, below, above) in layouts() {
        let bytes = random.bytes(2 * size(below + above));
        let tensor = tensor(&bytes, 2 * size(below), DLDataType::BFLOAT16, false, shape, strides);
        let expected: Vec<u8> = positions(shape, strides)
            .iter()
            .flat_map(|at| {
                let at = 2 * size(below + at);
                let bits = u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
                (u32::from(bits) << 16).to_ne_bytes()
            })
            .collect();
        assert_eq!(bytes_of(widen(&tensor).expect("readable")), expected, "{shape:?} {strides:?}");
    }
}
