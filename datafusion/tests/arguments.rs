//! What a function may be called with, and what it gets.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int64Array, ListArray, StringArray,
};
use arrow_dlpack::ManagedTensor;
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack_datafusion::{Batch, Input, Output, TensorUdf};
use arrow_schema::Field;
use datafusion::logical_expr::Volatility;
use ndarray::{Ix1, Ix2, IxDyn};
use support::{
    F32, array, each_row, embeddings, failed, matrix, rows, stateless, sum_of, summing, unplanned,
    vector, with, with_columns,
};

mod support;

fn two_rows() -> ArrayRef {
    embeddings(&[Some([Some(1.0), Some(2.0)]), Some([Some(3.0), Some(4.0)])])
}

#[tokio::test]
async fn a_list_of_fixed_size_is_a_matrix_over_the_same_memory() {
    let column = two_rows();
    let values = column.to_data().child_data()[0].buffers()[0].as_ptr().addr();
    let context = with([("x", Arc::clone(&column))]);
    let input = Input::column("x", F32, [2]);
    context.register_udf(stateless(sum_of(input), move |batch| {
        assert_eq!(batch.tensors[0].as_ptr().addr(), values);
        assert!(batch.tensors[0].is_read_only() && batch.masks.is_empty());
        Ok(each_row(&batch, |row| row.sum()))
    }));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["3.0", "7.0"]);
}

#[tokio::test]
async fn a_slice_is_a_tensor_of_its_rows() {
    let context = with([("x", two_rows().slice(1, 1))]);
    context.register_udf(summing(sum_of(Input::column("x", F32, [2]))));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["7.0"]);
}

/// Rows of two by three, stored as three by two: what the permutation says.
#[tokio::test]
async fn a_tensor_column_comes_in_its_shape() {
    let values = (0..12_u8).map(|value| Some(f32::from(value))).collect::<Vec<_>>();
    let storage = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        values.chunks(6).map(|row| Some(row.to_vec())),
        6,
    );
    let dimensions = Dimensions { permutation: Some(vec![1, 0]), names: None };
    let extension = Extension::FixedShapeTensor { shape: vec![3, 2], dimensions };
    let field = extension.annotate(Field::new("x", storage.data_type().clone(), false));
    let context = with_columns([(field, Arc::new(storage))]);
    let first_row = stateless(sum_of(Input::column("x", F32, [2, 3])), |batch| {
        let view = batch.tensors[0].view::<f32, IxDyn>()?;
        assert_eq!(view.shape(), [2, 2, 3]);
        Ok(ManagedTensor::from(
            view.outer_iter().map(|x| x[[1, 2]]).collect::<ndarray::Array1<_>>(),
        ))
    });
    context.register_udf(first_row);
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["5.0", "11.0"]);

    context.register_udf(summing(sum_of(Input::column("x", F32, [3, 2]))));
    assert_eq!(
        unplanned(&context, "SELECT total(x) FROM t").await,
        "Error during planning: total: argument \"x\" takes float32 [3, 2] a row, \
         not FixedSizeList(6 x Float32): its rows have shape [2, 3]"
    );
}

#[tokio::test]
async fn lists_of_other_numbers_are_converted_and_keep_their_shape() {
    let doubles = [[1.5, 2.5, 3.5, 4.5]].map(|row| Some(row.map(Some)));
    let storage = FixedSizeListArray::from_iter_primitive::<arrow_array::types::Float64Type, _, _>(
        doubles, 4,
    );
    let extension =
        Extension::FixedShapeTensor { shape: vec![2, 2], dimensions: Dimensions::default() };
    let field = extension.annotate(Field::new("x", storage.data_type().clone(), false));
    let context = with_columns([(field, Arc::new(storage))]);
    context.register_udf(stateless(sum_of(Input::column("x", F32, [2, 2])), |batch| {
        let view = batch.tensors[0].view::<f32, IxDyn>()?;
        assert_eq!(view.shape(), [1, 2, 2]);
        Ok(ManagedTensor::from(ndarray::arr1(&[view.sum()])))
    }));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["12.0"]);
}

