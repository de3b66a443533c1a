//! The package's functions.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::array::PyArray;
use super::expected::Expected;
use super::options::{
    self, ColumnsArg, DtypeArg, NullsArg, OrderArg, PadArg, PhysicalArg, RaggedArg, TypeArg,
};
use super::plan::PyPlan;
use super::protocols::{is_arrow, is_tensor};
use super::request::{CopyArg, DeviceArg};
use super::source;
use super::table::{self, Data};
use super::{assemble, names, rows};
use crate::export::{ExportOptions, Order};
use crate::import;

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

/// record_batch(data, /, names=None, *, copy=None, type=None)
/// --
///
/// Tensors as the columns of a table: an Array of structs, which Arrow libraries take as a record batch.
///
/// data: a dict from names to tensors whose rows lie along their first axis, or with names, a matrix, each
/// column of which is one of the table. A pair (values, mask) in a dict, as to_tensor_dict gives them for
/// nulls="mask", is a column with nulls. A matrix in column-major order is shared, others are copied once.
/// copy, type: those of Array.from_dlpack, for each column.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> columns = {"x": np.arange(2), "image": np.zeros((2, 8, 8), "uint8")}
/// >>> pa.record_batch(arrow_dlpack.record_batch(columns)).schema.names
/// ['x', 'image']
/// >>> matrix = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
/// >>> pa.record_batch(arrow_dlpack.record_batch(matrix, names=["a", "b"])).to_pydict()
/// {'a': [1.0, 3.0], 'b': [2.0, 4.0]}
#[pyfunction]
#[pyo3(signature = (data, /, names=None, *, copy=None, r#type=None), text_signature = None)]
pub(super) fn record_batch(
    data: &Bound<'_, PyAny>,
    names: Option<ColumnsArg>,
    copy: Option<CopyArg>,
    r#type: Option<TypeArg>,
) -> PyResult<PyArray> {
    let copy = copy.map(|copy| copy.0);
    assemble::record_batch(data, names.map(|names| names.0), copy, r#type.unwrap_or_default())
}

/// from_ragged(values, offsets, /, *, type=None, copy=None, mask=None)
/// --
///
/// Lists, texts or binaries from two tensors: row i is values[offsets[i]:offsets[i + 1]].
///
/// type: an Arrow type, such as pa.string() for values of uint8, or a representation of the lists' items;
/// None for lists of what Array.from_dlpack makes of the values.
/// copy: as in Array.from_dlpack. Offsets and texts are copied and then checked, because the producer could
/// change them after the check; they are not copied if the producer flags them as a copy.
/// mask: a tensor of booleans, False for the rows that are null.
///
/// Raises BufferError for offsets that are no offsets of the values, and bytes that are no UTF-8.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> values, offsets = np.array([1, 2, 3]), np.array([0, 2, 2, 3], "int32")
/// >>> pa.array(arrow_dlpack.from_ragged(values, offsets)).to_pylist()
/// [[1, 2], [], [3]]
#[pyfunction]
#[pyo3(signature = (values, offsets, /, *, r#type=None, copy=None, mask=None), text_signature = None)]
pub(super) fn from_ragged(
    values: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    r#type: Option<TypeArg>,
    copy: Option<CopyArg>,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let copy = copy.map(|copy| copy.0);
    assemble::from_rows(values, offsets, mask, copy, r#type.unwrap_or_default(), import::ragged)
}

/// from_padded(values, lengths, /, *, type=None, mask=None)
/// --
///
/// Lists from a tensor (rows, length, ...) whose rows are padded on the right, and a tensor of the rows' lengths:
/// row i is values[i, :lengths[i]]. The way back from to_tensor with pad=. The values are copied.
///
/// type, mask: those of from_ragged.
///
/// Raises BufferError for lengths that are not of the rows, or are longer than they.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> values = np.array([[1, 2], [0, 0], [3, 0]])
/// >>> pa.array(arrow_dlpack.from_padded(values, np.array([2, 0, 1]))).to_pylist()
/// [[1, 2], [], [3]]
#[pyfunction]
#[pyo3(signature = (values, lengths, /, *, r#type=None, mask=None), text_signature = None)]
pub(super) fn from_padded(
    values: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    r#type: Option<TypeArg>,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    assemble::from_rows(values, lengths, mask, None, r#type.unwrap_or_default(), import::padded)
}

/// to_tensor(obj, /, *, dtype=None, nulls='error', order='C', copy=None, columns=None, physical=False, pad=None, max_length=None)
/// --
///
/// Arrow data as one Tensor: an array, concatenated chunks, or a table as a matrix (rows,
/// columns).
///
/// obj: any object with __arrow_c_array__ or __arrow_c_stream__. Lists whose rows have one length become a tensor
/// (rows, length), without a copy; for other lists there are pad and ragged.
/// dtype: of the result; by default that of the values. A name, NumPy's code such as "f4", or a dtype of NumPy,
/// PyTorch, JAX, Arrow, polars or Python (float is "float64"). A table takes the smallest that all its columns go
/// into, as pyarrow's RecordBatch.to_tensor does: int64 with float64 becomes float64, and is rounded above 2**53.
/// Floats are rounded to a smaller dtype, and become inf if they are too large for it, as by NumPy's astype; an
/// integer that does not fit the dtype is an error, and so is a float with a fraction if the dtype is an integer.
/// nulls: "error"; a number that replaces them, and that the dtype has to hold, whether there are nulls or not;
/// "nan", for which integers become floats; or "mask" for a pair (values, mask), where the mask is True where a
/// value is valid. NaN in a column of pandas's is a null, as pandas hands it over; in one of pyarrow's or polars'
/// it is a number.
/// order: "C" for a row-major matrix, "F" for a column-major one, which the columns of record_batch(matrix) may
/// be already. Columns of another library are copied, because its interface does not say that they are one allocation.
/// copy: False to fail rather than copy, True for writable memory of its own.
/// columns: names of a table's columns, in the order of the result; None for all but an index of pandas's,
/// which is not a feature. Other columns may have any type.
/// physical: True to convert times, small decimals and dictionary codes as the integers that store them, and
/// extension types as their storage; Tensor.field and Tensor.dictionary say what they mean. Codes are of the
/// source's own type, which may be unsigned: for nulls=-1 pass dtype="int64".
/// pad: for a column of lists, texts or binaries, a number that fills each row after its values. The result is a
/// named tuple (values, lengths) of tensors: (rows, length), and how many values each row has. Null rows become
/// padding unless nulls is "error", and with nulls="mask" a mask of the rows is the third tensor.
/// max_length: with pad, the length of all rows, of which longer ones lose their last values; None for that of
/// the longest row.
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
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), order=OrderArg::default(), copy=None, columns=None, physical=PhysicalArg(false), pad=None, max_length=None), text_signature = None)]
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
    max_length: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options::export(copy, nulls, dtype, order, physical);
    let columns = columns.map(|columns| columns.0);
    match options::padding(pad, max_length)? {
        None => table::to_tensor(obj, columns, &options),
        Some(pad) => rows::padded(
            obj.py(),
            Data::read(obj, columns)?.padded(obj.py(), &options, &pad)?,
            None,
        ),
    }
}

