//! The owning handle, for tensors of both ABIs and those that this crate exports.
#![expect(
    unsafe_code,
    reason = "takes raw pointers over, and promises Rust that foreign memory is readable, or writable"
)]

use std::{borrow::Cow, fmt, ptr::NonNull, sync::Arc};

use super::block::{Description, pack};
use super::descriptor::{Flag, View};
use super::owner::{Owned, Owner};
use super::release::Outgoing;
use crate::ffi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackFlags, DLPackVersion,
    DLTensor,
};
use crate::{CopyReason, Element, Error, WriteObstacle};

pub(super) const PADDED: DLPackFlags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;

/// An owned tensor. Dropping it calls the producer's deleter, exactly once.
///
/// It has been validated on construction (from a pointer of either ABI, or by [`crate::to_dlpack`]), so the
/// accessors cannot fail. It can be sent to and dropped on any thread.
///
/// ```
/// use arrow_array::Float32Array;
/// use arrow_dlpack::{ManagedTensor, export};
///
/// let tensor = export::array(&Float32Array::from(vec![1.0, 2.0, 3.0]))?;
/// assert_eq!((tensor.shape(), tensor.dtype().to_string()), (&[3][..], "float32".into()));
///
/// // Through C and back: the holder of the pointer owns the tensor.
/// let raw = tensor.into_raw();
/// // SAFETY: `into_raw` made it just now.
/// let tensor = unsafe { ManagedTensor::from_raw(raw) }?;
/// assert_eq!(tensor.nbytes(), 12);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// [`reshape`](Self::reshape) and [`broadcast_to`](Self::broadcast_to) change its shape, mostly without a copy:
///
/// ```
/// use arrow_dlpack::{CopyPolicy, ManagedTensor};
///
/// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[6])?;
/// let matrix = tensor.reshape(&[2, -1], CopyPolicy::Never)?;
/// assert_eq!(matrix.shape(), [2, 3]);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// Source: `DLManagedTensorVersioned` and `DLManagedTensor` of `dlpack.h`.
// Invariants, from construction on:
//
// - I1 `owner` is the only owner of a managed tensor whose descriptor is truthful; its deleter has
//   not been called, may be called from any thread, and frees all that the descriptor points to.
// - I2 `view` was read from that descriptor, so V1 to V4 hold until the deleter is called.
// - I3 If `exclusive`, no other code reads or writes the memory of V3 until the deleter is called, but tensors that
//   hold this one in an `Arc`. Unless the producer said `READ_ONLY`, `view`'s address is good for writing all of it.
pub struct ManagedTensor {
    view: View,
    owner: Owner,
    exclusive: Flag,
}

// SAFETY: an owner can be sent; everything else is plain data that does not change.
unsafe impl Send for ManagedTensor {}
// SAFETY: a shared tensor can only be read, and I2 holds on every thread.
unsafe impl Sync for ManagedTensor {}

