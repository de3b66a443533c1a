//! Arrow's canonical extension types in field metadata.
//!
//! Source: <https://arrow.apache.org/docs/format/CanonicalExtensions.html>. The tensor types of arrow-schema are not
//! used: they have the JSON key `permutations` where the specification and pyarrow have `permutation`, and they
//! refuse the nullable child that pyarrow makes.

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};
use serde_json::{Map, Value, json};

use crate::{Error, ffi::DLDataType};

/// The extension type of a field.
///
/// ```
/// use arrow_dlpack::extension::{Dimensions, Extension};
/// use arrow_schema::{DataType, Field};
///
/// let item = Field::new("item", DataType::Float32, true);
/// let images = Field::new_fixed_size_list("images", item, 3 * 32 * 32, false);
/// let images = Extension::FixedShapeTensor {
///     shape: vec![3, 32, 32],
///     dimensions: Dimensions::default(),
/// }
/// .annotate(images);
/// assert_eq!(images.extension_type_name(), Some("arrow.fixed_shape_tensor"));
/// assert_eq!(images.extension_type_metadata(), Some(r#"{"shape":[3,32,32]}"#));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extension {
    /// `arrow.bool8`: a boolean of one byte, true unless it is 0.
    Bool8,
    /// `arrow.fixed_shape_tensor`: one tensor per row, all of the same shape.
    FixedShapeTensor {
        /// Extents of one row's tensor in memory, row-major.
        shape: Vec<i64>,
        /// Permutation and names of the axes.
        dimensions: Dimensions,
    },
    /// `arrow.variable_shape_tensor`: one tensor per row, each with its own shape.
    VariableShapeTensor {
        /// Number of axes of each tensor.
        ndim: usize,
        /// Permutation and names of the axes.
        dimensions: Dimensions,
    },
    /// `arrow.opaque`: values of a type of another system, unknown to Arrow.
    Opaque {
        /// The type's name in that system.
        type_name: String,
        /// The system's name.
        vendor_name: String,
    },
    /// Any other extension type, by name.
    Other(String),
}

/// Permutation and names of a tensor's axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dimensions {
    /// Logical axis `i` is the physical axis `permutation[i]`; `None` for the identity.
    pub permutation: Option<Vec<usize>>,
    /// Names of the physical axes.
    pub names: Option<Vec<String>>,
}

/// The vendor name of [`Extension::Opaque`] for DLPack's dtypes, whose type names are those of `ml_dtypes` or NumPy.
pub const VENDOR: &str = "dlpack";

const BOOL8: &str = "arrow.bool8";
const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";
const VARIABLE_SHAPE_TENSOR: &str = "arrow.variable_shape_tensor";
const OPAQUE: &str = "arrow.opaque";

impl Extension {
    /// Reads the extension type of a field and checks it against the storage type; `None` if there is none.
    ///
    /// ```
    /// use arrow_dlpack::extension::Extension;
    /// use arrow_schema::{DataType, Field};
    ///
    /// let field = Field::new("x", DataType::Int8, false);
    /// assert_eq!(Extension::of(&field)?, None);
    /// assert_eq!(Extension::of(&Extension::Bool8.annotate(field))?, Some(Extension::Bool8));
    /// let texts = Extension::Bool8.annotate(Field::new("x", DataType::Utf8, false));
    /// assert!(Extension::of(&texts).is_err());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `MalformedExtension` if the metadata violates the specification, or does not fit the storage type.
    pub fn of(field: &Field) -> Result<Option<Self>, Error> {
        let Some(name) = field.extension_type_name() else { return Ok(None) };
        let storage = field.data_type();
        let metadata = field.extension_type_metadata().unwrap_or_default();
        let extension = match name {
            BOOL8 => bool8(storage),
            FIXED_SHAPE_TENSOR => fixed_shape_tensor(metadata, storage),
            VARIABLE_SHAPE_TENSOR => variable_shape_tensor(metadata, storage),
            OPAQUE => opaque(metadata),
            other => Ok(Self::Other(other.to_owned())),
        };
        extension
            .map(Some)
            .map_err(|problem| Error::MalformedExtension { name: name.to_owned(), problem })
    }

