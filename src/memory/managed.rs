//! The owning handle, for both ABIs and for tensors of our own.
#![expect(unsafe_code, reason = "owns foreign structs and calls their deleters")]

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;

use super::IMPORTED;
use super::fresh::Fresh;
use super::pack::{self, Description, Packed};
use super::view::View;
use crate::dtype::Element;
use crate::error::{CopyReason, Error};
use crate::ffi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackFlags, DLPackVersion,
};

const PADDED: DLPackFlags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;

/// A tensor that is yours: dropping it calls the producer's deleter, exactly once.
///
/// Whatever it came from (a pointer of either ABI, or [`crate::to_dlpack`]), it has been validated:
/// the accessors cannot fail. It can be sent to and dropped on any thread.
///
/// ```
/// use arrow_array::Float32Array;
/// use arrow_dlpack::{ManagedTensor, export};
///
/// let tensor = export::array(&Float32Array::from(vec![1.0, 2.0, 3.0]))?;
/// assert_eq!((tensor.shape(), tensor.dtype().to_string()), (&[3][..], "float32".into()));
///
/// // Through C and back: whoever holds the pointer owns the tensor.
/// let raw = tensor.into_raw();
/// // SAFETY: `into_raw` made it just now.
/// let tensor = unsafe { ManagedTensor::from_raw(raw) }?;
/// assert_eq!(tensor.nbytes(), 12);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// Source: `DLManagedTensorVersioned` and `DLManagedTensor` of `dlpack.h`.
// Invariants, from construction on:
//
// - I1 `owner` is the only owner of a managed tensor whose descriptor is truthful; its deleter has
//   not been called, may be called from any thread, and frees all that the descriptor points to.
// - I2 `view` was read from that descriptor, so V1 to V4 hold until the deleter is called.
pub struct ManagedTensor {
    view: View,
    owner: Owner,
}

// SAFETY: I1 allows the deleter on any thread; everything else is plain data that nobody changes.
unsafe impl Send for ManagedTensor {}
// SAFETY: a shared tensor can only be read, and I2 holds on every thread.
unsafe impl Sync for ManagedTensor {}

impl ManagedTensor {
    /// Takes over a `DLManagedTensorVersioned`, then judges it.
    ///
    /// # Errors
    ///
    /// Any inconsistency that the descriptor itself can prove: a major version other than 1, negative
    /// ndim or extents, sizes that overflow, NULL where memory is needed, bits that do not fit the
    /// code. The tensor has been deleted by then. Device, rank, strides and dtype are free.
    ///
    /// # Safety
    ///
    /// `tensor` is NULL or a valid pointer that the caller owns and gives up, and its descriptor is
    /// truthful. That is, until the deleter is called:
    ///
    /// - the struct, and `ndim` values at `shape` and at `strides` (if not NULL), stay as they are;
    /// - if a CPU can read the device (see [`DLDevice::is_host_readable`]), the memory from the
    ///   lowest to the highest element is readable, in one allocation, and nobody writes to it while
    ///   it is being read. A producer that keeps writing to what it shared breaks this promise.
    ///
    /// The deleter (if not NULL) may be called once, from any thread. If the major version is not 1,
    /// only `version` and `deleter` need be truthful.
    pub unsafe fn from_raw(tensor: *mut DLManagedTensorVersioned) -> Result<Self, Error> {
        let tensor = NonNull::new(tensor).ok_or(Error::NullTensor)?;
        let owner = Owner::foreign(Abi::Versioned(tensor));
        let raw = tensor.as_ptr();
        // SAFETY: the caller's promise. Only the version is read, and no reference made, before the
        // version is known: a later major version may have another layout.
        let DLPackVersion { major, .. } = unsafe { (&raw const (*raw).version).read() };
        if major != DLPackVersion::CURRENT.major {
            return Err(Error::UnsupportedVersion { major });
        }
        // SAFETY: the caller's promise, for the layout of version 1; `owner` outlives the view.
        let view =
            unsafe { View::read(&raw const (*raw).dl_tensor, owner.flags().contains(PADDED)) };
        Ok(Self { view: view?, owner })
    }

    /// Takes over a legacy `DLManagedTensor`, then judges it. It has no flags: whether it may be
    /// written to, nobody says.
    ///
    /// # Errors
    ///
    /// As [`Self::from_raw`], less the version.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`].
    pub unsafe fn from_raw_legacy(tensor: *mut DLManagedTensor) -> Result<Self, Error> {
        let tensor = NonNull::new(tensor).ok_or(Error::NullTensor)?;
        let owner = Owner::foreign(Abi::Legacy(tensor));
        // SAFETY: the caller's promise; `owner` outlives the view.
        let view = unsafe { View::read(&raw const (*tensor.as_ptr()).dl_tensor, false) };
        Ok(Self { view: view?, owner })
    }

