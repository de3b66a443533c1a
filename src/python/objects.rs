//! Python's objects of which pyarrow makes Arrow data, in columns of pandas and in lists: what it would follow until the
//! process ends, or make other values of, is refused.

use std::collections::{HashMap, HashSet};

use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};

use super::describe::type_name;
use crate::arrow_types::MAX_DEPTH;

/// Refuses lists, dicts and sets of Python's, and NumPy's arrays of objects, that are nested too deep, as those that hold
/// themselves are: pyarrow follows them until the process ends. And values beside which pyarrow 26 makes others of a value,
/// such as 1.0 of True beside floats, or ends the process, as of a `numpy.datetime64` beside NumPy's numbers.
///
/// `nan_is_null`: whether pyarrow takes NaN for a null, as it does of values of pandas.
#[pyfunction]
#[pyo3(signature = (values, /, *, nan_is_null))]
pub(super) fn _check_objects(values: &Bound<'_, PyAny>, nan_is_null: bool) -> PyResult<()> {
    let mut level = Level { nan_is_null, ..Level::default() };
    level.add(Columns::ROOT, values)?;
    for _ in 0..=MAX_DEPTH {
        let Level { nested, classes, columns, .. } = level;
        let mut below = Level { nan_is_null, classes, columns, ..Level::default() };
        for (column, items) in &nested {
            below.add_items(*column, items)?;
        }
        if below.nested.is_empty() {
            return Ok(());
        }
        level = below;
    }
    Err(PyValueError::new_err(format!(
        "lists are nested more than {MAX_DEPTH} levels deep, or hold themselves"
    )))
}

/// Refuses a list or tuple of a class that claims another length than it has, which pyarrow believes.
fn check_len(items: &Bound<'_, PyAny>, len: usize) -> PyResult<()> {
    if items.len()? == len {
        return Ok(());
    }
    let kind = type_name(items);
    Err(PyTypeError::new_err(format!("len() of a {kind} is not the number of its items")))
}

/// Refuses a set of a class that iterates in its own way, which may not end, and pyarrow follows it.
fn check_iter(items: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, class) = (items.py(), items.get_type());
    for known in [py.get_type::<PySet>(), py.get_type::<PyFrozenSet>()] {
        let iter = intern!(py, "__iter__");
        if class.is_subclass(&known)? && !class.getattr(iter)?.is(&known.getattr(iter)?) {
            let kind = type_name(items);
            return Err(PyTypeError::new_err(format!(
                "{kind} is a set that iterates in its own way: make a list of it"
            )));
        }
    }
    Ok(())
}

