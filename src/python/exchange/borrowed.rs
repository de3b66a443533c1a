//! The tensor behind a borrowed `DLTensor` of the exchange API.

use pyo3::prelude::*;

use crate::memory::ManagedTensor;
use crate::sync::OnceLock;

/// A tensor that an object keeps for as long as it lives, once a caller has asked for a borrowed one, which
/// points to it. It counts as exported ([`crate::live`]) until the object is dropped.
#[derive(Debug, Default)]
pub(in crate::python) struct BorrowedTensor(OnceLock<Box<ManagedTensor>>);

impl BorrowedTensor {
    pub(super) fn get_or_make(
        &self,
        make: impl FnOnce() -> PyResult<ManagedTensor>,
    ) -> PyResult<&ManagedTensor> {
        if let Some(tensor) = self.0.get() {
            return Ok(tensor);
        }
        let tensor = Box::new(make()?);
        // If another thread was faster, this thread's tensor is dropped unused.
        Ok(self.0.get_or_init(|| tensor))
    }
}