    /// A tensor over memory that others may hold too: read-only.
    pub(crate) fn over_shared(
        buffer: Buffer,
        dtype: DLDataType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Self::over(buffer, dtype, DLPackFlags::READ_ONLY, shape, strides)
    }

    /// A tensor over memory that nobody else holds: writable. `flags` say how that came to be.
    pub(crate) fn over_fresh(
        memory: Fresh,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Self::over(memory.into_buffer(), dtype, flags, shape, strides)
    }

    fn over(
        buffer: Buffer,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        // The header asks for NULL where there are no elements. Elsewhere the pointer must come from
        // the allocation, not from the buffer's `&[u8]`: a consumer of fresh memory writes through it.
        let data = if shape.contains(&0) {
            std::ptr::null_mut()
        } else {
            buffer.data_ptr().as_ptr().wrapping_add(buffer.ptr_offset())
        };
        let len = buffer.len();
        let device = DLDevice::CPU;
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: a buffer's memory stays where it is for as long as the buffer lives; that the
        // elements lie within it is checked next, before anyone can look.
        let tensor = unsafe { Self::pack(buffer, &description) }?;
        if tensor.view.extends_beyond(len) {
            return Err(Error::Overflow("extent beyond its buffer"));
        }
        Ok(tensor)
    }

    /// Another tensor over the same memory, which keeps this one alive. What the producer said of
    /// it is passed on, but not `IS_COPIED`: nobody is the sole owner any more.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Self {
        let description = Description {
            data: self.data(),
            byte_offset: self.byte_offset(),
            device: self.device(),
            dtype: self.dtype(),
            flags: self.flags().intersection(DLPackFlags::READ_ONLY.union(PADDED)),
            shape: self.shape(),
            strides: &self.strides(),
        };
        // SAFETY: I2, for as long as the clone keeps the tensor.
        let shared = unsafe { Self::pack(Arc::clone(self), &description) };
        shared.unwrap_or_else(|_| unreachable!("a tensor that was valid is valid"))
    }

    /// A tensor of our own that keeps `owner` alive: one allocation for everything.
    ///
    /// # Safety
    ///
    /// `description` is truthful, in the sense of [`Self::from_raw`], for as long as `owner` lives
    /// (wherever it is moved to), or the tensor is dropped before anyone reads its memory.
    unsafe fn pack<O: Send + Sync + 'static>(
        owner: O,
        description: &Description<'_>,
    ) -> Result<Self, Error> {
        let packed = pack::pack(owner, description);
        let owner = Owner(Abi::Packed(packed));
        let padded = description.flags.contains(PADDED);
        // SAFETY: P1 for the header and its arrays, the caller's promise for the memory.
        let view = unsafe { View::read(&raw const (*packed.into_versioned()).dl_tensor, padded) };
        Ok(Self { view: view?, owner })
    }

    /// Gives the tensor up as a `DLManagedTensorVersioned`; whoever holds the pointer must call its
    /// deleter. A legacy tensor is wrapped in a new one.
    #[must_use = "the tensor leaks if nobody calls its deleter"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        match self.owner.0 {
            Abi::Versioned(tensor) => {
                self.owner.forget();
                tensor.as_ptr()
            }
            Abi::Packed(packed) => {
                self.owner.forget();
                packed.into_versioned()
            }
            Abi::Legacy(_) => Arc::new(self).share().into_raw(),
        }
    }

    /// Gives the tensor up as a legacy `DLManagedTensor`, which cannot say that it is read-only. A
    /// versioned tensor of somebody else's is wrapped in a new one, one of our own is rewritten in
    /// place.
    ///
    /// # Errors
    ///
    /// [`Error::LegacyCannotPad`] for elements of under 8 bits in a byte each: the legacy ABI would
    /// have them read as packed.
    pub fn into_raw_legacy(self) -> Result<*mut DLManagedTensor, Error> {
        if self.dtype().bits < 8 && self.flags().contains(PADDED) {
            return Err(Error::LegacyCannotPad(self.dtype()));
        }
        match self.owner.0 {
            Abi::Legacy(tensor) => {
                self.owner.forget();
                Ok(tensor.as_ptr())
            }
            Abi::Packed(packed) => {
                self.owner.forget();
                Ok(packed.into_legacy())
            }
            Abi::Versioned(_) => Arc::new(self).share().into_raw_legacy(),
        }
    }

    /// Extents, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.view.shape()
    }

    /// Strides, in elements; computed if the producer left them out. Those of axes of extent 1 mean
    /// nothing.
    #[must_use]
    pub fn strides(&self) -> Cow<'_, [i64]> {
        self.view.strides()
    }

    /// Number of axes.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.view.size()
    }

    /// Size of the elements in bytes, without the gaps that strides leave.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.view.nbytes()
    }

    /// Bytes from one element to the next, `None` where elements of under 8 bits share one.
    #[must_use]
    pub fn itemsize(&self) -> Option<usize> {
        self.view.itemsize()
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        self.view.dtype()
    }

    /// Where the memory is.
    #[must_use]
    pub fn device(&self) -> DLDevice {
        self.view.device()
    }

    /// What the producer said about the tensor; nothing, if it came in the legacy ABI.
    #[must_use]
    pub fn flags(&self) -> DLPackFlags {
        self.owner.flags()
    }

    /// Whether the producer said that nobody may write.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags().contains(DLPackFlags::READ_ONLY)
    }

    /// Whether the elements lie one behind the other in row-major order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.row_major_obstacle().is_none()
    }

    /// The address of the first element where the CPU can read the device, and the producer's `data`
    /// (to which [`Self::byte_offset`] must be added) elsewhere. NULL if there are no elements.
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        self.view.address()
    }

    /// Distance in bytes from [`Self::data`] to the first element: 0 where the CPU can read.
    #[must_use]
    pub fn byte_offset(&self) -> u64 {
        self.view.byte_offset()
    }

    /// The elements, if they are `T`s, aligned, in row-major order, in memory that the CPU can read.
    ///
    /// ```
    /// use arrow_array::Int16Array;
    /// let tensor = arrow_dlpack::export::array(&Int16Array::from(vec![1, 2, 3]))?;
    /// assert_eq!(tensor.as_slice::<i16>(), Some(&[1, 2, 3][..]));
    /// assert_eq!(tensor.as_slice::<u16>(), None);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        let (bytes, _) = self.span()?;
        if self.dtype() != T::DTYPE || !self.is_contiguous() {
            return None;
        }
        if bytes.is_empty() {
            return Some(&[]);
        }
        let elements = self.data().cast::<T>();
        // SAFETY: V3: contiguous, so these are the `size` elements from `data` on, and no more. Any
        // bits are a `T`, whose size is the dtype's.
        elements.is_aligned().then(|| unsafe { std::slice::from_raw_parts(elements, self.size()) })
    }

    pub(crate) fn row_major_obstacle(&self) -> Option<CopyReason> {
        self.view.row_major_obstacle()
    }

    /// All bytes from the lowest element to the end of the highest, and the position of the first
    /// element in them; `None` where the CPU cannot read.
    pub(crate) fn span(&self) -> Option<(&[u8], usize)> {
        self.view.span()
    }
}

