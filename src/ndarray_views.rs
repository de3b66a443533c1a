//! Tensors as `ndarray` views, and `ndarray` arrays as tensors (feature `ndarray`). The module is private, because a
//! glob import of a public one would shadow the crate.

use ndarray::{
    Array, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, Dimension, IxDyn,
    ShapeBuilder, StrideShape,
};

use crate::ffi::DLPackFlags;
use crate::tensor::TensorSpec;
use crate::{Element, ElementOrBool, Error, ManagedTensor, WriteObstacle, alloc::Fresh, layout};

/// Views by the crate [`ndarray`] (feature `ndarray`); its arrays become tensors by [`From`]. Both directions share
/// the memory, for any rank and any strides: sliced, reversed, broadcast, row- or column-major.
///
/// ```
/// use arrow_dlpack::ManagedTensor;
/// use ndarray::{Ix2, array, s};
///
/// // An array becomes a tensor that owns its memory.
/// let matrix = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let mut tensor = ManagedTensor::from(matrix.reversed_axes());
/// assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 2][..], &[1, 3][..]));
///
/// // Any tensor can be viewed; this one is exclusive, and can also be written to.
/// tensor.view_mut::<f32, Ix2>()?.slice_mut(s![0, ..]).fill(0.0);
/// assert_eq!(tensor.view::<f32, Ix2>()?, array![[0.0, 0.0], [2.0, 5.0], [3.0, 6.0]]);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Writing
///
/// [`view`](Self::view) relies only on what [`from_raw`](Self::from_raw) requires. [`view_mut`](Self::view_mut) needs
/// exclusive access to the memory. Two holders of one array can both have a writable tensor of it, so a
/// `&mut ManagedTensor` alone does not prove that. These tensors are exclusive:
///
/// - a tensor that this crate made of memory without other owners: an array of `ndarray`,
///   [`from_vec`](Self::from_vec), [`export::into_tensor`](crate::export::into_tensor), [`copied`](Self::copied);
/// - a tensor of another library that is flagged `IS_COPIED`, which asserts this;
/// - a tensor after [`assume_exclusive`](Self::assume_exclusive), which is unsafe, because it cannot be checked.
///
/// All others are refused, and so are all read-only tensors, including all from the legacy ABI, which has no
/// read-only flag.
///
/// # Limits
///
/// `T` must be the tensor's own element type: nothing is converted. `bool` is for reading only. The test for overlap,
/// in ndarray and in `view_mut`, is conservative: it refuses a few layouts that interleave without overlap (strides 6
/// and 5 over 2 by 2).
impl ManagedTensor {
    /// A read-only view with the tensor's strides, never a copy. The dimension `D` is a fixed rank, such as
    /// [`Ix2`](type@ndarray::Ix2), or any rank with [`IxDyn`](type@ndarray::IxDyn). The bytes of booleans are checked
    /// first.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::export;
    /// use ndarray::Ix1;
    ///
    /// let tensor = export::array(&Int64Array::from(vec![1, 2, 3]))?;
    /// let view = tensor.view::<i64, Ix1>()?;
    /// assert_eq!((view.sum(), view.as_ptr()), (6, tensor.as_ptr().cast()));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `DtypeMismatch`; `WrongRank`; `UnreadableDevice`; `CopyForbidden` if the elements are misaligned, or if any
    /// byte that booleans span, including the gaps between strided ones, is not 0 or 1 ([`Self::as_bool_bytes`] does
    /// not check); `Overflow` for extents of a tensor without elements that ndarray cannot multiply.
    pub fn view<T: ElementOrBool, D: Dimension>(&self) -> Result<ArrayView<'_, T, D>, Error> {
        let (elements, _) = T::elements(self)?;
        self.view_of(elements)
    }

    /// A view with the tensor's strides of what stands for its elements, from the lowest one to the highest.
    pub(crate) fn view_of<'a, E, D: Dimension>(
        &self,
        elements: &'a [E],
    ) -> Result<ArrayView<'a, E, D>, Error> {
        let Upright { shape, reversed } = Upright::of(self)?;
        let mut view = ArrayViewD::from_shape(shape, elements).map_err(|_| uncountable())?;
        reversed.into_iter().for_each(|axis| view.invert_axis(axis));
        view.into_dimensionality().map_err(|_| self.wrong_rank::<D>())
    }

    /// A writable view, if the tensor has exclusive access to its memory: see [above](#writing).
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{Error, WriteObstacle, export};
    /// use ndarray::Ix1;
    ///
    /// let mut shared = export::array(&Int64Array::from(vec![1, 2, 3]))?;
    /// let refused = shared.view_mut::<i64, Ix1>().unwrap_err();
    /// assert_eq!(refused, Error::NotWritable(WriteObstacle::ReadOnly));
    ///
    /// let mut copy = shared.copied()?;
    /// copy.view_mut::<i64, Ix1>()?.map_inplace(|value| *value *= 10);
    /// assert_eq!(copy.as_slice::<i64>(), Some(&[10, 20, 30][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::view`], and `NotWritable` if the tensor is read-only or not exclusive, or if elements may overlap.
    pub fn view_mut<T: Element, D: Dimension>(&mut self) -> Result<ArrayViewMut<'_, T, D>, Error> {
        let upright = Upright::of(self)?;
        let overlap = layout::overlap(self.shape(), &self.strides());
        let wrong_rank = self.wrong_rank::<D>();
        let (elements, _) = self.elements_mut()?;
        if let Some((axis, stride, needed)) = overlap {
            return Err(Error::NotWritable(WriteObstacle::Overlapping { axis, stride, needed }));
        }
        let Upright { shape, reversed } = upright;
        let mut view = ArrayViewMutD::from_shape(shape, elements).map_err(|_| uncountable())?;
        reversed.into_iter().for_each(|axis| view.invert_axis(axis));
        view.into_dimensionality().map_err(|_| wrong_rank)
    }

    fn wrong_rank<D: Dimension>(&self) -> Error {
        let (what, ndim) = ("the tensor", self.ndim());
        Error::WrongRank { what, expected: D::NDIM.unwrap_or(ndim), ndim }
    }
}

