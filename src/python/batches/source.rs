//! Sources of batches: streams and arrays of Arrow, and iterators of Python.

use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, ArrayRef, cast::AsArray, make_array, types::UInt64Type};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::types::{PyIterator, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern, prelude::*};

use crate::arrow_types::{child_types, is_renamed};
use crate::chunks::checked;
use crate::python::array::PyArray;
use crate::python::arrow::imported::Imported;
use crate::python::protocols::{class_has, methods};
use crate::python::runtime::unlocked;
use crate::python::source;
use crate::{Error, ReaderError, batches::rows_at, pending::without_exception};

/// Chunks in order, each with the number of bytes that were moved to align it.
type ArrayChunks = Box<dyn Iterator<Item = Result<(ArrayRef, usize), Error>> + Send>;

/// The iterator of a source that Python code makes, until it is dropped. The reader and the batches share it, so that the
/// garbage collector sees the one reference that there is: a generator may hold the batches that it makes.
#[derive(Default)]
pub(in crate::python) struct PythonSource(Mutex<Option<Py<PyIterator>>>);

impl PythonSource {
    fn lock(&self) -> MutexGuard<'_, Option<Py<PyIterator>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyIterator>> {
        self.lock().as_ref().map(|iterator| iterator.bind(py).clone())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Another thread has the lock for as long as it takes the reference.
        self.0.try_lock().map_or(Ok(()), |iterator| visit.call(&*iterator))
    }

    pub(super) fn clear(&self) {
        // Outside the lock: it may run any code.
        let iterator = self.lock().take();
        drop(iterator);
    }
}

/// The data of a source, as a stream, as arrays, or as a pair of a schema and an iterator of batches; its type; and the
/// iterator, if it is one of Python's.
pub(in crate::python) fn chunks_of(
    source: &Bound<'_, PyAny>,
    wanted: Option<&[String]>,
) -> PyResult<(ArrayChunks, FieldRef, Arc<PythonSource>)> {
    let failed = |error: PyErr| {
        let is_interrupt = |py: Python<'_>| error.is_instance_of::<PyKeyboardInterrupt>(py);
        let is_urgent = Python::try_attach(is_interrupt).unwrap_or(false);
        let error = if is_urgent { ReaderError::urgent(error) } else { ReaderError::new(error) };
        Error::Reader(error)
    };
    if let Some((schema, batches)) = described(source)? {
        let field = source::field(&schema, wanted)?;
        let (wanted, of) = (wanted.map(<[String]>::to_vec), field.data_type().clone());
        let source = PythonSource(Mutex::new(Some(batches.try_iter()?.unbind())));
        let batches = Arc::new(source);
        let mut made = PythonBatches { batches: Arc::clone(&batches), wanted, of };
        let chunks = iter::from_fn(move || made.next().map_err(failed).transpose());
        return Ok((Box::new(chunks), field, batches));
    }
    let [array, _stream] = methods(source.py());
    let is_array = class_has(source, array) == Some(true);
    let stream = if is_array { None } else { source::open(source, wanted)? };
    if let Some(mut stream) = stream {
        let field = Arc::clone(stream.field());
        let chunks = iter::from_fn(move || match stream.next().map_err(failed) {
            Ok(None) => stream.reading.end().err().map(|error| Err(failed(error))),
            next => next.transpose(),
        });
        return Ok((Box::new(chunks), field, Arc::default()));
    }
    let Imported { chunks, field, moved, .. } = source::import(source, wanted)?;
    let chunks = chunks.into_iter().map(move |chunk| Ok((chunk, moved)));
    Ok((Box::new(chunks), field, Arc::default()))
}

/// A pair of a schema and an iterator; `None` for another object.
fn described<'py>(
    source: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let pair = source.cast_exact::<PyTuple>().ok().and_then(|pair| pair.extract().ok());
    let Some((schema, batches)) = pair else { return Ok(None) };
    let schema: Bound<'_, PyAny> = schema;
    let is_schema = schema.hasattr(intern!(source.py(), "__arrow_c_schema__"))?;
    Ok(is_schema.then_some((schema, batches)))
}

/// Record batches that Python code makes. Its exceptions stay what they are, where a stream of Arrow's C interface
/// hands on their words.
struct PythonBatches {
    batches: Arc<PythonSource>,
    wanted: Option<Vec<String>>,
    /// The type of all of them, but for the names of lists' items, "item" for most libraries and "element" in Parquet, and
    /// of maps' entries.
    of: DataType,
}

impl PythonBatches {
    fn next(&mut self) -> PyResult<Option<(ArrayRef, usize)>> {
        let next = |py: Python<'_>| {
            let Some(batch) = self.batches.get(py).and_then(|mut batches| batches.next()) else {
                return Ok(None);
            };
            let batch = batch.inspect_err(|error| {
                // Batches that another thread made before this one would come first: the main thread raises it at once.
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    let _asked = interrupt_main(py);
                }
            })?;
            let imported = source::import(&batch, self.wanted.as_deref())?;
            let moved = imported.moved;
            let (array, _) = imported.into_array(py)?;
            let as_nullable = |one: &Field, other: &Field| one.is_nullable() == other.is_nullable();
            match array.data_type() {
                found if *found != self.of && is_renamed(found, &self.of, as_nullable) => {
                    let renamed = checked(|| Ok(make_array(renamed(&array.to_data(), &self.of)?)))?;
                    Ok(Some((renamed, moved)))
                }
                DataType::Struct(_) => Ok(Some((array, moved))),
                other => Err(PyValueError::new_err(format!("a batch is no table, but {other}"))),
            }
        };
        let over = || PyRuntimeError::new_err("the interpreter is ending");
        Python::try_attach(next).unwrap_or_else(|| Err(over()))
    }
}

/// The same values as a type that [`is_renamed`].
fn renamed(data: &ArrayData, wanted: &DataType) -> Result<ArrayData, ArrowError> {
    if data.data_type() == wanted {
        return Ok(data.clone());
    }
    let types = child_types(wanted).into_iter();
    let children = data.child_data().iter().zip(types).map(|(child, (of, _))| renamed(child, of));
    let children = children.collect::<Result<_, _>>()?;
    data.clone().into_builder().data_type(wanted.clone()).child_data(children).build()
}

/// Interrupts the main thread, if this is another one.
fn interrupt_main(py: Python<'_>) -> PyResult<()> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    if !threading.call_method0("get_ident")?.eq(main)? {
        py.import("_thread")?.call_method0("interrupt_main")?;
    }
    Ok(())
}

/// Releases what the iterator holds at once.
impl Drop for PythonBatches {
    fn drop(&mut self) {
        Python::try_attach(|_| without_exception(|| self.batches.clear()));
    }
}

/// The rows of a table at these positions, of uint64, in their order; columns of any type.
#[pyfunction]
pub(in crate::python) fn _take(
    table: &Bound<'_, PyAny>,
    positions: &Bound<'_, PyAny>,
) -> PyResult<PyArray> {
    let py = table.py();
    let (positions, _) = source::import(positions, None)?.into_array(py)?;
    let Some(positions) = positions.as_primitive_opt::<UInt64Type>() else {
        return Err(PyValueError::new_err("positions are of uint64"));
    };
    if positions.null_count() > 0 {
        return Err(PyValueError::new_err("a position is null"));
    }
    let Imported { chunks, field, .. } = source::import(table, None)?;
    let nbytes = positions.len().saturating_mul(64);
    let rows = unlocked(py, nbytes, || rows_at(&chunks, positions))?;
    Ok(PyArray::try_new(rows, field)?)
}
