//! A neural network in a query: the delay of each carrier's flights, by a model in `ndarray`.
//!
//!     cargo run --package arrow-dlpack-datafusion --example flights

use ::ndarray::Ix2;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::ndarray;
use arrow_dlpack_datafusion::{BoxError, Input, TensorUdf};
use delay::Mlp;

mod delay;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let context = delay::flights().await?;
    let predict_delay = TensorUdf {
        name: "predict_delay".into(),
        inputs: vec![Input::columns(
            "features",
            DLDataType::FLOAT32,
            ["distance", "hour", "month"],
        )],
        ..Default::default()
    };
    context.register_udf(predict_delay.build(Mlp::load, |model, batch| {
        let features = ndarray::view::<f32>(&batch.tensors[0])?.into_dimensionality::<Ix2>()?;
        Ok(ndarray::tensor(model.predict(features)))
    })?);

    println!("{}", delay::QUERY);
    let (carriers, features) = delay::by_hand(&context).await?;
    let expected = Mlp::load()?.predict(features.view());
    delay::compare(context.sql(delay::QUERY).await?, &carriers, &expected).await
}
