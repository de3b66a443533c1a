//! The package's functions.

use pyo3::{prelude::*, sync::PyOnceLock};

use super::args::{
    self, ColumnsArg, DtypeArg, LengthArg, NullsArg, OrderArg, PadArg, PhysicalArg, ThreadsArg,
    TypeArg, WritableArg, pointless,
};
use super::data::{self, Data};
use super::dlpack::request::{CopyArg, DeviceArg};
use super::numpy::convert::FRAMEWORKS;
use super::{array::PyArray, named_tuples, out::Out, runtime::unlocked};
use crate::NullPolicy;

/// from_dlpack(x, /, *, device=None, copy=None, type=None, mask=None)
/// --
///
/// The same as Array.from_dlpack: an Arrow array from any object with __dlpack__, or from a DLPack
/// capsule. With mask= it is the way back from nulls="mask":
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> values, mask = arrow_dlpack.to_tensor(pa.array([1, None, 3]), nulls="mask")
/// >>> pa.array(arrow_dlpack.from_dlpack(values, mask=mask)).to_pylist()
/// [1, None, 3]
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None, r#type=None, mask=None), text_signature = None)]
pub(super) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<DeviceArg>,
    copy: Option<CopyArg>,
    r#type: Option<TypeArg>,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    PyArray::from_dlpack(x, device, copy, r#type, mask)
}

