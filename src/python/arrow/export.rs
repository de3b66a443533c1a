//! Arrow arrays to Python, through the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use super::bound::{self, item_of};
use super::structs::{Checked, fenced};
use crate::chunks::{everything, reserve};
use crate::extension::Extension;

/// The pair of capsules that `__arrow_c_array__` returns.
pub(in crate::python) fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
    field: &Field,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let schema = schema_capsule(py, field)?;
    let array = FFI_ArrowArray::new(&array.to_data());
    Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
}

/// The capsule that `__arrow_c_schema__` returns.
pub(in crate::python) fn schema_capsule<'py>(
    py: Python<'py>,
    field: &Field,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field);
    let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The array cast to the type that a consumer requests, if each value survives a cast there and back.
///
/// arrow's casts refuse little (1.7 becomes 1, a time of day wraps), so a value that comes back different is
/// refused here, and so is a cast without an inverse. An extension type stays only if it was asked for: a
/// consumer that asks for its storage, as pyarrow does, gets that.
pub(in crate::python) fn as_requested(
    array: &ArrayRef,
    field: &FieldRef,
    requested: &Field,
) -> PyResult<(ArrayRef, FieldRef)> {
    let (stored, wanted) = (array.data_type(), requested.data_type());
    let refuse = |why: String| {
        PyValueError::new_err(format!("{stored} cannot be handed out as {wanted}: {why}"))
    };
    if !same_names(stored, wanted) {
        return Err(refuse("its fields have other names".to_owned()));
    }
    // The array itself has its own type, whatever is asked for.
    if has_reordered(field, requested) {
        return Err(refuse("the axes of its rows lie in another order".to_owned()));
    }
    let there = match stored {
        _ if stored == wanted => Arc::clone(array),
        // There are no values that could change, and arrow has no inverse cast.
        DataType::Null => cast(array, wanted).map_err(refuse)?,
        _ if is_other_zone(stored, wanted) => {
            let relabelled = array.to_data().into_builder().data_type(wanted.clone());
            fenced(|| Ok(make_array(relabelled.build()?))).map_err(refuse)?
        }
        _ => {
            let there = cast(array, wanted).map_err(refuse)?;
            if &cast(&there, stored).map_err(refuse)? != array {
                return Err(refuse("values would change".to_owned()));
            }
            there
        }
    };
    let mut metadata = field.metadata().clone();
    if stored != wanted || requested.extension_type_name() != field.extension_type_name() {
        metadata.retain(|key, _| !key.starts_with("ARROW:extension:"));
    }
    let field = Field::new(field.name(), wanted.clone(), field.is_nullable());
    Ok((there, Arc::new(field.with_metadata(metadata))))
}

/// Whether tensors of a fixed shape, in columns at any level, would have their axes in another order than they lie in.
fn has_reordered(stored: &Field, wanted: &Field) -> bool {
    let axes = |field: &Field| match Extension::of(field) {
        Ok(Some(Extension::FixedShapeTensor { shape, dimensions })) => {
            Some(dimensions.order(shape.len()))
        }
        _ => None,
    };
    let is_reordered = |stored: &Field, wanted: &Field| match (axes(stored), axes(wanted)) {
        (Some(stored), Some(wanted)) => {
            stored != wanted && !(stored.is_sorted() && wanted.is_sorted())
        }
        _ => has_reordered(stored, wanted),
    };
    let fields = |field: &Field| match field.data_type() {
        DataType::Struct(fields) => fields.to_vec(),
        other => item_of(other).cloned().into_iter().collect(),
    };
    fields(stored).iter().zip(&fields(wanted)).any(|(stored, wanted)| is_reordered(stored, wanted))
}

/// The values of an array as another type. A value that the type cannot hold is an error, which says why.
///
/// arrow's kernels abort the process when memory runs out, and a small input can have a huge result: so a cast runs only
/// if its result fits memory. `bound` computes the size.
fn cast(array: &dyn Array, wanted: &DataType) -> Checked<ArrayRef> {
    let from = array.data_type();
    if !can_cast_types(from, wanted) {
        return Err("there is no way from one to the other".to_owned());
    }
    if !bound::is_known(from, wanted) {
        return Err("the memory that the cast takes has no known bound".to_owned());
    }
    let array = &everything(array).map_err(|error| error.to_string())?;
    if reserve(bound::of_cast(array, wanted)).is_err() {
        return Err(format!("{} of them do not fit memory", array.len()));
    }
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    fenced(|| cast_with_options(array, wanted, &checked))
}

/// Whether both are instants of the same unit, which are the same numbers in every zone.
fn is_other_zone(one: &DataType, other: &DataType) -> bool {
    use DataType::Timestamp;
    matches!((one, other), (Timestamp(one, Some(_)), Timestamp(other, Some(_))) if one == other)
}

/// Whether the fields of structs have the same names, which arrow's casts, going by position, ignore.
fn same_names(one: &DataType, other: &DataType) -> bool {
    let same = |one: &Field, other: &Field| same_names(one.data_type(), other.data_type());
    match (one, other) {
        (DataType::Struct(one), DataType::Struct(other)) => {
            let pairs = || one.iter().zip(other);
            one.len() == other.len()
                && pairs().all(|(one, other)| one.name() == other.name() && same(one, other))
        }
        (DataType::Map(one, _), DataType::Map(other, _)) => same(one, other),
        _ => match (item_of(one), item_of(other)) {
            (Some(one), Some(other)) => same(one, other),
            _ => true,
        },
    }
}
