//! The only reader of a `DLTensor`. It validates the descriptor once, into a type that later code can trust.
#![expect(unsafe_code, reason = "dereferences a foreign descriptor")]

use std::ptr::{self, NonNull};
use std::{borrow::Cow, slice};

use crate::ffi::{DLDataType, DLDevice, DLTensor};
use crate::{CopyReason, Element, Error, layout};

/// A descriptor that has been read once and found consistent.
///
/// Invariants, from [`View::read`] on:
///
/// - **V1** There are at most [`layout::MAX_NDIM`] axes. `shape` points to `ndim` extents, none negative; `strides` to `ndim` strides, or is
///   `None` for row-major. Both are aligned, readable and unchanging for as long as the view is.
///   With no axes both are dangling or `None` and never read.
/// - **V2** `size` is the product of the extents, and `nbytes` what that many elements occupy; both
///   fit `isize`.
/// - **V3** If the device is readable by the CPU and `nbytes > 0`: `address` is the first element,
///   not NULL, and every byte from the lowest to the highest element is readable, in one allocation,
///   at addresses that do not wrap, and not written to while it is borrowed as elements or bytes. `before` and `after` are the bytes below `address`, and from it
///   to the end of the highest element; their sum is at most [`layout::MAX_SPAN`], and so fits `isize`.
///   `contiguous` if `before` is 0 and the elements are one run in row-major order, or if there are none.
/// - **V4** If there are no elements, `address` is NULL and `byte_offset` 0, as the header asks.
#[derive(Debug)]
pub(super) struct View {
    address: *mut u8,
    byte_offset: u64,
    device: DLDevice,
    dtype: DLDataType,
    ndim: usize,
    shape: NonNull<i64>,
    strides: Option<NonNull<i64>>,
    size: usize,
    nbytes: usize,
    item_bits: usize,
    before: usize,
    after: usize,
    contiguous: Flag,
}

/// A `bool` as wide as the fields next to it. With a plain `bool`, `Option` would use it as the niche for its
/// tag, and the struct would be moved in pieces of odd sizes, which stall the processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag(u32);

