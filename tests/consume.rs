//! What a consumer makes of descriptors, true and false: every lie that a descriptor can be caught
//! at is an error of its own, and whatever happens, the deleter runs once.

use std::sync::Arc;
#[cfg(target_pointer_width = "64")]
use std::time::{Duration, Instant};

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, PrimitiveArray, UInt8Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_dlpack::ffi::{DLDataType, DLDevice, DLDeviceType, DLPackFlags, DLPackVersion, DLTensor};
use arrow_dlpack::{CopyPolicy, CopyReason, Error, ExclusiveObstacle, from_dlpack};

use support::{
    Abi, Data, Ints, Producer, Random, bytes_of, device, dtype, for_each_numeric, import,
    null_tensor, values_of,
};

mod support;

/// The library takes this tensor over and finds it false.
#[track_caller]
fn is_rejected(producer: &Producer, error: &Error) {
    for abi in Abi::BOTH {
        let (tensor, watch) = producer.clone().tensor(abi);
        assert_eq!(tensor.expect_err("a false descriptor"), *error, "{abi:?} {producer:?}");
        watch.released_once();
    }
}

/// The quantity that overflows, which with addresses of 32 bits is another one: it is computed before.
fn overflow(quantity: &'static str, on_32_bits: &'static str) -> Error {
    Error::Overflow(if cfg!(target_pointer_width = "64") { quantity } else { on_32_bits })
}

/// The library believes this tensor, but makes no Arrow array of it.
#[track_caller]
fn is_no_array(producer: &Producer, copy: CopyPolicy, error: &Error) {
    for abi in Abi::BOTH {
        let (tensor, watch) = producer.clone().tensor(abi);
        let tensor = tensor.expect("a true descriptor");
        assert_eq!(watch.deletions(), 0);
        let refusal = from_dlpack(tensor, &import(copy)).expect_err("no array");
        assert_eq!(refusal, *error, "{abi:?} {producer:?}");
        watch.released_once();
    }
}

/// The library makes this array, by a copy if need be.
#[track_caller]
fn becomes(producer: &Producer, expected: impl Array + 'static) {
    let expected: ArrayRef = Arc::new(expected);
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Always] {
        for abi in Abi::BOTH {
            let (array, watch) = producer.clone().array(abi, copy);
            let array = array.expect("a true descriptor");
            array.to_data().validate_full().expect("a valid array");
            assert_eq!(&array, &expected, "{abi:?} {copy:?} {producer:?}");
            drop(array);
            watch.released_once();
        }
    }
}

/// The library makes this array without a copy, `offset` bytes behind the producer's `data`.
#[track_caller]
fn is_adopted(producer: &Producer, offset: usize, expected: impl Array + 'static) {
    let expected: ArrayRef = Arc::new(expected);
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never] {
        for abi in Abi::BOTH {
            let (array, watch) = producer.clone().array(abi, copy);
            let array = array.expect("a true descriptor");
            assert_eq!(&array, &expected, "{abi:?} {copy:?} {producer:?}");
            assert_eq!(values_of(&array).as_ptr().addr(), watch.data() + offset);
            assert_eq!(watch.deletions(), 0);
            drop(array);
            watch.released_once();
        }
    }
}

fn abc() -> Producer {
    Producer::vector(&[10i32, 20, 30])
}

/// As `abc`, with other bytes: `origin` bytes into them `data` points.
fn pointing_into<T: support::Element>(values: &[T], origin: usize) -> Producer {
    let producer = Producer::vector(values);
    let Data::Bytes { bytes, misalign, .. } = producer.data else { unreachable!("as made") };
    Producer { data: Data::Bytes { bytes, origin, misalign }, ..producer }
}

// Versions and deleters.

