//! Arrow arrays to Python, through the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, ArrayRef, StructArray, cast::AsArray, make_array};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use super::casts::{self, bytes_of_cast, cast, is_leaf, there_and_back};
use super::schema::schema_of;
use super::structs::{ArrowArray, ArrowSchema, Checked, Structure, fenced};
use crate::arrow_types::{is_renamed, item_of};
use crate::chunks::{everything, reserve};
use crate::{Error, extension::Extension};

/// The pair of capsules that `__arrow_c_array__` returns.
pub(in crate::python) fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
    field: &Field,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let schema = schema_capsule(py, field)?;
    let array = FFI_ArrowArray::new(&array.to_data());
    Ok((schema, PyCapsule::new_with_value(py, array, ArrowArray::CAPSULE)?))
}

/// The capsule that `__arrow_c_schema__` returns.
pub(in crate::python) fn schema_capsule<'py>(
    py: Python<'py>,
    field: &Field,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = schema_of(field).map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, ArrowSchema::CAPSULE)
}

/// The array as the type that a consumer requests, if each value survives a cast there and back.
///
/// arrow's casts refuse little (1.7 becomes 1, a time of day wraps), so a value that comes back different is
/// refused here. An extension type stays only if it was asked for: a consumer that asks for its storage, as pyarrow
/// does, gets that.
pub(in crate::python) fn as_requested(
    array: &ArrayRef,
    field: &FieldRef,
    requested: &Field,
) -> PyResult<(ArrayRef, FieldRef)> {
    let (stored, wanted) = (array.data_type(), requested.data_type());
    // The array itself has its own type, whatever is asked for.
    if let Some(why) = misread(field, requested) {
        return Err(PyValueError::new_err(refusal(stored, wanted, why)));
    }
    let there = handed_out(array, wanted, false).map_err(PyValueError::new_err)?;
    let mut metadata = field.metadata().clone();
    if stored != wanted || requested.extension_type_name() != field.extension_type_name() {
        metadata.retain(|key, _| !key.starts_with("ARROW:extension:"));
    }
    let field = Field::new(field.name(), wanted.clone(), field.is_nullable());
    let field = field.with_dict_is_ordered(requested.dict_is_ordered().unwrap_or(false));
    Ok((there, Arc::new(field.with_metadata(metadata))))
}

fn refusal(stored: &DataType, wanted: &DataType, why: &str) -> String {
    format!("{stored} cannot be handed out as {wanted}: {why}")
}

/// Why the storage of one type is not that of the other, in columns at any level: what an extension type means is
/// none of a cast's.
fn misread(stored: &Field, wanted: &Field) -> Option<&'static str> {
    let of = |field: &Field| Extension::of(field).ok().flatten();
    let (own, other) = (of(stored), of(wanted));
    let (from, to) = (stored.data_type(), wanted.data_type());
    if let (
        Some(Extension::FixedShapeTensor { shape, dimensions }),
        Some(Extension::FixedShapeTensor { shape: wanted, dimensions: order }),
    ) = (&own, &other)
    {
        let orders = [dimensions.order(shape.len()), order.order(wanted.len())];
        let is_one_order = orders[0] == orders[1] || orders.iter().all(|order| order.is_sorted());
        return match shape == wanted {
            _ if !is_one_order => Some("the axes of its rows lie in another order"),
            false => Some("its rows have another shape"),
            true if !is_renamed(from, to, |_, _| true) => {
                Some("to_tensor(x, dtype=...) makes numbers of another type")
            }
            true => None,
        };
    }
    let is_text = |of: &DataType| of.is_string() || of.is_binary();
    let is_bool = own == Some(Extension::Bool8) && *to == DataType::Boolean;
    match (&own, &other) {
        (Some(_), Some(_)) if !Extension::is_one(stored, wanted) => {
            Some("it is of another extension type")
        }
        (None, None) => {
            let fields = |field: &Field| match field.data_type() {
                DataType::Struct(fields) => fields.to_vec(),
                other => item_of(other).cloned().into_iter().collect(),
            };
            let (stored, wanted) = (fields(stored), fields(wanted));
            stored.iter().zip(&wanted).find_map(|(stored, wanted)| misread(stored, wanted))
        }
        _ if from == to || is_bool || (is_text(from) && is_text(to)) => None,
        (Some(Extension::FixedShapeTensor { .. }), None) if item_of(to).is_some() => Some(
            "the storage of an extension type is cast to no other type, and to_tensor(x, dtype=...) makes numbers of one",
        ),
        _ => Some("the storage of an extension type is cast to no other type"),
    }
}

