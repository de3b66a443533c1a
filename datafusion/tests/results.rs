//! What a function returns becomes a column, or an error that says what was wrong.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Float32Array};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{ManagedTensor, Representation};
use arrow_dlpack_datafusion::{Input, Output, TensorUdf};
use arrow_schema::{DataType, Field, TimeUnit};
use datafusion::logical_expr::col;
use ndarray::{Array1, Array2, Array3, IxDyn, arr1, array};
use support::{F32, failed, rows, run, session, stateless, sum_of, summing, with};

mod support;

fn numbers() -> ArrayRef {
    Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]))
}

fn returning(output: Output) -> TensorUdf {
    sum_of(Input::column("n", F32, [])).output(output)
}

#[tokio::test]
async fn a_result_is_adopted_without_a_copy() {
    static ADDRESS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let context = with([("n", numbers())]);
    context.register_udf(stateless(returning(Output::default()), |_| {
        let results = arr1(&[1.5_f32, 2.5, 3.5]);
        ADDRESS.store(results.as_ptr().addr(), std::sync::atomic::Ordering::Relaxed);
        Ok(ManagedTensor::from(results))
    }));
    let batches = run(&context, "SELECT total(n) FROM t").await.expect("a result");
    let column = batches[0].column(0).as_primitive::<Float32Type>();
    assert_eq!(column.values(), &[1.5, 2.5, 3.5]);
    let address = ADDRESS.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(column.values().as_ptr().addr(), address);
}

#[tokio::test]
async fn a_result_with_a_shape_is_a_tensor_column_through_the_plan() {
    let context = with([("n", numbers())]);
    let output = Output::new(DLDataType::FLOAT64, [2, 2]);
    let udf = stateless(returning(output), |batch| {
        Ok(ManagedTensor::from(Array3::<f64>::ones((batch.rows, 2, 2))))
    });
    context.register_udf(udf.clone());
    let shape =
        Extension::FixedShapeTensor { shape: vec![2, 2], dimensions: Dimensions::default() };
    let sql = "SELECT m AS renamed FROM (SELECT total(n) AS m, n FROM t) WHERE n > 1 ORDER BY n";
    let planned = context.sql(sql).await.expect("a plan");
    assert_eq!(Extension::of(planned.schema().field(0)).expect("sound"), Some(shape.clone()));
    let batches = planned.collect().await.expect("a result");
    assert_eq!(Extension::of(batches[0].schema().field(0)).expect("sound"), Some(shape.clone()));
    assert_eq!(batches[0].column(0).as_fixed_size_list().value(0).len(), 4);

    // And by the DataFrame API, into a function that takes such a tensor.
    let trace = TensorUdf::new("trace")
        .input(Input::column("m", DLDataType::FLOAT64, [2, 2]))
        .output(Output::new(DLDataType::FLOAT64, []));
    let trace = stateless(trace, |batch| {
        let view = batch.tensors[0].view::<f64, IxDyn>()?;
        let traces = view.outer_iter().map(|m| m[[0, 0]] + m[[1, 1]]);
        Ok(ManagedTensor::from(traces.collect::<Array1<_>>()))
    });
    let table = context.table("t").await.expect("the table");
    let traces = trace.call(vec![udf.call(vec![col("n")])]);
    let traces = table.select(vec![traces]).expect("a plan");
    let batches = traces.collect().await.expect("a result");
    assert_eq!(batches[0].column(0).as_primitive::<Float64Type>().values(), &[2.0, 2.0, 2.0]);
}

#[tokio::test]
async fn a_constant_result_is_a_tensor_column_too() {
    let output = Output::new(F32, [1, 2]);
    let udf = stateless(returning(output), |_| Ok(ManagedTensor::from(array![[[1.0_f32, 2.0]]])));
    let context = session();
    context.register_udf(udf);
    let batches = run(&context, "SELECT total(1), total(NULL)").await.expect("a result");
    let shape =
        Extension::FixedShapeTensor { shape: vec![1, 2], dimensions: Dimensions::default() };
    for (index, is_null) in [(0, false), (1, true)] {
        let schema = batches[0].schema();
        assert_eq!(Extension::of(schema.field(index)).expect("sound"), Some(shape.clone()));
        assert_eq!(batches[0].column(index).is_null(0), is_null);
    }
}

#[tokio::test]
async fn a_result_is_of_the_type_that_was_asked_for() {
    let context = with([("n", numbers())]);
    let list = Output::new(F32, [2]).representation(Representation::FixedSizeList);
    let ones = |batch: arrow_dlpack_datafusion::Batch| -> Result<ManagedTensor, arrow_dlpack_datafusion::BoxError> {
        Ok(ManagedTensor::from(Array2::<f32>::ones((batch.rows, 2))))
    };
    context.register_udf(stateless(returning(list), ones));
    let batches = run(&context, "SELECT total(n) FROM t").await.expect("a result");
    let schema = batches[0].schema();
    assert!(matches!(schema.field(0).data_type(), DataType::FixedSizeList(_, 2)));
    assert_eq!(schema.field(0).extension_type_name(), None);

    let when = DataType::Timestamp(TimeUnit::Second, None);
    let field = Representation::Field(Arc::new(Field::new("", when.clone(), false)));
    let output = Output::new(DLDataType::INT64, []).representation(field);
    context.register_udf(stateless(returning(output), |batch| {
        Ok(ManagedTensor::from(Array1::<i64>::zeros(batch.rows)))
    }));
    let batches = run(&context, "SELECT total(n) FROM t").await.expect("a result");
    assert_eq!(batches[0].schema().field(0).data_type(), &when);
}

