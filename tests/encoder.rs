//! `Categories`, and `Encoder`: rows alone as what a batch of them is.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, Float32Array,
    Float64Array, Int8Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, NullArray,
    RecordBatch, RecordBatchIterator, RunArray, StringArray, StringViewArray, StructArray,
    TimestampMillisecondArray, record_batch,
};
use arrow_dlpack::batches::{
    Batch, BatchColumn, BatchOptions, Batches, Categories, ColumnOptions, Encoder, Form,
};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{Error, ErrorKind, ExportOptions, NullPolicy};
use arrow_schema::{DataType, Field, Schema};

fn words() -> Categories {
    Categories::try_new(Arc::new(StringArray::from(vec!["red", "green", "blue"])))
        .expect("of the test")
}

fn form(categories: Categories) -> ColumnOptions {
    ColumnOptions::default().with_form(Form::Categories(categories))
}

/// The one batch of a column.
fn read(column: ArrayRef, options: ColumnOptions) -> Result<Batch, Error> {
    let field = Field::new("x", column.data_type().clone(), true);
    read_as(column, field, options)
}

fn read_as(column: ArrayRef, field: Field, options: ColumnOptions) -> Result<Batch, Error> {
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("of the test");
    let options = BatchOptions::default().with_column_options("x", options);
    Batches::try_new(RecordBatchIterator::new([Ok(batch)], schema), &options)?
        .next()
        .expect("of the test")
}

fn codes(column: ArrayRef, options: ColumnOptions) -> Result<Vec<i32>, Error> {
    let batch = read(column, options)?;
    Ok(batch
        .tensor("x")
        .expect("of the test")
        .values
        .as_slice::<i32>()
        .expect("of the test")
        .to_vec())
}

#[test]
fn values_in_any_layout_have_the_codes_of_their_words() {
    let values = vec!["blue", "red", "blue"];
    let keys = Int8Array::from(vec![1, 0, 1]);
    // "none" is in the dictionary, and no row has it.
    let dictionary = StringArray::from(vec!["red", "blue", "none"]);
    let dictionary = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(dictionary)).unwrap();
    let runs: RunArray<Int32Type> = values.iter().map(|word| Some(*word)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(values.clone())),
        Arc::new(LargeStringArray::from(values.clone())),
        Arc::new(StringViewArray::from(values.clone())),
        Arc::new(dictionary),
        Arc::new(runs),
    ];
    for column in columns {
        let own = format!("{}", column.data_type());
        assert_eq!(codes(column, form(words())), Ok(vec![2, 0, 2]), "{own}");
    }
    let longer: Vec<&str> = std::iter::repeat_n(values, 1000).flatten().collect();
    let sliced = StringArray::from(longer).slice(1, 5);
    assert_eq!(codes(Arc::new(sliced), form(words())), Ok(vec![0, 2, 2, 0, 2]));
}

#[test]
fn floats_are_words_by_their_values() {
    let of = Float64Array::from(vec![f64::NAN, 0.0, 1.5]);
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
    let column = Float64Array::from(vec![-0.0, 1.5, -f64::NAN, other_nan, 0.0]);
    let categories = Categories::try_new(Arc::new(of)).unwrap();
    assert_eq!(codes(Arc::new(column), form(categories)), Ok(vec![1, 2, 0, 0, 1]));
    for twice in [vec![0.0, 1.0, -0.0], vec![f64::NAN, 1.0, other_nan]] {
        let refused = Categories::try_new(Arc::new(Float64Array::from(twice)));
        assert_eq!(refused.unwrap_err(), Error::EqualCategories { first: 0, second: 2 });
    }
}

#[test]
fn values_of_every_other_type_are_words() {
    let bools: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![5, -5]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..], b""]));
    for words in [bools, times, bytes, Arc::new(Int64Array::from(vec![i64::MIN, 7]))] {
        let categories = Categories::try_new(Arc::clone(&words)).unwrap();
        assert_eq!(codes(words, form(categories)), Ok(vec![0, 1]));
    }
    let truths = Categories::try_new(Arc::new(BooleanArray::from(vec![true, false]))).unwrap();
    let field = Extension::Bool8.annotate(Field::new("x", DataType::Int8, true));
    let batch = read_as(Arc::new(Int8Array::from(vec![0, 5, 1])), field, form(truths)).unwrap();
    assert_eq!(batch.tensor("x").unwrap().values.as_slice::<i32>(), Some(&[1, 0, 0][..]));
}

