//! Matrices of batches: the rows of a chunk are those of a table of its own.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, FixedSizeListArray, Float32Array, Float64Array,
    Int32Array, RecordBatch, RecordBatchIterator, RecordBatchReader, record_batch,
};
use arrow_dlpack::batches::{BatchOptions, Batches, Features};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Order, export,
    from_dlpack,
};
use arrow_schema::{DataType, Field};

const ROWS: i32 = 50;

fn half(at: i32) -> f32 {
    f32::from(i16::try_from(at).expect("rows of the test")) / 2.0
}

fn column(kind: &str) -> ArrayRef {
    let rows = 0..ROWS;
    match kind {
        "float32" => Arc::new(Float32Array::from_iter_values(rows.map(half))),
        "float64" => Arc::new(Float64Array::from_iter_values(rows.map(|at| f64::from(at) / 4.0))),
        "int32" => Arc::new(Int32Array::from_iter_values(rows.map(|at| 3 * at))),
        // Row 33 does not fit int8.
        "large" => Arc::new(Int32Array::from_iter_values(rows.map(|at| at + at / 33 * 1000))),
        "nulls" => Arc::new(rows.map(|at| (at % 40 != 21).then_some(at)).collect::<Int32Array>()),
        "bool" => Arc::new(rows.map(|at| Some(at % 3 == 0)).collect::<BooleanArray>()),
        "triple" => {
            let values = Float32Array::from_iter_values((0..3 * ROWS).map(half));
            let item = Arc::new(Field::new("item", DataType::Float32, true));
            Arc::new(FixedSizeListArray::new(item, 3, Arc::new(values), None))
        }
        "decimal" => {
            let values = Decimal128Array::from_iter_values(rows.map(i128::from));
            Arc::new(values.with_precision_and_scale(9, 1).expect("a type of the test"))
        }
        other => panic!("no column {other}"),
    }
}

fn table(kinds: &[&str]) -> RecordBatch {
    let columns = kinds.iter().enumerate().map(|(at, kind)| (format!("{kind} {at}"), column(kind)));
    RecordBatch::try_from_iter(columns).expect("a table of the test")
}

fn reader(chunk: &RecordBatch) -> impl RecordBatchReader + Send + 'static {
    RecordBatchIterator::new([Ok(chunk.clone())], chunk.schema())
}

/// Its elements, its shape and whether it is row-major.
fn content(tensor: ManagedTensor) -> (ArrayRef, Vec<i64>, Vec<i64>) {
    let (shape, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    (from_dlpack(tensor, &ImportOptions::default()).expect("a tensor of ours").0, shape, strides)
}

/// Checks each batch, or the error in its place, against a table of its rows.
fn batches(chunk: &RecordBatch, size: usize, label: bool, options: &ExportOptions) {
    let width = chunk.num_columns() - usize::from(label);
    let features = chunk.project(&(0..width).collect::<Vec<_>>()).expect("columns of the test");
    let mut of_batches = BatchOptions::default()
        .with_batch_size(size)
        .with_matrix(true)
        .with_export(options.clone());
    if label {
        of_batches = of_batches.with_label(chunk.schema().field(width).name());
    }
    let made = |rows: &RecordBatch| export::prepare(rows, options).and_then(export::Prepared::run);
    let mut batches =
        match (Batches::try_new(reader(chunk), &of_batches), made(&features.slice(0, 0))) {
            (Ok(batches), Ok(_)) => batches,
            (Err(found), Err(expected)) => {
                return assert_eq!(found.to_string(), expected.to_string());
            }
            (found, expected) => panic!("{found:?} is not {expected:?} of {options:?}"),
        };
    for from in (0..chunk.num_rows()).step_by(size) {
        let rows = features.slice(from, size.min(chunk.num_rows() - from));
        let found = batches.next().expect("a batch, or an error");
        match (found, made(&rows)) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.label().is_some(), label);
                let Features::Matrix(matrix) = found.features else { panic!("a matrix") };
                assert_eq!(content(matrix.values), content(expected.values), "{from} {options:?}");
                let masks = [matrix.mask, expected.mask].map(|mask| mask.map(content));
                assert_eq!(masks[0], masks[1], "{from} {options:?}");
            }
            (Err(found), Err(expected)) => {
                assert_eq!(found.to_string(), expected.to_string(), "{from} {options:?}");
                assert!(batches.next().is_none());
                return;
            }
            (found, expected) => panic!("{found:?} is not {expected:?} at {from} of {options:?}"),
        }
    }
    assert!(batches.next().is_none());
}

