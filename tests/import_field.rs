//! A field that is asked for is what a tensor becomes, if it stores the same bytes, and an error that
//! names both if it does not.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_buffer::ArrowNativeType;
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, CopyReason, Error, ImportOptions, Representation, from_dlpack, import,
};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};

use logical::{leaf, logical};
#[cfg(target_pointer_width = "64")]
use support::Ints;
use support::{Abi, Producer, Watch, dtype};

mod logical;
mod support;

fn asking_for(field: &Field, copy: CopyPolicy) -> ImportOptions {
    ImportOptions::default()
        .with_copy(copy)
        .with_representation(Representation::Field(Arc::new(field.clone())))
}

fn ask(
    producer: &Producer,
    field: &Field,
    copy: CopyPolicy,
) -> (Result<(ArrayRef, FieldRef), Error>, Watch) {
    let (tensor, watch) = producer.clone().tensor(Abi::Versioned);
    (from_dlpack(tensor.expect("a true descriptor"), &asking_for(field, copy)), watch)
}

/// The tensor becomes an array of just this field, at the same address. Returns a copy of it.
#[track_caller]
fn is_adopted(producer: &Producer, field: &Field) -> ArrayRef {
    let (result, watch) = ask(producer, field, CopyPolicy::Never);
    let (array, found) = result.expect("an array");
    assert_eq!(found.as_ref(), field);
    array.to_data().validate_full().expect("a valid array");
    let offset = usize::try_from(producer.byte_offset).expect("small");
    assert_eq!(leaf(&array).as_ptr().addr(), watch.data() + offset);
    let seen = logical(&array, field);
    assert_eq!(watch.deletions(), 0);
    drop(array);
    watch.released_once();

    let (copy, watch) = ask(producer, field, CopyPolicy::Always);
    let (copy, _) = copy.expect("an array");
    assert_eq!(logical(&copy, field), seen);
    watch.released_once();
    copy
}

#[track_caller]
fn is_refused(producer: &Producer, field: &Field) {
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
        let (result, watch) = ask(producer, field, copy);
        let error = result.expect_err("a refusal");
        let Error::CannotBecome { dtype, shape, field: named } = &error else {
            panic!("{field}: {error}")
        };
        assert_eq!((*dtype, named.as_ref()), (producer.dtype, field));
        let words = error.to_string();
        let type_name = field.data_type().to_string();
        assert!(words.contains(&format!("{dtype} elements of shape {shape:?}")), "{words}");
        assert!(words.contains(&type_name), "{words}");
        // `type=` could change it, so it must not look as if nothing could.
        assert!(!error.is_type_refusal());
        watch.released_once();
    }
    let (tensor, watch) = producer.clone().tensor(Abi::Versioned);
    let tensor = tensor.expect("a true descriptor");
    let options = asking_for(field, CopyPolicy::IfNeeded);
    let error = import::explain(&tensor, &options).expect_err("a refusal");
    assert_eq!(import::field(&tensor, &options).expect_err("a refusal"), error);
    drop(tensor);
    watch.released_once();
}

fn field(data_type: DataType) -> Field {
    let metadata = HashMap::from([("key".to_owned(), "value".to_owned())]);
    Field::new("x", data_type, false).with_metadata(metadata)
}

fn list(item: Field, size: i32) -> DataType {
    DataType::FixedSizeList(Arc::new(item), size)
}

fn item(data_type: DataType) -> Field {
    Field::new("values", data_type, false)
}

fn tensors(item: Field, shape: &[i64], permutation: Option<&[usize]>) -> Field {
    let size = i32::try_from(shape.iter().product::<i64>()).expect("small");
    let names = Some(shape.iter().map(|extent| format!("axis of {extent}")).collect());
    let dimensions = Dimensions { permutation: permutation.map(<[_]>::to_vec), names };
    Extension::FixedShapeTensor { shape: shape.to_vec(), dimensions }
        .annotate(field(list(item, size)))
}

/// Row-major strides.
fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

fn of(dtype: DLDataType, shape: &[i64]) -> Producer {
    let bytes: Vec<u8> = (0..=255).cycle().take(1024).collect();
    let bytes: Vec<u8> =
        if dtype.code.0 == 6 { bytes.iter().map(|byte| byte & 1).collect() } else { bytes };
    Producer::bytes(dtype, &bytes, shape, &row_major(shape))
}

