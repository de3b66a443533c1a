//! `Batches`: a stream of Arrow data as tensors of so many rows.
//!
//! `iter_batches` of the Python package judges the arguments and opens one; what needs speed is here: `reader`
//! cuts what the source gives into blocks, `shuffle` draws rows from a pool of them, `convert` makes tensors,
//! `ahead` does so on a thread before they are asked for.

mod ahead;
mod convert;
mod reader;
mod shuffle;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
use std::{mem, process, slice, str};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, FieldRef, Schema};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use ahead::Queue;
use convert::{Batch, Form};
use reader::{Cut, Origin, Reader};
use shuffle::Pool;

use super::array::PyArray;
use super::names::{self, several};
use super::options::{self, ColumnsArg, DtypeArg, NullsArg, OrderArg, PhysicalArg, pointless};
use super::request::CopyArg;
use super::{source, table};
use crate::chunks::Coded;
use crate::fence::fenced;
use crate::memory::PendingException;
use crate::pandas;
use crate::python::imported::Imported;

/// An iterator over batches, from iter_batches. It is read once.
///
/// close(), or leaving a with block, stops the reader, and returns when the source has been released. Letting
/// go of the iterator waits a second at most.
#[pyclass(name = "Batches", module = "arrow_dlpack", frozen, generic)]
pub(super) struct PyBatches {
    state: Mutex<State>,
    /// Streams do not survive a fork, nor do threads.
    process: u32,
    progress: Option<Py<PyAny>>,
    /// The columns of codes.
    coded: Vec<Arc<Coded>>,
}

#[derive(Default)]
enum State {
    Here(Box<(Reader, Form)>),
    Ahead(Arc<Queue>),
    #[default]
    Over,
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
        let mut state = self.lock()?;
        let next = match &mut *state {
            State::Here(reading) => py.detach(|| {
                let mut last = Instant::now();
                next(reading, &mut || {
                    if last.elapsed() < Duration::from_millis(50) {
                        return Ok(());
                    }
                    last = Instant::now();
                    Python::attach(|py| py.check_signals())
                })
            }),
            // Nothing ends by that: they are somebody else's to read.
            State::Ahead(queue) if queue.is_own_thread() => {
                return Err(PyValueError::new_err("a source cannot wait for its own batches"));
            }
            State::Ahead(queue) => queue.next(py),
            State::Over => return Ok(None),
        };
        match next {
            Ok(Some(batch)) => {
                let rows = batch.rows;
                let batch = batch.into_python(py)?;
                if let Some(progress) = &self.progress {
                    progress.call_method1(py, intern!(py, "update"), (rows,))?;
                }
                Ok(Some(batch))
            }
            Ok(None) => self.end(py, state).map(|()| None),
            Err(error) => {
                // What was wrong first is what is told.
                let _ended = self.end(py, state);
                Err(error)
            }
        }
    }

    /// What the codes of each column that has codes stand for, by its name: all values that have been read by
    /// now, as an Array. Those that come later come behind them.
    #[getter]
    fn dictionaries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dictionaries = PyDict::new(py);
        for coded in &self.coded {
            let array = py.detach(|| coded.meaning()?.array())?;
            let field = Arc::new(Field::new("", array.data_type().clone(), true));
            dictionaries.set_item(coded.field.name(), PyArray::try_new(array, field)?)?;
        }
        Ok(dictionaries)
    }

    /// Stops the reader and releases the source; there are no more batches.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_foreign() {
            return Ok(());
        }
        self.end(py, self.lock()?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_type=None, _value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _type: Option<&Bound<'_, PyAny>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

impl PyBatches {
    /// Never waits for another thread, which may need the interpreter to go on.
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyValueError::new_err("these batches are being read already"))
            }
        }
    }

    fn is_foreign(&self) -> bool {
        self.process != process::id()
    }

    fn end(&self, py: Python<'_>, mut state: MutexGuard<'_, State>) -> PyResult<()> {
        let ended = mem::take(&mut *state);
        drop(state);
        let was_over = matches!(ended, State::Over);
        let released = match ended {
            State::Ahead(queue) => queue.stop(py),
            ended => {
                let_go(py, ended);
                Ok(())
            }
        };
        if let (Some(progress), false) = (&self.progress, was_over) {
            progress.call_method0(py, intern!(py, "close"))?;
        }
        released
    }
}

