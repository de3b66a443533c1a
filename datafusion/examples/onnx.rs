//! The same query by an ONNX model, which ONNX Runtime runs.
//!
//!     ORT_DYLIB_PATH=.../libonnxruntime.so cargo run --package arrow-dlpack-datafusion --example onnx
//!
//! The library is in the Python package `onnxruntime`, under `capi`, or in a release of ONNX Runtime.

use std::sync::Mutex;

use arrow_dlpack::ManagedTensor;
use arrow_dlpack_datafusion::BoxError;
use ndarray::Array1;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;

mod delay;

/// A session runs one batch at a time; it has threads of its own.
struct Model {
    session: Mutex<Session>,
    _environment: Environment,
}

impl Model {
    fn load() -> Result<Self, BoxError> {
        let library = std::env::var("ORT_DYLIB_PATH")
            .map_err(|_| "ORT_DYLIB_PATH is to say where libonnxruntime is")?;
        let environment = ort::init_from(library)?.build()?;
        let session =
            Session::builder(&environment)?.commit_from_file(delay::path("delay.onnx"))?;
        Ok(Self { session: Mutex::new(session), _environment: environment })
    }

    /// A delay for each row of features, which are read where they lie.
    fn predict(&self, features: &[f32]) -> Result<Array1<f32>, BoxError> {
        let input = TensorRef::from_array_view(([features.len() / 3, 3], features))?;
        let mut session = self.session.lock().map_err(|_| "an earlier batch panicked")?;
        let outputs = session.run(ort::inputs![input])?;
        // The result is the session's own: a copy, of one number a row.
        let (_, delays) = outputs[0].try_extract_tensor::<f32>()?;
        Ok(delays.iter().copied().collect())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let context = delay::flights().await?;
    context.register_udf(delay::predict_delay().build_with_state(
        Model::load,
        |model, batch| {
            let features = batch.tensors[0].as_slice::<f32>().ok_or("a matrix is row after row")?;
            Ok(ManagedTensor::from(model.predict(features)?))
        },
    )?);
    delay::check(&context).await
}
