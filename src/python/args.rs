//! Arguments: the keywords of conversions, columns by their names, sequences of any kind.

use std::collections::HashSet;
use std::convert::Infallible;
use std::num::NonZero;
use std::str;

use arrow_schema::{DataType, FieldRef};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyException, PyKeyError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::advice::{is_masked, kind_of_times};
use super::arrow::capsule;
use super::arrow::schema::MAX_FIELDS;
use super::describe::{argument, described, wrong};
use super::dlpack::request::CopyArg;
pub(super) use super::dtype::DtypeArg;
use super::field::type_with_extension;
use crate::arrow_types::is_ragged;
use crate::error::Names;
use crate::export::{PadOptions, Side};
use crate::{
    ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Number, Order, Representation,
    columns, import,
};

argument!(
    #[derive(Default)]
    NullsArg(NullPolicy) = nulls
);

argument!(WritableArg(bool), "writable must be True, False or None");

/// `nulls`: "error", "nan", "mask", or the value that replaces nulls.
fn nulls(object: &Bound<'_, PyAny>) -> PyResult<NullPolicy> {
    let must = "nulls must be \"error\", \"nan\", \"mask\" or a number that nulls become";
    let known =
        [("error", NullPolicy::Refuse), ("nan", NullPolicy::Nan), ("mask", NullPolicy::Masked)];
    match object.extract::<&str>() {
        Ok(name) => choice(name, &known, must),
        Err(_) => scalar(object, must).map(NullPolicy::Fill),
    }
}

argument!(PadArg(Number) = |pad| scalar(pad, "pad must be a number that rows are padded with"));

/// What a name stands for; otherwise an error that begins with `must`.
pub(super) fn choice<T: Copy>(name: &str, known: &[(&str, T)], must: &str) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
    found.ok_or_else(|| {
        let meant = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let hint =
            meant.map_or_else(String::new, |(known, _)| format!(": did you mean {known:?}?"));
        PyValueError::new_err(format!("{must}, got {name:?}{hint}"))
    })
}

/// [`choice`], of an object that has to be a name.
fn chosen<T: Copy>(object: &Bound<'_, PyAny>, known: &[(&str, T)], must: &str) -> PyResult<T> {
    choice(object.extract().map_err(|_| wrong(object, must))?, known, must)
}

/// A number of Python's or NumPy's; otherwise an error that begins with `must`.
fn scalar(object: &Bound<'_, PyAny>, must: &str) -> PyResult<Number> {
    // The item of a time of NumPy's may be a number, whose unit is lost.
    if is_masked(object) || kind_of_times(object)?.is_some() {
        return Err(wrong(object, must));
    } else if object.is_instance_of::<PyBool>() {
        return Ok(Number::Bool(object.extract()?));
    } else if object.is_instance_of::<PyInt>() {
        // A wide enough one for a message about the dtype that does not hold it.
        let too_large = |_| {
            PyValueError::new_err(format!("{must}, and no dtype holds an integer of this size"))
        };
        return Ok(Number::Int(object.extract().map_err(too_large)?));
    } else if object.is_instance_of::<PyFloat>() {
        return Ok(Number::Float(object.extract()?));
    }
    // NumPy's scalars are their own types; this is what they are in Python.
    let py = object.py();
    match object.getattr_opt(intern!(py, "item"))?.map(|item| item.call0()) {
        Some(Ok(value))
            if value.is_instance_of::<PyBool>()
                || value.is_instance_of::<PyInt>()
                || value.is_instance_of::<PyFloat>() =>
        {
            scalar(&value, must)
        }
        Some(Err(error)) if !error.is_instance_of::<PyException>(py) => Err(error),
        // The error of an array of several items names no argument.
        _ if object.hasattr(intern!(py, "__len__"))? && !object.is_instance_of::<PyString>() => {
            Err(PyTypeError::new_err(format!("{must}, got {}: it is one value", described(object))))
        }
        _ => Err(wrong(object, must)),
    }
}

argument!(LengthArg(usize) = length);

/// `max_length`: a number of values.
fn length(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let must = "max_length must be an integer from 0 to 2**64 - 1";
    if object.is_instance_of::<PyBool>() || !object.hasattr(intern!(object.py(), "__index__"))? {
        return Err(wrong(object, must));
    }
    let range = |_| PyValueError::new_err(format!("{must}, got {}", described(object)));
    object.extract().map_err(range)
}

argument!(PhysicalArg(bool), "physical must be True or False");
argument!(ThreadsArg(NonZero<usize>), "threads must be None, or a number from 1 on");
argument!(RaggedArg(bool), "ragged must be True or False");

argument!(
    #[derive(Default)]
    OrderArg(Order) = order
);

/// `order`: "C" or "F".
fn order(object: &Bound<'_, PyAny>) -> PyResult<Order> {
    let must = "order must be \"C\", row-major, or \"F\", column-major";
    chosen(object, &[("C", Order::RowMajor), ("F", Order::ColumnMajor)], must)
}

