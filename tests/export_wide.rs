//! Tables with columns of several values a row, as matrices.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float64Array, Int32Array, ListArray, RecordBatch,
    RecordBatchIterator,
};
use arrow_dlpack::batches::{BatchOptions, Batches, ColumnOptions, Form};
use arrow_dlpack::export::Order;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{Error, ExportOptions, NullPolicy, export};
use arrow_schema::ArrowError;

fn table() -> RecordBatch {
    let rows = [Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), None]), None];
    let pairs = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2);
    let (a, z) = (Int32Array::from(vec![10, 20, 30]), Float64Array::from(vec![0.5, 1.5, 2.5]));
    let columns: [(_, ArrayRef); 3] =
        [("a", Arc::new(a)), ("p", Arc::new(pairs)), ("z", Arc::new(z))];
    RecordBatch::try_from_iter(columns).expect("of one length")
}

#[test]
fn a_row_has_the_values_of_each_column_side_by_side() {
    let options = ExportOptions::default().with_nulls(NullPolicy::fill(-1.0));
    let matrix = export::tensor(&table(), &options).expect("numbers");
    let rows = [10.0, 1.0, 2.0, 0.5, 20.0, 3.0, -1.0, 1.5, 30.0, -1.0, -1.0, 2.5];
    assert_eq!((matrix.shape(), matrix.as_slice::<f64>()), (&[3, 4][..], Some(&rows[..])));
    let by_columns = export::tensor(&table(), &options.with_order(Order::ColumnMajor));
    let by_columns = by_columns.expect("numbers");
    assert_eq!((by_columns.shape(), &*by_columns.strides()), (&[3, 4][..], &[1, 3][..]));
    let by_rows = by_columns.copied().expect("memory");
    assert_eq!(by_rows.as_slice::<f64>(), Some(&rows[..]));
}

#[test]
fn a_misfit_is_named_by_its_column_and_row() {
    let rows = [Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(4.5)])];
    let pairs: ArrayRef =
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2));
    let a: ArrayRef = Arc::new(Int32Array::from(vec![10, 20]));
    let table = RecordBatch::try_from_iter([("a", a), ("p", pairs)]).expect("of one length");
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let options = ExportOptions::default().with_dtype(DLDataType::INT8).with_order(order);
        let Err(Error::Column { name, error }) = export::tensor(&table, &options) else {
            panic!("4.5 fits no int8");
        };
        let Error::ValueDoesNotFit { column, row, .. } = *error else { panic!("{error}") };
        assert_eq!((&*name, column, row), ("p", 1, 1));
    }
}

#[test]
fn dense_lists_of_batches_keep_their_length() -> Result<(), Box<dyn std::error::Error>> {
    let batch = |lists: Vec<Option<Vec<Option<f32>>>>| -> Result<RecordBatch, ArrowError> {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![7; lists.len()]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists));
        RecordBatch::try_from_iter([("l", lists), ("a", a)])
    };
    let of = |values: &[f32]| Some(values.iter().copied().map(Some).collect::<Vec<_>>());
    let read =
        [batch(vec![of(&[1.0, 2.0]), None]), batch(vec![of(&[3.0, 4.0])]), batch(vec![of(&[5.0])])];
    let schema = read[0].as_ref().expect("of one length").schema();
    let options = BatchOptions::default()
        .with_matrix(true)
        .with_export(
            ExportOptions::default()
                .with_nulls(NullPolicy::fill(0.0))
                .with_dtype(DLDataType::FLOAT32),
        )
        .with_column_options("l", ColumnOptions::default().with_form(Form::Dense(Some(2))));
    let mut batches = Batches::try_new(RecordBatchIterator::new(read, schema), &options)?;
    let mut next = || batches.next().expect("a batch");
    let matrix = next()?;
    let matrix = &matrix.matrix().expect("a matrix").values;
    assert_eq!(matrix.as_slice::<f32>(), Some(&[1.0, 2.0, 7.0, 0.0, 0.0, 7.0][..]));
    assert_eq!(next()?.matrix().expect("a matrix").values.shape(), [1, 3]);
    let Error::Column { error, .. } = next().expect_err("another length") else {
        panic!("no column")
    };
    assert_eq!(*error, Error::RowLength { row: 0, length: 1, expected: 2 });
    Ok(())
}
