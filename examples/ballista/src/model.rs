//! The function that the query calls: a small neural network, whose weights are in a file.

use std::path::Path;

use ::ndarray::{Array1, Array2, ArrayView2, Axis, Ix2};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::ndarray;
use arrow_dlpack_datafusion::{BoxError, Input, TensorUdf};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

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
    let udf = TensorUdf {
        name: NAME.into(),
        inputs: vec![Input::columns("features", DLDataType::FLOAT32, features)],
        ..Default::default()
    };
    udf.build(
        move || Mlp::load(Path::new(&weights)),
        |model, batch| {
            let features = ndarray::view::<f32>(&batch.tensors[0])?.into_dimensionality::<Ix2>()?;
            Ok(ndarray::tensor(model.predict(features)))
        },
    )
}

/// Layers of weights and biases, with nothing below 0 going from one to the next.
struct Mlp(Vec<(Array2<f32>, Array1<f32>)>);

impl Mlp {
    fn load(path: &Path) -> Result<Self, BoxError> {
        // For whoever started this process to count.
        println!("loads {}", path.display());
        let layers: Vec<(Vec<Vec<f32>>, Vec<f32>)> =
            serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let layers = layers.into_iter().map(|(weights, bias)| {
            let shape = (weights.len(), bias.len());
            let weights = Array2::from_shape_vec(shape, weights.into_iter().flatten().collect())?;
            Ok((weights, Array1::from_vec(bias)))
        });
        Ok(Self(layers.collect::<Result<_, BoxError>>()?))
    }

    fn predict(&self, features: ArrayView2<'_, f32>) -> Array1<f32> {
        let mut values = features.to_owned();
        for (index, (weights, bias)) in self.0.iter().enumerate() {
            values = values.dot(weights) + bias;
            if index + 1 < self.0.len() {
                values.mapv_inplace(|value| value.max(0.0));
            }
        }
        values.remove_axis(Axis(1))
    }
}