/// to_tensor(obj, /, *, dtype=None, nulls='error', order='C', copy=None, columns=None, physical=False, pad=None, max_length=None, threads=None, framework=None, writable=None, out=None)
/// --
///
/// Arrow data as one Tensor: an array, concatenated chunks, or a table as a matrix (rows,
/// columns), where a column of fixed-size lists is as many columns as a list has values.
///
/// obj: any object with __arrow_c_array__ or __arrow_c_stream__. Lists whose rows have one length become a tensor
/// (rows, length), without a copy; for other lists there are pad and ragged.
/// dtype: of the result; by default that of the values. A name, NumPy's code such as "f4", or a dtype of NumPy,
/// PyTorch, JAX, Arrow, polars or Python (float is "float64"). A table takes the smallest that all its columns go
/// into, as pyarrow's RecordBatch.to_tensor does: int64 with float64 becomes float64, and is rounded above 2**53.
/// Floats are rounded to a smaller dtype. A finite value that would become infinite in it is an error: 65519.9 goes
/// into float16, 65520 does not. So is an integer that does not fit the dtype, and a float with a fraction if the
/// dtype is an integer. Infinite values stay.
/// Decimals become numbers, each the nearest to it, if the dtype is a float, and are refused without one.
/// nulls: "error"; a number that replaces them, and that the dtype has to hold, whether there are nulls or not;
/// "nan", for which integers become floats; or "mask" for a pair (values, mask), where the mask is True where a
/// value is valid. NaN in a column of pandas's is a null, as pandas hands it over; in one of pyarrow's or polars'
/// it is a number.
/// order: "C" for a row-major matrix, "F" for a column-major one, which the columns of record_batch(matrix) may
/// be already. Columns of another library are copied, because its interface does not say that they are one allocation.
/// copy: False to fail rather than copy, True for a writable copy.
/// columns: names of a table's columns, in the order of the result; None for all but an index of pandas's,
/// which is not a feature. Other columns may have any type.
/// physical: True to convert times, decimals of up to 64 bits and dictionary codes as the integers that store
/// them, or with a float dtype the times as floats of those, and extension types as their storage; Tensor.field
/// and Tensor.dictionary say what they mean. Codes are of the source's own type, which may be unsigned: for
/// nulls=-1 pass dtype="int64".
/// pad: for a column of lists, texts or binaries, a number that fills each row after its values. The result is a
/// named tuple (values, lengths) of tensors: (rows, length), and how many values each row has. Null rows become
/// padding unless nulls is "error", and with nulls="mask" a mask of the rows is the third tensor.
/// max_length: with pad, the length of all rows, of which longer ones lose their last values; None for that of
/// the longest row.
/// threads: how many threads may share the work of a copy, which pays from a few megabytes on; None for as many as
/// the machine runs at once, or as OMP_NUM_THREADS allows, and one in a process that multiprocessing has started,
/// such as a DataLoader's worker.
/// framework: "torch", "jax", "numpy", or a function that takes a Tensor and returns another library's, for such tensors
/// in place of Tensor.
/// writable: True copies, so that the tensors may be written to. False shares the source's memory where it can; do not
/// write to such tensors. None copies for PyTorch, for JAX and for a function, and shares for NumPy and without
/// framework.
/// out: a tensor with __dlpack__ or a buffer, writable and contiguous (a matrix may be column-major), of the shape of the
/// result: the values are written there, and out is returned. Its dtype is the one asked for, and its order the
/// result's. It must not share memory with obj. A producer that speaks only the ABI before DLPack 1.0 cannot say that its
/// memory may be written to, and is refused. After an error out is as it was, unless a note of the error says that some
/// of it was written.
///
/// Ctrl-C ends a long conversion with KeyboardInterrupt.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> table = pa.table({"x": [1.5, None, 2.5], "y": [1, 2, 3]})
/// >>> np.asarray(arrow_dlpack.to_tensor(table, nulls=0))
/// array([[1.5, 1. ],
///        [0. , 2. ],
///        [2.5, 3. ]])
/// >>> np.asarray(arrow_dlpack.to_tensor(pa.array([[1, 2], [], [3]]), pad=-1).values)
/// array([[ 1,  2],
///        [-1, -1],
///        [ 3, -1]])
/// >>> matrix = np.empty((3, 2), "float32")
/// >>> arrow_dlpack.to_tensor(table, nulls=0, out=matrix) is matrix
/// True
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), order=OrderArg::default(), copy=None, columns=None, physical=PhysicalArg(false), pad=None, max_length=None, threads=None, framework=None, writable=None, out=None), text_signature = None)]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn to_tensor<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    order: OrderArg,
    copy: Option<CopyArg>,
    columns: Option<ColumnsArg>,
    physical: PhysicalArg,
    pad: Option<PadArg>,
    max_length: Option<LengthArg>,
    threads: Option<ThreadsArg>,
    framework: Option<Bound<'py, PyAny>>,
    writable: Option<WritableArg>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    let has_mask = nulls.0 == NullPolicy::Masked;
    let options = |copy| {
        let options = args::export_options(copy, nulls, dtype, order, physical);
        options.with_threads(threads.map(|threads| threads.0))
    };
    let columns = columns.map(|columns| columns.0);
    if let Some(out) = out {
        let others = [
            ("framework", framework.is_some()),
            ("writable", writable.is_some()),
            ("pad", pad.is_some()),
            ("max_length", max_length.is_some()),
            ("copy=False", copy.as_ref().is_some_and(|copy| !copy.0)),
            ("nulls=\"mask\"", has_mask),
        ];
        if let Some((keyword, _)) = others.iter().find(|(_, is_there)| *is_there) {
            return Err(pointless(keyword, "does not go with out=, which is the result itself"));
        }
        data::refuse_none(columns.as_deref())?;
        // First, since a stream can be read only once.
        let out = Out::of(out)?;
        return out.write(Data::read(obj, columns)?.source(), &options(None));
    }
    let (taker, copy) = Taker::new(py, framework, writable, copy)?;
    let options = options(copy);
    taker.take(match args::padding(pad, max_length)? {
        None => data::to_tensor(obj, columns, &options)?,
        Some(pad) => {
            let data = Data::read(obj, columns)?;
            let prepared = data.padded(obj, &options, &pad)?;
            let nbytes = prepared.plan().bytes_copied();
            named_tuples::padded(py, unlocked(py, nbytes, || prepared.run())?, data.field())?
        }
    })
}

