//! Arrow columns of a request as the types that the encoder was trained with, if no value changes.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array, cast::AsArray, make_array, new_empty_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef};
use arrow_select::take::take;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};

use super::axes::{Axes, flat, nested};
use crate::Error;
use crate::arrow_types::item_of;
use crate::chunks::{check_taken, checked, everything, fields_of, footprint, reserve};
use crate::extension::Extension;
use crate::ffi::DLDataType;
use crate::python::arrow::casts::{self, bytes_of_cast, cast, there_and_back};
use crate::python::field::type_with_extension;
use crate::python::preview::preview;

/// Why a column is refused.
pub(super) enum Mismatch {
    /// Values of its type are others in training.
    Type(String),
    /// A value changes.
    Value(String),
    /// A field of structs is missing.
    Missing(String),
    /// There is no memory for it, whatever the values are.
    OutOfMemory(Error),
}

/// What a cast refuses is a value; `told` says it in other words than arrow's.
fn of_values(error: Error, told: impl FnOnce(String) -> String) -> Mismatch {
    match error {
        Error::OutOfMemory { .. } => Mismatch::OutOfMemory(error),
        error => Mismatch::Value(told(error.to_string())),
    }
}

impl From<Error> for Mismatch {
    fn from(error: Error) -> Self {
        of_values(error, |why| why)
    }
}

impl Mismatch {
    /// The exception for a column of this name.
    pub(super) fn of_column(self, name: &str) -> PyErr {
        match self {
            Self::Type(why) => PyTypeError::new_err(format!("column {name:?}: {why}")),
            Self::Value(why) => PyValueError::new_err(format!("column {name:?}: {why}")),
            Self::Missing(why) => PyKeyError::new_err(format!("column {name:?}: {why}")),
            Self::OutOfMemory(error) => Error::in_column(name, error).into(),
        }
    }
}

type Conformed = Result<ArrayRef, Mismatch>;

/// The values of an array, of this field in the request, as the type of the other field.
pub(super) fn conformed(array: &ArrayRef, own: &Field, trained: &Field) -> Conformed {
    conformed_cells(array, own, trained, "row")
}

