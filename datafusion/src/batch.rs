//! The argument of the user's closure.

use std::sync::Arc;

use arrow_dlpack::ManagedTensor;

use crate::TensorUdf;

/// The tensors of one call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// Number of rows of the tensors; at least one.
    pub rows: usize,
    /// One tensor per input, read-only. They share the batch's memory where possible.
    pub tensors: Vec<ManagedTensor>,
    /// With [`NullPolicy::Masked`](arrow_dlpack::NullPolicy::Masked), one boolean tensor per input, true for valid
    /// values; otherwise empty.
    pub masks: Vec<ManagedTensor>,
    #[cfg_attr(
        not(feature = "ndarray"),
        expect(dead_code, reason = "errors of views name inputs")
    )]
    pub(crate) udf: Arc<TensorUdf>,
}

#[cfg(feature = "ndarray")]
mod views {
    use arrow_dlpack::{ElementOrBool, Error, ManagedTensor};
    use datafusion_common::{Result, exec_datafusion_err, exec_err};
    use ndarray::{ArrayView, Dimension};

    use super::Batch;

    impl Batch {
        /// The tensor of an input, counted from 0, as an ndarray view with elements `T` and dimension `D`. Never a
        /// copy.
        ///
        /// The first axis is the axis of rows; `IxDyn` allows any number of axes.
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
        /// An execution error if there is no such input, or if its dtype or rank is not that of `T` and `D`; it
        /// states the input's name, dtype and shape.
        pub fn view<T: ElementOrBool, D: Dimension>(
            &self,
            input: usize,
        ) -> Result<ArrayView<'_, T, D>> {
            self.view_of(&self.tensors, input, "")
        }

        /// The validity of an input, counted from 0, in the shape of its tensor: true for valid values. Never a copy.
        ///
        /// ```
        /// use arrow_dlpack::{ManagedTensor, NullPolicy, ffi::DLDataType};
        /// use arrow_dlpack_datafusion::{Input, TensorUdf};
        /// use ndarray::{Ix1, Zip};
        ///
        /// let or_zero = TensorUdf::new("or_zero")
        ///     .input(Input::column("x", DLDataType::FLOAT32, []))
        ///     .with_nulls(NullPolicy::Masked)
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
        /// As [`Self::view`]; an execution error if the function was not declared with
        /// [`NullPolicy::Masked`](arrow_dlpack::NullPolicy::Masked).
        pub fn mask<D: Dimension>(&self, input: usize) -> Result<ArrayView<'_, bool, D>> {
            if self.masks.is_empty() {
                let name = &self.udf.name;
                return exec_err!(
                    "{name} has no masks: `.with_nulls(NullPolicy::Masked)` declares them"
                );
            }
            self.view_of(&self.masks, input, "the mask of ")
        }

        fn view_of<'a, T: ElementOrBool, D: Dimension>(
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