/// Of a number that each type has as a value.
fn zeros(dtype: DLDataType, shape: &[i64]) -> Producer {
    Producer::bytes(dtype, &[0; 1024], shape, &row_major(shape))
}

#[test]
fn integers_become_what_arrow_stores_as_integers() {
    let zone = Some("Europe/Zurich".into());
    for data_type in [
        DataType::Int32,
        DataType::Date32,
        DataType::Time32(TimeUnit::Second),
        DataType::Decimal32(9, 2),
    ] {
        is_adopted(&zeros(DLDataType::INT32, &[5]), &field(data_type.clone()));
        is_adopted(
            &zeros(DLDataType::INT32, &[5, 2]),
            &tensors(item(data_type.clone()), &[2], None),
        );
        is_refused(&of(DLDataType::INT64, &[5]), &field(data_type.clone()));
        is_refused(&of(DLDataType::UINT32, &[5]), &field(data_type));
    }
    for data_type in [
        DataType::Date64,
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Millisecond, zone),
        DataType::Duration(TimeUnit::Microsecond),
        DataType::Decimal64(18, 4),
    ] {
        is_adopted(&zeros(DLDataType::INT64, &[5]), &field(data_type.clone()));
        is_adopted(&zeros(DLDataType::INT64, &[]), &field(data_type.clone()));
        is_refused(&zeros(DLDataType::INT32, &[5]), &field(data_type));
    }
}

#[test]
fn lists_and_tensors_of_the_same_shape_are_the_same_bytes() {
    let cube = of(DLDataType::INT16, &[4, 3, 2]);
    let int16 = || item(DataType::Int16);
    let nested = field(list(item(list(int16(), 2)), 3));
    let array = is_adopted(&cube, &nested);
    assert_eq!(array.as_fixed_size_list().value_length(), 3);
    is_adopted(&cube, &tensors(int16(), &[3, 2], None));
    is_adopted(&cube, &tensors(int16(), &[3, 2], Some(&[0, 1])));
    // A tensor of lists, and lists of tensors.
    is_adopted(&cube, &tensors(item(list(int16(), 2)), &[3], None));
    is_adopted(&cube, &field(list(tensors(int16(), &[2], None), 3)));

    let bytes = of(DLDataType::UINT8, &[4, 3, 2]);
    is_adopted(&bytes, &field(list(item(DataType::FixedSizeBinary(2)), 3)));
    is_adopted(&of(DLDataType::UINT8, &[4, 16]), &field(DataType::FixedSizeBinary(16)));
    is_adopted(&of(DLDataType::UINT8, &[4, 1]), &field(DataType::FixedSizeBinary(1)));

    for shape in [&[4, 2, 3][..], &[4, 6], &[24], &[4, 3, 2, 1], &[]] {
        is_refused(&of(DLDataType::INT16, shape), &nested);
        is_refused(&of(DLDataType::INT16, shape), &tensors(int16(), &[3, 2], None));
    }
    is_refused(&of(DLDataType::UINT8, &[4, 15]), &field(DataType::FixedSizeBinary(16)));
    is_refused(&of(DLDataType::INT8, &[4, 16]), &field(DataType::FixedSizeBinary(16)));
    is_refused(&of(DLDataType::UINT8, &[16]), &field(DataType::FixedSizeBinary(16)));
}

#[test]
fn the_permutation_that_was_asked_for_is_the_one_that_there_is() {
    let int8 = || item(DataType::Int8);
    let logical = of(DLDataType::INT8, &[2, 3, 4, 2]);
    // Logical axis i is axis permutation[i] in memory.
    let asked = tensors(int8(), &[4, 2, 3], Some(&[2, 0, 1]));
    let there = Producer { strides: [24, 1, 6, 3].into(), ..logical.clone() };
    is_adopted(&there, &asked);

    // Another order is a copy, into the one that was asked for.
    let (result, watch) = ask(&logical, &asked, CopyPolicy::Never);
    let reason = CopyReason::Strided { axis: 1, stride: 8, expected: 1 };
    assert_eq!(result.unwrap_err(), Error::CopyForbidden { reason, nbytes: 48 });
    watch.released_once();
    let (result, watch) = ask(&logical, &asked, CopyPolicy::IfNeeded);
    let (array, _) = result.unwrap();
    let found = self::logical::logical(&array, &asked);
    assert_eq!(found.shape, [2, 3, 4, 2]);
    assert_eq!(found.bytes, (0..48).collect::<Vec<u8>>());
    watch.released_once();
}

