//! The owning handle, for tensors of both ABIs and those that this crate exports.
#![expect(unsafe_code, reason = "takes raw pointers over and gives them up")]

use std::{ptr::NonNull, sync::Arc};

use super::owner::{Abi, Owner};
use super::pack::{self, Description};
use super::view::{Flag, View};
use crate::Error;
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLPackFlags, DLPackVersion};

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
// - I3 If `exclusive`, no other code reads or writes the memory of V3 until the deleter is called. Unless
//   the producer said `READ_ONLY`, `view`'s address is good for writing all of it.
pub struct ManagedTensor {
    pub(super) view: View,
    pub(super) owner: Owner,
    pub(super) exclusive: Flag,
}

// SAFETY: an owner can be sent; everything else is plain data that does not change.
unsafe impl Send for ManagedTensor {}
// SAFETY: a shared tensor can only be read, and I2 holds on every thread.
unsafe impl Sync for ManagedTensor {}

impl ManagedTensor {
    /// Takes over a `DLManagedTensorVersioned`, then validates it.
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
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
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
        let owner = Owner::foreign(Abi::Versioned(tensor));
        let raw = tensor.as_ptr();
        // SAFETY: the caller's promise. Only the version is read, and no reference made, before the
        // version is known: a later major version may have another layout.
        let DLPackVersion { major, .. } = unsafe { (&raw const (*raw).version).read() };
        if major != DLPackVersion::CURRENT.major {
            refused(owner);
            return Err(Error::UnsupportedVersion { major });
        }
        let flags = owner.flags();
        // SAFETY: the caller's promise, for the layout of version 1; `owner` outlives the view.
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
    /// # Errors
    ///
    /// As [`Self::from_raw`], less the version.
    ///
    /// # Safety
    ///
    /// As [`Self::from_raw`].
    pub unsafe fn from_raw_legacy(tensor: *mut DLManagedTensor) -> Result<Self, Error> {
        let tensor = at(tensor)?;
        let owner = Owner::foreign(Abi::Legacy(tensor));
        // SAFETY: the caller's promise; `owner` outlives the view.
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
    /// memory (a caller may first ask [`Self::extends_beyond`]).
    pub(crate) unsafe fn pack<O: Send + Sync + 'static>(
        owner: O,
        description: &Description<'_>,
    ) -> Result<Self, Error> {
        let mut description = *description;
        if description.shape.contains(&0) {
            // The header requires NULL where there are no elements.
            (description.data, description.byte_offset) = (std::ptr::null_mut(), 0);
        }
        let packed = pack::pack(|| owner, &description);
        let owner = Owner::packed(packed);
        let padded = description.flags.contains(PADDED);
        // SAFETY: P1 for the header and its arrays, the caller's promise for the memory.
        let view = unsafe { View::read(&raw const (*packed.into_versioned()).dl_tensor, padded) };
        Ok(Self { view: view?, owner, exclusive: Flag::from(false) })
    }

    /// Gives the tensor up as a `DLManagedTensorVersioned`; the holder of the pointer must call its
    /// deleter. A legacy tensor is wrapped in a new one.
    #[must_use = "the tensor leaks unless its deleter is called"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        match self.owner.abi() {
            Abi::Versioned(tensor) => {
                self.owner.forget();
                tensor.as_ptr()
            }
            Abi::Packed(packed) | Abi::Fresh(packed) => {
                self.owner.forget();
                packed.into_versioned()
            }
            // SAFETY: it is owned, so that nobody in Rust has borrowed it.
            Abi::Legacy(_) => unsafe { Arc::new(self).share_writable() }.into_raw(),
        }
    }

    /// [`Self::into_raw`] for a consumer that supports versions up to `newest`. The header gets the smaller of
    /// that version and ours, but at least the one that introduced the dtype and the flags.
    pub(crate) fn into_raw_for(self, newest: DLPackVersion) -> *mut DLManagedTensorVersioned {
        // 1.1 brought the 8, 6 and 4-bit floats and the padding flag.
        let minor = u32::from(self.dtype().code.0 > 6 || self.flags().contains(PADDED));
        let least = DLPackVersion { major: DLPackVersion::CURRENT.major, minor };
        let raw = self.into_raw();
        // SAFETY: I1, until the pointer is handed out.
        unsafe { (*raw).version = newest.min(DLPackVersion::CURRENT).max(least) };
        raw
    }

    /// Gives the tensor up as a legacy `DLManagedTensor`, which cannot say that it is read-only. A foreign
    /// versioned tensor is wrapped in a new one, one that this crate made is rewritten in
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
        match self.owner.abi() {
            Abi::Legacy(tensor) => {
                self.owner.forget();
                Ok(tensor.as_ptr())
            }
            Abi::Packed(packed) | Abi::Fresh(packed) => {
                self.owner.forget();
                Ok(packed.into_legacy())
            }
            // SAFETY: as in `into_raw`.
            Abi::Versioned(_) => unsafe { Arc::new(self).share_writable() }.into_raw_legacy(),
        }
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
