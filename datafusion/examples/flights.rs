//! A neural network in a query: the delay of each carrier's flights, by a model in `ndarray`.
//!
//!     cargo run --package arrow-dlpack-datafusion --example flights

use ::ndarray::Ix2;
use arrow_dlpack::ndarray;
use arrow_dlpack_datafusion::BoxError;
use delay::Mlp;

mod delay;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let context = delay::flights().await?;
    context.register_udf(delay::predict_delay().build(
        || Mlp::load(delay::path("delay.json")),
        |model, batch| {
            let features = ndarray::view::<f32>(&batch.tensors[0])?.into_dimensionality::<Ix2>()?;
            Ok(ndarray::tensor(model.predict(features)))
        },
    )?);
    delay::check(&context).await
}
