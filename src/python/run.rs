//! Runs conversions, without the GIL where they take long enough for other threads to notice.

use pyo3::prelude::*;

use crate::error::Error;
use crate::export::{self, ExportOptions, Exported, Source};

/// What is prepared and then run, without the GIL where that takes long.
pub(super) fn exported(
    py: Python<'_>,
    source: Source<'_>,
    options: &ExportOptions,
) -> Result<Exported, Error> {
    // Nothing is looked at for these, so that others need not be let in.
    if let Some(shared) = export::share(source, options) {
        return Ok(Exported { values: shared?, mask: None, dictionary: None });
    }
    let prepared = unlocked(py, source.nbytes(), || export::prepare(source, options))?;
    unlocked(py, prepared.bytes_copied(), || prepared.run())
}

/// Runs `work` on so many bytes without the GIL if that is long enough for others to notice.
pub(super) fn unlocked<T: Send>(
    py: Python<'_>,
    nbytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    const NOTICEABLE: usize = 1 << 18;
    if nbytes < NOTICEABLE { work() } else { py.detach(work) }
}
