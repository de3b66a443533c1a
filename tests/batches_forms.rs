//! The forms that columns have in batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, ListArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray,
};
use arrow_dlpack::batches::{
    Batch, BatchColumn, BatchOptions, Batches, ColumnOptions, Encoder, Features, Form, Shuffle,
};
use arrow_dlpack::export::PadOptions;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy};
use arrow_schema::{DataType, Field, Schema};

/// Row `i` is called `i`, has `i % 4` tokens `i`, and a pair of them.
fn chunk(rows: std::ops::Range<i64>) -> RecordBatch {
    let tokens = rows
        .clone()
        .map(|at| Some(vec![Some(at); usize::try_from(at % 4).expect("rows of the test")]));
    let pairs = rows.clone().map(|at| Some(vec![Some(at); 2]));
    let columns: [(&str, ArrayRef); 4] = [
        ("x", Arc::new(Int64Array::from_iter_values(rows.clone()))),
        ("tokens", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(tokens))),
        ("pair", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(pairs))),
        ("name", Arc::new(StringArray::from_iter_values(rows.map(|at| at.to_string())))),
    ];
    RecordBatch::try_from_iter(columns).expect("rows of the test")
}

fn open(options: &BatchOptions) -> Result<Batches, Error> {
    let chunks = [chunk(0..5), chunk(5..6), chunk(6..11)];
    let schema = chunks[0].schema();
    Batches::try_new(RecordBatchIterator::new(chunks.map(Ok), schema), options)
}

fn of(form: Form) -> ColumnOptions {
    ColumnOptions::default().with_form(form)
}

fn x_of(batch: &Batch) -> Vec<i64> {
    batch
        .tensor("x")
        .expect("rows of the test")
        .values
        .as_slice()
        .expect("rows of the test")
        .to_vec()
}

fn ints(tensor: &arrow_dlpack::ManagedTensor) -> &[i64] {
    tensor.as_slice().expect("rows of the test")
}

/// Checks that each row of a batch is that of its x.
fn check(batch: &Batch) {
    let x = x_of(batch);
    let Some(BatchColumn::Ragged(ragged, _)) = batch.column("tokens") else { panic!("ragged") };
    let ends = ragged.offsets.as_slice::<i32>().expect("rows of the test");
    for (at, &x) in x.iter().enumerate() {
        let [from, to] =
            [ends[at], ends[at + 1]].map(|end| usize::try_from(end).expect("rows of the test"));
        assert_eq!(
            ints(&ragged.values)[from..to],
            vec![x; usize::try_from(x % 4).expect("rows of the test")]
        );
    }
    let pair = batch.tensor("pair").expect("rows of the test");
    assert_eq!(pair.values.shape(), [i64::try_from(x.len()).expect("rows of the test"), 2]);
    assert_eq!(ints(&pair.values), x.iter().flat_map(|&x| [x, x]).collect::<Vec<_>>());
    let Some(BatchColumn::Arrow(names, field)) = batch.column("name") else { panic!("Arrow") };
    assert_eq!(field.name(), "name");
    let names: Vec<_> = names.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
    assert_eq!(names, x.iter().map(i64::to_string).collect::<Vec<_>>());
}

