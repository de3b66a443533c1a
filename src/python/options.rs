//! The keyword arguments of `to_tensor`, `from_dlpack` and their kin.

use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyString};

use super::arrow_capsule;
pub(super) use super::dtype::DtypeArg;
use super::field::type_name;
use super::request::{CopyArg, argument, wrong};
use crate::export::{ExportOptions, NullPolicy, Order, PadOptions};
use crate::import::{self, ImportOptions, Representation};
use crate::memory::ManagedTensor;
use crate::scalar::Scalar;

/// `nulls`: "error", "nan", "mask", or the value that replaces nulls.
#[derive(Default)]
pub(super) struct NullsArg(pub(super) NullPolicy);

impl<'py> FromPyObject<'_, 'py> for NullsArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let must = "nulls must be \"error\", \"nan\", \"mask\" or a number that nulls become";
        if let Ok(name) = object.extract::<&str>() {
            return match name {
                "error" => Ok(Self(NullPolicy::Refuse)),
                "nan" => Ok(Self(NullPolicy::Nan)),
                "mask" => Ok(Self(NullPolicy::Masked)),
                _ => Err(PyValueError::new_err(format!("{must}, got {name:?}"))),
            };
        }
        scalar(object, must).map(|value| Self(NullPolicy::Fill(value)))
    }
}

/// `pad`: the value that rows are padded with.
pub(super) struct PadArg(pub(super) Scalar);

impl<'py> FromPyObject<'_, 'py> for PadArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        scalar(object, "pad must be a number that rows are padded with").map(Self)
    }
}

/// A number of Python's or NumPy's; otherwise an error that begins with `must`.
fn scalar(object: Borrowed<'_, '_, PyAny>, must: &str) -> PyResult<Scalar> {
    if object.is_instance_of::<PyBool>() {
        return Ok(Scalar::Bool(object.extract()?));
    } else if object.is_instance_of::<PyInt>() {
        return Ok(Scalar::Int(object.extract().map_err(|_| wrong(&object, must))?));
    } else if object.is_instance_of::<PyFloat>() {
        return Ok(Scalar::Float(object.extract()?));
    }
    // NumPy's scalars are their own types; this is what they are in Python.
    match object.getattr_opt(intern!(object.py(), "item"))?.map(|item| item.call0()).transpose()? {
        Some(value)
            if value.is_instance_of::<PyBool>()
                || value.is_instance_of::<PyInt>()
                || value.is_instance_of::<PyFloat>() =>
        {
            scalar(value.as_borrowed(), must)
        }
        _ => Err(wrong(&object, must)),
    }
}

argument!(PhysicalArg(bool), "physical must be True or False");
argument!(RaggedArg(bool), "ragged must be True or False");

/// `order`: "C" or "F".
#[derive(Default)]
pub(super) struct OrderArg(pub(super) Order);

impl<'py> FromPyObject<'_, 'py> for OrderArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let must = "order must be \"C\", row-major, or \"F\", column-major";
        match object.extract::<&str>().map_err(|_| wrong(&object, must))? {
            "C" => Ok(Self(Order::RowMajor)),
            "F" => Ok(Self(Order::ColumnMajor)),
            other => Err(PyValueError::new_err(format!("{must}, got {other:?}"))),
        }
    }
}

/// The error for columns by position, or numbers as names.
const TEXTS: &str =
    "columns must be a list of names, and names are texts (pandas' 0 is called \"0\" in Arrow)";

/// `columns`: names, in the order of the result.
pub(super) struct ColumnsArg(pub(super) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for ColumnsArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let must = "columns must be a list of names";
        // A str is a sequence of str too, but never meant as one; sets have no order.
        let is_sequence = object.hasattr(intern!(object.py(), "__getitem__"))?
            && !object.is_instance_of::<PyString>()
            && !object.is_instance_of::<PyDict>();
        if !is_sequence {
            return Err(wrong(&object, must));
        }
        // PyO3's conversion to a vector allocates for as many as `__len__` claims, and panics if that is absurd.
        let mut names = Vec::new();
        for name in object.try_iter()? {
            let name = name?;
            names.push(name.extract().map_err(|_| {
                let is_number = name.hasattr(intern!(name.py(), "__index__")).unwrap_or(false);
                wrong(&object, if is_number { TEXTS } else { must })
            })?);
        }
        Ok(Self(names))
    }
}

/// `type`: the name of a representation, or any Arrow type, field or schema.
#[derive(Default)]
pub(super) struct TypeArg {
    representation: Representation,
    /// A name that stands for the default representation.
    expected: Option<&'static str>,
}

impl<'py> FromPyObject<'_, 'py> for TypeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let must = "type must be \"bool\", \"bool8\", \"float32\", \"opaque\", \"fixed_size_list\", \
                    \"fixed_shape_tensor\", or an Arrow type or field";
        if let Ok(name) = object.extract::<&str>() {
            let (representation, expected) = match name {
                "bool8" => (Representation::Bool8, None),
                "opaque" => (Representation::Opaque, None),
                "fixed_size_list" => (Representation::FixedSizeList, None),
                "bool" => (Representation::Canonical, Some("bool")),
                "float32" => (Representation::Canonical, Some("float32")),
                "fixed_shape_tensor" => (Representation::Canonical, Some("fixed_shape_tensor")),
                _ => return Err(PyValueError::new_err(format!("{must}, got {name:?}"))),
            };
            return Ok(Self { representation, expected });
        }
        let Some(method) = object.getattr_opt(intern!(object.py(), "__arrow_c_schema__"))? else {
            return Err(wrong(&object, must));
        };
        let capsule = method.call0()?.cast_into::<PyCapsule>().map_err(|_| wrong(&object, must))?;
        let field = arrow_capsule::schema_of(&capsule)?;
        Ok(Self { representation: Representation::Field(field), expected: None })
    }
}

impl TypeArg {
    /// The import options for these tensors, with the requested type for each.
    pub(super) fn import<'a>(
        self,
        tensors: impl IntoIterator<Item = &'a ManagedTensor>,
        copy: Option<bool>,
    ) -> PyResult<ImportOptions> {
        let Self { representation, expected } = self;
        let options = ImportOptions::default().with_copy(copy).with_representation(representation);
        let Some(name) = expected else { return Ok(options) };
        for tensor in tensors {
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
            if !is_met {
                return Err(PyValueError::new_err(format!(
                    "a tensor of dtype {} and {} axes does not become {name:?}, but {}",
                    tensor.dtype(),
                    tensor.ndim(),
                    type_name(&field)
                )));
            }
        }
        Ok(options)
    }
}

/// The options of an export.
pub(super) fn export(
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
    max_length: Option<usize>,
) -> PyResult<Option<PadOptions>> {
    match (pad, max_length) {
        (Some(PadArg(value)), max_length) => {
            Ok(Some(PadOptions::default().with_value(value).with_max_length(max_length)))
        }
        (None, Some(_)) => Err(pointless("max_length", "is for pad=")),
        (None, None) => Ok(None),
    }
}

/// The error for a keyword that means nothing here.
pub(super) fn pointless(keyword: &str, why: &str) -> PyErr {
    PyTypeError::new_err(format!("{keyword} {why}"))
}
