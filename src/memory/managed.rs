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
use crate::error::{CopyReason, Error, WriteObstacle};
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
// - I3 If `exclusive`, nobody else reads or writes the memory of V3 until the deleter is called. Unless
//   the producer said `READ_ONLY`, `view`'s address is good for writing all of it.
pub struct ManagedTensor {
    view: View,
    owner: Owner,
    exclusive: bool,
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
    ///   it is being read. A producer that keeps writing to what it shared breaks this promise;
    /// - with the flag `IS_COPIED`, nobody else reads or writes that memory at all: that is what the
    ///   flag says. Without it nothing is concluded, see [`Self::assume_exclusive`].
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
        let exclusive = owner.flags().contains(DLPackFlags::IS_COPIED);
        Ok(Self { view: view?, owner, exclusive })
    }

    /// Takes over a legacy `DLManagedTensor`, then judges it. It has no flags, and counts as read-only.
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
        Ok(Self { view: view?, owner, exclusive: false })
    }

    /// The same tensor, known to be the only way to its memory: it may now be written to through
    /// [`Self::as_slice_mut`] and its kin, unless it is read-only.
    ///
    /// Copies and tensors of memory that was given away are known to be so from the start, and those
    /// of other libraries that are flagged `IS_COPIED`. That one is merely writable says nothing about
    /// who else holds it: NumPy and PyTorch keep a reference to all that they share.
    ///
    /// # Safety
    ///
    /// Until the tensor is dropped or given up, nobody else reads or writes the memory from its lowest
    /// to its highest element, and unless it is read-only it may be written to.
    #[must_use]
    pub unsafe fn assume_exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// A tensor over memory that others may hold too: read-only.
    pub(crate) fn over_shared(
        buffer: Buffer,
        dtype: DLDataType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Self::over(buffer, 0, dtype, DLPackFlags::READ_ONLY, shape, strides)
    }

    /// A tensor over memory that nobody else holds: writable. `flags` say how that came to be.
    pub(crate) fn over_fresh(
        memory: Fresh,
        dtype: DLDataType,
        flags: DLPackFlags,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        let tensor = Self::over(memory.into_buffer(), 0, dtype, flags, shape, strides)?;
        // I3: the memory had no other holder, and its pointer comes from the allocation.
        Ok(Self { exclusive: true, ..tensor })
    }

    /// As [`Self::over_fresh`], with the first element `origin` bytes into the memory.
    #[cfg(feature = "ndarray")]
    pub(crate) fn over_fresh_from(
        memory: Fresh,
        origin: usize,
        dtype: DLDataType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        let flags = DLPackFlags::default();
        let tensor = Self::over(memory.into_buffer(), origin, dtype, flags, shape, strides)?;
        // I3, as above.
        Ok(Self { exclusive: true, ..tensor })
    }

    /// A tensor whose first element is `origin` bytes into a buffer.
    fn over(
        buffer: Buffer,
        origin: usize,
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
            buffer.data_ptr().as_ptr().wrapping_add(buffer.ptr_offset()).wrapping_add(origin)
        };
        let len = buffer.len();
        let device = DLDevice::CPU;
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: a buffer's memory stays where it is for as long as the buffer lives; that the
        // elements lie within it is checked next, before anyone can look.
        let tensor = unsafe { Self::pack(buffer, &description) }?;
        if tensor.view.extends_beyond(origin, len) {
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
        Ok(Self { view: view?, owner, exclusive: false })
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

    /// [`Self::into_raw`] for a consumer that understands `newest`: what is written in the header is the
    /// smaller of its version and ours, but not less than the dtype and the flags take.
    #[cfg(feature = "pyo3")]
    pub(crate) fn into_raw_for(self, newest: DLPackVersion) -> *mut DLManagedTensorVersioned {
        // 1.1 brought the 8, 6 and 4-bit floats and the padding flag.
        let minor = u32::from(self.dtype().code.0 > 6 || self.flags().contains(PADDED));
        let least = DLPackVersion { major: DLPackVersion::CURRENT.major, minor };
        let raw = self.into_raw();
        // SAFETY: I1, until the pointer is handed out.
        unsafe { (*raw).version = newest.min(DLPackVersion::CURRENT).max(least) };
        raw
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

    /// What the producer said about the tensor. The legacy ABI says nothing, which is taken for
    /// `READ_ONLY`, as NumPy takes it: its immutable producers have no other way to be safe.
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
        let (elements, _) = self.elements().ok()?;
        self.is_contiguous().then_some(elements)
    }

    /// As [`Self::as_slice`], to write to, if nobody has said that the tensor is read-only and nobody
    /// else holds its memory: a copy, memory that was given away, or what
    /// [`Self::assume_exclusive`] vouches for.
    ///
    /// ```
    /// use arrow_array::Int16Array;
    /// let mut tensor = arrow_dlpack::export::array(&Int16Array::from(vec![1, 2, 3]))?;
    /// assert_eq!(tensor.as_slice_mut::<i16>(), None); // the array has the memory too
    ///
    /// let mut copy = tensor.copied()?;
    /// copy.as_slice_mut::<i16>().unwrap()[0] = 10;
    /// assert_eq!(copy.as_slice::<i16>(), Some(&[10, 2, 3][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let contiguous = self.is_contiguous();
        let (elements, _) = self.elements_mut().ok()?;
        contiguous.then_some(elements)
    }

    /// Everything from the lowest element to the highest, and the position of the first one in it.
    pub(crate) fn elements<T: Element>(&self) -> Result<(&[T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        // SAFETY: I2, V3. Any bits are a `T`.
        Ok((unsafe { std::slice::from_raw_parts(lowest, len) }, origin))
    }

    /// As [`Self::elements`], to write to.
    pub(crate) fn elements_mut<T: Element>(&mut self) -> Result<(&mut [T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        if self.is_read_only() {
            return Err(Error::NotWritable(WriteObstacle::ReadOnly));
        }
        if !self.exclusive {
            return Err(Error::NotWritable(WriteObstacle::Shared));
        }
        // SAFETY: I2, V3, and I3: whoever reads or writes this memory goes through `self`, which is
        // borrowed mutably for as long as the slice.
        Ok((unsafe { std::slice::from_raw_parts_mut(lowest, len) }, origin))
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
            // It cannot say that it is read-only, and JAX's arrays are: what nobody said is writable is not.
            Abi::Legacy(_) => return DLPackFlags::READ_ONLY,
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
        // SAFETY: I1.
        unsafe {
            match self.0 {
                Abi::Legacy(tensor) => delete_legacy(tensor.as_ptr()),
                Abi::Versioned(tensor) => delete_versioned(tensor.as_ptr()),
                Abi::Packed(packed) => delete_versioned(packed.into_versioned()),
            }
        }
    }
}

/// Calls the deleter, if there is one. Nothing else is touched: the major version may be another.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (&raw const (*tensor).deleter).read() {
            delete(tensor);
        }
    }
}

/// [`delete_versioned`] for the legacy ABI.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn delete_legacy(tensor: *mut DLManagedTensor) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (&raw const (*tensor).deleter).read() {
            delete(tensor);
        }
    }
}