argument!(
    #[derive(Default)]
    SideArg(Side) = side
);

/// `side`: "right" or "left".
fn side(object: &Bound<'_, PyAny>) -> PyResult<Side> {
    let must = "side must be \"right\" or \"left\"";
    chosen(object, &[("right", Side::Right), ("left", Side::Left)], must)
}

argument!(ColumnsArg(Vec<String>) = |columns| listed(columns, "columns must be a list of names"));
argument!(NamesArg(Vec<String>) = |names| listed(names, "names must be a list of names"));

/// Names, in the order of the result.
fn listed(object: &Bound<'_, PyAny>, must: &str) -> PyResult<Vec<String>> {
    if let Ok(name) = object.cast::<PyString>() {
        let name = name.to_string();
        return Err(PyTypeError::new_err(format!(
            "{must}, got {name:?}: did you mean [{name:?}]?"
        )));
    }
    let names = items(object, |name| {
        name.extract().map_err(|_| {
            let is_number = name.hasattr(intern!(name.py(), "__index__")).unwrap_or(false);
            // Of columns by position, or numbers as names.
            let texts = format!("{must}, and names are texts (pandas' 0 is called \"0\" in Arrow)");
            wrong(object, if is_number { &texts } else { must })
        })
    })?;
    names.ok_or_else(|| wrong(object, must))
}

/// `type`: the name of a representation, or any Arrow type, field or schema.
pub(super) struct TypeArg(PyResult<AskedType>);

/// What `type` asks for.
#[derive(Clone, Default)]
pub(super) struct AskedType {
    representation: Representation,
    /// A name that stands for the default representation.
    expected: Option<&'static str>,
}

impl Default for TypeArg {
    fn default() -> Self {
        Self(Ok(AskedType::default()))
    }
}

impl From<Representation> for TypeArg {
    fn from(representation: Representation) -> Self {
        Self(Ok(AskedType { representation, expected: None }))
    }
}

impl<'py> FromPyObject<'_, 'py> for TypeArg {
    type Error = Infallible;

    /// Keeps an error for its use: PyO3 would add a note with the argument's name in Rust, `r#type`.
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(AskedType::read(&object)))
    }
}

impl AskedType {
    pub(super) fn read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let must = "type must be \"bool\", \"bool8\", \"float32\", \"opaque\", \"fixed_size_list\", \
                    \"fixed_shape_tensor\", \"permuted\", or an Arrow type or field";
        if let Ok(name) = object.extract::<&str>() {
            let (representation, expected) = match name {
                "bool8" => (Representation::Bool8, None),
                "opaque" => (Representation::Opaque, None),
                "fixed_size_list" => (Representation::FixedSizeList, None),
                "permuted" => (Representation::Permuted, None),
                "bool" => (Representation::Canonical, Some("bool")),
                "float32" => (Representation::Canonical, Some("float32")),
                "fixed_shape_tensor" => (Representation::Canonical, Some("fixed_shape_tensor")),
                _ => return Err(PyValueError::new_err(format!("{must}, got {name:?}"))),
            };
            return Ok(Self { representation, expected });
        }
        let Some(method) = object.getattr_opt(intern!(object.py(), "__arrow_c_schema__"))? else {
            return Err(wrong(object, must));
        };
        let capsule = method.call0()?.cast_into::<PyCapsule>().map_err(|_| wrong(object, must))?;
        let field = capsule::schema_of(&capsule)?;
        Ok(Self { representation: Representation::Field(field), expected: None })
    }

    /// The field that was given, or that of the type.
    pub(super) fn field(&self) -> Option<&FieldRef> {
        match &self.representation {
            Representation::Field(asked) => Some(asked),
            _ => None,
        }
    }

    /// The field that was given, if its values are lists, texts or binaries.
    pub(super) fn of_rows(&self) -> Option<&FieldRef> {
        self.field().filter(|asked| is_ragged(asked.data_type()))
    }

    /// The import options for a tensor.
    pub(super) fn import(
        self,
        tensor: &ManagedTensor,
        copy: Option<bool>,
    ) -> PyResult<ImportOptions> {
        let Self { representation, expected } = self;
        let options = ImportOptions::default().with_copy(copy).with_representation(representation);
        let Some(name) = expected else { return Ok(options) };
        let field = import::field(tensor, &options)?;
        let mut leaf = &field;
        while let DataType::FixedSizeList(item, _) = leaf.data_type() {
            leaf = item;
        }
        let is_met = match name {
            "bool" => *leaf.data_type() == DataType::Boolean,
            "float32" => *leaf.data_type() == DataType::Float32,
            _ => field.extension_type_name().is_some(),
        };
        if is_met {
            return Ok(options);
        }
        Err(PyValueError::new_err(format!(
            "a tensor of dtype {} and {} axes does not become {name:?}, but {}",
            tensor.dtype(),
            tensor.ndim(),
            type_with_extension(&field)
        )))
    }
}

