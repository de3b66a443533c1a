//! The DLPack C exchange API: tensors are exchanged by C functions of a type, instead of by a Python method
//! that wraps each tensor in a capsule.
//!
//! Source: `DLPackExchangeAPI` of `dlpack.h` 1.3. A type's attribute `__dlpack_c_exchange_api__` is a
//! capsule, its pointer a table of functions that lives as long as the process. `ours` is the table of
//! `Array` and `Tensor`, `theirs` calls those of other types, and `known` caches which type has one, in an
//! append-only `table`.
//!
//! None of these functions synchronises, takes options or says who may write to a borrowed `DLTensor`:
//! a consumer that needs this calls `__dlpack__`.

mod borrowed;
mod known;
mod ours;
mod table;
mod theirs;

use std::ffi::CStr;

pub(super) use borrowed::BorrowedTensor;
pub(super) use known::{is_builtin, unless_it_raises};
pub(super) use ours::capsule;
pub(super) use theirs::take;

/// The capsule's name, which says that its pointer is a table.
const NAME: &CStr = c"dlpack_exchange_api";