#[test]
fn another_major_version_is_deleted_and_not_looked_at() {
    for major in [0, 2, u32::MAX] {
        let garbage = usize::from_ne_bytes([0xA5; size_of::<usize>()]) - 5;
        let other = Producer {
            version: DLPackVersion { major, minor: 3 },
            flags: DLPackFlags(0xA5A5_A5A5_A5A5_A5A5),
            data: Data::Address(garbage),
            ndim: 0x25A5_A5A5,
            dtype: dtype(0xA5, 0, 0),
            shape: Ints::Address(garbage),
            strides: Ints::Address(garbage),
            byte_offset: u64::MAX,
            ..abc()
        };
        let (tensor, watch) = other.tensor(Abi::Versioned);
        assert_eq!(tensor.unwrap_err(), Error::UnsupportedVersion { major });
        watch.released_once();
    }
}

#[test]
fn another_major_version_without_a_deleter_is_left_alone() {
    let version = DLPackVersion { major: 2, minor: 0 };
    let other = Producer { version, deleter: false, ..abc() };
    let (tensor, watch) = other.tensor(Abi::Versioned);
    assert_eq!(tensor.unwrap_err(), Error::UnsupportedVersion { major: 2 });
    watch.never_released();
}

#[test]
fn any_minor_version_will_do() {
    for minor in [0, 1, 3, 4, u32::MAX] {
        let version = DLPackVersion { major: 1, minor };
        becomes(&Producer { version, ..abc() }, Int32Array::from(vec![10, 20, 30]));
    }
}

#[test]
fn a_missing_deleter_is_not_called() {
    for abi in Abi::BOTH {
        let (array, watch) = Producer { deleter: false, ..abc() }.array(abi, CopyPolicy::Never);
        assert_eq!(values_of(&array.unwrap()).typed_data::<i32>(), [10, 20, 30]);
        watch.never_released();

        let refused = Producer { deleter: false, ndim: -1, ..abc() };
        let (tensor, watch) = refused.tensor(abi);
        assert_eq!(tensor.unwrap_err(), Error::NegativeNdim(-1));
        watch.never_released();
    }
}

#[test]
fn a_null_tensor_is_an_error() {
    for abi in Abi::BOTH {
        assert_eq!(null_tensor(abi).unwrap_err(), Error::NullTensor);
    }
}

#[test]
fn flags_are_as_the_producer_set_them() {
    for bits in [0, 1, 2, 4, 7, 1 << 63, u64::MAX] {
        let (tensor, watch) = Producer { flags: DLPackFlags(bits), ..abc() }.tensor(Abi::Versioned);
        let tensor = tensor.unwrap();
        assert_eq!(tensor.flags(), DLPackFlags(bits));
        assert_eq!(tensor.is_read_only(), bits & 1 == 1);
        drop(tensor);
        watch.released_once();
    }
    let (tensor, watch) = Producer { flags: DLPackFlags(7), ..abc() }.tensor(Abi::Legacy);
    // A legacy tensor cannot say that it is read-only, as JAX's are: it counts as such.
    assert_eq!(tensor.unwrap().flags(), DLPackFlags::READ_ONLY);
    watch.released_once();
}

// Types.

#[test]
fn every_numeric_type_keeps_its_bits() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let bytes = Random(u64::from(dtype.bits)).bytes(17 * size_of::<T::Native>());
        let producer = Producer::bytes(dtype, &bytes, &[17], &[1]);
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
            for abi in Abi::BOTH {
                let (tensor, watch) = producer.clone().tensor(abi);
                let (array, field) = from_dlpack(tensor.unwrap(), &import(copy)).unwrap();
                assert_eq!(array.data_type(), &T::DATA_TYPE);
                assert_eq!((array.len(), array.null_count()), (17, 0));
                assert_eq!(values_of(&array).as_slice(), bytes);
                assert_eq!((field.data_type(), field.name().as_str()), (&T::DATA_TYPE, ""));
                assert!(field.is_nullable());
                drop(array);
                watch.released_once();
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn a_tensor_without_axes_is_one_value() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let bytes = Random(7).bytes(size_of::<T::Native>());
        let buffer = Buffer::from_slice_ref(&bytes);
        let one = PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), None);
        let scalar = Producer::bytes(dtype, &bytes, &[], &[]);
        for ints in [Ints::Null, Ints::from([]), Ints::Address(1)] {
            let producer = Producer { shape: ints.clone(), strides: ints, ..scalar.clone() };
            is_adopted(&producer, 0, one.clone());
            becomes(&producer, one.clone());
        }
    }
    for_each_numeric!(law);
}

