//! For other extensions: chunks and tables as arguments, and the elements of a tensor.
#![expect(unsafe_code, reason = "hands out memory that others write to")]

use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::{fmt, slice};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use pyo3::Python;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::array::PyArray;
use super::arrow::imported::Imported;
use super::protocols::is_arrow;
use super::source;
use super::tensor::PyTensor;
use crate::chunks::batch;
use crate::export::table_schema;
use crate::export::{IntoSource, Source};
use crate::ffi::{DLDataType, DLDevice};
use crate::{Element, Error, ManagedTensor, alloc};

/// An argument that is Arrow data of one type in any number of arrays: chunked arrays, series, streams; an array is
/// one chunk. A tensor is one too, copied.
///
/// The chunks are kept, unlike in a [`PyArray`], which concatenates them; only small chunks of a stream are
/// joined as it is read. It is a [`Source`] of conversions.
///
/// ```
/// use arrow_dlpack::python::{Chunks, PyTensor};
/// use arrow_dlpack::{ExportOptions, export};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn tensors(column: Chunks) -> PyResult<Vec<PyTensor>> {
///     let each = |chunk| export::tensor((chunk, &*column.field), &ExportOptions::default());
///     Ok(column.chunks.iter().map(|chunk| each(chunk).map(PyTensor::from)).collect::<Result<_, _>>()?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Chunks {
    /// The arrays, in order. Arguments from Python have at least one, and if there are several, none is empty.
    pub chunks: Vec<ArrayRef>,
    /// The field of each array.
    pub field: FieldRef,
}

/// An argument that is a table: record batches, data frames, streams of either, arrays of structs.
///
/// It is a [`Source`] of conversions, as a matrix. It has all columns, including an index of pandas's:
/// [`index_columns`](crate::pandas::index_columns) names those.
///
/// ```
/// use arrow_dlpack::python::{PyTensor, Table};
/// use arrow_dlpack::{ExportOptions, export};
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn matrix(table: Table) -> PyResult<PyTensor> {
///     Ok(export::tensor(&table, &ExportOptions::default())?.into())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    /// The rows. Arguments from Python have at least one batch, and if there are several, none is empty.
    pub batches: Vec<RecordBatch>,
    /// The schema of each batch.
    pub schema: SchemaRef,
}

impl<'py> FromPyObject<'_, 'py> for Chunks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_arrow(&object)? {
            let imported = source::import(&object, None)?;
            return Ok(Self { chunks: imported.chunks, field: imported.field });
        }
        let (array, field) = object.extract::<PyArray>()?.into_inner();
        Ok(Self { chunks: vec![array], field })
    }
}

impl<'py> FromPyObject<'_, 'py> for Table {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Imported { chunks, field, .. } = source::import(&object, None)?;
        let Some(schema) = table_schema(&field) else {
            let data_type = field.data_type();
            return Err(PyTypeError::new_err(format!("expected a table, got {data_type}")));
        };
        let batches = chunks.iter().map(|chunk| batch(chunk, &schema));
        Ok(Self { batches: batches.collect::<Result<_, _>>()?, schema: schema.into() })
    }
}

/// One batch.
impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

impl<'a> IntoSource<'a, Chunks> for &'a Chunks {
    fn into_source(self) -> Source<'a> {
        Source::Chunks(&self.chunks, &self.field)
    }
}

impl<'a> IntoSource<'a, Table> for &'a Table {
    fn into_source(self) -> Source<'a> {
        Source::Table(&self.batches, &self.schema)
    }
}

#[cfg(target_has_atomic = "64")]
use std::sync::atomic::AtomicU64;