#[tokio::test]
async fn each_input_has_the_shape_of_its_own_column() {
    let extension = |shape: [i64; 2]| Extension::FixedShapeTensor {
        shape: shape.to_vec(),
        dimensions: Dimensions::default(),
    };
    let storage = embeddings(&[Some([Some(1.0), Some(2.0), Some(3.0), Some(4.0)])]);
    let column = |name, shape| {
        let field = Field::new(name, storage.data_type().clone(), false);
        (extension(shape).annotate(field), Arc::clone(&storage))
    };
    let number = Field::new("n", arrow_schema::DataType::Float32, false);
    let context = with_columns([
        column("wide", [1, 4]),
        (number, array(Float32Array::from(vec![10.0]))),
        column("tall", [4, 1]),
    ]);
    let udf = TensorUdf::new("total")
        .input(Input::column("w", F32, [1, 4]))
        .input(Input::columns("pair", F32, ["n", "m"]))
        .input(Input::column("t", F32, [4, 1]));
    context.register_udf(stateless(udf, |batch| {
        let shapes: Vec<_> = batch.tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
        assert_eq!(shapes, [vec![1, 1, 4], vec![1, 2], vec![1, 4, 1]]);
        Ok(ManagedTensor::from(ndarray::arr1(&[matrix::<f32>(&batch.tensors[1]).sum()])))
    }));
    assert_eq!(rows(&context, "SELECT total(wide, n, 5, tall) FROM t").await, ["15.0"]);
}

#[tokio::test]
async fn lists_of_any_size_are_checked_when_they_are_read() {
    let good = [Some(vec![Some(1), Some(2)]), Some(vec![Some(3), Some(4)])];
    let context = with([("x", array(ListArray::from_iter_primitive::<Int32Type, _, _>(good)))]);
    context.register_udf(summing(sum_of(Input::column("x", F32, [2]))));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["3.0", "7.0"]);

    let bad = [Some(vec![Some(1), Some(2)]), Some(vec![Some(3)])];
    let context = with([("x", array(ListArray::from_iter_primitive::<Int32Type, _, _>(bad)))]);
    context.register_udf(summing(sum_of(Input::column("x", F32, [2]))));
    assert!(failed(&context, "SELECT total(x) FROM t").await.contains("FixedSizeList(2)"));
}

#[tokio::test]
async fn columns_of_any_numbers_become_one_matrix() {
    let keys = Int8Array::from(vec![1, 0]);
    let dictionary =
        DictionaryArray::<Int8Type>::new(keys, Arc::new(Int64Array::from(vec![100, 200])));
    let decimal = Decimal128Array::from(vec![1250, 2250]).with_precision_and_scale(6, 2);
    let context = with([
        ("a", array(Float64Array::from(vec![0.5, 1.5]))),
        ("b", array(Int16Array::from(vec![1, 2]))),
        ("c", array(BooleanArray::from(vec![true, false]))),
        ("d", array(dictionary)),
        ("e", array(decimal.expect("a decimal"))),
    ]);
    let input = Input::columns("x", F32, ["a", "b", "c", "d", "e"]);
    context.register_udf(stateless(sum_of(input), |batch| {
        let expected = ndarray::arr2(&[[0.5, 1.0, 1.0, 200.0, 12.5], [1.5, 2.0, 0.0, 100.0, 22.5]]);
        assert_eq!(matrix::<f32>(&batch.tensors[0]), expected);
        assert_eq!(&*batch.tensors[0].strides(), [5, 1]);
        Ok(each_row(&batch, |row| row.sum()))
    }));
    assert_eq!(rows(&context, "SELECT total(a, b, c, d, e) FROM t").await, ["215.0", "126.0"]);
    let named = "SELECT total(e => e, a => a, b => b, c => c, d => d) FROM t";
    assert_eq!(rows(&context, named).await, ["215.0", "126.0"]);
}

#[tokio::test]
async fn casts_are_in_the_plan() {
    let context = with([("a", array(Int16Array::from(vec![1])))]);
    context.register_udf(summing(sum_of(Input::columns("x", F32, ["a", "b"]))));
    let plan = rows(&context, "EXPLAIN SELECT total(a, 0.5) FROM t").await.join("\n");
    assert!(plan.contains("total(CAST(t.a AS Float32), Float32(0.5))"), "{plan}");
}

