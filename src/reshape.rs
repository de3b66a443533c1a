//! Copies of tensors, and other shapes of the same elements.

#[cfg(feature = "pyo3")]
use std::iter;

use crate::alloc::{Fresh, Unwritten};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::kernels::{self, CellValues, Cells};
#[cfg(feature = "pyo3")]
use crate::task;
use crate::tensor::TensorSpec;
use crate::{CopyPolicy, Error, ManagedTensor, layout};

impl ManagedTensor {
    /// Copies the elements to fresh CPU memory: row-major, aligned to 64 bytes, writable, flagged `IS_COPIED`.
    /// Supports any rank, strides and dtype, and any memory that the CPU can read.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::export;
    ///
    /// let shared = export::array(&Int32Array::from(vec![1, 2]))?;
    /// let copy = shared.copied()?;
    /// assert_eq!((shared.is_read_only(), copy.is_read_only()), (true, false));
    /// assert_eq!(copy.as_slice::<i32>(), shared.as_slice());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `UnreadableDevice`; `OutOfMemory`, which broadcast axes can cause with a few bytes of input; `PackedStrides`
    /// for strided elements of under 8 bits.
    pub fn copied(&self) -> Result<Self, Error> {
        let memory = kernels::gather(self)?;
        let padding = self.flags().intersection(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
        let (flags, shape) = (DLPackFlags::IS_COPIED.union(padding), self.shape());
        Self::from_fresh(
            memory,
            TensorSpec::new(self.dtype(), flags, shape, &layout::row_major(shape)),
        )
    }

    /// The elements of tensors of one dtype, one tensor after the other along their first axis, in fresh CPU memory as by
    /// [`Self::copied`]; `None` if they differ in dtype or in an extent after the first, or have no axis.
    ///
    /// # Errors
    ///
    /// As [`Self::copied`].
    #[cfg(feature = "pyo3")]
    pub(crate) fn concatenated(tensors: &[Self]) -> Result<Option<Self>, Error> {
        let Some(first) = tensors.first() else { return Ok(None) };
        let (dtype, [_, item @ ..]) = (first.dtype(), first.shape()) else { return Ok(None) };
        if first.itemsize().is_none() || !tensors.iter().all(|tensor| first.is_like(tensor)) {
            return Ok(None);
        }
        let (mut rows, mut nbytes) = (0i64, 0usize);
        for tensor in tensors {
            rows = rows.checked_add(tensor.shape()[0]).ok_or(Error::Overflow("number of rows"))?;
            nbytes = nbytes.checked_add(tensor.nbytes()).ok_or(Error::Overflow("size"))?;
        }
        let memory = Fresh::in_parts(nbytes, |mut out| {
            for tensor in tensors {
                task::check()?;
                tensor.append_to(&mut out)?;
            }
            out.finish();
            Ok(())
        })?;
        let shape: Vec<i64> = iter::once(rows).chain(item.iter().copied()).collect();
        let (flags, strides) = (DLPackFlags::IS_COPIED, layout::row_major(&shape));
        Self::from_fresh(memory, TensorSpec::new(dtype, flags, &shape, &strides)).map(Some)
    }

    /// Whether two tensors with axes have one dtype, and the same extents after the first.
    #[cfg(feature = "pyo3")]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self.shape(), other.shape()) {
            ([_, own @ ..], [_, theirs @ ..]) => own == theirs && self.dtype() == other.dtype(),
            _ => false,
        }
    }

    /// Appends the elements, row-major.
    ///
    /// # Errors
    ///
    /// As [`Self::copied`].
    pub(crate) fn append_to(&self, out: &mut Unwritten<'_>) -> Result<(), Error> {
        match (self.is_contiguous(), self.span()) {
            (true, Some((bytes, _))) => out.extend_from_slice(bytes),
            _ => out.extend_from_slice(&kernels::gather(self)?.into_buffer()),
        }
        Ok(())
    }

    /// Converts the elements to another dtype, in fresh CPU memory as by [`Self::copied`]. Conversions to integers must be
    /// exact; conversions to floats round, and a finite value that would become infinite is refused.
    ///
    /// ```
    /// use arrow_dlpack::{ManagedTensor, ffi::DLDataType};
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i64, 2], &[2])?.cast(DLDataType::FLOAT32)?;
    /// assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CannotCast`; `ValueDoesNotFit`, whose row is the index of the element in row-major order; the errors of
    /// [`Self::copied`].
    pub fn cast(&self, dtype: DLDataType) -> Result<Self, Error> {
        let from = self.dtype();
        if from == dtype {
            return self.copied();
        }
        if from.lanes != 1 || !kernels::can_convert(from, dtype) {
            return Err(Error::CannotCast { from, to: dtype });
        }
        let elements = match self.itemsize() {
            Some(_) => kernels::gather(self)?,
            None => kernels::unpack(self)?,
        };
        let bytes = elements.into_buffer();
        let cells =
            [Cells { values: CellValues::Words { bytes: &bytes, dtype: from }, nulls: None }];
        let nbytes = self.size().saturating_mul(dtype.item_bits(true) / 8);
        let memory =
            Fresh::in_parts(nbytes, |out| kernels::concatenate(&cells, dtype, None, None, out))?;
        let (shape, flags) = (self.shape(), DLPackFlags::IS_COPIED);
        Self::from_fresh(memory, TensorSpec::new(dtype, flags, shape, &layout::row_major(shape)))
    }

    /// Gives the elements another shape, in the same row-major order. One extent may be -1, and is then computed.
    /// Zero-copy if the strides allow it; the result is writable and exclusive if the tensor was.
    ///
    /// Source: [`reshape`](https://data-apis.org/array-api/latest/API_specification/generated/array_api.reshape.html)
    /// of the array API, `copy` included.
    ///
    /// ```
    /// use arrow_array::Float32Array;
    /// use arrow_dlpack::{CopyPolicy, ManagedTensor, export};
    ///
    /// let flat = export::array(&Float32Array::from(vec![1.0, 2.0, 3.0, 4.0]))?;
    /// let matrix = flat.reshape(&[2, -1], CopyPolicy::Never)?;
    /// assert_eq!((matrix.shape(), &*matrix.strides()), (&[2, 2][..], &[2, 1][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CannotReshape` if the number of elements differs, or several extents are -1; `NegativeExtent`; `Overflow`;
    /// `CopyForbidden` if the strides need a copy; the errors of [`Self::copied`] for the copy.
    pub fn reshape(self, shape: &[i64], copy: CopyPolicy) -> Result<Self, Error> {
        let shape = completed(&self, shape)?;
        if copy == CopyPolicy::Always {
            return self.copied()?.in_shape(&shape, &layout::row_major(&shape));
        }
        let strides = match self.size() {
            0 => Some(layout::row_major(&shape)),
            _ => strides(self.shape(), &self.strides(), &shape),
        };
        match (strides, self.row_major_obstacle()) {
            (Some(strides), _) => self.in_shape(&shape, &strides),
            (None, Some(reason)) if copy == CopyPolicy::Never => {
                Err(Error::CopyForbidden { reason, nbytes: self.nbytes() })
            }
            (None, _) => self.copied()?.in_shape(&shape, &layout::row_major(&shape)),
        }
    }
}