/// to_tensor_dict(obj, /, *, dtype=None, nulls='error', copy=None, columns=None, physical=False, threads=None, framework=None, writable=None)
/// --
///
/// A table as a dict of tensors, one for each column, zero-copy where to_tensor of the column is.
///
/// The options are those of to_tensor, for each column; with nulls="mask" each value is a pair (values, mask).
/// Columns of lists are refused, even if their rows have one length, because what a column becomes follows from its
/// type: pass them to to_tensor or ragged, or all columns to Loader, where Dense and Pad say what lists become.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> table = pa.table({"x": [1.5, 2.5], "y": [1, 2]})
/// >>> {name: tensor.dtype for name, tensor in arrow_dlpack.to_tensor_dict(table).items()}
/// {'x': 'float64', 'y': 'int64'}
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), copy=None, columns=None, physical=PhysicalArg(false), threads=None, framework=None, writable=None), text_signature = None)]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn to_tensor_dict<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    copy: Option<CopyArg>,
    columns: Option<ColumnsArg>,
    physical: PhysicalArg,
    threads: Option<ThreadsArg>,
    framework: Option<Bound<'py, PyAny>>,
    writable: Option<WritableArg>,
) -> PyResult<Bound<'py, PyAny>> {
    let (taker, copy) = Taker::new(obj.py(), framework, writable, copy)?;
    let options = args::export_options(copy, nulls, dtype, OrderArg::default(), physical);
    let options = options.with_threads(threads.map(|threads| threads.0));
    if let Some(ColumnsArg(columns)) = &columns {
        args::refuse_twice(columns)?;
    }
    let data = Data::read(obj, columns.map(|columns| columns.0))?;
    taker.take(data.to_tensor_dict(obj.py(), &options)?.into_any())
}

/// ragged(obj, /, *, dtype=None, nulls='error', offset_type=None, copy=None, physical=False, framework=None, writable=None)
/// --
///
/// Lists, texts or binaries as a named tuple (values, offsets) of tensors: row i is
/// values[offsets[i]:offsets[i + 1]]. A text's values are its UTF-8 bytes.
///
/// nulls: "error"; a number that null values become, or "nan", as in to_tensor; or "mask" for a mask of the
/// rows, True where they are valid, as a third tensor. Null rows become empty ones unless it is "error"; nulls
/// inside of rows need the number or "nan", whatever the mask says of rows.
/// offset_type: "int32" or "int64", if not the array's own; offsets that do not fit are an error.
/// copy: False to fail rather than copy. Values share the array's memory, except those of views; offsets share it
/// unless the array is a slice.
/// framework, writable: as in to_tensor.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> values, offsets = arrow_dlpack.ragged(pa.array([[1, 2], [], [3]]))
/// >>> memoryview(values).tolist(), memoryview(offsets).tolist()
/// ([1, 2, 3], [0, 2, 2, 3])
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), offset_type=None, copy=None, physical=PhysicalArg(false), framework=None, writable=None), text_signature = None)]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn ragged<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    offset_type: Option<DtypeArg>,
    copy: Option<CopyArg>,
    physical: PhysicalArg,
    framework: Option<Bound<'py, PyAny>>,
    writable: Option<WritableArg>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    let (taker, copy) = Taker::new(py, framework, writable, copy)?;
    let options = args::export_options(copy, nulls, dtype, OrderArg::default(), physical);
    let offset_type = offset_type.map(|dtype| dtype.0);
    let data = Data::read(obj, None)?;
    let prepared = data.ragged(obj, &options, offset_type)?;
    let nbytes = prepared.plan().bytes_copied();
    taker.take(named_tuples::ragged(py, unlocked(py, nbytes, || prepared.run())?, data.field())?)
}

/// Makes a framework's tensors of ours, or leaves them as they are.
struct Taker<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Taker<'py> {
    /// The taker of a framework, and `copy` for tensors that may have to be writable.
    fn new(
        py: Python<'py>,
        framework: Option<Bound<'py, PyAny>>,
        writable: Option<WritableArg>,
        copy: Option<CopyArg>,
    ) -> PyResult<(Self, Option<CopyArg>)> {
        if framework.is_none() && writable.is_none() {
            return Ok((Self(None), copy));
        }
        let (writable, copy) = (writable.map(|writable| writable.0), copy.map(|copy| copy.0));
        static ASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let asked = ASKED.import(py, FRAMEWORKS, "asked")?.call1((framework, writable, copy))?;
        let (take, copy) = asked.extract()?;
        Ok((Self(take), copy))
    }

    /// The same structure of the framework's tensors.
    fn take(self, made: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = made.py();
        match self.0 {
            Some(take) => {
                static MAPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                MAPPED.import(py, FRAMEWORKS, "mapped")?.call1((made, take))
            }
            None => Ok(made),
        }
    }
}

/// Tensors open right now, as (exported, imported); for leak tests.
#[pyfunction]
pub(super) fn _live() -> (usize, usize) {
    let live = crate::live();
    (live.exported, live.imported)
}
