//! Tensors over memory of any owner.
#![expect(unsafe_code, reason = "keeps an owner and a pointer into its memory together")]

use std::{ffi::c_void, sync::Arc};

use super::{Fresh, ManagedTensor, pack::Description};
use crate::ffi::{DLDataType, DLDevice, DLPackFlags};
use crate::{Element, Error, layout};

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
    /// `ElementCount` if the shape has another number of elements; `NegativeExtent`, `TooManyAxes`, `Overflow`.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: &[i64]) -> Result<Self, Error> {
        check_count(values.len(), shape)?;
        let (memory, strides) = (Fresh::from_vec(values), layout::row_major(shape));
        Self::from_fresh(memory, 0, T::DTYPE, DLPackFlags::default(), shape, &strides)
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
    /// assert_eq!(tensor.data().cast_const().cast(), weights.as_ptr());
    /// assert!(tensor.is_read_only());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::from_vec`]. The owner has been dropped by then.
    pub fn from_owner<T: Element>(
        owner: impl AsRef<[T]> + Send + Sync + 'static,
        shape: &[i64],
    ) -> Result<Self, Error> {
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
        shape: &[i64],
    ) -> Result<Self, Error> {
        check_axes(shape)?;
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
        shape: &[i64],
        strides: Option<&[i64]>,
        device: DLDevice,
    ) -> Result<Self, Error> {
        check_axes(shape)?;
        let row_major = layout::row_major(shape);
        let strides = strides.unwrap_or(&row_major);
        if strides.len() != shape.len() {
            let (what, expected, ndim) = ("strides", shape.len(), strides.len());
            return Err(Error::WrongRank { what, expected, ndim });
        }
        let (data, flags) = (data.cast(), DLPackFlags::default());
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        unsafe { Self::pack(owner, &description) }
    }
}

/// Whether a shape has so many elements.
fn check_count(found: usize, shape: &[i64]) -> Result<(), Error> {
    check_axes(shape)?;
    match layout::element_count(shape)? {
        needed if needed == found => Ok(()),
        needed => Err(Error::ElementCount { shape: shape.to_vec(), needed, found }),
    }
}

/// Whether there can be so many axes, before memory is allocated for them.
fn check_axes(shape: &[i64]) -> Result<(), Error> {
    match shape.len() {
        ndim if ndim > layout::MAX_NDIM => Err(Error::TooManyAxes { ndim, most: layout::MAX_NDIM }),
        _ => Ok(()),
    }
}