impl ManagedTensor {
    /// Takes over a `DLManagedTensorVersioned`, then validates it.
    ///
    /// ```
    /// use arrow_dlpack::{Error, ManagedTensor, export};
    /// use arrow_array::Int32Array;
    ///
    /// let raw = export::array(&Int32Array::from(vec![1, 2]))?.into_raw(); // of a library in C, in earnest
    /// // SAFETY: `raw` is a truthful tensor that has no other owner.
    /// let tensor = unsafe { ManagedTensor::from_raw(raw) }?;
    /// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, 2][..]));
    /// // SAFETY: NULL is allowed, and an error.
    /// assert!(matches!(unsafe { ManagedTensor::from_raw(std::ptr::null_mut()) }, Err(Error::NullTensor)));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any inconsistency in the descriptor: a major version other than 1, negative
    /// ndim or extents, over 256 axes, sizes that overflow or exceed any address space, NULL where memory is
    /// needed, bits that do not fit the code. The tensor has been deleted by then. Any device, strides and dtype
    /// are accepted. A tensor at a misaligned address is not read, and so not deleted either.
    ///
    /// # Safety
    ///
    /// `tensor` is NULL or a valid pointer that the caller owns and gives up, and its descriptor is
    /// truthful. That is, until the deleter is called:
    ///
    /// - the struct, and `ndim` values at `shape` and at `strides` (if not NULL), stay as they are;
    /// - if a CPU can read the device (see [`is_host_readable`](crate::ffi::DLDevice::is_host_readable)), the memory from the
    ///   lowest to the highest element is readable, in one allocation, and not written to while
    ///   it is being read. A producer that keeps writing to what it shared breaks this promise;
    /// - without the flag `READ_ONLY`, no code in Rust has borrowed that memory: consumers of the tensor may write to it
    ///   ([`Self::share`] sets the flag);
    /// - with the flag `IS_COPIED`, no other code reads or writes that memory at all: that is what the
    ///   flag says. Without it nothing is concluded, see [`Self::assume_exclusive`].
    ///
    /// The deleter (if not NULL) may be called once, from any thread. If the major version is not 1,
    /// only `version` and `deleter` need be truthful.
    pub unsafe fn from_raw(tensor: *mut DLManagedTensorVersioned) -> Result<Self, Error> {
        let tensor = at(tensor)?;
        // SAFETY: the tensor is valid, truthful and given up; `drop` calls its deleter on an error.
        unsafe { Self::judge(tensor, drop) }
    }

    /// As [`Self::from_raw`], but on an error the caller still owns the tensor, and its deleter has not been
    /// called.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`], but the caller gives the tensor up only on success.
    pub(crate) unsafe fn from_raw_unless_refused(
        tensor: *mut DLManagedTensorVersioned,
    ) -> Result<Self, Error> {
        let tensor = at(tensor)?;
        // SAFETY: the tensor is valid and truthful, and given up on success; on an error its owner is forgotten.
        unsafe { Self::judge(tensor, Owner::forget) }
    }

    /// Undoes [`Self::from_raw_unless_refused`]: the tensor is its previous owner's again.
    pub(crate) fn forget(self) {
        self.owner.forget();
    }

    /// Owns first, then validates. Callers return the result directly, because a tensor is large and a move costs
    /// time.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`], unless `refused` forgets the owner.
    unsafe fn judge(
        tensor: NonNull<DLManagedTensorVersioned>,
        refused: impl FnOnce(Owner),
    ) -> Result<Self, Error> {
        // SAFETY: it is valid and given up: I1, but for the descriptor, which is judged next.
        let owner = unsafe { Owner::versioned(tensor) };
        let raw = tensor.as_ptr();
        // SAFETY: it is valid. Only the version is read, and no reference made, before the
        // version is known: a later major version may have another layout.
        let DLPackVersion { major, .. } = unsafe { (&raw const (*raw).version).read() };
        if major != DLPackVersion::CURRENT.major {
            refused(owner);
            return Err(Error::UnsupportedVersion { major });
        }
        // SAFETY: the version is ours.
        let flags = unsafe { owner.flags() };
        // SAFETY: the descriptor is truthful, of the layout of version 1; `owner` outlives the view.
        match unsafe { View::read(&raw const (*raw).dl_tensor, flags.contains(PADDED)) } {
            Ok(view) => {
                Ok(Self { view, owner, exclusive: flags.contains(DLPackFlags::IS_COPIED).into() })
            }
            Err(error) => {
                refused(owner);
                Err(error)
            }
        }
    }

