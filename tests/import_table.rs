//! Tensors become the columns of a table: each at its address where it can stay, and all or none.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int8Array,
    Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray, types,
};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, CopyReason, Error, ExportOptions, ImportOptions, NullPolicy, Representation,
    export, import,
};
use arrow_schema::{DataType, Field, TimeUnit};

use logical::{leaf, logical};
use support::{Abi, Data, Ints, Producer, Random, Watch, device, dtype, import as options};

mod logical;
mod support;

fn batch_of(
    producers: Vec<(&str, Producer)>,
    options: &ImportOptions,
) -> (Result<RecordBatch, Error>, Vec<Watch>) {
    let (mut columns, mut watches) = (Vec::new(), Vec::new());
    for (name, producer) in producers {
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        columns.push((name.to_owned(), tensor.expect("a true descriptor")));
        watches.push(watch);
    }
    (import::record_batch(columns, options), watches)
}

fn columns_of(
    producer: &Producer,
    names: &[&str],
    options: &ImportOptions,
) -> (Result<RecordBatch, Error>, Watch) {
    let (tensor, watch) = producer.clone().tensor(Abi::Versioned);
    (import::matrix(tensor.expect("a true descriptor"), names, options), watch)
}

/// A matrix of int16 over the numbers from 0 on, of which `origin` is the first element.
fn matrix(shape: [i64; 2], strides: [i64; 2], origin: usize) -> Producer {
    let bytes: Vec<u8> = (0i16..200).flat_map(i16::to_ne_bytes).collect();
    let producer = Producer::bytes(DLDataType::INT16, &[], &shape, &strides);
    Producer { data: Data::Bytes { bytes, origin: origin * 2, misalign: 0 }, ..producer }
}

/// What the strides say of the column of a `matrix`.
fn column([rows, _]: [i64; 2], strides: [i64; 2], origin: usize, column: i64) -> Vec<i16> {
    let origin = i64::try_from(origin).expect("small") + column * strides[1];
    (0..rows).map(|row| i16::try_from(origin + row * strides[0]).expect("small")).collect()
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[test]
fn each_tensor_is_a_column_under_its_name() {
    let images = Producer::bytes(DLDataType::UINT8, &[9; 12], &[2, 2, 3], &[6, 3, 1]);
    let producers = vec![
        ("id", Producer::vector(&[7i64, 8])),
        ("image", images),
        ("flag", Producer::bytes(dtype(6, 8, 1), &[1, 0], &[2], &[1])),
        ("", Producer { shape: [2].into(), strides: [0].into(), ..Producer::vector(&[0.5f32]) }),
    ];
    let (batch, watches) = batch_of(producers, &ImportOptions::default());
    let batch = batch.unwrap();
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "image", "flag", ""]);
    assert_eq!(batch.num_rows(), 2);
    let shared: Vec<bool> = watches.iter().map(|watch| watch.deletions() == 0).collect();
    assert_eq!(shared, [true, true, false, false]);
    assert_eq!(leaf(batch.column(1)).as_ptr().addr(), watches[1].data());
    assert_eq!(schema.field(1).extension_type_name(), Some("arrow.fixed_shape_tensor"));
    assert_eq!(batch.column(3).as_primitive::<types::Float32Type>().values(), &[0.5, 0.5]);
    drop(batch);
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn a_table_is_made_of_all_its_tensors_or_of_none() {
    let fails = |producers, copy| {
        let (batch, watches) = batch_of(producers, &options(copy));
        watches.into_iter().for_each(Watch::released_once);
        batch.unwrap_err()
    };
    let three = || Producer::vector(&[1i32, 2, 3]);
    let error = fails(vec![("a", three()), ("b", three()), ("a", three())], CopyPolicy::IfNeeded);
    assert_eq!(error, Error::DuplicateName("a".into()));
    let two = Producer::vector(&[1i64, 2]);
    let error = fails(vec![("a", three()), ("b", two)], CopyPolicy::IfNeeded);
    let unequal = Error::ColumnLength { name: "b".into(), rows: 2, expected: 3 };
    assert_eq!(error, unequal);
    assert_eq!(error.to_string(), "column \"b\" has 2 rows, but the first column has 3");
    let scalar = Producer { ndim: 0, ..Producer::vector(&[1i64]) };
    let error = fails(vec![("a", scalar), ("b", three())], CopyPolicy::IfNeeded);
    assert_eq!(error, Error::ColumnLength { name: "b".into(), rows: 3, expected: 1 });

    let strange = Producer { dtype: dtype(3, 32, 1), ..three() };
    let error = fails(vec![("a", three()), ("b", strange)], CopyPolicy::IfNeeded);
    assert!(error.to_string().starts_with("column \"b\": opaque_handle32 has no"), "{error}");
    assert!(error.is_type_refusal());
    let away = Producer { device: device(2, 0), ..three() };
    let error = fails(vec![("a", three()), ("b", away)], CopyPolicy::IfNeeded);
    assert!(error.to_string().contains("cuda:0") && !error.is_type_refusal(), "{error}");
    let backwards = Producer { shape: [1].into(), strides: [-1].into(), ..three() };
    let strided = Producer { strides: [0].into(), ..three() };
    let error = fails(vec![("a", three()), ("b", strided)], CopyPolicy::Never);
    let reason = CopyReason::Strided { axis: 0, stride: 0, expected: 1 };
    let forbidden = Box::new(Error::CopyForbidden { reason, nbytes: 12 });
    assert_eq!(error, Error::Column { name: "b".into(), error: forbidden });
    let (batch, watches) = batch_of(vec![("a", backwards)], &options(CopyPolicy::Never));
    assert_eq!(batch.unwrap().num_rows(), 1);
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn a_table_of_nothing_is_one() {
    let batch = import::record_batch(Vec::new(), &ImportOptions::default()).unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (0, 0));
    let none = matrix([5, 0], [1, 1], 0);
    let (batch, watch) = columns_of(&none, &[], &options(CopyPolicy::Never));
    let batch = batch.unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (5, 0));
    watch.released_once();
    let none = Producer { data: Data::Null, ..matrix([0, 2], [-4, 9], 0) };
    let (batch, watch) = columns_of(&none, &NAMES[..2], &options(CopyPolicy::Never));
    let batch = batch.unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (0, 2));
    watch.released_once();
}