#[test]
fn booleans_are_bits_or_bytes() {
    let bools = of(dtype(6, 8, 1), &[6]);
    let bool8 = Extension::Bool8.annotate(field(DataType::Int8));
    is_adopted(&bools, &bool8);
    let (result, watch) = ask(&bools, &field(DataType::Boolean), CopyPolicy::IfNeeded);
    assert_eq!(result.unwrap().0.as_boolean().true_count(), 3);
    watch.released_once();
    let (result, watch) = ask(&bools, &field(DataType::Boolean), CopyPolicy::Never);
    let reason = CopyReason::Stored { from: dtype(6, 8, 1), to: None };
    let refused = result.unwrap_err();
    assert_eq!(refused, Error::CopyForbidden { reason, nbytes: 1 });
    assert!(refused.to_string().ends_with("; Representation::Bool8 keeps them as bytes"));
    watch.released_once();
    for other in [DataType::Int8, DataType::UInt8, DataType::Float32] {
        is_refused(&bools, &field(other));
    }
    is_refused(&of(DLDataType::INT8, &[6]), &bool8);
    is_refused(&of(DLDataType::UINT8, &[6]), &field(DataType::Boolean));
}

#[test]
fn opaque_elements_are_those_of_their_name_and_size() {
    let bfloat = dtype(4, 16, 1);
    let opaque = |dtype, data_type| Extension::opaque(dtype).annotate(field(data_type));
    is_adopted(&of(bfloat, &[3]), &opaque(bfloat, DataType::UInt16));
    is_adopted(&of(bfloat, &[3]), &opaque(bfloat, DataType::FixedSizeBinary(2)));
    let pixels = tensors(Extension::opaque(bfloat).annotate(item(DataType::UInt16)), &[2, 2], None);
    is_adopted(&of(bfloat, &[3, 2, 2]), &pixels);
    let complex = dtype(5, 64, 1);
    is_adopted(&of(complex, &[3]), &opaque(complex, list(item(DataType::Float32), 2)));
    is_adopted(&of(complex, &[3]), &opaque(complex, DataType::FixedSizeBinary(8)));
    let nibble = dtype(17, 4, 1);
    let flags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;
    is_adopted(&Producer { flags, ..of(nibble, &[3]) }, &opaque(nibble, DataType::UInt8));

    is_refused(&of(dtype(2, 16, 1), &[3]), &opaque(bfloat, DataType::UInt16));
    is_refused(&of(bfloat, &[3]), &opaque(dtype(2, 16, 1), DataType::UInt16));
    is_refused(&of(bfloat, &[3]), &opaque(bfloat, DataType::UInt8));
    is_refused(&of(bfloat, &[3]), &opaque(bfloat, DataType::FixedSizeBinary(-2)));
    is_refused(&of(bfloat, &[3]), &field(DataType::UInt16));
    // Another vendor's is its storage.
    let geometry = Extension::Opaque { type_name: "geometry".into(), vendor_name: "db".into() };
    is_adopted(&of(DLDataType::UINT16, &[3]), &geometry.annotate(field(DataType::UInt16)));
    // So is a dtype of DLPack's that is not known here: as its storage it came.
    let later = Extension::Opaque { type_name: "float9000".into(), vendor_name: "dlpack".into() };
    is_adopted(&of(DLDataType::UINT16, &[3]), &later.annotate(field(DataType::UInt16)));
    is_adopted(
        &of(DLDataType::UINT16, &[3, 2]),
        &later.annotate(field(list(item(DataType::UInt16), 2))),
    );
    let unknown = Extension::Other("my.type".into());
    is_adopted(&of(DLDataType::UINT16, &[3]), &unknown.annotate(field(DataType::UInt16)));
}