impl fmt::Debug for ManagedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedTensor")
            .field("dtype", &format_args!("{}", self.dtype()))
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("device", &format_args!("{}", self.device()))
            .field("flags", &self.flags())
            .finish_non_exhaustive()
    }
}

/// Calls the deleter when it is dropped.
struct Owner(Abi);

#[derive(Clone, Copy)]
enum Abi {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
    Packed(Packed),
}

impl Owner {
    fn foreign(abi: Abi) -> Self {
        IMPORTED.up();
        Self(abi)
    }

    fn is_foreign(&self) -> bool {
        !matches!(self.0, Abi::Packed(_))
    }

    /// Someone else owns it now.
    fn forget(self) {
        if self.is_foreign() {
            IMPORTED.down();
        }
        mem::forget(self);
    }

    /// Must not be asked before the version is known.
    fn flags(&self) -> DLPackFlags {
        let versioned = match self.0 {
            Abi::Versioned(tensor) => tensor.as_ptr(),
            Abi::Packed(packed) => packed.into_versioned(),
            Abi::Legacy(_) => return DLPackFlags::default(),
        };
        // SAFETY: I1.
        unsafe { (*versioned).flags }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.is_foreign() {
            IMPORTED.down();
        }
        // SAFETY: I1. Only the deleter is touched: the major version may be another.
        unsafe {
            match self.0 {
                Abi::Legacy(tensor) => {
                    if let Some(delete) = (&raw const (*tensor.as_ptr()).deleter).read() {
                        delete(tensor.as_ptr());
                    }
                }
                Abi::Versioned(tensor) => delete_versioned(tensor.as_ptr()),
                Abi::Packed(packed) => delete_versioned(packed.into_versioned()),
            }
        }
    }
}

/// # Safety
///
/// I1, and the tensor is not used again.
unsafe fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (&raw const (*tensor).deleter).read() {
            delete(tensor);
        }
    }
}
