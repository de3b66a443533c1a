//! Tensors over memory of buffers and of any owner.
#![expect(
    unsafe_code,
    reason = "keeps owners and pointers into their memory together, and promises Arrow that it is readable"
)]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use arrow_buffer::Buffer;

use super::ManagedTensor;
use super::block::Description;
use super::descriptor::View;
use super::owner::Owned;
use crate::alloc::Fresh;
use crate::ffi::{DLDataType, DLDevice, DLDeviceType, DLPackFlags, DLTensor};
use crate::{Element, ElementOrBool, Error, layout};

impl ManagedTensor {
    /// A tensor of a vector's elements, row-major, in the vector's memory: writable, since the tensor is its only holder.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let mut tensor = ManagedTensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!((tensor.shape(), &*tensor.strides()), (&[2, 2][..], &[2, 1][..]));
    /// tensor.as_slice_mut::<f32>().expect("it is the only holder")[3] = 5.0;
    /// assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0, 5.0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ElementCount` if the shape has another number of elements; `TooManyAxes`, `Overflow`.
    pub fn from_vec<T: ElementOrBool>(values: Vec<T>, shape: &[usize]) -> Result<Self, Error> {
        let shape = &axes(shape)?;
        check_count(values.len(), shape)?;
        let (memory, strides) = (Fresh::from_vec(T::stored(values)), layout::row_major(shape));
        Self::from_fresh(memory, TensorSpec::new(T::DTYPE, DLPackFlags::default(), shape, &strides))
    }

    /// A tensor of elements that an owner holds, row-major, in the owner's memory: read-only, since the owner
    /// may have other holders. The owner is dropped with the last tensor.
    ///
    /// Boxed slices, `Arc<[T]>`, arrow's `ScalarBuffer`, arrays and vectors are such owners.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let weights: Arc<[f64]> = Arc::from([0.5, 0.25, 0.25]);
    /// let tensor = ManagedTensor::from_owner(Arc::clone(&weights), &[3])?;
    /// assert_eq!(tensor.as_ptr().cast(), weights.as_ptr());
    /// assert!(tensor.is_read_only());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::from_vec`]. The owner has been dropped by then.
    pub fn from_owner<T: Element>(
        owner: impl AsRef<[T]> + Send + Sync + 'static,
        shape: &[usize],
    ) -> Result<Self, Error> {
        let shape = &axes(shape)?;
        let owner = Arc::new(owner);
        let values: &[T] = (*owner).as_ref();
        check_count(values.len(), shape)?;
        let data = values.as_ptr().cast_mut().cast();
        // SAFETY: the elements are borrowed from an owner that only the tensor has; until the tensor drops it,
        // it is not moved or borrowed mutably.
        unsafe { Self::read_only_parts(owner, data, T::DTYPE, shape) }
    }

    /// [`Self::from_owner`] for elements of any dtype, in an owner of bytes: the header's `byte_offset` is 0, and the
    /// first byte may have any address.
    ///
    /// `bytes::Bytes`, memory maps and arrow's `Buffer` are such owners.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    /// use arrow_dlpack::ffi::DLDataType;
    ///
    /// let file: Box<[u8]> = Box::new([0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x00, 0x40]);
    /// let tensor = ManagedTensor::from_bytes(file, DLDataType::FLOAT32, &[2, 1])?;
    /// assert_eq!(tensor.copied()?.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `WrongLength` if such elements take another number of bytes; the errors of [`Self::from_raw`] for an
    /// invalid dtype or shape. The owner has been dropped by then.
    pub fn from_bytes(
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        dtype: DLDataType,
        shape: &[usize],
    ) -> Result<Self, Error> {
        let shape = &axes(shape)?;
        let owner = Arc::new(owner);
        let bytes: &[u8] = (*owner).as_ref();
        let (data, found) = (bytes.as_ptr().cast_mut(), bytes.len());
        // SAFETY: as in `from_owner`; that the elements are these bytes is checked next, before any access.
        let tensor = unsafe { Self::read_only_parts(owner, data, dtype, shape) }?;
        match tensor.nbytes() {
            needed if needed == found => Ok(tensor),
            needed => Err(Error::WrongLength { needed, found }),
        }
    }