#[test]
fn bits_that_do_not_fit_their_code_are_rejected() {
    let wrong = [
        (0, 0),
        (0, 3),
        (0, 24),
        (0, 255),
        (1, 0),
        (1, 7),
        (1, 48), // integers
        (2, 0),
        (2, 8),
        (2, 24),
        (2, 80), // floats
        (4, 8),
        (4, 32),
        (5, 0),
        (5, 16),
        (5, 96),
        (6, 1),
        (6, 0),
        (6, 32), // bfloat, complex, bool
        (7, 16),
        (10, 4),
        (14, 0),
        (15, 8),
        (16, 4),
        (17, 8),
        (17, 0), // small floats
        (3, 0),
        (18, 0),
        (255, 0), // codes without a rule
    ];
    for (code, bits) in wrong {
        let dtype = dtype(code, bits, 1);
        is_rejected(&Producer { dtype, ..abc() }, &Error::InvalidDtype(dtype));
    }
    let laneless = dtype(0, 32, 0);
    is_rejected(&Producer { dtype: laneless, ..abc() }, &Error::InvalidDtype(laneless));
}

#[test]
fn other_dtypes_are_tensors_but_no_arrays_and_there_is_a_way_out() {
    let others = [
        (dtype(2, 128, 1), "float128", "float64"),
        (dtype(0, 128, 1), "int128", "8, 16, 32 or 64 bits"),
        (dtype(1, 128, 1), "uint128", "8, 16, 32 or 64 bits"),
        (dtype(3, 64, 1), "opaque_handle64", "numeric"),
        (dtype(2, 32, 4), "float32x4", "axis"),
        (dtype(0, 8, 2), "int8x2", "axis"),
        (dtype(6, 8, 8), "boolx8", "axis"),
        (dtype(17, 4, 2), "float4_e2m1fnx2", "as bytes"),
        (dtype(99, 16, 1), "dtype(99, 16 bits)", "numeric"),
        (dtype(255, 255, 65535), "dtype(255, 255 bits)x65535", "axis"),
    ];
    for (dtype, name, way_out) in others {
        let item = (usize::from(dtype.bits) * usize::from(dtype.lanes)).div_ceil(8);
        let bytes = vec![0; (item + usize::from(dtype.lanes)) * 3];
        for abi in Abi::BOTH {
            let (tensor, watch) = Producer::bytes(dtype, &bytes, &[3], &[1]).tensor(abi);
            let tensor = tensor.unwrap();
            assert_eq!((tensor.dtype(), tensor.size()), (dtype, 3));
            let error = from_dlpack(tensor, &import(CopyPolicy::IfNeeded)).unwrap_err();
            let Error::UnsupportedDtype { dtype: named, .. } = error else {
                panic!("{name}: {error}")
            };
            assert_eq!(named, dtype);
            let words = error.to_string();
            assert!(words.contains(name) && words.contains(way_out), "{name}: {words}");
            watch.released_once();
        }
    }
}

#[test]
fn lanes_multiply_the_size_of_an_element() {
    let producer = Producer::bytes(dtype(1, 8, 3), b"rgbRGB", &[2], &[1]);
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!((tensor.size(), tensor.itemsize(), tensor.nbytes()), (2, Some(3), 6));
    assert_eq!(bytes_of(&tensor), b"rgbRGB");
    drop(tensor);
    watch.released_once();
}

#[test]
fn elements_below_a_byte_are_packed_unless_flagged() {
    let nibbles = Producer::bytes(dtype(17, 4, 1), &[0x21, 0x43, 0x05, 0, 0], &[5], &[1]);
    let (packed, watch) = nibbles.clone().tensor(Abi::Versioned);
    let packed = packed.unwrap();
    assert_eq!((packed.nbytes(), packed.itemsize()), (3, None));
    drop(packed);
    watch.released_once();

    let flags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;
    let (padded, watch) = Producer { flags, ..nibbles }.tensor(Abi::Versioned);
    let padded = padded.unwrap();
    assert_eq!((padded.nbytes(), padded.itemsize()), (5, Some(1)));
    drop(padded);
    watch.released_once();
}

