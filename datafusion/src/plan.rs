//! Planning: the types of the arguments and of the result.
//!
//! To check an argument, an empty array of its type is exported.

use std::num::NonZero;
use std::sync::Arc;

use arrow_dlpack::export::{self, Source};
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode as Code};
use arrow_dlpack::{Error, ExportOptions, Hint, ImportOptions, ManagedTensor, NullPolicy, import};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion_expr::Signature;

use crate::nulls::may_have_nulls;
use crate::{Input, Nulls, Output, TensorUdf};

/// A validated description.
pub(crate) struct Declared {
    pub(crate) udf: Arc<TensorUdf>,
    pub(crate) signature: Signature,
    /// The field of the result, without name and nullability.
    pub(crate) output: FieldRef,
}

impl Declared {
    pub(crate) fn new(udf: TensorUdf) -> Result<Self> {
        let name = &udf.name;
        if name.is_empty() {
            return plan_err!("a function needs a name");
        }
        if udf.inputs.is_empty() {
            return plan_err!("{name}: a function of tensors needs an input");
        }
        if udf.batch_rows == Some(0) {
            return plan_err!("{name}: batches must have at least one row");
        }
        for input in &udf.inputs {
            check_input(input, udf.nulls)
                .map_err(|problem| plan_datafusion_err!("{name}: {:?}: {problem}", input.name))?;
        }
        let output = output_field(&udf.output)
            .map_err(|error| plan_datafusion_err!("{name}: its output: {error}"))?;
        let arguments: Vec<_> = udf.inputs.iter().flat_map(Input::arguments).cloned().collect();
        let signature = Signature::user_defined(udf.volatility).with_parameter_names(arguments)?;
        Ok(Self { udf: Arc::new(udf), signature, output })
    }

    /// Each argument's name, with its input.
    fn arguments(&self) -> impl Iterator<Item = (&str, &Input)> {
        self.udf.inputs.iter().flat_map(|input| {
            input.arguments().iter().map(move |argument| (argument.as_str(), input))
        })
    }

    /// The types to which DataFusion casts the arguments. A type that cannot be cast stays, and [`Self::result`],
    /// which knows the fields' extension types, refuses it.
    pub(crate) fn coerce(&self, given: &[DataType]) -> Vec<DataType> {
        let mut arguments = self.arguments();
        let coerced = given.iter().map(|data_type| {
            let coerced = arguments
                .next()
                .and_then(|(_, input)| coerced(data_type, input.dtype, input.row()));
            coerced.unwrap_or_else(|| data_type.clone())
        });
        coerced.collect()
    }

    /// The field of the result for arguments of these fields; an error if they do not fit the inputs.
    pub(crate) fn result(&self, given: &[FieldRef]) -> Result<FieldRef> {
        let name = &self.udf.name;
        let names: Vec<_> = self.arguments().map(|(name, _)| name).collect();
        if names.len() != given.len() {
            let arguments = if names.len() == 1 { "argument" } else { "arguments" };
            let (takes, names) = (names.len(), names.join(", "));
            return plan_err!("{name} takes {takes} {arguments} ({names}), not {}", given.len());
        }
        for ((argument, input), field) in self.arguments().zip(given) {
            check(field, input, self.udf.nulls).map_err(|problem| {
                let (dtype, shape, data_type) = (input.dtype, input.row(), field.data_type());
                let rows = if shape.is_empty() { String::new() } else { format!(" {shape:?}") };
                plan_datafusion_err!(
                    "{name}: argument {argument:?} takes {dtype}{rows} a row, not {data_type}: {problem}"
                )
            })?;
        }
        let nulls = self.udf.nulls == Nulls::Propagate && given.iter().any(|f| may_have_nulls(f));
        Ok(Arc::new(self.output.as_ref().clone().with_name(name).with_nullable(nulls)))
    }

    /// The error of a conversion, as a DataFusion error.
    pub(crate) fn failed(&self, what: &str, error: Error) -> DataFusionError {
        let name = &self.udf.name;
        let text = match error {
            Error::Column { name: column, error } => {
                return self.failed(&format!("{column:?}"), *error);
            }
            Error::Nulls { null_count, len, .. } | Error::NullsInRows { null_count, len, .. } => {
                let nulls = if null_count == 1 { "null" } else { "nulls" };
                format!("{what} has {null_count} {nulls} in {len} values, which {name} refuses")
            }
            error => format!("{name}: {what}: {error}"),
        };
        DataFusionError::Execution(text)
    }
}

impl Nulls {
    /// The options with which an input is exported.
    pub(crate) fn export(self, dtype: DLDataType) -> ExportOptions {
        let nulls = match self {
            Self::Propagate => NullPolicy::Refuse,
            Self::Tensor(policy) => policy,
        };
        // The engine runs a query on all cores already.
        let alone = ExportOptions::default().with_threads(NonZero::new(1));
        alone.with_nulls(nulls).with_dtype(dtype)
    }
}

/// An empty tensor of the field's type.
fn no_rows(field: &Field, options: &ExportOptions) -> Result<ManagedTensor, Error> {
    Ok(export::prepare(Source::Chunks(&[], field), options)?.run()?.values)
}