    /// A tensor of memory that `owner` keeps where it is, on any device, with any strides in elements (`None` for
    /// row-major). It is not flagged as read-only, so that consumers may write to it; Rust may, after
    /// [`Self::assume_exclusive`]. The owner is dropped with the last tensor, on any thread.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    /// use arrow_dlpack::ffi::{DLDataType, DLDevice};
    ///
    /// let mut owner = vec![1_i32, 2, 3, 4, 5, 6];
    /// let data = owner.as_mut_ptr().cast();
    /// // SAFETY: the vector's elements stay where they are when it is moved, and the tensor is its only holder.
    /// let column = unsafe {
    ///     let (dtype, strides) = (DLDataType::INT32, Some(&[2][..]));
    ///     ManagedTensor::from_raw_parts(owner, data, dtype, &[3], strides, DLDevice::CPU)?
    /// };
    /// assert_eq!(column.copied()?.as_slice::<i32>(), Some(&[1, 3, 5][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `WrongRank` if there are not as many strides as extents; the errors of [`Self::from_raw`] for an invalid
    /// dtype, shape or strides. The owner has been dropped by then.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`]: until the owner is dropped, on whatever thread and wherever it is moved to, the elements
    /// are at `data`, on that device; if it is the CPU, they can be read, and are not written to while Rust
    /// code reads them.
    pub unsafe fn from_raw_parts(
        owner: impl Send + Sync + 'static,
        data: *mut c_void,
        dtype: DLDataType,
        shape: &[usize],
        strides: Option<&[i64]>,
        device: DLDevice,
    ) -> Result<Self, Error> {
        let shape = &axes(shape)?;
        let row_major = layout::row_major(shape);
        let strides = strides.unwrap_or(&row_major);
        if strides.len() != shape.len() {
            let (what, expected, ndim) = ("strides", shape.len(), strides.len());
            return Err(Error::WrongRank { what, expected, ndim });
        }
        let (data, flags) = (data.cast(), DLPackFlags::default());
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: the elements are at `data` until the owner is dropped, so that the description is truthful.
        unsafe { Self::pack(owner, &description) }
    }

    /// # Safety
    ///
    /// As [`Self::from_raw_parts`], or the tensor is dropped before anyone reads its memory.
    unsafe fn read_only_parts(
        owner: impl Send + Sync + 'static,
        data: *mut u8,
        dtype: DLDataType,
        shape: &[i64],
    ) -> Result<Self, Error> {
        let (device, flags) = (DLDevice::CPU, DLPackFlags::READ_ONLY);
        let strides = &layout::row_major(shape);
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: as for `from_raw_parts`, or the tensor is dropped before anyone reads its memory.
        unsafe { Self::pack(owner, &description) }
    }
}

/// A tensor of one axis: [`ManagedTensor::from_vec`] with the vector's length as its shape.
///
/// ```
/// use arrow_dlpack::ManagedTensor;
///
/// let tensor = ManagedTensor::from(vec![1.5_f32, 2.5]);
/// assert_eq!(tensor.dims(), [2]);
/// ```
impl<T: ElementOrBool> From<Vec<T>> for ManagedTensor {
    fn from(values: Vec<T>) -> Self {
        let shape = [values.len()];
        Self::from_vec(values, &shape).unwrap_or_else(|_| unreachable!("it has as many"))
    }
}

/// Whether a shape has this number of elements.
fn check_count(found: usize, shape: &[i64]) -> Result<(), Error> {
    match layout::element_count(shape)? {
        needed if needed == found => Ok(()),
        needed => Err(Error::ElementCount { shape: shape.to_vec(), needed, found }),
    }
}

/// The extents as DLPack has them, if there can be this many axes.
fn axes(shape: &[usize]) -> Result<Vec<i64>, Error> {
    let (ndim, most) = (shape.len(), layout::MAX_NDIM);
    if ndim > most {
        return Err(Error::TooManyAxes { ndim, most });
    }
    let extents = shape.iter().map(|&extent| i64::try_from(extent).ok());
    extents.collect::<Option<_>>().ok_or(Error::Overflow("length"))
}

/// The elements of a tensor in CPU memory.
#[derive(Clone, Copy)]
pub(crate) struct TensorSpec<'a> {
    dtype: DLDataType,
    flags: DLPackFlags,
    shape: &'a [i64],
    strides: &'a [i64],
}

impl<'a> TensorSpec<'a> {
    /// Strides are in elements, one for each axis.
    pub(crate) fn new(
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &'a [i64],
        strides: &'a [i64],
    ) -> Self {
        Self { dtype, flags, shape, strides }
    }