/// What has items, at one level of nested values.
#[derive(Default)]
struct Level<'py> {
    nan_is_null: bool,
    /// The items of each, after the column that it is in. It is here once: a list may hold another one many times.
    nested: Vec<(usize, Bound<'py, PyAny>)>,
    known: HashSet<(usize, *mut PyObject)>,
    classes: Vec<(Bound<'py, PyType>, Class)>,
    columns: Columns,
    /// That of the last time.
    zone: Option<Bound<'py, PyAny>>,
}

impl<'py> Level<'py> {
    fn add_items(&mut self, column: usize, items: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(dict) = items.cast::<PyDict>() {
            // Not its iterator, which fails where Python code changes the dict meanwhile.
            for (key, item) in dict.keys().iter().zip(dict.values()) {
                if key.is_instance_of::<PyBytes>() {
                    return Err(PyTypeError::new_err(format!(
                        "the key {} is bytes, and pyarrow takes the text of it for the same field: make texts of the keys",
                        key.repr()?
                    )));
                }
                let field = self.columns.within(column, key.hash().ok())?;
                self.add(field, &item)?;
            }
            return Ok(());
        }
        let column = self.columns.within(column, None)?;
        // A class below these may iterate over other items, and without an end.
        match (items.cast::<PyList>(), items.cast::<PyTuple>()) {
            (Ok(list), _) => {
                check_len(items, list.len())?;
                list.iter().try_for_each(|item| self.add(column, &item))
            }
            (_, Ok(tuple)) => {
                check_len(items, tuple.len())?;
                tuple.iter().try_for_each(|item| self.add(column, &item))
            }
            _ => {
                check_iter(items)?;
                items.try_iter()?.try_for_each(|item| self.add(column, &item?))
            }
        }
    }

    fn add(&mut self, column: usize, one: &Bound<'py, PyAny>) -> PyResult<()> {
        if one.is_none() {
            return Ok(());
        }
        if one.is_exact_instance_of::<PyString>() {
            return self.columns.add(column, Kind::Text, one);
        }
        if one.is_exact_instance_of::<PyInt>() {
            return self.columns.add(column, Kind::Integer, one);
        }
        if let Ok(number) = one.cast_exact::<PyFloat>() {
            return match self.nan_is_null && number.value().is_nan() {
                true => Ok(()),
                false => self.columns.add(column, Kind::Float, one),
            };
        }
        if self.known.contains(&(column, one.as_ptr())) {
            return Ok(());
        }
        let class = self.class_of(&one.get_type())?;
        if let Some(kind) = class.kind_of(one, self.nan_is_null)? {
            if kind == Kind::Zoned {
                self.check_zone(one)?;
            }
            return self.columns.add(column, kind, one);
        }
        let items = match class {
            Class::Masked
                if one.getattr(intern!(one.py(), "mask"))?.call_method0("any")?.is_truthy()? =>
            {
                return Err(PyTypeError::new_err(
                    "an array of NumPy's hides values under its mask, and pyarrow would take them: x.tolist() of each array \
                     has nulls in their place",
                ));
            }
            Class::Array | Class::Masked => match Items::of(one)? {
                Items::Objects(items) => items,
                Items::Values(kind) => {
                    if kind == Kind::Other {
                        // Beside dates pyarrow takes one of no dimension for a value.
                        self.columns.add(column, kind, one)?;
                    }
                    let items = self.columns.within(column, None)?;
                    return self.columns.add(items, kind, one);
                }
            },
            _ if is_several(one) => one.clone(),
            _ => return Ok(()),
        };
        let no_memory = |_| PyMemoryError::new_err("no memory to look for lists in lists");
        self.known.try_reserve(1).map_err(no_memory)?;
        self.nested.try_reserve(1).map_err(no_memory)?;
        self.known.insert((column, one.as_ptr()));
        self.nested.push((column, items));
        Ok(())
    }

    /// Refuses the offset of a zone that pyarrow cuts to seconds.
    fn check_zone(&mut self, time: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = time.py();
        let zone = time.getattr(intern!(py, "tzinfo"))?;
        if self.zone.as_ref().is_some_and(|known| known.is(&zone)) {
            return Ok(());
        }
        let offset = time.call_method0(intern!(py, "utcoffset"))?;
        if !offset.is_none() && offset.getattr(intern!(py, "microseconds"))?.is_truthy()? {
            return Err(lost(
                time,
                "a zone at a fraction of a second",
                "x.astimezone(datetime.UTC) has none",
            ));
        }
        self.zone = Some(zone);
        Ok(())
    }

    fn class_of(&mut self, class: &Bound<'py, PyType>) -> PyResult<Class> {
        if let Some((_, known)) = self.classes.iter().find(|(known, _)| known.is(class)) {
            return Ok(*known);
        }
        let found = Class::of(class)?;
        if self.classes.len() < 16 {
            self.classes.push((class.clone(), found));
        }
        Ok(found)
    }
}

/// Whether pyarrow takes it for a list or a struct.
fn is_several(one: &Bound<'_, PyAny>) -> bool {
    one.is_instance_of::<PyList>()
        || one.is_instance_of::<PyDict>()
        || one.is_instance_of::<PyTuple>()
        || one.is_instance_of::<PySet>()
        || one.is_instance_of::<PyFrozenSet>()
}

/// What is in an array of NumPy's.
enum Items<'py> {
    /// What iterates over Python's objects.
    Objects(Bound<'py, PyAny>),
    Values(Kind),
}

impl<'py> Items<'py> {
    fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let code = dtype.getattr(intern!(py, "char"))?.extract::<char>()?;
        if code == 'O' {
            return array.getattr(intern!(py, "flat")).map(Self::Objects);
        }
        // pyarrow refuses those that have not one dimension, but not before it has read the others.
        let is_list = array.getattr(intern!(py, "ndim"))?.eq(1)?;
        Ok(Self::Values(match code {
            'M' | 'm' if is_list => match (Unit::of(array)?, code) {
                (_, 'M') => Kind::Datetime,
                (unit, _) => Kind::DurationsOfArray(unit),
            },
            '?' if is_list => Kind::Bool,
            'L' | 'Q' if is_list && has_large(array)? => Kind::LargeUnsigned,
            'b' | 'B' | 'h' | 'H' | 'i' | 'I' | 'l' | 'L' | 'q' | 'Q' if is_list => Kind::Integer,
            'f' | 'd' if is_list => Kind::Float,
            'e' | 'g' if is_list => Kind::OtherFloat,
            'U' | 'T' if is_list => Kind::TextsOfArray,
            'S' if is_list => Kind::BytesOfArray,
            _ => Kind::Other,
        }))
    }
}

