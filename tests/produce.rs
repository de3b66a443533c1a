//! What a consumer gets: the three doors out of Arrow, and what a C program finds behind them.
#![expect(unsafe_code, reason = "looks at tensors as a C consumer does")]

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::sync::{Arc, Barrier};
use std::{slice, thread};

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, NullArray,
    PrimitiveArray, RecordBatch, StringArray, StructArray, UInt8Array, new_empty_array,
    new_null_array,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_dlpack::ffi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackFlags, DLPackVersion,
    DLTensor,
};
use arrow_dlpack::{
    CopyPolicy, Error, ExclusiveObstacle, ExportOptions, ManagedTensor, NullPolicy, export,
    to_dlpack,
};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode};

use support::{
    Abi, Data, Ints, Producer, Random, bytes_of, delete, delete_legacy, device, dtype,
    for_each_numeric, values_of,
};

mod support;

/// An array of ten values, sliced and masked in every way that leaves no null in it.
fn variants<T: ArrowPrimitiveType>() -> Vec<(&'static str, PrimitiveArray<T>)> {
    let bytes = Random(11).bytes(10 * size_of::<T::Native>());
    let values = ScalarBuffer::<T::Native>::from(Buffer::from_slice_ref(&bytes));
    let plain = PrimitiveArray::<T>::new(values.clone(), None);
    let valid = PrimitiveArray::<T>::new(values.clone(), Some(NullBuffer::new_valid(10)));
    let mut mask = [true; 10];
    (mask[0], mask[9]) = (false, false);
    let masked = PrimitiveArray::<T>::new(values, Some(NullBuffer::from(&mask[..])));
    vec![
        ("slice from 1", plain.slice(1, 9)),
        ("slice of one", plain.slice(3, 1)),
        ("slice of a slice", plain.slice(3, 7).slice(2, 3)),
        ("slice at the end", plain.slice(9, 1)),
        ("empty slice", plain.slice(5, 0)),
        ("empty slice behind the end", plain.slice(10, 0)),
        ("empty", PrimitiveArray::<T>::new(ScalarBuffer::from(Vec::new()), None)),
        ("validity without nulls", valid.clone()),
        ("validity without nulls, sliced", valid.slice(7, 3)),
        ("nulls only outside", masked.slice(1, 8)),
        ("nulls only before", masked.slice(1, 3)),
        ("empty slice at a null", masked.slice(0, 0)),
        ("plain", plain),
    ]
}

fn field_of(array: &dyn Array) -> Field {
    Field::new("x", array.data_type().clone(), true)
}

fn exported(array: &dyn Array, copy: CopyPolicy) -> Result<ManagedTensor, Error> {
    to_dlpack(array, &field_of(array), &support::export(copy))
}

/// The address that the tensor must have: none at all, if it has no elements.
fn address<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> usize {
    if array.is_empty() { 0 } else { array.values().as_ptr().addr() }
}

fn len(array: &dyn Array) -> i64 {
    i64::try_from(array.len()).expect("short")
}

/// How many hold the array's buffer, and then some: only comparisons make sense.
fn holders<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> usize {
    array.values().inner().strong_count()
}

/// `shape` and `strides` as C reads them.
fn ints(pointer: *mut i64, ndim: i32) -> Vec<i64> {
    assert!(!pointer.is_null() && pointer.is_aligned());
    // SAFETY: the header promises `ndim` values.
    unsafe { slice::from_raw_parts(pointer, usize::try_from(ndim).expect("not negative")) }.to_vec()
}

// Share.

#[test]
fn sharing_copies_nothing() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        for (name, array) in variants::<T>() {
            for tensor in [
                export::array(&array),
                exported(&array, CopyPolicy::IfNeeded),
                exported(&array, CopyPolicy::Never),
                to_dlpack(&array, &field_of(&array), &ExportOptions::default()),
            ] {
                let tensor = tensor.unwrap();
                assert_eq!(tensor.as_ptr().addr(), address(&array), "{name}");
                assert_eq!((tensor.shape(), &*tensor.strides()), (&[len(&array)][..], &[1][..]));
                assert_eq!((tensor.ndim(), tensor.size()), (1, array.len()));
                assert_eq!(tensor.dtype(), dtype);
                assert_eq!(tensor.device(), DLDevice::CPU);
                assert_eq!((tensor.flags(), tensor.is_read_only()), (DLPackFlags::READ_ONLY, true));
                assert_eq!((tensor.byte_offset(), tensor.is_contiguous()), (0, true));
                assert_eq!(tensor.itemsize(), Some(size_of::<T::Native>()));
                assert_eq!(bytes_of(&tensor), values_of(&array).as_slice(), "{name}");
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn c_finds_all_that_the_header_asks_for() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        for (name, array) in variants::<T>() {
            let before = holders(&array);
            let raw = export::array(&array).unwrap().into_raw();
            // SAFETY: `into_raw` made it just now.
            let DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor } =
                unsafe { raw.read() };
            assert_eq!(version, DLPackVersion { major: 1, minor: 3 });
            assert!(!manager_ctx.is_null(), "paddle calls no deleter without it");
            assert!(deleter.is_some());
            assert_eq!(flags.0, 1);
            c_finds_the_array(&dl_tensor, &array, dtype);
            assert_eq!(holders(&array), before + 1, "{name}");
            delete(raw);
            assert_eq!(holders(&array), before, "{name}");
        }
    }
    for_each_numeric!(law);
}