#[test]
fn a_value_that_is_no_word_is_shown() {
    let shown = |known: ArrayRef, other: ArrayRef| {
        let categories = Categories::try_new(known).unwrap();
        let refused = codes(other, form(categories)).unwrap_err().to_string();
        refused.split(", which").next().unwrap().replace("column \"x\": ", "")
    };
    let text: ArrayRef = Arc::new(LargeStringArray::from(vec!["a"]));
    let view: ArrayRef = Arc::new(StringViewArray::from(vec!["\"b"]));
    assert_eq!(shown(Arc::clone(&view), Arc::clone(&text)), "\"a\"");
    assert_eq!(shown(text, view), "\"\\\"b\"");
    let bools = |value| Arc::new(BooleanArray::from(vec![value]));
    assert_eq!(shown(bools(true), bools(false)), "false");
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\x00a"[..]]));
    let large: ArrayRef = Arc::new(LargeBinaryArray::from(vec![&b"b"[..]]));
    let views: ArrayRef = Arc::new(BinaryViewArray::from(vec![&b"c"[..]]));
    assert_eq!(shown(Arc::clone(&large), Arc::clone(&binary)), "b\"\\x00a\"");
    assert_eq!(shown(Arc::clone(&views), large), "b\"b\"");
    assert_eq!(shown(binary, views), "b\"c\"");
    let numbers = |value| Arc::new(Int64Array::from(vec![value]));
    assert_eq!(shown(numbers(1), numbers(-2)), "-2");
    let times = |value| Arc::new(TimestampMillisecondArray::from(vec![value]));
    assert_eq!(shown(times(1), times(5)), "5 of Timestamp(ms)");
}

#[test]
fn categories_are_equal_by_their_words_and_the_code_of_others() {
    let categories = words();
    assert_eq!(categories, words());
    assert_eq!(categories.words().as_ref(), &StringArray::from(vec!["red", "green", "blue"]));
    assert_eq!(categories.unknown(), None);
    let unknown = categories.clone().with_unknown(7);
    assert_eq!(unknown.unknown(), Some(7));
    assert_ne!(categories, unknown);
    let other = Categories::try_new(Arc::new(StringArray::from(vec!["red"]))).unwrap();
    assert_ne!(categories, other);
    let schema = Schema::new(vec![Field::new("x", DataType::Utf8, true)]);
    let options = BatchOptions::default().with_column_options("x", form(categories));
    let encoder = Encoder::try_new(&schema, &options).unwrap();
    assert!(format!("{encoder:?}").starts_with("Encoder { schema: Schema {"));
}

#[test]
fn nulls_and_unknown_values_become_what_the_options_say() {
    let column: ArrayRef = Arc::new(StringArray::from(vec![Some("red"), None, Some("pink")]));
    let refused = codes(Arc::clone(&column), form(words())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Value);
    assert_eq!(
        refused.to_string(),
        "column \"x\": \"pink\", which is not among the 3 categories: Categories::with_unknown gives \
         others a code"
    );
    let unknown = words().with_unknown(7);
    let refused = codes(Arc::clone(&column), form(unknown.clone())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Nulls);
    let options = form(unknown.clone()).with_nulls(-1);
    assert_eq!(codes(Arc::clone(&column), options), Ok(vec![0, -1, 7]));
    let options = form(unknown.clone()).with_nulls(NullPolicy::Masked);
    let batch = read(column, options).unwrap();
    let mask = batch.tensor("x").unwrap().mask.as_ref().unwrap();
    assert_eq!(mask.as_bool_bytes().unwrap(), [1, 0, 1]);
    let nulls = Arc::new(NullArray::new(2));
    assert_eq!(codes(nulls, form(unknown).with_nulls(-1)), Ok(vec![-1, -1]));
    let many = StringArray::from(vec!["pink", "red", "grey", "pink"]);
    let refused = codes(Arc::new(many), form(words())).unwrap_err();
    let leaf = refused.leaves().next().map(|(_, leaf)| leaf.clone());
    assert!(
        matches!(leaf, Some(Error::NotACategory { row: 0, more: 1, categories: 3, .. })),
        "{refused}"
    );
}

#[test]
fn what_cannot_be_words_is_refused() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let refused = Categories::try_new(Arc::new(lists)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Type);
    let refused = codes(Arc::new(Int64Array::from(vec![1])), form(words())).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "column \"x\": Int64 has no values that are words of Utf8: cast one of them"
    );
    let bytes = BinaryArray::from(vec![&b"red"[..]]);
    assert!(codes(Arc::new(bytes), form(words())).is_err());
}

#[test]
fn a_null_among_the_words_is_a_code_that_no_value_has() {
    let some = StringArray::from(vec![None, Some("red"), None, Some("blue")]);
    let categories = Categories::try_new(Arc::new(some)).unwrap();
    let column = Arc::new(StringArray::from(vec!["blue", "red"]));
    assert_eq!(codes(column, form(categories.clone())), Ok(vec![3, 1]));
    let green = Arc::new(StringArray::from(vec!["green"]));
    assert!(codes(green, form(categories)).is_err());
}

