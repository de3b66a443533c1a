//! Values and offsets become lists, strings or binaries that are valid whatever the tensors say.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, LargeStringArray, ListArray, StringArray, types};
use arrow_dlpack::export::{self, Ragged};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, CopyReason, Error, ExportOptions, ImportOptions, MaskProblem, NullPolicy,
    OffsetsProblem, Representation, import,
};
use arrow_schema::{DataType, Field, FieldRef};

use support::{Abi, Producer, Watch, device, dtype};

mod support;

type Rows = (ArrayRef, FieldRef);

fn ragged(
    values: &Producer,
    offsets: &Producer,
    options: &ImportOptions,
) -> (Result<Rows, Error>, [Watch; 2]) {
    let (values, first) = values.clone().tensor(Abi::Versioned);
    let (offsets, second) = offsets.clone().tensor(Abi::Versioned);
    let (values, offsets) = (values.expect("true"), offsets.expect("true"));
    (import::ragged(values, offsets, None, options), [first, second])
}

#[track_caller]
fn becomes(values: &Producer, offsets: &Producer, options: &ImportOptions) -> Rows {
    let (rows, watches) = ragged(values, offsets, options);
    let (array, field) = rows.expect("an array");
    array.to_data().validate_full().expect("a valid array");
    assert_eq!(array.data_type(), field.data_type());
    // The rows outlive the tensors only as a copy.
    let copy = options.clone().with_copy(CopyPolicy::Always);
    let (copied, released) = ragged(values, offsets, &copy);
    released.into_iter().for_each(Watch::released_once);
    let copied = copied.expect("an array");
    assert_eq!((&copied.0, &copied.1), (&array, &field));
    drop(array);
    watches.into_iter().for_each(Watch::released_once);
    copied
}

#[track_caller]
fn is_refused(values: &Producer, offsets: &Producer, options: &ImportOptions) -> Error {
    let (rows, watches) = ragged(values, offsets, options);
    watches.into_iter().for_each(Watch::released_once);
    rows.expect_err("a refusal")
}

fn asking_for(data_type: DataType) -> ImportOptions {
    let field = Arc::new(Field::new("rows", data_type, false));
    ImportOptions::default().with_representation(Representation::Field(field))
}

fn lengths(array: &ArrayRef) -> Vec<usize> {
    array.as_list::<i32>().iter().flatten().map(|row| row.len()).collect()
}

#[test]
fn rows_lie_between_their_offsets() {
    let values = Producer::vector(&[1.0f32, 2.0, 3.0, 4.0]);
    let (array, field) =
        becomes(&values, &Producer::vector(&[0, 2, 2, 3]), &ImportOptions::default());
    assert_eq!(lengths(&array), [2, 0, 1]);
    assert_eq!(field.data_type(), &DataType::new_list(DataType::Float32, true));
    assert!(field.is_nullable() && field.name().is_empty());
    // They need not begin with the first value, nor be any.
    let (array, _) = becomes(&values, &Producer::vector(&[1, 4]), &ImportOptions::default());
    let row = array.as_list::<i32>().value(0);
    assert_eq!(row.as_primitive::<types::Float32Type>().values(), &[2.0, 3.0, 4.0]);
    for start in [0, 4] {
        let (array, _) = becomes(&values, &Producer::vector(&[start]), &ImportOptions::default());
        assert_eq!(array.len(), 0);
    }
    let (array, _) = becomes(
        &Producer::vector::<u8>(&[]),
        &Producer::vector(&[0; 3]),
        &ImportOptions::default(),
    );
    assert_eq!(lengths(&array), [0, 0]);
}