#[test]
fn every_form_has_each_row_once() {
    let forms = BatchOptions::default()
        .with_column_options("pair", of(Form::Dense(None)))
        .with_column_options("name", of(Form::Arrow));
    for size in [None, Some(1), Some(3), Some(4), Some(100)] {
        for prefetch in [0, 2] {
            let options = forms.clone().with_batch_size(size).with_prefetch(prefetch);
            let batches: Vec<_> = open(&options).unwrap().map(Result::unwrap).collect();
            batches.iter().for_each(check);
            assert_eq!(
                batches.iter().flat_map(x_of).collect::<Vec<_>>(),
                (0..11).collect::<Vec<_>>()
            );
            let Some(size) = size else { continue };
            let shuffled = options.with_shuffle(Shuffle { rows: size.min(6), seed: 3 });
            let batches: Vec<_> = open(&shuffled).unwrap().map(Result::unwrap).collect();
            batches.iter().for_each(check);
            let mut found: Vec<_> = batches.iter().flat_map(x_of).collect();
            found.sort_unstable();
            assert_eq!(found, (0..11).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_padded_column_has_a_width_and_a_dtype_of_its_own_and_so_has_the_label() {
    let pad = PadOptions::default().with_value(-1).with_max_length(2);
    let tokens = of(Form::Pad(pad)).with_dtype(DLDataType::FLOAT32);
    let options = BatchOptions::default()
        .with_columns(["tokens", "x"])
        .with_label("pair")
        .with_batch_size(4)
        .with_export(ExportOptions::default().with_dtype(DLDataType::INT32))
        .with_column_options("tokens", tokens)
        .with_column_options("pair", of(Form::Ragged));
    let batch = open(&options).unwrap().next().unwrap().unwrap();
    let Some(BatchColumn::Padded(padded, field)) = batch.column("tokens") else { panic!("padded") };
    assert_eq!((padded.values.shape(), padded.values.dtype()), (&[4, 2][..], DLDataType::FLOAT32));
    let values = padded.values.as_slice::<f32>().unwrap();
    assert_eq!(values, [-1.0, -1.0, 1.0, -1.0, 2.0, 2.0, 3.0, 3.0]);
    assert_eq!(padded.lengths.as_slice::<i64>(), Some(&[0, 1, 2, 2][..]));
    assert_eq!(field.name(), "tokens");
    assert_eq!(batch.tensor("x").unwrap().values.dtype(), DLDataType::INT32);
    let Some(BatchColumn::Ragged(label, _)) = batch.label() else { panic!("ragged") };
    assert_eq!(label.values.dtype(), DLDataType::INT64);

    let matrix = BatchOptions::default()
        .with_columns(["x"])
        .with_label("tokens")
        .with_matrix(true)
        .with_column_options("tokens", of(Form::Pad(pad)));
    let batch = open(&matrix).unwrap().next().unwrap().unwrap();
    assert!(matches!(&batch.features, Features::Matrix(_)));
    assert!(matches!(batch.label(), Some(BatchColumn::Padded(..))));
    let error = open(&matrix.with_column_options("x", of(Form::Tensor))).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions(_)), "{error}");
}

#[test]
fn what_a_column_becomes_does_not_depend_on_its_values() {
    let refused = |options: &BatchOptions| match open(options) {
        Err(Error::Column { name, error }) => (name, *error),
        other => panic!("{other:?}"),
    };
    let one = |name: &str| BatchOptions::default().with_columns([name]);
    let (name, error) = refused(&one("pair").with_column_options("pair", of(Form::Tensor)));
    assert_eq!((name.as_str(), matches!(error, Error::UnsupportedType { .. })), ("pair", true));
    let (name, error) = refused(&one("pair").with_matrix(true));
    assert_eq!((name.as_str(), matches!(error, Error::UnsupportedType { .. })), ("pair", true));
    let (name, _) = refused(&one("name"));
    assert_eq!(name, "name");
    assert!(open(&one("pair")).is_ok());

    let mut batches =
        open(&one("tokens").with_column_options("tokens", of(Form::Dense(None)))).unwrap();
    let Err(Error::Column { error, .. }) = batches.next().unwrap() else { panic!("uneven") };
    assert_eq!(*error, Error::RowLength { row: 1, length: 1, expected: 0 });

    let error = open(&one("x").with_column_options("tokens", of(Form::Ragged))).unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchColumns { missing, .. } if missing == &["tokens"]),
        "{error}"
    );
}

#[test]
fn a_mask_of_rows_and_the_nulls_of_one_column() {
    let rows = [Some(vec![Some(1)]), None, Some(vec![Some(2), Some(3)])];
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
    let batch = RecordBatch::try_from_iter([("tokens", lists)]).unwrap();
    let schema = batch.schema();
    let padded = of(Form::Pad(PadOptions::default())).with_nulls(NullPolicy::Masked);
    let options = BatchOptions::default().with_column_options("tokens", padded);
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let batch = Batches::try_new(reader, &options).unwrap().next().unwrap().unwrap();
    let Some(BatchColumn::Padded(padded, _)) = batch.column("tokens") else { panic!("padded") };
    assert_eq!(ints(&padded.values), [1, 0, 0, 0, 2, 3]);
    assert_eq!(padded.mask.as_ref().unwrap().as_bool_bytes(), Some(&[1, 0, 1][..]));
}

