//! Columns of codes, themselves or in lists of one size: what they are read as, and chunks with one dictionary.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, make_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::dictionary::{Dictionary, Meaning, dictionary_of, recoded};
use super::distinct::Distinct;
use super::ffi_validate::fenced;
use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::export;

/// A column of a stream that is codes, itself or in lists of one size.
pub(super) struct Coded {
    /// What it is read as: codes alone.
    pub(super) codes: FieldRef,
    /// What it is: codes and values.
    pub(super) field: FieldRef,
    pub(super) values: Arc<Dictionary>,
}

impl Coded {
    pub(super) fn new(field: &Field) -> PyResult<Option<Self>> {
        let Some((_, values)) = leaf(field.data_type()) else { return Ok(None) };
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(values.clone()));
        let with = |leaf| {
            // A code may stand for null where no code is.
            let data_type = with_leaf(field.data_type(), leaf);
            Arc::new(field.clone().with_data_type(data_type).with_nullable(true))
        };
        let values = Arc::new(Dictionary::new(values)?);
        Ok(Some(Self { codes: with(&DataType::Int32), field: with(&dictionary), values }))
    }

    /// What the codes of all chunks until now stand for.
    pub(super) fn meaning(&self) -> PyResult<Meaning> {
        Ok(Meaning::Growing(Arc::clone(&self.values), self.values.len()?))
    }

    /// The codes of a chunk; it may be that they can only be copied.
    pub(super) fn read(&self, chunk: &ArrayRef, copy: CopyPolicy) -> PyResult<ArrayRef> {
        within(chunk, self.codes.data_type(), &|chunk| self.values.codes(chunk, copy))
    }
}

/// Whether a column of the type is codes, itself or in lists of one size.
pub(super) fn has_codes(data_type: &DataType) -> bool {
    leaf(data_type).is_some()
}

/// What chunks of codes take that share a dictionary.
pub(super) fn nbytes(chunks: &[ArrayRef]) -> usize {
    let size = |array: &ArrayRef| array.get_buffer_memory_size();
    let all: usize = chunks.iter().map(size).sum();
    let values = chunks.first().and_then(dictionary_of);
    let again = values.map_or(0, |values| size(&values) * chunks.len().saturating_sub(1));
    all.saturating_sub(again)
}

/// The types of keys and values, below lists of one size.
fn leaf(data_type: &DataType) -> Option<(&DataType, &DataType)> {
    match data_type {
        DataType::Dictionary(keys, values) => Some((keys, values)),
        DataType::FixedSizeList(item, _) => leaf(item.data_type()),
        _ => None,
    }
}

fn with_leaf(data_type: &DataType, leaf: &DataType) -> DataType {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            let item_type = with_leaf(item.data_type(), leaf);
            let item = Field::clone(item).with_data_type(item_type).with_nullable(true);
            DataType::FixedSizeList(Arc::new(item), *size)
        }
        _ => leaf.clone(),
    }
}

/// An array of the type, whose dictionary has become something else.
fn within(
    array: &ArrayRef,
    data_type: &DataType,
    change: &dyn Fn(&dyn Array) -> PyResult<ArrayRef>,
) -> PyResult<ArrayRef> {
    let DataType::FixedSizeList(item, size) = data_type else { return change(array) };
    let values = within(array.as_fixed_size_list().values(), item.data_type(), change)?;
    let (item, nulls) = (Arc::clone(item), array.nulls().cloned());
    let lists = || FixedSizeListArray::try_new_with_length(item, *size, values, nulls, array.len());
    Ok(Arc::new(fenced(lists).map_err(PyValueError::new_err)?))
}

/// Chunks of codes with one dictionary for all of them; `None` if they have one already, or if their values
/// are not told apart.
pub(super) fn unified(chunks: &[ArrayRef]) -> PyResult<Option<Vec<ArrayRef>>> {
    let dictionaries: Vec<ArrayRef> = chunks.iter().filter_map(dictionary_of).collect();
    if are_same(&dictionaries) { Ok(None) } else { merged(chunks, &dictionaries) }
}

/// [`unified`] chunks whose dictionaries differ.
fn merged(chunks: &[ArrayRef], dictionaries: &[ArrayRef]) -> PyResult<Option<Vec<ArrayRef>>> {
    let Some((keys, values)) = chunks.first().and_then(|chunk| leaf(chunk.data_type())) else {
        return Ok(None);
    };
    if !Distinct::tells_apart(values) {
        return Ok(None);
    }
    let all = Dictionary::new(values)?;
    let codes = dictionaries.iter().map(|values| all.of_values(values, chunks[0].data_type()));
    let codes = codes.collect::<PyResult<Vec<_>>>()?;
    let len = all.len()?;
    if len > count(keys) {
        return Err(Error::TooManyValues { count: len, keys: keys.clone() }.into());
    }
    let values = all.array(len)?;
    let unified = chunks.iter().zip(codes).map(|(chunk, codes)| {
        let codes = fenced(|| cast(&codes, keys)).map_err(PyValueError::new_err)?;
        within(chunk, chunk.data_type(), &|chunk| {
            let keys = recoded(chunk.as_any_dictionary().keys(), &codes)?;
            let array = || with_keys(&keys, &values);
            fenced(array).map_err(PyValueError::new_err)
        })
    });
    unified.collect::<PyResult<Vec<_>>>().map(Some)
}

/// Chunks of codes that share a dictionary; `None` if their values are not told apart.
pub(super) fn of_one_dictionary(chunks: &[ArrayRef]) -> PyResult<Option<Vec<ArrayRef>>> {
    if !chunks.first().is_some_and(|chunk| has_codes(chunk.data_type())) {
        return Ok(None);
    }
    let dictionaries: Vec<ArrayRef> = chunks.iter().filter_map(dictionary_of).collect();
    if !are_same(&dictionaries) {
        return merged(chunks, &dictionaries);
    }
    let shared = chunks.iter().map(|chunk| {
        within(chunk, chunk.data_type(), &|chunk| {
            Ok(chunk.as_any_dictionary().with_values(Arc::clone(&dictionaries[0])))
        })
    });
    shared.collect::<PyResult<_>>().map(Some)
}

/// Offsets that another language has written to make them differ, and are an error where they are merged.
fn are_same(dictionaries: &[ArrayRef]) -> bool {
    let same = || dictionaries.iter().all(|other| export::same_values(&dictionaries[0], other));
    fenced(|| Ok(same())).unwrap_or(false)
}

fn with_keys(keys: &ArrayRef, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let types = (Box::new(keys.data_type().clone()), Box::new(values.data_type().clone()));
    let data = keys.to_data().into_builder().data_type(DataType::Dictionary(types.0, types.1));
    Ok(make_array(data.add_child_data(values.to_data()).build()?))
}

/// How many values have a code of such a type.
pub(super) fn count(keys: &DataType) -> usize {
    let bits = match keys {
        DataType::Int8 => 7,
        DataType::UInt8 => 8,
        DataType::Int16 => 15,
        DataType::UInt16 => 16,
        DataType::Int32 => 31,
        DataType::UInt32 => 32,
        _ => 63,
    };
    1_usize.checked_shl(bits).unwrap_or(usize::MAX)
}
