//! Several tensors put together as one Arrow array: the columns of a table, or rows of different lengths.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{exceptions::PyTypeError, prelude::*};

use super::args::{NamesArg, TypeArg, pointless};
use super::array::PyArray;
use super::describe::{described, type_name, wrong};
use super::dlpack::consume;
use super::dlpack::request::CopyArg;
use super::errors::{placed, unsupported, unsupported_error};
use super::expected::{Expected, is_a_table, of_dtype};
use super::protocols::is_arrow;
use super::runtime::unlocked;
use crate::{Error, ImportOptions, ManagedTensor, error::Names, import};

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
    names: Option<NamesArg>,
    copy: Option<CopyArg>,
    r#type: Option<TypeArg>,
) -> PyResult<PyArray> {
    let (names, copy) = (names.map(|names| names.0), copy.map(|copy| copy.0));
    let r#type = r#type.unwrap_or_default();
    let py = data.py();
    let batch = match (data.cast::<PyDict>(), names) {
        (Ok(columns), None) => {
            let mut tensors = Vec::with_capacity(columns.len());
            // A copy of the items: a producer's code may change the dict.
            for item in columns.items() {
                let (name, column) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                let name = name.extract::<String>().map_err(|_| {
                    PyTypeError::new_err(format!("names are texts, got {}", described(&name)))
                })?;
                let taken = column_of(column, copy);
                let place = || format!("column {}", Names(&[&name]));
                let (values, mask) = taken.map_err(|error| placed(py, &place(), error))?;
                tensors.push((name, values, mask));
            }
            let options = r#type.import(tensors.iter().map(|(_, tensor, _)| tensor), copy)?;
            let nbytes = tensors.iter().map(|(_, tensor, _)| tensor.nbytes()).sum();
            unlocked(py, nbytes, || import::masked_record_batch(tensors, &options))?
        }
        (Err(_), Some(names)) => {
            let matrix = consume::take(data, None, copy)?;
            let options = r#type.import([&matrix], copy)?;
            unlocked(py, matrix.nbytes(), || import::matrix(matrix, &names, &options))?
        }
        (Ok(_), Some(_)) => {
            return Err(pointless("names", "are for a matrix, and a dict has its own"));
        }
        (Err(_), None) => return Err(not_columns(data)),
    };
    let fields = batch.schema().fields().clone();
    let field = Field::new("", DataType::Struct(fields), false);
    Ok(PyArray::try_new(Arc::new(StructArray::from(batch)), Arc::new(field))?)
}

/// The error for what is no dict of tensors.
fn not_columns(data: &Bound<'_, PyAny>) -> PyErr {
    let way_out = to_name(data).ok().flatten().map(str::to_owned);
    let way_out = way_out.or_else(|| Expected::Tensor.way_out(data));
    let way_out = way_out.map_or_else(String::new, |way| format!(": {way}"));
    // What has values has no short name.
    let got = match data.hasattr("__len__") {
        Ok(true) => type_name(data),
        _ => described(data),
    };
    PyTypeError::new_err(format!(
        "expected a dict of tensors, or a matrix and names=, got {got}{way_out}"
    ))
}

/// How to name what is tensors, or becomes them, as columns; `None` for anything else.
fn to_name(data: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    if data.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if is_arrow(data)? {
        return Ok(Some(match is_a_table(data)? {
            true => "it is a table already: pyarrow.table(x) takes it",
            false => "it is Arrow data already: pyarrow.table({\"x\": x}) makes a table with it",
        }));
    }
    if data.hasattr("__dlpack__")? && of_dtype(data)?.is_none() {
        let is_matrix = data.getattr_opt("ndim")?.is_some_and(|ndim| ndim.eq(2).unwrap_or(false));
        return Ok(Some(match is_matrix {
            true => "name its columns by names=, or it as one, as {\"x\": x}",
            false => "name it, as {\"x\": x}",
        }));
    }
    if !data.is_instance_of::<PyList>() && !data.is_exact_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let Ok(first) = data.get_item(0) else { return Ok(None) };
    if first.is_instance_of::<PyString>() && data.len()? == 2 {
        let is_text = data.get_item(1)?.is_instance_of::<PyString>();
        return Ok((!is_text).then_some("name it, as {x[0]: x[1]}"));
    }
    if first.cast::<PyTuple>().is_ok_and(|pair| {
        pair.len() == 2 && pair.get_item(0).is_ok_and(|name| name.is_instance_of::<PyString>())
    }) {
        return Ok(Some("dict(x) has them by their names"));
    }
    if first.is_instance_of::<PyDict>() {
        let is_batch = first
            .cast::<PyDict>()?
            .values()
            .iter()
            .any(|value| value.hasattr("__dlpack__").unwrap_or(false));
        return Ok(Some(match is_batch {
            true => "put a batch and its label into one dict, as {**x[0], \"y\": x[1]}",
            false => "pyarrow.Table.from_pylist(x) makes a table of it",
        }));
    }
    let mut items = data.try_iter()?;
    let has_tables = items.any(|item| item.and_then(|item| is_a_table(&item)).unwrap_or(false));
    let are_tensors = first.hasattr("__dlpack__")? && !has_tables;
    Ok(are_tensors.then_some("name each of them, as {\"x\": x[0]}"))
}