impl Flag {
    pub(super) fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl View {
    /// Reads and validates `tensor`; `padded` is the sub-byte padding flag of its owner.
    ///
    /// # Safety
    ///
    /// `tensor` is valid for reads. For as long as the view lives: its `shape` and `strides`, if not
    /// NULL, point to `ndim` values each that do not change; on a CPU-readable device the memory
    /// from its lowest to its highest element is readable and in one allocation.
    pub(super) unsafe fn read(tensor: *const DLTensor, padded: bool) -> Result<Self, Error> {
        // SAFETY: the caller promises that `tensor` is valid for reads; `DLTensor` is plain data.
        let DLTensor { data, device, ndim, dtype, shape, strides, byte_offset } =
            unsafe { tensor.read_unaligned() };

        if !dtype.is_valid() {
            return Err(Error::InvalidDtype(dtype));
        }
        let ndim = usize::try_from(ndim).map_err(|_| Error::NegativeNdim(ndim))?;
        if ndim > layout::MAX_NDIM {
            return Err(Error::TooManyAxes { ndim, most: layout::MAX_NDIM });
        }
        let shape = int64_array(shape, ndim, "shape")?;
        let strides = int64_array(strides, ndim, "strides")?;
        let shape = match shape {
            Some(shape) => shape,
            None if ndim == 0 => NonNull::dangling(),
            None => return Err(Error::NullShape(ndim)),
        };

        let mut view = Self {
            address: data.cast(),
            byte_offset,
            device,
            dtype,
            ndim,
            shape,
            strides,
            size: 0,
            nbytes: 0,
            item_bits: dtype.item_bits(padded),
            before: 0,
            after: 0,
            contiguous: Flag::from(true),
        };
        view.size = layout::element_count(view.shape())?;
        view.nbytes = byte_size(view.size, view.item_bits)?;
        if view.nbytes > 0 {
            view.after = view.nbytes;
            let contiguous =
                view.given_strides().is_none_or(|given| layout::gap(view.shape(), given).is_none());
            view.contiguous = contiguous.into();
            if !contiguous {
                let (below, above) = layout::span(view.shape(), &view.strides())?;
                view.before = byte_size(below, view.item_bits)?;
                view.after = byte_size(above, view.item_bits)?;
            }
            if device.is_host_readable() {
                if view.address.is_null() {
                    return Err(Error::NullData { nbytes: view.nbytes });
                }
                let first = view.first_address();
                view.address = first.ok_or_else(Error::overflow("address range"))?;
                view.byte_offset = 0;
            }
        } else {
            // The pointer may be dangling, and must not be passed on.
            (view.address, view.byte_offset) = (ptr::null_mut(), 0);
        }
        Ok(view)
    }

    /// The view of a one-axis tensor of ours, which needs no validation: `size` elements of `dtype`, of `itemsize`
    /// bytes each.
    ///
    /// # Safety
    ///
    /// As [`Self::read`]; the tensor is that vector, on the CPU: one axis of that extent, the stride 1,
    /// no byte offset, and `data` is NULL if there are no elements. Its size in bytes fits `isize`.
    #[inline]
    pub(super) unsafe fn of_vector(
        tensor: *const DLTensor,
        dtype: DLDataType,
        size: usize,
        itemsize: usize,
    ) -> Self {
        // SAFETY: `tensor` is valid for reads.
        let DLTensor { data, shape, strides, .. } = unsafe { tensor.read() };
        let nbytes = size * itemsize;
        Self {
            address: data.cast(),
            byte_offset: 0,
            // Computed, not read back: a wide load of two narrow stores stalls the processor.
            device: DLDevice::CPU,
            dtype,
            ndim: 1,
            shape: NonNull::new(shape).unwrap_or(NonNull::dangling()),
            strides: NonNull::new(strides),
            size,
            nbytes,
            item_bits: itemsize * 8,
            before: 0,
            after: nbytes,
            contiguous: Flag::from(true),
        }
    }

    /// The same view of another descriptor with the same contents.
    ///
    /// # Safety
    ///
    /// As [`Self::read`]; the tensor has the contents of this view, with strides.
    pub(super) unsafe fn over(&self, tensor: *const DLTensor) -> Self {
        // SAFETY: `tensor` is valid for reads.
        let DLTensor { shape, strides, .. } = unsafe { tensor.read() };
        let (shape, strides) = match self.ndim {
            0 => (NonNull::dangling(), None),
            _ => (NonNull::new(shape).unwrap_or(NonNull::dangling()), NonNull::new(strides)),
        };
        Self { shape, strides, ..*self }
    }

    /// A CPU address with `byte_offset` added, unless some element's address wraps.
    fn first_address(&self) -> Option<*mut u8> {
        let offset = usize::try_from(self.byte_offset).ok()?;
        let first = self.address.addr().checked_add(offset)?;
        self.before.checked_add(self.after).filter(|&span| span <= layout::MAX_SPAN)?;
        first.checked_sub(self.before).filter(|&lowest| lowest > 0)?;
        first.checked_add(self.after)?;
        // wrapping_add has no requirements; V3 makes the result valid to read.
        Some(self.address.wrapping_add(offset))
    }

    pub(super) fn shape(&self) -> &[i64] {
        // SAFETY: V1; a dangling pointer is aligned and good for 0 values.
        unsafe { slice::from_raw_parts(self.shape.as_ptr(), self.ndim) }
    }

    pub(super) fn strides(&self) -> Cow<'_, [i64]> {
        match self.given_strides() {
            Some(strides) => strides.into(),
            None => layout::row_major(self.shape()).into(),
        }
    }

    /// `None` if the producer left them out: the elements are in row-major order.
    fn given_strides(&self) -> Option<&[i64]> {
        // SAFETY: V1.
        self.strides.map(|strides| unsafe { slice::from_raw_parts(strides.as_ptr(), self.ndim) })
    }

    pub(super) fn device(&self) -> DLDevice {
        self.device
    }

    pub(super) fn dtype(&self) -> DLDataType {
        self.dtype
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Bytes from one element to the next, `None` where several share a byte.
    pub(super) fn itemsize(&self) -> Option<usize> {
        (self.item_bits % 8 == 0).then_some(self.item_bits / 8)
    }

    /// `data`, with `byte_offset` added already where the device is CPU-readable.
    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }

