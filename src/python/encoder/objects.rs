//! Columns of Python's objects, such as the values of a JSON request, as the types that the encoder was trained with.
//!
//! A value is taken only if it is the same one there: 7.5 is no integer, 2**53 + 1 no float64, True no number, and no text is
//! read as a number or a time. Floats are rounded to float32, because Python has no others.

use std::sync::Arc;

use arrow_array::types::{self, ArrowPrimitiveType, DecimalType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, make_array,
    new_null_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple,
    PyType,
};
use pyo3::{intern, prelude::*};

use super::axes::Axes;
use super::conform::{as_stored, way_to_bits};
use crate::extension::Extension;
use crate::ffi::DLDataType;
use crate::kernels::nearest_half;
use crate::python::advice::{is_masked, is_null, is_of_decimals, kind_of_times};
use crate::python::arrow::casts;
use crate::python::describe::{described, type_name};
use crate::python::errors::placed;
use crate::{alloc, chunks::checked};

/// A value of a column, or `None` for a null.
pub(super) type Cell<'py> = Option<Bound<'py, PyAny>>;

/// The values of one column, of which row is asked for in errors.
pub(super) struct PyCells<'a, 'py> {
    pub(super) cells: &'a [Cell<'py>],
    /// What precedes the problem in a message, for the cell of this number.
    pub(super) place: &'a dyn Fn(usize) -> String,
}

