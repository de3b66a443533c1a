//! A neural network in a query: the delay of each carrier's flights, by a model in `ndarray`.
//!
//!     cargo run --package arrow-dlpack-datafusion --example flights

use arrow_dlpack::ManagedTensor;
use arrow_dlpack_datafusion::BoxError;
use delay::Mlp;
use ndarray::Ix2;

mod delay;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let context = delay::flights().await?;
    context.register_udf(delay::predict_delay().build_with_state(
        || Mlp::load(delay::path("delay.json")),
        |model, batch| Ok(ManagedTensor::from(model.predict(batch.view::<f32, Ix2>(0)?))),
    )?);
    delay::check(&context).await
}
