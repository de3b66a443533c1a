//! Allocates a tensor for a `DLTensor` prototype.
#![expect(unsafe_code, reason = "reads a foreign descriptor")]

use std::ptr;

use super::{Fresh, ManagedTensor, view::View};
use crate::ffi::{DLDevice, DLDeviceType, DLPackFlags, DLTensor};
use crate::{Error, layout};

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
        // SAFETY: the caller's promise; `DLTensor` is plain data.
        let prototype = unsafe { prototype.read_unaligned() };
        let shell = DLTensor {
            data: ptr::null_mut(),
            device: NOWHERE,
            strides: ptr::null_mut(),
            byte_offset: 0,
            ..prototype
        };
        // SAFETY: the caller's promise for the shape; there are no strides and no memory.
        let view = unsafe { View::read(&raw const shell, false) }?;
        let memory = Fresh::write::<u8>(view.nbytes(), |_zeros| Ok(()))?;
        let strides = layout::row_major(view.shape());
        let flags = DLPackFlags::default();
        Self::from_fresh(memory, 0, view.dtype(), flags, view.shape(), &strides)
    }
}