#[test]
fn masked_rows_come_back_the_same() {
    let lists = ListArray::from_iter_primitive::<types::Int32Type, _, _>([
        Some(vec![Some(9)]),
        None,
        Some(vec![]),
        Some(vec![Some(1), Some(2)]),
    ]);
    let texts = vec![Some("to"), None, Some(""), Some("be")];
    let arrays: [ArrayRef; 4] = [
        Arc::new(lists),
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts)),
        Arc::new(BinaryArray::from(vec![None, Some(&b"a"[..]), Some(b""), None])),
    ];
    let masked = ExportOptions::default().with_nulls(NullPolicy::Masked);
    for array in
        arrays.iter().flat_map(|array| [array.clone(), array.slice(1, 3), array.slice(2, 1)])
    {
        let Ragged { values, offsets, mask, .. } = export::ragged(&array, None, &masked).unwrap();
        let field = Field::new("rows", array.data_type().clone(), true);
        let options = Representation::Field(Arc::new(field));
        let options = ImportOptions::default().with_representation(options);
        let (again, _) = import::ragged(values, offsets, mask, &options).unwrap();
        assert_eq!(&again, &array);
    }
}

#[test]
fn a_mask_is_of_the_rows_and_released_when_it_is_refused() {
    for (mask, problem) in [
        (vec![1, 0], MaskProblem::Shape { mask: vec![2], shape: vec![1] }),
        (vec![], MaskProblem::Shape { mask: vec![0], shape: vec![1] }),
    ] {
        let shape = [i64::try_from(mask.len()).unwrap()];
        let mask = Producer::bytes(DLDataType::BOOL, &mask, &shape, &[1]);
        let producers = [Producer::vector(b"ab"), Producer::vector(&[0, 2]), mask];
        let (tensors, watches): (Vec<_>, Vec<_>) =
            producers.into_iter().map(|producer| producer.tensor(Abi::Versioned)).unzip();
        let [values, offsets, mask] = tensors.try_into().unwrap();
        let (values, offsets, mask) = (values.unwrap(), offsets.unwrap(), mask.unwrap());
        let refused = import::ragged(values, offsets, Some(mask), &ImportOptions::default());
        assert_eq!(refused.unwrap_err(), Error::BadMask(problem));
        watches.into_iter().for_each(Watch::released_once);
    }
}

#[test]
fn what_can_stay_where_it_is_does() {
    let values = alone(Producer::vector(b"abc"));
    for (data_type, offsets) in [
        (DataType::Utf8, Producer::vector(&[0i32, 1, 3])),
        (DataType::LargeUtf8, Producer::vector(&[0i64, 1, 3])),
        (DataType::Binary, Producer::vector(&[0i32, 1, 3])),
        (DataType::LargeBinary, Producer::vector(&[0i64, 1, 3])),
        (DataType::new_list(DataType::UInt8, false), Producer::vector(&[0i32, 1, 3])),
        (DataType::new_large_list(DataType::UInt8, true), Producer::vector(&[0i64, 1, 3])),
    ] {
        let never = asking_for(data_type.clone()).with_copy(CopyPolicy::Never);
        let (rows, watches) = ragged(&values, &alone(offsets), &never);
        let (array, field) = rows.unwrap();
        assert_eq!((field.name().as_str(), field.is_nullable()), ("rows", false));
        let data = array.to_data();
        let bytes = match data.child_data() {
            [] => data.buffers()[1].clone(),
            [items, ..] => items.buffers()[0].clone(),
        };
        let found = [bytes.as_ptr().addr(), data.buffers()[0].as_ptr().addr()];
        assert_eq!(found, [watches[0].data(), watches[1].data()], "{data_type}");
        assert!(watches.iter().all(|watch| watch.deletions() == 0));
        drop((array, data, bytes));
        watches.into_iter().for_each(Watch::released_once);
    }
}

fn read_only(producer: Producer) -> Producer {
    Producer { flags: DLPackFlags::READ_ONLY, ..producer }
}

/// A producer that says that the memory has no other holder.
fn alone(producer: Producer) -> Producer {
    Producer { flags: DLPackFlags::IS_COPIED, ..producer }
}