impl<'py> PyCells<'_, 'py> {
    /// The column as an array of the field's type.
    pub(super) fn array(&self, py: Python<'py>, field: &Field) -> PyResult<ArrayRef> {
        let storage = field.data_type();
        if let Some(dtype) = Extension::dtype_of_bits(field) {
            return self.nulls_of(storage, dtype);
        }
        match (Extension::of(field), storage) {
            (Ok(Some(Extension::Bool8)), _) => {
                let bools = self.array(py, &Field::new("", DataType::Boolean, true))?;
                return Ok(as_stored(&bools, storage)?);
            }
            (
                Ok(Some(Extension::FixedShapeTensor { shape, dimensions })),
                DataType::FixedSizeList(item, _),
            ) => {
                let axes = Axes::new(shape, dimensions);
                let places = axes.places()?;
                return self.fixed_size(py, storage, item, &axes.extents(), places.as_deref());
            }
            _ => {}
        }
        match storage {
            DataType::Null => {
                self.read(storage, &|_| Err::<i128, _>(Misread::Type))?;
                Ok(new_null_array(storage, self.cells.len()))
            }
            DataType::Boolean => {
                let (values, nulls) = self.read(storage, &|cell| truth(cell))?;
                self.check_bits()?;
                Ok(Arc::new(BooleanArray::new(values.into(), nulls)))
            }
            text if text.is_string() || text.is_binary() => self.texts(field),
            time if time.is_temporal() => self.times(py, time),
            number if number.is_numeric() => self.numbers(number),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => self.lists(py, storage, item),
            DataType::FixedSizeList(item, size) => {
                let shape = [i64::from(*size)];
                self.fixed_size(py, storage, item, &shape, None)
            }
            DataType::Struct(fields) => self.structs(py, storage, fields),
            DataType::Dictionary(_, values) => {
                let values = self.array(py, &Field::new("", DataType::clone(values), true))?;
                Ok(as_stored(&values, storage)?)
            }
            other => Err(self.no_objects(other)),
        }
    }

    /// Of a dtype that Arrow has not, and of which Python has no value.
    fn nulls_of(&self, storage: &DataType, dtype: DLDataType) -> PyResult<ArrayRef> {
        let known = self.cells.iter().enumerate().find_map(|(at, cell)| Some((at, cell.as_ref()?)));
        match known {
            None => Ok(casts::nulls(storage, self.cells.len())?),
            Some((at, cell)) => Err(PyTypeError::new_err(format!(
                "{}: {}, of type {}, is no value of {dtype}, which training has{}",
                (self.place)(at),
                described(cell),
                type_name(cell),
                way_to_bits(dtype)
            ))),
        }
    }

    #[cold]
    fn no_objects(&self, storage: &DataType) -> PyErr {
        let place = (self.place)(0);
        PyTypeError::new_err(format!(
            "{place}: Python's objects become no {storage}: pass Arrow data"
        ))
    }

    fn numbers(&self, storage: &DataType) -> PyResult<ArrayRef> {
        match storage {
            DataType::Int8 => self.integers::<i8>(storage, integer),
            DataType::Int16 => self.integers::<i16>(storage, integer),
            DataType::Int32 => self.integers::<i32>(storage, integer),
            DataType::Int64 => self.integers::<i64>(storage, integer),
            DataType::UInt8 => self.integers::<u8>(storage, integer),
            DataType::UInt16 => self.integers::<u16>(storage, integer),
            DataType::UInt32 => self.integers::<u32>(storage, integer),
            DataType::UInt64 => self.integers::<u64>(storage, integer),
            DataType::Float16 => self.primitive::<types::Float16Type>(storage, |cell| {
                float(cell, |value| f64::from(nearest_half(value)), nearest_half)
            }),
            DataType::Float32 => self.primitive::<types::Float32Type>(storage, |cell| {
                float(cell, |value| f64::from(single(value)), single)
            }),
            DataType::Float64 => {
                self.primitive::<types::Float64Type>(storage, |cell| float(cell, |x| x, |x| x))
            }
            DataType::Decimal32(precision, scale) => {
                self.decimals::<types::Decimal32Type>(*precision, *scale, |value| {
                    value.to_i128().and_then(|value| value.try_into().ok())
                })
            }
            DataType::Decimal64(precision, scale) => {
                self.decimals::<types::Decimal64Type>(*precision, *scale, |value| {
                    value.to_i128().and_then(|value| value.try_into().ok())
                })
            }
            DataType::Decimal128(precision, scale) => {
                self.decimals::<types::Decimal128Type>(*precision, *scale, |value| value.to_i128())
            }
            DataType::Decimal256(precision, scale) => {
                self.decimals::<types::Decimal256Type>(*precision, *scale, Some)
            }
            other => Err(self.no_objects(other)),
        }
    }

    fn texts(&self, field: &Field) -> PyResult<ArrayRef> {
        let storage = field.data_type();
        match storage {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let (offsets, bytes) = self.appended(storage, 0, &append_text)?;
                let nulls = self.nulls()?;
                let made = || LargeStringArray::try_new(offsets, bytes, nulls);
                let texts: ArrayRef = Arc::new(checked(made)?);
                Ok(as_stored(&texts, storage)?)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                let (offsets, bytes) = self.appended(storage, 0, &append_binary)?;
                let nulls = self.nulls()?;
                let made = || LargeBinaryArray::try_new(offsets, bytes, nulls);
                let binaries: ArrayRef = Arc::new(checked(made)?);
                Ok(as_stored(&binaries, storage)?)
            }
            DataType::FixedSizeBinary(size) => {
                let is_uuid = field.extension_type_name() == Some("arrow.uuid");
                let width = usize::try_from(*size).unwrap_or(0);
                let (_, bytes) = self.appended(storage, width, &|cell, bytes| {
                    let begin = bytes.len();
                    match cell.getattr_opt(intern!(cell.py(), "bytes")).ok().flatten() {
                        Some(of_uuid) if is_uuid => append_binary(&of_uuid, bytes)?,
                        _ => append_binary(cell, bytes)?,
                    }
                    match bytes.len() - begin == width {
                        true => Ok(()),
                        false => Err(Misread::Value(String::new())),
                    }
                })?;
                self.made(storage, self.nulls()?, vec![bytes], Vec::new())
            }
            other => Err(self.no_objects(other)),
        }
    }

    fn times(&self, py: Python<'py>, storage: &DataType) -> PyResult<ArrayRef> {
        match storage {
            DataType::Date32 => self.integers::<i32>(storage, days),
            DataType::Date64 => self.integers::<i64>(storage, |cell| Ok(days(cell)? * 86_400_000)),
            DataType::Time32(unit) => {
                self.integers::<i32>(storage, |cell| exact(time_of_day(cell)?, *unit))
            }
            DataType::Time64(unit) => {
                self.integers::<i64>(storage, |cell| exact(time_of_day(cell)?, *unit))
            }
            DataType::Timestamp(unit, zone) => {
                let epoch = epoch(py, zone.is_some())?;
                let read = |cell: &_| exact(since(cell, &epoch, zone.is_some())?, *unit);
                self.integers::<i64>(storage, read)
            }
            DataType::Duration(unit) => {
                self.integers::<i64>(storage, |cell| match is_of(cell, "datetime", "timedelta") {
                    true => exact(nanoseconds(cell)?, *unit),
                    false => Err(Misread::Type),
                })
            }
            other => Err(self.no_objects(other)),
        }
    }

    /// What `read` makes of each value that is not null, and where they are valid.
    fn read<T: Default>(
        &self,
        storage: &DataType,
        read: &dyn Fn(&Bound<'py, PyAny>) -> Read<T>,
    ) -> PyResult<(Vec<T>, Option<NullBuffer>)> {
        let mut values = alloc::reserved(self.cells.len())?;
        for (at, cell) in self.cells.iter().enumerate() {
            values.push(match cell {
                None => T::default(),
                Some(cell) => {
                    read(cell).map_err(|misread| self.refused(at, cell, storage, misread))?
                }
            });
        }
        Ok((values, self.nulls()?))
    }

    /// What `append` writes of each value that is not null, or as many zeros for a null, and where each begins.
    fn appended(
        &self,
        storage: &DataType,
        of_null: usize,
        append: &Append<'_, 'py>,
    ) -> PyResult<(OffsetBuffer<i64>, Buffer)> {
        let (mut bytes, zeros) = (Vec::new(), alloc::zeros(of_null)?);
        let mut ends = self.ends()?;
        for (at, cell) in self.cells.iter().enumerate() {
            match cell {
                None => append_bytes(&zeros, &mut bytes)?,
                Some(cell) => append(cell, &mut bytes)
                    .map_err(|misread| self.refused(at, cell, storage, misread))?,
            }
            ends.push(end_of(&bytes));
        }
        Ok((OffsetBuffer::new(ends.into()), Buffer::from_vec(bytes)))
    }

    /// The end of nothing, with capacity for that of each row.
    fn ends(&self) -> PyResult<Vec<i64>> {
        let mut ends = alloc::reserved(self.cells.len() + 1)?;
        ends.push(0);
        Ok(ends)
    }

    fn nulls(&self) -> PyResult<Option<NullBuffer>> {
        if self.cells.iter().all(Option::is_some) {
            return Ok(None);
        }
        self.check_bits()?;
        Ok(Some(self.cells.iter().map(Option::is_some).collect()))
    }

    /// Whether a bit for each row fits memory; arrow-rs, which packs them, does not ask.
    fn check_bits(&self) -> PyResult<()> {
        Ok(alloc::probe_alloc(self.cells.len() / 8)?)
    }

    #[cold]
    fn refused(
        &self,
        at: usize,
        cell: &Bound<'py, PyAny>,
        storage: &DataType,
        misread: Misread,
    ) -> PyErr {
        let (place, value) = ((self.place)(at), described(cell));
        match misread {
            Misread::Raised(error) => placed(cell.py(), &place, error),
            Misread::Missing(key) => PyKeyError::new_err(format!("{place}: there is no {key:?}")),
            Misread::Type => {
                let is_nan = cell.extract::<f64>().is_ok_and(f64::is_nan);
                let hint = match storage {
                    // What pandas has for a null among objects.
                    _ if is_nan => ": None is a null",
                    _ if storage.is_decimal() && cell.is_instance_of::<PyFloat>() => {
                        ": decimal.Decimal(str(x)) is one, and where no column has floats json.loads(text, \
                         parse_float=decimal.Decimal) makes one of each"
                    }
                    _ if storage.is_decimal() && cell.is_instance_of::<PyString>() => {
                        ": decimal.Decimal(x) is one"
                    }
                    _ if storage.is_floating() && is_of_decimals(cell) => ": float(x) is one",
                    // Of `_pydecimal`, which is slower and another class.
                    _ if storage.is_decimal()
                        && is_of_decimals(cell)
                        && !is_of(cell, "decimal", "Decimal") =>
                    {
                        ": it is no decimal.Decimal, and decimal.Decimal(str(x)) is one"
                    }
                    _ if storage.is_temporal() => way_to_time(cell, storage),
                    _ => "",
                };
                PyTypeError::new_err(format!(
                    "{place}: {value}, of type {}, is no value of {storage}, which training has{hint}",
                    type_name(cell)
                ))
            }
            Misread::Value(why) => PyValueError::new_err(format!(
                "{place}: {value} is no value of {storage}, which training has{why}"
            )),
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        storage: &DataType,
        read: impl Fn(&Bound<'py, PyAny>) -> Read<T::Native>,
    ) -> PyResult<ArrayRef> {
        let (values, nulls) = self.read(storage, &|cell| read(cell))?;
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Ok(Arc::new(array.with_data_type(storage.clone())))
    }

    /// Of a type that is stored as integers of this width.
    fn integers<T: ArrowNativeType + TryFrom<i128>>(
        &self,
        storage: &DataType,
        read: impl Fn(&Bound<'py, PyAny>) -> Read<i128>,
    ) -> PyResult<ArrayRef> {
        let out_of_range = || match storage.is_temporal() {
            true => Misread::Value(": it is out of range".to_owned()),
            false => Misread::Value(String::new()),
        };
        let fitting = |value: i128| T::try_from(value).map_err(|_| out_of_range());
        let (values, nulls) = self.read(storage, &|cell| fitting(read(cell)?))?;
        self.made(storage, nulls, vec![Buffer::from_vec(values)], Vec::new())
    }

    fn decimals<T: DecimalType>(
        &self,
        precision: u8,
        scale: i8,
        narrowed: impl Fn(i256) -> Option<T::Native>,
    ) -> PyResult<ArrayRef> {
        let storage = &T::TYPE_CONSTRUCTOR(precision, scale);
        let (values, nulls) = self.read(storage, &|cell| {
            let value = decimal(cell, precision, scale)?;
            narrowed(value).ok_or_else(|| Misread::Value(String::new()))
        })?;
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Ok(Arc::new(checked(|| array.with_precision_and_scale(precision, scale))?))
    }

    /// Lists of any layout of different lengths.
    fn lists(&self, py: Python<'py>, storage: &DataType, item: &FieldRef) -> PyResult<ArrayRef> {
        let (mut all, mut ends) = (Vec::new(), self.ends()?);
        for (at, cell) in self.cells.iter().enumerate() {
            if let Some(cell) = cell {
                let items = Items::of(cell).and_then(|items| items.append_to(&mut all));
                items.map_err(|misread| self.refused(at, cell, storage, misread))?;
            }
            ends.push(end_of(&all));
        }
        let row_of = |item: usize| {
            let item = i64::try_from(item).unwrap_or(i64::MAX);
            ends.partition_point(|&end| end <= item) - 1
        };
        let place = |at: usize| {
            let row = row_of(at);
            let first = usize::try_from(ends[row]).unwrap_or(0);
            format!("{}: item {}", (self.place)(row), at - first)
        };
        let values = PyCells { cells: &all, place: &place }.array(py, item)?;
        let large = DataType::LargeList(Arc::clone(item));
        let offsets = vec![Buffer::from_vec(ends)];
        let made = self.made(&large, self.nulls()?, offsets, vec![values.to_data()])?;
        Ok(as_stored(&made, storage)?)
    }

    /// Lists whose nested items have this shape, as rows of all of their values; `places` says which of them lies where, if
    /// the axes lie in another order. One flat list has them as they lie.
    fn fixed_size(
        &self,
        py: Python<'py>,
        storage: &DataType,
        item: &FieldRef,
        shape: &[i64],
        places: Option<&[usize]>,
    ) -> PyResult<ArrayRef> {
        let size: usize = shape.iter().map(|&extent| extent.as_usize()).product();
        let mut all = alloc::reserved(size.saturating_mul(self.cells.len()))?;
        let mut row = alloc::reserved(places.map_or(0, <[usize]>::len))?;
        for (at, cell) in self.cells.iter().enumerate() {
            if let Some(cell) = cell {
                let is_flat = flatten(cell, shape, &mut all);
                let is_flat =
                    is_flat.map_err(|misread| self.refused(at, cell, storage, misread))?;
                if let Some(places) = places.filter(|_| !is_flat) {
                    row.extend(all.drain(size * at..));
                    all.extend(places.iter().map(|&place| row[place].take()));
                    row.clear();
                }
            }
            all.resize_with(size * (at + 1), || None); // of a null
        }
        let place = |at: usize| {
            let row = at / size.max(1);
            format!("{}: item {}", (self.place)(row), at - row * size)
        };
        let values = PyCells { cells: &all, place: &place }.array(py, item)?;
        self.made(storage, self.nulls()?, Vec::new(), vec![values.to_data()])
    }

    fn structs(&self, py: Python<'py>, storage: &DataType, fields: &Fields) -> PyResult<ArrayRef> {
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let name = field.name();
            let (cells, _) = self.read(storage, &|cell| match cell.cast::<PyDict>() {
                Ok(dict) => match dict.get_item(name)? {
                    Some(value) => Ok(present(value)),
                    None => Err(Misread::Missing(name.clone())),
                },
                Err(_) => Err(Misread::Type),
            })?;
            let place = |at: usize| format!("{}: key {name:?}", (self.place)(at));
            columns.push(PyCells { cells: &cells, place: &place }.array(py, field)?.to_data());
        }
        self.made(storage, self.nulls()?, Vec::new(), columns)
    }

    fn made(
        &self,
        storage: &DataType,
        nulls: Option<NullBuffer>,
        buffers: Vec<Buffer>,
        children: Vec<ArrayData>,
    ) -> PyResult<ArrayRef> {
        let data = ArrayData::builder(storage.clone()).len(self.cells.len()).nulls(nulls);
        let data = data.buffers(buffers).child_data(children);
        Ok(checked(|| Ok(make_array(data.build()?)))?)
    }
}

/// Why a value is refused.
enum Misread {
    /// It is of another kind.
    Type,
    /// It is another value there, and perhaps why.
    Value(String),
    /// It has not this key.
    Missing(String),
    Raised(PyErr),
}

impl From<PyErr> for Misread {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

type Read<T> = Result<T, Misread>;

/// Writes a value behind those before it.
type Append<'a, 'py> = dyn Fn(&Bound<'py, PyAny>, &mut Vec<u8>) -> Read<()> + 'a;

/// Where what is written next begins.
fn end_of<T>(written: &[T]) -> i64 {
    i64::try_from(written.len()).unwrap_or(i64::MAX)
}

/// A number of Python's; of NumPy's, or another library's, the one of Python's that its `item()` or `as_py()` is.
fn plain<'py>(cell: &Bound<'py, PyAny>) -> Read<Bound<'py, PyAny>> {
    let py = cell.py();
    if cell.is_instance_of::<PyFloat>() || cell.is_instance_of::<PyInt>() {
        return Ok(cell.clone());
    }
    // Times of NumPy's have an item that is a number, and arrays of one value have one.
    let is_single = match cell.getattr_opt(intern!(py, "ndim"))? {
        Some(ndim) => ndim.extract::<usize>().is_ok_and(|ndim| ndim == 0),
        None => true,
    };
    if !is_single || kind_of_times(cell)?.is_some() || is_masked(cell) {
        return Err(Misread::Type);
    }
    for name in [intern!(py, "item"), intern!(py, "as_py")] {
        if let Some(method) = cell.getattr_opt(name)? {
            return method.call0().map_err(|_| Misread::Type);
        }
    }
    Ok(cell.clone())
}

fn truth(cell: &Bound<'_, PyAny>) -> Read<bool> {
    let cell = plain(cell)?;
    match cell.is_instance_of::<PyBool>() {
        true => Ok(cell.extract()?),
        false => Err(Misread::Type),
    }
}

fn integer(cell: &Bound<'_, PyAny>) -> Read<i128> {
    let cell = plain(cell)?;
    if cell.is_instance_of::<PyBool>() {
        return Err(Misread::Type);
    }
    if cell.is_instance_of::<PyInt>() {
        return cell.extract().map_err(|_| Misread::Value(String::new()));
    }
    if !cell.is_instance_of::<PyFloat>() {
        return Err(Misread::Type);
    }
    let value: f64 = cell.extract()?;
    if value == 0.0 && value.is_sign_negative() {
        return Err(Misread::Value(": no integer is -0.0".to_owned()));
    }
    if value.is_nan() {
        // What pandas has for a null among integers.
        return Err(Misread::Value(": None is a null".to_owned()));
    }
    // Every float of this size is whole, and i128 holds it.
    let is_whole = value.fract() == 0.0 && value.abs() < 1e30;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "whole, and in range"
    )]
    if is_whole { Ok(value as i128) } else { Err(Misread::Value(": it is not whole".to_owned())) }
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "rounds")]
fn single(value: f64) -> f32 {
    value as f32
}

