//! Values as codes: the position of each among given words.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::{fmt, iter};

use arrow_array::types::{self, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, cast::AsArray, downcast_primitive_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use crate::chunks::{Distinct, Runs, addresses, checked, everything, logical_nulls};
use crate::{Error, alloc, extension::Extension, task::Steps};

/// Words, by whose positions a column is coded: [`Form::Categories`](super::Form::Categories).
///
/// Other than the codes of a dictionary, they are the same in all batches, processes and runs. Texts and binaries are
/// found in any layout, and in dictionaries and runs of them; all NaNs are one value, and so are both zeros.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{RecordBatchIterator, StringArray, record_batch};
/// use arrow_dlpack::batches::{BatchOptions, Batches, Categories, ColumnOptions, Form};
///
/// let colours = Categories::try_new(Arc::new(StringArray::from(vec!["red", "green"])))?.with_unknown(-1);
/// let colour = ColumnOptions::default().with_form(Form::Categories(colours));
/// let options = BatchOptions::default().with_column_options("colour", colour);
/// let table = record_batch!(("colour", Utf8, ["green", "blue", "red"]))?;
/// let schema = table.schema();
/// let reader = RecordBatchIterator::new([Ok(table)], schema);
/// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
/// assert_eq!(batch.tensor("colour").unwrap().values.as_slice::<i32>(), Some(&[1, -1, 0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Categories {
    words: Arc<Words>,
    unknown: Option<i32>,
}

struct Words {
    array: ArrayRef,
    distinct: Distinct,
    /// Positions of the distinct ones, where some words are null.
    positions: Option<Vec<i32>>,
}

impl Categories {
    /// Words in the order of their codes. A null is a code that no value has.
    ///
    /// # Errors
    ///
    /// `NoCategories` for types whose values are not compared, which are the nested ones; `EqualCategories` for two words
    /// that are one value; `OutOfMemory`.
    pub fn try_new(words: ArrayRef) -> Result<Self, Error> {
        let array = addresses(&words)?;
        let no_categories = || Error::NoCategories { data_type: words.data_type().clone() };
        let mut distinct = Distinct::of_numbers(words.data_type()).ok_or_else(no_categories)?;
        let codes = distinct.codes(&array)?;
        let mut positions = alloc::reserved(distinct.len())?;
        for (position, code) in (0..).zip(&codes) {
            let Some(code) = code else { continue };
            match positions.get(usize::try_from(code).unwrap_or(0)) {
                Some(&first) => return Err(Error::EqualCategories { first, second: position }),
                None => positions.push(position),
            }
        }
        let positions = (codes.null_count() > 0).then_some(positions);
        Ok(Self { words: Arc::new(Words { array, distinct, positions }), unknown: None })
    }

    /// The code of values that are none of the words, which are an error otherwise.
    #[must_use]
    pub fn with_unknown(mut self, code: impl Into<Option<i32>>) -> Self {
        self.unknown = code.into();
        self
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &ArrayRef {
        &self.words.array
    }

    /// The code of values that are none of the words.
    #[must_use]
    pub fn unknown(&self) -> Option<i32> {
        self.unknown
    }

    /// An error for a column whose values cannot be words.
    pub(super) fn check(&self, field: &Field) -> Result<(), Error> {
        let words = self.words.array.data_type();
        let is_one_kind = |values: &DataType| {
            values == words
                || *values == DataType::Null
                || (values.is_string() && words.is_string())
                || (is_binary(values) && is_binary(words))
        };
        let is_right = match field.data_type() {
            _ if is_bool8(field) => *words == DataType::Boolean,
            DataType::Dictionary(_, values) => is_one_kind(values),
            DataType::RunEndEncoded(_, values) => is_one_kind(values.data_type()),
            values => is_one_kind(values),
        };
        match is_right {
            true => Ok(()),
            false => Err(Error::OtherCategories {
                words: words.clone(),
                values: field.data_type().clone(),
            }),
        }
    }

    /// The code of each value of a column, null where the value is.
    ///
    /// # Errors
    ///
    /// `NotACategory`; `OtherCategories`; `OutOfMemory`.
    fn codes(&self, column: &ArrayRef, field: &Field) -> Result<Int32Array, Error> {
        self.check(field)?;
        if *column.data_type() == DataType::Null {
            alloc::probe_alloc(column.len().saturating_mul(size_of::<i32>()))?;
            return Ok(Int32Array::new_null(column.len()));
        }
        let own = addresses(column)?;
        let found = match is_bool8(field) {
            // Any other number is true.
            true => LeafValues::plain(Arc::new(truths(&own)?))?,
            false => checked(|| Ok(LeafValues::of(&own)?))?,
        };
        self.of_values(&found, own.len())
    }

    /// The codes of a column, whose name its errors have, as `Int32` or `Int64`.
    pub(crate) fn read(
        &self,
        column: &ArrayRef,
        field: &Field,
        data_type: &DataType,
    ) -> Result<ArrayRef, Error> {
        let codes = self.codes(column, field);
        let codes = codes.map_err(|error| Error::in_column(field.name(), error))?;
        if data_type != &DataType::Int64 {
            return Ok(Arc::new(codes));
        }
        alloc::probe_alloc(codes.len().saturating_mul(size_of::<i64>()))?;
        Ok(Arc::new(codes.unary::<_, Int64Type>(i64::from)))
    }

    fn of_values(&self, values: &LeafValues, rows: usize) -> Result<Int32Array, Error> {
        let Words { distinct, positions, .. } = &*self.words;
        let data: ArrayData = values.array.to_data();
        let find = distinct.finder(&values.array, &data);
        let code_of = |index| {
            let code = find(index)?;
            match positions {
                Some(positions) => positions.get(usize::try_from(code).unwrap_or(0)).copied(),
                None => Some(code),
            }
        };
        // Each value of a dictionary is looked up once, unless most are of other rows.
        let is_few = values.rows.is_some() && values.array.len() <= rows;
        let count = if is_few { values.array.len() } else { 0 };
        let mut known: Vec<Option<Option<i32>>> = alloc::collect(iter::repeat_n(None, count))?;
        let mut codes = alloc::reserved(rows)?;
        // The first value that is no word, and those that differ.
        let mut unknown: Option<(usize, ArrayRef, Option<Distinct>)> = None;
        let mut steps = Steps::default();
        for row in 0..rows {
            steps.done(64)?;
            if values.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                codes.push(0);
                continue;
            }
            let index = values.rows.as_ref().map_or(row, |rows| rows[row]);
            let code = match known.get_mut(index) {
                Some(known) => *known.get_or_insert_with(|| code_of(index)),
                None => code_of(index),
            };
            match code.or(self.unknown) {
                Some(code) => codes.push(code),
                None => {
                    let value = values.array.slice(index, 1);
                    let all = || Distinct::of_numbers(value.data_type());
                    let (.., all) = unknown.get_or_insert_with(|| (row, value.clone(), all()));
                    all.as_mut().map(|all| all.codes(&value)).transpose()?;
                }
            }
        }
        let Some((row, first, all)) = unknown else {
            return Ok(Int32Array::new(codes.into(), values.nulls.clone()));
        };
        Err(Error::NotACategory {
            value: shown(&everything(&first)?),
            row,
            more: all.map_or(0, |all| all.len().saturating_sub(1)),
            categories: self.words.array.len(),
        })
    }
}

