//! Tests of encoding a value in a dtype.

use super::{BOOL, dtype};
use crate::Number;
use crate::ffi::DLDataType;

#[track_caller]
fn check<const N: usize>(value: impl Into<Number>, dtype: DLDataType, bytes: [u8; N]) {
    let mut item = [0; 16];
    item[..N].copy_from_slice(&bytes);
    assert_eq!(value.into().encode(dtype), Some(item));
}

#[track_caller]
fn refuse(value: impl Into<Number>, dtype: DLDataType) {
    assert_eq!(value.into().encode(dtype), None);
}

#[test]
fn integers_are_exact_or_nothing() {
    check(-128i64, DLDataType::INT8, [128]);
    refuse(128i64, DLDataType::INT8);
    refuse(-129i64, DLDataType::INT8);
    refuse(-1i64, DLDataType::UINT64);
    check(u64::MAX, DLDataType::UINT64, [255; 8]);
    refuse(u64::MAX, DLDataType::INT64);
    check(i64::MIN, DLDataType::INT64, i64::MIN.to_ne_bytes());
    check(true, DLDataType::INT16, 1i16.to_ne_bytes());
    check(300.0, DLDataType::INT16, 300i16.to_ne_bytes());
    check(18_446_744_073_709_549_568.0, DLDataType::UINT64, (u64::MAX - 2047).to_ne_bytes());
    check(-0.0, DLDataType::INT32, [0; 4]);
    refuse(0.5, DLDataType::INT32);
    refuse(f64::NAN, DLDataType::INT32);
    refuse(f64::INFINITY, DLDataType::UINT8);
    check(-8i64, dtype(0, 4), [8]);
    refuse(8i64, dtype(0, 4));
    check(15i64, dtype(1, 4), [15]);
    check(-1i64, dtype(0, 128), [255; 16]);
    check(1i64 << 62, dtype(1, 128), (1u128 << 62).to_ne_bytes());
}

#[test]
fn floats_round_fractions_and_nothing_else() {
    check(0.1, DLDataType::FLOAT32, 0.1f32.to_ne_bytes());
    check(0.1, DLDataType::FLOAT64, 0.1f64.to_ne_bytes());
    check(1i64 << 24, DLDataType::FLOAT32, 16_777_216f32.to_ne_bytes());
    refuse((1i64 << 24) + 1, DLDataType::FLOAT32);
    refuse(16_777_217.0, DLDataType::FLOAT32);
    check((1i64 << 53) + 2, DLDataType::FLOAT64, 9_007_199_254_740_994f64.to_ne_bytes());
    refuse((1i64 << 53) + 1, DLDataType::FLOAT64);
    check(0i64, DLDataType::FLOAT64, [0; 8]);
    check(i64::MIN, DLDataType::FLOAT32, (-9_223_372_036_854_775_808f32).to_ne_bytes());
    check(-0.0, DLDataType::FLOAT32, (-0.0f32).to_ne_bytes());
    refuse(1e300, DLDataType::FLOAT32);
    check(f64::INFINITY, DLDataType::FLOAT32, f32::INFINITY.to_ne_bytes());
    check(2048i64, DLDataType::FLOAT16, 0x6800u16.to_ne_bytes());
    refuse(2049i64, DLDataType::FLOAT16);
    refuse(65536i64, DLDataType::FLOAT16);
    // A fraction that would round up to infinity.
    refuse(65_520.5, DLDataType::FLOAT16);
    check(0.1, DLDataType::BFLOAT16, 0x3DCDu16.to_ne_bytes());
    refuse(257i64, DLDataType::BFLOAT16);
    for dtype in
        [DLDataType::FLOAT16, DLDataType::FLOAT32, DLDataType::FLOAT64, DLDataType::BFLOAT16]
    {
        assert!(Number::Float(f64::NAN).encode(dtype).is_some());
    }
}

#[test]
fn small_floats_have_a_value_or_have_it_not() {
    check(0.5, dtype(10, 8), [0x30]);
    check(-448i64, dtype(10, 8), [0xFE]);
    check(f64::NAN, dtype(10, 8), [0x7F]);
    check(-0.0, dtype(10, 8), [0x80]);
    refuse(0.3, dtype(10, 8));
    refuse(f64::INFINITY, dtype(10, 8));
    check(f64::INFINITY, dtype(12, 8), [0x7C]);
    check(f64::NAN, dtype(11, 8), [0x80]);
    check(-0.0, dtype(11, 8), [0]);
    check(6i64, dtype(17, 4), [7]);
    check(-6i64, dtype(17, 4), [15]);
    refuse(7i64, dtype(17, 4));
    refuse(f64::NAN, dtype(17, 4));
    check(2.0, dtype(14, 8), [128]);
    refuse(0i64, dtype(14, 8));
}

#[test]
fn booleans_and_complex_numbers_are_encoded_where_they_have_the_value() {
    check(true, BOOL, [1]);
    check(0i64, BOOL, [0]);
    check(1.0, BOOL, [1]);
    refuse(2i64, BOOL);
    refuse(0.5, BOOL);
    check(1.5, dtype(5, 64), 1.5f32.to_ne_bytes());
    check(1.5, dtype(5, 128), 1.5f64.to_ne_bytes());
    check(1.5, dtype(5, 32), 0x3E00u16.to_ne_bytes());
    refuse(1i64, dtype(3, 64));
    refuse(1i64, dtype(2, 128));
    refuse(1i64, DLDataType { lanes: 2, ..DLDataType::INT8 });
    refuse(1i64, DLDataType { bits: 0, ..DLDataType::INT8 });
}