#[test]
fn what_was_checked_cannot_be_written_to() {
    let (values, offsets) = (Producer::vector(b"abc"), Producer::vector(&[0i32, 1, 3]));
    for (data_type, values, offsets) in [
        // Offsets are bounds, texts are texts: who may write could make them anything else. Nor does it
        // help that one tensor is read-only, if another over the same memory is not.
        (DataType::new_list(DataType::UInt8, false), values.clone(), offsets.clone()),
        (DataType::new_list(DataType::UInt8, false), values.clone(), read_only(offsets.clone())),
        (DataType::Utf8, alone(values.clone()), offsets.clone()),
        (DataType::Utf8, values.clone(), alone(offsets.clone())),
    ] {
        let asked = asking_for(data_type);
        becomes(&values, &offsets, &asked);
        let never = asked.with_copy(CopyPolicy::Never);
        let (rows, watches) = ragged(&values, &offsets, &never);
        let error = rows.expect_err("it would have to be copied");
        assert!(matches!(error, Error::CopyForbidden { reason: CopyReason::Checked, .. }));
        watches.into_iter().for_each(Watch::released_once);
    }
    // Bytes are anything already.
    let asked = asking_for(DataType::Binary).with_copy(CopyPolicy::Never);
    let (rows, watches) = ragged(&values, &alone(offsets), &asked);
    drop(rows.expect("nothing to check in the values"));
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn items_are_what_the_values_become() {
    let offsets = Producer::vector(&[0i64, 1, 2]);
    let matrix = Producer::bytes(DLDataType::INT8, &[1, 2, 3, 4, 5, 6], &[2, 3], &[3, 1]);
    let (_, field) = becomes(&matrix, &offsets, &ImportOptions::default());
    let DataType::LargeList(item) = field.data_type() else { panic!("{field}") };
    assert_eq!(item.name(), "item");
    assert_eq!(item.extension_type_name(), Some("arrow.fixed_shape_tensor"));
    let bools = Producer::bytes(dtype(6, 8, 1), &[1, 0], &[2], &[1]);
    let bool8 = ImportOptions::default().with_representation(Representation::Bool8);
    let (_, field) = becomes(&bools, &offsets, &bool8);
    let DataType::LargeList(item) = field.data_type() else { panic!("{field}") };
    assert_eq!(Extension::of(item), Ok(Some(Extension::Bool8)));
    let (array, _) = becomes(&bools, &offsets, &ImportOptions::default());
    assert!(array.as_list::<i64>().value(0).as_boolean().value(0));
    // One value, without an axis for it.
    let scalar = Producer { ndim: 0, ..Producer::vector(&[5u8]) };
    let (array, _) = becomes(&scalar, &Producer::vector(&[0i64, 1]), &ImportOptions::default());
    assert_eq!(array.as_list::<i64>().value_length(0), 1);
}

#[test]
fn offsets_of_any_integers_are_converted_if_they_fit() {
    let values = Producer::vector(&[0u8; 4]);
    let law = |offsets: Producer, is_large| {
        let (array, field) = becomes(&values, &offsets, &ImportOptions::default());
        assert_eq!(matches!(field.data_type(), DataType::LargeList(_)), is_large);
        assert_eq!(array.len(), 2);
        for large in [false, true] {
            let list = if large { DataType::new_large_list } else { DataType::new_list };
            let asked = asking_for(list(DataType::UInt8, true));
            becomes(&values, &offsets, &asked);
            let never = asked.with_copy(CopyPolicy::Never);
            let (rows, watches) = ragged(&values, &alone(offsets.clone()), &never);
            let wanted = if large { DLDataType::INT64 } else { DLDataType::INT32 };
            if offsets.dtype == wanted {
                rows.unwrap();
            } else {
                let reason = CopyReason::Cast { from: offsets.dtype, to: wanted };
                let nbytes = if large { 24 } else { 12 };
                assert_eq!(rows.unwrap_err(), Error::CopyForbidden { reason, nbytes });
            }
            watches.into_iter().for_each(Watch::released_once);
        }
    };
    law(Producer::vector(&[0i8, 1, 4]), false);
    law(Producer::vector(&[0i16, 1, 4]), false);
    law(Producer::vector(&[0i32, 1, 4]), false);
    law(Producer::vector(&[0i64, 1, 4]), true);
    law(Producer::vector(&[0u8, 1, 4]), false);
    law(Producer::vector(&[0u16, 1, 4]), false);
    law(Producer::vector(&[0u32, 1, 4]), true);
    law(Producer::vector(&[0u64, 1, 4]), true);

    // Strided, backwards and misaligned offsets are gathered.
    let sparse =
        Producer { strides: [2].into(), shape: [2].into(), ..Producer::vector(&[1, 9, 4]) };
    assert_eq!(lengths(&becomes(&values, &sparse, &ImportOptions::default()).0), [3]);
    let shifted = Producer::bytes(DLDataType::INT32, &[9, 1, 0, 0, 0, 4, 0, 0, 0], &[2], &[1]);
    let shifted = Producer { byte_offset: 1, ..shifted };
    assert_eq!(lengths(&becomes(&values, &shifted, &ImportOptions::default()).0), [3]);
}

#[test]
fn offsets_that_are_none_are_refused() {
    let values = Producer::vector(&[0u8; 4]);
    let problem =
        |offsets: Producer, options: &ImportOptions| match is_refused(&values, &offsets, options) {
            Error::BadOffsets(problem) => problem,
            other => panic!("{other}"),
        };
    let any = ImportOptions::default();
    let small = asking_for(DataType::Binary);
    let large = asking_for(DataType::LargeBinary);
    let none = Producer::vector::<i32>(&[]);
    assert_eq!(problem(none, &any), OffsetsProblem::Missing);
    let floats = Producer::vector(&[0.0f32, 1.0]);
    assert_eq!(problem(floats, &any), OffsetsProblem::Dtype(DLDataType::FLOAT32));
    let bools = Producer::bytes(dtype(6, 8, 1), &[0, 1], &[2], &[1]);
    assert_eq!(problem(bools, &any), OffsetsProblem::Dtype(dtype(6, 8, 1)));
    let int4 = Producer::bytes(dtype(0, 4, 1), &[0, 1], &[2], &[1]);
    assert_eq!(problem(int4, &any), OffsetsProblem::Dtype(dtype(0, 4, 1)));

    let negative = OffsetsProblem::Negative { index: 0, offset: -1 };
    for options in [&any, &small, &large] {
        assert_eq!(problem(Producer::vector(&[-1i32, 2]), options), negative);
        assert_eq!(problem(Producer::vector(&[-1i64, 2]), options), negative);
        assert_eq!(problem(Producer::vector(&[-1i8, 2]), options), negative);
        let decreasing = OffsetsProblem::Decreasing { index: 2, offset: 1, previous: 3 };
        assert_eq!(problem(Producer::vector(&[0i32, 3, 1, 4]), options), decreasing);
        assert_eq!(problem(Producer::vector(&[0u64, 3, 1, 4]), options), decreasing);
        let beyond = OffsetsProblem::Beyond { offset: 5, values: 4 };
        assert_eq!(problem(Producer::vector(&[0i32, 5]), options), beyond);
        assert_eq!(problem(Producer::vector(&[5u16]), options), beyond);
    }
    let wide = 1u64 << 31;
    let too_large = OffsetsProblem::TooLarge { index: 1, offset: wide, is_large: false };
    assert_eq!(problem(Producer::vector(&[0, wide]), &small), too_large);
    assert_eq!(problem(Producer::vector(&[0i64, 1 << 31]), &small), too_large);
    assert!(Error::BadOffsets(too_large).to_string().contains("large type"));
    let beyond = OffsetsProblem::Beyond { offset: 1 << 31, values: 4 };
    assert_eq!(problem(Producer::vector(&[0, wide]), &large), beyond);
    let too_large = OffsetsProblem::TooLarge { index: 1, offset: u64::MAX, is_large: true };
    assert_eq!(problem(Producer::vector(&[0, u64::MAX]), &large), too_large);
    assert!(too_large.to_string().ends_with("more than the largest int64"));

    let matrix = Producer::bytes(DLDataType::INT32, &[0; 8], &[1, 2], &[2, 1]);
    let wrong = Error::WrongRank { what: "offsets", expected: 1, ndim: 2 };
    assert_eq!(is_refused(&values, &matrix, &any), wrong);
    let away = Producer { device: device(2, 0), ..Producer::vector(&[0i32, 1]) };
    let unreadable = Error::UnreadableDevice { device: device(2, 0) };
    assert_eq!(is_refused(&values, &away, &any), unreadable);
    let values = Producer { device: device(2, 0), ..values };
    assert_eq!(is_refused(&values, &Producer::vector(&[0i32, 1]), &any), unreadable);
}

#[test]
fn strings_are_utf8() {
    let text = Producer::vector("aé\u{1F980}z".as_bytes());
    let utf8 = asking_for(DataType::Utf8);
    let (array, _) = becomes(&text, &Producer::vector(&[0, 1, 3, 7, 8]), &utf8);
    let rows: Vec<&str> = array.as_string::<i32>().iter().flatten().collect();
    assert_eq!(rows, ["a", "é", "\u{1F980}", "z"]);
    // Valid as a whole, but not row by row.
    let error = is_refused(&text, &Producer::vector(&[0, 1, 2, 8]), &utf8);
    assert_eq!(error, Error::NotUtf8 { row: Some(1) });
    let error = is_refused(&Producer::vector(&[b'a', 0xFF]), &Producer::vector(&[0, 1, 2]), &utf8);
    assert_eq!(error, Error::NotUtf8 { row: Some(1) });
    assert_eq!(error.to_string(), "row 1 is not UTF-8: ask for a binary type instead");
    // Values behind the last row are not checked. Those before the first one are checked by arrow-rs.
    let some = Producer::vector(&[b'b', b'a', 0xFF]);
    let (rows, watches) =
        ragged(&some, &Producer::vector(&[1i64, 2]), &asking_for(DataType::LargeUtf8));
    assert_eq!(rows.unwrap().0.as_string::<i64>().value(0), "a");
    watches.into_iter().for_each(Watch::released_once);
    // What lies before the first one arrow-rs 59 refuses, and 60 does not look at.
    let (rows, watches) =
        ragged(&Producer::vector(&[0xFF, b'a']), &Producer::vector(&[1, 2]), &utf8);
    match rows {
        Ok((array, _)) => assert_eq!(array.as_string::<i32>().value(0), "a"),
        Err(error) => assert_eq!(error, Error::NotUtf8 { row: None }),
    }
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn other_rows_than_these_there_are_not() {
    use DataType::{Binary, List, Utf8};
    let offsets = Producer::vector(&[0i32, 1, 2]);
    let law = |values: &Producer, data_type: DataType| {
        let error = is_refused(values, &offsets, &asking_for(data_type.clone()));
        let (Error::CannotBecome { field, .. } | Error::NotRows { field }) = &error else {
            panic!("{data_type}: {error}")
        };
        let is_of_rows = matches!(data_type, List(_) | Utf8 | Binary);
        assert_eq!(matches!(error, Error::CannotBecome { .. }), is_of_rows, "{error}");
        assert_eq!(field.data_type(), &data_type);
    };
    let bytes = Producer::vector(b"ab");
    law(&bytes, DataType::UInt8);
    law(&bytes, DataType::Utf8View);
    law(&bytes, DataType::new_fixed_size_list(DataType::UInt8, 2, true));
    law(&bytes, DataType::new_list(DataType::Int8, true));
    law(&Producer::vector(&[1i8, 2]), DataType::Utf8);
    law(&Producer::vector(&[1u16, 2]), DataType::Binary);
    let pairs = Producer::bytes(DLDataType::UINT8, b"abcd", &[2, 2], &[2, 1]);
    law(&pairs, DataType::Binary);
}
