//! A small neural network, whose weights are in a file by `data/make_delay.py`.

use std::path::Path;

use arrow_dlpack_datafusion::BoxError;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Layers of weights and biases, with nothing below 0 going from one to the next.
pub(crate) struct Mlp(Vec<(Array2<f32>, Array1<f32>)>);

impl Mlp {
    pub(crate) fn load(path: impl AsRef<Path>) -> Result<Self, BoxError> {
        let layers: Vec<(Vec<Vec<f32>>, Vec<f32>)> =
            serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let layers = layers.into_iter().map(|(weights, bias)| {
            let shape = (weights.len(), bias.len());
            let weights = Array2::from_shape_vec(shape, weights.into_iter().flatten().collect())?;
            Ok((weights, Array1::from_vec(bias)))
        });
        Ok(Self(layers.collect::<Result<_, BoxError>>()?))
    }

    /// A delay for each row of features.
    pub(crate) fn predict(&self, features: ArrayView2<'_, f32>) -> Array1<f32> {
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