/// Outside of Python's lock: whoever is released may wait for others who need it.
fn let_go(py: Python<'_>, state: State) {
    match state {
        State::Here(reading) => py.detach(|| drop(reading)),
        State::Ahead(queue) => queue.let_go(py),
        State::Over => {}
    }
}

impl Drop for PyBatches {
    fn drop(&mut self) {
        let state = match self.state.get_mut() {
            Ok(state) => mem::take(state),
            Err(poisoned) => mem::take(poisoned.into_inner()),
        };
        if self.is_foreign() {
            // It is the other process's to release.
            return mem::forget(state);
        }
        Python::try_attach(|py| {
            let _pending = PendingException::set_aside();
            let_go(py, state);
        });
    }
}

/// What has panicked is at its end, like what has failed.
fn next(
    (reader, form): &mut (Reader, Form),
    pause: &mut dyn FnMut() -> PyResult<()>,
) -> PyResult<Option<Batch>> {
    let next = fenced(|| reader.next(pause)?.map(|pieces| form.batch(pieces)).transpose());
    next.unwrap_or_else(|panic| Err(PyRuntimeError::new_err(panic)))
}

/// Ends all threads, before the interpreter goes that their sources may need.
#[pyfunction]
pub(super) fn _stop_batches(py: Python<'_>) -> PyResult<()> {
    ahead::stop_all(py)
}

/// Which of these names of columns are those of an index, by what pandas says about them.
#[pyfunction]
#[pyo3(signature = (names, metadata, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _index_columns(names: Vec<String>, metadata: Vec<u8>) -> Vec<String> {
    let among: Vec<&str> = names.iter().map(String::as_str).collect();
    let metadata = str::from_utf8(&metadata).unwrap_or_default();
    pandas::positions(&among, metadata).into_iter().map(|at| names[at].clone()).collect()
}

/// An error that has all names that are not among those of the columns.
#[pyfunction]
#[pyo3(signature = (names, wanted, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _check_names(names: Vec<String>, wanted: ColumnsArg) -> PyResult<()> {
    let among: Vec<&str> = names.iter().map(String::as_str).collect();
    names::positions(&among, &wanted.0).map(drop)
}