/// The values of an array as another type. An error says which type cannot be handed out as which, and why.
///
/// `in_table` says that it is a column of a table, or a field of structs, which are no arrays to their owner.
fn handed_out(array: &ArrayRef, wanted: &DataType, in_table: bool) -> Checked<ArrayRef> {
    let stored = array.data_type();
    let refuse = |why: String| refusal(stored, wanted, &why);
    // The interface has one word for all that fails.
    let failed = |error: Error| match error {
        Error::OutOfMemory { .. } => refuse(format!("{} of them do not fit memory", array.len())),
        error => refuse(error.to_string()),
    };
    match (stored, wanted) {
        _ if stored == wanted => Ok(Arc::clone(array)),
        (DataType::Struct(own), DataType::Struct(fields)) => {
            if !have_same_names(own, fields) {
                return Err(refuse("its fields have other names, or another order".to_owned()));
            }
            let rows = array.as_struct();
            let columns = rows.columns().iter().zip(fields).map(|(column, field)| {
                let column = handed_out(column, field.data_type(), true);
                column.map_err(|why| format!("in field {:?}, {why}", field.name()))
            });
            let columns = columns.collect::<Checked<_>>()?;
            let (fields, nulls) = (fields.clone(), rows.nulls().cloned());
            let made = || StructArray::try_new_with_length(fields, columns, nulls, rows.len());
            Ok(Arc::new(fenced(made).map_err(refuse)?))
        }
        // There are no values that could change.
        (DataType::Null, _) => casts::nulls(wanted, array.len()).map_err(failed),
        (DataType::Timestamp(..), DataType::Date64) => Err(refuse(
            "a date64 is of whole days: pyarrow.array(x).cast(type) cuts them".to_owned(),
        )),
        // A day begins at another instant in each zone, and which one is meant is not said.
        (DataType::Date32 | DataType::Date64, DataType::Timestamp(_, Some(_))) => {
            Err(refuse("a date is no instant of a zone".to_owned()))
        }
        // Instants of one unit are the same numbers in every zone.
        (DataType::Timestamp(one, Some(_)), DataType::Timestamp(other, Some(_)))
            if one == other =>
        {
            let relabelled = array.to_data().into_builder().data_type(wanted.clone());
            fenced(|| Ok(make_array(relabelled.build()?))).map_err(refuse)
        }
        (DataType::Dictionary(_, values), _) if is_leaf(values) && is_leaf(wanted) => {
            let array = everything(array).map_err(failed)?;
            reserve(bytes_of_cast(&array, values)).map_err(failed)?;
            leaf(&cast(&array, values).map_err(failed)?, wanted).map_err(failed)
        }
        _ if is_leaf(stored) && is_leaf(wanted) => {
            leaf(&everything(array).map_err(failed)?, wanted).map_err(failed)
        }
        _ if is_renamed(stored, wanted, |_, _| true) => cast(array, wanted).map_err(failed),
        _ => Err(refuse(match way_out(stored, wanted, in_table) {
            Some(way_out) => format!("take it as it is, and then {way_out}"),
            None => "no cast of one to the other is known".to_owned(),
        })),
    }
}

/// What casts the array instead, if something does.
fn way_out(stored: &DataType, wanted: &DataType, in_table: bool) -> Option<&'static str> {
    use DataType::{Dictionary, Int32, RunEndEncoded};
    match (stored, wanted) {
        _ if casts_in_pyarrow(stored, wanted) => Some(match in_table {
            true => "pyarrow.table(x).cast(schema)",
            false => "pyarrow.array(x).cast(type)",
        }),
        _ if in_table => None,
        (RunEndEncoded(_, values), _) if values.data_type() == wanted => {
            Some("pyarrow.compute.run_end_decode(pyarrow.array(x))")
        }
        (_, RunEndEncoded(ends, values))
            if ends.data_type() == &Int32 && values.data_type() == stored =>
        {
            Some("pyarrow.compute.run_end_encode(pyarrow.array(x))")
        }
        (_, Dictionary(codes, values)) if **codes == Int32 && **values == *stored => {
            Some("pyarrow.array(x).dictionary_encode()")
        }
        _ => None,
    }
}