/// What pyarrow takes the objects of a class for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// One that it refuses beside others itself, or makes a null of.
    Other,
    /// NumPy's.
    Array,
    Masked,
    Value(Kind),
    /// A time of a day, a time, or a duration of pandas's or Python's.
    Time,
    Datetime,
    Timestamp,
    Timedelta,
    /// Of NumPy's.
    NumpyDatetime,
    Duration,
    /// An integer of NumPy's of 64 bits without a sign.
    Unsigned,
    /// The time of pandas's that stands for one that is missing.
    Nat,
}

impl Class {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let has = |name: &str| class.hasattr(name).unwrap_or(false);
        for base in class.mro() {
            let base = base.cast_into::<PyType>()?;
            // A metaclass may say anything.
            let (Ok(module), Ok(name)) = (base.module(), base.name()) else { continue };
            let (Ok(module), Ok(name)) = (module.to_str(), name.to_str()) else { continue };
            let library = module.split_once('.').map_or(module, |(library, _)| library);
            return Ok(match (library, name) {
                ("numpy", "MaskedArray") => Self::Masked,
                ("numpy", "ndarray") => Self::Array,
                ("numpy", "bool" | "bool_") | ("builtins", "bool") => Self::Value(Kind::Bool),
                ("numpy", "float16" | "longdouble") => Self::Value(Kind::OtherFloat),
                ("numpy", "timedelta64") => Self::Duration,
                ("datetime", "timedelta") => Self::Value(Kind::Duration(Unit::MICROSECOND)),
                ("numpy", "datetime64") => Self::NumpyDatetime,
                ("numpy", "uint64" | "ulonglong") => Self::Unsigned,
                ("numpy", "generic") => Self::Value(Kind::Other),
                ("numpy", "integer") | ("builtins", "int") => Self::Value(Kind::Integer),
                ("numpy", "floating") | ("builtins", "float") => Self::Value(Kind::Float),
                ("decimal", "Decimal") => Self::Value(Kind::Decimal),
                ("datetime", "date") => Self::Value(Kind::Date),
                ("datetime", "time") => Self::Time,
                ("datetime", "datetime") => Self::Datetime,
                ("pandas", "Timestamp") => Self::Timestamp,
                ("pandas", "Timedelta") => Self::Timedelta,
                ("builtins", "str") => Self::Value(Kind::Text),
                ("builtins", "bytes" | "bytearray" | "memoryview") => Self::Value(Kind::Bytes),
                ("pandas", "NaTType") => Self::Nat,
                ("pandas", "NAType") | ("pyarrow", _) | ("builtins", "list" | "tuple" | "dict") => {
                    Self::Other
                }
                ("builtins", "object") if has("__int__") || has("__index__") => {
                    Self::Value(Kind::Convertible)
                }
                ("builtins", "object") => Self::Other,
                _ => continue,
            });
        }
        Ok(Self::Other)
    }

    /// What pyarrow takes an object of this class for; `None` of nulls, and of what has no kind.
    fn kind_of(self, one: &Bound<'_, PyAny>, nan_is_null: bool) -> PyResult<Option<Kind>> {
        let py = one.py();
        let has_zone = || Ok::<_, PyErr>(!one.getattr(intern!(py, "tzinfo"))?.is_none());
        let lost = |part: &str, way_out: &str| Err(lost(one, part, way_out));
        let has_nanoseconds = |name: &str| one.getattr(name)?.is_truthy();
        Ok(match self {
            Self::Other | Self::Array | Self::Masked => None,
            // Of a float32, pyarrow makes no null.
            Self::Value(Kind::Float)
                if nan_is_null
                    && one.is_instance_of::<PyFloat>()
                    && one.extract::<f64>().is_ok_and(f64::is_nan) =>
            {
                None
            }
            Self::Value(Kind::Decimal) if one.call_method0("is_nan")?.is_truthy()? => None,
            Self::Value(kind) => Some(kind),
            // Beside dates pyarrow makes the first day of the year 1 of it.
            Self::Nat => (!nan_is_null).then_some(Kind::Datetime),
            Self::Time if has_zone()? => {
                return lost("a zone", "x.replace(tzinfo=None) has none");
            }
            Self::Time => Some(Kind::Time),
            Self::Timestamp if has_nanoseconds("nanosecond")? => {
                return lost("nanoseconds", "pandas.to_datetime(x) keeps those of a column");
            }
            Self::Timedelta if has_nanoseconds("nanoseconds")? => {
                return lost("nanoseconds", "pandas.to_timedelta(x) keeps those of a column");
            }
            Self::Timedelta => Some(Kind::Duration(Unit::MICROSECOND)),
            Self::Duration => Some(Kind::Duration(Unit::of(one)?)),
            Self::NumpyDatetime => Unit::of(one).map(|_| Some(Kind::Datetime))?,
            Self::Unsigned if one.extract::<i64>().is_err() => Some(Kind::LargeUnsigned),
            Self::Unsigned => Some(Kind::Integer),
            Self::Datetime | Self::Timestamp if has_zone()? => Some(Kind::Zoned),
            Self::Datetime | Self::Timestamp => Some(Kind::Datetime),
        })
    }
}