/// The values of a column, and the mask of a pair; an error for other Arrow data than numbers says which function takes
/// it.
fn column_of(
    column: Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<(ManagedTensor, Option<ManagedTensor>)> {
    let py = column.py();
    if column.is_instance_of::<PyTuple>() {
        if let Some(error) = Expected::Tensor.of_rows(&column) {
            return Err(error);
        }
    }
    taken(column.clone(), copy).map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(py) || !is_arrow(&column).unwrap_or(false) {
            return error;
        }
        if is_a_table(&column).unwrap_or(false) {
            let way_out = "it is a table, and no column: to_tensor_dict(x) has its columns as tensors";
            return PyTypeError::new_err(way_out);
        }
        let class = error.get_type(py);
        let ours = unsupported_error(py).is_ok_and(|ours| ours.is(&class));
        let of = if ours { unsupported } else { PyTypeError::new_err };
        let refused = of(
            "it is Arrow data, and no tensor as it is: pyarrow.table(dict) takes it, and tensors beside it as \
             from_dlpack(x); of nulls to_tensor(x, nulls=\"mask\") makes a pair"
                .to_owned(),
        );
        refused.set_cause(py, Some(error));
        refused
    })
}

fn taken(
    column: Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<(ManagedTensor, Option<ManagedTensor>)> {
    let (values, mask) = match column.cast::<PyTuple>() {
        Ok(pair) => {
            let must = || wrong(&column, "a column is a tensor or a pair (values, mask)");
            let (values, mask) =
                pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| must())?;
            (values, Some(consume::take_mask(&mask)?))
        }
        Err(_) => (column, None),
    };
    Ok((consume::take(&values, None, copy)?, mask))
}

/// from_ragged(values, offsets, /, *, type=None, copy=None, mask=None)
/// --
///
/// Lists, texts or binaries from two tensors: row i is values[offsets[i]:offsets[i + 1]].
///
/// type: an Arrow type of the rows, such as pa.list_(pa.int64()), or pa.string() for values of uint8. Or "bool8",
/// "opaque", "fixed_size_list" or "permuted", as in Array.from_dlpack, for the items of the lists. None for lists of what
/// Array.from_dlpack makes of the values.
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
    from_rows(values, offsets, mask, copy, r#type, import::ragged)
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
    from_rows(values, lengths, mask, None, r#type, import::padded)
}

/// Lists, texts or binaries from values and offsets, or padded values and lengths.
fn from_rows(
    values: &Bound<'_, PyAny>,
    bounds: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    r#type: Option<TypeArg>,
    import: impl FnOnce(
        ManagedTensor,
        ManagedTensor,
        Option<ManagedTensor>,
        &ImportOptions,
    ) -> ArrayAndField
    + Send,
) -> PyResult<PyArray> {
    let py = values.py();
    let values = consume::take(values, None, copy)?;
    let bounds = consume::take(bounds, None, copy)?;
    let mask = mask.map(consume::take_mask).transpose()?;
    let options = r#type.unwrap_or_default().import([&values], copy)?;
    // The offsets are checked, and so are the values if they are texts.
    let nbytes = values.nbytes().saturating_add(bounds.nbytes());
    let (array, field) = unlocked(py, nbytes, || import(values, bounds, mask, &options))?;
    Ok(PyArray::try_new(array, field)?)
}

type ArrayAndField = Result<(ArrayRef, FieldRef), Error>;