#[test]
fn complex_numbers_are_pairs_and_others_are_widened() {
    let complex = dtype(5, 128, 1);
    let pair = || list(item(DataType::Float64), 2);
    is_adopted(&of(complex, &[3]), &field(pair()));
    is_adopted(&of(complex, &[]), &field(pair()));
    is_adopted(&of(complex, &[3, 4]), &field(list(item(pair()), 4)));
    is_adopted(&of(complex, &[3, 4]), &tensors(item(DataType::Float64), &[4, 2], None));
    let sideways = Producer { strides: [8, 1, 2].into(), ..of(complex, &[2, 2, 4]) };
    let asked = tensors(item(DataType::Float64), &[4, 2, 2], Some(&[1, 0, 2]));
    is_adopted(&sideways, &asked);
    is_refused(&of(complex, &[3]), &field(DataType::Float64));
    is_refused(&of(complex, &[3]), &field(list(item(DataType::Float32), 2)));
    is_refused(&of(complex, &[3]), &field(list(item(DataType::Float64), 3)));
    // The two parts of a number lie together.
    let apart = tensors(item(DataType::Float64), &[2, 4], Some(&[1, 0]));
    is_refused(&of(complex, &[3, 4]), &apart);

    for (dtype, wide, narrow) in [
        (dtype(4, 16, 1), DataType::Float32, DataType::Float64),
        (dtype(12, 8, 1), DataType::Float32, DataType::Float16),
        (dtype(15, 6, 1), DataType::Float32, DataType::UInt8),
        (dtype(0, 4, 1), DataType::Int8, DataType::Int32),
        (dtype(1, 2, 1), DataType::UInt8, DataType::Int8),
    ] {
        let (result, watch) = ask(&of(dtype, &[3]), &field(wide.clone()), CopyPolicy::IfNeeded);
        assert_eq!(result.unwrap().0.data_type(), &wide);
        watch.released_once();
        is_refused(&of(dtype, &[3]), &field(narrow));
    }
}

#[test]
fn nothing_else_can_be_asked_for() {
    let int64 = of(DLDataType::INT64, &[4]);
    for data_type in [
        DataType::Null,
        DataType::Utf8,
        DataType::Binary,
        DataType::Utf8View,
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Decimal128(38, 10),
        DataType::Float64,
        DataType::new_list(DataType::Int64, true),
        DataType::Dictionary(DataType::Int64.into(), DataType::Utf8.into()),
        DataType::Struct(vec![field(DataType::Int64)].into()),
        list(item(DataType::Int64), -1),
        list(item(DataType::Int64), 0),
        DataType::FixedSizeBinary(-8),
    ] {
        is_refused(&int64, &field(data_type));
    }
    // What nothing can be done about is said first.
    let (result, watch) =
        ask(&of(dtype(3, 64, 1), &[2]), &field(DataType::Int64), CopyPolicy::IfNeeded);
    assert!(matches!(result.unwrap_err(), Error::UnsupportedDtype { .. }));
    watch.released_once();
}

#[test]
fn malformed_extensions_are_not_believed() {
    for metadata in [
        "",
        "[]",
        r#"{"shape":[2,3],"permutation":[0,0]}"#,
        r#"{"shape":[2,3],"permutation":[1]}"#,
        r#"{"shape":[2,3],"permutation":[1,2]}"#,
        r#"{"shape":[2,3],"permutation":[-1,0]}"#,
        r#"{"shape":[2,3],"permutation":[1e99,0]}"#,
        r#"{"shape":[2,4]}"#,
        r#"{"shape":[-2,-3]}"#,
        r#"{"shape":[4611686018427387904,4]}"#,
        r#"{"permutation":[1,0]}"#,
    ] {
        let asked = tensors(item(DataType::Int8), &[2, 3], None);
        let mut map = asked.metadata().clone();
        map.insert("ARROW:extension:metadata".to_owned(), metadata.to_owned());
        let asked = asked.with_metadata(map);
        let (result, watch) = ask(&of(DLDataType::INT8, &[4, 2, 3]), &asked, CopyPolicy::IfNeeded);
        let error = result.unwrap_err();
        assert!(matches!(error, Error::MalformedExtension { .. }), "{metadata}: {error}");
        watch.released_once();
    }
}

