//! Tensors that keep another tensor alive and share its memory: views of some elements, or of the bytes as integers.
#![expect(unsafe_code, reason = "describes memory of another tensor anew")]

use std::sync::Arc;

use super::ManagedTensor;
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::{Error, layout};

/// The index of a view along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// One position; the axis is removed.
    One(i64),
    /// A range of positions from `start` on in steps of `step`; if it is empty, `start` and `step` are ignored.
    Every { start: i64, step: i64, len: i64 },
    /// A new axis of one position.
    New,
}

impl ManagedTensor {
    /// A view of some elements: the indices apply to the axes in order, and axes without one are taken
    /// whole. No memory is read, so it may be a device's.
    ///
    /// # Errors
    ///
    /// `NoSuchPosition`; `PackedStrides` for elements that share a byte; `Overflow`.
    ///
    /// # Safety
    ///
    /// That of [`Self::share_writable`].
    pub(crate) unsafe fn part(self: &Arc<Self>, indices: &[Index]) -> Result<Self, Error> {
        let Some(itemsize) = self.itemsize() else {
            return Err(Error::PackedStrides { dtype: self.dtype() });
        };
        let (origin, shape, strides) = part(self.shape(), &self.strides(), indices)?;
        let mut description = self.described(&shape, &strides);
        let bytes = isize::try_from(origin).ok().zip(isize::try_from(itemsize).ok());
        let bytes = bytes.and_then(|(origin, itemsize)| origin.checked_mul(itemsize));
        let bytes = bytes.ok_or_else(Error::overflow("span of strides"))?;
        if self.device().is_host_readable() {
            description.data = description.data.wrapping_offset(bytes);
        } else {
            // A device's address may be a handle, without arithmetic.
            let wide = i64::try_from(bytes).ok();
            let offset = wide.and_then(|bytes| description.byte_offset.checked_add_signed(bytes));
            description.byte_offset = offset.ok_or_else(Error::overflow("address range"))?;
        }
        // SAFETY: I2, for as long as the clone keeps the tensor: `part` has found every position on its
        // axis, so that each element of the part is one of the tensor's; the caller's promise, where it is writable.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }

    /// The bytes of elements in row-major order, as one axis.
    ///
    /// # Errors
    ///
    /// `Overflow` if they are not in that order.
    ///
    /// # Safety
    ///
    /// That of [`Self::share_writable`].
    pub(crate) unsafe fn as_bytes(self: &Arc<Self>) -> Result<Self, Error> {
        let len = i64::try_from(self.nbytes()).ok().filter(|_| self.is_contiguous());
        let shape = [len.ok_or_else(Error::overflow("size in bytes"))?];
        let mut description = self.described(&shape, &[1]);
        description.dtype = DLDataType::UINT8;
        description.flags = description.flags.intersection(DLPackFlags::READ_ONLY);
        // SAFETY: I2, V3: the elements are one run of so many bytes, for as long as the clone keeps the tensor; the
        // caller's promise, where it is writable.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }

    /// The same bytes as unsigned integers of the elements' size, for callers that reinterpret them.
    ///
    /// # Errors
    ///
    /// `UnsupportedDtype` for elements that are not whole bytes, of one lane.
    ///
    /// # Safety
    ///
    /// That of [`Self::share_writable`].
    pub(crate) unsafe fn as_integers(self: &Arc<Self>) -> Result<Self, Error> {
        let dtype = self.dtype();
        let integers = DLDataType::scalar(DLDataTypeCode::UINT, dtype.bits);
        if dtype.lanes != 1 || dtype.bits % 8 != 0 || !integers.is_valid() {
            return Err(Error::UnsupportedDtype { dtype, way_out: "convert it first" });
        }
        let (shape, strides) = (self.shape(), self.strides());
        let mut description = self.described(shape, &strides);
        description.dtype = integers;
        // SAFETY: I2, for as long as the clone keeps the tensor: the elements are as large as they were; the
        // caller's promise, where it is writable.
        unsafe { Self::pack(Arc::clone(self), &description) }
    }
}

/// Where a view begins, in elements from the first one, and its shape and strides. Each axis has its index, in
/// order.
///
/// # Errors
///
/// `NoSuchPosition` for what is not on the axis; `Overflow`.
fn part(
    shape: &[i64],
    strides: &[i64],
    indices: &[Index],
) -> Result<(i64, Vec<i64>, Vec<i64>), Error> {
    let overflow = Error::Overflow("span of strides");
    let is_empty = shape.contains(&0);
    let mut axes = shape.iter().zip(strides).enumerate();
    let (mut origin, mut extents, mut steps) = (Some(0i64), Vec::new(), Vec::new());
    let mut move_on = |position: i64, stride: i64| {
        // Without elements, strides have no meaning.
        if !is_empty && position != 0 {
            let step = position.checked_mul(stride);
            origin = step.and_then(|step| origin?.checked_add(step));
        }
    };
    for &index in indices {
        // A new axis is like one of the tensor that has one position.
        let found = if index == Index::New { Some((0, (&1, &1))) } else { axes.next() };
        let (axis, (&extent, &stride)) = found.ok_or(Error::Overflow("number of axes"))?;
        let check = |position: i64| match (0..extent).contains(&position) {
            true => Ok(position),
            false => Err(Error::NoSuchPosition { axis, position, extent }),
        };
        match index {
            Index::One(position) => move_on(check(position)?, stride),
            Index::Every { len: ..=0, .. } => {
                extents.push(0);
                steps.push(1);
            }
            Index::Every { start, step, len } => {
                let last = (len - 1).checked_mul(step).and_then(|way| way.checked_add(start));
                check(last.ok_or(overflow.clone())?)?;
                move_on(check(start)?, stride);
                extents.push(len);
                // The stride of an axis of one position has no meaning.
                let step = stride.checked_mul(step).or((len == 1).then_some(1));
                steps.push(step.ok_or(overflow.clone())?);
            }
            Index::New => {
                extents.push(extent);
                steps.push(stride);
            }
        }
    }
    for (_, (&extent, &stride)) in axes {
        extents.push(extent);
        steps.push(stride);
    }
    if extents.contains(&0) {
        origin = Some(0);
        steps = layout::row_major(&extents);
    }
    Ok((origin.ok_or(overflow)?, extents, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers find the positions; should one of them be wrong, no view reaches beyond the tensor.
    #[test]
    fn a_view_has_no_other_positions_than_the_tensor() {
        let picked = |indices: &[Index]| part(&[2, 3], &[3, 1], indices);
        let every = |start, step, len| Index::Every { start, step, len };
        assert_eq!(
            picked(&[Index::New, Index::One(1), every(2, -1, 3)]),
            Ok((5, vec![1, 3], vec![1, -1]))
        );
        let beyond = |axis, position, extent| Err(Error::NoSuchPosition { axis, position, extent });
        assert_eq!(picked(&[Index::One(2)]), beyond(0, 2, 2));
        assert_eq!(picked(&[Index::One(-1)]), beyond(0, -1, 2));
        assert_eq!(picked(&[Index::One(0), Index::New, every(1, 1, 3)]), beyond(1, 3, 3));
        assert_eq!(picked(&[Index::One(0), every(-1, 2, 2)]), beyond(1, -1, 3));
        let (span, axes) = (Error::Overflow("span of strides"), Error::Overflow("number of axes"));
        assert_eq!(picked(&[every(1, i64::MAX, 3)]), Err(span.clone()));
        assert_eq!(picked(&[Index::One(0); 3]), Err(axes));
        assert_eq!(part(&[9], &[i64::MAX / 4], &[every(0, 8, 2)]), Err(span.clone()));
        assert_eq!(part(&[9], &[i64::MAX / 4], &[Index::One(8)]), Err(span));
    }

    #[test]
    fn only_whole_bytes_of_one_lane_are_integers() {
        let of = |dtype| {
            let (buffer, flags) = (arrow_buffer::Buffer::from_vec(vec![0_u8; 4]), <_>::default());
            ManagedTensor::from_shared(buffer, dtype, flags, &[2], &[1]).map(Arc::new)
        };
        // SAFETY: it is read-only, each time.
        let integers = of(DLDataType::FLOAT16).and_then(|tensor| unsafe { tensor.as_integers() });
        assert_eq!(integers.map(|tensor| tensor.dtype()), Ok(DLDataType::UINT16));
        let lanes = DLDataType { lanes: 2, ..DLDataType::INT8 };
        for dtype in [lanes, DLDataType::scalar(DLDataTypeCode::UINT, 4)] {
            // SAFETY: as above.
            let refused = of(dtype).and_then(|tensor| unsafe { tensor.as_integers() }).err();
            let expected = Error::UnsupportedDtype { dtype, way_out: "convert it first" };
            assert_eq!(refused, Some(expected));
        }
    }
}