#[test]
fn columns_that_are_runs_stay_where_they_are() {
    for (shape, strides, origin) in [
        ([4, 3], [1, 4], 0),
        ([4, 3], [1, 7], 0),
        ([4, 3], [1, -5], 10),
        ([4, 3], [1, 0], 2),
        ([4, 3], [1, 1], 2),
        ([4, 1], [1, 0], 1),
        ([1, 5], [i64::MIN, 2], 0),
        ([1, 5], [3, -3], 12),
        ([3, 1], [1, i64::MIN], 5),
    ] {
        let producer = matrix(shape, strides, origin);
        let names = &NAMES[..usize::try_from(shape[1]).unwrap()];
        for copy in [CopyPolicy::Never, CopyPolicy::IfNeeded] {
            let (batch, watch) = columns_of(&producer, names, &options(copy));
            let batch = batch.unwrap();
            for (index, array) in (0..).zip(batch.columns()) {
                let step = if shape[1] == 1 { 0 } else { index * strides[1] };
                let at = watch.data().wrapping_add_signed(isize::try_from(step * 2).unwrap());
                let values = array.as_primitive::<types::Int16Type>().values();
                assert_eq!(values.inner().as_ptr().addr(), at, "{shape:?} {strides:?}");
                let strides = strides.map(|stride| if stride == i64::MIN { 0 } else { stride });
                assert_eq!(values, &column(shape, strides, origin, index));
                array.to_data().validate_full().unwrap();
            }
            // The last column is the last to hold the matrix.
            let last = batch.column(batch.num_columns() - 1).clone();
            drop(batch);
            assert_eq!(watch.deletions(), 0);
            drop(last);
            watch.released_once();
        }
    }
}

#[test]
fn other_columns_are_copied_together() {
    for (shape, strides, origin) in [
        ([4, 3], [3, 1], 0),
        ([4, 3], [-3, 1], 9),
        ([4, 3], [-1, 4], 3),
        ([4, 3], [0, 1], 0),
        ([4, 3], [7, 2], 5),
    ] {
        let producer = matrix(shape, strides, origin);
        let (batch, watch) = columns_of(&producer, &NAMES[..3], &options(CopyPolicy::Never));
        let reason = CopyReason::Strided { axis: 0, stride: strides[0], expected: 1 };
        assert_eq!(batch.unwrap_err(), Error::CopyForbidden { reason, nbytes: 24 });
        watch.released_once();

        let (batch, watch) = columns_of(&producer, &NAMES[..3], &options(CopyPolicy::IfNeeded));
        assert_eq!(watch.deletions(), 1);
        let batch = batch.unwrap();
        let mut at = None;
        for (index, array) in (0..).zip(batch.columns()) {
            let values = array.as_primitive::<types::Int16Type>().values();
            assert_eq!(values, &column(shape, strides, origin, index), "{shape:?} {strides:?}");
            // One behind the other: they are a matrix again without a copy.
            let start = values.inner().as_ptr().addr();
            assert_eq!(start, at.unwrap_or(start));
            at = Some(start + 8);
        }
        watch.released_once();
    }
}

