//! A call of constants runs once a query, and what went wrong in it is what the query says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::Float32Array;
use arrow_dlpack_datafusion::{Input, TensorUdf};
use datafusion::logical_expr::{ScalarUDF, Volatility};
use datafusion::prelude::SessionContext;
use support::{F32, array, each_row, failed, rows, run, with};

mod support;

fn double() -> TensorUdf {
    TensorUdf::new("double").input(Input::columns("x", F32, ["n", "again"]))
}

/// `double`, which counts its calls and fails in those that `fails` says.
fn counted(calls: &Arc<AtomicUsize>, fails: fn(usize) -> bool) -> ScalarUDF {
    let calls = Arc::clone(calls);
    let udf = double().build(move |batch| match calls.fetch_add(1, Ordering::SeqCst) {
        call if fails(call) => Err(format!("call {call}").into()),
        _ => Ok(each_row(&batch, |row| row.sum())),
    });
    udf.expect("a sound description")
}

fn three_rows() -> SessionContext {
    with([("n", array(Float32Array::from(vec![1.0, 2.0, 3.0])))])
}

fn taken(calls: &AtomicUsize) -> usize {
    calls.swap(0, Ordering::SeqCst)
}

const CALLS: [&str; 6] = [
    "SELECT double(1, 2)",
    "SELECT double(1, 2), double(1, 2) + 1 FROM t",
    "SELECT abs(double(1, 2) + 1) * 2 FROM t",
    "SELECT n FROM t WHERE n < double(1, 2)",
    "SELECT sum(double(x, 2)) FROM (SELECT 1 AS x FROM t)",
    "WITH c AS (SELECT double(1, 2) AS c) SELECT n + c FROM t, c",
];

#[tokio::test]
async fn a_call_that_fails_runs_once_a_query() {
    let calls = Arc::default();
    let context = three_rows();
    context.register_udf(counted(&calls, |_| true));
    for sql in CALLS {
        for _ in 0..2 {
            let error = failed(&context, sql).await;
            assert!(error.contains("double failed\ncaused by\nExternal error: call 0"), "{error}");
            assert_eq!(taken(&calls), 1, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_call_that_works_runs_once_and_is_a_value_of_the_plan() {
    let calls = Arc::default();
    let context = three_rows();
    context.register_udf(counted(&calls, |_| false));
    for sql in CALLS {
        run(&context, sql).await.expect("a result");
        // A call that works is over when it has become a value.
        assert_eq!(taken(&calls), sql.matches("double(").count(), "{sql}");
    }
    assert_eq!(rows(&context, CALLS[1]).await, ["3.0 4.0"; 3]);
}

#[tokio::test]
async fn what_fails_once_is_not_hidden_by_what_works_then() {
    let calls = Arc::default();
    let context = three_rows();
    context.register_udf(counted(&calls, |call| call == 0));
    let error = failed(&context, CALLS[0]).await;
    assert!(error.contains("call 0"), "{error}");
    assert_eq!(rows(&context, CALLS[0]).await, ["3.0"]);
}

#[tokio::test]
async fn a_state_that_fails_once_fails_its_query_and_no_other() {
    for (sql, expected) in
        [(CALLS[0], vec!["3.0"]), ("SELECT double(n, 2) FROM t", vec!["3.0", "4.0", "5.0"])]
    {
        let attempts = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&attempts);
        let udf = double().build_with_state(
            move || match counter.fetch_add(1, Ordering::SeqCst) {
                0 => Err("no such file".into()),
                _ => Ok(()),
            },
            |(), batch| Ok(each_row(&batch, |row| row.sum())),
        );
        let context = three_rows();
        context.register_udf(udf.expect("a sound description"));
        let error = failed(&context, sql).await;
        assert_eq!(
            error,
            "double failed\ncaused by\nExternal error: its state could not be made: no such file"
        );
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
        assert_eq!(rows(&context, sql).await, expected);
        assert_eq!(attempts.load(Ordering::SeqCst), 2);
    }
}

/// An arm that no row takes fails nothing, and neither does looking at the plan.
#[tokio::test]
async fn a_call_that_no_row_needs_fails_no_query() {
    let calls = Arc::default();
    let context = three_rows();
    context.register_udf(counted(&calls, |_| true));
    let spared = "SELECT CASE WHEN n > 3 THEN double(1, 2) ELSE n END FROM t";
    assert_eq!(rows(&context, spared).await, ["1.0", "2.0", "3.0"]);
    assert_eq!(taken(&calls), 1);
    let taken_once = "SELECT CASE WHEN n > 2 THEN double(1, 2) ELSE n END FROM t";
    assert!(failed(&context, taken_once).await.contains("call 0"));
    assert_eq!(taken(&calls), 1);
    let plan = rows(&context, "EXPLAIN SELECT double(1, 2)").await.join("\n");
    assert!(plan.contains("double(Float32(1), Float32(2))"), "{plan}");
    assert_eq!(taken(&calls), 1);
}

#[tokio::test]
async fn a_prepared_statement_asks_anew_each_time() {
    let calls = Arc::default();
    let context = three_rows();
    context.register_udf(counted(&calls, |call| call < 2));
    run(&context, "PREPARE p(FLOAT) AS SELECT double($1, 2), double(1, 2) FROM t LIMIT 1")
        .await
        .expect("a plan");
    assert_eq!(taken(&calls), 1);
    let error = failed(&context, "EXECUTE p(5)").await;
    assert!(error.contains("call"), "{error}");
    taken(&calls);
    calls.store(2, Ordering::SeqCst);
    assert_eq!(rows(&context, "EXECUTE p(5)").await, ["7.0 3.0"]);
}

/// The optimizer is to know what is no call of constants alone for what it is.
#[tokio::test]
async fn the_plan_says_what_is_volatile_and_what_is_not() {
    for (volatility, is_pushed) in [(Volatility::Immutable, true), (Volatility::Volatile, false)] {
        let udf = double().volatility(volatility);
        let udf = udf.build(|batch| Ok(each_row(&batch, |row| row.sum())));
        let context = three_rows();
        context.register_udf(udf.expect("a sound description"));
        let sql = "SELECT * FROM (SELECT double(n, 2) AS d FROM t) WHERE d > 3";
        assert_eq!(rows(&context, sql).await, ["4.0", "5.0"]);
        let plan = context.sql(sql).await.and_then(|plan| plan.into_optimized_plan());
        let plan = plan.expect("a plan").to_string();
        let below =
            plan.find("Projection").expect("a projection") < plan.find("Filter").expect("a filter");
        assert_eq!(below, is_pushed, "{plan}");
    }
}