/// Checks that tensors of an input's dtype and shape can exist; the error says why they cannot.
fn check_input(input: &Input, nulls: Nulls) -> Result<(), String> {
    if input.arguments().is_empty() {
        return Err("a matrix needs a column".to_owned());
    }
    let tensor = storage(input.dtype, &input.shape).and_then(|data_type| {
        no_rows(&Field::new("", data_type, true), &nulls.export(input.dtype))
    });
    tensor.map(drop).map_err(|error| error.to_string())
}

/// The field of the result, without name and nullability.
fn output_field(output: &Output) -> Result<FieldRef, Error> {
    let data_type = storage(output.dtype, &output.shape)?;
    let tensor = no_rows(&Field::new("", data_type, false), &ExportOptions::default())?;
    let representation = output.representation.clone();
    import::field(&tensor, &ImportOptions::default().with_representation(representation))
}

/// Checks that a field fits an input; the error says why it does not.
fn check(field: &Field, input: &Input, nulls: Nulls) -> Result<(), String> {
    let natural = ExportOptions::default().with_nulls(NullPolicy::Masked);
    let Ok(tensor) = no_rows(field, &natural) else {
        return Err("cast it to numbers".to_owned());
    };
    if !becomes(tensor.dtype(), input.dtype) {
        return Err("cast it explicitly, because values may not fit".to_owned());
    }
    let shape = tensor.shape().get(1..).unwrap_or_default();
    if shape != input.row() && !is_flat(field, input) {
        return Err(match shape {
            [] => "it has one value a row".to_owned(),
            shape => format!("its rows have shape {shape:?}"),
        });
    }
    no_rows(field, &nulls.export(input.dtype)).map(drop).map_err(|error| error.to_string())
}

/// Whether a field is of fixed-size lists with as many values as the input's rows, without metadata about the shape.
/// That is a tensor column that has lost its metadata, as in `CASE`, `max` or a Parquet file: the input has the
/// shape.
pub(crate) fn is_flat(field: &Field, input: &Input) -> bool {
    let DataType::FixedSizeList(item, size) = field.data_type() else { return false };
    let row = input.row();
    row.len() > 1
        && !item.data_type().is_nested()
        && field.extension_type_name().is_none()
        && item.extension_type_name().is_none()
        && count(row) == Some(*size)
}

/// Number of values in a row of this shape.
fn count(row: &[i64]) -> Option<i32> {
    let count = row.iter().try_fold(1_i64, |count, extent| count.checked_mul(*extent))?;
    i32::try_from(count).ok()
}

/// Whether elements are cast implicitly: only precision may be lost, or the query fails.
fn becomes(from: DLDataType, to: DLDataType) -> bool {
    let whole = matches!(from.code, Code::INT | Code::UINT | Code::BOOL);
    match to.code {
        Code::FLOAT => from.code != Code::COMPLEX,
        Code::INT | Code::UINT => whole,
        _ => from == to,
    }
}

/// The type to which an argument is cast: dictionaries to their values, numbers to others, lists to fixed-size lists,
/// nested like the rows or flat. Fixed-size lists are not cast by DataFusion, which would drop the extension type:
/// their elements are converted by the export. `None` if there is no such type.
fn coerced(from: &DataType, dtype: DLDataType, row: &[i64]) -> Option<DataType> {
    match (from, row) {
        (DataType::Null, _) => storage(dtype, row).ok(),
        (DataType::Dictionary(_, values), _) => coerced(values, dtype, row),
        (DataType::FixedSizeList(..), _) => Some(from.clone()),
        (DataType::List(item) | DataType::LargeList(item), [size, row @ ..]) => {
            let whole = || count(&[&[*size], row].concat());
            let (size, row) = match item.data_type().is_nested() {
                true => (i32::try_from(*size).ok()?, row),
                false => (whole()?, &[][..]),
            };
            let data_type = coerced(item.data_type(), dtype, row)?;
            let item = Arc::new(item.as_ref().clone().with_data_type(data_type));
            Some(DataType::FixedSizeList(item, size))
        }
        (number, []) => {
            let elements = match number {
                DataType::Boolean => Some(DLDataType::BOOL),
                number if number.is_decimal() => Some(DLDataType::FLOAT64),
                number => DLDataType::from_arrow(number),
            };
            elements.filter(|&elements| becomes(elements, dtype))?;
            element(dtype)
        }
        _ => None,
    }
}

/// The Arrow type of a tensor's elements.
fn element(dtype: DLDataType) -> Option<DataType> {
    if dtype == DLDataType::BOOL { Some(DataType::Boolean) } else { dtype.to_arrow() }
}

/// The Arrow type of a tensor's rows: a fixed-size list for each axis.
fn storage(dtype: DLDataType, row: &[i64]) -> Result<DataType, Error> {
    let hint = Hint::Text("functions take and return numbers of 8 to 64 bits, and booleans");
    let element = element(dtype).ok_or(Error::UnsupportedDtype { dtype, hint })?;
    row.iter().rev().try_fold(element, |item, &extent| {
        let size = i32::try_from(extent);
        let size = size.map_err(|_| Error::RowTooLarge { shape: row.to_vec() })?;
        let item = Field::new(Field::LIST_FIELD_DEFAULT_NAME, item, true);
        Ok(DataType::FixedSizeList(Arc::new(item), size))
    })
}