/// The error for a part of a value that pyarrow does not take.
fn lost(one: &Bound<'_, PyAny>, part: &str, way_out: &str) -> PyErr {
    let name = type_name(one);
    PyTypeError::new_err(format!(
        "a {name} of Python's objects has {part}, which pyarrow leaves out: {way_out}"
    ))
}

/// The kinds of values of which pyarrow makes one type, as long as it is given no others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Integer,
    /// NumPy's of 64 bits, which has no int64: beside floats pyarrow makes negative numbers of it.
    LargeUnsigned,
    Float,
    /// NumPy's of 16 bits, or of more than 64.
    OtherFloat,
    Decimal,
    Date,
    Datetime,
    /// A time with a zone.
    Zoned,
    Duration(Unit),
    DurationsOfArray(Unit),
    /// Of bytes beside texts pyarrow makes bytes of both, or texts.
    Text,
    Bytes,
    TextsOfArray,
    BytesOfArray,
    Time,
    /// Of another class, from which it takes an integer.
    Convertible,
    /// Of NumPy's, such as complex numbers: pyarrow refuses it alone.
    Other,
}

/// Whether an array of NumPy's unsigned integers has one that is above all of int64.
fn has_large(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    if array.getattr(intern!(py, "size"))?.eq(0)? {
        return Ok(false);
    }
    Ok(array.call_method0(intern!(py, "max"))?.extract::<i64>().is_err())
}

/// NumPy's name of a unit of durations, such as "us".
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit([u8; 8]);

impl Unit {
    const MICROSECOND: Self = Self(*b"us\0\0\0\0\0\0");

    /// That of an array or a value of NumPy's times. Of a multiple, such as "25s", pyarrow takes the unit, and of hours
    /// and longer ones but days none.
    fn of(times: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = times.py();
        let name = times.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "str"))?;
        let name: String = name.extract()?;
        let unit = name.split(['[', ']']).nth(1).unwrap_or_default();
        // Of no unit are nulls alone.
        if !matches!(unit, "" | "s" | "ms" | "us" | "ns" | "D") {
            let kind = if name.contains("M8") { "M8" } else { "m8" };
            let way_out = match unit.trim_start_matches(|digit: char| digit.is_ascii_digit()) {
                "M" | "Y" if kind == "m8" => "no number of seconds is that long".to_owned(),
                plain @ ("ms" | "us" | "ns") => in_unit(kind, plain),
                "ps" | "fs" | "as" => format!("{}, without what is shorter", in_unit(kind, "ns")),
                _ => in_unit(kind, "s"),
            };
            return Err(PyTypeError::new_err(format!(
                "times of NumPy's are in units of {unit}, which pyarrow does not take as they are: {way_out}"
            )));
        }
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(unit.bytes()).for_each(|(byte, own)| *byte = own);
        Ok(Self(bytes))
    }
}