/// to_tensor_dict(obj, /, *, dtype=None, nulls='error', copy=None, columns=None, physical=False)
/// --
///
/// A table as a dict of tensors, one for each column, zero-copy where to_tensor of the column is.
///
/// The options are those of to_tensor, for each column; with nulls="mask" each value is a pair (values, mask).
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> table = pa.table({"x": [1.5, 2.5], "y": [1, 2]})
/// >>> {name: tensor.dtype for name, tensor in arrow_dlpack.to_tensor_dict(table).items()}
/// {'x': 'float64', 'y': 'int64'}
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), copy=None, columns=None, physical=PhysicalArg(false)), text_signature = None)]
pub(super) fn to_tensor_dict<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    copy: Option<CopyArg>,
    columns: Option<ColumnsArg>,
    physical: PhysicalArg,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options::export(copy, nulls, dtype, OrderArg::default(), physical);
    if let Some(ColumnsArg(columns)) = &columns {
        names::refuse_twice(columns)?;
    }
    Data::read(obj, columns.map(|columns| columns.0))?.to_tensor_dict(obj.py(), &options)
}

/// ragged(obj, /, *, dtype=None, nulls='error', offset_type=None, copy=None, physical=False)
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
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> values, offsets = arrow_dlpack.ragged(pa.array([[1, 2], [], [3]]))
/// >>> memoryview(values).tolist(), memoryview(offsets).tolist()
/// ([1, 2, 3], [0, 2, 2, 3])
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), offset_type=None, copy=None, physical=PhysicalArg(false)), text_signature = None)]
pub(super) fn ragged<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    offset_type: Option<DtypeArg>,
    copy: Option<CopyArg>,
    physical: PhysicalArg,
) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    let options = options::export(copy, nulls, dtype, OrderArg::default(), physical);
    let data = Data::read(obj, None)?;
    let made = data.ragged(py, &options, offset_type.map(|dtype| dtype.0))?;
    rows::ragged(py, made, None)
}