// Shapes.

/// Producers may write any byte, and some have memory that the CPU cannot read.
#[test]
fn booleans_are_bytes_of_any_value() {
    let booleans = |bytes: &[u8], shape: &[i64], strides: &[i64]| {
        Producer::bytes(DLDataType::BOOL, bytes, shape, strides)
    };
    for abi in Abi::BOTH {
        let (tensor, watch) = booleans(&[0, 1, 2, 255], &[2, 2], &[2, 1]).tensor(abi);
        assert_eq!(tensor.unwrap().as_bool_bytes(), Some(&[0, 1, 2, 255][..]));
        watch.released_once();
    }
    let bytes = |producer: Producer| {
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        let bytes = tensor.unwrap().as_bool_bytes().map(<[u8]>::to_vec);
        watch.released_once();
        bytes
    };
    assert_eq!(bytes(booleans(&[], &[0, 3], &[3, 1])), Some(vec![]));
    assert_eq!(bytes(booleans(&[1, 0, 1], &[2], &[2])), None);
    assert_eq!(bytes(Producer { device: device(2, 0), ..booleans(&[1], &[1], &[1]) }), None);
    for other in [DLDataType::UINT8, dtype(6, 8, 2)] {
        assert_eq!(bytes(Producer { dtype: other, ..booleans(&[1; 8], &[1], &[1]) }), None);
    }
}

#[test]
fn a_negative_ndim_is_rejected() {
    for ndim in [-1, i32::MIN] {
        is_rejected(&Producer { ndim, ..abc() }, &Error::NegativeNdim(ndim));
    }
}

#[test]
fn axes_without_extents_are_rejected() {
    is_rejected(&Producer { shape: Ints::Null, ..abc() }, &Error::NullShape(1));
    let many = Producer { ndim: 256, shape: Ints::Null, strides: Ints::Null, ..abc() };
    is_rejected(&many, &Error::NullShape(256));
}

#[test]
fn more_axes_than_anyone_has_are_not_followed() {
    let ones = vec![1; 256];
    for abi in Abi::BOTH {
        let (tensor, watch) = Producer::bytes(DLDataType::INT32, &[0; 4], &ones, &ones).tensor(abi);
        assert_eq!(tensor.map(|tensor| tensor.ndim()), Ok(256));
        watch.released_once();
    }
    for (ndim, count) in [(257, 257), (i32::MAX, 2_147_483_647)] {
        let refused = Error::TooManyAxes { ndim: count, most: 256 };
        // There are no extents: reading them crashes.
        for shape in [Ints::Null, Ints::Address(8)] {
            is_rejected(
                &Producer { ndim, shape: shape.clone(), strides: shape, ..abc() },
                &refused,
            );
        }
    }
}

/// Its deleter cannot be read either, and so it is not called.
#[test]
fn a_tensor_at_a_misaligned_address_is_not_read() {
    // 4, but on i686, which has 64-bit integers at multiples of 4.
    let half = align_of::<DLTensor>() / 2;
    for address in [1usize, half, 7, 0x1001, usize::MAX] {
        for abi in Abi::BOTH {
            let refused = Error::MisalignedTensor { address };
            assert_eq!(support::misaligned_tensor(abi, address).unwrap_err(), refused);
        }
    }
}

#[test]
fn a_negative_extent_is_rejected_even_beside_a_zero() {
    for (shape, axis, extent) in [
        (vec![-1], 0, -1),
        (vec![3, i64::MIN], 1, i64::MIN),
        (vec![0, -2], 1, -2),
        (vec![-5, 0, -2], 0, -5),
    ] {
        let producer = Producer::bytes(DLDataType::INT32, &[0; 64], &shape, &vec![1; shape.len()]);
        is_rejected(&producer, &Error::NegativeExtent { axis, extent });
    }
}