#[test]
fn codes_are_columns_of_a_matrix_and_labels() {
    let table = record_batch!(
        ("x", Float64, [0.5, 1.5]),
        ("c", Utf8, ["blue", "red"]),
        ("y", Utf8, ["green", "red"])
    )
    .unwrap();
    let options = BatchOptions::default()
        .with_matrix(true)
        .with_export(ExportOptions::default().with_dtype(DLDataType::FLOAT32))
        .with_column_options("c", form(words()))
        .with_column_options("y", form(words()).with_dtype(DLDataType::INT64))
        .with_label("y");
    let schema = table.schema();
    let reader = RecordBatchIterator::new([Ok(table.clone())], Arc::clone(&schema));
    let batch = Batches::try_new(reader, &options).unwrap().next().unwrap().unwrap();
    let encoder = Encoder::try_new(&schema, &options).unwrap();
    let encoded = encoder.encode_with_labels(&table).unwrap();
    for batch in [batch, encoded] {
        let matrix = &batch.matrix().unwrap().values;
        assert_eq!(matrix.as_slice::<f32>(), Some(&[0.5, 2.0, 1.5, 0.0][..]));
        let label = batch.label().and_then(BatchColumn::tensor).unwrap();
        assert_eq!(label.values.as_slice::<i64>(), Some(&[1, 0][..]));
    }
    // Without the label, in another order, with another column.
    let request = record_batch!(("z", Int8, [1]), ("c", Utf8, ["red"]), ("x", Float64, [9.0]));
    let encoded = encoder.encode(&request.unwrap()).unwrap();
    assert_eq!(encoded.matrix().unwrap().values.as_slice::<f32>(), Some(&[9.0, 0.0][..]));
    assert!(encoded.labels.is_empty());
}

#[test]
fn an_encoder_names_what_does_not_fit() {
    let schema = Schema::new(vec![
        Field::new("x", DataType::Float64, false),
        Field::new(
            "w",
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
            true,
        ),
    ]);
    let physical = ExportOptions::default().with_physical(true);
    let options = BatchOptions::default().with_export(physical);
    let refused = Encoder::try_new(&schema, &options).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("column \"w\": codes of a dictionary are those of one source")
    );
    let options = BatchOptions::default().with_columns(["x"]);
    let encoder = Encoder::try_new(&schema, &options).unwrap();
    let other = record_batch!(("y", Float64, [1.0])).unwrap();
    assert!(matches!(encoder.encode(&other), Err(Error::NoSuchColumns { .. })));
    let singles: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
    let other = RecordBatch::try_from_iter([("x", singles)]).unwrap();
    let refused = encoder.encode(&other).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Mismatch);
    assert_eq!(encoder.schema().fields().len(), 1);
}

#[test]
fn calls_of_an_encoder_do_not_depend_on_one_another() {
    let lists = |rows: &[&[i32]]| {
        let rows = rows.iter().map(|row| Some(row.iter().map(|&value| Some(value))));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
        RecordBatch::try_from_iter([("x", lists)]).unwrap()
    };
    let dense = ColumnOptions::default().with_form(Form::Dense(None));
    let options = BatchOptions::default().with_column_options("x", dense);
    let encoder = Encoder::try_new(&lists(&[&[1]]).schema(), &options).unwrap();
    for (rows, shape) in [(lists(&[&[1, 2]]), [1, 2]), (lists(&[&[1, 2, 3], &[4, 5, 6]]), [2, 3])] {
        let batch = encoder.encode(&rows).unwrap();
        assert_eq!(batch.tensor("x").unwrap().values.shape(), shape);
    }
    assert!(encoder.encode(&lists(&[&[1], &[2, 3]])).is_err());
    std::thread::scope(|scope| {
        for length in 1..5 {
            let encoder = &encoder;
            scope.spawn(move || {
                let row: Vec<i32> = (0..length).collect();
                for _ in 0..100 {
                    let batch = encoder.encode(&lists(&[&row, &row])).unwrap();
                    let shape = [2, i64::from(length)];
                    assert_eq!(batch.tensor("x").unwrap().values.shape(), shape);
                }
            });
        }
    });
}

#[test]
fn rows_without_columns_and_no_rows_are_batches() {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let encoder = Encoder::try_new(&schema, &BatchOptions::default()).unwrap();
    let batch = encoder.encode(&RecordBatch::new_empty(Arc::new(schema))).unwrap();
    assert_eq!(batch.tensor("x").unwrap().values.shape(), [0]);
    let empty = RecordBatch::from(StructArray::new_empty_fields(3, None));
    let refused = encoder.encode(&empty).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Name);
}