    /// Takes over a legacy `DLManagedTensor`, then validates it. It has no flags, and counts as read-only.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let raw = ManagedTensor::from(vec![1, 2]).into_raw_legacy()?; // of a library in C, in earnest
    /// // SAFETY: `raw` is a truthful tensor that has no other owner.
    /// let tensor = unsafe { ManagedTensor::from_raw_legacy(raw) }?;
    /// assert!(tensor.is_read_only()); // as far as is known
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::from_raw`], less the version.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`].
    pub unsafe fn from_raw_legacy(tensor: *mut DLManagedTensor) -> Result<Self, Error> {
        let tensor = at(tensor)?;
        // SAFETY: it is valid and given up: I1, but for the descriptor, which is judged next.
        let owner = unsafe { Owner::legacy(tensor) };
        // SAFETY: the descriptor is truthful; `owner` outlives the view.
        let view = unsafe { View::read(&raw const (*tensor.as_ptr()).dl_tensor, false) };
        Ok(Self { view: view?, owner, exclusive: Flag::from(false) })
    }

    /// The same tensor, marked as the only access to its memory: [`Self::as_slice_mut`] and the like may now write to
    /// it, unless it is read-only.
    ///
    /// Copies, tensors of memory that was handed over, and tensors of other libraries with the flag `IS_COPIED`
    /// are exclusive from the start. A writable tensor need not be: NumPy and PyTorch keep references to memory
    /// that they share.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    /// use arrow_dlpack::ffi::{DLDataType, DLDevice};
    ///
    /// let mut owner = vec![1_i32, 2, 3];
    /// let data = owner.as_mut_ptr().cast();
    /// // SAFETY: the elements stay where they are when the vector is moved, and no other code has them.
    /// let mut tensor = unsafe {
    ///     ManagedTensor::from_raw_parts(owner, data, DLDataType::INT32, &[3], None, DLDevice::CPU)?
    ///         .assume_exclusive()
    /// };
    /// tensor.as_slice_mut::<i32>().expect("it may be written to")[0] = 10;
    /// assert_eq!(tensor.as_slice::<i32>(), Some(&[10, 2, 3][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// Until the tensor is dropped or given up, no other code reads or writes the memory from its lowest
    /// to its highest element, and unless it is read-only it may be written to.
    #[must_use]
    pub unsafe fn assume_exclusive(self) -> Self {
        Self { exclusive: Flag::from(true), ..self }
    }

    /// A tensor over memory that came without a deleter, such as a Python object's or another tensor's, with
    /// everything in one allocation. Dropping `owner` releases the memory.
    ///
    /// # Errors
    ///
    /// Any inconsistency in the description, as [`Self::from_raw`]. The owner has
    /// been dropped by then.
    ///
    /// # Safety
    ///
    /// `description` is truthful, in the sense of [`Self::from_raw`], for as long as `owner` lives, on
    /// whatever thread and wherever it is moved to, or the tensor is dropped before anyone reads its
    /// memory.
    pub(crate) unsafe fn pack<O: Send + Sync + 'static>(
        owner: O,
        description: &Description<'_>,
    ) -> Result<Self, Error> {
        let mut description = *description;
        if description.shape.contains(&0) {
            // The header requires NULL where there are no elements.
            (description.data, description.byte_offset) = (std::ptr::null_mut(), 0);
        }
        // SAFETY: P3: the description is truthful for as long as `owner` lives, or the memory is not read.
        let packed = unsafe { pack(|| owner, &description) };
        let padded = description.flags.contains(PADDED);
        // SAFETY: P1 for the header and its arrays, P3 for the memory.
        let view = unsafe { View::read(&raw const (*packed.header()).dl_tensor, padded) };
        let owner = Owner::packed(packed);
        Ok(Self { view: view?, owner, exclusive: Flag::from(false) })
    }

    /// [`Self::pack`] of elements that have to lie within `len` bytes, the first of them at `origin`: `None` if one of them
    /// does not.
    ///
    /// # Safety
    ///
    /// The memory has these bytes, for as long as `owner` lives, on whatever thread and wherever it is moved to. But for
    /// extents and strides, `description` is truthful.
    pub(crate) unsafe fn within<O: Send + Sync + 'static>(
        owner: O,
        description: &Description<'_>,
        origin: usize,
        len: usize,
    ) -> Result<Option<Self>, Error> {
        // SAFETY: the memory has these bytes; that the elements are among them is checked next, before any access.
        let tensor = unsafe { Self::pack(owner, description) }?;
        let is_within = tensor.size() == 0 || !tensor.view.extends_beyond(origin, len);
        Ok(is_within.then_some(tensor))
    }

    /// A tensor that shares its memory.
    ///
    /// # Safety
    ///
    /// I1 and I2: the view is that of the owner's descriptor.
    #[inline(always)]
    pub(super) unsafe fn from_view(view: View, owner: Owner) -> Self {
        Self { view, owner, exclusive: Flag::from(false) }
    }

    /// The same tensor, which [`Self::into_fresh`] may end.
    ///
    /// # Safety
    ///
    /// It was packed with the `Buffer` of a `Fresh` as its owner, by the pointer of the allocation.
    pub(super) unsafe fn known_fresh(self) -> Self {
        // SAFETY: it was packed with the `Buffer` of a `Fresh`; I3, because a `Fresh` has no other holder.
        Self { owner: unsafe { self.owner.known_fresh() }, exclusive: Flag::from(true), ..self }
    }

    pub(super) fn descriptor(&self) -> &View {
        &self.view
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn into_owner(self) -> Owner {
        self.owner
    }

    /// Gives the tensor up as a `DLManagedTensorVersioned`; the holder of the pointer must call its
    /// deleter. A legacy tensor is wrapped in a new one.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let raw = ManagedTensor::from(vec![1.5_f32, 2.5]).into_raw();
    /// // SAFETY: it was made just now, and C does the same when it is done with the tensor.
    /// unsafe {
    ///     assert_eq!((*raw).dl_tensor.ndim, 1);
    ///     (*raw).deleter.expect("ours have one")(raw);
    /// }
    /// ```
    #[must_use = "the tensor leaks unless its deleter is called"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        self.into_outgoing(DLPackVersion::CURRENT).into_raw()
    }

    /// [`Self::into_raw`] for a consumer that supports versions up to `newest`. The header gets the smaller of
    /// that version and ours, but at least the one that introduced the dtype and the flags. That of a foreign tensor
    /// stays as it is: it is its producer's, and minor versions are compatible.
    pub(crate) fn into_outgoing(self, newest: DLPackVersion) -> Outgoing {
        // 1.1 brought the 8, 6 and 4-bit floats and the padding flag.
        let least = u32::from(self.dtype().code.0 > 6 || self.flags().contains(PADDED));
        match self.owner.into_owned() {
            // SAFETY: I1, and it has just been given up.
            Owned::Versioned(tensor) => unsafe { Outgoing::new(tensor) },
            Owned::Packed(packed) | Owned::Fresh(packed) => packed.into_versioned(newest, least),
            Owned::Legacy(tensor) => {
                // SAFETY: it has just been given up.
                let owner = unsafe { Owner::legacy(tensor) };
                let this = Arc::new(Self { view: self.view, owner, exclusive: self.exclusive });
                // SAFETY: it is read-only, as every legacy tensor.
                unsafe { this.share_writable() }.into_outgoing(newest)
            }
        }
    }

    /// Gives the tensor up as a legacy `DLManagedTensor`, which cannot say that it is read-only. A foreign
    /// versioned tensor is wrapped in a new one, one that this crate made is rewritten in
    /// place.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let raw = ManagedTensor::from(vec![1.5_f32, 2.5]).into_raw_legacy()?;
    /// // SAFETY: it was made just now, and C does the same when it is done with the tensor.
    /// unsafe {
    ///     assert_eq!((*raw).dl_tensor.ndim, 1);
    ///     (*raw).deleter.expect("ours have one")(raw);
    /// }
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LegacyCannotPad`] for elements of under 8 bits in a byte each: the legacy ABI would
    /// have them read as packed.
    pub fn into_raw_legacy(self) -> Result<*mut DLManagedTensor, Error> {
        if self.dtype().bits < 8 && self.flags().contains(PADDED) {
            return Err(Error::LegacyCannotPad(self.dtype()));
        }
        match self.owner.into_owned() {
            Owned::Legacy(tensor) => Ok(tensor.as_ptr()),
            Owned::Packed(packed) | Owned::Fresh(packed) => Ok(packed.into_legacy()),
            Owned::Versioned(tensor) => {
                // SAFETY: it has just been given up.
                let owner = unsafe { Owner::versioned(tensor) };
                let this = Arc::new(Self { view: self.view, owner, exclusive: self.exclusive });
                // SAFETY: it is read-only, or no code in Rust has borrowed its memory, by the promise of `from_raw`.
                unsafe { this.share_writable() }.into_raw_legacy()
            }
        }
    }
}

impl ManagedTensor {
    /// Extents, in elements.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(tensor.shape(), [2, 3]);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.view.shape()
    }

    /// Strides, in elements; computed if the producer left them out. Those of axes of extent 1 mean
    /// nothing.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(*tensor.strides(), [3, 1]);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn strides(&self) -> Cow<'_, [i64]> {
        self.view.strides()
    }

    /// Number of axes.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(tensor.ndim(), 2);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements, as NumPy's `size`; [`Self::nbytes`] is their size in bytes.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(tensor.size(), 6);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn size(&self) -> usize {
        self.view.size()
    }

    /// The extents as sizes, as `shape()` is in ndarray and `dims()` in candle.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!((tensor.dims(), tensor.shape()), (vec![2, 3], &[2_i64, 3][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn dims(&self) -> Vec<usize> {
        // They were judged: none is negative, and those of a tensor without elements may only be too large for 32 bits.
        self.shape().iter().map(|&extent| usize::try_from(extent).unwrap_or(usize::MAX)).collect()
    }

    /// Size of the elements in bytes, without the gaps that strides leave.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(tensor.nbytes(), 24);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.view.nbytes()
    }

    /// Bytes from one element to the next, `None` where elements of under 8 bits share one.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let tensor = ManagedTensor::from_vec(vec![1_i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(tensor.itemsize(), Some(4));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn itemsize(&self) -> Option<usize> {
        self.view.itemsize()
    }

    /// Element type.
    ///
    /// ```
    /// use arrow_dlpack::{ManagedTensor, ffi::DLDataType};
    ///
    /// let tensor = ManagedTensor::from(vec![1.5_f32, 2.5]);
    /// assert_eq!(tensor.dtype(), DLDataType::FLOAT32);
    /// assert_eq!(tensor.dtype().to_string(), "float32");
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        self.view.dtype()
    }

    /// Where the memory is.
    ///
    /// ```
    /// use arrow_dlpack::{ManagedTensor, ffi::DLDevice};
    ///
    /// assert_eq!(ManagedTensor::from(vec![1.5_f32]).device(), DLDevice::CPU);
    /// ```
    #[must_use]
    pub fn device(&self) -> DLDevice {
        self.view.device()
    }

    /// The producer's flags. The legacy ABI has none, and counts as `READ_ONLY`, as in NumPy, because
    /// producers of immutable memory cannot flag it.
    ///
    /// ```
    /// use arrow_dlpack::{ManagedTensor, ffi::DLPackFlags};
    ///
    /// let copy = ManagedTensor::from(vec![1.5_f32]).copied()?;
    /// assert!(copy.flags().contains(DLPackFlags::IS_COPIED));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn flags(&self) -> DLPackFlags {
        // SAFETY: I2: the version was judged before the view was read.
        unsafe { self.owner.flags() }
    }

    /// Whether the producer said that the memory must not be written to.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::export;
    ///
    /// let shared = export::array(&Int32Array::from(vec![1, 2]))?;
    /// assert_eq!((shared.is_read_only(), shared.copied()?.is_read_only()), (true, false));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags().contains(DLPackFlags::READ_ONLY)
    }

    /// Whether other code may be writing to the memory, as far as is known. A read-only tensor may share
    /// memory with a writable one.
    pub(crate) fn may_change(&self) -> bool {
        !self.exclusive.get()
    }

    /// An error for memory that the CPU cannot read.
    pub(crate) fn check_readable(&self) -> Result<(), Error> {
        let device = self.device();
        if device.is_host_readable() { Ok(()) } else { Err(Error::UnreadableDevice { device }) }
    }

    /// Whether the elements lie one behind the other in row-major order.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let row = ManagedTensor::from(vec![1, 2, 3]);
    /// assert!(row.is_contiguous());
    /// assert!(!row.broadcast_to(&[2, 3])?.is_contiguous());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.view.is_contiguous()
    }

    /// The address of the first element where the CPU can read the device, and the producer's `data`
    /// (to which [`Self::byte_offset`] must be added) elsewhere. NULL if there are no elements.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::export;
    ///
    /// let array = Int32Array::from(vec![1, 2]);
    /// assert_eq!(export::array(&array)?.as_ptr(), array.values().as_ptr().cast());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.data()
    }

    /// [`Self::as_ptr`], to write to, if that is allowed: [`Self::as_slice_mut`] checks it, and this does not.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// let mut tensor = ManagedTensor::from(vec![1_i32, 2]);
    /// assert!(tensor.as_slice_mut::<i32>().is_some());
    /// // SAFETY: it may be written to, as was asked just now, and has two elements.
    /// unsafe { tensor.as_mut_ptr().cast::<i32>().add(1).write(20) };
    /// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, 20][..]));
    /// ```
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.data()
    }

    pub(crate) fn data(&self) -> *mut u8 {
        self.view.address()
    }

    /// Distance in bytes from [`Self::as_ptr`] to the first element: 0 where the CPU can read.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    ///
    /// assert_eq!(ManagedTensor::from(vec![1, 2]).byte_offset(), 0);
    /// ```
    #[must_use]
    pub fn byte_offset(&self) -> u64 {
        self.view.byte_offset()
    }

    pub(crate) fn row_major_obstacle(&self) -> Option<CopyReason> {
        self.view.row_major_obstacle()
    }

    /// The tensor as a `DLTensor`, valid for as long as the tensor lives; `None` if the producer left the
    /// strides out.
    pub(crate) fn dl_tensor(&self) -> Option<DLTensor> {
        self.view.dl_tensor()
    }

    /// All bytes from the lowest element to the end of the highest, and the position of the first
    /// element in them; `None` where the CPU cannot read.
    pub(crate) fn span(&self) -> Option<(&[u8], usize)> {
        self.view.span()
    }
}