/// `total(a, b)` of a function that takes either as it comes.
fn pair(broadcast: bool, volatility: Volatility) -> TensorUdf {
    let input = |name| Input::column(name, F32, []).broadcast(broadcast);
    TensorUdf::new("total").input(input("a")).input(input("b")).volatility(volatility)
}

#[tokio::test]
async fn constants_come_as_rows_of_their_own_or_as_one_with_stride_0() {
    for (broadcast, stride) in [(false, 1), (true, 0)] {
        let context = with([("a", array(Float32Array::from(vec![1.0, 2.0, 3.0])))]);
        let udf = stateless(pair(broadcast, Volatility::Immutable), move |batch| {
            assert_eq!((batch.rows, batch.tensors[1].shape()), (3, &[3][..]));
            assert_eq!(*batch.tensors[1].strides(), [stride]);
            let (a, b) = (vector::<f32>(&batch.tensors[0]), vector::<f32>(&batch.tensors[1]));
            Ok(ManagedTensor::from(&a + &b))
        });
        context.register_udf(udf);
        assert_eq!(rows(&context, "SELECT total(a, 10) FROM t").await, ["11.0", "12.0", "13.0"]);
        assert_eq!(rows(&context, "SELECT total(a, NULL) FROM t").await, ["", "", ""]);
    }
}

#[tokio::test]
async fn a_call_of_constants_is_computed_when_planning_unless_it_is_volatile() {
    for (volatility, expected) in [(Volatility::Immutable, 1), (Volatility::Volatile, 3)] {
        let context = with([("a", array(Float32Array::from(vec![1.0, 2.0, 3.0])))]);
        let udf = stateless(pair(true, volatility), move |batch| {
            assert_eq!(batch.rows, expected);
            let (a, b) = (vector::<f32>(&batch.tensors[0]), vector::<f32>(&batch.tensors[1]));
            Ok(ManagedTensor::from(&a + &b))
        });
        context.register_udf(udf);
        assert_eq!(rows(&context, "SELECT total(1, 10) FROM t").await, ["11.0"; 3]);
        let plan = rows(&context, "EXPLAIN SELECT total(1, 10) FROM t").await.join("\n");
        assert_eq!(plan.contains("Float32(11)"), volatility == Volatility::Immutable, "{plan}");
    }
}

