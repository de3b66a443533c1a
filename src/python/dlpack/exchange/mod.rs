//! The DLPack C exchange API: tensors are exchanged by C functions of a type, instead of by a Python method
//! that wraps each tensor in a capsule.
//!
//! Source: `DLPackExchangeAPI` of `dlpack.h` 1.3. A type's attribute `__dlpack_c_exchange_api__` is a
//! capsule, its pointer a table of functions that lives as long as the process. `own_table` is the table of
//! `Array` and `Tensor`; `client` calls those of other types, which it caches in an `append_only` table.
//!
//! None of these functions synchronises, takes options or says who may write to a borrowed `DLTensor`:
//! a consumer that needs this calls `__dlpack__`.

mod append_only;
mod client;
mod own_table;

use std::ffi::CStr;

use pyo3::PyResult;

use crate::{ManagedTensor, ffi::DLTensor, sync::OnceLock};

pub(in crate::python) use client::{is_builtin, take, unless_it_raises};
pub(in crate::python) use own_table::capsule;

/// The capsule's name, which says that its pointer is a table.
const NAME: &CStr = c"dlpack_exchange_api";

/// A tensor that an object keeps for as long as it lives, once a caller has asked for a borrowed one, which
/// points to it. It counts as exported ([`crate::live`]) until the object is dropped.
#[derive(Debug, Default)]
pub(in crate::python) struct BorrowedTensor(OnceLock<Box<ManagedTensor>>);

impl BorrowedTensor {
    /// The descriptor of the tensor, which `make` makes at the first call; `None` if it has no strides.
    fn descriptor(
        &self,
        make: impl FnOnce() -> PyResult<ManagedTensor>,
    ) -> PyResult<Option<DLTensor>> {
        if let Some(tensor) = self.0.get() {
            return Ok(tensor.dl_tensor());
        }
        let tensor = Box::new(make()?);
        // If another thread was faster, this thread's tensor is dropped unused.
        Ok(self.0.get_or_init(|| tensor).dl_tensor())
    }
}
