//! Several threads make what one makes: the same bytes, the same error.

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, Int64Array, RecordBatch};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{Error, ExportOptions, ManagedTensor, NullPolicy, Order, export};
use arrow_schema::Field;

/// Enough for some blocks of each result, which are of a megabyte.
const ROWS: i64 = 600_000;

fn options(threads: usize) -> ExportOptions {
    ExportOptions::default().with_threads(NonZero::new(threads))
}

fn bytes(tensor: &ManagedTensor) -> Vec<u8> {
    // In row-major order.
    let tensor = tensor.copied().expect("there is memory");
    let integers =
        tensor.as_slice::<i64>().map(|items| words(items.iter().map(|item| item.to_ne_bytes())));
    let floats =
        tensor.as_slice::<f64>().map(|items| words(items.iter().map(|item| item.to_ne_bytes())));
    integers.or(floats).or(tensor.as_bool_bytes().map(<[u8]>::to_vec)).expect("it has one of these")
}

fn words(words: impl Iterator<Item = [u8; 8]>) -> Vec<u8> {
    words.flatten().collect()
}

/// Chunks of uneven lengths, one of them empty; each row that is a multiple of `null` is null.
fn chunks(null: Option<i64>) -> Vec<ArrayRef> {
    let ends = [0, 1, 65_536, 65_536, 300_001, ROWS];
    let chunk = |range: &[i64]| -> ArrayRef {
        let values = (range[0]..range[1]).map(|row| match null {
            Some(null) if row % null == 0 => None,
            _ => Some(row % 1000),
        });
        Arc::new(values.collect::<Int64Array>())
    };
    ends.windows(2).map(chunk).collect()
}

fn batches() -> Vec<RecordBatch> {
    let numbers = chunks(None);
    let batch = |numbers: &ArrayRef| {
        let bits: BooleanArray = (0..numbers.len()).map(|row| Some(row % 3 == 0)).collect();
        let floats: Float32Array =
            (0..1000_u16).map(f32::from).cycle().take(numbers.len()).collect();
        let columns: [ArrayRef; 3] = [Arc::clone(numbers), Arc::new(bits), Arc::new(floats)];
        RecordBatch::try_from_iter(["a", "b", "c"].into_iter().zip(columns)).expect("one length")
    };
    numbers.iter().map(batch).collect()
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes take it minutes; what is unsafe is in the tests of `alloc::writer`"
)]
fn several_threads_make_what_one_makes() {
    let (plain, nulls, batches) = (chunks(None), chunks(Some(7)), batches());
    let field = Field::new("x", plain[0].data_type().clone(), true);
    let bits: ArrayRef =
        Arc::new((0..8 * ROWS).map(|row| Some(row % 5 == 0)).collect::<BooleanArray>());
    let bits = bits.slice(3, bits.len() - 3);
    let wide: Vec<(String, ArrayRef)> =
        (0..150).map(|column| (column.to_string(), plain[3].slice(column, 20_000))).collect();
    let wide = RecordBatch::try_from_iter(wide).expect("one length");
    let schema = batches[0].schema();
    let make = |threads| {
        let options = options(threads);
        let floats = options.clone().with_dtype(DLDataType::FLOAT64);
        let filled = options.clone().with_nulls(NullPolicy::fill(-1));
        let columns = floats.clone().with_order(Order::ColumnMajor);
        let made = [
            export::tensor((&plain[..], &field), &options),
            export::tensor((&plain[..], &field), &floats),
            export::tensor((&nulls[..], &field), &filled),
            export::tensor((&nulls[..], &field), &floats.clone().with_nulls(NullPolicy::Nan)),
            export::mask((&batches[..], &*schema), &options),
            export::tensor(&bits, &options),
            export::tensor((&batches[..], &*schema), &floats),
            export::tensor((&batches[..], &*schema), &columns),
            export::tensor(&wide, &options),
            export::tensor(&wide, &floats),
        ];
        made.map(|made| made.expect("they fit"))
    };
    let expected = make(1);
    for (found, expected) in make(3).iter().zip(&expected) {
        assert_eq!(found.shape(), expected.shape());
        assert!(bytes(found) == bytes(expected), "{:?}", found.shape());
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes take it minutes; what is unsafe is in the tests of `alloc::writer`"
)]
fn the_first_value_that_does_not_fit_is_the_error() {
    let fits =
        |row: i64| if [400_000, 500_000].contains(&(row % ROWS)) { 1 << 40 } else { row % 100 };
    let column: ArrayRef = Arc::new((0..4 * ROWS).map(fits).collect::<Int64Array>());
    let batch = RecordBatch::try_from_iter([("a", Arc::clone(&column)), ("b", column.clone())]);
    let batch = batch.expect("one length");
    for threads in [1, 8] {
        let options = options(threads).with_dtype(DLDataType::INT32);
        let row_of = |error: Error| match error {
            Error::ValueDoesNotFit { row, column, .. } => (row, column),
            Error::Column { error, .. } => match *error {
                Error::ValueDoesNotFit { row, column, .. } => (row, column),
                other => panic!("{other}"),
            },
            other => panic!("{other}"),
        };
        for _ in 0..2 {
            let refused = export::tensor(&column, &options).expect_err("it does not fit");
            assert_eq!(row_of(refused), (400_000, 0), "{threads} threads");
            let refused = export::tensor(&batch, &options).expect_err("it does not fit");
            assert_eq!(row_of(refused), (400_000, 0), "{threads} threads");
        }
    }
}

/// The options say how, not what: data that is shared with the defaults is shared with any number of threads.
#[test]
fn threads_make_no_copy() {
    let column = Int64Array::from(vec![1, 2, 3]);
    let tensor = export::tensor(&column, &options(2)).expect("numbers");
    assert_eq!(tensor.as_ptr(), column.values().as_ptr().cast_mut().cast());
}
