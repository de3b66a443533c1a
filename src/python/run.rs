//! Runs conversions, without the GIL if they take long enough to delay other threads.

use pyo3::prelude::*;

use crate::error::Error;
use crate::export::{self, ExportOptions, Exported, Source};

/// Prepares a conversion and runs it, without the GIL if that takes long.
pub(super) fn exported(
    py: Python<'_>,
    source: Source<'_>,
    options: &ExportOptions,
) -> Result<Exported, Error> {
    // Sharing reads no data, so the GIL is kept.
    if let Some(shared) = export::share(source, options) {
        return Ok(Exported { values: shared?, mask: None, dictionary: None });
    }
    let prepared = unlocked(py, source.nbytes(), || export::prepare(source, options))?;
    unlocked(py, prepared.bytes_copied(), || prepared.run())
}

/// Runs `work` on so many bytes, without the GIL if they are enough to delay other threads.
pub(super) fn unlocked<T: Send>(
    py: Python<'_>,
    nbytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    const NOTICEABLE: usize = 1 << 18;
    if nbytes < NOTICEABLE { work() } else { py.detach(work) }
}