impl ManagedTensor {
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

    /// As [`Self::as_slice`], to write to, if the tensor is not read-only and its memory has no
    /// other holder: a copy, memory that was handed over, or what
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

    /// The elements of a tensor of booleans, a byte for each, if they are in row-major order, in memory that the CPU
    /// can read. Any byte but 0 is true: most producers write 1, but not all.
    ///
    /// ```
    /// use arrow_array::BooleanArray;
    /// let tensor = arrow_dlpack::export::array(&BooleanArray::from(vec![true, false, true]))?;
    /// assert_eq!(tensor.as_bool_bytes(), Some(&[1, 0, 1][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_bool_bytes(&self) -> Option<&[u8]> {
        let (bytes, _) = self.span()?;
        (self.dtype() == DLDataType::BOOL && self.is_contiguous()).then_some(bytes)
    }

    /// A pointer to the elements, and their number, if they are aligned `T`s in row-major order that the
    /// CPU can read. It is valid for as long as the tensor lives. Other code may write to them.
    pub(crate) fn run_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        let run = self.span_of()?;
        match self.row_major_obstacle().filter(|_| !self.is_contiguous()) {
            Some(reason) => Err(Error::CopyForbidden { reason, nbytes: self.nbytes() }),
            None => Ok(run),
        }
    }

    /// A pointer to the lowest element, and the number of `T`s from there to the highest. As [`Self::run_of`], of any strides.
    pub(crate) fn span_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        let (lowest, len, _) = self.view.elements()?;
        Ok((lowest, len))
    }

    /// Everything from the lowest element to the highest, and the position of the first one in it.
    pub(crate) fn elements<T: Element>(&self) -> Result<(&[T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        // SAFETY: I2, V3. Any bits are a `T`.
        Ok((unsafe { std::slice::from_raw_parts(lowest, len) }, origin))
    }

    /// As [`Self::elements`], of booleans, if every byte is 0 or 1.
    pub(crate) fn bools(&self) -> Result<(&[bool], usize), Error> {
        if self.dtype() != DLDataType::BOOL {
            return Err(Error::DtypeMismatch { expected: DLDataType::BOOL, found: self.dtype() });
        }
        let unreadable = || Error::UnreadableDevice { device: self.device() };
        let (bytes, origin) = self.view.span().ok_or_else(unreadable)?;
        if bytes.iter().fold(0, |all, byte| all | byte) > 1 {
            let (reason, nbytes) = (crate::copy::CopyReason::BoolBytes, self.nbytes());
            return Err(Error::CopyForbidden { reason, nbytes });
        }
        // SAFETY: I2, V3, as in `span`; each of these bytes is 0 or 1.
        Ok((unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }, origin))
    }

    /// As [`Self::elements`], to write to.
    pub(crate) fn elements_mut<T: Element>(&mut self) -> Result<(&mut [T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        if self.is_read_only() {
            return Err(Error::NotWritable(WriteObstacle::ReadOnly));
        }
        if !self.exclusive.get() {
            return Err(Error::NotWritable(WriteObstacle::Shared));
        }
        // SAFETY: I2, V3, and I3: all reads and writes of this memory go through `self`, which is
        // borrowed mutably for as long as the slice.
        Ok((unsafe { std::slice::from_raw_parts_mut(lowest, len) }, origin))
    }
}

