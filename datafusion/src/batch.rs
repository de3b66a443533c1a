//! What a closure gets.

use std::sync::Arc;

use arrow_dlpack::ManagedTensor;

use crate::TensorUdf;

/// The tensors that a function is called with.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// How many rows the tensors have; never none.
    pub rows: usize,
    /// A tensor for each input. They share the batch's memory where that is possible: read-only.
    pub tensors: Vec<ManagedTensor>,
    /// With [`NullPolicy::Masked`](arrow_dlpack::NullPolicy::Masked), a tensor of booleans for each input, True where
    /// it is valid; else none.
    pub masks: Vec<ManagedTensor>,
    pub(crate) udf: Arc<TensorUdf>,
}

#[cfg(feature = "ndarray")]
mod views {
    use arrow_dlpack::ndarray::view;
    use arrow_dlpack::{Element, Error};
    use datafusion_common::{Result, exec_datafusion_err, exec_err};
    use ndarray::{ArrayView, Dimension};

    use super::Batch;

    impl Batch {
        /// The tensor of an input, counted from 0, as a view of ndarray: of `T`s, in as many axes as `D` has. Never a
        /// copy.
        ///
        /// The first axis is that of the rows; `IxDyn` takes any number of axes.
        ///
        /// ```
        /// use arrow_dlpack::{ffi::DLDataType, ndarray};
        /// use arrow_dlpack_datafusion::{Input, TensorUdf};
        /// use ::ndarray::{Axis, Ix2};
        ///
        /// let total = TensorUdf::new("total").input(Input::column("x", DLDataType::FLOAT32, [384]));
        /// let total = total.build(|batch| {
        ///     let rows = batch.view::<f32, Ix2>(0)?;
        ///     Ok(ndarray::tensor(rows.sum_axis(Axis(1))))
        /// })?;
        /// # Ok::<(), datafusion::error::DataFusionError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// An execution error with the input's name, dtype and shape, if they are not those of `T` and `D`; or if there
        /// is no such input.
        pub fn view<T: Element, D: Dimension>(&self, input: usize) -> Result<ArrayView<'_, T, D>> {
            let (Some(tensor), Some(declared)) =
                (self.tensors.get(input), self.udf.inputs.get(input))
            else {
                let count = self.tensors.len();
                return exec_err!("there is no input {input} among {count}, counted from 0");
            };
            let (name, dtype, shape) = (&declared.name, tensor.dtype(), tensor.shape());
            let failed = |problem| exec_datafusion_err!("{name:?} is {dtype} {shape:?}, {problem}");
            let view = view::<T>(tensor).map_err(|error| {
                failed(match error {
                    Error::DtypeMismatch { expected, .. } => format!("not {expected}"),
                    error => format!("which has no view: {error}"),
                })
            })?;
            let ndim = view.ndim();
            view.into_dimensionality()
                .map_err(|_| failed(format!("of rank {ndim}, not {}", D::NDIM.unwrap_or_default())))
        }
    }
}