#[test]
fn columns_of_any_dtype_are_those_of_its_slices() {
    let mut random = Random(0xC01);
    for (dtype, item) in [
        (dtype(6, 8, 1), 1),
        (dtype(4, 16, 1), 2),
        (dtype(5, 64, 1), 8),
        (dtype(10, 8, 1), 1),
        (dtype(0, 4, 1), 1),
        (dtype(2, 64, 1), 8),
    ] {
        for strides in [[1, 11], [3, 1], [2, 30]] {
            let bytes = random.bytes(99 * item);
            let whole = Producer::bytes(dtype, &bytes, &[11, 3], &strides);
            for copy in [CopyPolicy::IfNeeded, CopyPolicy::Always] {
                let (batch, watch) = columns_of(&whole, &NAMES[..3], &options(copy));
                let batch = batch.unwrap();
                for (index, array) in batch.columns().iter().enumerate() {
                    let padded = usize::from(dtype.bits) >= 8;
                    let offset = index * usize::try_from(strides[1]).unwrap() * item;
                    if !padded {
                        // It may begin in the middle of a byte.
                        continue;
                    }
                    let column = Producer {
                        ndim: 1,
                        byte_offset: u64::try_from(offset).unwrap(),
                        ..whole.clone()
                    };
                    let (expected, watch) = column.array(Abi::Versioned, CopyPolicy::IfNeeded);
                    assert_eq!(array.to_data(), expected.unwrap().to_data(), "{dtype} {strides:?}");
                    watch.released_once();
                }
                drop(batch);
                watch.released_once();
            }
        }
    }
    let int4 = Producer::bytes(dtype(0, 4, 1), &[0x10, 0x32, 0xF4], &[3, 2], &[2, 1]);
    let (batch, watch) = columns_of(&int4, &NAMES[..2], &ImportOptions::default());
    let batch = batch.unwrap();
    assert_eq!(batch.column(0).as_primitive::<types::Int8Type>().values(), &[0, 2, 4]);
    assert_eq!(batch.column(1).as_primitive::<types::Int8Type>().values(), &[1, 3, -1]);
    watch.released_once();
}

#[test]
fn columns_become_the_type_that_was_asked_for() {
    let date = Field::new("ignored", DataType::Timestamp(TimeUnit::Second, None), false);
    let representation = Representation::Field(Arc::new(date));
    let times = Producer::bytes(DLDataType::INT64, &[1; 48], &[2, 3], &[1, 2]);
    let asked =
        ImportOptions::default().with_representation(representation).with_copy(CopyPolicy::Never);
    let (batch, watch) = columns_of(&times, &NAMES[..3], &asked);
    let batch = batch.unwrap();
    for (field, name) in batch.schema().fields().iter().zip(NAMES) {
        assert_eq!((field.name().as_str(), field.is_nullable()), (name, false));
        assert_eq!(field.data_type(), &DataType::Timestamp(TimeUnit::Second, None));
    }
    drop(batch);
    watch.released_once();

    let bools = Producer::bytes(dtype(6, 8, 1), &[0, 1, 1, 0], &[2, 2], &[1, 2]);
    let asked = ImportOptions::default()
        .with_representation(Representation::Bool8)
        .with_copy(CopyPolicy::Never);
    let (batch, watch) = columns_of(&bools, &NAMES[..2], &asked);
    let batch = batch.unwrap();
    assert_eq!(logical(batch.column(1), batch.schema().field(1)).bytes, [1, 0]);
    assert_eq!(batch.schema().field(1).extension_type_name(), Some("arrow.bool8"));
    drop(batch);
    watch.released_once();
}