    /// `arrow.opaque` for elements of a dtype.
    ///
    /// ```
    /// use arrow_dlpack::{extension::Extension, ffi::DLDataType};
    /// use arrow_schema::{DataType, Field};
    ///
    /// let field = Field::new("x", DataType::FixedSizeBinary(2), false);
    /// let field = Extension::opaque(DLDataType::BFLOAT16).annotate(field);
    /// let metadata = r#"{"type_name":"bfloat16","vendor_name":"dlpack"}"#;
    /// assert_eq!(field.extension_type_metadata(), Some(metadata));
    /// ```
    #[must_use]
    pub fn opaque(dtype: DLDataType) -> Self {
        Self::Opaque { type_name: dtype.to_string(), vendor_name: VENDOR.to_owned() }
    }

    /// The DLPack dtype that `arrow.opaque` names, if any. An unknown name, such as that of a dtype of a later
    /// DLPack, is treated as that of another vendor.
    pub(crate) fn dtype(&self) -> Option<DLDataType> {
        match self {
            Self::Opaque { type_name, vendor_name } if vendor_name == VENDOR => {
                type_name.parse().ok()
            }
            _ => None,
        }
    }

    /// The same for values that are stored as their bits, such as bfloat16 as integers: the numbers of the storage are
    /// others. Both parts of a complex number are stored as what they are.
    #[cfg(feature = "pyo3")]
    pub(crate) fn dtype_of_bits(field: &Field) -> Option<DLDataType> {
        let dtype = Self::of(field).ok().flatten()?.dtype();
        dtype.filter(|_| !matches!(field.data_type(), DataType::FixedSizeList(..)))
    }

    /// Whether both fields are of one extension type. Of types that Arrow has not, as pandas's periods, the metadata says
    /// whether they are days or months; it is compared as JSON, of which each library has a text of its own.
    #[cfg(feature = "pyo3")]
    pub(crate) fn is_one(one: &Field, other: &Field) -> bool {
        let metadata = |field: &Field| {
            let text = field.extension_type_metadata().unwrap_or_default();
            match serde_json::from_str(text) {
                Ok(Value::Object(members)) if members.is_empty() => Value::from(""),
                Ok(value) => value,
                Err(_) => Value::from(text),
            }
        };
        let is_one_name = one.extension_type_name() == other.extension_type_name();
        match (Self::of(one), Self::of(other)) {
            (Ok(Some(Self::Other(_))), _) | (Err(_), _) => {
                is_one_name && metadata(one) == metadata(other)
            }
            (Ok(one), Ok(other)) => one == other,
            (Ok(_), Err(_)) => false,
        }
    }

    /// Whether values of the type have a tensor form of their own.
    pub(crate) fn is_of_tensors(&self) -> bool {
        match self {
            Self::Other(_) => false,
            Self::Opaque { .. } => self.dtype().is_some(),
            _ => true,
        }
    }

    /// Sets the extension type of a field, in place of any other. Other metadata is kept.
    ///
    /// ```
    /// use arrow_dlpack::extension::Extension;
    /// use arrow_schema::{DataType, Field};
    ///
    /// let field = Extension::Bool8.annotate(Field::new("x", DataType::Int8, false));
    /// assert_eq!(field.extension_type_name(), Some("arrow.bool8"));
    /// ```
    #[must_use]
    pub fn annotate(&self, field: Field) -> Field {
        let (name, text) = match self {
            Self::Bool8 => (BOOL8, Some(String::new())),
            Self::FixedShapeTensor { shape, dimensions } => {
                let mut map = dimensions.to_json();
                map.insert("shape".to_owned(), shape.as_slice().into());
                (FIXED_SHAPE_TENSOR, Some(Value::Object(map).to_string()))
            }
            Self::VariableShapeTensor { dimensions, .. } => {
                (VARIABLE_SHAPE_TENSOR, Some(Value::Object(dimensions.to_json()).to_string()))
            }
            Self::Opaque { type_name, vendor_name } => {
                let map = json!({ "type_name": type_name, "vendor_name": vendor_name });
                (OPAQUE, Some(map.to_string()))
            }
            Self::Other(name) => (name.as_str(), None),
        };
        let mut metadata = field.metadata().clone();
        metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
        match text {
            Some(text) => metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), text),
            None => metadata.remove(EXTENSION_TYPE_METADATA_KEY),
        };
        field.with_metadata(metadata)
    }
}