/// NaN for nulls makes floats of features; of labels only where they are floats already.
#[test]
fn a_label_keeps_its_type_where_nulls_become_nan() {
    let label_of = |name: &str, own: Option<NullPolicy>| {
        let nan = ExportOptions::default().with_nulls(NullPolicy::Nan);
        let options = BatchOptions::default().with_export(nan).with_label(name);
        let mut options_of_label = ColumnOptions::default();
        options_of_label.nulls = own;
        let options = options.with_column_options(name, options_of_label);
        open(&options.with_columns(["x", "pair"])).unwrap().next().unwrap().unwrap()
    };
    let batch = label_of("x", None);
    assert_eq!(batch.label().unwrap().tensor().unwrap().values.dtype(), DLDataType::INT64);
    let batch = label_of("x", Some(NullPolicy::Nan));
    assert_eq!(batch.label().unwrap().tensor().unwrap().values.dtype(), DLDataType::FLOAT64);
    let batch = label_of("pair", None);
    let Some(BatchColumn::Ragged(label, _)) = batch.label() else { panic!("ragged") };
    assert_eq!(label.values.dtype(), DLDataType::INT64);
    assert_eq!(batch.tensor("x").unwrap().values.dtype(), DLDataType::FLOAT64);
}

#[test]
fn several_labels_come_in_their_order_and_each_keeps_its_type() {
    let nan = ExportOptions::default().with_nulls(NullPolicy::Nan);
    let options = BatchOptions::default().with_export(nan).with_label("pair").with_label("x");
    let batch = open(&options.clone().with_columns(["x"])).unwrap().next().unwrap().unwrap();
    let Features::Columns(features) = &batch.features else { panic!("columns") };
    assert!(features.is_empty());
    let names = batch.labels.iter().map(|label| label.field().unwrap().name().as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["pair", "x"]);
    assert_eq!(batch.labels[1].tensor().unwrap().values.dtype(), DLDataType::INT64);
    assert!(matches!(batch.label(), Some(BatchColumn::Ragged(..))));
    let twice = open(&options.with_label("pair")).unwrap_err();
    assert_eq!(twice, Error::InvalidOptions("a label is named twice"));
}

#[test]
fn rows_are_handed_on_without_a_copy_where_they_are_of_one_chunk() {
    let options = BatchOptions::default()
        .with_columns(["name"])
        .with_column_options("name", of(Form::Arrow))
        .with_export(ExportOptions::default().with_copy(CopyPolicy::Never));
    assert_eq!(open(&options).unwrap().map(Result::unwrap).count(), 3);
    let error = open(&options.with_batch_size(100)).unwrap().next().unwrap().unwrap_err();
    let Error::Column { error, .. } = error else { panic!("{error}") };
    assert!(matches!(*error, Error::CopyForbidden { .. }));
}

/// The codes of a list have a dictionary in each batch, and codes mean one thing in all batches.
#[test]
fn codes_in_lists_are_refused_and_handed_on_as_they_are() {
    let words: DictionaryArray<Int8Type> = ["to", "be"].into_iter().collect();
    let item = Arc::new(arrow_schema::Field::new_list_field(words.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2]);
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(words.clone()), None));
    let words: ArrayRef = Arc::new(words.slice(0, 1));
    let batch = RecordBatch::try_from_iter([("lists", lists), ("words", words)]).unwrap();
    let open = |options: &BatchOptions| {
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        Batches::try_new(reader, options)
    };
    let physical = ExportOptions::default().with_physical(true);
    let options = BatchOptions::default().with_export(physical);
    assert!(matches!(open(&options), Err(Error::Column { name, .. }) if name == "lists"));
    let options = options
        .with_column_options("lists", of(Form::Arrow))
        .with_column_options("words", of(Form::Arrow));
    let made = open(&options).unwrap().next().unwrap().unwrap();
    for (name, field) in ["lists", "words"].into_iter().zip(batch.schema().fields()) {
        let Some(BatchColumn::Arrow(array, _)) = made.column(name) else { panic!("Arrow") };
        assert_eq!(array.data_type(), field.data_type());
    }
}