#[test]
fn c_finds_the_same_in_the_legacy_abi_rewritten_in_place() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        for (name, array) in variants::<T>() {
            let before = holders(&array);
            let tensor = export::array(&array).unwrap();
            let shape = tensor.shape().as_ptr();
            let raw = tensor.into_raw_legacy().unwrap();
            // SAFETY: `into_raw_legacy` made it just now.
            let DLManagedTensor { dl_tensor, manager_ctx, deleter } = unsafe { raw.read() };
            assert!(!manager_ctx.is_null() && deleter.is_some());
            assert_eq!(dl_tensor.shape.cast_const(), shape, "no second allocation");
            c_finds_the_array(&dl_tensor, &array, dtype);
            assert_eq!(holders(&array), before + 1, "{name}");
            delete_legacy(raw);
            assert_eq!(holders(&array), before, "{name}");
        }
    }
    for_each_numeric!(law);
}

fn c_finds_the_array<T: ArrowPrimitiveType>(
    tensor: &DLTensor,
    array: &PrimitiveArray<T>,
    dtype: DLDataType,
) {
    assert_eq!(tensor.data.addr(), address(array));
    assert_eq!(tensor.device, device(1, 0));
    assert_eq!(tensor.ndim, 1);
    assert_eq!(tensor.dtype, dtype);
    assert_eq!(ints(tensor.shape, 1), [len(array)]);
    assert_eq!(ints(tensor.strides, 1), [1]);
    assert_eq!(tensor.byte_offset, 0);
}

#[test]
fn a_tensor_outlives_its_array() {
    for copy in [CopyPolicy::Never, CopyPolicy::Always] {
        let array = Float64Array::from(vec![1.0, 2.0, 3.0]);
        let tensor = exported(&array.slice(1, 2), copy).unwrap();
        drop(array);
        assert_eq!(bytes_of(&tensor), [2.0f64, 3.0].map(f64::to_ne_bytes).concat());
    }
}

#[test]
fn one_array_can_be_shared_many_times_and_each_share_is_released_for_itself() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let before = holders(&array);
    let mut tensors: Vec<_> = (0..5).map(|_| export::array(&array).unwrap()).collect();
    assert_eq!(holders(&array), before + 5);
    tensors.swap_remove(1);
    assert_eq!(holders(&array), before + 4);
    assert!(tensors.iter().all(|tensor| tensor.as_ptr().addr() == address(&array)));
    drop(tensors);
    assert_eq!(holders(&array), before);
}

#[test]
fn many_threads_may_export_and_drop_at_once() {
    let array = Int64Array::from_iter_values(0..100);
    let before = holders(&array);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                for round in 0..if cfg!(miri) { 8 } else { 200 } {
                    let slice = array.slice(round % 100, 1);
                    let tensor = export::array(&slice).unwrap();
                    assert_eq!(tensor.as_ptr().addr(), address(&slice));
                    match round % 4 {
                        0 => drop(tensor),
                        1 => delete(tensor.into_raw()),
                        2 => delete_legacy(tensor.into_raw_legacy().unwrap()),
                        _ => drop(tensor.copied().unwrap()),
                    }
                }
            });
        }
    });
    assert_eq!(holders(&array), before);
}

#[test]
fn any_thread_may_let_go() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let before = holders(&array);
    let tensor = export::array(&array).unwrap();
    // Raw pointers are not `Send`, but C does not ask.
    let raw = export::array(&array).unwrap().into_raw().expose_provenance();
    let legacy = export::array(&array).unwrap().into_raw_legacy().unwrap().expose_provenance();
    thread::spawn(move || {
        drop(tensor);
        delete(std::ptr::with_exposed_provenance_mut(raw));
        delete_legacy(std::ptr::with_exposed_provenance_mut(legacy));
    })
    .join()
    .unwrap();
    assert_eq!(holders(&array), before);
}

// Copy.

#[test]
fn a_copy_is_the_consumers_own() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        for (name, array) in variants::<T>() {
            let (before, values) = (holders(&array), values_of(&array).to_vec());
            let mut tensor = exported(&array, CopyPolicy::Always).unwrap();
            assert_eq!(holders(&array), before, "{name}");
            assert_eq!((tensor.flags(), tensor.is_read_only()), (DLPackFlags::IS_COPIED, false));
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[len(&array)][..]));
            assert_eq!((&*tensor.strides(), tensor.device()), (&[1][..], DLDevice::CPU));
            assert_eq!(bytes_of(&tensor), values, "{name}");
            if array.is_empty() {
                assert!(tensor.as_ptr().is_null());
                continue;
            }
            assert_eq!(tensor.as_ptr().addr() % 64, 0, "aligned to 64 bytes");
            assert_ne!(tensor.as_ptr().addr(), address(&array));
            let nbytes = tensor.nbytes();
            // SAFETY: the copy's own memory, which has no other holder.
            unsafe { tensor.as_mut_ptr().write_bytes(0x55, nbytes) };
            assert!(bytes_of(&tensor).iter().all(|&byte| byte == 0x55));
            assert_eq!(values_of(&array).as_slice(), values, "{name}");
        }
    }
    for_each_numeric!(law);
}

