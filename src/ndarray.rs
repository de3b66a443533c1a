//! Tensors as [`ndarray`] views, and its arrays as tensors (feature `ndarray`).
//!
//! Both ways share the memory, whatever the rank and the strides: sliced, reversed, broadcast, row- or
//! column-major.
//!
//! ```
//! use ::ndarray::{array, s};
//! use arrow_dlpack::ndarray;
//!
//! // An array becomes a tensor, and its memory the tensor's.
//! let matrix = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let mut tensor = ndarray::tensor(matrix.reversed_axes());
//! assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 2][..], &[1, 3][..]));
//!
//! // Any tensor can be looked at; this one, which nobody else holds, can also be written to.
//! ndarray::view_mut::<f32>(&mut tensor)?.slice_mut(s![0, ..]).fill(0.0);
//! assert_eq!(ndarray::view::<f32>(&tensor)?, array![[0.0, 0.0], [2.0, 5.0], [3.0, 6.0]].into_dyn());
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```
//!
//! # Who may write
//!
//! [`view`] needs what [`ManagedTensor::from_raw`](crate::ManagedTensor::from_raw) demands anyway.
//! [`view_mut`] needs more: a `&mut` that is the only way to the memory. Two holders of one array can
//! both have a tensor of it, both writable, so a `&mut ManagedTensor` alone proves nothing. It is
//! enough for
//!
//! - a tensor made here of memory that nobody else holds: [`tensor`],
//!   [`export::into_tensor`](crate::export::into_tensor), [`ManagedTensor::copied`](crate::ManagedTensor::copied);
//! - a tensor of another library that is flagged `IS_COPIED`, which says just that;
//! - a tensor that [`ManagedTensor::assume_exclusive`](crate::ManagedTensor::assume_exclusive) vouches
//!   for. It is unsafe, because nothing can check it.
//!
//! All others are refused, and so are read-only ones, whatever is vouched for: also all that came in
//! the legacy ABI, which cannot say that they are not.
//!
//! # Limits
//!
//! The element type must be the tensor's own, one of the eleven [`Element`]s or, to read, `bool`: nothing is converted.
//! Whether elements overlap is judged on the safe side, by ndarray and so by [`view_mut`]: a few layouts
//! that interleave without meeting (strides 6 and 5 over 2 by 2) are refused.

use ndarray::{
    Array, ArrayViewD, ArrayViewMutD, Axis, Dimension, IxDyn, ShapeBuilder, StrideShape,
};

use crate::dtype::Element;
use crate::error::{Error, WriteObstacle};
use crate::ffi::DLPackFlags;
use crate::layout;
use crate::memory::{Fresh, ManagedTensor};

/// What [`view`] can read: every [`Element`], and `bool`.
///
/// It is sealed: other types are not known to be what the memory holds.
pub trait Readable: sealed::Elements {}
impl<T: sealed::Elements> Readable for T {}

mod sealed {
    use super::{Element, Error, ManagedTensor};

    pub trait Elements: Sized {
        /// All from the lowest element to the highest.
        fn of(tensor: &ManagedTensor) -> Result<&[Self], Error>;
    }

    impl<T: Element> Elements for T {
        fn of(tensor: &ManagedTensor) -> Result<&[Self], Error> {
            tensor.elements().map(|(elements, _)| elements)
        }
    }

    impl Elements for bool {
        fn of(tensor: &ManagedTensor) -> Result<&[Self], Error> {
            tensor.bools().map(|(elements, _)| elements)
        }
    }
}

/// The elements of a tensor, to read. Any rank and strides; never copies. Booleans are looked through first.
///
/// ```
/// use arrow_array::Int64Array;
/// use arrow_dlpack::{export, ndarray};
///
/// let tensor = export::array(&Int64Array::from(vec![1, 2, 3]))?;
/// let view = ndarray::view::<i64>(&tensor)?;
/// assert_eq!((view.sum(), view.as_ptr()), (6, tensor.data().cast_const().cast()));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `DtypeMismatch`; `UnreadableDevice`; `CopyForbidden` if the elements are not aligned, or booleans are bytes other
/// than 0 and 1, in the gaps that strides leave too; `Overflow` for extents without elements that ndarray cannot count.
pub fn view<T: Readable>(tensor: &ManagedTensor) -> Result<ArrayViewD<'_, T>, Error> {
    let elements = T::of(tensor)?;
    let Upright { shape, reversed } = Upright::of(tensor)?;
    let mut view = ArrayViewD::from_shape(shape, elements).map_err(|_| uncountable())?;
    reversed.into_iter().for_each(|axis| view.invert_axis(axis));
    Ok(view)
}