fn in_unit(kind: &str, unit: &str) -> String {
    format!("value.astype(\"{kind}[{unit}]\") of each has them in {unit}")
}

impl Kind {
    fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float | Self::OtherFloat | Self::Decimal)
    }

    /// Whether pyarrow keeps the values of both.
    fn goes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Integer, Self::OtherFloat) | (Self::OtherFloat, Self::Integer) => false,
            (Self::LargeUnsigned, Self::Integer) | (Self::Integer, Self::LargeUnsigned) => true,
            // pyarrow compares the units of durations, but not with that of an array.
            (Self::Duration(_), Self::Duration(_)) => true,
            (Self::DurationsOfArray(unit), Self::Duration(other))
            | (Self::Duration(other), Self::DurationsOfArray(unit)) => unit == other,
            (Self::Text | Self::TextsOfArray, Self::Bytes | Self::BytesOfArray)
            | (Self::Bytes | Self::BytesOfArray, Self::Text | Self::TextsOfArray) => false,
            // Of a UUID pyarrow makes one of each text of 16 bytes.
            (Self::Text | Self::Bytes, Self::Convertible)
            | (Self::Convertible, Self::Text | Self::Bytes) => false,
            // Beside others pyarrow refuses them itself.
            (Self::Text | Self::Bytes, _) | (_, Self::Text | Self::Bytes) => true,
            _ => self == other || (self.is_number() && other.is_number()),
        }
    }
}

/// The columns of which pyarrow infers a type each: items of lists, and fields of dicts, at their level.
#[derive(Default)]
struct Columns {
    /// By the column that it is in, and the hash of a field's name.
    known: HashMap<(usize, Option<isize>), usize>,
    /// Of each column the kinds of its values, each with the class of the first one.
    kinds: Vec<Vec<(Kind, String)>>,
}

impl Columns {
    const ROOT: usize = 0;
    /// That of the values themselves, which is the first one in the root.
    const ITEMS: usize = 1;
    /// Dicts that hold one another may have any number of fields.
    const MOST: usize = 1 << 20;

    fn within(&mut self, column: usize, field: Option<isize>) -> PyResult<usize> {
        let next = self.known.len() + 1;
        let found = *self.known.entry((column, field)).or_insert(next);
        match found <= Self::MOST {
            true => Ok(found),
            false => {
                let most = Self::MOST;
                Err(PyValueError::new_err(format!("dicts have more than {most} fields")))
            }
        }
    }

    fn add(&mut self, column: usize, kind: Kind, one: &Bound<'_, PyAny>) -> PyResult<()> {
        if column >= self.kinds.len() {
            self.kinds.resize_with(column + 1, Vec::new);
        }
        let kinds = &mut self.kinds[column];
        if kinds.iter().any(|(known, _)| *known == kind) {
            return Ok(());
        }
        let class = match (kind, one.getattr_opt(intern!(one.py(), "dtype"))?) {
            (Kind::Zoned, _) => format!("{} with a zone", type_name(one)),
            (_, Some(dtype)) => match one.getattr(intern!(one.py(), "ndim"))?.extract()? {
                0 | 1 => dtype.str()?.to_string(),
                ndim => format!("{} in {ndim} dimensions", dtype.str()?),
            },
            _ => type_name(one),
        };
        if let Some((of, other)) = kinds.iter().find(|(known, _)| !known.goes_with(kind)) {
            let is_time = |kind| matches!(kind, Kind::Zoned | Kind::Datetime);
            let are_times = column == Self::ITEMS && is_time(*of) && is_time(kind);
            let way_out = match are_times {
                true => {
                    "pandas.to_datetime(x, utc=True) takes those without a zone for those of UTC"
                }
                false => "convert them to one type first",
            };
            return Err(PyTypeError::new_err(format!(
                "Python's objects of the types {other} and {class} are in one column, and pyarrow would make another value \
                 of one of them: {way_out}"
            )));
        }
        kinds.push((kind, class));
        Ok(())
    }
}