/// cell: what a value is counted as, "row", or "item" of all lists.
fn conformed_cells(array: &ArrayRef, own: &Field, trained: &Field, cell: &str) -> Conformed {
    let (from, to) = (own.data_type(), trained.data_type());
    let refuse = || {
        // What pyarrow casts of a dtype that Arrow has not is the bits.
        let way_from_bits = || {
            Extension::dtype_of_bits(own)?;
            Some(": to_tensor(x, dtype=\"float32\") has its numbers".to_owned())
        };
        let way_of_bits = Extension::dtype_of_bits(trained).map(way_to_bits).or_else(way_from_bits);
        let way_out =
            way_of_bits.unwrap_or_else(|| way_of_extensions(own, trained, way_out(from, to)));
        let (own, trained) = (Arc::new(own.clone()), Arc::new(trained.clone()));
        let [own, trained] = match [type_with_extension(&own), type_with_extension(&trained)] {
            // What differs is in the metadata, such as the shape of a tensor.
            [one, other] if one == other => [&own, &trained].map(|field| {
                format!("{one} {}", field.extension_type_metadata().unwrap_or_default())
            }),
            told => told,
        };
        Mismatch::Type(format!("it is {own}, and was {trained} in training{way_out}"))
    };
    // Of a column without values pandas makes floats or times without a zone, which are all null then.
    let is_of_nulls = from.is_floating() || matches!(from, DataType::Timestamp(_, None));
    let are_nulls = || is_of_nulls && array.null_count() == array.len();
    if *from == DataType::Null || (!array.is_empty() && are_nulls()) {
        return nulls(to, array.len());
    }
    if let Some((array, own)) = with_axes_of(array, own, trained, cell)? {
        return conformed_cells(&array, &own, trained, cell);
    }
    if !is_one_meaning(own, trained) {
        return match (Extension::of(own), Extension::of(trained), from, to) {
            (Ok(Some(Extension::Bool8)), Ok(None), _, DataType::Boolean)
            | (Ok(None), Ok(Some(Extension::Bool8)), DataType::Boolean, _) => {
                Ok(as_stored(array, to)?)
            }
            _ => Err(refuse()),
        };
    }
    if from == to {
        return Ok(Arc::clone(array));
    }
    match (from, to) {
        (DataType::Dictionary(_, values), _) => {
            let values = own.clone().with_data_type(DataType::clone(values));
            conformed_cells(&decoded(array, values.data_type())?, &values, trained, cell)
        }
        (DataType::RunEndEncoded(_, values), _) => {
            conformed_cells(&decoded(array, values.data_type())?, values, trained, cell)
        }
        // A column that is handed out as it is.
        (_, DataType::Dictionary(_, values)) => {
            let values = Field::new("", DataType::clone(values), true);
            Ok(as_stored(&conformed_cells(array, own, &values, cell)?, to)?)
        }
        _ if is_widened_float(from, to) => Ok(as_stored(array, to)?),
        (DataType::BinaryView, DataType::FixedSizeBinary(_))
        | (DataType::FixedSizeBinary(_), DataType::BinaryView) => binaries(array, to, cell),
        _ if is_one_kind(from, to) => leaf(array, to, cell),
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            let rows = everything(array)?;
            let rows = rows.as_struct();
            // What null rows hide may be any values.
            let shown = fields_of(rows)?;
            let columns = wanted.iter().map(|field| {
                let Some(at) = fields.iter().position(|own| own.name() == field.name()) else {
                    return Err(Mismatch::Missing(format!("it has no field {:?}", field.name())));
                };
                let made = conformed_cells(&shown[at], &fields[at], field, cell);
                made.map_err(|mismatch| within(mismatch, &format!("field {:?}: ", field.name())))
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let data = ArrayData::builder(to.clone()).len(rows.len()).nulls(rows.nulls().cloned());
            let data = data.child_data(columns.iter().map(|column| column.to_data()).collect());
            Ok(checked(|| Ok(make_array(data.build()?)))?)
        }
        (DataType::FixedSizeList(_, own), DataType::FixedSizeList(_, size)) if own != size => {
            Err(refuse())
        }
        (DataType::Map(entries, own), DataType::Map(wanted, are_sorted)) if own == are_sorted => {
            maps(array, entries, wanted, to)
        }
        _ => match item_of(from).zip(item_of(to)) {
            Some((item, wanted)) => lists(array, item, wanted, to),
            None => Err(refuse()),
        },
    }
}

/// Rows that are tensors with their axes as in training, and their field: one list of all values, in the order of its axes,
/// or lists in lists. `None` if they have them so, or have others.
fn with_axes_of(
    array: &ArrayRef,
    own: &Field,
    trained: &Field,
    cell: &str,
) -> Result<Option<(ArrayRef, Field)>, Mismatch> {
    match (Axes::of(own), Axes::of(trained)) {
        (Some(axes), Some(wanted)) => {
            if own.metadata() == trained.metadata() || !axes.are_those_of(&wanted) {
                return Ok(None);
            }
            let field = own.clone().with_metadata(trained.metadata().clone());
            Ok(Some((axes.in_order_of(array, &wanted)?, field)))
        }
        (Some(axes), None) if is_lists_of_lists(trained) => {
            let row_major = Axes::row_major(axes.extents());
            let rows = axes.in_order_of(array, &row_major)?;
            let array = nested(rows.as_fixed_size_list(), &axes.extents())?;
            let field = Field::new(own.name(), array.data_type().clone(), true);
            Ok(Some((array, field)))
        }
        (None, Some(wanted)) if is_lists_of_lists(own) => {
            let row_major = Axes::row_major(wanted.extents());
            let rows = new_empty_array(trained.data_type());
            let lists = nested(rows.as_fixed_size_list(), &wanted.extents())?;
            let lists = Field::new(own.name(), lists.data_type().clone(), true);
            let array = conformed_cells(array, own, &lists, cell)?;
            let Some(rows) = flat(array.as_fixed_size_list(), wanted.extents().len())? else {
                return Ok(None);
            };
            Ok(Some((row_major.in_order_of(&rows, &wanted)?, trained.clone())))
        }
        _ => Ok(None),
    }
}

fn is_lists_of_lists(field: &Field) -> bool {
    item_of(field.data_type()).is_some_and(|item| item_of(item.data_type()).is_some())
}

/// The values of a dictionary, or of runs.
fn decoded(array: &ArrayRef, values: &DataType) -> Conformed {
    let array = everything(array)?;
    reserve(bytes_of_cast(&array, values))?;
    Ok(cast(&array, values)?)
}

/// Lists without what is outside of them, and without the items of null rows, which may be any values.
fn seen(array: &ArrayRef) -> Result<ArrayRef, Error> {
    let array = everything(array)?;
    // arrow-select returns rows without values as no rows.
    if array.null_count() == 0 || matches!(array.data_type(), DataType::FixedSizeList(_, 0)) {
        return Ok(array);
    }
    let rows = (0u64..).zip(0..array.len());
    let shown: UInt64Array = rows.map(|(at, row)| array.is_valid(row).then_some(at)).collect();
    check_taken(&array)?;
    checked(|| take(&array, &shown, None))
}

/// Lists of any layout.
fn lists(array: &ArrayRef, item: &FieldRef, wanted: &FieldRef, to: &DataType) -> Conformed {
    let data = seen(array)?.to_data();
    let child = make_array(data.child_data()[0].clone());
    let child = conformed_cells(&child, item, wanted, "item");
    let child = child.map_err(|mismatch| within(mismatch, "items: "))?;
    let same_layout = match data.data_type() {
        DataType::List(_) => DataType::List(Arc::clone(wanted)),
        DataType::LargeList(_) => DataType::LargeList(Arc::clone(wanted)),
        DataType::ListView(_) => DataType::ListView(Arc::clone(wanted)),
        DataType::LargeListView(_) => DataType::LargeListView(Arc::clone(wanted)),
        DataType::FixedSizeList(_, size) => DataType::FixedSizeList(Arc::clone(wanted), *size),
        other => unreachable!("{other} has no items"),
    };
    let builder = data.into_builder().data_type(same_layout.clone());
    let made = builder.child_data(vec![child.to_data()]);
    let made = checked(|| Ok(make_array(made.build()?)))?;
    let told = |why| format!("its rows are not {to}: {why}");
    as_stored(&made, to).map_err(|error| of_values(error, told))
}

/// Maps, whose keys and values libraries call by other names.
fn maps(array: &ArrayRef, entries: &FieldRef, wanted: &FieldRef, to: &DataType) -> Conformed {
    let array = everything(array)?;
    let pairs = array.as_map().entries();
    let fields = [entries, wanted].map(|field| match field.data_type() {
        DataType::Struct(fields) => fields,
        other => unreachable!("{other} has no keys"),
    });
    let columns = pairs.columns().iter().zip(fields[0].iter().zip(fields[1]));
    let columns = columns.map(|(column, (own, wanted))| {
        let made = conformed_cells(column, own, wanted, "item");
        made.map_err(|mismatch| within(mismatch, &format!("{}: ", wanted.name())))
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let made = pairs.to_data().into_builder().data_type(wanted.data_type().clone());
    let made = made.child_data(columns.iter().map(|column| column.to_data()).collect());
    let data = array.to_data().into_builder().data_type(to.clone());
    Ok(checked(|| Ok(make_array(data.child_data(vec![made.build()?]).build()?)))?)
}

/// The values as a type that stores the same ones in another way.
pub(super) fn as_stored(array: &ArrayRef, storage: &DataType) -> Result<ArrayRef, Error> {
    if array.data_type() == storage {
        return Ok(Arc::clone(array));
    }
    let sums = [footprint::of_rows(array), footprint::of_type(storage, array.len())];
    let bytes = sums.into_iter().try_fold(0usize, |sum, bytes| sum.checked_add(bytes?));
    reserve(bytes.and_then(|bytes| bytes.checked_mul(2)))?;
    cast(array, storage)
}

/// Binaries of any layout: arrow casts no views to those of one length, nor back.
fn binaries(array: &ArrayRef, to: &DataType, cell: &str) -> Conformed {
    leaf(&leaf(array, &DataType::LargeBinary, cell)?, to, cell)
}

/// Values without children. One that comes back different from a cast there and back is an error.
fn leaf(array: &ArrayRef, to: &DataType, cell: &str) -> Conformed {
    let array = everything(array)?;
    let told = |_| {
        let row = (0..array.len()).find(|&row| there_and_back(&array.slice(row, 1), to).is_err());
        match row {
            Some(row) => {
                let value = preview(&array.slice(row, 1)).unwrap_or_default();
                format!("value {value} in {cell} {row} does not fit {to}, which it was in training")
            }
            None => format!("its values do not fit {to}, which it was in training"),
        }
    };
    there_and_back(&array, to).map_err(|error| of_values(error, told))
}

/// A column of nulls.
pub(super) fn nulls(data_type: &DataType, rows: usize) -> Conformed {
    Ok(casts::nulls(data_type, rows)?)
}

fn within(mismatch: Mismatch, place: &str) -> Mismatch {
    match mismatch {
        Mismatch::Type(why) => Mismatch::Type(place.to_owned() + &why),
        Mismatch::Value(why) => Mismatch::Value(place.to_owned() + &why),
        Mismatch::Missing(why) => Mismatch::Missing(place.to_owned() + &why),
        Mismatch::OutOfMemory(error) => Mismatch::OutOfMemory(error),
    }
}

/// Whether both are of one extension type, or of none. Where the request says none, its values are taken for the storage.
fn is_one_meaning(own: &Field, trained: &Field) -> bool {
    match (own.extension_type_name(), trained.extension_type_name()) {
        (None, None) => true,
        (None, Some(_)) => {
            let (from, to) = (own.data_type(), trained.data_type());
            // Of these the bytes of a number mean another thing.
            let is_bool = matches!(Extension::of(trained), Ok(Some(Extension::Bool8)));
            let is_stored_so =
                from == to && !is_bool && Extension::dtype_of_bits(trained).is_none();
            is_stored_so || item_of(from).zip(item_of(to)).is_some()
        }
        (Some(_), Some(_)) => Extension::is_one(own, trained),
        // Rows of a tensor with one axis, as lists.
        (Some(_), None) => {
            let has_one_axis = matches!(
                Extension::of(own),
                Ok(Some(Extension::FixedShapeTensor { shape, .. })) if shape.len() == 1
            );
            has_one_axis && item_of(trained.data_type()).is_some()
        }
    }
}

fn is_widened_float(from: &DataType, to: &DataType) -> bool {
    from.is_floating() && to.is_floating() && from.primitive_width() < to.primitive_width()
}

/// Whether values of both are of one kind, so that one that survives a cast there and back is the same. Floats that would
/// be rounded are none: a service would run until the first of them.
fn is_one_kind(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Duration, FixedSizeBinary, Time32, Time64, Timestamp};
    match (from, to) {
        // An instant is one in every zone.
        (Timestamp(_, own), Timestamp(_, zone)) => own.is_some() == zone.is_some(),
        (Duration(_), Duration(_))
        | (Time32(_) | Time64(_), Time32(_) | Time64(_))
        | (Date32 | Date64, Date32 | Date64) => true,
        (FixedSizeBinary(_), FixedSizeBinary(_)) => false,
        _ if from.is_floating() => to.is_integer(),
        _ if from.is_integer() => to.is_integer() || to.is_floating() || to.is_decimal(),
        _ if from.is_decimal() => to.is_decimal(),
        _ => (from.is_string() && to.is_string()) || (from.is_binary() && to.is_binary()),
    }
}

/// What is a column of a dtype that Arrow has not.
pub(super) fn way_to_bits(dtype: DLDataType) -> String {
    format!(
        ": a tensor of {dtype} is a column of it, and so is from_dlpack(tensor, type=\"opaque\")"
    )
}

/// What a column of this type, which has times, takes.
pub(super) fn times_of(to: &DataType) -> &'static str {
    match to {
        DataType::Duration(_) => "durations",
        DataType::Date32 | DataType::Date64 => "dates",
        DataType::Time32(_) | DataType::Time64(_) => "times of a day",
        _ => "times",
    }
}

/// Whether pyarrow casts one to the other.
fn is_cast_to_times(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(
        (from, to),
        (Timestamp(..) | Date32 | Date64, Timestamp(..) | Date32 | Date64)
            | (Timestamp(..), Time32(_) | Time64(_))
    )
}

/// The way out, but where both are extension types that only their own library casts.
fn way_of_extensions(own: &Field, trained: &Field, way_out: String) -> String {
    let is_foreign =
        |field: &Field| field.extension_type_name().is_some_and(|name| !name.starts_with("arrow."));
    if is_foreign(own) && is_foreign(trained) {
        return ": pass values of that type".to_owned();
    }
    way_out
}

/// How many values each row has in fixed-size lists of these.
fn values_of_row(kind: &DataType) -> i64 {
    match kind {
        DataType::FixedSizeList(item, size) => i64::from(*size) * values_of_row(item.data_type()),
        _ => 1,
    }
}

fn way_out(from: &DataType, to: &DataType) -> String {
    let way_out = match (from, to) {
        (DataType::FixedSizeList(..), DataType::FixedSizeList(_, size))
            if values_of_row(from) != values_of_row(to) =>
        {
            return format!(": pass rows of {size} items, as those of training");
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(..)) => {
            ": transpose or reshape it first, if that is meant"
        }
        _ if from.is_floating() && to.is_floating() => {
            ", whose values it would be rounded to: cast it first, if that is meant"
        }
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => {
            ", which has no zone: take it away as training did, in pandas by x.dt.tz_localize(None)"
        }
        (DataType::Timestamp(..), DataType::Timestamp(..)) => {
            ", and whether its times are those of UTC or of a zone is not said: give them one first"
        }
        _ if to.is_temporal() && !is_cast_to_times(from, to) => {
            return format!(": pass {}", times_of(to));
        }
        _ if item_of(from).is_some() && item_of(to).is_none() => {
            ": pass its items, in lists of one level less"
        }
        _ if item_of(to).is_some() && item_of(from).is_none() => {
            ": pass lists, or a tensor with that axis"
        }
        _ => ": cast it first, if that is meant",
    };
    way_out.to_owned()
}