/// Opens what iter_batches has judged.
#[pyfunction]
#[pyo3(signature = (source, /, *, columns, label, as_matrix, dtype, nulls, copy, physical, batch_size, drop_last, shuffle, shard, prefetch, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn _open_batches(
    source: &Bound<'_, PyAny>,
    columns: Option<ColumnsArg>,
    label: Option<String>,
    as_matrix: bool,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    copy: Option<CopyArg>,
    physical: PhysicalArg,
    batch_size: Option<usize>,
    drop_last: bool,
    shuffle: Option<(usize, u64)>,
    shard: (usize, usize),
    prefetch: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyBatches> {
    let columns = columns.map(|columns| columns.0);
    let wanted = columns.as_ref().map(|columns| with_label(columns, label.as_deref()));
    let (origin, field) = match source::open(source, wanted.as_deref())? {
        Some(stream) => {
            let field = Arc::clone(&stream.field);
            (Origin::Stream(stream), field)
        }
        None => {
            let Imported { chunks, field, moved, .. } =
                source::import_columns(source, wanted.as_deref())?;
            (Origin::Array(chunks.into_iter().next(), moved), field)
        }
    };
    let schema = table::table_schema(&field);
    let (positions, read) = match &schema {
        Some(schema) => {
            if let (Some(wanted), false) = (&wanted, as_matrix) {
                names::refuse_twice(wanted)?;
            }
            let mut positions = features(schema, wanted.as_deref(), label.as_deref(), as_matrix)?;
            if let (true, true, Some(label)) = (as_matrix, positions.is_empty(), &label) {
                // A name that there is not is told first.
                table::positions(schema, slice::from_ref(label))?;
                return Err(PyBufferError::new_err("no features are left beside the label"));
            }
            if let Some(label) = &label {
                positions.extend(table::positions(schema, slice::from_ref(label))?);
            }
            let read: Vec<_> =
                positions.iter().map(|&at| Arc::clone(&schema.fields()[at])).collect();
            (positions, Schema::new(read))
        }
        None if columns.is_some() || label.is_some() => {
            return Err(pointless("columns and label", "are for tables, and this is one column"));
        }
        None if !as_matrix => {
            return Err(pointless("format=\"dict\"", "is for tables, and this is one column"));
        }
        None => (Vec::new(), Schema::new(vec![field])),
    };
    // Codes are of one dictionary, that of the stream, and of one type.
    let of = |field: &FieldRef| match physical.0 {
        true => Ok(Coded::new(field)?.map(Arc::new)),
        false => Ok(None),
    };
    let coded = read.fields().iter().map(of).collect::<PyResult<Vec<_>>>()?;
    let as_read = |(field, coded): (&FieldRef, &Option<Arc<Coded>>)| match coded {
        None => Arc::clone(field),
        Some(coded) => Arc::clone(&coded.codes),
    };
    let read: Vec<_> = read.fields().iter().zip(&coded).map(as_read).collect();
    let copy = copy.map(|copy| copy.0);
    let export = |nulls, dtype| {
        options::export(copy.map(CopyArg), nulls, dtype, OrderArg::default(), physical)
    };
    let label_nulls = NullsArg(nulls.0);
    let form = Form {
        schema: Arc::new(Schema::new(read)),
        coded: coded.clone(),
        is_table: schema.is_some(),
        has_label: label.is_some(),
        as_matrix,
        features: export(nulls, dtype),
        label: export(label_nulls, None),
    };
    // What cannot be of any rows need not be waited for.
    drop(form.batch(vec![RecordBatch::new_empty(Arc::clone(&form.schema))])?);

    let pool = shuffle.map(|(rows, seed)| Pool::new(rows.max(batch_size.unwrap_or(1)), seed));
    let cut = Cut { size: batch_size, drop_last, copy: form.features.copy, shard };
    let with_codes = coded.iter().flatten().cloned().collect();
    let mut reading = (Reader::new(origin, schema, positions, coded, cut, pool), form);
    let state = match prefetch {
        0 => State::Here(Box::new(reading)),
        most => {
            let queue = Queue::start(most, move |pause| next(&mut reading, pause));
            State::Ahead(queue?)
        }
    };
    Ok(PyBatches { state: Mutex::new(state), process: process::id(), progress, coded: with_codes })
}

/// The names of features, and behind them that of the label, which is none of them.
fn with_label(columns: &[String], label: Option<&str>) -> Vec<String> {
    let columns = columns.iter().map(String::as_str).filter(|&column| Some(column) != label);
    columns.chain(label).map(str::to_owned).collect()
}

/// Where the features are: all columns but the label and an index of pandas's, or those that were asked for.
fn features(
    schema: &Schema,
    wanted: Option<&[String]>,
    label: Option<&str>,
    as_matrix: bool,
) -> PyResult<Vec<usize>> {
    let positions: Vec<usize> = match wanted {
        // Whatever name there is not is told at once, the label's too.
        Some(wanted) => {
            let mut positions = table::positions(schema, wanted)?;
            positions.truncate(wanted.len() - usize::from(label.is_some()));
            positions
        }
        None => {
            let mut features = table::features(schema);
            features.retain(|&at| Some(schema.field(at).name().as_str()) != label);
            features
        }
    };
    let name = |at: usize| schema.field(at).name();
    let mut names = HashSet::new();
    match positions.iter().find(|&&at| !names.insert(name(at))) {
        Some(&at) if !as_matrix => Err(several(name(at), 2)),
        _ => Ok(positions),
    }
}
