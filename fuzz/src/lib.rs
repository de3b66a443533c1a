//! What the fuzz targets do; `fuzz_targets/` only starts them. See README.md.
#![expect(unsafe_code, reason = "plays the other side of a C ABI")]

#[cfg(feature = "python")]
mod capsules;
mod cells;
mod descriptor;
mod draw;
mod gather;
mod ipc;
mod panics;
#[cfg(feature = "python")]
mod structures;
#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "../../tests/support/truth.rs"]
mod truth;

#[cfg(feature = "python")]
pub use capsules::capsules;
pub use descriptor::descriptor;
pub use gather::gather;
pub use ipc::ipc;

use arrow_dlpack::{Error, ManagedTensor};

/// Every tensor that was opened in this execution is closed.
fn nothing_open() {
    assert_eq!(arrow_dlpack::live(), arrow_dlpack::Live::default(), "open tensors");
}

fn through_c(tensor: ManagedTensor) -> Result<ManagedTensor, Error> {
    let raw = tensor.into_raw();
    // SAFETY: `into_raw` made it just now.
    unsafe { ManagedTensor::from_raw(raw) }
}

/// The outer error is that it cannot become a legacy tensor.
fn through_legacy_c(tensor: ManagedTensor) -> Result<Result<ManagedTensor, Error>, Error> {
    let raw = tensor.into_raw_legacy()?;
    // SAFETY: as above.
    Ok(unsafe { ManagedTensor::from_raw_legacy(raw) })
}

/// A failed allocation is an error to report, not the end of the process. And an interpreter leaves things behind,
/// among which a leak of ours would not be found: `capsules` counts what it exports.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const std::ffi::c_char {
    let options = if cfg!(feature = "python") {
        c"allocator_may_return_null=1:detect_leaks=0"
    } else {
        c"allocator_may_return_null=1"
    };
    options.as_ptr()
}
