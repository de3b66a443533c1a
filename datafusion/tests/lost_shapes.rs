//! Tensor columns that lost their metadata on the way: a function takes them in the shape that it declares.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, Int32Array};
use arrow_dlpack::ManagedTensor;
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack_datafusion::{Input, Output, TensorUdf};
use arrow_schema::{DataType, Field};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use ndarray::IxDyn;
use support::{
    F32, array, each_row, embeddings, rows, run, stateless, sum_of, unplanned, with, with_columns,
};

mod support;

/// Three rows of 0 to 5, 6 to 11 and 12 to 17.
fn lists() -> ArrayRef {
    let row = |first: u8| Some((first..first + 6).map(|value| Some(f32::from(value))));
    let rows = [row(0), row(6), row(12)];
    Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 6))
}

/// A table `t` of tensors `x` of two by three, of the same as flat lists `flat`, of `n` and `c`.
fn session() -> SessionContext {
    let (shape, dimensions) = (vec![2, 3], Dimensions::default());
    let extension = Extension::FixedShapeTensor { shape, dimensions };
    let list = |name: &str| Field::new(name, lists().data_type().clone(), true);
    let context = with_columns([
        (extension.annotate(list("x")), lists()),
        (list("flat"), lists()),
        (Field::new("n", DataType::Int32, false), array(Int32Array::from(vec![1, 2, 3]))),
        (
            Field::new("c", DataType::Boolean, false),
            array(BooleanArray::from(vec![true, true, true])),
        ),
    ]);
    register(&context);
    context
}

/// `last(x)`: the value in the last row and column of tensors of two by three; `twice(x)`: such tensors.
fn register(context: &SessionContext) {
    let input = || Input::column("x", F32, [2, 3]);
    let last = TensorUdf::new("last").input(input());
    context.register_udf(stateless(last, |batch| {
        let x = batch.tensors[0].view::<f32, IxDyn>()?;
        assert_eq!(x.shape(), [batch.rows, 2, 3]);
        let last = x.outer_iter().map(|row| row[[1, 2]]);
        Ok(ManagedTensor::from(last.collect::<ndarray::Array1<f32>>()))
    }));
    let twice = TensorUdf::new("twice").input(input()).output(Output::new(F32, [2, 3]));
    context.register_udf(stateless(twice, |batch| {
        Ok(ManagedTensor::from(&batch.tensors[0].view::<f32, IxDyn>()? * 2.0))
    }));
}

#[tokio::test]
async fn tensors_that_went_through_sql_keep_the_shape_that_the_function_declares() {
    let context = session();
    for lost in [
        "x",
        "CASE WHEN c THEN x ELSE x END",
        "CASE WHEN c THEN x END",
        "CASE WHEN c THEN x ELSE flat END",
        "coalesce(x, flat)",
        "nullif(x, flat)",
        "flat",
        "arrow_cast(x, 'FixedSizeList(6, Float32)')",
        "arrow_cast(x, 'List(Float32)')",
        "arrow_cast(x, 'FixedSizeList(6, Float64)')",
    ] {
        let sql = format!("SELECT last({lost}) FROM t ORDER BY n");
        let expected = match lost.starts_with("nullif") {
            true => ["", "", ""],
            false => ["5.0", "11.0", "17.0"],
        };
        assert_eq!(rows(&context, &sql).await, expected, "{lost}");
    }
    let computed = "SELECT last(coalesce(twice(x), x)) FROM t ORDER BY n";
    assert_eq!(rows(&context, computed).await, ["10.0", "22.0", "34.0"]);
}

