//! Several tensors put together as one Arrow array: the columns of a table, or rows of different lengths.

use std::sync::Arc;

use arrow_array::StructArray;
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{intern, prelude::*};

use super::advice::{
    Expected, WayOut, is_a_table, is_batch_with_label, is_mapping, listed, of_dicts, of_dtype,
};
use super::args::{AskedType, NamesArg, SideArg, TypeArg, pointless};
use super::array::PyArray;
use super::arrow::casts;
use super::describe::{described, type_name, wrong};
use super::dlpack::consume;
use super::dlpack::request::CopyArg;
use super::errors::placed;
use super::named_tuples::NamedRows;
use super::protocols::is_arrow;
use super::runtime::unlocked;
use super::tensor::PyTensor;
use crate::import::{self, Side, TableColumn};
use crate::{CopyReason, Error, ManagedTensor, MaskProblem, alloc, columns, error::Names};

/// record_batch(data, /, names=None, *, copy=None, type=None)
/// --
///
/// Tensors, and Arrow data beside them, as the columns of a table: an Array of structs, which Arrow libraries take as a
/// record batch.
///
/// data: a dict from names to columns, or with names, a matrix, each column of which is one of the table. A column is a
/// tensor whose rows lie along its first axis; a pair (values, mask), as to_tensor_dict gives them for nulls="mask";
/// Ragged, Padded or LeftPadded; a list of tensors, whose lengths may differ, as from_ragged takes it; or an Arrow
/// array or series of any type, such as the ids that the results belong to. A matrix in column-major order is shared,
/// others are copied once.
/// copy: that of Array.from_dlpack, for each column.
/// type: that of Array.from_dlpack, for the columns that are no Arrow data; of a dict of columns also a dict from names to
/// types.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> columns = {"id": pa.array(["a", "b"]), "score": np.array([0.5, 0.25]), "image": np.zeros((2, 8, 8), "uint8")}
/// >>> pa.record_batch(arrow_dlpack.record_batch(columns)).schema.names
/// ['id', 'score', 'image']
/// >>> matrix = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
/// >>> pa.record_batch(arrow_dlpack.record_batch(matrix, names=["a", "b"])).to_pydict()
/// {'a': [1.0, 3.0], 'b': [2.0, 4.0]}
#[pyfunction]
#[pyo3(signature = (data, /, names=None, *, copy=None, r#type=None), text_signature = None)]
pub(super) fn record_batch(
    data: &Bound<'_, PyAny>,
    names: Option<NamesArg>,
    copy: Option<CopyArg>,
    r#type: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let (names, copy) = (names.map(|names| names.0), copy.map(|copy| copy.0));
    let py = data.py();
    let as_dict = match data.cast::<PyDict>() {
        Err(_) if names.is_none() && is_mapping(data)? => {
            Some(py.get_type::<PyDict>().call1((data,))?)
        }
        _ => None,
    };
    let data = as_dict.as_ref().unwrap_or(data);
    let batch = match (data.cast::<PyDict>(), names) {
        (Ok(columns), None) => {
            // A copy of the items: a producer's code may change the dict.
            let columns = items_of(columns)?;
            let types = types_of(r#type, &columns)?;
            let mut taken = Vec::with_capacity(columns.len());
            for ((name, column), r#type) in columns.into_iter().zip(types) {
                let column = take_column(&column, copy, r#type);
                let column = column.map_err(|error| in_column(py, &name, error))?;
                taken.push((name, column));
            }
            let nbytes = taken.iter().map(|(_, column)| column.work()).sum();
            unlocked(py, nbytes, || import::of_columns(taken))?
        }
        (Err(_), Some(_)) if tensors_of(data, &AskedType::default())?.is_some() => {
            return Err(PyTypeError::new_err(
                "names are for one matrix, and this is a list of columns: dict(zip(names, x)) has them by their names",
            ));
        }
        (Err(_), Some(names)) => {
            let matrix = consume::take(data, None, copy)?;
            let r#type = r#type.map(AskedType::read).transpose()?.unwrap_or_default();
            let options = r#type.import(&matrix, copy)?;
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

fn items_of<'py>(columns: &Bound<'py, PyDict>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let mut items = Vec::with_capacity(columns.len());
    for item in columns.items() {
        let (name, column) = item.extract::<(Bound<'_, PyAny>, _)>()?;
        let name = name.extract().map_err(|_| {
            PyTypeError::new_err(format!("names are texts, got {}", described(&name)))
        })?;
        items.push((name, column));
    }
    Ok(items)
}

/// The type that is asked for of each column, and whether it is for that column alone.
fn types_of(
    r#type: Option<&Bound<'_, PyAny>>,
    columns: &[(String, Bound<'_, PyAny>)],
) -> PyResult<Vec<(AskedType, bool)>> {
    let of_all = |r#type| vec![(r#type, false); columns.len()];
    let Some(r#type) = r#type else { return Ok(of_all(AskedType::default())) };
    let Ok(types) = r#type.cast::<PyDict>() else { return AskedType::read(r#type).map(of_all) };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut asked = Vec::with_capacity(types.len());
    for name in types.keys() {
        let must = "the keys of type are names of columns";
        asked.push(name.extract::<String>().map_err(|_| wrong(&name, must))?);
    }
    columns::positions(&names, &asked.iter().map(String::as_str).collect::<Vec<_>>())?;
    let of = |name: &str| match types.get_item(name)? {
        Some(own) => match AskedType::read(&own) {
            Ok(asked) => Ok((asked, true)),
            Err(error) => Err(in_column(own.py(), name, error)),
        },
        None => Ok((AskedType::default(), false)),
    };
    names.into_iter().map(of).collect()
}

fn in_column(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    placed(py, &format!("column {}", Names(&[name])), error)
}

/// The lists that `Ragged`, `Padded` and their kin stand for; `None` for anything else.
pub(in crate::python) fn named_rows(
    rows: &Bound<'_, PyAny>,
    copy: Option<bool>,
    r#type: &AskedType,
) -> PyResult<Option<PyArray>> {
    let Some(NamedRows { side, values, bounds, mask }) = NamedRows::of(rows)? else {
        return Ok(None);
    };
    from_rows(&values, &bounds, mask.as_ref(), copy, r#type.clone(), side).map(Some)
}

/// A column that was taken from Python, and planned.
fn take_column(
    column: &Bound<'_, PyAny>,
    copy: Option<bool>,
    (r#type, is_own): (AskedType, bool),
) -> PyResult<TableColumn> {
    let made = |array: PyArray| {
        let (array, field) = array.into_inner();
        Ok(TableColumn::Made(array, field))
    };
    if let Some(rows) = named_rows(column, copy, &r#type)? {
        return made(rows);
    }
    if let Some(items) = tensors_of(column, &r#type)? {
        return made(of_tensors(column.py(), items, copy, r#type)?);
    }
    if !column.is_instance_of::<PyTensor>() && is_arrow(column)? {
        if is_a_table(column)? {
            let way_out =
                "it is a table, and no column: to_tensor_dict(x) has its columns as tensors";
            return Err(PyTypeError::new_err(way_out));
        }
        let array = PyArray::import(column, copy)?;
        let is_another = |asked: &FieldRef| asked.data_type() != array.field().data_type();
        if is_own && r#type.field().is_none_or(is_another) {
            return Err(PyTypeError::new_err(format!(
                "it is Arrow data of type {}, which stays: cast it first, as pyarrow's x.cast(type) does",
                array.field().data_type()
            )));
        }
        return made(array);
    }
    let (values, mask) = values_and_mask(column, copy)?;
    let options = r#type.import(&values, copy)?;
    Ok(TableColumn::Planned(import::prepare_any(values, mask, &options)?.into()))
}

/// The error for what is no dict of tensors.
fn not_columns(data: &Bound<'_, PyAny>) -> PyErr {
    let way_out = to_name(data).ok().flatten();
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
fn to_name(data: &Bound<'_, PyAny>) -> PyResult<Option<WayOut>> {
    if data.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if is_arrow(data)? {
        let words = match is_a_table(data)? {
            true => "it is a table already: pyarrow.table(x) takes it",
            false => "it is Arrow data already: pyarrow.table({\"x\": x}) makes a table with it",
        };
        return Ok(Some(words.into()));
    }
    if data.hasattr("__dlpack__")? && of_dtype(data, "x")?.is_none() {
        let is_matrix = data.getattr_opt("ndim")?.is_some_and(|ndim| ndim.eq(2).unwrap_or(false));
        let words = match is_matrix {
            true => "name its columns by names=, or it as one, as {\"x\": x}",
            false => "name it, as {\"x\": x}",
        };
        return Ok(Some(words.into()));
    }
    if !data.is_instance_of::<PyList>() && !data.is_exact_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let Ok(first) = data.get_item(0) else { return Ok(None) };
    if first.is_instance_of::<PyString>() && data.len()? == 2 {
        let is_text = data.get_item(1)?.is_instance_of::<PyString>();
        return Ok((!is_text).then(|| "name it, as {x[0]: x[1]}".into()));
    }
    if first.cast::<PyTuple>().is_ok_and(|pair| {
        pair.len() == 2 && pair.get_item(0).is_ok_and(|name| name.is_instance_of::<PyString>())
    }) {
        return Ok(Some("dict(x) has them by their names".into()));
    }
    if first.is_instance_of::<PyDict>() {
        return Ok(Some(match is_batch_with_label(data)? {
            true => "put a batch and its label into one dict, as {**x[0], \"y\": x[1]}".into(),
            false => of_dicts(&listed(data)?.unwrap_or_default())?.into(),
        }));
    }
    let items = listed(data)?.unwrap_or_default();
    let has_tables = items.iter().any(|item| is_a_table(item).unwrap_or(false));
    let are_tensors = first.hasattr("__dlpack__")? && !has_tables;
    Ok(are_tensors.then(|| "name each of them, as {\"x\": x[0]}".into()))
}

fn is_text_or_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
}

/// The values of a column, and the mask of a pair.
fn values_and_mask(
    column: &Bound<'_, PyAny>,
    copy: Option<bool>,
) -> PyResult<(ManagedTensor, Option<ManagedTensor>)> {
    let (values, mask) = match column.cast::<PyTuple>() {
        Ok(pair) => {
            let must = || wrong(column, "a column is a tensor or a pair (values, mask)");
            let (values, mask) =
                pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| must())?;
            if is_text_or_number(&values) {
                return Err(Expected::Tensor.got(column));
            }
            (values, Some(consume::take_mask(&mask)?))
        }
        Err(_) => (column.clone(), None),
    };
    Ok((consume::take(&values, None, copy)?, mask))
}

/// from_ragged(values, offsets=None, /, *, type=None, copy=None, mask=None)
/// --
///
/// Lists, texts or binaries from two tensors: row i is values[offsets[i]:offsets[i + 1]]. Or, without offsets, from a list
/// of tensors, of which each is a row and None a null one; their values are copied, one row after the other.
///
/// type: an Arrow type of the rows, such as pa.list_(pa.int64()), or pa.string() for values of uint8. Or "bool8",
/// "opaque", "fixed_size_list" or "permuted", as in Array.from_dlpack, for the items of the lists. None for lists of what
/// Array.from_dlpack makes of the values.
/// copy: as in Array.from_dlpack. Offsets and texts are copied and then checked, because the producer could
/// change them after the check; they are not copied if the producer flags them as a copy.
/// mask: a tensor of booleans, False for the rows that are null.
///
/// Raises BufferError for offsets that are no offsets of the values, for tensors of a list that differ in dtype or in an
/// extent after the first, and for bytes that are no UTF-8.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> values, offsets = np.array([1, 2, 3]), np.array([0, 2, 2, 3], "int32")
/// >>> pa.array(arrow_dlpack.from_ragged(values, offsets)).to_pylist()
/// [[1, 2], [], [3]]
/// >>> pa.array(arrow_dlpack.from_ragged([np.array([1, 2]), None, np.array([3])])).to_pylist()
/// [[1, 2], None, [3]]
#[pyfunction]
#[pyo3(signature = (values, offsets=None, /, *, r#type=None, copy=None, mask=None), text_signature = None)]
pub(super) fn from_ragged(
    values: &Bound<'_, PyAny>,
    offsets: Option<&Bound<'_, PyAny>>,
    r#type: Option<TypeArg>,
    copy: Option<CopyArg>,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArray> {
    let (copy, r#type) = (copy.map(|copy| copy.0), TypeArg::resolve(r#type)?);
    if let Some(offsets) = offsets {
        return from_rows(values, offsets, mask, copy, r#type, None);
    }
    if mask.is_none() {
        if let Some(rows) = named_rows(values, copy, &r#type)? {
            return Ok(rows);
        }
    }
    let Some(items) = listed(values)? else {
        let must = "values without offsets must be a list of tensors, one for each row";
        return Err(wrong(values, must));
    };
    if mask.is_some() {
        return Err(pointless("mask", "is for values and offsets: None in a list is a null row"));
    }
    // Values and offsets of one dtype would be two rows.
    if items.len() == 2 && values.is_instance_of::<PyTuple>() {
        return Err(PyTypeError::new_err(
            "a tuple of two may be values and offsets, or two rows: from_ragged(*x) takes the one, from_ragged(list(x)) \
             the other",
        ));
    }
    of_tensors(values.py(), items, copy, r#type)
}

/// The items of a list whose first one that is not None is a tensor, or all None where the type is known.
fn tensors_of<'py>(
    list: &Bound<'py, PyAny>,
    r#type: &AskedType,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let Ok(list) = list.cast::<PyList>() else { return Ok(None) };
    let items = alloc::collect(list.iter())?;
    let has_tensors = match items.iter().find(|item| !item.is_none()) {
        Some(first) => first.hasattr(intern!(list.py(), "__dlpack__"))?,
        None => r#type.of_rows().is_some(),
    };
    Ok(has_tensors.then_some(items))
}

/// Lists of which each has the values of one tensor; None is a null row.
///
/// items: not the list itself, which a producer's code may change.
fn of_tensors(
    py: Python<'_>,
    items: Vec<Bound<'_, PyAny>>,
    copy: Option<bool>,
    r#type: AskedType,
) -> PyResult<PyArray> {
    let (mut tensors, mut rows) = (alloc::reserved(items.len())?, alloc::reserved(items.len())?);
    let (mut ends, mut valid) = (alloc::reserved(items.len() + 1)?, alloc::reserved(items.len())?);
    ends.push(0i64);
    for (row, item) in items.into_iter().enumerate() {
        valid.push(!item.is_none());
        if item.is_none() {
            ends.push(ends[row]);
            continue;
        }
        let place = |error| placed(py, &format!("item {row}"), error);
        let tensor = consume::take(&item, None, copy).map_err(place)?;
        let &[own, ..] = tensor.shape() else {
            let refused = Error::WrongRank { what: "a row", expected: 1, ndim: tensor.ndim() };
            return Err(place(PyBufferError::new_err(format!(
                "{refused}: numpy.stack(x) or torch.stack(x) makes one tensor of single values"
            ))));
        };
        let end = ends[row].checked_add(own).ok_or(Error::Overflow("number of values"))?;
        ends.push(end);
        tensors.push(tensor);
        rows.push(row);
    }
    let (Some(first), Some(first_row)) = (tensors.first(), rows.first()) else {
        if let Some(asked) = r#type.of_rows() {
            let nulls = casts::nulls(asked.data_type(), valid.len());
            let field = Field::clone(asked).with_name("").with_nullable(true);
            return Ok(PyArray::try_new(nulls?, field.into())?);
        }
        return Err(PyValueError::new_err(
            "a list without tensors does not tell the type of its rows: pyarrow.array(x, type) makes a column of it",
        ));
    };
    let of = |tensor: &ManagedTensor| format!("{} of shape {:?}", tensor.dtype(), tensor.shape());
    if let Some((row, other)) = rows.iter().zip(&tensors).find(|(_, tensor)| !first.is_like(tensor))
    {
        return Err(PyBufferError::new_err(format!(
            "item {row} is {}, and item {first_row} {}: rows of lists have one dtype, and one shape after the first axis",
            of(other),
            of(first)
        )));
    }
    let nbytes: usize = tensors.iter().map(ManagedTensor::nbytes).sum();
    if copy == Some(false) && tensors.len() > 1 {
        let reason = CopyReason::Chunks(tensors.len());
        return Err(Error::CopyForbidden { reason, nbytes }.into());
    }
    let values = unlocked(py, nbytes, || ManagedTensor::concatenated(&tensors))?;
    let Some(values) = values else {
        return Err(Error::PackedStrides { dtype: tensors[0].dtype() }.into());
    };
    let mask = valid.contains(&false).then(|| ManagedTensor::from(valid));
    let is_small = ends.last().is_none_or(|&end| i32::try_from(end).is_ok());
    let offsets = match is_small {
        true => {
            let narrow = ends.iter().map(|&end| i32::try_from(end).unwrap_or_default());
            ManagedTensor::from(alloc::collect(narrow)?)
        }
        false => ManagedTensor::from(ends),
    };
    of_values_and_bounds(py, (values, offsets, mask), copy, r#type, None)
}

/// from_padded(values, lengths=None, /, *, type=None, mask=None, side=None)
/// --
///
/// Lists from a tensor (rows, length, ...) whose rows are padded, and a tensor of the rows' lengths: row i is
/// values[i, :lengths[i]]. The way back from to_tensor with pad=. The values are copied. Or, without lengths, from what
/// to_tensor and Loader make of padded rows, which knows its side and its mask: from_padded(*x) would not.
///
/// type, mask: those of from_ragged.
/// side: where the padding is, "right", which None stands for, or "left"; there row i is its last lengths[i] values.
///
/// Raises BufferError for lengths that are not of the rows, or are longer than they.
///
/// >>> import arrow_dlpack, numpy as np, pyarrow as pa
/// >>> values = np.array([[1, 2], [0, 0], [3, 0]])
/// >>> pa.array(arrow_dlpack.from_padded(values, np.array([2, 0, 1]))).to_pylist()
/// [[1, 2], [], [3]]
#[pyfunction]
#[pyo3(signature = (values, lengths=None, /, *, r#type=None, mask=None, side=None), text_signature = None)]
pub(super) fn from_padded(
    values: &Bound<'_, PyAny>,
    lengths: Option<&Bound<'_, PyAny>>,
    r#type: Option<TypeArg>,
    mask: Option<&Bound<'_, PyAny>>,
    side: Option<SideArg>,
) -> PyResult<PyArray> {
    let r#type = TypeArg::resolve(r#type)?;
    if let Some(lengths) = lengths {
        let side = side.unwrap_or_default().0;
        return from_rows(values, lengths, mask, None, r#type, Some(side));
    }
    for (keyword, is_given) in [("mask", mask.is_some()), ("side", side.is_some())] {
        if is_given {
            return Err(pointless(
                keyword,
                "is for values and lengths: padded rows have their own",
            ));
        }
    }
    named_rows(values, None, &r#type)?.ok_or_else(|| {
        let must = "values without lengths must be the padded rows that to_tensor and Loader make, a Padded or LeftPadded";
        wrong(values, must)
    })
}

/// Lists, texts or binaries from values and offsets, or from values that are padded on a side, and lengths.
fn from_rows(
    values: &Bound<'_, PyAny>,
    bounds: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    r#type: AskedType,
    side: Option<Side>,
) -> PyResult<PyArray> {
    let py = values.py();
    let values = consume::take(values, None, copy)?;
    let bounds = consume::take(bounds, None, copy)?;
    let mask = mask.map(consume::take_mask).transpose()?;
    of_values_and_bounds(py, (values, bounds, mask), copy, r#type, side)
}

fn of_values_and_bounds(
    py: Python<'_>,
    (values, bounds, mask): (ManagedTensor, ManagedTensor, Option<ManagedTensor>),
    copy: Option<bool>,
    r#type: AskedType,
    side: Option<Side>,
) -> PyResult<PyArray> {
    let options = r#type.import(&values, copy)?;
    // The offsets are checked, and so are the values if they are texts.
    let nbytes = values.nbytes().saturating_add(bounds.nbytes());
    let of_values = mask.as_ref().is_some_and(|mask| mask.shape() == values.shape());
    let made = unlocked(py, nbytes, || match side {
        Some(side) => import::padded(values, bounds, mask, side, &options),
        None => import::ragged(values, bounds, mask, &options),
    });
    match made {
        Ok((array, field)) => Ok(PyArray::try_new(array, field)?),
        Err(error @ Error::BadMask(MaskProblem::Shape { .. })) if of_values && side.is_none() => {
            Err(PyBufferError::new_err(format!(
                "{error}: mask= is of the rows; pyarrow.ListArray.from_arrays(pyarrow.array(from_dlpack(offsets)), \
                 pyarrow.array(from_dlpack(values, mask=mask))) makes lists with nulls among their values"
            )))
        }
        Err(error) => Err(error.into()),
    }
}
