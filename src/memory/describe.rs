//! The metadata of a tensor.

use std::{borrow::Cow, fmt};

use super::ManagedTensor;
use crate::ffi::{DLDataType, DLDevice, DLPackFlags, DLTensor};
use crate::{CopyReason, Error};

impl ManagedTensor {
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

    /// Number of elements, as NumPy's `size`; [`Self::nbytes`] is their size in bytes.
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

    /// The producer's flags. The legacy ABI has none, and counts as `READ_ONLY`, as in NumPy, because
    /// producers of immutable memory cannot flag it.
    #[must_use]
    pub fn flags(&self) -> DLPackFlags {
        self.owner.flags()
    }

    /// Whether the producer said that the memory must not be written to.
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
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.view.is_contiguous()
    }

    /// The address of the first element where the CPU can read the device, and the producer's `data`
    /// (to which [`Self::byte_offset`] must be added) elsewhere. NULL if there are no elements. It is `*mut` as in the
    /// header, also if the tensor is read-only: [`Self::as_slice_mut`] checks whether the memory may be written to.
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        self.view.address()
    }

    /// Distance in bytes from [`Self::data`] to the first element: 0 where the CPU can read.
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

    /// Whether there are elements outside of `len` bytes, in which the first one is at `origin`.
    pub(crate) fn extends_beyond(&self, origin: usize, len: usize) -> bool {
        self.view.extends_beyond(origin, len)
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
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("device", &self.device())
            .field("flags", &self.flags())
            .finish_non_exhaustive()
    }
}