/// Safe access to a tensor that Python holds too: its metadata, copies, read-only cells, which are read one
/// value at a time, and addresses.
///
/// ```
/// use arrow_dlpack::python::PyTensor;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn described(tensor: PyTensor) -> String {
///     let of = tensor.column().map_or("no column", |field| field.name());
///     format!("{} of shape {:?} on {}, of {of}", tensor.dtype(), tensor.shape(), tensor.device())
/// }
/// ```
impl PyTensor {
    /// Extents, in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.tensor.shape()
    }

    /// Strides, in elements.
    #[must_use]
    pub fn strides(&self) -> Cow<'_, [i64]> {
        self.tensor.strides()
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        self.tensor.dtype()
    }

    /// Where the memory is.
    #[must_use]
    pub fn device(&self) -> DLDevice {
        self.tensor.device()
    }

    /// The field of the Arrow column that the tensor was made of, if it was made of one.
    #[must_use]
    pub fn column(&self) -> Option<&FieldRef> {
        self.field.as_ref()
    }

    /// The address of the first element; NULL if there is none. As [`ManagedTensor::as_ptr`].
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.tensor.data()
    }

    /// The elements in row-major order, whatever the strides: a copy. What other threads and the handlers of
    /// signals write meanwhile may be in it in part: [`Self::as_cells`] reads each value whole.
    ///
    /// ```
    /// use arrow_dlpack::python::PyTensor;
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn total(py: Python<'_>, tensor: PyTensor) -> PyResult<f64> {
    ///     Ok(tensor.to_vec::<f64>(py)?.iter().sum())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// `DtypeMismatch` if they are no `T`s; `UnreadableDevice`; `OutOfMemory`.
    pub fn to_vec<T: Element>(&self, py: Python<'_>) -> Result<Vec<T>, Error> {
        if let Some(elements) = self.tensor.to_vec::<T>() {
            return elements;
        }
        let (dtype, found) = (T::DTYPE, self.dtype());
        if dtype != found {
            return Err(Error::DtypeMismatch { expected: dtype, found });
        }
        let copy = self.copied(py)?;
        alloc::collect(copy.as_slice::<T>().unwrap_or_default().iter().copied())
    }

    /// A copy of the tensor in memory with no other owner: every use of it is safe, and
    /// [`from_dlpack`](crate::from_dlpack) makes an Arrow array of it without another copy. As of [`Self::to_vec`], what
    /// others write meanwhile may be in it in part.
    ///
    /// ```
    /// use arrow_dlpack::ManagedTensor;
    /// use arrow_dlpack::python::PyTensor;
    /// use pyo3::prelude::*;
    ///
    /// /// A job for a thread that outlives the call.
    /// #[pyfunction]
    /// fn mean_later(py: Python<'_>, tensor: PyTensor) -> PyResult<()> {
    ///     let own: ManagedTensor = tensor.copied(py)?;
    ///     std::thread::spawn(move || own.as_slice::<f32>().map(|values| values.iter().sum::<f32>()));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ManagedTensor::copied`].
    pub fn copied(&self, _py: Python<'_>) -> Result<ManagedTensor, Error> {
        self.tensor.copied()
    }

    /// The tensor taken out of its object, if it is known to be the only way to its memory: a copy, or memory that was
    /// handed over, in a capsule or by a producer that flags it `IS_COPIED`. It may be written to, and
    /// [`from_dlpack`](crate::from_dlpack) makes an Arrow array of it in the same memory. Otherwise the object comes back;
    /// [`Self::copied`] works in all cases.
    ///
    /// ```
    /// use arrow_dlpack::python::{PyArray, PyTensor};
    /// use arrow_dlpack::{ImportOptions, from_dlpack};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn as_array(py: Python<'_>, tensor: PyTensor) -> PyResult<PyArray> {
    ///     let tensor = match tensor.into_exclusive() {
    ///         Ok(tensor) => tensor,
    ///         Err(tensor) => tensor.copied(py)?,
    ///     };
    ///     Ok(from_dlpack(tensor, &ImportOptions::default())?.try_into()?)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The object, if Python or another library holds the memory too.
    pub fn into_exclusive(self) -> Result<ManagedTensor, Self> {
        self.tensor.into_exclusive().map_err(|tensor| Self { tensor, ..self })
    }

    /// The elements where they are, if they are `T`s, aligned, in row-major order, in memory that the CPU can
    /// read. Two reads of a cell may return different values.
    ///
    /// ```
    /// use arrow_dlpack::python::{PyTensor, ReadOnlyCell};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn largest(py: Python<'_>, tensor: PyTensor) -> PyResult<Option<i64>> {
    ///     Ok(tensor.as_cells::<i64>(py)?.iter().map(ReadOnlyCell::get).max())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// `DtypeMismatch`; `UnreadableDevice`; `CopyForbidden` where only [`Self::to_vec`] works.
    pub fn as_cells<'a, T: Element>(
        &'a self,
        _py: Python<'a>,
    ) -> Result<&'a [ReadOnlyCell<T>], Error> {
        let (first, len) = self.tensor.run_of::<T>()?;
        // SAFETY: I2, V3: the elements are there for as long as the tensor is. A cell is a `T` in memory, of
        // any bits, and the borrow promises nothing of what is in an `UnsafeCell`.
        Ok(unsafe { slice::from_raw_parts(first.cast::<ReadOnlyCell<T>>(), len) })
    }

    /// The elements where they are, of any strides, as a view by [`ndarray`] (feature `ndarray`). Two reads of a cell
    /// may return different values.
    ///
    /// ```
    /// use arrow_dlpack::python::{PyTensor, ReadOnlyCell};
    /// use ndarray::Ix2;
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn trace(py: Python<'_>, matrix: PyTensor) -> PyResult<f64> {
    ///     let cells = matrix.view_cells::<f64, Ix2>(py)?;
    ///     Ok(cells.diag().iter().map(ReadOnlyCell::get).sum())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ManagedTensor::view`].
    #[cfg(feature = "ndarray")]
    pub fn view_cells<'a, T: Element, D: ndarray::Dimension>(
        &'a self,
        _py: Python<'a>,
    ) -> Result<ndarray::ArrayView<'a, ReadOnlyCell<T>, D>, Error> {
        let (lowest, len) = self.tensor.span_of::<T>()?;
        // SAFETY: as in `as_cells`, of all that lies between the lowest element and the highest.
        let cells = unsafe { slice::from_raw_parts(lowest.cast::<ReadOnlyCell<T>>(), len) };
        self.tensor.view_of(cells)
    }

    /// The tensor itself, for access without a copy.
    ///
    /// ```
    /// use arrow_dlpack::python::PyTensor;
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn norm(tensor: PyTensor) -> Option<f32> {
    ///     // SAFETY: the functions of this extension are documented to be called by one thread, with
    ///     // tensors that nothing writes to during the call; no Python code runs until the slice is gone.
    ///     let values = unsafe { tensor.tensor() }.as_slice::<f32>()?;
    ///     Some(values.iter().map(|x| x * x).sum::<f32>().sqrt())
    /// }
    /// ```
    ///
    /// # Safety
    ///
    /// No code writes to its memory while anything borrowed from it is in use ([`ManagedTensor::as_slice`], a view of
    /// `ndarray`), or ever, if an Arrow array is made of it. Python can write as long as it has the tensor, or
    /// whatever it came from, or a view of either: with the GIL whenever Python code runs, and always in threads
    /// that release it and on free-threaded builds.
    #[must_use]
    pub unsafe fn tensor(&self) -> &Arc<ManagedTensor> {
        // SAFETY: no code writes to the memory while anything borrowed from it is in use: both ask the same.
        unsafe { self.tensor.get() }
    }
}