/// The shape with -1 replaced, if it has as many elements as the tensor.
fn completed(tensor: &ManagedTensor, shape: &[i64]) -> Result<Vec<i64>, Error> {
    let mut whole = shape.to_vec();
    let cannot = || Error::CannotReshape { from: tensor.shape().into(), to: shape.into() };
    if shape.iter().filter(|&&extent| extent == -1).count() > 1 {
        return Err(cannot());
    }
    if let Some(axis) = shape.iter().position(|&extent| extent == -1) {
        whole[axis] = 1;
        let others = layout::element_count(&whole)?;
        let left = tensor.size().checked_div(others).ok_or_else(cannot)?;
        whole[axis] = i64::try_from(left).map_err(|_| Error::Overflow("number of elements"))?;
    }
    if layout::element_count(&whole)? != tensor.size() {
        return Err(cannot());
    }
    Ok(whole)
}

/// The strides of a tensor with elements in another shape; `None` if a new axis would span two old ones that do not
/// form one run.
fn strides(from: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    let mut runs = layout::coalesce(from, strides);
    // The part of the innermost run that is not used yet: number of elements, and their step.
    let (mut left, mut step) = (1, 1);
    let mut new = vec![0; to.len()];
    for (stride, &extent) in new.iter_mut().zip(to).rev() {
        if extent != 1 && left == 1 {
            (left, step) = runs.pop()?;
        }
        *stride = step;
        if left % extent != 0 {
            return None;
        }
        left /= extent;
        // At the end of a run, the step leads outside the tensor, and is not used.
        step = step.saturating_mul(extent);
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::strides;

    #[test]
    fn a_new_axis_spans_one_run() {
        assert_eq!(strides(&[6], &[1], &[2, 3]), Some(vec![3, 1]));
        assert_eq!(strides(&[6], &[-2], &[2, 3]), Some(vec![-6, -2]));
        assert_eq!(strides(&[2, 3], &[3, 1], &[6]), Some(vec![1]));
        assert_eq!(strides(&[2, 3], &[4, 1], &[6]), None);
        assert_eq!(strides(&[4, 3], &[8, 1], &[2, 2, 3]), Some(vec![16, 8, 1]));
        assert_eq!(strides(&[4, 3], &[8, 1], &[2, 6]), None);
        assert_eq!(strides(&[2, 3], &[1, 2], &[3, 2]), None);
        assert_eq!(strides(&[5, 1], &[3, i64::MIN], &[1, 5, 1]), Some(vec![15, 3, 1]));
        assert_eq!(strides(&[4], &[0], &[2, 2]), Some(vec![0, 0]));
        assert_eq!(strides(&[1, 1], &[7, 7], &[]), Some(vec![]));
        assert_eq!(strides(&[], &[], &[1]), Some(vec![1]));
    }
}
