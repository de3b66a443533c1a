//! Tensors that keep another tensor alive and share its memory: all of it, some of its elements, or other axes.
#![expect(unsafe_code, reason = "describes memory of another tensor anew")]

use std::sync::Arc;

use super::ManagedTensor;
use super::TensorSpec;
use super::block::{Description, pack};
use super::construct::BEYOND;
use super::managed::PADDED;
use super::owner::{Owned, Owner};
use crate::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use crate::{Error, Hint, layout};

impl ManagedTensor {
    /// Another tensor over the same memory, which keeps this one alive. It is read-only, because code in Rust may have
    /// borrowed the memory, and no `IS_COPIED`, because the memory has several holders now.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_dlpack::{ManagedTensor, import};
    ///
    /// let tensor = Arc::new(ManagedTensor::from(vec![1.5_f32, 2.5]));
    /// let column = import::array(tensor.share())?;
    /// assert_eq!(column.to_data().buffers()[0].as_ptr(), tensor.as_ptr());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Self {
        // SAFETY: it is read-only.
        unsafe { self.share_with(DLPackFlags::READ_ONLY) }
    }

    /// [`Self::share`] that is writable if this tensor is.
    ///
    /// # Safety
    ///
    /// While code elsewhere may write to the memory, no code in Rust has borrowed it, but for a copy of which the docs
    /// say that it may have values from before and after.
    pub(crate) unsafe fn share_writable(self: &Arc<Self>) -> Self {
        // SAFETY: while other code may write to the memory, no code in Rust borrows it, but for a copy.
        unsafe { self.share_with(DLPackFlags::default()) }
    }

    /// # Safety
    ///
    /// The flags say `READ_ONLY`, or that of [`Self::share_writable`].
    unsafe fn share_with(self: &Arc<Self>, flags: DLPackFlags) -> Self {
        let (shape, strides) = (self.shape(), self.strides());
        let mut description = self.described(shape, &strides);
        description.flags = description.flags.union(flags);
        // SAFETY: I2 for the memory, for as long as the clone keeps it.
        let packed = unsafe { pack(|| Arc::clone(self), &description) };
        // SAFETY: P1 for the header and its arrays; I2 for the memory, for as long as the clone keeps it.
        unsafe {
            let view = self.descriptor().over(&raw const (*packed.header()).dl_tensor);
            Self::from_view(view, Owner::packed(packed))
        }
    }

    /// Whether another tensor or array in Rust may have borrowed the memory. By the promise of [`Self::from_raw`], a
    /// tensor that was taken over from C and is writable shares its memory with other languages only.
    pub(crate) fn has_lookers_on(&self) -> bool {
        self.may_change() && matches!(self.owner().owned(), Owned::Packed(_))
    }

    /// The description of another tensor over this one's memory.
    pub(super) fn described<'a>(&self, shape: &'a [i64], strides: &'a [i64]) -> Description<'a> {
        Description {
            data: self.data(),
            byte_offset: self.byte_offset(),
            device: self.device(),
            dtype: self.dtype(),
            flags: self.flags().intersection(DLPackFlags::READ_ONLY.union(PADDED)),
            shape,
            strides,
        }
    }

    /// The same elements with their axes in another order: the tensor's axis `axes[i]` becomes axis `i`.
    pub(crate) fn transposed(self, axes: &[usize]) -> Self {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..self.ndim()), "each axis once");
        let pick = |values: &[i64]| axes.iter().map(|&axis| values[axis]).collect::<Vec<_>>();
        let this = Arc::new(self);
        let (shape, strides) = (pick(this.shape()), pick(&this.strides()));
        let description = this.described(&shape, &strides);
        // SAFETY: I2, for as long as the clone keeps the tensor: the order of axes changes none of it.
        let shared = unsafe { Self::pack(Arc::clone(&this), &description) };
        shared.unwrap_or_else(|_| unreachable!("a tensor that was valid is valid"))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    ///
    /// `Overflow` if it spans more memory.
    pub(crate) fn in_shape(self, shape: &[i64], strides: &[i64]) -> Result<Self, Error> {
        let (flags, dtype, exclusive) = (self.flags(), self.dtype(), !self.may_change());
        let (origin, len) = self.descriptor().reach();
        let this = match self.into_fresh() {
            Ok(memory) => {
                let spec = TensorSpec::new(dtype, flags, shape, strides);
                return Self::from_fresh_at(memory, origin, spec);
            }
            Err(this) => Arc::new(this),
        };
        let description = this.described(shape, strides);
        // SAFETY: I2, of the bytes that the tensor reaches, for as long as the clone keeps it.
        let tensor = unsafe { Self::within(Arc::clone(&this), &description, origin, len) }?;
        let tensor = tensor.ok_or(BEYOND)?;
        // SAFETY: I3: the owner has what the tensor had, and the owner has no other holder.
        Ok(if exclusive { unsafe { tensor.assume_exclusive() } } else { tensor })
    }

    /// The same elements in a larger shape, as NumPy's `broadcast_to`: axes of extent 1 repeat by a stride
    /// of 0, and more axes may come in front. Read-only, because elements share memory.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// let one = arrow_dlpack::export::array(&Int32Array::from(vec![7]))?;
    /// let many = one.broadcast_to(&[1000])?;
    /// assert_eq!((many.shape(), &*many.strides()), (&[1000][..], &[0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CannotBroadcast`; `NegativeExtent`; `Overflow` for more bytes than an address space has.
    pub fn broadcast_to(self, shape: &[i64]) -> Result<Self, Error> {
        let strides = layout::broadcast(self.shape(), &self.strides(), shape);
        let cannot = || Error::CannotBroadcast { from: self.shape().into(), to: shape.into() };
        let strides = strides.ok_or_else(cannot)?;
        let this = Arc::new(self);
        let mut description = this.described(shape, &strides);
        description.flags = description.flags.union(DLPackFlags::READ_ONLY);
        // SAFETY: I2, for as long as the clone keeps the tensor: no axis goes further than it did.
        unsafe { Self::pack(Arc::clone(&this), &description) }
    }
}

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
        // axis, so that each element of the part is one of the tensor's. Where it is writable, no code in Rust borrows it.
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
        // SAFETY: I2, V3: the elements are one run of `nbytes` bytes, for as long as the clone keeps the tensor. Where it
        // is writable, no code in Rust borrows it.
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
            return Err(Error::UnsupportedDtype { dtype, hint: Hint::Text("convert it first") });
        }
        let (shape, strides) = (self.shape(), self.strides());
        let mut description = self.described(shape, &strides);
        description.dtype = integers;
        // SAFETY: I2, for as long as the clone keeps the tensor: the elements are as large as they were. Where
        // it is writable, no code in Rust borrows it.
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
mod share_tests {
    use arrow_buffer::Buffer;