#[test]
fn misaligned_descriptors_are_rejected() {
    let shape = Producer { shape: Ints::Misaligned(vec![3]), ..abc() };
    is_rejected(&shape, &Error::MisalignedDescriptor("shape"));
    let strides = Producer { strides: Ints::Misaligned(vec![1]), ..abc() };
    is_rejected(&strides, &Error::MisalignedDescriptor("strides"));
}

#[test]
fn extents_that_overflow_are_rejected() {
    let rejected = |shape: &[i64], error: &Error| {
        let strides = vec![0; shape.len()];
        let producer = Producer::bytes(DLDataType::INT32, &[0; 4], shape, &strides);
        is_rejected(&producer, error);
        let producer = Producer { strides: Ints::Null, ..producer };
        is_rejected(&producer, error);
    };
    let elements = Error::Overflow("number of elements");
    let bytes = overflow("size in bytes", "number of elements");
    rejected(&[1 << 32, 1 << 32, 16], &elements);
    rejected(&[i64::MAX, i64::MAX], &elements);
    rejected(&[i64::MAX], &bytes);
    rejected(&[1 << 61], &bytes);
    rejected(&[1 << 31, 1 << 31], &bytes);
    rejected(&[1 << 40, 1 << 40, 1, 3], &elements);
}

#[test]
fn a_zero_extent_comes_before_every_overflow() {
    for shape in
        [vec![1 << 32, 1 << 32, 16, 0], vec![0, i64::MAX, i64::MAX], vec![i64::MAX, 0, i64::MAX]]
    {
        for strides in [Ints::Null, Ints::Values(vec![i64::MIN; shape.len()])] {
            let producer = Producer::bytes(DLDataType::FLOAT64, &[], &shape, &[]);
            for abi in Abi::BOTH {
                let producer = Producer { strides: strides.clone(), ..producer.clone() };
                let (tensor, watch) = producer.tensor(abi);
                let tensor = tensor.unwrap();
                assert_eq!((tensor.size(), tensor.nbytes()), (0, 0));
                assert_eq!(tensor.shape(), shape);
                assert!(tensor.is_contiguous());
                drop(tensor);
                watch.released_once();
            }
        }
    }
}

// Strides.

#[test]
fn missing_strides_mean_row_major() {
    let missing = Producer { strides: Ints::Null, ..abc() };
    is_adopted(&missing, 0, Int32Array::from(vec![10, 20, 30]));

    let cube = Producer::bytes(DLDataType::UINT8, &[7; 24], &[2, 3, 4], &[]);
    let (tensor, watch) = Producer { strides: Ints::Null, ..cube }.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!(&*tensor.strides(), [12, 4, 1]);
    assert!(tensor.is_contiguous());
    drop(tensor);
    watch.released_once();
}

#[test]
fn negative_and_broadcast_strides_are_gathered() {
    let values = [0i32, 1, 2, 3, 4, 5, 6, 7];
    for (extent, stride, origin, expected) in [
        (4, -1, 28, vec![7, 6, 5, 4]),
        (3, -3, 28, vec![7, 4, 1]),
        (4, 2, 0, vec![0, 2, 4, 6]),
        (2, 7, 0, vec![0, 7]),
        (5, 0, 12, vec![3, 3, 3, 3, 3]),
    ] {
        let producer = Producer {
            shape: [extent].into(),
            strides: [stride].into(),
            ..pointing_into(&values, origin)
        };
        let nbytes = expected.len() * 4;
        becomes(&producer, Int32Array::from(expected));
        let reason = CopyReason::Strided { axis: 0, stride, expected: 1 };
        is_no_array(&producer, CopyPolicy::Never, &Error::CopyForbidden { reason, nbytes });
    }
}

