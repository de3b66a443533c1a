//! Runs conversions, without the GIL if they take long enough to delay other threads. Ctrl-C ends long ones.

use std::num::NonZero;

use pyo3::{intern, prelude::*, types::PyDict};

use super::interrupt::Interrupt;
use crate::export::{self, Exported, Source};
use crate::{Error, ExportOptions, ReaderError, task::Task};

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
    const LONG: usize = 4 << 20;
    match nbytes {
        ..NOTICEABLE => work(),
        NOTICEABLE..LONG => py.detach(work),
        LONG.. => long(py, work),
    }
}

/// Runs `work`, which can be interrupted and use more than one thread, without the GIL.
#[inline(never)]
fn long<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    // Without an answer, for instance because a module is half imported, the process is no worker.
    let threads = if is_worker(py).unwrap_or(false) { NonZero::new(1) } else { None };
    py.detach(|| {
        // Threads other than the main one have no signals.
        let mut interrupt = Interrupt::new();
        let signal = |error| Error::Reader(ReaderError::new(error));
        let check = Box::new(move || interrupt.step().map_err(signal));
        Task { check, threads }.run(work)
    })
}

/// Whether `multiprocessing` started this process, as `DataLoader` starts its workers: then there are others.
///
/// It runs no Python code, at whose end a signal's handler could raise.
fn is_worker(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let name = intern!(py, "multiprocessing.process");
    let Some(process) = modules.cast_into::<PyDict>()?.get_item(name)? else { return Ok(false) };
    Ok(!process.getattr(intern!(py, "_parent_process"))?.is_none())
}
