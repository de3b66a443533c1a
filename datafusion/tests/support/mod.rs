//! A session, a table in it, and functions to call on it.
#![allow(dead_code, reason = "each file of tests uses some of it")]

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{Element, ManagedTensor};
use arrow_dlpack_datafusion::{Batch, BoxError, Input, TensorUdf};
use arrow_schema::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{SessionConfig, SessionContext};
use ndarray::{Array1, ArrayView1, ArrayView2};

/// One partition, so that batches come as they are in the table.
pub(crate) fn session() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1))
}

/// A session with the table `t` of these columns.
pub(crate) fn with_columns<const N: usize>(columns: [(Field, ArrayRef); N]) -> SessionContext {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("a batch");
    with_partitions(vec![vec![batch]])
}

/// The same of columns without more to say about them than their names.
pub(crate) fn with<const N: usize>(columns: [(&str, ArrayRef); N]) -> SessionContext {
    with_columns(
        columns.map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)),
    )
}

/// A session with the table `t` of these partitions.
pub(crate) fn with_partitions(partitions: Vec<Vec<RecordBatch>>) -> SessionContext {
    let count = partitions.len();
    let context =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(count));
    let schema = partitions[0][0].schema();
    let table = MemTable::try_new(schema, partitions).expect("a table");
    context.register_table("t", Arc::new(table)).expect("no other table");
    context
}

/// What a query returns, as text, a line a row, without the frame.
pub(crate) async fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
    let batches = run(context, sql).await.expect("a result");
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| {
                datafusion::arrow::util::display::array_value_to_string(column, row)
                    .expect("a printable value")
            };
            rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    rows
}

pub(crate) async fn run(
    context: &SessionContext,
    sql: &str,
) -> datafusion::error::Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// The error of a query that must not even be planned.
pub(crate) async fn unplanned(context: &SessionContext, sql: &str) -> String {
    match context.sql(sql).await {
        Ok(_) => panic!("{sql} was planned"),
        Err(error) => error.strip_backtrace(),
    }
}

/// The error of a query that is planned, and then fails.
pub(crate) async fn failed(context: &SessionContext, sql: &str) -> String {
    let planned = context.sql(sql).await.expect("a plan");
    planned.collect().await.expect_err("an error").strip_backtrace()
}

pub(crate) fn array(values: impl Array + 'static) -> ArrayRef {
    Arc::new(values)
}

pub(crate) fn matrix<T: Element>(tensor: &ManagedTensor) -> ArrayView2<'_, T> {
    tensor.view().expect("of the dtype and the rank that were declared")
}

pub(crate) fn vector<T: Element>(tensor: &ManagedTensor) -> ArrayView1<'_, T> {
    tensor.view().expect("of the dtype and the rank that were declared")
}

/// What a function over a matrix returns, one float a row.
pub(crate) fn each_row(batch: &Batch, of: impl Fn(ArrayView1<'_, f32>) -> f32) -> ManagedTensor {
    let rows = matrix::<f32>(&batch.tensors[0]);
    ManagedTensor::from(rows.rows().into_iter().map(of).collect::<Array1<f32>>())
}

/// The sum of each row of `x`, a matrix of this width.
pub(crate) fn sum_of(input: Input) -> TensorUdf {
    TensorUdf::new("total").input(input)
}

/// The description as a function that adds up each row of its matrix.
pub(crate) fn summing(udf: TensorUdf) -> ScalarUDF {
    stateless(udf, |batch| Ok(each_row(&batch, |row| row.sum())))
}

pub(crate) fn stateless(
    udf: TensorUdf,
    call: impl Fn(Batch) -> Result<ManagedTensor, BoxError> + Send + Sync + 'static,
) -> ScalarUDF {
    udf.build(call).expect("a sound description")
}

pub(crate) fn embeddings<const N: usize>(rows: &[Option<[Option<f32>; N]>]) -> ArrayRef {
    let size = i32::try_from(N).expect("few");
    let rows = rows.iter().copied();
    Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, size))
}

pub(crate) const F32: DLDataType = DLDataType::FLOAT32;