impl fmt::Debug for ManagedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedTensor")
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("device", &self.device())
            .field("flags", &self.flags())
            .finish_non_exhaustive()
    }
}

/// Checks the address of a managed tensor. If it is misaligned, nothing of it can be read, not even the deleter.
fn at<T>(tensor: *mut T) -> Result<NonNull<T>, Error> {
    match NonNull::new(tensor) {
        Some(tensor) if tensor.is_aligned() => Ok(tensor),
        Some(tensor) => Err(Error::MisalignedTensor { address: tensor.addr().get() }),
        None => Err(Error::NullTensor),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::ffi::DLTensor;

    /// A producer's header, in read-only memory.
    struct Fixed(DLManagedTensorVersioned);

    // SAFETY: nothing changes it.
    unsafe impl Sync for Fixed {}

    static FIXED: Fixed = Fixed(DLManagedTensorVersioned {
        version: DLPackVersion::CURRENT,
        manager_ctx: ptr::null_mut(),
        deleter: None,
        flags: DLPackFlags::READ_ONLY,
        dl_tensor: DLTensor {
            data: ptr::null_mut(),
            device: DLDevice::CPU,
            ndim: 1,
            dtype: DLDataType::INT8,
            shape: [0_i64].as_ptr().cast_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        },
    });

    /// Written to, it ends this process, and Miri says so.
    #[test]
    fn foreign_header_is_not_written_to() {
        let raw = (&raw const FIXED.0).cast_mut();
        // SAFETY: the tensor is valid for good, and needs no deleter.
        let tensor = unsafe { ManagedTensor::from_raw(raw) }.expect("a valid tensor");
        let oldest = DLPackVersion { major: 1, minor: 0 };
        assert_eq!(tensor.into_outgoing(oldest).into_raw(), raw);
    }

    #[test]
    fn outgoing_tensor_that_is_not_taken_is_deleted() {
        let owner: Arc<[i32]> = Arc::new([1, 2]);
        let tensor = ManagedTensor::from_owner(Arc::clone(&owner), &[2]).expect("two values");
        let outgoing = tensor.into_outgoing(DLPackVersion::CURRENT);
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(outgoing);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