#[tokio::test]
async fn a_result_in_another_order_of_memory_is_the_same() {
    let context = with([("n", numbers())]);
    let output = Output::new(F32, [2]);
    context.register_udf(stateless(returning(output), |_| {
        let by_column = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]].reversed_axes();
        Ok(ManagedTensor::from(by_column))
    }));
    let expected = ["[1.0, 4.0]", "[2.0, 5.0]", "[3.0, 6.0]"];
    assert_eq!(rows(&context, "SELECT total(n) FROM t").await, expected);
}

#[tokio::test]
async fn a_result_of_one_column_is_one_value_a_row() {
    let context = with([("n", numbers())]);
    context.register_udf(stateless(returning(Output::default()), |_| {
        Ok(ManagedTensor::from(ndarray::arr2(&[[1.5_f32], [2.5], [3.5]])))
    }));
    assert_eq!(rows(&context, "SELECT total(n) FROM t").await, ["1.5", "2.5", "3.5"]);
}

#[tokio::test]
async fn a_result_of_other_rows_shape_or_dtype_is_an_error() {
    let cases: [(ManagedTensor, &str); 5] = [
        (ManagedTensor::from(arr1(&[1.0_f32, 2.0])), "total returned float32 [2], not float32 [3]"),
        (
            ManagedTensor::from(Array2::<f32>::zeros((3, 2))),
            "total returned float32 [3, 2], not float32 [3]",
        ),
        (
            ManagedTensor::from(Array2::<f32>::zeros((1, 3))),
            "total returned float32 [1, 3], not float32 [3]",
        ),
        (
            ManagedTensor::from(arr1(&[1.0, 2.0, 3.0])),
            "total returned float64 [3], not float32 [3]",
        ),
        (ManagedTensor::from(ndarray::arr0(1.0_f32)), "total returned float32 [], not float32 [3]"),
    ];
    for (result, expected) in cases {
        let context = with([("n", numbers())]);
        let result = std::sync::Mutex::new(Some(result));
        context.register_udf(stateless(returning(Output::default()), move |_| {
            Ok(result.lock().expect("one thread").take().expect("one call"))
        }));
        let error = failed(&context, "SELECT total(n) FROM t").await;
        assert_eq!(error, format!("Execution error: {expected}"));
    }
}

#[tokio::test]
async fn an_error_of_the_function_is_an_error_of_the_query() {
    let context = with([("n", numbers())]);
    context.register_udf(stateless(returning(Output::default()), |_| Err("out of luck".into())));
    let error = failed(&context, "SELECT total(n) FROM t").await;
    assert_eq!(error, "total failed\ncaused by\nExternal error: out of luck");
}

#[tokio::test]
async fn a_panic_of_the_function_is_an_error_of_the_query() {
    let context = with([("n", numbers())]);
    context.register_udf(stateless(returning(Output::default()), |batch| {
        let tensor = batch.tensors.get(7);
        assert!(tensor.is_some(), "no tensor {}", 7);
        unreachable!()
    }));
    let error = failed(&context, "SELECT total(n) FROM t").await;
    assert_eq!(error, "Execution error: total panicked: no tensor 7");
    // The session goes on.
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await, ["3"]);
}

#[test]
fn a_description_that_contradicts_itself_is_an_error() {
    let input = || Input::column("x", F32, [2]);
    let refused = |udf: TensorUdf| {
        let built = udf.build(|_| unreachable!());
        let error = built.map(|_| ()).expect_err("an error").strip_backtrace();
        error.strip_prefix("Error during planning: ").unwrap_or(&error).to_owned()
    };
    let with_input = |input| sum_of(input);
    assert_eq!(refused(TensorUdf::new("")), "a function needs a name");
    let no_input = TensorUdf::new("f");
    assert_eq!(refused(no_input), "f: a function of tensors needs an input");
    let stopped = sum_of(input()).batch_rows(0);
    assert_eq!(refused(stopped), "total: batches must have at least one row");
    let twice = sum_of(input()).input(input());
    assert_eq!(refused(twice), "Duplicate parameter name: 'x'");
    let no_columns = Input::columns("x", F32, [""; 0]);
    assert_eq!(refused(with_input(no_columns)), "total: \"x\": a matrix needs a column");
    let negative = refused(with_input(Input::column("x", F32, [-1])));
    assert!(negative.starts_with("total: \"x\": there is no array of type"), "{negative}");
    let half = DLDataType { bits: 4, ..DLDataType::INT8 };
    assert_eq!(
        refused(with_input(Input::column("x", half, []))),
        "total: \"x\": int4 has no Arrow type here: functions take and return numbers of 8 to 64 \
         bits, and booleans"
    );
    let opaque = Output::default().representation(Representation::Bool8);
    assert_eq!(
        refused(sum_of(input()).output(opaque)),
        "total: its output: float32 cannot be represented as arrow.bool8, which is for bool"
    );
}

#[tokio::test]
async fn functions_of_one_name_replace_each_other_and_differ() {
    let one = summing(sum_of(Input::columns("x", F32, ["a", "b"])));
    let other = summing(sum_of(Input::columns("x", F32, ["a", "b"])));
    assert!(one == one.clone() && one != other);
    let context = session();
    context.register_udf(one);
    context.register_udf(other);
    assert_eq!(rows(&context, "SELECT total(1, 2)").await, ["3.0"]);
}