/// Words do not change once they are made, so that no panic leaves them half-made.
impl RefUnwindSafe for Categories {}
impl UnwindSafe for Categories {}

impl PartialEq for Categories {
    fn eq(&self, other: &Self) -> bool {
        self.words.array.as_ref() == other.words.array.as_ref() && self.unknown == other.unknown
    }
}

impl fmt::Debug for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = &self.words.array;
        f.debug_struct("Categories")
            .field("words", &format_args!("{} of {}", words.len(), words.data_type()))
            .field("unknown", &self.unknown)
            .finish()
    }
}

/// Values without children, and for each row where its value is.
struct LeafValues {
    array: ArrayRef,
    /// `None`: each at its row.
    rows: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
}

impl LeafValues {
    fn plain(array: ArrayRef) -> Result<Self, Error> {
        Ok(Self { rows: None, nulls: logical_nulls(&array)?, array })
    }

    /// Of an array, a dictionary or runs.
    fn of(array: &ArrayRef) -> Result<Self, Error> {
        // Where each value is.
        let ask = || alloc::probe_alloc(array.len().saturating_mul(size_of::<usize>()));
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            ask()?;
            let (values, nulls) = (Arc::clone(dictionary.values()), logical_nulls(array)?);
            let rows =
                if values.is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
            return Ok(Self { array: values, rows: Some(rows), nulls });
        }
        if let Some(runs) = Runs::of(array) {
            ask()?;
            let (rows, nulls) = (runs.of_rows().collect(), logical_nulls(array)?);
            return Ok(Self { array: runs.values, rows: Some(rows), nulls });
        }
        Self::plain(Arc::clone(array))
    }
}

fn is_binary(data_type: &DataType) -> bool {
    data_type.is_binary() && !matches!(data_type, DataType::FixedSizeBinary(_))
}

fn is_bool8(field: &Field) -> bool {
    matches!(Extension::of(field), Ok(Some(Extension::Bool8)))
}

fn truths(array: &ArrayRef) -> Result<BooleanArray, Error> {
    let numbers = array.as_primitive::<types::Int8Type>();
    alloc::probe_alloc(array.len())?;
    let bits = BooleanBuffer::collect_bool(array.len(), |row| numbers.value(row) != 0);
    Ok(BooleanArray::new(bits, array.nulls().cloned()))
}

/// The only value of an array without children: a text in quotes, a number, a time as the number that is stored.
fn shown(array: &ArrayRef) -> String {
    let bytes = match array.data_type() {
        DataType::Utf8 => return format!("{:?}", array.as_string::<i32>().value(0)),
        DataType::LargeUtf8 => return format!("{:?}", array.as_string::<i64>().value(0)),
        DataType::Utf8View => return format!("{:?}", array.as_string_view().value(0)),
        DataType::Boolean => return array.as_boolean().value(0).to_string(),
        DataType::Binary => array.as_binary::<i32>().value(0),
        DataType::LargeBinary => array.as_binary::<i64>().value(0),
        DataType::BinaryView => array.as_binary_view().value(0),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(0),
        other => {
            return downcast_primitive_array!(
                array => match other.is_temporal() {
                    true => format!("{:?} of {other}", array.value(0)),
                    false => format!("{:?}", array.value(0)),
                },
                _ => format!("a value of {other}")
            );
        }
    };
    format!("b\"{}\"", bytes.escape_ascii())
}