impl TypeArg {
    /// What was asked for; its error, now that it is used.
    pub(super) fn resolve(r#type: Option<Self>) -> PyResult<AskedType> {
        r#type.unwrap_or_default().0
    }
}

/// The options of an export.
pub(super) fn export_options(
    copy: Option<CopyArg>,
    nulls: NullsArg,
    dtype: Option<DtypeArg>,
    order: OrderArg,
    physical: PhysicalArg,
) -> ExportOptions {
    ExportOptions::default()
        .with_copy(copy.map(|copy| copy.0))
        .with_nulls(nulls.0)
        .with_physical(physical.0)
        .with_dtype(dtype.map(|dtype| dtype.0))
        .with_order(order.0)
}

/// The padding that `pad` and `max_length` ask for.
pub(super) fn padding(
    pad: Option<PadArg>,
    max_length: Option<LengthArg>,
) -> PyResult<Option<PadOptions>> {
    match (pad, max_length) {
        (Some(PadArg(value)), length) => {
            let length = length.map(|length| length.0);
            Ok(Some(PadOptions::default().with_value(value).with_max_length(length)))
        }
        (None, Some(_)) => Err(pointless("max_length", "is for pad=")),
        (None, None) => Ok(None),
    }
}

/// The error for a keyword that means nothing here.
pub(super) fn pointless(keyword: &str, why: &str) -> PyErr {
    PyTypeError::new_err(format!("{keyword} {why}"))
}

/// The items of a sequence.
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Items<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let read = items(&object, |item| item.extract().map_err(Into::into))?;
        read.map(Self).ok_or_else(|| {
            PyTypeError::new_err(format!("expected a list, got {}", described(&object)))
        })
    }
}

/// The items of a sequence, each of which `read` reads; `None` for what is none, and for dicts, sets and a str, which is never
/// meant as a sequence of its letters.
pub(super) fn items<'py, T>(
    object: &Bound<'py, PyAny>,
    mut read: impl FnMut(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Vec<T>>> {
    if !object.hasattr(intern!(object.py(), "__getitem__"))?
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyDict>()
    {
        return Ok(None);
    }
    // What lists and tuples have is in memory. Others make their items, such as a range, and may never end.
    let is_kept =
        object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>();
    let most = if is_kept { usize::MAX } else { MAX_FIELDS };
    let mut items = Vec::new();
    for item in object.try_iter()? {
        if items.len() >= most {
            return Err(PyValueError::new_err(format!(
                "a sequence has more than {MAX_FIELDS} items"
            )));
        }
        let item = read(item?)?;
        items.try_reserve(1).map_err(|_| PyMemoryError::new_err("the sequence is too long"))?;
        items.push(item);
    }
    Ok(Some(items))
}

/// An error if a name is repeated, for callers that identify columns by name.
pub(super) fn refuse_twice(wanted: &[String]) -> PyResult<()> {
    let mut seen = HashSet::with_capacity(wanted.len());
    match wanted.iter().find(|&name| !seen.insert(name)) {
        Some(name) => Err(PyKeyError::new_err(format!("columns= names {} twice", Names(&[name])))),
        None => Ok(()),
    }
}

/// An error that lists all names that are not columns.
#[pyfunction]
#[pyo3(signature = (names, wanted, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _check_names(names: Items<String>, wanted: ColumnsArg) -> PyResult<()> {
    let among: Vec<&str> = names.0.iter().map(String::as_str).collect();
    let wanted: Vec<&str> = wanted.0.iter().map(String::as_str).collect();
    columns::positions(&among, &wanted).map(drop)?;
    Ok(())
}

/// Refuses what does not say what nulls become.
#[pyfunction]
#[pyo3(signature = (nulls, /))]
pub(super) fn _check_nulls(nulls: NullsArg) {
    // It was checked when it was read.
    let NullsArg(_) = nulls;
}

/// Positions of the columns of these names that pandas's metadata marks as an index.
#[pyfunction]
#[pyo3(signature = (names, metadata, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments")]
pub(super) fn _index_columns(names: Items<String>, metadata: &[u8]) -> Vec<usize> {
    let names: Vec<&str> = names.0.iter().map(String::as_str).collect();
    str::from_utf8(metadata)
        .map_or_else(|_| Vec::new(), |text| columns::index_positions(&names, text))
}

/// The names of levels of an index that pandas's metadata describes by steps, without a column.
#[pyfunction]
#[pyo3(signature = (metadata, /))]
pub(super) fn _index_steps(metadata: &[u8]) -> Vec<String> {
    str::from_utf8(metadata).map_or_else(|_| Vec::new(), columns::index_steps)
}