    /// The remaining `byte_offset`: 0 where the device is CPU-readable.
    pub(super) fn byte_offset(&self) -> u64 {
        self.byte_offset
    }

    /// The view as a `DLTensor`, whose pointers are valid for as long as V1 holds. `None` if the producer left
    /// the strides out, which DLPack no longer allows.
    pub(super) fn dl_tensor(&self) -> Option<DLTensor> {
        let (shape, strides) = match self.ndim {
            0 => (ptr::null_mut(), ptr::null_mut()),
            _ => (self.shape.as_ptr(), self.strides?.as_ptr()),
        };
        Some(DLTensor {
            data: self.address.cast(),
            device: self.device,
            ndim: i32::try_from(self.ndim).ok()?,
            dtype: self.dtype,
            shape,
            strides,
            byte_offset: self.byte_offset,
        })
    }

    /// The position of the first element in the bytes from the lowest element to the end of the highest, on any device, and
    /// the number of these.
    pub(super) fn reach(&self) -> (usize, usize) {
        (self.before, self.before.saturating_add(self.after))
    }

    /// Whether there are elements outside of `len` bytes, in which the first one is at `origin`.
    pub(super) fn extends_beyond(&self, origin: usize, len: usize) -> bool {
        self.before > origin || origin.checked_add(self.after).is_none_or(|end| end > len)
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.contiguous.get()
    }

    /// The reason why the elements are not one row-major run, if they are not.
    pub(super) fn row_major_obstacle(&self) -> Option<CopyReason> {
        layout::row_major_obstacle(self.shape(), self.given_strides()?)
    }

    /// A pointer to the lowest element, the number of `T`s from there to the end of the highest, and the
    /// position of the first one among them; `None` unless they are aligned `T`s that the CPU can read. Without
    /// elements the pointer is dangling and aligned.
    pub(super) fn elements<T: Element>(&self) -> Result<(*mut T, usize, usize), Error> {
        if !self.device.is_host_readable() {
            return Err(Error::UnreadableDevice { device: self.device });
        }
        if self.dtype != T::DTYPE {
            return Err(Error::DtypeMismatch { expected: T::DTYPE, found: self.dtype });
        }
        if self.nbytes == 0 {
            return Ok((NonNull::dangling().as_ptr(), 0, 0));
        }
        let lowest = self.address.wrapping_sub(self.before).cast::<T>();
        if !lowest.is_aligned() {
            let reason = CopyReason::Misaligned { align: align_of::<T>() };
            return Err(Error::CopyForbidden { reason, nbytes: self.nbytes });
        }
        // `before` and `after` are counts of elements, times the size of one.
        let item = size_of::<T>();
        Ok((lowest, (self.before + self.after) / item, self.before / item))
    }

    /// All bytes from the lowest element to the end of the highest, and the position of the first
    /// element in them; `None` where the CPU cannot read.
    pub(super) fn span(&self) -> Option<(&[u8], usize)> {
        if !self.device.is_host_readable() {
            return None;
        }
        if self.nbytes == 0 {
            return Some((&[], 0));
        }
        let lowest = self.address.wrapping_sub(self.before);
        // SAFETY: V3.
        let bytes = unsafe { slice::from_raw_parts(lowest, self.before + self.after) };
        Some((bytes, self.before))
    }
}

/// A foreign `int64_t*` that will be read as `ndim` values, or `None` if it is NULL or there are none.
fn int64_array(
    pointer: *mut i64,
    ndim: usize,
    name: &'static str,
) -> Result<Option<NonNull<i64>>, Error> {
    match NonNull::new(pointer) {
        Some(pointer) if ndim > 0 && !pointer.is_aligned() => {
            Err(Error::MisalignedDescriptor(name))
        }
        pointer => Ok(pointer.filter(|_| ndim > 0)),
    }
}

/// Bytes that `count` elements occupy, the last one rounded up.
fn byte_size(count: usize, item_bits: usize) -> Result<usize, Error> {
    let whole = (count / 8).checked_mul(item_bits);
    let rest = ((count % 8) * item_bits).div_ceil(8);
    whole
        .and_then(|whole| whole.checked_add(rest))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(Error::overflow("size in bytes"))
}
