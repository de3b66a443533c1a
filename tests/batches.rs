//! Batches of tensors from any reader of record batches: each row once, whatever the reader's batches are.

use std::error::Error as _;
use std::iter::FusedIterator;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float32Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, cast::AsArray, record_batch,
};
use arrow_dlpack::batches::{
    Batch, BatchColumn, BatchOptions, BatchTensor, Batches, Features, Shard, Shuffle,
};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy, Order};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

const ROWS: i64 = if cfg!(miri) { 20 } else { 60 };

fn schema() -> SchemaRef {
    let x = Field::new("x", DataType::Int64, false);
    Arc::new(Schema::new(vec![x, Field::new("y", DataType::Float32, false)]))
}

/// Rows that are numbered, and half of each number.
fn rows(numbers: impl Iterator<Item = i64>) -> RecordBatch {
    let x = Int64Array::from_iter_values(numbers);
    let y = Float32Array::from_iter_values(x.values().iter().map(|&x| half(x)));
    RecordBatch::try_new(schema(), vec![Arc::new(x), Arc::new(y)]).expect("rows of the test")
}

fn half(x: i64) -> f32 {
    f32::from(i16::try_from(x).expect("rows of the test")) / 2.0
}

/// `ROWS` rows in chunks of these lengths, again and again.
fn chunks(lengths: &[i64]) -> Vec<RecordBatch> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    for &length in lengths.iter().cycle() {
        if start == ROWS {
            break;
        }
        let end = ROWS.min(start + length);
        chunks.push(rows(start..end));
        start = end;
    }
    chunks
}

const CHUNKINGS: [&[i64]; 4] = [&[ROWS], &[1], &[0, 7, 0, 13, 2], &[9, 10]];

fn reader(chunks: Vec<RecordBatch>) -> impl RecordBatchReader + Send + 'static {
    let schema = chunks[0].schema();
    RecordBatchIterator::new(chunks.into_iter().map(Ok), schema)
}

fn open(chunks: Vec<RecordBatch>, options: &BatchOptions) -> Batches {
    Batches::try_new(reader(chunks), options).expect("rows of the test")
}

fn numbers(batch: &Batch) -> Vec<i64> {
    let x = batch
        .tensor("x")
        .expect("rows of the test")
        .values
        .as_slice::<i64>()
        .expect("rows of the test")
        .to_vec();
    let y = batch
        .tensor("y")
        .expect("rows of the test")
        .values
        .as_slice::<f32>()
        .expect("rows of the test");
    assert_eq!(x.iter().map(|&x| half(x)).collect::<Vec<_>>(), y);
    assert_eq!(batch.rows, x.len());
    x
}

fn all(batches: Batches) -> Vec<Vec<i64>> {
    batches.map(|batch| numbers(&batch.expect("rows of the test"))).collect()
}

/// The rows of all batches, and the error that ended them.
fn drained(batches: &mut Batches) -> (Vec<i64>, Option<Error>) {
    let mut found = Vec::new();
    for batch in batches.by_ref() {
        match batch {
            Ok(batch) => found.extend(numbers(&batch)),
            Err(error) => {
                assert!(batches.next().is_none(), "an error is the end");
                return (found, Some(error));
            }
        }
    }
    assert!(batches.next().is_none());
    (found, None)
}

/// A reader that does what it is asked to at each batch, and says when it is dropped.
struct Source<F> {
    schema: SchemaRef,
    next: F,
    read: Arc<AtomicUsize>,
    is_dropped: Arc<AtomicBool>,
}

impl<F: FnMut(usize) -> Option<Result<RecordBatch, ArrowError>>> Source<F> {
    fn new(next: F) -> Self {
        Self { schema: schema(), next, read: Arc::default(), is_dropped: Arc::default() }
    }
}

impl<F: FnMut(usize) -> Option<Result<RecordBatch, ArrowError>>> Iterator for Source<F> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next)(self.read.fetch_add(1, Ordering::SeqCst))
    }
}

impl<F: FnMut(usize) -> Option<Result<RecordBatch, ArrowError>>> RecordBatchReader for Source<F> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl<F> Drop for Source<F> {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }
}