/// Python may write to the tensor only if no Rust code can read it meanwhile: if the tensor is known to be the only
/// way to its memory (a copy, memory that was handed over), or came through C from a producer that says that it is
/// writable. Any other tensor is read-only there.
impl From<ManagedTensor> for PyTensor {
    fn from(tensor: ManagedTensor) -> Self {
        if tensor.is_read_only() || !tensor.has_lookers_on() {
            // SAFETY: it is read-only, exclusive, or came through C, and no code in Rust has it any more.
            return unsafe { Self::received(Arc::new(tensor)) };
        }
        // SAFETY: it is read-only.
        unsafe { Self::received(Arc::new(Arc::new(tensor).share())) }
    }
}

/// Read-only, if you keep the tensor.
impl From<Arc<ManagedTensor>> for PyTensor {
    fn from(tensor: Arc<ManagedTensor>) -> Self {
        match Arc::try_unwrap(tensor) {
            Ok(tensor) => Self::from(tensor),
            // SAFETY: it is read-only.
            Err(tensor) => unsafe { Self::received(Arc::new(tensor.share())) },
        }
    }
}

/// A value that other code may be writing to.
///
/// It differs from PyO3's type of that name in how it is read: PyO3 has deprecated its slices of cells (0.30:
/// "this function is unsound"), because a thread without the GIL may write while a value is read. Here a read
/// is one relaxed atomic load, so that with a concurrent write, by NumPy or PyTorch or any thread of a
/// free-threaded Python, it returns the value from before or after. (On 32-bit machines that cannot load so
/// many bytes at once, it may return half of each.)
#[repr(transparent)]
pub struct ReadOnlyCell<T: Element>(UnsafeCell<T>);

impl<T: Element> ReadOnlyCell<T> {
    /// The current value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> T {
        let at = self.as_ptr().cast_mut();
        macro_rules! load {
            ($atomic:ty) => {{
                // SAFETY: the size and the alignment have been compared; any bits are a `T`. Others may write, not
                // through this reference.
                unsafe {
                    let bits = <$atomic>::from_ptr(at.cast()).load(Ordering::Relaxed);
                    std::mem::transmute_copy(&bits)
                }
            }};
        }
        match (size_of::<T>(), align_of::<T>()) {
            (1, _) => load!(AtomicU8),
            (2, 2) => load!(AtomicU16),
            (4, 4) => load!(AtomicU32),
            #[cfg(target_has_atomic = "64")]
            (8, 8) => load!(AtomicU64),
            (8, _) => {
                let half = |index: usize| {
                    // SAFETY: eight bytes, aligned as half of them: each half is a `u32`. Others may write to it.
                    unsafe { AtomicU32::from_ptr(at.cast::<u32>().add(index)) }
                        .load(Ordering::Relaxed)
                };
                let halves = [half(0), half(1)];
                // SAFETY: the size has been compared; any bits are a `T`.
                unsafe { std::mem::transmute_copy(&halves) }
            }
            _ => unreachable!("numbers have 1, 2, 4 or 8 bytes"),
        }
    }

    /// The address of the value.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.0.get()
    }
}

impl<T: Element> fmt::Debug for ReadOnlyCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