/// The elements of a tensor, to write, if it is the only way to its memory: see the [module](self).
///
/// ```
/// use arrow_array::Int64Array;
/// use arrow_dlpack::{Error, WriteObstacle, export, ndarray};
///
/// let mut shared = export::array(&Int64Array::from(vec![1, 2, 3]))?;
/// let refused = ndarray::view_mut::<i64>(&mut shared).unwrap_err();
/// assert_eq!(refused, Error::NotWritable(WriteObstacle::ReadOnly));
///
/// let mut copy = shared.copied()?;
/// ndarray::view_mut::<i64>(&mut copy)?.map_inplace(|value| *value *= 10);
/// assert_eq!(copy.as_slice::<i64>(), Some(&[10, 20, 30][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`view`], and `NotWritable`: read-only, or others may hold the memory, or elements may overlap.
pub fn view_mut<T: Element>(tensor: &mut ManagedTensor) -> Result<ArrayViewMutD<'_, T>, Error> {
    let upright = Upright::of(tensor)?;
    let overlap = layout::overlap(tensor.shape(), &tensor.strides());
    let (elements, _) = tensor.elements_mut()?;
    if let Some((axis, stride, needed)) = overlap {
        return Err(Error::NotWritable(WriteObstacle::Overlapping { axis, stride, needed }));
    }
    let Upright { shape, reversed } = upright;
    let mut view = ArrayViewMutD::from_shape(shape, elements).map_err(|_| uncountable())?;
    reversed.into_iter().for_each(|axis| view.invert_axis(axis));
    Ok(view)
}

/// An array as a tensor over the same memory: writable, with the array's strides, whatever they are.
///
/// ```
/// use ::ndarray::{Array, s};
/// use arrow_dlpack::ndarray;
///
/// let reversed = Array::from_iter(0_i32..6).slice_move(s![..;-2]);
/// let (first, tensor) = (reversed.as_ptr(), ndarray::tensor(reversed));
/// assert_eq!((tensor.shape(), &*tensor.strides()), (&[3][..], &[-2][..]));
/// assert_eq!(tensor.data().cast_const().cast(), first);
/// ```
#[must_use]
pub fn tensor<T: Element, D: Dimension>(array: Array<T, D>) -> ManagedTensor {
    let in_bounds = |_| unreachable!("extents and strides of an array fit isize");
    let shape: Vec<i64> =
        array.shape().iter().map(|&n| n.try_into().unwrap_or_else(in_bounds)).collect();
    let strides: Vec<i64> =
        array.strides().iter().map(|&n| n.try_into().unwrap_or_else(in_bounds)).collect();
    let (values, origin) = array.into_raw_vec_and_offset();
    let origin = origin.unwrap_or(0) * size_of::<T>();
    let (memory, flags) = (Fresh::from_vec(values), DLPackFlags::default());
    ManagedTensor::from_fresh(memory, origin, T::DTYPE, flags, &shape, &strides)
        .unwrap_or_else(|_| unreachable!("the elements of an array lie in its memory"))
}

/// The same elements with every stride positive, which is how ndarray takes a slice, and the axes to
/// turn round afterwards.
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
        // What a stride says of an axis of one element means nothing, and ndarray would believe it.
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

/// ndarray multiplies the extents that are not 0, even if one is.
fn uncountable() -> Error {
    Error::Overflow("number of elements")
}