// Hand over.

#[test]
fn handing_over_copies_nothing_and_lets_the_consumer_write() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let given = |array: PrimitiveArray<T>| {
            let (at, values) = (address(&array), values_of(&array).to_vec());
            let (extent, field) = (len(&array), field_of(&array));
            let mut tensor = export::into_tensor_with_field(Arc::new(array), &field).unwrap();
            assert_eq!(tensor.as_ptr().addr(), at);
            assert_eq!((tensor.flags(), tensor.is_read_only()), (DLPackFlags(0), false));
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[extent][..]));
            assert_eq!(bytes_of(&tensor), values);
            let nbytes = tensor.nbytes();
            // SAFETY: the memory has no other holder.
            unsafe { tensor.as_mut_ptr().write_bytes(0x55, nbytes) };
            assert!(bytes_of(&tensor).iter().all(|&byte| byte == 0x55));
        };
        let fresh = |nulls: Option<NullBuffer>| {
            let bytes = Random(12).bytes(6 * size_of::<T::Native>());
            PrimitiveArray::<T>::new(ScalarBuffer::from(Buffer::from_slice_ref(&bytes)), nulls)
        };
        given(fresh(None));
        given(fresh(Some(NullBuffer::new_valid(6))));
        let whole = fresh(None);
        let front = whole.slice(0, 4);
        drop(whole);
        given(front);
        let nulls = NullBuffer::from(vec![true, true, true, true, false, true]);
        let whole = fresh(Some(nulls));
        let front = whole.slice(0, 4);
        drop(whole);
        given(front);
        given(PrimitiveArray::<T>::from_iter_values([]));
    }
    for_each_numeric!(law);
}

/// `into_tensor` refuses, and the array that comes back is the one that was passed.
#[track_caller]
fn comes_back(array: ArrayRef, field: &Field) -> (ArrayRef, Error) {
    let before = array.to_data();
    let refused = export::into_tensor_with_field(array, field).expect_err("cannot be handed over");
    let after = refused.array.to_data();
    assert_eq!(before, after);
    assert!(before.ptr_eq(&after), "the array's memory has moved");
    assert_eq!(refused.to_string(), refused.error.to_string());
    (refused.array, refused.error)
}

#[test]
fn an_array_with_two_holders_comes_back() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let (held, field) = (Arc::clone(&array), field_of(&array));
    let (back, error) = comes_back(array, &field);
    assert!(Arc::ptr_eq(&back, &held));
    assert_eq!(error, Error::NotExclusive(ExclusiveObstacle::Shared));

    drop(held);
    assert!(export::into_tensor_with_field(back, &field).is_ok());
}

#[test]
fn an_array_whose_buffer_has_two_holders_comes_back() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let buffer = array.values().clone();
    // Passed to `into_tensor` directly: `comes_back` would hold the buffer itself.
    let (field, at) = (field_of(&array), address(&array));
    let refused = export::into_tensor_with_field(Arc::new(array), &field).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    assert_eq!(values_of(&refused.array).as_ptr().addr(), at);

    drop(buffer);
    assert_eq!(export::into_tensor_with_field(refused.array, &field).unwrap().as_ptr().addr(), at);
}

#[test]
fn an_array_that_is_shared_comes_back() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let (field, exported) = (field_of(&array), export::array(&array).unwrap());
    let refused = export::into_tensor_with_field(Arc::new(array), &field).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    drop(exported);
    assert!(export::into_tensor_with_field(refused.array, &field).is_ok());
}

#[test]
fn a_slice_that_begins_further_on_comes_back() {
    let nulls = NullBuffer::new_valid(4);
    let whole = Float32Array::new(ScalarBuffer::from(vec![1.0, 2.0, 3.0, 4.0]), Some(nulls));
    let slice = whole.slice(1, 3);
    drop(whole);
    let (field, at) = (field_of(&slice), address(&slice));
    let refused = export::into_tensor_with_field(Arc::new(slice), &field).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Sliced));
    let back = refused.array.as_any().downcast_ref::<Float32Array>().unwrap();
    assert_eq!((address(back), back.values().as_ref()), (at, &[2.0, 3.0, 4.0][..]));
    assert!(back.nulls().is_some(), "the validity buffer comes back too");
}

#[test]
fn foreign_memory_comes_back_and_is_not_released() {
    for abi in Abi::BOTH {
        let (array, watch) = Producer::vector(&[1i32, 2, 3]).array(abi, CopyPolicy::Never);
        let array = array.unwrap();
        let field = field_of(&array);
        let refused = export::into_tensor_with_field(array, &field).unwrap_err();
        assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Foreign));
        assert_eq!(values_of(&refused.array).as_ptr().addr(), watch.data());
        assert_eq!(watch.deletions(), 0);
        drop(refused);
        watch.released_once();
    }
}