/// Lists of one length in two batches; the rows of the first are null.
fn lists_after_nulls(lengths: [usize; 2]) -> impl RecordBatchReader + Send + 'static {
    let batch = |rows: [Option<usize>; 2]| {
        let rows = rows.map(|length| length.map(|length| vec![Some(7); length]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
        RecordBatch::try_from_iter([("tokens", lists)])
    };
    let batches = vec![batch([None, None]), batch(lengths.map(Some))];
    let schema = batches[0].as_ref().expect("rows of the test").schema();
    RecordBatchIterator::new(batches.into_iter(), schema)
}

#[test]
fn dense_lists_have_the_length_that_was_asked_for_in_every_batch() {
    for matrix in [false, true] {
        let options = |length| {
            BatchOptions::default()
                .with_matrix(matrix)
                .with_export(ExportOptions::default().with_nulls(NullPolicy::fill(0)))
                .with_column_options("tokens", of(Form::Dense(length)))
        };
        let shape = |batch: Result<Batch, Error>| {
            let batch = batch.unwrap();
            let values = batch.matrix().or_else(|| batch.tensor("tokens")).unwrap().values.shape();
            values.to_vec()
        };
        let batches = Batches::try_new(lists_after_nulls([3, 3]), &options(Some(3))).unwrap();
        assert_eq!(batches.map(shape).collect::<Vec<_>>(), [[2, 3], [2, 3]]);

        let refused = Batches::try_new(lists_after_nulls([3, 3]), &options(None)).map(drop);
        let Err(Error::Column { error, .. }) = refused else { panic!("unknown") };
        assert!(matches!(*error, Error::InvalidOptions(_)), "{error}");

        let mut batches = Batches::try_new(lists_after_nulls([4, 4]), &options(Some(3))).unwrap();
        assert_eq!(shape(batches.next().unwrap()), [2, 3]);
        let Some(Err(Error::Column { error, .. })) = batches.next() else { panic!("uneven") };
        assert!(matches!(*error, Error::RowLength { length: 4, expected: 3, .. }), "{error}");
    }
}

/// Whatever the batches are, a row of another length is refused.
#[test]
fn dense_lists_have_one_length_in_all_batches() {
    let rows = [2, 2, 3].map(|length| Some(vec![Some(1); length]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
    let batch = RecordBatch::try_from_iter([("tokens", lists)]).unwrap();
    let options = BatchOptions::default().with_column_options("tokens", of(Form::Dense(None)));
    for size in [1, 2, 3] {
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        let mut batches = Batches::try_new(reader, &options.clone().with_batch_size(size)).unwrap();
        let Some(Err(Error::Column { error, .. })) = batches.find(Result::is_err) else {
            panic!("uneven")
        };
        assert!(matches!(*error, Error::RowLength { length: 3, expected: 2, .. }), "{error}");
    }
}

#[test]
fn a_length_is_for_lists_and_is_that_of_their_type() {
    let open = |name: &str, length| {
        open(
            &BatchOptions::default()
                .with_columns([name])
                .with_column_options(name, of(Form::Dense(length))),
        )
    };
    let Err(Error::Column { error, .. }) = open("x", Some(3)) else { panic!("numbers") };
    assert!(matches!(*error, Error::InvalidOptions(_)), "{error}");
    assert!(open("x", None).is_ok());
    let pairs = DataType::new_fixed_size_list(DataType::Int64, 2, true);
    let schema = Schema::new(vec![Field::new("x", pairs, true)]);
    let trained = |length| {
        let options = BatchOptions::default().with_column_options("x", of(Form::Dense(length)));
        Encoder::try_new(&schema, &options)
    };
    assert!(trained(Some(2)).is_ok());
    let Err(Error::Column { error, .. }) = trained(Some(3)) else { panic!("pairs") };
    assert_eq!(*error, Error::RowLength { row: 0, length: 2, expected: 3 });
}
