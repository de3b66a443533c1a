//! The function that the query calls: a small neural network, whose weights are in a file.

use arrow_dlpack::ManagedTensor;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack_datafusion::{Input, TensorUdf};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;
use ndarray::Ix2;

use mlp::Mlp;

// The network is that of the examples on one machine.
#[path = "../../../datafusion/examples/delay/mlp.rs"]
mod mlp;

pub(crate) const NAME: &str = "predict_delay";

/// The function; its parameter is the file that the weights are in.
pub(crate) fn make(name: &str, parameters: &[u8]) -> Result<ScalarUDF> {
    if name != NAME {
        return plan_err!("no function {name} is known here");
    }
    let Ok(weights) = String::from_utf8(parameters.to_vec()) else {
        return plan_err!("{name}: its parameter is the path of its weights");
    };
    let features = ["distance", "hour", "month"];
    TensorUdf::new(NAME)
        .input(Input::columns("features", DLDataType::FLOAT32, features))
        .build_with_state(
            move || {
                // The client counts these lines.
                println!("loads {weights}");
                Mlp::load(&weights)
            },
            |model, batch| Ok(ManagedTensor::from(model.predict(batch.view::<f32, Ix2>(0)?))),
        )
}