#[test]
fn what_cannot_be_shared_cannot_be_handed_over_and_comes_back() {
    let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let field = field_of(&nulls);
    let (_, error) = comes_back(nulls, &field);
    assert_eq!(error, Error::Nulls { data_type: DataType::Int32, null_count: 1, len: 2 });

    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let field = field_of(&text);
    let (text, error) = comes_back(text, &field);
    assert!(matches!(error, Error::UnsupportedType { data_type: DataType::Utf8, .. }));

    let other = Field::new("x", DataType::LargeUtf8, true);
    let (_, error) = comes_back(text, &other);
    let (field, array) = (DataType::LargeUtf8, DataType::Utf8);
    assert_eq!(error, Error::FieldMismatch { field, array });

    let stored: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let (_, error) = comes_back(stored, &extension(DataType::Int32));
    assert!(matches!(error, Error::UnsupportedExtension { .. }));
}

// Refusals.

#[test]
fn nulls_are_refused_with_their_count() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType) {
        let mask = NullBuffer::from(vec![false, true, false, true, true, true]);
        let array = PrimitiveArray::<T>::new(vec![T::default_value(); 6].into(), Some(mask));
        for (array, null_count, len) in [(array.clone(), 2, 6), (array.slice(1, 5), 1, 5)] {
            for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
                let error = exported(&array, copy).unwrap_err();
                let data_type = T::DATA_TYPE;
                assert_eq!(error, Error::Nulls { data_type, null_count, len });
                assert!(error.is_type_refusal());
                let words = error.to_string();
                let facts =
                    [T::DATA_TYPE.to_string(), format!("{null_count} null"), len.to_string()];
                assert!(facts.iter().all(|fact| words.contains(fact)), "{words}");
                assert!(words.contains("fill") && words.contains("drop"), "{words}");
            }
            assert!(export::array(&array).is_err());
        }
    }
    for_each_numeric!(law);
}

/// One of each type that becomes a tensor only by another door, or not at all.
fn unsupported() -> Vec<DataType> {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int32, true),
    ]);
    let entries = Arc::new(Field::new("entries", DataType::Struct(entries), false));
    let union = UnionFields::try_new([0], [Field::new("a", DataType::Int32, true)]);
    let union = union.expect("one child, one id");
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let values = Arc::new(Field::new("values", DataType::Int32, true));
    let utc = Some("UTC".into());
    vec![
        DataType::Null,
        DataType::Timestamp(TimeUnit::Nanosecond, utc),
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Duration(TimeUnit::Millisecond),
        DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Binary,
        DataType::LargeBinary,
        DataType::BinaryView,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Union(union, UnionMode::Dense),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        DataType::Decimal32(9, 2),
        DataType::Decimal64(18, 2),
        DataType::Decimal128(38, 2),
        DataType::Decimal256(76, 2),
        DataType::Map(entries, false),
        DataType::RunEndEncoded(ends, values),
    ]
}

/// Does not compile once Arrow has a type that is not here: add it to `unsupported` too.
fn is_dense(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => true,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::Boolean | DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..) => true,
        DataType::Null => false,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => false,
        DataType::Time32(_) | DataType::Time64(_) => false,
        DataType::Duration(_) | DataType::Interval(_) => false,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => false,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => false,
        // If their rows have one length.
        DataType::List(_) | DataType::ListView(_) => true,
        DataType::LargeList(_) | DataType::LargeListView(_) => true,
        // A table.
        DataType::Struct(_) => true,
        DataType::Union(..) | DataType::Map(..) => false,
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => false,
        DataType::Decimal32(..) | DataType::Decimal64(..) => false,
        DataType::Decimal128(..) | DataType::Decimal256(..) => false,
    }
}

#[test]
fn every_other_type_is_refused_by_name_with_a_way_out() {
    let types = unsupported();
    let kinds: HashSet<_> = types.iter().map(discriminant).collect();
    assert_eq!((kinds.len(), types.iter().filter(|of| is_dense(of)).count()), (22, 0));
    for data_type in types {
        for array in [new_empty_array(&data_type), new_null_array(&data_type, 2)] {
            for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
                let error = exported(&array, copy).expect_err("no tensor form");
                assert!(error.is_type_refusal());
                let words = error.to_string();
                assert!(words.starts_with(&data_type.to_string()), "{words}");
                match error {
                    Error::UnsupportedType { data_type: named, hint } => {
                        assert_eq!(named, data_type);
                        assert!(
                            words.ends_with(&hint.to_string()) && hint.to_string().len() > 10,
                            "{words}"
                        );
                        assert!(!words.contains("arrow-rs"), "{words}");
                    }
                    Error::NotJustNumbers { data_type: named, .. } => {
                        assert_eq!(named, data_type);
                        assert!(words.contains("physical"), "{words}");
                    }
                    _ => panic!("{data_type}: {words}"),
                }
            }
            let field = field_of(&array);
            let refused = export::into_tensor_with_field(Arc::clone(&array), &field)
                .expect_err("no tensor form");
            assert_eq!(Some(refused.error), exported(&array, CopyPolicy::Never).err());
            assert!(Arc::ptr_eq(&refused.array, &array));
        }
    }
}