#[test]
fn a_matrix_has_a_name_for_each_column() {
    let fails = |producer: &Producer, names: &[&str]| {
        let (batch, watch) = columns_of(producer, names, &ImportOptions::default());
        watch.released_once();
        batch.unwrap_err()
    };
    let pair = matrix([3, 2], [2, 1], 0);
    assert_eq!(fails(&pair, &["a"]), Error::NameCount { names: 1, columns: 2 });
    assert_eq!(fails(&pair, &["b", "b"]), Error::DuplicateName("b".into()));
    let many = 1_usize << (usize::BITS / 8 * 5);
    let broadcast = matrix([3, many.try_into().unwrap()], [1, 0], 0);
    assert_eq!(fails(&broadcast, &["a"]), Error::NameCount { names: 1, columns: many });
    let flat = Producer::vector(&[1i16, 2]);
    let error = fails(&flat, &["a", "b"]);
    assert_eq!(error, Error::WrongRank { what: "a matrix", expected: 2, ndim: 1 });
    assert_eq!(error.to_string(), "a matrix must have 2 dimensions, not 1");
    let cube = Producer { ndim: 3, shape: [1, 1, 2].into(), strides: Ints::Null, ..flat };
    let error = fails(&cube, &["a"]);
    assert_eq!(error, Error::WrongRank { what: "a matrix", expected: 2, ndim: 3 });
    let away = Producer { device: device(2, 0), ..pair };
    let error = fails(&away, &["a", "b"]);
    assert_eq!(error, Error::UnreadableDevice { device: device(2, 0) });
}

/// The values of null slots are not compared: Arrow's are any.
#[test]
fn the_columns_of_a_table_come_back_with_their_names_types_and_nulls() {
    let pair = |values: [Option<i64>; 2]| Some(values);
    let rows = [pair([Some(1), None]), pair([None, Some(2)]), pair([Some(3), Some(4)])];
    let lists = FixedSizeListArray::from_iter_primitive::<types::Int64Type, _, _>(
        rows.map(|row| row.map(Vec::from)),
        2,
    );
    let words = StringArray::from(vec!["c", "b", "a"]);
    let words =
        DictionaryArray::new(Int8Array::from(vec![Some(2), None, Some(0)]), Arc::new(words));
    let columns: [(&str, ArrayRef); 6] = [
        ("words", Arc::new(words)),
        ("int", Arc::new(Int16Array::from(vec![Some(1), None, Some(3)]))),
        ("float", Arc::new(Float64Array::from(vec![0.5, 1.5, f64::NAN]))),
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        (
            "time",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(5), None, Some(7)]).with_timezone("UTC"),
            ),
        ),
        ("lists", Arc::new(lists)),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .unwrap();
    let options = ExportOptions::default().with_nulls(NullPolicy::Masked).with_physical(true);
    let made = export::columns(&batch, &options).unwrap();
    let again = import::columns(made, &ImportOptions::default()).unwrap();
    assert_eq!(again.schema(), batch.schema());
    for (again, column) in again.columns().iter().zip(batch.columns()) {
        let words = |array: &ArrayRef| format!("{array:?}");
        assert_eq!(words(again), words(column));
    }
}

#[test]
fn a_dictionary_of_a_column_has_its_codes_and_is_of_its_type() {
    let words: DictionaryArray<types::Int8Type> = vec!["a", "b"].into_iter().collect();
    let words: ArrayRef = Arc::new(words);
    let batch = RecordBatch::try_from_iter([("words", words)]).unwrap();
    let codes = ExportOptions::default().with_physical(true);
    let made = || export::columns(&batch, &codes).unwrap();
    let other = |array: ArrayRef| {
        let mut columns = made();
        columns[0].1.dictionary = Some(array);
        import::columns(columns, &ImportOptions::default())
    };
    assert_eq!(other(Arc::new(StringArray::from(vec!["a", "b"]))).unwrap(), batch);
    let wrong: [ArrayRef; 2] =
        [Arc::new(StringArray::from(vec!["a"])), Arc::new(Int8Array::from(vec![1, 2]))];
    for values in wrong {
        let Err(Error::Column { name, error }) = other(values) else { panic!("made") };
        assert!(name == "words" && matches!(*error, Error::InvalidArray(_)), "{error}");
    }

    // Any tensor is a column, of the field that is said.
    let scores = export::array(&Float64Array::from(vec![0.5, 1.5])).unwrap();
    let field = Arc::new(Field::new("score", DataType::Float64, false));
    let column = vec![(Arc::clone(&field), scores.into())];
    let made = import::columns(column, &ImportOptions::default()).unwrap();
    assert_eq!(made.schema().fields().to_vec(), [field]);
    assert_eq!(made.column(0).as_primitive::<types::Float64Type>().values(), &[0.5, 1.5]);
}