    /// Of elements that were copied for the tensor.
    pub(crate) fn copied(self) -> Self {
        self.with(DLPackFlags::IS_COPIED)
    }

    fn with(self, flags: DLPackFlags) -> Self {
        Self { flags: self.flags.union(flags), ..self }
    }
}

impl ManagedTensor {
    /// A tensor over memory that may have other holders: read-only, whatever its flags.
    pub(crate) fn from_shared(buffer: Buffer, spec: TensorSpec<'_>) -> Result<Self, Error> {
        let whole = whole(&buffer);
        // SAFETY: the bytes are the buffer's, and the tensor is read-only.
        unsafe { Self::over(buffer, whole, 0, spec.with(DLPackFlags::READ_ONLY)) }
    }

    /// [`Self::from_shared`] for the memory from the start of the first buffer to the end of the last. They are
    /// slices of one allocation, and each [`follows`] the one before it.
    ///
    /// # Panics
    ///
    /// If a buffer does not follow the one before it.
    pub(crate) fn from_run(mut buffers: Vec<Buffer>, spec: TensorSpec<'_>) -> Result<Self, Error> {
        if spec.shape.contains(&0) {
            return Self::from_shared(Buffer::default(), spec);
        }
        assert!(buffers.windows(2).all(|pair| follows(&pair[0], &pair[1])), "one run");
        let start = buffers.first().map_or(0, Buffer::ptr_offset);
        // It keeps the whole allocation alive, and with it the other slices.
        let last = buffers.pop().unwrap_or_default();
        let end = last.ptr_offset() + last.len();
        // SAFETY: one allocation has these bytes, as was asserted, and the tensor is read-only.
        unsafe { Self::over(last, start..end, 0, spec.with(DLPackFlags::READ_ONLY)) }
    }

    /// A writable tensor over memory with no other owner.
    pub(crate) fn from_fresh(memory: Fresh, spec: TensorSpec<'_>) -> Result<Self, Error> {
        Self::from_fresh_at(memory, 0, spec)
    }

    /// [`Self::from_fresh`] for a first element that is `origin` bytes into the memory.
    pub(crate) fn from_fresh_at(
        memory: Fresh,
        origin: usize,
        spec: TensorSpec<'_>,
    ) -> Result<Self, Error> {
        // SAFETY: `over` describes the memory by the pointer of the allocation. The buffer was that of a `Fresh`, so that
        // nothing else has it. A tensor that the flags call read-only is not written to: `elements_mut` asks.
        unsafe {
            let memory = memory.into_owner();
            let whole = whole(&memory);
            let tensor = Self::over(memory, whole, origin, spec)?;
            Ok(tensor.known_fresh())
        }
    }

    /// The memory that the tensor spans, if this crate owns it, it has no other owner and is not empty.
    /// Otherwise the tensor back.
    pub(super) fn into_fresh(self) -> Result<Fresh, Self> {
        let bytes = self.span().map(|(bytes, _)| bytes).filter(|bytes| !bytes.is_empty());
        let (Owned::Fresh(_), Some(bytes)) = (self.owner().owned(), bytes) else {
            return Err(self);
        };
        let (start, len) = (bytes.as_ptr().addr(), bytes.len());
        let Owned::Fresh(packed) = self.into_owner().into_owned() else {
            unreachable!("it was one")
        };
        // SAFETY: I1, and the owner of the block is the buffer of a `Fresh`, as `Owned::Fresh` says.
        let memory = unsafe { Fresh::recovered(packed.into_owner::<Buffer>()) };
        let before = start - memory.start().addr().get();
        Ok(memory.part(before, len))
    }

    /// A tensor over a range of bytes of a buffer's allocation, which ends at or before the end of the buffer.
    /// Its first element is `origin` bytes into the range.
    ///
    /// # Safety
    ///
    /// The allocation has these bytes. Without `READ_ONLY`, the buffer has no other holder.
    unsafe fn over(
        buffer: Buffer,
        bytes: Range<usize>,
        origin: usize,
        spec: TensorSpec<'_>,
    ) -> Result<Self, Error> {
        // The pointer must come from the allocation, not from the buffer's `&[u8]`: a consumer of fresh memory
        // writes through it.
        let data = buffer.data_ptr().as_ptr().wrapping_add(bytes.start).wrapping_add(origin);
        let (len, device) = (bytes.len(), DLDevice::CPU);
        let TensorSpec { dtype, flags, shape, strides } = spec;
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: the allocation has these bytes, and a buffer keeps it where it is; without `READ_ONLY` nothing else has it.
        let tensor = unsafe { Self::within(buffer, &description, origin, len) }?;
        tensor.ok_or(BEYOND)
    }
}