    use super::*;
    use crate::ffi::{DLDevice, DLDeviceType};

    /// Callers check the shape; should one of them be wrong, no tensor says so.
    #[test]
    fn another_shape_does_not_reach_beyond_the_tensor() {
        let four = || {
            let (buffer, flags) = (Buffer::from_vec(vec![0_i32; 4]), DLPackFlags::default());
            ManagedTensor::from_shared(
                buffer,
                TensorSpec::new(DLDataType::INT32, flags, &[4], &[1]),
            )
        };
        let nbytes = |shape: &[i64], strides: &[i64]| {
            four()?.in_shape(shape, strides).map(|tensor| tensor.nbytes())
        };
        assert_eq!(nbytes(&[2, 2], &[2, 1]), Ok(16));
        let beyond = Error::Overflow("extent beyond its buffer");
        for (shape, strides) in [([5], [1]), ([2], [4]), ([2], [-1])] {
            assert_eq!(nbytes(&shape, &strides), Err(beyond.clone()));
        }
    }

    /// Of a device's memory only the descriptor is known, which says enough.
    #[test]
    fn another_shape_of_a_devices_memory_does_not_reach_beyond_it() {
        let device = DLDevice { device_type: DLDeviceType::CUDA, device_id: 0 };
        let reshaped = |shape: &[i64], strides: &[i64]| {
            let (data, dtype) = (std::ptr::without_provenance_mut(256), DLDataType::INT32);
            let own = Some(&[-1][..]);
            // SAFETY: the CPU does not read this memory, and no device does.
            let four = unsafe { ManagedTensor::from_raw_parts((), data, dtype, &[4], own, device) };
            four?.in_shape(shape, strides).map(|tensor| tensor.nbytes())
        };
        assert_eq!(reshaped(&[2, 2], &[-2, -1]), Ok(16));
        for (shape, strides) in [([5], [-1]), ([4], [1]), ([2], [-4])] {
            let beyond = Err(Error::Overflow("extent beyond its buffer"));
            assert_eq!(reshaped(&shape, &strides), beyond);
        }
    }
}

#[cfg(test)]
mod part_tests {
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
            ManagedTensor::from_shared(buffer, TensorSpec::new(dtype, flags, &[2], &[1]))
                .map(Arc::new)
        };
        // SAFETY: it is read-only, each time.
        let integers = of(DLDataType::FLOAT16).and_then(|tensor| unsafe { tensor.as_integers() });
        assert_eq!(integers.map(|tensor| tensor.dtype()), Ok(DLDataType::UINT16));
        let lanes = DLDataType { lanes: 2, ..DLDataType::INT8 };
        for dtype in [lanes, DLDataType::scalar(DLDataTypeCode::UINT, 4)] {
            // SAFETY: it is read-only.
            let refused = of(dtype).and_then(|tensor| unsafe { tensor.as_integers() }).err();
            let expected = Error::UnsupportedDtype { dtype, hint: Hint::Text("convert it first") };
            assert_eq!(refused, Some(expected));
        }
    }
}