#[tokio::test]
async fn tensors_of_aggregates_do_too() {
    let context = session();
    for of_all in ["max(x)", "last_value(x ORDER BY n)", "first_value(x ORDER BY n DESC)"] {
        let sql = format!("SELECT last({of_all}) FROM t");
        assert_eq!(rows(&context, &sql).await, ["17.0"], "{of_all}");
    }
    let windows = "SELECT last(lag(x) OVER (ORDER BY n)) FROM t ORDER BY n";
    assert_eq!(rows(&context, windows).await, ["", "5.0", "11.0"]);
    let union = "SELECT last(y) FROM (SELECT x AS y, n FROM t UNION ALL SELECT flat, n + 3 FROM t) ORDER BY n";
    assert_eq!(rows(&context, union).await, ["5.0", "11.0", "17.0", "5.0", "11.0", "17.0"]);
}

#[tokio::test]
async fn tensors_of_a_parquet_file_do_too() {
    let folder = std::env::temp_dir().join(format!("lost-shapes-{}", std::process::id()));
    let path = folder.to_str().expect("a text").to_owned();
    let tensors = session().sql("SELECT twice(x) AS x, n FROM t").await.expect("a plan");
    let written = tensors.write_parquet(&path, DataFrameWriteOptions::new(), None).await;
    written.expect("a file");
    let context = support::session();
    register(&context);
    context.register_parquet("p", &path, ParquetReadOptions::default()).await.expect("a table");
    let read = rows(&context, "SELECT last(x) FROM p ORDER BY n").await;
    std::fs::remove_dir_all(folder).expect("no more");
    assert_eq!(read, ["10.0", "22.0", "34.0"]);
}

/// A list of fixed size stays where it is.
#[tokio::test]
async fn the_tensor_lies_over_the_lists_memory() {
    let context = session();
    let column = run(&context, "SELECT flat FROM t").await.expect("a result").remove(0);
    let column = column.column(0).as_fixed_size_list().values().as_primitive::<Float32Type>();
    let address = column.values().as_ptr().addr();
    let udf = sum_of(Input::column("x", F32, [2, 3]));
    context.register_udf(stateless(udf, move |batch| {
        assert_eq!(batch.tensors[0].as_ptr().addr(), address);
        let rows = batch.tensors[0].view::<f32, IxDyn>()?;
        Ok(ManagedTensor::from(
            rows.outer_iter().map(|row| row.sum()).collect::<ndarray::Array1<f32>>(),
        ))
    }));
    assert_eq!(rows(&context, "SELECT total(flat) FROM t").await, ["15.0", "51.0", "87.0"]);
}

/// What says something else is something else: another shape in the metadata, other extents of nested lists,
/// another number of values.
#[tokio::test]
async fn shapes_that_are_there_are_not_read_as_others() {
    let context = session();
    for (name, shape) in [("turned", [3, 2]), ("wide", [1, 6])] {
        let udf = TensorUdf::new(name).input(Input::column("x", F32, shape));
        context.register_udf(stateless(udf, |batch| Ok(each_row(&batch, |row| row.sum()))));
    }
    for call in ["turned(x)", "wide(x)"] {
        let error = unplanned(&context, &format!("SELECT {call} FROM t")).await;
        assert!(error.contains("its rows have shape [2, 3]"), "{error}");
    }
    let nested = |size: i32| {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let values = lists().as_fixed_size_list().values().clone();
        let inner = FixedSizeListArray::new(item, size, values, None);
        let item = Arc::new(Field::new("item", inner.data_type().clone(), true));
        array(FixedSizeListArray::new(item, 6 / size, array(inner), None))
    };
    let four = embeddings(&[Some([Some(1.0); 4]), None, None]);
    let context = with([("turned", nested(2)), ("nested", nested(3)), ("four", four)]);
    register(&context);
    for (column, shape) in [("turned", "[3, 2]"), ("four", "[4]")] {
        let error = unplanned(&context, &format!("SELECT last({column}) FROM t")).await;
        assert!(error.contains(&format!("its rows have shape {shape}")), "{error}");
    }
    assert_eq!(rows(&context, "SELECT last(nested) FROM t").await, ["5.0", "11.0", "17.0"]);
}