#[test]
fn the_stride_of_one_element_or_none_means_nothing() {
    for stride in [i64::MIN, i64::MIN + 1, -1, 0, 2, i64::MAX] {
        let strides = Ints::from([stride]);
        let one = Producer { shape: [1].into(), strides: strides.clone(), ..abc() };
        is_adopted(&one, 0, Int32Array::from(vec![10]));
        becomes(
            &Producer { shape: [0].into(), strides, ..abc() },
            Int32Array::from(Vec::<i32>::new()),
        );

        let row = Producer::bytes(DLDataType::UINT8, b"abc", &[1, 3, 1], &[stride, 1, stride]);
        let (tensor, watch) = row.tensor(Abi::Versioned);
        let tensor = tensor.unwrap();
        assert!(tensor.is_contiguous());
        assert_eq!(bytes_of(&tensor.copied().unwrap()), b"abc");
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn strides_that_reach_out_of_the_address_space_are_rejected() {
    // It does not matter which of its sums overflows first.
    let reaches_out = |dtype, shape: &[i64], strides: &[i64]| {
        for abi in Abi::BOTH {
            let (tensor, watch) = Producer::bytes(dtype, &[0; 64], shape, strides).tensor(abi);
            let error = tensor.expect_err("a false descriptor");
            assert!(matches!(error, Error::Overflow(_)), "{shape:?} {strides:?}: {error}");
            watch.released_once();
        }
    };
    reaches_out(DLDataType::INT8, &[3], &[i64::MAX]);
    reaches_out(DLDataType::INT8, &[3], &[i64::MIN]);
    reaches_out(DLDataType::INT8, &[2, 2], &[i64::MAX, 1]);
    reaches_out(DLDataType::INT8, &[2, 2], &[i64::MIN, -1]);
    reaches_out(DLDataType::INT8, &[2; 4], &[i64::MAX; 4]);
    reaches_out(DLDataType::INT64, &[2], &[i64::MAX / 4]);
    reaches_out(DLDataType::INT64, &[2], &[i64::MIN / 4]);
    // Each half would fit, but not both.
    let half = i64::try_from(isize::MAX).expect("64 bits at most") - 100;
    let both = Producer::bytes(DLDataType::INT8, &[], &[2, 2], &[half, -half]);
    let both = Producer { data: Data::Address(1 << (usize::BITS - 1)), ..both };
    is_rejected(&both, &Error::Overflow("address range"));
}

#[test]
#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
fn a_huge_broadcast_is_an_error_at_once() {
    let huge =
        Producer { shape: [1 << 62].into(), strides: [0].into(), ..Producer::vector(&[1u8]) };
    let began = Instant::now();
    let nbytes = 1 << 62;
    is_no_array(&huge, CopyPolicy::IfNeeded, &Error::OutOfMemory { nbytes });
    is_no_array(&huge, CopyPolicy::Always, &Error::OutOfMemory { nbytes });
    let reason = CopyReason::Strided { axis: 0, stride: 0, expected: 1 };
    is_no_array(&huge, CopyPolicy::Never, &Error::CopyForbidden { reason, nbytes });

    let (tensor, watch) = huge.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!(tensor.copied().unwrap_err(), Error::OutOfMemory { nbytes });
    drop(tensor);
    watch.released_once();
    assert!(began.elapsed() < Duration::from_secs(2), "took {:?}", began.elapsed());
}

// Addresses.

#[test]
fn no_elements_need_no_memory() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let none = Producer::bytes(dtype, &[], &[0], &[1]);
        for data in [Data::Null, Data::Address(1), Data::Address(usize::MAX)] {
            for byte_offset in [0, 3, u64::MAX] {
                for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
                    for abi in Abi::BOTH {
                        let none = Producer { data: data.clone(), byte_offset, ..none.clone() };
                        let (array, watch) = none.array(abi, copy);
                        let array = array.unwrap();
                        assert_eq!((array.data_type(), array.len()), (&T::DATA_TYPE, 0));
                        array.to_data().validate_full().unwrap();
                        // Nothing is kept, so nothing is waited for.
                        assert_eq!(watch.deletions(), 1);
                        drop(array);
                        watch.released_once();
                    }
                }
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn elements_need_memory() {
    is_rejected(&Producer { data: Data::Null, ..abc() }, &Error::NullData { nbytes: 12 });
    let offset = Producer { data: Data::Null, byte_offset: 64, ..abc() };
    is_rejected(&offset, &Error::NullData { nbytes: 12 });
    let scalar = Producer { data: Data::Null, ndim: 0, ..abc() };
    is_rejected(&scalar, &Error::NullData { nbytes: 4 });
}

#[test]
fn byte_offset_is_added_once() {
    let values = [0i32, 1, 2, 3, 4, 5, 6, 7];
    let offset = Producer { shape: [2].into(), byte_offset: 8, ..Producer::vector(&values) };
    is_adopted(&offset, 8, Int32Array::from(vec![2, 3]));
    becomes(&offset, Int32Array::from(vec![2, 3]));

    let backwards = Producer { byte_offset: 12, strides: [-1].into(), ..offset.clone() };
    becomes(&backwards, Int32Array::from(vec![3, 2]));
    let last = Producer { byte_offset: 28, shape: Ints::Null, ndim: 0, ..offset.clone() };
    becomes(&last, Int32Array::from(vec![7]));

    let (tensor, watch) = offset.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!((tensor.as_ptr().addr(), tensor.byte_offset()), (watch.data() + 8, 0));
    drop(tensor);
    watch.released_once();
}

#[test]
fn where_the_cpu_can_read_no_offset_is_left_not_even_of_nothing() {
    let none = Producer { shape: [0].into(), byte_offset: 8, ..abc() };
    for data in [Data::Null, Data::Address(64)] {
        let (tensor, watch) = Producer { data, ..none.clone() }.tensor(Abi::Versioned);
        let left = tensor.unwrap().byte_offset();
        watch.released_once();
        assert_eq!(left, 0);
    }
}

#[test]
fn addresses_that_wrap_are_rejected() {
    let wraps = Error::Overflow("address range");
    let at = |address| Producer { data: Data::Address(address), ..Producer::vector(&[0i64; 3]) };
    is_rejected(&at(usize::MAX - 7), &wraps);
    is_rejected(&at(usize::MAX - 22), &wraps);
    is_rejected(&Producer { byte_offset: u64::MAX, ..at(64) }, &wraps);
    is_rejected(&Producer { byte_offset: u64::MAX - 79, ..at(64) }, &wraps);
    // No address space is so large, wherever the elements lie.
    let far = |bytes: i64| Producer {
        data: Data::Address(64),
        ..Producer::bytes(DLDataType::UINT8, &[], &[bytes], &[1])
    };
    let too_many = overflow("address range", "number of elements");
    is_rejected(&far(i64::MAX), &too_many);
    is_rejected(&far((1 << 56) + 1), &too_many);
    let apart = Producer { shape: [2].into(), strides: [1 << 56].into(), ..far(2) };
    is_rejected(&apart, &overflow("address range", "span of strides"));
    // The lowest element would be below the address space, or NULL.
    is_rejected(&Producer { strides: [-1].into(), ..at(8) }, &wraps);
    is_rejected(&Producer { strides: [-1].into(), ..at(16) }, &wraps);
}

#[test]
fn misaligned_data_is_gathered_and_a_copy_can_be_forbidden() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let item = size_of::<T::Native>();
        let bytes = Random(3).bytes(5 * item);
        for misalign in 1..item {
            for abi in Abi::BOTH {
                let (bytes, origin) = (bytes.clone(), 0);
                let producer = Producer {
                    data: Data::Bytes { bytes: bytes.clone(), origin, misalign },
                    ..Producer::bytes(dtype, &[], &[5], &[1])
                };
                let (array, watch) = producer.clone().array(abi, CopyPolicy::IfNeeded);
                let array = array.unwrap();
                assert_eq!(values_of(&array).as_slice(), bytes);
                assert_eq!(watch.deletions(), 1);
                drop(array);
                watch.released_once();

                let reason = CopyReason::Misaligned { align: item };
                let error = Error::CopyForbidden { reason, nbytes: 5 * item };
                is_no_array(&producer, CopyPolicy::Never, &error);
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn bytes_are_never_misaligned() {
    let bytes = Data::Bytes { bytes: b"abc".to_vec(), origin: 0, misalign: 1 };
    let producer = Producer { data: bytes, ..Producer::vector(b"...") };
    is_adopted(&producer, 0, UInt8Array::from(b"abc".to_vec()));
}

#[test]
fn byte_offset_can_align_and_misalign() {
    let bytes: Vec<u8> = [0u8; 4].into_iter().chain(5i64.to_ne_bytes()).collect();
    let data = |misalign| Data::Bytes { bytes: bytes.clone(), origin: 0, misalign };
    let five = Producer { byte_offset: 4, ..Producer::vector(&[0i64]) };
    is_adopted(&Producer { data: data(4), ..five.clone() }, 4, Int64Array::from(vec![5]));
    let off = Producer { data: data(0), ..five };
    becomes(&off, Int64Array::from(vec![5]));
    let reason = CopyReason::Misaligned { align: 8 };
    is_no_array(&off, CopyPolicy::Never, &Error::CopyForbidden { reason, nbytes: 8 });
}

// Devices.

#[test]
fn memory_that_the_cpu_can_read_is_adopted() {
    let readable = [
        device(1, 0),
        device(1, -1),
        device(1, 5), // main memory; Arrow's id for it is -1
        device(3, 0),
        device(11, 0),
        device(13, 0),
        device(13, 2), // pinned and managed
    ];
    for device in readable {
        is_adopted(&Producer { device, ..abc() }, 0, Int32Array::from(vec![10, 20, 30]));
    }
}

#[test]
fn other_memory_is_a_tensor_but_no_array_and_never_read() {
    let known = DLDeviceType::ALL.iter().map(|&(kind, _)| kind);
    let unknown = [0, 5, 99, -1, i32::MAX, i32::MIN].map(DLDeviceType);
    let unreadable = known.filter(|kind| ![1, 3, 11, 13].contains(&kind.0)).chain(unknown);
    for device_type in unreadable {
        let device = DLDevice { device_type, device_id: 1 };
        // Nothing is there: reading it would be the end of this process.
        let producer = Producer { device, data: Data::Address(64), byte_offset: 256, ..abc() };
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
            is_no_array(&producer, copy, &Error::UnreadableDevice { device });
        }
        // No copy would help, so it is not for want of one that this fails.
        let strided = Producer { strides: [-1].into(), ..producer.clone() };
        is_no_array(&strided, CopyPolicy::Never, &Error::UnreadableDevice { device });

        let (tensor, watch) = producer.tensor(Abi::Versioned);
        let tensor = tensor.unwrap();
        assert_eq!((tensor.device(), tensor.size(), tensor.nbytes()), (device, 3, 12));
        // The handle may be opaque, so the two are left apart.
        assert_eq!((tensor.as_ptr().addr(), tensor.byte_offset()), (64, 256));
        assert_eq!(tensor.copied().unwrap_err(), Error::UnreadableDevice { device });
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn what_no_copy_could_change_is_said_first() {
    // On another device, and of another dtype or rank: the device is not what stands in the way.
    let cuda = device(2, 0);
    let pairs = Producer { device: cuda, dtype: dtype(2, 32, 2), ..abc() };
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never] {
        let (array, watch) = pairs.clone().array(Abi::Versioned, copy);
        assert!(array.unwrap_err().is_type_refusal());
        watch.released_once();
    }
    // With addresses of 32 bits no such row is a true descriptor.
    if cfg!(target_pointer_width = "32") {
        return;
    }
    let wide = Producer { device: cuda, ndim: 2, shape: [1, 1 << 31].into(), ..abc() };
    let wide = Producer { strides: Ints::Null, ..wide };
    is_no_array(&wide, CopyPolicy::Never, &Error::RowTooLarge { shape: vec![1 << 31] });
}

#[test]
fn what_an_option_could_change_is_never_a_type_refusal() {
    // A Python consumer answers a TypeError by asking again without options: a silent copy.
    let (device, dtype) = (device(2, 0), dtype(17, 4, 1));
    let reason = CopyReason::Misaligned { align: 8 };
    for error in [
        Error::CopyForbidden { reason, nbytes: 8 },
        Error::UnreadableDevice { device },
        Error::LegacyCannotPad(dtype),
        Error::UnsupportedVersion { major: 2 },
        Error::OutOfMemory { nbytes: 8 },
        Error::NotExclusive(ExclusiveObstacle::Shared),
    ] {
        assert!(!error.is_type_refusal(), "{error}");
    }
}
