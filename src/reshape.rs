//! The same elements in another place, or along other axes.

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::ffi::DLPackFlags;
use crate::kernels;
use crate::layout;
use crate::memory::ManagedTensor;

impl ManagedTensor {
    /// The same elements in fresh CPU memory: row-major, aligned to 64 bytes, writable, flagged
    /// `IS_COPIED`. Any rank, strides and dtype; any memory that the CPU can read.
    ///
    /// # Errors
    ///
    /// `UnreadableDevice`; `OutOfMemory`, which a broadcast axis can reach with a few bytes of input;
    /// `PackedStrides` for strided elements of under 8 bits.
    pub fn copied(&self) -> Result<Self, Error> {
        let memory = kernels::gather(self)?;
        let padding = self.flags().intersection(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
        let flags = DLPackFlags::IS_COPIED.union(padding);
        Self::from_fresh(
            memory,
            0,
            self.dtype(),
            flags,
            self.shape(),
            &layout::row_major(self.shape()),
        )
    }

    /// The elements in the same row-major order, in another shape, in which one extent may be -1: whatever is left
    /// for it. Zero-copy where the strides allow it; what can be written to, or handed over, still can.
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
    /// `CannotReshape` to so many elements; `NegativeExtent`; `Overflow`; `CopyForbidden` where the strides do not
    /// allow it; those of [`Self::copied`] if it is copied.
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

/// The shape with what is left in place of -1, if it is one of as many elements.
fn completed(tensor: &ManagedTensor, shape: &[i64]) -> Result<Vec<i64>, Error> {
    let mut whole = shape.to_vec();
    let cannot = || Error::CannotReshape { from: tensor.shape().into(), to: shape.into() };
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

/// The strides with which elements of one shape, of which there are some, have another one; `None` if some new
/// axis would go along two old ones that are no run.
fn strides(from: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    let mut runs = layout::coalesce(from, strides);
    // What is left of the innermost run: so many elements, and the step between them.
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
        // Where nothing is left, the step leads out of the tensor, and is never taken.
        step = step.saturating_mul(extent);
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::strides;

    #[test]
    fn an_axis_goes_along_one_run() {
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
