//! What columns become in batches: the arguments that `LoaderOptions` has for the engine, and the results in Python.

use arrow_array::Array;
use pyo3::exceptions::{PyBufferError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::Error;
use crate::batches::{
    Batch, BatchColumn, BatchOptions, BatchTensor, ColumnOptions, Features, Form,
};
use crate::export::{Longer, PadOptions};
use crate::python::args::{
    self, ColumnsArg, DtypeArg, Items, LengthArg, NullsArg, OrderArg, PadArg, SideArg, choice,
};
use crate::python::array::PyArray;
use crate::python::batches::categories::PyCategories;
use crate::python::describe::{argument, wrong};
use crate::python::errors::{Asked, Wishes};
use crate::python::named_tuples;
use crate::python::tensor::PyTensor;

argument!(BatchOptionsArg(BatchOptions) = batch_options);
argument!(FormsArg(Vec<(String, ColumnOptions)>) = forms);

/// `options`: the dict that `LoaderOptions.for_engine` makes.
fn batch_options(object: &Bound<'_, PyAny>) -> PyResult<BatchOptions> {
    let options = object.cast::<PyDict>().map_err(|_| wrong(object, "options must be a dict"))?;
    let given = |name: &str| {
        let value = options.get_item(name)?;
        value.ok_or_else(|| PyKeyError::new_err(format!("options have no {name:?}")))
    };
    let export = args::export_options(
        given("copy")?.extract()?,
        given("nulls")?.extract()?,
        given("dtype")?.extract()?,
        OrderArg::default(),
        given("physical")?.extract()?,
    );
    let (columns, forms): (Option<ColumnsArg>, Option<FormsArg>) =
        (given("columns")?.extract()?, given("forms")?.extract()?);
    let as_matrix = given("as_matrix")?.extract()?;
    let mut made = BatchOptions::default().with_matrix(as_matrix).with_export(export);
    made.columns = columns.map(|columns| columns.0);
    made.labels = given("labels")?.extract::<Items<String>>()?.0;
    made.column_options = forms.map(|forms| forms.0).unwrap_or_default();
    Ok(made)
}

/// `forms`: by the names of columns, the tuples that `_core.pyi` lists.
fn forms(object: &Bound<'_, PyAny>) -> PyResult<Vec<(String, ColumnOptions)>> {
    let must = "forms must be a dict from the names of columns to tuples";
    let forms = object.cast::<PyDict>().map_err(|_| wrong(object, must))?;
    let mut options = Vec::with_capacity(forms.len());
    for (name, form) in forms.iter() {
        let name = name.extract().map_err(|_| wrong(&name, must))?;
        options.push((name, options_of(&form)?));
    }
    Ok(options)
}

fn options_of(form: &Bound<'_, PyAny>) -> PyResult<ColumnOptions> {
    type DtypeAndNulls = (Option<DtypeArg>, Option<NullsArg>);
    let must = "a form must be a tuple, such as (\"dense\", length, dtype, nulls)";
    let parts = form.cast::<PyTuple>().map_err(|_| wrong(form, must))?;
    let kind: String = parts.get_item(0)?.extract().map_err(|_| wrong(form, must))?;
    let rest = parts.get_slice(1, parts.len());
    let (form, (dtype, nulls)): (Form, DtypeAndNulls) = match kind.as_str() {
        "pad" => {
            let (value, max_length, side, longer, dtype, nulls): (
                PadArg,
                Option<LengthArg>,
                SideArg,
                String,
                _,
                _,
            ) = rest.extract()?;
            let known = [("cut", Longer::Cut), ("error", Longer::Error)];
            let longer = choice(&longer, &known, "longer must be \"cut\" or \"error\"")?;
            let pad = PadOptions::default().with_value(value.0);
            let pad = pad.with_max_length(max_length.map(|length| length.0));
            (Form::Pad(pad.with_side(side.0).with_longer(longer)), (dtype, nulls))
        }
        "arrow" if rest.is_empty() => (Form::Arrow, (None, None)),
        "dense" => {
            let (length, dtype, nulls): (Option<LengthArg>, _, _) = rest.extract()?;
            (Form::Dense(length.map(|length| length.0)), (dtype, nulls))
        }
        "categories" => {
            let (words, dtype, nulls): (PyCategories, _, _) = rest.extract()?;
            (Form::Categories(words.0), (dtype, nulls))
        }
        "ragged" => (Form::Ragged, rest.extract()?),
        // The dtype of a column whose form follows from its type.
        "tensor" => (Form::Auto, rest.extract()?),
        _ => return Err(wrong(form, must)),
    };
    let options = ColumnOptions::default().with_form(form);
    let mut options = options.with_dtype(dtype.map(|dtype| dtype.0));
    options.nulls = nulls.map(|nulls| nulls.0);
    Ok(options)
}

/// The error of batches that were not opened.
pub(in crate::python) fn not_opened(error: Error, options: &BatchOptions) -> PyErr {
    match error {
        Error::NoColumns if options.columns.as_ref().is_some_and(Vec::is_empty) => {
            PyValueError::new_err("columns= is empty: format=\"matrix\" takes at least one column")
        }
        Error::NoColumns if !options.labels.is_empty() => {
            PyBufferError::new_err("no features are left beside the label")
        }
        error => Asked::Batches(&Wishes::of(options)).refusal(error),
    }
}

/// The features, or with labels a pair of both: of a label, or of a dict of several.
pub(in crate::python) fn into_python(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyAny>> {
    let features = match batch.features {
        Features::Matrix(matrix) => tensor(py, matrix)?,
        Features::Columns(columns) => dict_of(py, columns)?,
    };
    let mut labels = batch.labels;
    let label = match labels.len() {
        0 => return Ok(features),
        1 => column(py, labels.remove(0))?,
        _ => dict_of(py, labels)?,
    };
    Ok((features, label).into_pyobject(py)?.into_any())
}

fn dict_of(py: Python<'_>, columns: Vec<BatchColumn>) -> PyResult<Bound<'_, PyAny>> {
    let dict = PyDict::new(py);
    for column in columns {
        let field = column.field().cloned();
        let name = field.as_ref().map_or("", |field| field.name());
        dict.set_item(name, self::column(py, column)?)?;
    }
    Ok(dict.into_any())
}

fn column(py: Python<'_>, column: BatchColumn) -> PyResult<Bound<'_, PyAny>> {
    match column {
        BatchColumn::Tensor(made) => tensor(py, made),
        BatchColumn::Ragged(made, field) => named_tuples::ragged(py, *made, Some(&field)),
        BatchColumn::Padded(made, field) => named_tuples::padded(py, *made, Some(&field)),
        BatchColumn::Arrow(array, field) => {
            // Null structs make null fields, whatever the schema says.
            let field = match array.null_count() > 0 && !field.is_nullable() {
                true => field.as_ref().clone().with_nullable(true).into(),
                false => field,
            };
            Ok(Bound::new(py, PyArray::try_new(array, field)?)?.into_any())
        }
    }
}

/// A tensor, or with a mask a pair of them.
fn tensor(py: Python<'_>, made: BatchTensor) -> PyResult<Bound<'_, PyAny>> {
    let BatchTensor { values, mask, field, meaning } = made;
    PyTensor::of_column(values, field.as_ref(), meaning).with_mask(py, mask)
}