#[tokio::test]
async fn integers_and_booleans_are_tensors_too() {
    let context = with([
        ("token", array(Int64Array::from(vec![2, 0, 1]))),
        ("flag", array(BooleanArray::from(vec![true, false, true]))),
    ]);
    let udf = TensorUdf::new("next")
        .input(Input::column("token", DLDataType::INT32, []))
        .input(Input::column("flag", DLDataType::BOOL, []))
        .output(Output::new(DLDataType::INT64, []));
    context.register_udf(stateless(udf, |batch| {
        assert_eq!(batch.tensors[1].dtype(), DLDataType::BOOL);
        assert_eq!(batch.view::<bool, Ix1>(1)?, ndarray::arr1(&[true, false, true]));
        let tokens = vector::<i32>(&batch.tensors[0]);
        Ok(ManagedTensor::from(tokens.mapv(|token| i64::from(token) + 1)))
    }));
    assert_eq!(rows(&context, "SELECT next(token, flag) FROM t").await, ["3", "1", "2"]);
    let beyond = failed(&context, "SELECT next(token + 2147483647, flag) FROM t").await;
    assert!(beyond.contains("Can't cast value"), "{beyond}");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_when_planning() {
    let context = with([
        ("x", two_rows()),
        ("n", array(Float64Array::from(vec![0.5, 1.5]))),
        ("s", array(StringArray::from(vec!["a", "b"]))),
    ]);
    context.register_udf(summing(sum_of(Input::column("x", F32, [3]))));
    let ask = async |call: &str| unplanned(&context, &format!("SELECT {call} FROM t")).await;
    let refused = |why: &str| {
        format!("Error during planning: total: argument \"x\" takes float32 [3] a row, not {why}")
    };
    assert_eq!(
        ask("total(x)").await,
        refused("FixedSizeList(2 x Float32): its rows have shape [2]")
    );
    assert_eq!(ask("total(n)").await, refused("Float64: it has one value a row"));
    assert_eq!(ask("total(s)").await, refused("Utf8: cast it to numbers"));
    assert_eq!(
        ask("total(x, n)").await,
        "Error during planning: total takes 1 argument (x), not 2"
    );

    context.register_udf(summing(sum_of(Input::columns("x", DLDataType::INT32, ["a", "b"]))));
    assert_eq!(
        ask("total(1, n)").await,
        "Error during planning: total: argument \"b\" takes int32 a row, not Float64: \
         cast it explicitly, because values may not fit"
    );
    assert_eq!(
        ask("total()").await,
        "Error during planning: total takes 2 arguments (a, b), not 0"
    );
}

#[tokio::test]
async fn names_of_columns_come_from_any_iterator() {
    let context = with([("n", array(Float32Array::from(vec![1.0, 2.0])))]);
    let names = (0..3).map(|index| format!("x{index}"));
    context.register_udf(summing(sum_of(Input::columns(String::from("x"), F32, names))));
    let named = "SELECT total(x1 => 10, x0 => n, x2 => 100) FROM t";
    assert_eq!(rows(&context, named).await, ["111.0", "112.0"]);
}

#[tokio::test]
async fn a_matrix_of_one_column_is_a_matrix() {
    let context = with([("n", array(Float32Array::from(vec![1.0, 2.0])))]);
    context.register_udf(stateless(sum_of(Input::columns("x", F32, ["n"])), |batch| {
        assert_eq!(batch.tensors[0].shape(), [2, 1]);
        Ok(each_row(&batch, |row| row.sum()))
    }));
    assert_eq!(rows(&context, "SELECT total(n) FROM t").await, ["1.0", "2.0"]);
}

#[tokio::test]
async fn a_view_is_of_the_type_and_rank_that_are_asked_for_over_the_same_memory() {
    let context = with([("x", two_rows()), ("n", array(Float32Array::from(vec![0.5, 1.5])))]);
    let udf = sum_of(Input::column("x", F32, [2])).input(Input::column("n", F32, []));
    context.register_udf(stateless(udf, |batch| {
        let (x, n) = (batch.view::<f32, Ix2>(0)?, batch.view::<f32, Ix1>(1)?);
        assert_eq!(x.as_ptr().addr(), batch.tensors[0].as_ptr().addr());
        assert_eq!(batch.view::<f32, IxDyn>(0)?.shape(), [2, 2]);
        Ok(ManagedTensor::from(&x.column(1) + &n))
    }));
    assert_eq!(rows(&context, "SELECT total(x, n) FROM t").await, ["2.5", "5.5"]);
}

#[tokio::test]
async fn a_view_of_something_else_is_an_error_that_names_the_input() {
    type View = fn(&Batch) -> datafusion::error::Result<()>;
    let views: [(View, &str); 4] = [
        (|batch| batch.view::<f64, Ix2>(0).map(drop), "\"x\" is float32 [2, 2], not float64"),
        (|batch| batch.view::<f32, Ix1>(0).map(drop), "\"x\" is float32 [2, 2], of rank 2, not 1"),
        (|batch| batch.view::<i32, Ix2>(1).map(drop), "\"pair\" is float32 [2, 2], not int32"),
        (
            |batch| batch.view::<f32, Ix2>(2).map(drop),
            "there is no input 2 among 2, counted from 0",
        ),
    ];
    let context = with([("x", two_rows()), ("n", array(Float32Array::from(vec![0.5, 1.5])))]);
    for (view, expected) in views {
        let pair = Input::columns("pair", F32, ["a", "b"]);
        let udf = sum_of(Input::column("x", F32, [2])).input(pair);
        context.register_udf(stateless(udf, move |batch| {
            view(&batch)?;
            unreachable!()
        }));
        let error = failed(&context, "SELECT total(x, n, n) FROM t").await;
        assert_eq!(error, format!("total failed\ncaused by\nExecution error: {expected}"));
    }
}