#[test]
fn rows_of_a_chunk_are_those_of_a_table() {
    let plain = ExportOptions::default();
    let int8 = plain.clone().with_dtype(DLDataType::INT8);
    let options = [
        plain.clone(),
        plain.clone().with_dtype(DLDataType::FLOAT32),
        plain.clone().with_dtype(DLDataType::FLOAT64),
        int8.clone(),
        plain.clone().with_nulls(NullPolicy::fill(7)),
        plain.clone().with_nulls(NullPolicy::Nan),
        plain.clone().with_nulls(NullPolicy::Masked),
        plain.clone().with_order(Order::ColumnMajor),
        plain.clone().with_copy(CopyPolicy::Always),
    ];
    let tables: [&[&str]; 9] = [
        &["float32", "float32", "float32"],
        &["float32", "float64", "int32"],
        &["float32", "triple", "int32"],
        &["triple", "float64"],
        &["decimal", "float64"],
        &["large", "int32"],
        &["float32", "nulls", "int32"],
        &["int32", "bool", "float32"],
        &["triple"],
    ];
    for kinds in tables {
        let chunk = table(kinds);
        for options in &options {
            for size in [1, 7, 10, 49, 50, 60] {
                batches(&chunk, size, false, options);
                batches(&chunk.slice(3, 40), size, kinds.len() > 1, options);
            }
        }
    }
}

#[test]
fn rows_are_not_copied_where_that_is_forbidden() {
    let chunk = table(&["float32", "float32"]);
    let options = ExportOptions::default().with_copy(CopyPolicy::Never);
    let batches =
        BatchOptions::default().with_batch_size(10).with_matrix(true).with_export(options);
    let error = Batches::try_new(reader(&chunk), &batches).and_then(|mut all| all.next().unwrap());
    assert!(matches!(error, Err(Error::CopyForbidden { nbytes: 80, .. })), "{error:?}");
}

/// A batch that someone keeps does not keep the chunk.
#[test]
fn a_matrix_of_some_rows_does_not_hold_its_chunk() {
    let chunk = table(&["float32", "int32"]);
    let held = Arc::downgrade(chunk.column(0));
    let options = BatchOptions::default().with_batch_size(20).with_matrix(true);
    let mut batches = Batches::try_new(reader(&chunk), &options).expect("options of the test");
    drop(chunk);
    let first = batches.next().expect("a batch").expect("rows of the test");
    assert!(held.upgrade().is_some(), "its other rows are to come");
    assert_eq!(
        batches.by_ref().map(|batch| batch.expect("rows of the test").rows).sum::<usize>(),
        30
    );
    assert!(held.upgrade().is_none());
    assert_eq!(first.rows, 20);
}

#[test]
fn a_matrix_is_written_to_and_taken_out_of_its_batch() {
    let batch =
        record_batch!(("x", Float32, [1.0, 2.0]), ("y", Float32, [3.0, 4.0]), ("z", Int32, [5, 6]))
            .unwrap();
    let options = BatchOptions::default().with_label("z").with_matrix(true);
    let reader = || RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let mut made = Batches::try_new(reader(), &options).unwrap().next().unwrap().unwrap();
    assert!(made.label_named("z").is_some() && made.label_named("x").is_none());
    let matrix = made.matrix_mut().expect("a matrix");
    matrix.values.as_slice_mut::<f32>().expect("a copy")[0] = 9.0;
    let matrix = made.into_matrix().expect("a matrix");
    assert_eq!(matrix.values.into_vec::<f32>(), Ok(vec![9.0, 3.0, 2.0, 4.0]));

    let mut made =
        Batches::try_new(reader(), &options.with_matrix(false)).unwrap().next().unwrap().unwrap();
    assert!(made.matrix_mut().is_none());
    assert_eq!((made.rows, made.column("x").is_some(), made.label().is_some()), (2, true, true));
    assert!(made.into_matrix().is_none());
}