/// Whether pyarrow has a cast of what is nested or a dictionary, as far as the types tell.
fn casts_in_pyarrow(stored: &DataType, wanted: &DataType) -> bool {
    use DataType::{Binary, LargeBinary, LargeUtf8, Utf8};
    use DataType::{Dictionary, FixedSizeList, LargeList, List, Map, Struct};
    let is_number = |of: &DataType| of.is_numeric() || of == &DataType::Boolean;
    let is_text = |of: &DataType| of.is_string() || of.is_binary();
    match (stored, wanted) {
        (Dictionary(_, own), Dictionary(_, other)) => {
            own == other || (is_text(own) && is_text(other))
        }
        (Dictionary(_, values), _) => is_leaf(values) && casts_in_pyarrow(values, wanted),
        (Utf8 | LargeUtf8 | Binary | LargeBinary, Dictionary(_, values)) => is_text(values),
        (FixedSizeList(_, one), FixedSizeList(_, other)) if one != other => false,
        (Struct(own), Struct(others)) => {
            let mut pairs = own.iter().zip(others);
            have_same_names(own, others)
                && pairs.all(|(one, other)| casts_within(one.data_type(), other.data_type()))
        }
        (
            List(one) | LargeList(one) | FixedSizeList(one, _),
            List(other) | LargeList(other) | FixedSizeList(other, _),
        )
        | (Map(one, _), Map(other, _)) => casts_within(one.data_type(), other.data_type()),
        _ => {
            stored == wanted
                || (is_number(stored) && is_number(wanted))
                || (is_text(stored) && is_text(wanted))
        }
    }
}

/// The same of values in lists and structs, in which pyarrow makes no dictionaries.
fn casts_within(stored: &DataType, wanted: &DataType) -> bool {
    let is_coded = matches!(wanted, DataType::Dictionary(..));
    stored == wanted || (!is_coded && casts_in_pyarrow(stored, wanted))
}

/// Values without children as others. A value that comes back different from a cast there and back is an error.
fn leaf(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Error> {
    let stored = array.data_type();
    if stored == wanted {
        return Ok(Arc::clone(array));
    }
    match of_zone(stored, wanted) {
        Some(way_out) => Err(Error::InvalidArray(way_out.to_owned())),
        None => there_and_back(array, wanted),
    }
}

/// Why times of a zone are no other values, and back. Which zones arrow's casts know depends on the features that it was
/// built with.
fn of_zone(stored: &DataType, wanted: &DataType) -> Option<&'static str> {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    let is_day_or_text =
        |of: &DataType| of.is_string() || matches!(of, Date32 | Date64 | Time32(_) | Time64(_));
    match (stored, wanted) {
        (Timestamp(_, None), Timestamp(_, Some(_))) => Some(
            "whether the times are those of UTC or of the zone is not said: pyarrow's cast takes them for UTC's, and \
             pyarrow.compute.assume_timezone for the zone's",
        ),
        (Timestamp(_, Some(_)), Timestamp(_, None)) => Some(
            "whether times of UTC or of the zone are meant is not said: pyarrow's cast gives UTC's, and \
             pyarrow.compute.local_timestamp the zone's",
        ),
        (Timestamp(_, Some(_)), other) if is_day_or_text(other) => {
            Some("take it as it is, and then cast it in pyarrow, which knows the zone")
        }
        (text, Timestamp(_, Some(_))) if text.is_string() => Some(
            "pyarrow's cast reads texts that have an offset, such as 2020-01-01T00:00:00+00:00",
        ),
        _ => None,
    }
}

/// Whether the fields of structs have the same names in the same order.
fn have_same_names(one: &Fields, other: &Fields) -> bool {
    one.iter().map(|field| field.name()).eq(other.iter().map(|field| field.name()))
}
