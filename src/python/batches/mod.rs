//! What `Batches` of the Python package reads: a stream of Arrow data as tensors of `batch_size` rows.
//!
//! `Loader` checks the arguments and opens one; `crate::batches` cuts, shuffles and reads ahead. This module adds what
//! Python needs: signals, forks and progress.

pub(in crate::python) mod categories;
pub(in crate::python) mod epoch;
pub(in crate::python) mod forms;
pub(in crate::python) mod prefetch;
pub(in crate::python) mod source;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::{mem, num::NonZero, process};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::{PyTraverseError, PyVisit, create_exception, intern, prelude::*, types::PyDict};

use self::forms::{BatchOptionsArg, into_python, not_opened};
use self::source::{PythonSource, chunks_of};
use super::args::{pointless, refuse_twice};
use super::array::PyArray;
use super::errors::{Asked, Wishes};
use super::runtime::Interrupt;
use super::runtime::unlocked;
use super::tensor::PyTensor;
use crate::batches::{Batches, Resume, Shard, Shuffle, State, resume};
use crate::chunks::{Coded, batch, checked};
use crate::{Error, ManagedTensor, ReaderError, pending::without_exception, task::Task};

create_exception!(
    arrow_dlpack._core,
    BusyError,
    PyValueError,
    "Another thread reads these batches, or waits for the one that asks: they continue for it."
);

/// A [`Resume`].
type ResumeArg = (usize, usize, u64);

/// The engine's batches. They are read once.
///
/// close() stops the reader, and returns when the source has been released. Dropping them waits at most a second.
#[pyclass(name = "_Batches", module = "arrow_dlpack._core", frozen)]
pub(super) struct PyBatches {
    open: Mutex<Batches>,
    /// Streams do not survive a fork, nor do threads.
    process: u32,
    /// Whether a thread that reads them should stop.
    is_stopped: Arc<AtomicBool>,
    progress: Option<Py<PyAny>>,
    source: Arc<PythonSource>,
    /// The dictionary columns.
    coded: Vec<Arc<Coded>>,
    whole: Arc<OnceLock<usize>>,
    /// What messages ask of the options.
    wishes: Wishes,
}

#[pymethods]
impl PyBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_foreign() {
            return Err(PyRuntimeError::new_err(
                "these batches were opened before the fork: open them in the process that reads them",
            ));
        }
        let mut open = self.lock()?;
        let next = match &mut open.state {
            State::Reading(pipeline) => py.detach(|| {
                let (mut interrupt, is_stopped) = (Interrupt::new(), Arc::clone(&self.is_stopped));
                let mut asked = move || match is_stopped.load(Ordering::Relaxed) {
                    true => Err(prefetch::ending()),
                    false => interrupt.step(),
                };
                let stopped = |error| Error::Reader(ReaderError::urgent(error));
                let check = Box::new(move || asked().map_err(stopped));
                let next = Task { check, threads: NonZero::new(1) }.run(|| pipeline.next());
                next.map_err(|error| Asked::Batches(&self.wishes).refusal(error))
            }),
            // The batches continue: another thread reads them.
            State::Prefetch(made) if made.0.is_own_thread() => {
                return Err(BusyError::new_err("a source cannot wait for its own batches"));
            }
            State::Prefetch(made) => match prefetch::next(py, &made.0, &self.wishes) {
                Ok(next) => next,
                // Neither a signal nor the end of the interpreter waits for a source that may hang.
                Err(stopped) => {
                    let _ended = self.end(py, open, false);
                    return Err(stopped);
                }
            },
            State::Over => return Ok(None),
        };
        match next {
            Ok(Some(batch)) => {
                let rows = batch.rows;
                let batch = into_python(py, batch)?;
                if let Some(progress) = &self.progress {
                    progress.call_method1(py, intern!(py, "update"), (rows,))?;
                }
                Ok(Some(batch))
            }
            Ok(None) => self.end(py, open, true).map(|()| None),
            Err(error) => {
                // The first error is the one to raise.
                let _ended = self.end(py, open, true);
                Err(error)
            }
        }
    }

    /// The dictionary of each dictionary column, by the column's name: an Array of all values read so far. Later
    /// values are appended.
    #[getter]
    fn dictionaries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dictionaries = PyDict::new(py);
        for coded in &self.coded {
            let array = py.detach(|| coded.meaning()?.array())?;
            dictionaries.set_item(coded.field.name(), PyArray::of_dictionary(array))?;
        }
        Ok(dictionaries)
    }

    /// How many of these batches a source that does not fail has too, once one was made that an error cut.
    #[getter]
    fn _whole(&self) -> Option<usize> {
        self.whole.get().copied()
    }

    /// Stops the reader and releases the source; there are no more batches.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_foreign() {
            return Ok(());
        }
        self.end(py, self.lock()?, true)
    }

    /// Lets a thread that reads them stop after the source's current batch, without waiting for it.
    fn _stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.progress)?;
        // What a thread reads is no garbage, though nothing else may hold it: once a finalizer lets the thread go on, it
        // would read what is collected. A forked process has neither the thread nor its locks.
        let is_idle = !self.is_foreign()
            && self.open.try_lock().is_ok_and(|open| match &open.state {
                State::Prefetch(made) => made.0.is_idle(),
                State::Reading(_) | State::Over => true,
            });
        if is_idle { self.source.traverse(&visit) } else { Ok(()) }
    }

    fn __clear__(&self) {
        self.source.clear();
    }
}

