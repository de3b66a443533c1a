//! Batches, partitions and queries around a function.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{Float32Array, RecordBatch, StringArray};
use arrow_dlpack_datafusion::{Input, TensorUdf};
use arrow_schema::{DataType, Field, Schema};
use datafusion::functions_aggregate::expr_fn::avg;
use datafusion::logical_expr::{Volatility, col};
use datafusion::prelude::SessionContext;
use support::{F32, each_row, failed, rows, stateless, summing, with_partitions};

mod support;

fn double() -> TensorUdf {
    TensorUdf::new("double").input(Input::columns("x", F32, ["n", "again"]))
}

/// Partitions of batches, numbered through: `key` is `odd` or `even`, `n` the number.
fn batches(partitions: u8, batches: u8, rows: u8) -> SessionContext {
    let fields = [("key", DataType::Utf8), ("n", DataType::Float32)];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = |first: u8| {
        let numbers = first..first + rows;
        let keys = numbers.clone().map(|n| if n % 2 == 0 { "even" } else { "odd" });
        let keys = Arc::new(StringArray::from_iter_values(keys));
        let numbers = Arc::new(Float32Array::from_iter_values(numbers.map(f32::from)));
        RecordBatch::try_new(Arc::clone(&schema), vec![keys, numbers]).expect("a batch")
    };
    let partition = |p| (0..batches).map(|b| batch((p * batches + b) * rows)).collect();
    with_partitions((0..partitions).map(partition).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_is_made_once_for_all_partitions_and_queries() {
    let made = Arc::new(AtomicUsize::new(0));
    let threads = Arc::new(Mutex::new(BTreeSet::new()));
    let context = batches(4, 5, 3);
    let (counter, seen) = (Arc::clone(&made), Arc::clone(&threads));
    let udf = double().build_with_state(
        move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            Ok(counter.fetch_add(1, Ordering::SeqCst) + 2)
        },
        move |factor, batch| {
            seen.lock().expect("no panic").insert(format!("{:?}", std::thread::current().id()));
            assert_eq!(*factor, 2);
            Ok(each_row(&batch, |row| row.sum()))
        },
    );
    context.register_udf(udf.expect("a sound description"));
    for _ in 0..2 {
        let sum = rows(&context, "SELECT sum(double(n, n)) FROM t").await;
        assert_eq!(sum, ["3540.0"]);
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert!(!threads.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn no_state_is_made_for_a_query_that_is_only_planned() {
    let context = batches(1, 1, 3);
    let udf =
        double().build_with_state(|| -> Result<(), _> { panic!("made") }, |(), _| unreachable!());
    context.register_udf(udf.expect("a sound description"));
    let explained = rows(&context, "EXPLAIN SELECT double(n, n) FROM t").await.join("\n");
    assert!(explained.contains("double(n@0, n@0)"), "{explained}");
}

#[tokio::test]
async fn a_state_that_fails_is_tried_again_by_the_next_query() {
    let context = batches(1, 1, 3);
    let attempts = AtomicUsize::new(0);
    let udf = double().build_with_state(
        move || match attempts.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no such file".into()),
            1 => panic!("a bad file"),
            _ => Ok(()),
        },
        |(), batch| Ok(each_row(&batch, |row| row.sum())),
    );
    context.register_udf(udf.expect("a sound description"));
    let sql = "SELECT double(n, n) FROM t";
    assert_eq!(
        failed(&context, sql).await,
        "double failed\ncaused by\nExternal error: its state could not be made: no such file"
    );
    assert_eq!(failed(&context, sql).await, "Execution error: double panicked: a bad file");
    assert_eq!(rows(&context, sql).await, ["0.0", "2.0", "4.0"]);
}

#[tokio::test]
async fn batches_larger_than_asked_for_come_in_slices() {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let context = batches(1, 2, 5);
    let seen = Arc::clone(&sizes);
    let udf = double().batch_rows(2);
    context.register_udf(stateless(udf, move |batch| {
        seen.lock().expect("no panic").push(batch.rows);
        Ok(each_row(&batch, |row| row.sum()))
    }));
    let expected: Vec<_> = (0..10_u8).map(|n| format!("{:.1}", f32::from(n) * 2.0)).collect();
    assert_eq!(rows(&context, "SELECT double(n, n) FROM t").await, expected);
    assert_eq!(*sizes.lock().expect("no panic"), [2, 2, 1, 2, 2, 1]);
}

#[tokio::test]
async fn an_empty_table_does_not_reach_the_function() {
    let no_rows = batches(1, 2, 0);
    no_rows.register_udf(stateless(double(), |_| panic!("it was called")));
    assert!(rows(&no_rows, "SELECT double(n, n), double(1, n) FROM t").await.is_empty());
    let context = batches(1, 1, 3);
    context.register_udf(stateless(double(), |_| panic!("it was called")));
    assert!(rows(&context, "SELECT double(n, n) FROM t WHERE n < 0").await.is_empty());
    assert_eq!(rows(&context, "SELECT count(double(n, n)) FROM t WHERE n < 0").await, ["0"]);
}

#[tokio::test]
async fn queries_group_filter_and_sort_by_it() {
    let context = batches(3, 2, 4);
    context.register_udf(summing(double()));
    let grouped = "SELECT key, avg(double(n, n)) AS mean FROM t GROUP BY key ORDER BY mean";
    assert_eq!(rows(&context, grouped).await, ["even 22.0", "odd 24.0"]);
    let filtered = "SELECT n FROM t WHERE double(n, n) > 42 ORDER BY double(n, n) DESC";
    assert_eq!(rows(&context, filtered).await, ["23.0", "22.0"]);
    let joined = "SELECT l.n FROM t l JOIN t r ON double(l.n, 0) = r.n + 22";
    // The numbers go from 0 to 23.
    assert_eq!(rows(&context, &format!("SELECT count(*) FROM ({joined})")).await, ["2"]);
}

#[tokio::test]
async fn a_data_frame_calls_it_as_sql_does() {
    let context = batches(2, 2, 4);
    let double = summing(double());
    let table = context.table("t").await.expect("the table");
    let mean = avg(double.call(vec![col("n"), col("n")])).alias("mean");
    let grouped = table.aggregate(vec![col("key")], vec![mean]).expect("a plan");
    let sorted = grouped.sort(vec![col("mean").sort(true, false)]).expect("a plan");
    let text = sorted.to_string().await.expect("a result");
    assert!(text.contains("| even | 14.0 |\n| odd  | 16.0 |"), "{text}");
}

/// The same call twice is computed once, unless it is volatile.
#[tokio::test]
async fn equal_calls_are_one() {
    for (volatility, expected) in [(Volatility::Immutable, 1), (Volatility::Volatile, 2)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let context = batches(1, 1, 3);
        let counter = Arc::clone(&calls);
        context.register_udf(stateless(double().volatility(volatility), move |batch| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(each_row(&batch, |row| row.sum()))
        }));
        rows(&context, "SELECT double(n, n) + 1, double(n, n) + 2 FROM t").await;
        assert_eq!(calls.load(Ordering::SeqCst), expected);
    }
}