/// explain(obj, /, *, dtype=None, nulls='error', order='C', copy=None, columns=None, physical=False, ragged=False, offset_type=None, type=None, device=None, mask=None, pad=None, max_length=None)
/// --
///
/// What a conversion would copy with the same options, and why: a Plan. For Arrow data the conversion is to_tensor,
/// with pad and max_length too, or ragged with ragged=True, which takes offset_type; for tensors it is from_dlpack,
/// with copy, type, device and mask.
///
/// It raises what the conversion would raise, except errors for values that do not fit the dtype. An object that
/// can be read only once, such as a reader, is refused, because explain would consume it; a capsule is used up.
/// Copies that the other library makes while it exports, as polars does for categoricals, are not counted.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> plan = arrow_dlpack.explain(pa.table({"x": [1.5, 2.5], "y": [1, 2]}))
/// >>> plan.zero_copy, plan.bytes_copied
/// (False, 32)
/// >>> plan.steps[0].reasons
/// ['int64 becomes float64', '2 columns are put side by side']
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), order=OrderArg::default(), copy=None, columns=None, physical=PhysicalArg(false), ragged=RaggedArg(false), offset_type=None, r#type=None, device=None, mask=None, pad=None, max_length=None), text_signature = None)]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn explain(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    order: OrderArg,
    copy: Option<CopyArg>,
    columns: Option<ColumnsArg>,
    physical: PhysicalArg,
    ragged: RaggedArg,
    offset_type: Option<DtypeArg>,
    r#type: Option<TypeArg>,
    device: Option<DeviceArg>,
    mask: Option<&Bound<'_, PyAny>>,
    pad: Option<PadArg>,
    max_length: Option<usize>,
) -> PyResult<PyPlan> {
    let RaggedArg(ragged) = ragged;
    let pad = options::padding(pad, max_length)?;
    if is_arrow(obj)? {
        if r#type.is_some() || device.is_some() || mask.is_some() {
            return Err(options::pointless(
                "type, device and mask",
                "are for tensors, and this is Arrow data",
            ));
        }
        if ragged && order.0 != Order::default() {
            return Err(options::pointless("order", "is not for ragged=True"));
        }
        if !ragged && offset_type.is_some() {
            return Err(options::pointless("offset_type", "is for ragged=True"));
        }
        source::refuse_read_once(obj)?;
        let options = options::export(copy, nulls, dtype, order, physical);
        let data = Data::read(obj, columns.map(|columns| columns.0))?;
        return Ok(PyPlan(match (ragged, pad) {
            (true, None) => {
                data.explain_ragged(obj.py(), &options, offset_type.map(|dtype| dtype.0))?
            }
            (true, Some(_)) => return Err(options::pointless("pad", "is not for ragged=True")),
            (false, Some(pad)) => data.explain_padded(obj.py(), &options, &pad)?,
            (false, None) => data.explain(obj.py(), &options)?,
        }));
    }
    if !is_tensor(obj)? {
        return Err(Expected::Either.got(obj));
    }
    if options::export(None, nulls, dtype, order, physical) != ExportOptions::default()
        || columns.is_some()
        || ragged
        || offset_type.is_some()
        || pad.is_some()
    {
        return Err(options::pointless(
            "dtype, nulls, order, columns, physical, ragged, offset_type and pad",
            "are for Arrow data, and this is a tensor",
        ));
    }
    let (device, copy) = (device.map(|device| device.0), copy.map(|copy| copy.0));
    PyArray::explain(obj, device, copy, r#type.unwrap_or_default(), mask).map(PyPlan)
}

/// Tensors open right now, as (exported, imported); for leak tests.
#[pyfunction]
pub(super) fn _live() -> (usize, usize) {
    let live = crate::live();
    (live.exported, live.imported)
}

/// The name of a dtype, however it is spelled.
#[pyfunction]
#[pyo3(signature = (dtype, /))]
#[expect(clippy::needless_pass_by_value, reason = "an argument")]
pub(super) fn _dtype_name(dtype: DtypeArg) -> String {
    dtype.0.to_string()
}