impl PyBatches {
    /// Never waits for another thread, which may need the interpreter to continue.
    fn lock(&self) -> PyResult<MutexGuard<'_, Batches>> {
        match self.open.try_lock() {
            Ok(open) => Ok(open),
            Err(TryLockError::Poisoned(open)) => Ok(open.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(BusyError::new_err("these batches are being read already"))
            }
        }
    }

    fn is_foreign(&self) -> bool {
        self.process != process::id()
    }

    /// is_awaited: until the source has been released; otherwise a second at most.
    fn end(
        &self,
        py: Python<'_>,
        mut open: MutexGuard<'_, Batches>,
        is_awaited: bool,
    ) -> PyResult<()> {
        let ended = mem::take(&mut open.state);
        drop(open);
        let was_over = matches!(ended, State::Over);
        let released = match &ended {
            State::Prefetch(made) if is_awaited => prefetch::stop(py, &made.0, None),
            _ => Ok(()),
        };
        // The source may wait for threads that need the interpreter.
        py.detach(|| drop(ended));
        if let (Some(progress), false) = (&self.progress, was_over) {
            progress.call_method0(py, intern!(py, "close"))?;
        }
        released
    }
}

impl Drop for PyBatches {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        let state = mem::take(&mut open.state);
        if self.is_foreign() {
            // The parent process releases it.
            return mem::forget(state);
        }
        Python::try_attach(|py| {
            without_exception(|| py.detach(|| drop(state)));
        });
    }
}

/// Opens batches with arguments that Loader has checked. options: what columns become.
#[pyfunction]
#[pyo3(signature = (source, options, /, *, batch_size, drop_last, shuffle, shard, prefetch, progress, skip=0, resume=None))]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn _open_batches(
    source: &Bound<'_, PyAny>,
    options: BatchOptionsArg,
    batch_size: Option<usize>,
    drop_last: bool,
    shuffle: Option<(usize, u64)>,
    shard: (usize, usize),
    prefetch: usize,
    progress: Option<Py<PyAny>>,
    skip: usize,
    resume: Option<ResumeArg>,
) -> PyResult<PyBatches> {
    let mut options = options
        .0
        .with_batch_size(batch_size)
        .with_drop_last(drop_last)
        .with_shuffle(shuffle.map(|(rows, seed)| Shuffle { rows, seed }))
        .with_skip(skip)
        .with_shard(Shard { index: shard.0, count: shard.1 });
    options.resume = resume.map(|(rows, left, random)| Resume { rows, left, random });
    let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let wanted = options.names().map(names);
    let (chunks, field, source) = chunks_of(source, wanted.as_deref())?;
    let schema = crate::export::table_schema(&field);
    match (&schema, &wanted) {
        (Some(_), Some(wanted)) if !options.matrix => refuse_twice(wanted)?,
        (Some(_), _) => {}
        (None, _) if options.columns.is_some() || !options.labels.is_empty() => {
            return Err(pointless("columns and label", "are for tables, and this is one column"));
        }
        (None, _) if !options.matrix => {
            let why = "is for tables, and this is one column: pass pyarrow.table({\"x\": x}), or \
                       format=\"matrix\"";
            return Err(pointless("format=\"dict\"", why));
        }
        (None, _) => {}
    }
    let table = schema.clone();
    let chunks = chunks.map(move |chunk| {
        let (chunk, moved) = chunk?;
        let batch = match &table {
            Some(schema) => batch(&chunk, schema),
            None => checked(|| RecordBatch::try_from_iter_with_nullable([("", chunk, true)])),
        };
        Ok((batch?, moved))
    });
    let read = schema.as_ref().map_or_else(|| Schema::new(vec![field]), Schema::clone);
    let opened = Batches::open(Box::new(chunks), &read, schema.is_some(), &options);
    let mut batches = opened.map_err(|error| not_opened(error, &options))?;
    if prefetch > 0 {
        prefetch::start(&mut batches, prefetch)?;
    }
    let (coded, whole) = (batches.coded.clone(), Arc::clone(&batches.whole));
    Ok(PyBatches {
        open: Mutex::new(batches),
        process: process::id(),
        is_stopped: Arc::default(),
        progress,
        source,
        coded,
        whole,
        wishes: Wishes::of(&options),
    })
}

/// The state of a shuffle after some batches: the positions of its pool's rows in the source, how many rows were read,
/// and the arguments with which _open_batches goes on, if it is given these rows and then all behind those read. None if
/// there are no more batches.
#[pyfunction]
pub(super) fn _resume_shuffle(
    py: Python<'_>,
    rows: usize,
    batch_size: usize,
    shuffle: (usize, u64),
    batches: usize,
) -> PyResult<Option<(PyTensor, usize, ResumeArg)>> {
    let nbytes = rows.saturating_mul(size_of::<u64>());
    let found = unlocked(py, nbytes, || resume(rows, batch_size.max(1), shuffle, batches))?;
    let Some((positions, read, Resume { rows, left, random })) = found else { return Ok(None) };
    let count = positions.len();
    let positions = PyTensor::from(ManagedTensor::from_vec(positions, &[count])?);
    Ok(Some((positions, read, (rows, left, random))))
}
