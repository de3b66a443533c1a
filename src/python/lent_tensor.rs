//! A tensor whose memory Python may be writing to.
#![expect(unsafe_code, reason = "hands out memory that other code may write to")]

use std::borrow::Cow;
use std::sync::Arc;

use crate::ffi::{DLDataType, DLDevice, DLPackFlags, DLTensor};
use crate::tensor::Index;
use crate::{Element, Error, ManagedTensor};

/// A tensor whose memory Python may be writing to, unless it is read-only.
///
/// **N1** If it is not read-only, no code in Rust borrows its memory, but for a copy ([`Self::read`]), as cells, or as the
/// caller of [`Self::get`] promises.
#[derive(Clone, Debug)]
pub(super) struct LentTensor(Arc<ManagedTensor>);

/// What does not read the memory.
macro_rules! metadata {
    ($($name:ident: $of:ty),*) => {
        impl LentTensor {
            $(pub(super) fn $name(&self) -> $of {
                self.0.$name()
            })*
        }
    };
}
metadata! {
    shape: &[i64], strides: Cow<'_, [i64]>, ndim: usize, size: usize, nbytes: usize, itemsize: Option<usize>,
    dtype: DLDataType, device: DLDevice, flags: DLPackFlags, is_read_only: bool, is_contiguous: bool, data: *mut u8,
    dl_tensor: Option<DLTensor>
}

impl LentTensor {
    /// # Safety
    ///
    /// N1.
    pub(super) unsafe fn new(tensor: Arc<ManagedTensor>) -> Self {
        Self(tensor)
    }

    /// Another tensor over the memory, for a consumer in another language: writable if this one is.
    pub(super) fn shared(&self) -> ManagedTensor {
        // SAFETY: N1.
        unsafe { self.0.share_writable() }
    }

    /// What a function makes of the elements, which calls no Python code: a copy. What other threads write meanwhile may be
    /// in it in part.
    pub(super) fn read<T>(&self, read: fn(&ManagedTensor) -> T) -> T {
        read(&self.0)
    }

    /// The elements as cells, and their number. Others may write to them.
    pub(super) fn run_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        self.0.run_of()
    }

    /// The tensor, if it is the only way to its memory.
    pub(super) fn into_exclusive(self) -> Result<ManagedTensor, Self> {
        match self.0.may_change() {
            true => Err(self),
            false => Arc::try_unwrap(self.0).map_err(Self),
        }
    }

    /// # Safety
    ///
    /// That of [`PyTensor::tensor`].
    pub(super) unsafe fn get(&self) -> &Arc<ManagedTensor> {
        &self.0
    }

    /// A view of some of the elements.
    pub(super) fn part(&self, picks: &[Index]) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.part(picks)?))) }
    }

    /// The bytes of elements in row-major order, as one axis.
    pub(super) fn as_bytes(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.as_bytes()?))) }
    }

    /// The same bytes as unsigned integers of the elements' size.
    pub(super) fn as_integers(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.as_integers()?))) }
    }
}
