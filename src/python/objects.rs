//! Python's objects of which pyarrow makes Arrow data, in columns of pandas and in lists: what it would follow until the
//! process ends, or make other values of, is refused.

use std::collections::HashMap;

use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType};

use super::describe::type_name;
use crate::arrow_types::MAX_DEPTH;

/// Refuses lists, dicts and sets of Python's, and NumPy's arrays of objects, that are nested too deep, as those that hold
/// themselves are: pyarrow follows them until the process ends. And values beside which pyarrow 26 makes others of a value,
/// such as 1.0 of True beside floats, or ends the process, as of a `numpy.datetime64` beside NumPy's numbers.
#[pyfunction]
#[pyo3(signature = (values, /))]
pub(super) fn _check_objects(values: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut level = Level::default();
    level.add(Columns::ROOT, values)?;
    for _ in 0..=MAX_DEPTH {
        let Level { nested, classes, columns, .. } = level;
        let mut below = Level { classes, columns, ..Level::default() };
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

/// What has items, at one level of nested values.
#[derive(Default)]
struct Level<'py> {
    /// The items of each, after the column that it is in. It is here once: a list may hold another one many times.
    nested: Vec<(Option<usize>, Bound<'py, PyAny>)>,
    /// Of each the columns that it is in.
    known: HashMap<*mut PyObject, Vec<Option<usize>>>,
    classes: Vec<(Bound<'py, PyType>, Class)>,
    columns: Columns,
}

impl<'py> Level<'py> {
    fn add_items(&mut self, column: Option<usize>, items: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(dict) = items.cast::<PyDict>() {
            // Not its iterator, which fails where Python code changes the dict meanwhile.
            for (key, item) in dict.keys().iter().zip(dict.values()) {
                let field = self.columns.within(column, key.hash().ok());
                self.add(field, &item)?;
            }
            return Ok(());
        }
        let column = self.columns.within(column, None);
        // A class below these may iterate over other items, and without an end.
        let list = items.cast::<PyList>().cloned();
        match list.or_else(|_| items.cast::<PyTuple>().map(PyTupleMethods::to_list)) {
            Ok(list) => list.iter().try_for_each(|item| self.add(column, &item)),
            Err(_) => items.try_iter()?.try_for_each(|item| self.add(column, &item?)),
        }
    }

    fn add(&mut self, column: Option<usize>, one: &Bound<'py, PyAny>) -> PyResult<()> {
        if one.is_none() || one.is_exact_instance_of::<PyString>() {
            return Ok(());
        }
        if one.is_exact_instance_of::<PyInt>() {
            return self.columns.add(column, Kind::Integer, one);
        }
        if let Ok(number) = one.cast_exact::<PyFloat>() {
            return match number.value().is_nan() {
                true => Ok(()),
                false => self.columns.add(column, Kind::Float, one),
            };
        }
        let known = self.known.get(&one.as_ptr()).map_or(&[][..], Vec::as_slice);
        if known.contains(&column) || known.len() >= Columns::OF_ONE {
            return Ok(());
        }
        let class = self.class_of(&one.get_type())?;
        if let Some(kind) = class.kind_of(one)? {
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
                    // One of no dimension is a value.
                    let is_value = one.getattr(intern!(one.py(), "ndim"))?.eq(0)?;
                    let column = if is_value { column } else { self.columns.within(column, None) };
                    return self.columns.add(column, kind, one);
                }
                Items::Others => return Ok(()),
            },
            _ if is_several(one) => one.clone(),
            _ => return Ok(()),
        };
        let no_memory = |_| PyMemoryError::new_err("no memory to look for lists in lists");
        self.known.try_reserve(1).map_err(no_memory)?;
        self.nested.try_reserve(1).map_err(no_memory)?;
        self.known.entry(one.as_ptr()).or_default().push(column);
        self.nested.push((column, items));
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
    /// Of no kind.
    Others,
}

impl<'py> Items<'py> {
    fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let dtype = array.getattr(intern!(py, "dtype"))?;
        Ok(Self::Values(match dtype.getattr(intern!(py, "char"))?.extract::<char>()? {
            'O' => return array.getattr(intern!(py, "flat")).map(Self::Objects),
            '?' => Kind::Bool,
            'b' | 'B' | 'h' | 'H' | 'i' | 'I' | 'l' | 'L' | 'q' | 'Q' => Kind::Integer,
            'f' | 'd' => Kind::Float,
            'e' | 'g' => Kind::OtherFloat,
            'M' => Kind::Datetime,
            'm' => Kind::DurationsOfArray(Unit::of(array)?),
            // Beside times they end the process.
            'U' | 'S' => Kind::Texts,
            _ => return Ok(Self::Others),
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
    /// A duration of NumPy's.
    Duration,
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
                ("numpy", "datetime64") => Self::Value(Kind::Datetime),
                ("numpy", "integer") | ("builtins", "int") => Self::Value(Kind::Integer),
                ("numpy", "floating") | ("builtins", "float") => Self::Value(Kind::Float),
                ("decimal", "Decimal") => Self::Value(Kind::Decimal),
                ("datetime", "date") => Self::Value(Kind::Date),
                ("datetime", "time") => Self::Time,
                ("datetime", "datetime") => Self::Datetime,
                ("pandas", "Timestamp") => Self::Timestamp,
                ("pandas", "Timedelta") => Self::Timedelta,
                ("pandas", "NaTType" | "NAType")
                | ("pyarrow", _)
                | ("builtins", "str" | "bytes" | "bytearray" | "list" | "tuple" | "dict") => {
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
    fn kind_of(self, one: &Bound<'_, PyAny>) -> PyResult<Option<Kind>> {
        let py = one.py();
        let has_zone = || Ok::<_, PyErr>(!one.getattr(intern!(py, "tzinfo"))?.is_none());
        let lost = |part: &str, way_out: &str| {
            let name = type_name(one);
            Err(PyTypeError::new_err(format!(
                "a {name} of Python's objects has {part}, which pyarrow leaves out: {way_out}"
            )))
        };
        let has_nanoseconds = |name: &str| one.getattr(name)?.is_truthy();
        Ok(match self {
            Self::Other | Self::Array | Self::Masked => None,
            Self::Value(Kind::Float) if one.extract::<f64>().is_ok_and(f64::is_nan) => {
                // Of a float32, pyarrow makes no null.
                (!one.is_instance_of::<PyFloat>()).then_some(Kind::Float)
            }
            Self::Value(Kind::Decimal) if one.call_method0("is_nan")?.is_truthy()? => None,
            Self::Value(kind) => Some(kind),
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
            Self::Datetime | Self::Timestamp if has_zone()? => Some(Kind::Zoned),
            Self::Datetime | Self::Timestamp => Some(Kind::Datetime),
        })
    }
}

/// The kinds of values of which pyarrow makes one type, as long as it is given no others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Integer,
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
    /// Texts or bytes of an array of NumPy's.
    Texts,
    Time,
    /// Of another class, from which it takes an integer.
    Convertible,
}

/// NumPy's name of a unit of durations, such as "us".
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit([u8; 8]);

impl Unit {
    const MICROSECOND: Self = Self(*b"us\0\0\0\0\0\0");

    /// That of an array or a value.
    fn of(durations: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = durations.py();
        let name = durations.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "str"))?;
        let name: String = name.extract()?;
        let unit = name.split(['[', ']']).nth(1).unwrap_or_default();
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(unit.bytes()).for_each(|(byte, own)| *byte = own);
        Ok(Self(bytes))
    }
}

impl Kind {
    fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float | Self::OtherFloat | Self::Decimal)
    }

    /// Whether pyarrow keeps the values of both.
    fn goes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Integer, Self::OtherFloat) | (Self::OtherFloat, Self::Integer) => false,
            // pyarrow compares the units of durations, but not with that of an array.
            (Self::Duration(_), Self::Duration(_)) => true,
            (Self::DurationsOfArray(unit), Self::Duration(other))
            | (Self::Duration(other), Self::DurationsOfArray(unit)) => unit == other,
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
    const ROOT: Option<usize> = Some(0);
    /// That of the values themselves, which is the first one in the root.
    const ITEMS: usize = 1;
    /// Dicts may have as many names as they like: what is in more columns than these is not compared.
    const MOST: usize = 1 << 16;
    /// In more columns than these nothing is compared of what is in one list that many fields hold.
    const OF_ONE: usize = 4;

    fn within(&mut self, column: Option<usize>, field: Option<isize>) -> Option<usize> {
        let next = self.known.len() + 1;
        let key = (column?, field);
        if next > Self::MOST {
            return self.known.get(&key).copied();
        }
        Some(*self.known.entry(key).or_insert(next))
    }

    fn add(&mut self, column: Option<usize>, kind: Kind, one: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(column) = column else { return Ok(()) };
        if column >= self.kinds.len() {
            self.kinds.resize_with(column + 1, Vec::new);
        }
        let kinds = &mut self.kinds[column];
        if kinds.iter().any(|(known, _)| *known == kind) {
            return Ok(());
        }
        let class = match (kind, one.getattr_opt(intern!(one.py(), "dtype"))?) {
            (Kind::Zoned, _) => format!("{} with a zone", type_name(one)),
            (_, Some(dtype)) => dtype.str()?.to_string(),
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
