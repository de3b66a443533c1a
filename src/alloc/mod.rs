//! Memory for results: `buffer` is new memory, which `writer` writes; `huge_pages` asks for huge pages, and `retaining`
//! keeps a few large blocks for later results.

mod buffer;
mod huge_pages;
#[cfg(target_os = "linux")]
mod retaining;
mod writer;

pub(crate) use buffer::{Fresh, collect, probe_alloc, reserve, reserved, try_collect, zeros};
#[cfg(target_os = "linux")]
pub use retaining::RetainingAllocator;
pub(crate) use writer::{Grid, Place, Unwritten};
