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
    #[cfg_attr(
        not(feature = "ndarray"),
        expect(dead_code, reason = "errors of views name inputs")
    )]
    pub(crate) udf: Arc<TensorUdf>,
}

#[cfg(feature = "ndarray")]
mod views {
    use arrow_dlpack::{Error, ManagedTensor, ViewElement};
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
        /// use arrow_dlpack::{ManagedTensor, ffi::DLDataType};
        /// use arrow_dlpack_datafusion::{Input, TensorUdf};
        /// use ndarray::{Axis, Ix2};
        ///
        /// let total = TensorUdf::new("total").input(Input::column("x", DLDataType::FLOAT32, [384]));
        /// let total = total.build(|batch| {
        ///     let rows = batch.view::<f32, Ix2>(0)?;
        ///     Ok(ManagedTensor::from(rows.sum_axis(Axis(1))))
        /// })?;
        /// # Ok::<(), datafusion::error::DataFusionError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// An execution error with the input's name, dtype and shape, if they are not those of `T` and `D`; or if there
        /// is no such input.
        pub fn view<T: ViewElement, D: Dimension>(
            &self,
            input: usize,
        ) -> Result<ArrayView<'_, T, D>> {
            self.view_of(&self.tensors, input, "")
        }

        /// Which values of an input, counted from 0, are valid: true where they are, in the shape of its tensor. Never a
        /// copy.
        ///
        /// ```
        /// use arrow_dlpack::{ManagedTensor, NullPolicy, ffi::DLDataType};
        /// use arrow_dlpack_datafusion::{Input, TensorUdf};
        /// use ndarray::{Ix1, Zip};
        ///
        /// let or_zero = TensorUdf::new("or_zero")
        ///     .input(Input::column("x", DLDataType::FLOAT32, []))
        ///     .nulls(NullPolicy::Masked)
        ///     .build(|batch| {
        ///         let (x, valid) = (batch.view::<f32, Ix1>(0)?, batch.mask::<Ix1>(0)?);
        ///         let values = Zip::from(&x).and(&valid);
        ///         Ok(ManagedTensor::from(values.map_collect(|&x, &valid| if valid { x } else { 0.0 })))
        ///     })?;
        /// # Ok::<(), datafusion::error::DataFusionError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`Self::view`]; and an execution error if the function was not declared with
        /// [`NullPolicy::Masked`](arrow_dlpack::NullPolicy::Masked).
        pub fn mask<D: Dimension>(&self, input: usize) -> Result<ArrayView<'_, bool, D>> {
            if self.masks.is_empty() {
                let name = &self.udf.name;
                return exec_err!(
                    "{name} has no masks: `.nulls(NullPolicy::Masked)` declares them"
                );
            }
            self.view_of(&self.masks, input, "the mask of ")
        }

        fn view_of<'a, T: ViewElement, D: Dimension>(
            &'a self,
            tensors: &'a [ManagedTensor],
            input: usize,
            what: &str,
        ) -> Result<ArrayView<'a, T, D>> {
            let (Some(tensor), Some(declared)) = (tensors.get(input), self.udf.inputs.get(input))
            else {
                let count = tensors.len();
                return exec_err!("there is no input {input} among {count}, counted from 0");
            };
            let (name, dtype, shape) = (&declared.name, tensor.dtype(), tensor.shape());
            let failed =
                |problem| exec_datafusion_err!("{what}{name:?} is {dtype} {shape:?}, {problem}");
            tensor.view().map_err(|error| {
                failed(match error {
                    Error::DtypeMismatch { expected, .. } => format!("not {expected}"),
                    Error::WrongRank { expected, ndim, .. } => {
                        format!("of rank {ndim}, not {expected}")
                    }
                    error => format!("which has no view: {error}"),
                })
            })
        }
    }
}