/// Python's keywords are Python's: its exceptions have other words.
#[test]
fn the_ways_out_are_rusts() {
    let options = ExportOptions::default();
    let words = |array: &dyn Array, field: &Field, options: &ExportOptions| {
        let ragged = export::ragged(
            export::Source::Array(array, Some(field)),
            Some(DLDataType::INT32),
            options,
        );
        [to_dlpack(array, field, options).err(), ragged.err()].map(|error| match error {
            Some(error) => error.to_string(),
            None => String::new(),
        })
    };
    let mut all = Vec::new();
    for data_type in unsupported() {
        let array = new_null_array(&data_type, 2);
        all.extend(words(&array, &field_of(&array), &options));
    }
    let nulls = Int32Array::from(vec![Some(1), None]);
    let [refused, not_ragged] = words(&nulls, &field_of(&nulls), &options);
    assert!(refused.ends_with("choose a fill value, NaN or a mask by ExportOptions::with_nulls"));
    assert!(not_ragged.ends_with("use export::tensor"));
    let [stored, _] = words(&Int32Array::from(vec![1]), &extension(DataType::Int32), &options);
    assert!(stored.ends_with("use ExportOptions::with_physical for its storage"));
    all.extend([refused, not_ragged, stored]);
    all.extend(
        [
            Error::NoColumns,
            Error::LegacyCannotPad(dtype(17, 4, 1)),
            Error::FractionalStride { axis: 0, stride: 3, itemsize: 4 },
            Error::OffsetDoesNotFit { offset: 1 << 40, dtype: DLDataType::INT32 },
            Error::NullsInRows { data_type: DataType::Int32, null_count: 1, len: 2 },
        ]
        .map(|error| error.to_string()),
    );
    for words in all {
        let pythons = ["=", "to_tensor", "pyarrow", "numpy", "pandas", "polars"];
        assert!(!pythons.iter().any(|python| words.contains(python)), "{words}");
    }
}

fn extension(storage: DataType) -> Field {
    let name = ("ARROW:extension:name".to_owned(), "example.money".to_owned());
    Field::new("x", storage, true).with_metadata(HashMap::from([name]))
}

#[test]
fn what_is_refused_is_not_held() {
    let array = Int64Array::from(vec![Some(1), None, Some(-3)]);
    let before = holders(&array);
    let (nulls, dtype) = (NullPolicy::fill(0), Some(DLDataType::UINT8));
    let copy = CopyPolicy::Never;
    for options in [
        ExportOptions::default(),
        ExportOptions::default().with_nulls(NullPolicy::Nan).with_dtype(dtype),
        ExportOptions::default().with_nulls(NullPolicy::fill(-1)).with_dtype(dtype),
        ExportOptions::default().with_nulls(nulls).with_dtype(dtype),
        ExportOptions::default().with_nulls(nulls).with_dtype(DLDataType::BOOL),
        ExportOptions::default().with_nulls(nulls).with_copy(copy),
        ExportOptions::default().with_nulls(NullPolicy::Nan).with_copy(copy),
    ] {
        assert!(to_dlpack(&array, &field_of(&array), &options).is_err(), "{options:?}");
        assert_eq!(holders(&array), before, "{options:?}");
        let chunks: [ArrayRef; 2] = [Arc::new(array.slice(0, 1)), Arc::new(array.clone())];
        let refused = export::tensor(export::Source::Chunks(&chunks, &field_of(&array)), &options);
        assert!(refused.is_err(), "{options:?}");
        drop(chunks);
        assert_eq!(holders(&array), before, "{options:?}");
    }
    let other = Field::new("x", DataType::UInt64, true);
    assert!(to_dlpack(&array, &other, &ExportOptions::default()).is_err());
    assert!(to_dlpack(&array, &extension(DataType::Int64), &ExportOptions::default()).is_err());
    assert!(export::ragged((&array, &field_of(&array)), None, &ExportOptions::default()).is_err());
    assert!(export::into_tensor_with_field(Arc::new(array.clone()), &field_of(&array)).is_err());
    assert_eq!(holders(&array), before);
}

#[test]
fn an_unknown_extension_type_is_refused_rather_than_stripped() {
    let array = Int64Array::from(vec![1, 2]);
    let error =
        to_dlpack(&array, &extension(DataType::Int64), &ExportOptions::default()).unwrap_err();
    let (name, data_type) = ("example.money".to_owned(), DataType::Int64);
    assert_eq!(error, Error::UnsupportedExtension { name, data_type, in_rows: false });
    let words = error.to_string();
    assert!(words.contains("example.money") && words.contains("storage"), "{words}");
    assert!(error.is_type_refusal());
}

#[test]
fn other_metadata_and_nullability_of_a_field_do_not_matter() {
    let array = Int64Array::from(vec![1, 2]);
    let note = HashMap::from([("note".to_owned(), "extension".to_owned())]);
    for field in [
        Field::new("", DataType::Int64, false),
        Field::new("x", DataType::Int64, true).with_metadata(note),
    ] {
        assert!(to_dlpack(&array, &field, &ExportOptions::default()).is_ok());
    }
}