/// A float, rounded; of an integer the float that is equal.
fn float<T>(
    cell: &Bound<'_, PyAny>,
    rounded: impl Fn(f64) -> f64,
    made: impl Fn(f64) -> T,
) -> Read<T> {
    let cell = plain(cell)?;
    if cell.is_instance_of::<PyBool>() {
        return Err(Misread::Type);
    }
    if cell.is_instance_of::<PyInt>() {
        let value: f64 = cell.extract().map_err(|_| Misread::Value(String::new()))?;
        // Python compares them exactly.
        return match value.is_finite() && cell.eq(rounded(value))? {
            true => Ok(made(value)),
            false => Err(Misread::Value(": no float is equal to it".to_owned())),
        };
    }
    if !cell.is_instance_of::<PyFloat>() {
        return Err(Misread::Type);
    }
    let value: f64 = cell.extract()?;
    match rounded(value).is_infinite() && value.is_finite() {
        true => Err(Misread::Value(": it would be infinite".to_owned())),
        false => Ok(made(value)),
    }
}

/// The digits of a decimal as an integer; `scale` of them are after the point.
fn decimal(cell: &Bound<'_, PyAny>, precision: u8, scale: i8) -> Read<i256> {
    let no = |why: &str| Misread::Value(why.to_owned());
    let cell = if is_of(cell, "decimal", "Decimal") { cell.clone() } else { plain(cell)? };
    let (negative, mut digits, exponent) = if is_of(&cell, "decimal", "Decimal") {
        // Not that of a subclass, which may give anything.
        let class = cell.py().import("decimal")?.getattr("Decimal")?;
        let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
            class.call_method1(intern!(cell.py(), "as_tuple"), (&cell,))?.extract()?;
        let exponent: i64 = exponent.extract().map_err(|_| no(": it is no number"))?;
        (sign == 1, digits, exponent)
    } else if cell.is_instance_of::<PyInt>() && !cell.is_instance_of::<PyBool>() {
        let text = cell.str()?.to_string();
        let digits = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        (text.starts_with('-'), digits, 0)
    } else {
        return Err(Misread::Type);
    };
    let leading = digits.iter().take_while(|&&digit| digit == 0).count();
    digits.drain(..leading);
    if digits.is_empty() {
        return Ok(i256::ZERO);
    }
    let mut more = exponent + i64::from(scale);
    while more < 0 && digits.last() == Some(&0) {
        digits.pop();
        more += 1;
    }
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(more.max(0));
    if more < 0 || length > i64::from(precision) {
        return Err(no(": it has too many digits"));
    }
    digits.resize(usize::try_from(length).unwrap_or(0), 0);
    let mut value = i256::ZERO;
    for digit in digits {
        value = value.wrapping_mul(i256::from_i128(10)).wrapping_add(i256::from_i128(digit.into()));
    }
    Ok(if negative { value.wrapping_neg() } else { value })
}