impl Dimensions {
    /// The order of `ndim` axes: by default that of memory.
    pub(crate) fn order(&self, ndim: usize) -> Vec<usize> {
        self.permutation.clone().unwrap_or_else(|| (0..ndim).collect())
    }

    fn from_json(map: &Map<String, Value>, ndim: usize) -> Result<Self, String> {
        let permutation = list(map, "permutation", |value| usize::try_from(value.as_u64()?).ok())?;
        if let Some(axes) = &permutation {
            let mut sorted = axes.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..ndim) {
                return Err(format!("{axes:?} is not a permutation of {ndim} axes"));
            }
        }
        let names = list(map, "dim_names", |value| value.as_str().map(str::to_owned))?;
        match names {
            Some(names) if names.len() != ndim => {
                Err(format!("it has {} dim_names for {ndim} axes", names.len()))
            }
            names => Ok(Self { permutation, names }),
        }
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if let Some(names) = &self.names {
            map.insert("dim_names".to_owned(), names.as_slice().into());
        }
        if let Some(permutation) = &self.permutation {
            map.insert("permutation".to_owned(), permutation.as_slice().into());
        }
        map
    }
}

fn bool8(storage: &DataType) -> Result<Extension, String> {
    match storage {
        DataType::Int8 => Ok(Extension::Bool8),
        other => Err(format!("it is stored as {other}, not as Int8")),
    }
}

fn fixed_shape_tensor(metadata: &str, storage: &DataType) -> Result<Extension, String> {
    let map = object(metadata)?;
    let extent = |value: &Value| value.as_i64().filter(|&extent| extent >= 0);
    let shape = list(&map, "shape", extent)?.ok_or("it has no shape")?;
    let DataType::FixedSizeList(_, size) = storage else {
        return Err(format!("it is stored as {storage}, not as a FixedSizeList"));
    };
    let count =
        crate::layout::element_count(&shape).ok().and_then(|count| i32::try_from(count).ok());
    if count != Some(*size) {
        return Err(format!("shape {shape:?} does not have the {size} values of a row"));
    }
    let dimensions = Dimensions::from_json(&map, shape.len())?;
    Ok(Extension::FixedShapeTensor { shape, dimensions })
}

fn variable_shape_tensor(metadata: &str, storage: &DataType) -> Result<Extension, String> {
    let map = if metadata.is_empty() { Map::new() } else { object(metadata)? };
    let wrong = || format!("it is stored as {storage}, not as a Struct of data and shape");
    let DataType::Struct(fields) = storage else { return Err(wrong()) };
    let child = |name| fields.find(name).map(|(_, field)| field.data_type());
    match (child("data"), child("shape")) {
        (
            Some(DataType::List(_) | DataType::LargeList(_)),
            Some(DataType::FixedSizeList(extent, ndim)),
        ) if *extent.data_type() == DataType::Int32 => {
            let ndim = usize::try_from(*ndim).map_err(|_| wrong())?;
            let dimensions = Dimensions::from_json(&map, ndim)?;
            Ok(Extension::VariableShapeTensor { ndim, dimensions })
        }
        _ => Err(wrong()),
    }
}

fn opaque(metadata: &str) -> Result<Extension, String> {
    let map = object(metadata)?;
    let text = |key: &str| match map.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(format!("it has no {key}")),
    };
    Ok(Extension::Opaque { type_name: text("type_name")?, vendor_name: text("vendor_name")? })
}

fn object(metadata: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(metadata) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(format!("its metadata {metadata:?} is not a JSON object")),
    }
}

/// The list under a key; `None` if there is none; an error if `read` refuses an element.
fn list<T>(
    map: &Map<String, Value>,
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, String> {
    let wrong = |value: &Value| format!("its {key} is {value}");
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::Array(items)) => {
            items.iter().map(read).collect::<Option<_>>().map(Some).ok_or_else(|| wrong(value))
        }
        Some(value) => Err(wrong(value)),
    }
}
