//! Whether a conversion may copy, and the copy of a whole tensor.

use crate::error::Error;
use crate::ffi::DLPackFlags;
use crate::kernels;
use crate::layout;
use crate::memory::ManagedTensor;

/// `copy` of the [array API standard](https://data-apis.org/array-api/latest/API_specification/generated/array_api.from_dlpack.html):
/// `None`, `False` and `True`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPolicy {
    /// Share the memory; copy only if that is impossible.
    #[default]
    IfNeeded,
    /// Share the memory or fail.
    Never,
    /// Always copy, so that the result has memory of its own.
    Always,
}

impl From<Option<bool>> for CopyPolicy {
    fn from(copy: Option<bool>) -> Self {
        match copy {
            None => Self::IfNeeded,
            Some(false) => Self::Never,
            Some(true) => Self::Always,
        }
    }
}

impl ManagedTensor {
    /// The same elements in fresh CPU memory: row-major, aligned to 64 bytes, writable, flagged
    /// `IS_COPIED`. Any rank, strides and dtype; any memory that the CPU can read.
    ///
    /// # Errors
    ///
    /// `UnreadableDevice`; `OutOfMemory`, which a broadcast axis can reach with a few bytes of input;
    /// `PackedStrides` for strided elements of under 8 bits.
    pub fn copied(&self) -> Result<Self, Error> {
        let memory = kernels::gather(self)?;
        let padding = self.flags().intersection(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
        let flags = DLPackFlags::IS_COPIED.union(padding);
        Self::over_fresh(
            memory,
            0,
            self.dtype(),
            flags,
            self.shape(),
            &layout::row_major(self.shape()),
        )
    }
}