fn append_text(cell: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> Read<()> {
    let text = cell.cast::<PyString>().map_err(|_| Misread::Type)?;
    let text = text.to_str().map_err(|_| Misread::Value(": it is not UTF-8".to_owned()))?;
    Ok(append_bytes(text.as_bytes(), bytes)?)
}

fn append_binary(cell: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> Read<()> {
    if let Ok(own) = cell.cast::<PyBytes>() {
        return Ok(append_bytes(own.as_bytes(), bytes)?);
    }
    if cell.is_instance_of::<PyByteArray>() || cell.is_instance_of::<PyMemoryView>() {
        let copy = cell.py().get_type::<PyBytes>().call1((cell,))?;
        let copy = copy.cast::<PyBytes>().map_err(|_| Misread::Type)?;
        return Ok(append_bytes(copy.as_bytes(), bytes)?);
    }
    Err(Misread::Type)
}

/// What makes a time of this type of a text, a number, or a time of another kind.
fn way_to_time(cell: &Bound<'_, PyAny>, storage: &DataType) -> &'static str {
    let is_number = cell.is_instance_of::<PyInt>() || cell.is_instance_of::<PyFloat>();
    let from = match kind_of_times(cell) {
        Ok(Some('M')) => "datetime64",
        Ok(Some('m')) => "timedelta64",
        _ if cell.is_instance_of::<PyString>() => "text",
        _ if is_number && !cell.is_instance_of::<PyBool>() => "number",
        _ if is_of(cell, "datetime", "datetime") => "datetime",
        _ if is_of(cell, "datetime", "date") => "date",
        _ => return "",
    };
    match (storage, from) {
        (DataType::Timestamp(_, zone), "datetime64" | "date") => match zone {
            None => ": pandas.Timestamp(x) is one",
            Some(_) => ": pandas.Timestamp(x, tz=\"UTC\") is one, if x is of UTC",
        },
        (DataType::Timestamp(..), "text") => {
            ": datetime.datetime.fromisoformat(x) is one of ISO 8601"
        }
        (DataType::Timestamp(_, zone), "number") => match zone {
            None => {
                ": datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=x) is one of Unix seconds"
            }
            Some(_) => {
                ": datetime.datetime.fromtimestamp(x, datetime.timezone.utc) is one of Unix seconds"
            }
        },
        (DataType::Date32 | DataType::Date64, "text") => {
            ": datetime.date.fromisoformat(x) is one of ISO 8601"
        }
        (DataType::Date32 | DataType::Date64, "datetime") => ": x.date() is its day",
        (DataType::Date32 | DataType::Date64, "datetime64") => {
            ": pandas.Timestamp(x).date() is its day"
        }
        (DataType::Time32(_) | DataType::Time64(_), "text") => {
            ": datetime.time.fromisoformat(x) is one of ISO 8601"
        }
        (DataType::Time32(_) | DataType::Time64(_), "datetime") => ": x.time() is its time of day",
        (DataType::Duration(_), "number") => ": datetime.timedelta(seconds=x) is one of seconds",
        (DataType::Duration(_), "timedelta64") => ": pandas.Timedelta(x) is one",
        _ => "",
    }
}

fn append_bytes(more: &[u8], bytes: &mut Vec<u8>) -> PyResult<()> {
    alloc::reserve(bytes, more.len())?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// Whether the object is of this class of a module that is imported, or of one that derives from it.
fn is_of(cell: &Bound<'_, PyAny>, module: &str, class: &str) -> bool {
    let found = || cell.is_instance(&cell.py().import(module)?.getattr(class)?);
    found().unwrap_or(false)
}

/// Nanoseconds in another unit, if that is exact.
fn exact(nanoseconds: i128, unit: TimeUnit) -> Read<i128> {
    let long = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    match nanoseconds % long {
        0 => Ok(nanoseconds / long),
        _ => Err(Misread::Value(": it has a fraction of the unit".to_owned())),
    }
}

fn days(cell: &Bound<'_, PyAny>) -> Read<i128> {
    /// 1970-01-01 by `date.toordinal`.
    const EPOCH: i128 = 719_163;
    if !is_of(cell, "datetime", "date") || is_of(cell, "datetime", "datetime") {
        return Err(Misread::Type);
    }
    Ok(cell.call_method0(intern!(cell.py(), "toordinal"))?.extract::<i128>()? - EPOCH)
}

fn time_of_day(cell: &Bound<'_, PyAny>) -> Read<i128> {
    let py = cell.py();
    if !is_of(cell, "datetime", "time") || !cell.getattr(intern!(py, "tzinfo"))?.is_none() {
        return Err(Misread::Type);
    }
    let part = |name: &str| cell.getattr(name)?.extract::<i128>();
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    Ok((seconds * 1_000_000 + part("microsecond")?) * 1_000)
}

/// 1970-01-01, of UTC where times have a zone.
fn epoch(py: Python<'_>, has_zone: bool) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import(intern!(py, "datetime"))?;
    let zone = if has_zone { Some(module.getattr("timezone")?.getattr("utc")?) } else { None };
    module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))
}

/// Nanoseconds since the epoch.
fn since(cell: &Bound<'_, PyAny>, epoch: &Bound<'_, PyAny>, has_zone: bool) -> Read<i128> {
    let py = cell.py();
    if !is_of(cell, "datetime", "datetime") {
        return Err(Misread::Type);
    }
    let has_own = !cell.call_method0(intern!(py, "utcoffset"))?.is_none();
    match (has_own, has_zone) {
        (true, false) => Err(Misread::Value(
            ": it has a zone, which x.replace(tzinfo=None) takes away".to_owned(),
        )),
        (false, true) => {
            Err(Misread::Value(": it has no zone, which x.replace(tzinfo=...) gives".to_owned()))
        }
        _ => nanoseconds(&cell.sub(epoch)?),
    }
}

/// Of a timedelta, pandas' too.
fn nanoseconds(delta: &Bound<'_, PyAny>) -> Read<i128> {
    let part = |name: &str| match delta.getattr_opt(name)? {
        Some(part) => part.extract::<i128>(),
        None => Ok(0),
    };
    let seconds = part("days")? * 86_400 + part("seconds")?;
    Ok((seconds * 1_000_000 + part("microseconds")?) * 1_000 + part("nanoseconds")?)
}

/// The items of a row, where Python has them: of millions of rows none is copied alone.
enum Items<'py> {
    List(Bound<'py, PyList>),
    Tuple(Bound<'py, PyTuple>),
}

impl<'py> Items<'py> {
    /// Those of a list, a tuple or an array of NumPy's.
    fn of(cell: &Bound<'py, PyAny>) -> Read<Self> {
        if let Ok(list) = cell.cast::<PyList>() {
            return Ok(Self::List(list.clone()));
        }
        if let Ok(tuple) = cell.cast::<PyTuple>() {
            return Ok(Self::Tuple(tuple.clone()));
        }
        let is_one = cell.is_instance_of::<PyString>() || cell.is_instance_of::<PyDict>();
        let has_items = !is_one && kind_of_times(cell)?.is_none();
        match cell.getattr_opt(intern!(cell.py(), "tolist"))? {
            Some(method) if has_items => match method.call0()?.cast_into::<PyList>() {
                Ok(list) => Ok(Self::List(list)),
                Err(_) => Err(Misread::Type),
            },
            _ => Err(Misread::Type),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Tuple(tuple) => tuple.len(),
        }
    }

    /// Each of them; `None` for one that is None.
    fn iter(&self) -> impl Iterator<Item = PyResult<Cell<'py>>> + '_ {
        (0..self.len()).map(move |at| {
            let item = match self {
                Self::List(list) => list.get_item(at),
                Self::Tuple(tuple) => tuple.get_item(at),
            };
            item.map(present)
        })
    }

    fn append_to(&self, all: &mut Vec<Cell<'py>>) -> Read<()> {
        alloc::reserve(all, self.len()).map_err(PyErr::from)?;
        for item in self.iter() {
            all.push(item?);
        }
        Ok(())
    }
}

/// A value; `None` for Python's, and for NA and NaT of pandas, which `frame.to_dict("records")` has.
pub(super) fn present(cell: Bound<'_, PyAny>) -> Cell<'_> {
    (!is_null(&cell)).then_some(cell)
}

/// Appends the values of nested lists of this shape, or of one flat list of all of them, and says whether it was one.
fn flatten<'py>(cell: &Bound<'py, PyAny>, shape: &[i64], out: &mut Vec<Cell<'py>>) -> Read<bool> {
    let [extent, inner @ ..] = shape else {
        out.push(present(cell.clone()));
        return Ok(false);
    };
    let items = Items::of(cell)?;
    let is_item = |item: PyResult<Cell<'_>>| match item {
        Ok(Some(item)) => Items::of(&item).is_err(),
        item => item.is_ok(),
    };
    let is_whole = i64::try_from(items.len()) == Ok(shape.iter().product());
    if is_whole && (inner.is_empty() || items.iter().all(is_item)) {
        items.append_to(out)?;
        return Ok(true);
    }
    if i64::try_from(items.len()) != Ok(*extent) {
        return Err(Misread::Value(format!(
            ": rows have shape {shape:?}, and this one {} items",
            items.len()
        )));
    }
    for item in items.iter() {
        flatten(&item?.ok_or(Misread::Type)?, inner, out)?;
    }
    Ok(false)
}

/// Whether it is a text or bytes, of which a request may be made.
pub(super) fn is_text(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// The value of a key; `None` if there is none.
pub(super) fn mapped<'py>(
    row: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match row.cast::<PyDict>() {
        Ok(dict) => dict.get_item(name),
        Err(_) => {
            // A class has the attributes of its objects, but no values.
            if row.is_instance_of::<PyType>() {
                return Err(PyTypeError::new_err(format!(
                    "each row must be a dict, got {}, which is a class: pass an object of it",
                    described(row)
                )));
            }
            let (got, way_out) = match row.hasattr("to_dict")? {
                true if row.hasattr("columns")? => (type_name(row), ": pass the frame itself"),
                true => (type_name(row), ": x.to_dict() is one"),
                false if is_text(row) => (described(row), ": json.loads(x) is one, if x is JSON"),
                false if row.hasattr("__arrow_c_array__")? => {
                    (type_name(row), ": pyarrow.Table.from_batches(x) is a table of several")
                }
                false if row.hasattr("__dataclass_fields__")? => {
                    (described(row), ": dataclasses.asdict(x) is one")
                }
                false if row.hasattr("model_dump")? => (described(row), ": x.model_dump() is one"),
                false if row.hasattr("_asdict")? => (described(row), ": x._asdict() is one"),
                false if row.hasattr("keys")? => (described(row), ": dict(x) is one"),
                false => (
                    described(row),
                    ": it has the values by their names, as polars' x.row(i, named=True)",
                ),
            };
            Err(PyTypeError::new_err(format!("each row must be a dict, got {got}{way_out}")))
        }
    }
}
