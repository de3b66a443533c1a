//! What both examples share: the flights, the model of data/delay.json in `ndarray`, and the averages that
//! it comes to without DataFusion's functions and without this library.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack_datafusion::{BoxError, Input, TensorUdf};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionContext};
use ndarray::{Array1, Array2};

pub(crate) use mlp::Mlp;

mod mlp;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");

/// The query. [`predict_delay`] is what each example registers.
const QUERY: &str = "SELECT carrier, avg(predict_delay(distance, hour, month)) \
     FROM flights GROUP BY carrier ORDER BY carrier";

pub(crate) fn path(name: &str) -> String {
    format!("{DATA}/{name}")
}

/// A session with the table `flights`.
pub(crate) async fn flights() -> Result<SessionContext, BoxError> {
    let context = SessionContext::new();
    let options = ParquetReadOptions::default();
    context.register_parquet("flights", path("flights.parquet"), options).await?;
    Ok(context)
}

/// The function, whatever its model.
pub(crate) fn predict_delay() -> TensorUdf {
    let features = ["distance", "hour", "month"];
    TensorUdf::new("predict_delay").input(Input::columns("features", DLDataType::FLOAT32, features))
}

/// Runs the query, and fails unless it returns what the model in `ndarray` does alone.
pub(crate) async fn check(context: &SessionContext) -> Result<(), BoxError> {
    println!("{QUERY}");
    let (carriers, features) = by_hand(context).await?;
    let expected = Mlp::load(path("delay.json"))?.predict(features.view());
    compare(context.sql(QUERY).await?, &carriers, &expected).await
}

/// The carriers and the features of all flights, by way of copies, as one has them without tensors.
async fn by_hand(context: &SessionContext) -> Result<(Vec<String>, Array2<f32>), BoxError> {
    let sql = "SELECT carrier, CAST(distance AS REAL), CAST(hour AS REAL), CAST(month AS REAL) FROM flights";
    let (mut carriers, mut features) = (Vec::new(), Vec::new());
    for batch in context.sql(sql).await?.collect().await? {
        for row in 0..batch.num_rows() {
            carriers.push(array_value_to_string(batch.column(0), row)?);
            let feature = |column| batch.column(column).as_primitive::<Float32Type>().value(row);
            features.extend([feature(1), feature(2), feature(3)]);
        }
    }
    let features = Array2::from_shape_vec((carriers.len(), 3), features)?;
    Ok((carriers, features))
}

/// Prints what a query returned for each carrier, and fails unless it is the average of these delays.
async fn compare(
    query: DataFrame,
    carriers: &[String],
    delays: &Array1<f32>,
) -> Result<(), BoxError> {
    let mut groups = BTreeMap::<&str, Vec<f32>>::new();
    for (carrier, &delay) in carriers.iter().zip(delays) {
        groups.entry(carrier).or_default().push(delay);
    }
    println!("  carrier  flights  predicted delay, minutes");
    let mut rows = 0;
    for batch in query.collect().await? {
        for row in 0..batch.num_rows() {
            let carrier = array_value_to_string(batch.column(0), row)?;
            let mean = batch.column(1).as_primitive::<Float64Type>().value(row);
            let group = groups.get(&*carrier).ok_or("a carrier that is not in the file")?;
            let sum: f64 = group.iter().map(|&delay| f64::from(delay)).sum();
            let expected = sum / f64::from(u32::try_from(group.len())?);
            println!("  {carrier:<7}  {:>7}  {mean:>10.2}", group.len());
            assert!((mean - expected).abs() < 1e-3, "{carrier}: {mean}, but it is {expected}");
            rows += 1;
        }
    }
    assert_eq!(rows, groups.len(), "not all carriers came back");
    Ok(())
}