/// The error for elements outside of the memory that there is for them.
pub(super) const BEYOND: Error = Error::Overflow("extent beyond its buffer");

/// The range of a buffer in its allocation.
fn whole(buffer: &Buffer) -> Range<usize> {
    let start = buffer.ptr_offset();
    start..start + buffer.len()
}

/// Whether a buffer begins where another ends, in one allocation. Addresses alone do not suffice: allocators
/// place separate allocations end to end, and neither a slice nor a pointer may cross from one into the other.
///
/// Two live buffers whose allocations begin at the same address share one allocation, though they may record
/// different lengths of it. The length that `after` records, which ends later, covers both.
pub(crate) fn follows(before: &Buffer, after: &Buffer) -> bool {
    before.data_ptr() == after.data_ptr() && whole(before).end == after.ptr_offset()
}

/// A device whose memory this crate never reads, so that a descriptor on it needs no memory.
const NOWHERE: DLDevice = DLDevice { device_type: DLDeviceType::EXT_DEV, device_id: 0 };

impl ManagedTensor {
    /// A tensor of zeros in fresh CPU memory, of a prototype's dtype and shape: row-major, aligned to 64
    /// bytes, writable. Elements of under 8 bits are packed.
    ///
    /// # Errors
    ///
    /// An invalid dtype or shape, as [`Self::from_raw`]; `OutOfMemory`.
    ///
    /// # Safety
    ///
    /// `prototype` is valid for reads, and so are `ndim` extents at its `shape`, if that is not NULL.
    /// Its data, device, strides and byte offset are not read.
    pub(crate) unsafe fn like(prototype: *const DLTensor) -> Result<Self, Error> {
        // SAFETY: `prototype` is valid for reads; `DLTensor` is plain data.
        let prototype = unsafe { prototype.read_unaligned() };
        let shell = DLTensor {
            data: ptr::null_mut(),
            device: NOWHERE,
            strides: ptr::null_mut(),
            byte_offset: 0,
            ..prototype
        };
        // SAFETY: the extents are valid for reads; there are no strides and no memory.
        let view = unsafe { View::read(&raw const shell, false) }?;
        let memory = Fresh::write::<u8>(view.nbytes(), |_zeros| Ok(()))?;
        let strides = layout::row_major(view.shape());
        let flags = DLPackFlags::default();
        Self::from_fresh(memory, TensorSpec::new(view.dtype(), flags, view.shape(), &strides))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Way<'a> = &'a dyn Fn(&[i64], &[i64]) -> Result<ManagedTensor, Error>;

    /// Callers count their elements; should one of them count wrong, no tensor says so.
    #[test]
    fn a_tensor_does_not_reach_beyond_its_buffers() {
        let whole = Buffer::from_vec(vec![0_i32; 4]);
        let shared = |shape: &[i64], strides: &[i64]| {
            let flags = DLPackFlags::default();
            ManagedTensor::from_shared(
                whole.clone(),
                TensorSpec::new(DLDataType::INT32, flags, shape, strides),
            )
        };
        let run = |shape: &[i64], strides: &[i64]| {
            let halves = vec![whole.slice_with_length(0, 8), whole.slice_with_length(8, 8)];
            let flags = DLPackFlags::default();
            ManagedTensor::from_run(
                halves,
                TensorSpec::new(DLDataType::INT32, flags, shape, strides),
            )
        };
        let beyond = Error::Overflow("extent beyond its buffer");
        let ways: [Way<'_>; 2] = [&shared, &run];
        for over in ways {
            assert_eq!(over(&[2, 2], &[2, 1]).map(|tensor| tensor.nbytes()), Ok(16));
            assert_eq!(over(&[2], &[3]).map(|tensor| tensor.nbytes()), Ok(8));
            assert_eq!(over(&[5], &[1]).err(), Some(beyond.clone()));
            assert_eq!(over(&[2], &[4]).err(), Some(beyond.clone()));
            assert_eq!(over(&[2], &[-1]).err(), Some(beyond.clone()));
        }
    }
}