/// The tenth part of a hundred rows that has this index.
fn ten(index: usize) -> RecordBatch {
    let start = i64::try_from(index).expect("rows of the test") * 10;
    rows(start..start + 10)
}

#[test]
fn they_go_to_other_threads_and_end_once() {
    fn check<T: Send + FusedIterator + std::fmt::Debug>() {}
    fn check_batch<T: Send + Sync + std::fmt::Debug>() {}
    check::<Batches>();
    check_batch::<Batch>();
}

#[test]
fn each_row_comes_once_and_in_order_in_batches_of_the_size() {
    let sizes: &[usize] = if cfg!(miri) { &[7] } else { &[1, 2, 7, 10, 59, 60, 61, 1000] };
    for (lengths, prefetch) in CHUNKINGS.iter().flat_map(|lengths| [0, 1, 3].map(|n| (lengths, n)))
    {
        for &size in sizes {
            let options = BatchOptions::default().with_batch_size(size).with_prefetch(prefetch);
            let found = all(open(chunks(lengths), &options));
            let expected: Vec<_> = (0..ROWS).collect();
            assert_eq!(found, expected.chunks(size).collect::<Vec<_>>(), "{lengths:?} {size}");

            let found = all(open(chunks(lengths), &options.with_drop_last(true)));
            assert_eq!(found, expected.chunks_exact(size).collect::<Vec<_>>());
        }
        let options = BatchOptions::default().with_prefetch(prefetch);
        let found = all(open(chunks(lengths), &options));
        let expected = chunks(lengths).into_iter().filter(|chunk| chunk.num_rows() > 0);
        let expected: Vec<_> = expected
            .map(|chunk| chunk.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(found, expected, "the reader's batches, but for empty ones");
    }
}

#[test]
fn a_shuffle_has_each_row_once_and_the_same_order_for_the_same_seed() {
    let shuffled = |lengths, rows, seed, prefetch| {
        let options =
            BatchOptions::default().with_batch_size(7).with_shuffle(Shuffle { rows, seed });
        all(open(chunks(lengths), &options.with_prefetch(prefetch)))
    };
    let buffers: &[usize] = if cfg!(miri) { &[16] } else { &[0, 1, 16, 1000] };
    for &rows in buffers {
        let first = shuffled(CHUNKINGS[0], rows, 42, 0);
        let lengths: Vec<_> = first.iter().map(Vec::len).collect();
        assert!(lengths[..lengths.len() - 1].iter().all(|&length| length == 7));
        for chunking in CHUNKINGS {
            assert_eq!(shuffled(chunking, rows, 42, 0), first, "{chunking:?} {rows}");
            assert_eq!(shuffled(chunking, rows, 42, 2), first);
        }
        let mut found = first.concat();
        assert_ne!(found, (0..ROWS).collect::<Vec<_>>());
        assert_ne!(found, shuffled(CHUNKINGS[0], rows, 43, 0).concat());
        found.sort_unstable();
        assert_eq!(found, (0..ROWS).collect::<Vec<_>>());
    }
}

#[test]
fn shards_have_each_row_once_together() {
    for (lengths, count) in CHUNKINGS.iter().flat_map(|lengths| [1, 2, 5, 20].map(|n| (lengths, n)))
    {
        for shuffle in [None, Some(Shuffle { rows: 10, seed: 7 })] {
            let mut found = Vec::new();
            for index in 0..count {
                let options = BatchOptions::default().with_batch_size(4).with_shuffle(shuffle);
                let options = options.with_shard(Shard { index, count });
                let part = all(open(chunks(lengths), &options)).concat();
                if shuffle.is_none() {
                    let mine = |&row: &i64| usize::try_from(row).unwrap() / 4 % count == index;
                    assert_eq!(part, (0..ROWS).filter(mine).collect::<Vec<_>>());
                }
                found.extend(part);
            }
            found.sort_unstable();
            assert_eq!(found, (0..ROWS).collect::<Vec<_>>(), "{lengths:?} {count}");
        }
    }
}

#[test]
fn an_error_of_the_reader_comes_after_all_rows_before_it_and_has_its_cause() {
    for (fails_at, prefetch) in (0..4).flat_map(|at| [0, 1, 3].map(|prefetch| (at, prefetch))) {
        for size in [None, Some(1), Some(7), Some(1000)] {
            let source = Source::new(move |index| {
                Some(match index == fails_at {
                    false => Ok(ten(index)),
                    true => Err(ArrowError::ParseError("on fire".to_owned())),
                })
            });
            let is_dropped = Arc::clone(&source.is_dropped);
            let mut options = BatchOptions::default().with_batch_size(size).with_prefetch(prefetch);
            if size == Some(7) {
                options = options.with_shuffle(Shuffle { rows: 15, seed: 0 });
            }
            let mut batches = Batches::try_new(source, &options).unwrap();
            let (mut found, error) = drained(&mut batches);
            found.sort_unstable();
            let before = i64::try_from(fails_at).unwrap() * 10;
            assert_eq!(found, (0..before).collect::<Vec<_>>());
            let error = error.unwrap();
            assert_eq!(error.to_string(), "the reader failed: Parser error: on fire");
            let cause = error.source().unwrap().downcast_ref();
            assert!(matches!(cause, Some(ArrowError::ParseError(_))));
            assert_eq!(error, error.clone());
            assert!(is_dropped.load(Ordering::SeqCst));
        }
    }
}

#[test]
fn a_panic_of_the_reader_is_an_error_and_the_end() {
    for prefetch in [0, 2] {
        let source = Source::new(|index| {
            assert!(index < 3, "the disk is on fire");
            Some(Ok(ten(index)))
        });
        let is_dropped = Arc::clone(&source.is_dropped);
        let options = BatchOptions::default().with_prefetch(prefetch);
        let mut batches = Batches::try_new(source, &options).unwrap();
        let (found, error) = drained(&mut batches);
        assert_eq!(found, (0..30).collect::<Vec<_>>());
        assert_eq!(error, Some(Error::Panicked("the disk is on fire".to_owned())));
        assert!(is_dropped.load(Ordering::SeqCst));
    }
}

#[test]
fn a_reader_that_breaks_its_promise_is_an_error_after_the_rows_before() {
    let other = record_batch!(("x", Int32, [1]), ("y", Float32, [1.0])).unwrap();
    let fewer = record_batch!(("x", Int64, [1])).unwrap();
    let mismatch = Error::FieldMismatch { field: DataType::Int64, array: DataType::Int32 };
    for (wrong, expected) in
        [(other, mismatch), (fewer, Error::ColumnCount { fields: 2, columns: 1 })]
    {
        let source =
            Source::new(move |index| Some(Ok(if index < 2 { ten(index) } else { wrong.clone() })));
        let mut batches =
            Batches::try_new(source, &BatchOptions::default().with_batch_size(15)).unwrap();
        assert_eq!(drained(&mut batches), ((0..20).collect(), Some(expected)));
    }
}

#[test]
fn dropping_them_drops_the_reader() {
    for (taken, prefetch) in (0..4).flat_map(|taken| [0, 1, 3].map(|prefetch| (taken, prefetch))) {
        let source = Source::new(|index| Some(Ok(ten(index))));
        let (is_dropped, read) = (Arc::clone(&source.is_dropped), Arc::clone(&source.read));
        let options = BatchOptions::default().with_prefetch(prefetch);
        let mut batches = Batches::try_new(source, &options).unwrap();
        let kept: Vec<_> = batches.by_ref().take(taken).map(Result::unwrap).collect();
        assert!(!is_dropped.load(Ordering::SeqCst));
        drop(batches);
        assert!(is_dropped.load(Ordering::SeqCst));
        assert!(read.load(Ordering::SeqCst) <= taken + prefetch + 1);
        // What was handed out stays.
        assert_eq!(kept.iter().flat_map(numbers).count(), taken * 10);
    }
}

/// The thread does not wait for itself.
#[test]
fn the_reader_may_drop_the_batches_that_it_is_read_for() {
    let (lend, lent) = mpsc::channel::<Batches>();
    let (tell, told) = mpsc::channel();
    let source = Source::new(move |index| {
        if index == 1 {
            let begun = Instant::now();
            drop(lent.recv().unwrap());
            tell.send(begun.elapsed()).unwrap();
        }
        Some(Ok(ten(index)))
    });
    let (is_dropped, read) = (Arc::clone(&source.is_dropped), Arc::clone(&source.read));
    let options = BatchOptions::default().with_prefetch(2);
    lend.send(Batches::try_new(source, &options).unwrap()).unwrap();
    let waited = told.recv().unwrap();
    while !is_dropped.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    assert_eq!(read.load(Ordering::SeqCst), 2);
    assert!(cfg!(miri) || waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn so_many_batches_are_made_ahead_and_no_more() {
    let source = Source::new(|index| Some(Ok(ten(index))));
    let read = Arc::clone(&source.read);
    let options = BatchOptions::default().with_prefetch(2);
    let mut batches = Batches::try_new(source, &options).unwrap();
    for taken in 0..3 {
        while read.load(Ordering::SeqCst) < taken + 2 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        assert_eq!(read.load(Ordering::SeqCst), taken + 2);
        batches.next().unwrap().unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "waits for a second of the clock")]
fn dropping_them_waits_only_so_long_for_a_reader_that_waits() {
    let (go, gone) = mpsc::channel::<()>();
    let source = Source::new(move |index| {
        if index == 1 {
            gone.recv().unwrap_err();
        }
        Some(Ok(ten(index)))
    });
    let (is_dropped, read) = (Arc::clone(&source.is_dropped), Arc::clone(&source.read));
    let options = BatchOptions::default().with_prefetch(2);
    let mut batches = Batches::try_new(source, &options).unwrap();
    batches.next().unwrap().unwrap();
    while read.load(Ordering::SeqCst) < 2 {
        thread::yield_now();
    }
    drop(batches);
    assert!(!is_dropped.load(Ordering::SeqCst), "it waits for this thread");
    drop(go);
    let start = Instant::now();
    while !is_dropped.load(Ordering::SeqCst) {
        assert!(start.elapsed() < Duration::from_secs(60));
        thread::yield_now();
    }
}

#[test]
fn the_label_is_none_of_the_features_and_columns_come_in_their_order() {
    let batch = record_batch!(
        ("a", Int32, [1, 2]),
        ("b", Float32, [0.5, 1.5]),
        ("c", Int64, [7, 8]),
        ("d", Int8, [3, 4])
    )
    .unwrap();
    let options = BatchOptions::default().with_label("c");
    let names = |batch: &Batch| match &batch.features {
        Features::Columns(columns) => {
            columns.iter().map(|column| column.field().unwrap().name().clone()).collect::<Vec<_>>()
        }
        _ => panic!("columns"),
    };
    let one = |options: &BatchOptions| open(vec![batch.clone()], options).next().unwrap().unwrap();
    let label = |batch: &Batch| {
        batch.label().unwrap().tensor().unwrap().values.as_slice::<i64>().unwrap().to_vec()
    };
    let all = one(&options);
    assert_eq!((names(&all), label(&all)), (vec!["a".into(), "b".into(), "d".into()], vec![7, 8]));
    assert!(all.matrix().is_none() && all.column("c").is_none());
    let some = one(&options.clone().with_columns(["d", "c", "a"]));
    assert_eq!((names(&some), label(&some)), (vec!["d".into(), "a".into()], vec![7, 8]));

    let floats = ExportOptions::default().with_dtype(DLDataType::FLOAT64);
    let options = options.with_columns(["d", "a"]).with_matrix(true).with_export(floats);
    let matrix = one(&options);
    assert_eq!(label(&matrix), [7, 8], "the label keeps its dtype");
    let values = &matrix.matrix().unwrap().values;
    assert_eq!((values.shape(), &*values.strides()), (&[2, 2][..], &[2, 1][..]));
    assert_eq!(values.as_slice::<f64>(), Some(&[3.0, 1.0, 4.0, 2.0][..]));
    assert!(matrix.column("d").is_none() && matrix.matrix().unwrap().field.is_none());
    let by_column = options.export.clone().with_order(Order::ColumnMajor);
    let matrix = one(&options.with_export(by_column));
    assert_eq!(matrix.matrix().unwrap().values.strides()[..], [1, 2]);
}

#[test]
fn an_index_of_pandas_is_no_feature_unless_it_is_asked_for() {
    let mut batch = record_batch!(("x", Int64, [1]), ("day", Int64, [2])).unwrap();
    let metadata = r#"{"index_columns": ["day"]}"#.to_owned();
    batch.schema_metadata_mut().insert("pandas".to_owned(), metadata);
    let one = |options: &BatchOptions| open(vec![batch.clone()], options).next().unwrap().unwrap();
    assert!(one(&BatchOptions::default()).column("day").is_none());
    assert!(one(&BatchOptions::default().with_columns(["day"])).column("day").is_some());
    assert!(one(&BatchOptions::default().with_label("day")).label().is_some());
}

#[test]
fn what_cannot_be_is_refused_when_they_are_opened() {
    let refused = |chunk: &RecordBatch, options: BatchOptions| {
        Batches::try_new(reader(vec![chunk.clone()]), &options).unwrap_err()
    };
    let batch = rows(0..3);
    let options = BatchOptions::default;
    let missing = |missing: &[&str]| Error::NoSuchColumns {
        missing: missing.iter().copied().map(str::to_owned).collect(),
        names: vec!["x".to_owned(), "y".to_owned()],
    };
    assert_eq!(refused(&batch, options().with_label("z")), missing(&["z"]));
    let both = refused(&batch, options().with_columns(["x", "a"]).with_label("z"));
    assert_eq!(both, missing(&["a", "z"]));
    assert_eq!(both.to_string(), r#"there are no columns "a", "z" among ["x", "y"]"#);
    let twice = refused(&batch, options().with_columns(["x", "x"]));
    assert_eq!(twice, Error::AskedTwice("x".to_owned()));
    let only_label = options().with_columns(["x"]).with_label("x").with_matrix(true);
    assert_eq!(refused(&batch, only_label), Error::NoColumns);

    let never = ExportOptions::default().with_copy(CopyPolicy::Never);
    for wrong in [
        options().with_batch_size(0),
        options().with_drop_last(true),
        options().with_shuffle(Shuffle { rows: 10, seed: 0 }),
        options().with_batch_size(1).with_shuffle(Shuffle { rows: 10, seed: 0 }).with_export(never),
        options().with_shard(Shard { index: 1, count: 1 }),
        options().with_shard(Shard { index: 0, count: 0 }),
    ] {
        assert!(matches!(refused(&batch, wrong), Error::InvalidOptions(_)));
    }

    // Before a row is read: the type has no tensor form.
    let text = record_batch!(("x", Int64, [1]), ("text", Utf8, ["a"])).unwrap();
    let error = refused(&text, options());
    assert!(matches!(&error, Error::Column { name, .. } if name == "text"), "{error}");
    let list = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int8, true)), -1);
    let schema = Arc::new(Schema::new(vec![Field::new("list", list, true)]));
    let none = RecordBatchIterator::new([], schema);
    let error = Batches::try_new(none, &options()).unwrap_err();
    assert!(matches!(error, Error::NoSuchType { .. }), "{error}");
}

#[test]
fn a_reader_without_rows_has_no_batches() {
    for options in [BatchOptions::default(), BatchOptions::default().with_batch_size(3)] {
        assert!(open(vec![rows(0..0)], &options).next().is_none());
        assert!(open(vec![rows(0..0), rows(0..0)], &options.with_prefetch(1)).next().is_none());
    }
}

#[test]
fn rows_of_one_chunk_are_shared_and_those_across_an_edge_copied() {
    let never = ExportOptions::default().with_copy(CopyPolicy::Never);
    let whole = rows(0..30);
    let options = BatchOptions::default().with_batch_size(10).with_export(never);
    for (index, batch) in open(vec![whole.clone()], &options).enumerate() {
        let batch = batch.unwrap();
        let x = batch.tensor("x").unwrap().values.as_slice::<i64>().unwrap();
        let values = whole.column(0).as_primitive::<Int64Type>().values();
        assert_eq!(x.as_ptr(), values[index * 10..].as_ptr());
    }
    let mut batches = open(vec![rows(0..15), rows(15..30)], &options);
    assert_eq!(numbers(&batches.next().unwrap().unwrap()), (0..10).collect::<Vec<_>>());
    let error = batches.next().unwrap().unwrap_err();
    let Error::Columns { errors } = error else { panic!("{error}") };
    for error in errors {
        let Error::Column { error, .. } = error else { panic!("{error}") };
        assert!(matches!(*error, Error::CopyForbidden { .. }), "{error}");
    }
    assert!(batches.next().is_none());
}

#[test]
fn nulls_are_refused_filled_or_masked() {
    let batch = record_batch!(
        ("x", Int64, [Some(1), None, Some(3), Some(4)]),
        ("y", Float32, [Some(0.5), Some(1.5), None, None])
    )
    .unwrap();
    let with = |nulls: NullPolicy| {
        let export = ExportOptions::default().with_nulls(nulls);
        BatchOptions::default().with_batch_size(1).with_label("y").with_export(export)
    };
    let mut batches = open(vec![batch.clone()], &with(NullPolicy::Refuse));
    batches.next().unwrap().unwrap();
    let error = batches.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Column { name, .. } if name == "x"), "{error}");

    let x = |batch: &Batch| batch.tensor("x").unwrap().values.as_slice::<i64>().unwrap()[0];
    let filled = open(vec![batch.clone()], &with(NullPolicy::fill(9)));
    let filled: Vec<_> = filled.map(|batch| x(&batch.unwrap())).collect();
    assert_eq!(filled, [1, 9, 3, 4]);

    let is_valid =
        |tensor: &BatchTensor| tensor.mask.as_ref().unwrap().as_bool_bytes().unwrap()[0] == 1;
    let masked = open(vec![batch], &with(NullPolicy::Masked)).map(Result::unwrap);
    let masked: Vec<_> = masked
        .map(|batch| {
            (
                is_valid(batch.tensor("x").unwrap()),
                is_valid(batch.label().unwrap().tensor().unwrap()),
            )
        })
        .collect();
    assert_eq!(masked, [(true, true), (false, true), (true, false), (true, false)]);
}