#[test]
fn a_field_of_another_type_is_refused() {
    let array = UInt8Array::from(vec![1, 2]);
    let field = Field::new("x", DataType::Int8, true);
    let error = to_dlpack(&array, &field, &ExportOptions::default()).unwrap_err();
    let (field, array) = (DataType::Int8, DataType::UInt8);
    assert_eq!(error, Error::FieldMismatch { field, array });

    // Even where the array alone would be refused: the mismatch is the caller's mistake.
    let array = BooleanArray::from(vec![true]);
    let field = Field::new("x", DataType::UInt8, true);
    let error = to_dlpack(&array, &field, &ExportOptions::default()).unwrap_err();
    let (field, array) = (DataType::UInt8, DataType::Boolean);
    assert_eq!(error, Error::FieldMismatch { field, array });
}

// Tensors that came from elsewhere and are handed on.

#[test]
fn a_foreign_pointer_goes_on_as_it_came() {
    let (raw, watch) = Producer::vector(&[1i32, 2]).versioned();
    // SAFETY: made just now, and true.
    let tensor = unsafe { ManagedTensor::from_raw(raw) }.unwrap();
    assert_eq!(tensor.into_raw(), raw);
    assert_eq!(watch.deletions(), 0);
    delete(raw);
    watch.released_once();

    let (raw, watch) = Producer::vector(&[1i32, 2]).legacy();
    // SAFETY: made just now, and true.
    let tensor = unsafe { ManagedTensor::from_raw_legacy(raw) }.unwrap();
    assert_eq!(tensor.into_raw_legacy().unwrap(), raw);
    assert_eq!(watch.deletions(), 0);
    delete_legacy(raw);
    watch.released_once();
}

#[test]
fn a_legacy_tensor_becomes_a_versioned_one_by_todays_rules() {
    let legacy = Producer {
        shape: [2, 2].into(),
        strides: Ints::Null,
        ndim: 2,
        byte_offset: 8,
        ..Producer::vector(&[0i32, 1, 2, 3, 4, 5])
    };
    let (tensor, watch) = legacy.tensor(Abi::Legacy);
    let raw = tensor.unwrap().into_raw();
    // SAFETY: `into_raw` made it just now.
    let managed = unsafe { raw.read() };
    assert_eq!(managed.version, DLPackVersion { major: 1, minor: 3 });
    assert_eq!(managed.flags, DLPackFlags::READ_ONLY, "read-only by default");
    assert!(!managed.manager_ctx.is_null());
    let tensor = managed.dl_tensor;
    assert_eq!((tensor.data.addr(), tensor.byte_offset), (watch.data() + 8, 0));
    assert_eq!((ints(tensor.shape, 2), ints(tensor.strides, 2)), (vec![2, 2], vec![2, 1]));
    assert_eq!((tensor.ndim, tensor.dtype), (2, DLDataType::INT32));
    assert_eq!(watch.deletions(), 0);
    delete(raw);
    watch.released_once();
}

#[test]
fn a_versioned_tensor_becomes_a_legacy_one_that_keeps_it_alive() {
    let strided = Producer {
        shape: [3].into(),
        strides: [2].into(),
        flags: DLPackFlags(u64::MAX),
        ..Producer::vector(&[0i32, 1, 2, 3, 4, 5])
    };
    let (tensor, watch) = strided.tensor(Abi::Versioned);
    let raw = tensor.unwrap().into_raw_legacy().unwrap();
    // SAFETY: `into_raw_legacy` made it just now.
    let DLManagedTensor { dl_tensor, manager_ctx, .. } = unsafe { raw.read() };
    assert!(!manager_ctx.is_null());
    assert_eq!((dl_tensor.data.addr(), dl_tensor.byte_offset), (watch.data(), 0));
    assert_eq!((ints(dl_tensor.shape, 1), ints(dl_tensor.strides, 1)), (vec![3], vec![2]));
    assert_eq!(watch.deletions(), 0);
    delete_legacy(raw);
    watch.released_once();
}