#[test]
fn misaligned_bytes_are_aligned_as_their_type_needs() {
    let shifted = |producer: Producer| Producer { byte_offset: 1, ..producer };
    is_adopted(&shifted(of(DLDataType::UINT8, &[4, 8])), &field(DataType::FixedSizeBinary(8)));
    let (result, watch) = ask(
        &shifted(of(DLDataType::INT64, &[4])),
        &field(DataType::Timestamp(TimeUnit::Second, None)),
        CopyPolicy::IfNeeded,
    );
    let (array, _) = result.unwrap();
    let first = array.as_primitive::<types::TimestampSecondType>().value(0);
    assert_eq!(first, i64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
    watch.released_once();
}

/// The lists, without their offsets, whose values are at the address of the tensor.
#[track_caller]
fn values_of_lists(array: &ArrayRef, length: usize) -> ArrayRef {
    let (offsets, values): (Vec<usize>, &ArrayRef) = match array.as_list_opt::<i32>() {
        Some(lists) => (lists.offsets().iter().map(|at| at.as_usize()).collect(), lists.values()),
        None => {
            let lists = array.as_list::<i64>();
            (lists.offsets().iter().map(|at| at.as_usize()).collect(), lists.values())
        }
    };
    assert_eq!(offsets, (0..=array.len()).map(|row| row * length).collect::<Vec<_>>());
    Arc::clone(values)
}

/// A matrix in lists of any length: the values stay where they are, and offsets count them.
#[test]
fn rows_of_one_length_become_lists_of_any_length_in_the_same_memory() {
    let nested = |inner: DataType| DataType::List(Arc::new(item(inner)));
    let long = |inner: DataType| DataType::LargeList(Arc::new(item(inner)));
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    let (pairs, cube) = (of(DLDataType::FLOAT32, &[5, 2]), of(DLDataType::INT16, &[3, 2, 4]));
    let complex = of(DLDataType::COMPLEX64, &[2, 3]);
    for (producer, data_type, lengths) in [
        (&pairs, nested(DataType::Float32), &[2][..]),
        (&pairs, long(DataType::Float32), &[2]),
        (&cube, nested(long(DataType::Int16)), &[2, 4]),
        (&cube, long(list(item(DataType::Int16), 4)), &[2]),
        (&of(DLDataType::INT64, &[2, 3]), nested(seconds), &[3]),
        (&complex, nested(list(item(DataType::Float32), 2)), &[3]),
        (&complex, nested(nested(DataType::Float32)), &[3, 2]),
        (&of(DLDataType::INT8, &[0, 3]), nested(DataType::Int8), &[3]),
        (&of(DLDataType::INT8, &[3, 0]), nested(DataType::Int8), &[0]),
    ] {
        let asked = field(data_type);
        let (result, watch) = ask(producer, &asked, CopyPolicy::Never);
        let (array, found) = result.expect("an array");
        assert_eq!(found.as_ref(), &asked);
        array.to_data().validate_full().expect("a valid array");
        let values = lengths
            .iter()
            .fold(Arc::clone(&array), |array, &length| values_of_lists(&array, length));
        let field = Field::new("", values.data_type().clone(), false);
        let bytes = logical(&values, &field).bytes;
        assert!(bytes.is_empty() || leaf(&values).as_ptr().addr() == watch.data());
        assert_eq!(bytes, (0..=255).take(bytes.len()).collect::<Vec<u8>>());
        drop((array, values));
        watch.released_once();
    }
    // Bits are converted, as in any type.
    let bools = of(DLDataType::BOOL, &[3, 2]);
    let (made, watch) = ask(&bools, &field(nested(DataType::Boolean)), CopyPolicy::IfNeeded);
    assert_eq!(values_of_lists(&made.expect("an array").0, 2).as_boolean().true_count(), 3);
    watch.released_once();

    is_refused(&of(DLDataType::FLOAT32, &[4]), &field(nested(DataType::Float32)));
    is_refused(&pairs, &field(nested(DataType::Float64)));
    is_refused(&pairs, &field(nested(nested(DataType::Float32))));
    is_refused(&cube, &field(nested(DataType::Int16)));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn values_of_lists_that_32_bits_do_not_count_are_refused() {
    let (shape, strides) = ([1 << 20, 1 << 12], Ints::Values(vec![0, 0]));
    let wide = Producer { shape: shape.into(), strides, ..of(DLDataType::INT8, &[1, 1]) };
    let (tensor, watch) = wide.tensor(Abi::Versioned);
    let tensor = tensor.expect("a true descriptor");
    let explained = |lists: fn(FieldRef) -> DataType| {
        let asked = field(lists(Arc::new(item(DataType::Int8))));
        import::explain(&tensor, &asking_for(&asked, CopyPolicy::IfNeeded))
    };
    let error = explained(DataType::List).expect_err("too many");
    assert!(error.to_string().contains("offset 1048576 is 4294967296"), "{error}");
    assert_eq!(explained(DataType::LargeList).expect("a plan").bytes_copied(), 1 << 32);
    drop(tensor);
    watch.released_once();
}