/// Takes over the array's memory (feature `ndarray`): the tensor is writable and has the array's strides. Booleans
/// take a byte each.
///
/// ```
/// use arrow_dlpack::ManagedTensor;
/// use ndarray::{Array, s};
///
/// let reversed = Array::from_iter(0_i32..6).slice_move(s![..;-2]);
/// let (first, tensor) = (reversed.as_ptr(), ManagedTensor::from(reversed));
/// assert_eq!((tensor.shape(), &*tensor.strides()), (&[3][..], &[-2][..]));
/// assert_eq!(tensor.as_ptr().cast(), first);
///
/// let booleans = ManagedTensor::from(ndarray::array![[true, false], [false, true]]);
/// assert_eq!(booleans.as_bool_bytes(), Some(&[1, 0, 0, 1][..]));
/// ```
///
/// # Panics
///
/// If the array has more than 256 axes.
impl<T: ElementOrBool, D: Dimension> From<Array<T, D>> for ManagedTensor {
    fn from(array: Array<T, D>) -> Self {
        let most = layout::MAX_NDIM;
        assert!(array.ndim() <= most, "an array of more than {most} axes is no tensor");
        let in_bounds = |_| unreachable!("extents and strides of an array fit isize");
        let shape: Vec<i64> =
            array.shape().iter().map(|&n| n.try_into().unwrap_or_else(in_bounds)).collect();
        let strides: Vec<i64> =
            array.strides().iter().map(|&n| n.try_into().unwrap_or_else(in_bounds)).collect();
        let (values, origin) = array.into_raw_vec_and_offset();
        let origin = origin.unwrap_or(0) * size_of::<T>();
        let (memory, flags) = (Fresh::from_vec(T::stored(values)), DLPackFlags::default());
        ManagedTensor::from_fresh_at(
            memory,
            origin,
            TensorSpec::new(T::DTYPE, flags, &shape, &strides),
        )
        .unwrap_or_else(|_| unreachable!("the elements of an array lie in its memory"))
    }
}

/// The same elements with positive strides, which ndarray requires for views of slices, and the axes to invert
/// afterwards.
struct Upright {
    shape: StrideShape<IxDyn>,
    reversed: Vec<Axis>,
}

impl Upright {
    fn of(tensor: &ManagedTensor) -> Result<Self, Error> {
        let extents: Option<Vec<usize>> =
            tensor.shape().iter().map(|&extent| extent.try_into().ok()).collect();
        let shape = IxDyn(&extents.ok_or_else(uncountable)?);
        if tensor.size() == 0 {
            return Ok(Self { shape: shape.into(), reversed: Vec::new() });
        }
        // The stride of an axis of extent 1 is arbitrary, but ndarray would use it.
        let (strides, row_major) = (tensor.strides(), layout::row_major(tensor.shape()));
        let axes = tensor.shape().iter().zip(strides.iter().zip(row_major));
        let strides: Vec<i64> = axes
            .map(|(&extent, (&stride, usual))| if extent > 1 { stride } else { usual })
            .collect();
        let steps: Result<Vec<usize>, _> =
            strides.iter().map(|stride| stride.unsigned_abs().try_into()).collect();
        let steps = steps.map_err(|_| Error::Overflow("span of strides"))?;
        let reversed = strides.iter().enumerate().filter(|&(_, &stride)| stride < 0);
        let reversed = reversed.map(|(axis, _)| Axis(axis)).collect();
        Ok(Self { shape: shape.strides(IxDyn(&steps)), reversed })
    }
}

/// ndarray multiplies the extents that are not 0, even if one is 0.
fn uncountable() -> Error {
    Error::Overflow("number of elements")
}