#[test]
fn tensors_without_axes_go_through_both_abis() {
    for abi in Abi::BOTH {
        let scalar = Producer {
            shape: Ints::Null,
            strides: Ints::Null,
            ndim: 0,
            ..Producer::vector(&[5i32])
        };
        let (tensor, watch) = scalar.tensor(abi);
        let raw = tensor.unwrap().into_raw_legacy().unwrap();
        // SAFETY: given up just now.
        let tensor = unsafe { ManagedTensor::from_raw_legacy(raw) }.unwrap();
        let raw = tensor.into_raw();
        // SAFETY: given up just now.
        let tensor = unsafe { ManagedTensor::from_raw(raw) }.unwrap();
        assert_eq!((tensor.ndim(), tensor.size(), tensor.as_ptr().addr()), (0, 1, watch.data()));
        assert_eq!(watch.deletions(), 0);
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn the_legacy_abi_cannot_say_padded_and_the_tensor_is_released() {
    let flags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;
    let nibble = dtype(17, 4, 1);
    let padded = Producer { flags, ..Producer::bytes(nibble, &[1, 2, 3], &[3], &[1]) };
    let (tensor, watch) = padded.clone().tensor(Abi::Versioned);
    assert_eq!(tensor.unwrap().into_raw_legacy().unwrap_err(), Error::LegacyCannotPad(nibble));
    watch.released_once();

    // One of our own, too.
    let (tensor, watch) = padded.tensor(Abi::Versioned);
    let copy = tensor.unwrap().copied().unwrap();
    assert_eq!(copy.into_raw_legacy().unwrap_err(), Error::LegacyCannotPad(nibble));
    watch.released_once();

    // Elements of a whole byte are the same either way.
    let (tensor, watch) = Producer { flags, ..Producer::vector(&[1u8, 2]) }.tensor(Abi::Versioned);
    delete_legacy(tensor.unwrap().into_raw_legacy().unwrap());
    watch.released_once();
}

#[test]
fn a_share_keeps_the_tensor_alive_and_says_what_is_still_true() {
    let all = Producer {
        flags: DLPackFlags(u64::MAX),
        byte_offset: 4,
        shape: [2, 2].into(),
        strides: [1, 2].into(),
        ndim: 2,
        ..Producer::vector(&[0i32, 1, 2, 3, 4])
    };
    let (tensor, watch) = all.tensor(Abi::Versioned);
    let tensor = Arc::new(tensor.unwrap());
    let shares = [tensor.share(), tensor.share()];
    drop(tensor);
    let read_only = DLPackFlags::READ_ONLY;
    for share in &shares {
        // It has two holders, so neither is the only owner.
        assert_eq!(share.flags(), read_only.union(DLPackFlags::IS_SUBBYTE_TYPE_PADDED));
        assert_eq!((share.as_ptr().addr(), share.byte_offset()), (watch.data() + 4, 0));
        assert_eq!((share.shape(), &*share.strides()), (&[2, 2][..], &[1, 2][..]));
        assert_eq!(
            bytes_of(&share.copied().unwrap()),
            [1i32, 3, 2, 4].map(i32::to_ne_bytes).concat()
        );
    }
    let [first, second] = shares;
    delete(first.into_raw());
    assert_eq!(watch.deletions(), 0);
    let again = Arc::new(second).share();
    assert_eq!(watch.deletions(), 0);
    delete_legacy(again.into_raw_legacy().unwrap());
    watch.released_once();
}

#[test]
fn a_share_is_read_only_because_rust_may_have_borrowed_the_memory() {
    let array = Int32Array::from(vec![1, 2]);
    let copy = Arc::new(exported(&array, CopyPolicy::Always).unwrap());
    let borrowed = copy.as_slice::<i32>().unwrap();
    for share in [copy.share(), Arc::new(copy.share()).share()] {
        assert_eq!(share.flags(), DLPackFlags::READ_ONLY);
        let raw = share.into_raw();
        // SAFETY: the tensor was given up just now.
        assert_eq!(unsafe { (*raw).flags }, DLPackFlags::READ_ONLY);
        delete(raw);
    }
    assert_eq!(borrowed, [1, 2]);
    // A writable tensor stays so on its way through the other ABI, which nobody else holds.
    let (foreign, watch) = Producer::vector(&[1i32]).tensor(Abi::Versioned);
    let writable = foreign.unwrap();
    assert!(!writable.is_read_only());
    delete_legacy(writable.into_raw_legacy().unwrap());
    watch.released_once();
}

#[test]
fn a_share_of_device_memory_leaves_the_handle_and_its_offset_apart() {
    let cuda = device(2, 1);
    let handle = Data::Address(64);
    let producer =
        Producer { device: cuda, data: handle, byte_offset: 256, ..Producer::vector(&[1i32, 2]) };
    for abi in Abi::BOTH {
        let (tensor, watch) = producer.clone().tensor(abi);
        let share = Arc::new(tensor.unwrap()).share();
        assert_eq!(share.device(), cuda);
        assert_eq!((share.as_ptr().addr(), share.byte_offset()), (64, 256));
        drop(share);
        watch.released_once();
    }
}

#[test]
fn what_is_handed_on_without_elements_has_no_address() {
    // dlpack.h: "if the tensor is of size zero, then the data pointer should be set to NULL".
    let none = Producer { shape: [0].into(), ..Producer::vector(&[1i32]) };
    for (kind, data, byte_offset) in [
        (1, Data::Null, 0),
        (1, Data::Null, 8),
        (1, Data::Address(3), 0),
        (1, Data::Address(3), u64::MAX),
        (2, Data::Address(64), 8),
    ] {
        let device = device(kind, 0);
        let none = Producer { device, data, byte_offset, ..none.clone() };
        let (tensor, watch) = none.clone().tensor(Abi::Legacy);
        let raw = tensor.unwrap().into_raw();
        // SAFETY: `into_raw` made it just now.
        let tensor = unsafe { raw.read() }.dl_tensor;
        delete(raw);
        watch.released_once();
        assert_eq!((tensor.data.addr(), tensor.byte_offset), (0, 0), "{none:?}");
    }
}

/// A null has no type of its own, so that a dtype gives it one: a column of nulls of another type becomes the same.
#[test]
fn nulls_without_a_type_are_those_of_the_dtype_that_is_asked_for() {
    let nulls: ArrayRef = Arc::new(NullArray::new(3));
    let of = |dtype| ExportOptions::default().with_dtype(Some(dtype));
    let nan = export::tensor(&nulls, &of(DLDataType::FLOAT32).with_nulls(NullPolicy::Nan)).unwrap();
    assert!(nan.as_slice::<f32>().unwrap().iter().all(|value| value.is_nan()));
    let filled = of(DLDataType::INT16).with_nulls(NullPolicy::Fill((-1).into()));
    assert_eq!(export::tensor(&nulls, &filled).unwrap().as_slice::<i16>(), Some(&[-1; 3][..]));
    let masked = of(DLDataType::BOOL).with_nulls(NullPolicy::Masked);
    let masked = export::prepare(&nulls, &masked).unwrap().run().unwrap();
    assert_eq!(masked.values.dtype(), DLDataType::BOOL);
    assert_eq!(masked.mask.unwrap().as_bool_bytes(), Some(&[0; 3][..]));
    let error = export::tensor(&nulls, &of(DLDataType::INT64)).unwrap_err();
    assert_eq!(error, Error::Nulls { data_type: DataType::Null, null_count: 3, len: 3 });

    // They take no memory, however many there are.
    let many = if cfg!(target_pointer_width = "64") { 1 << 60 } else { 1 << 30 };
    let many: ArrayRef = Arc::new(NullArray::new(many));
    let error = export::tensor(&many, &filled).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
}

/// As in Python, where the capsules of a struct and of a table are the same.
#[test]
fn a_struct_is_the_table_of_its_fields() {
    let x: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let y: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
    let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
    let table = StructArray::from(batch.clone());
    let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    let expected = export::tensor(&batch, &options).unwrap();
    let array: ArrayRef = Arc::new(table.clone());
    let field = Field::new("", array.data_type().clone(), true);
    let chunks = [array.slice(0, 1), array.slice(1, 2)];
    for source in [export::Source::array(&table), export::Source::chunks(&chunks, &field)] {
        let found = export::tensor(source, &options).unwrap();
        assert_eq!((found.shape(), found.as_slice::<f32>()), (&[3, 2][..], expected.as_slice()));
        assert_eq!(export::to_vec::<f32, _>(source, &options).unwrap().1, [3, 2]);
        let names = export::columns(source, &ExportOptions::default()).unwrap();
        let names: Vec<_> = names.iter().map(|(field, _)| field.name().as_str()).collect();
        assert_eq!(names, ["x", "y"]);
        assert_eq!(export::mask(source, &options).unwrap().shape(), [3, 2]);
        assert_eq!(export::explain(source, &options).unwrap().bytes_copied(), 24);
    }
    export::tensor(&table.slice(1, 2), &options).unwrap();

    // The fields of a null struct are null.
    let nulls = NullBuffer::from(vec![true, false, true]);
    let (fields, columns, _) = table.into_parts();
    let table = StructArray::new(fields, columns, Some(nulls));
    let refused = export::tensor(&table, &options).unwrap_err();
    assert!(refused.to_string().contains("column \"x\": "), "{refused}");
    let filled = options.clone().with_nulls(NullPolicy::fill(-1));
    let found = export::tensor(&table, &filled).unwrap();
    assert_eq!(found.as_slice::<f32>(), Some(&[1.0, 0.5, -1.0, -1.0, 3.0, 2.5][..]));

    // A struct in a table is a column, and has no tensor form.
    let array: ArrayRef = Arc::new(table);
    let nested = RecordBatch::try_from_iter([("s", array)]).unwrap();
    assert!(matches!(export::columns(&nested, &options), Err(Error::Column { .. })));
    assert!(matches!(export::tensor(&nested, &options), Err(Error::Column { .. })));
}

#[test]
fn a_mask_is_returned_or_refused() {
    let column = Int32Array::from(vec![Some(1), None, Some(3)]);
    let masked = ExportOptions::default().with_nulls(NullPolicy::Masked);
    let mut out = [0; 3];
    for refused in [
        export::tensor(&column, &masked).map(drop),
        to_dlpack(&column, &Field::new("x", DataType::Int32, true), &masked).map(drop),
        export::to_vec::<i32, _>(&column, &masked).map(drop),
        export::tensor_into(&column, &mut out[..], &masked).map(drop),
    ] {
        let Err(Error::InvalidOptions(words)) = refused else { panic!("{refused:?}") };
        assert!(words.ends_with("export::masked returns both"), "{words}");
    }
    for options in
        [ExportOptions::default(), masked, ExportOptions::default().with_nulls(NullPolicy::fill(7))]
    {
        let (values, mask) = export::masked(&column, &options).unwrap();
        assert_eq!((values.shape(), mask.as_bool_bytes()), (&[3][..], Some(&[1, 0, 1][..])));
        assert_eq!(values.as_slice::<i32>().map(|values| (values[0], values[2])), Some((1, 3)));
    }
}