/// Rows of one of the reader's batches are shared; all others have been copied, and have no other holder.
#[test]
fn rows_that_were_copied_are_writable() {
    let is_writable = |options: BatchOptions| -> Vec<bool> {
        let mut batches: Vec<_> =
            open(vec![rows(0..6), rows(6..12)], &options).map(Result::unwrap).collect();
        let tensors = batches.iter_mut().map(|batch| match &mut batch.features {
            Features::Matrix(matrix) => &mut matrix.values,
            Features::Columns(columns) => match &mut columns[0] {
                BatchColumn::Tensor(tensor) => &mut tensor.values,
                other => panic!("{other:?}"),
            },
            _ => unreachable!("there are two kinds"),
        });
        tensors.map(|tensor| tensor.as_slice_mut::<i64>().is_some()).collect()
    };
    let options = || BatchOptions::default().with_batch_size(4).with_label("y");
    assert_eq!(is_writable(options()), [false, true, false]);
    for matrix in [false, true] {
        let options = options().with_matrix(matrix).with_shuffle(Shuffle { rows: 8, seed: 1 });
        assert_eq!(is_writable(options.clone()), [true; 3]);
        let masked = ExportOptions::default().with_nulls(NullPolicy::Masked);
        assert_eq!(is_writable(options.with_export(masked)), [true; 3]);
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_column() {
    let batch = record_batch!(("x", Int64, [1, 2]), ("y", Int64, [3, 300])).unwrap();
    let export = ExportOptions::default().with_dtype(DLDataType::INT8);
    let options = BatchOptions::default().with_export(export).with_batch_size(1);
    for matrix in [false, true] {
        let mut batches = open(vec![batch.clone()], &options.clone().with_matrix(matrix));
        batches.next().unwrap().unwrap();
        let error = batches.next().unwrap().unwrap_err();
        let Error::Column { name, error } = error else { panic!("{error}") };
        assert_eq!(name, "y");
        assert!(matches!(*error, Error::ValueDoesNotFit { .. }), "{error}");
        assert!(batches.next().is_none());
    }
}

/// The values that the codes of a tensor stand for.
fn meant(tensor: &BatchTensor) -> Vec<String> {
    let dictionary = tensor.dictionary().expect("codes of the test").expect("codes of the test");
    let words = dictionary.as_string::<i32>();
    let codes = tensor.values.as_slice::<i32>().expect("codes of the test");
    codes
        .iter()
        .map(|&code| words.value(usize::try_from(code).expect("codes of the test")).to_owned())
        .collect()
}

#[test]
fn a_code_stands_for_one_value_in_all_batches() {
    fn chunk<'a>(number: i64, words: impl IntoIterator<Item = &'a str>) -> RecordBatch {
        let words: DictionaryArray<Int8Type> = words.into_iter().collect();
        let row = Int64Array::from_iter_values((0..).map(|at| number * 10 + at).take(words.len()));
        let columns: [(&str, ArrayRef); 2] = [("word", Arc::new(words)), ("row", Arc::new(row))];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }
    let words = [vec!["to", "be", "or"], vec!["not", "to"], vec![], vec!["be", "that", "is"]];
    let read = || (0..).zip(&words).map(|(number, words)| chunk(number, words.iter().copied()));
    let physical = ExportOptions::default().with_physical(true);
    let options = BatchOptions::default().with_export(physical);
    for (size, prefetch) in [(None, 0), (Some(2), 0), (Some(3), 2), (Some(100), 0)] {
        let options = options.clone().with_batch_size(size).with_prefetch(prefetch);
        let mut batches = open(read().collect(), &options);
        let batches_of: Vec<_> = batches.by_ref().map(Result::unwrap).collect();
        let tensors = || batches_of.iter().map(|batch| batch.tensor("word").unwrap());
        assert_eq!(tensors().flat_map(meant).collect::<Vec<_>>(), words.concat());
        let field = tensors().next().unwrap().field.clone().unwrap();
        assert!(matches!(field.data_type(), DataType::Dictionary(..)));

        // Each begins as those before it.
        let dictionaries = batches.dictionaries().unwrap();
        let [(name, last)] = dictionaries.as_slice() else { panic!("one column has codes") };
        assert_eq!(name, "word");
        assert_eq!(
            last.as_string::<i32>(),
            &StringArray::from(vec!["to", "be", "or", "not", "that", "is"])
        );
        for dictionary in tensors().map(|tensor| tensor.dictionary().unwrap().unwrap()) {
            assert_eq!(&last.slice(0, dictionary.len()), &dictionary);
        }
        assert!(batches_of[0].tensor("row").unwrap().dictionary().unwrap().is_none());
        assert_eq!(format!("{batches:?}"), "Batches { .. }");
        let shown = format!("{:?}", batches_of[0]);
        assert!(shown.contains("Dictionary { .. }"), "{shown}");
    }

    let shuffled = options.with_batch_size(3).with_shuffle(Shuffle { rows: 100, seed: 1 });
    let mut found = Vec::new();
    for batch in open(read().collect(), &shuffled).map(Result::unwrap) {
        let rows = batch.tensor("row").unwrap().values.as_slice::<i64>().unwrap().to_vec();
        found.extend(rows.into_iter().zip(meant(batch.tensor("word").unwrap())));
    }
    found.sort();
    assert_eq!(found.into_iter().map(|(_, word)| word).collect::<Vec<_>>(), words.concat());
}

/// A loop that is resumed gets the batches that it would have had.
#[test]
fn batches_that_are_skipped_are_the_first_ones() {
    let whole = BatchOptions::default().with_batch_size(7);
    let drawn = whole.clone().with_shuffle(Shuffle { rows: 10, seed: 3 });
    let part = drawn.clone().with_shard(Shard { index: 1, count: 2 });
    for options in [whole, drawn, part] {
        let expected = all(open(chunks(&[4, 9]), &options));
        for skip in 0..=expected.len() + 1 {
            let rest = all(open(chunks(&[10]), &options.clone().with_skip(skip)));
            assert_eq!(rest, expected[skip.min(expected.len())..]);
        }
    }
}
