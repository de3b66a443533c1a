//! Columns of dictionary codes, or of fixed-size lists of them: their codes and values, and chunks with one dictionary.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, cast::AsArray, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef};

use super::dictionary::{Dictionary, Meaning, are_same, dictionary_of, recoded};
use super::{checked::checked, distinct::tells_apart, size::items};
use crate::{CopyPolicy, Error};

/// A dictionary column of a stream, or one of fixed-size lists of codes.
pub(crate) struct Coded {
    /// The field of its codes.
    pub(crate) codes: FieldRef,
    /// Its own field, with codes and values.
    pub(crate) field: FieldRef,
    pub(crate) values: Arc<Dictionary>,
}

impl Coded {
    pub(crate) fn new(field: &Field) -> Result<Option<Self>, Error> {
        let Some((_, values)) = leaf(field.data_type()) else { return Ok(None) };
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(values.clone()));
        let with = |leaf| {
            // A valid code may refer to a null value.
            let data_type = with_leaf(field.data_type(), leaf);
            Arc::new(field.clone().with_data_type(data_type).with_nullable(true))
        };
        let values = Arc::new(Dictionary::new(values)?);
        Ok(Some(Self { codes: with(&DataType::Int32), field: with(&dictionary), values }))
    }

    /// The values of the codes of all chunks so far.
    pub(crate) fn meaning(&self) -> Result<Meaning, Error> {
        Ok(Meaning::Growing(Arc::clone(&self.values), self.values.len()?))
    }

    /// The codes of a chunk, which may have to be translated, by a copy.
    pub(crate) fn read(&self, chunk: &ArrayRef, copy: CopyPolicy) -> Result<ArrayRef, Error> {
        within(chunk, self.codes.data_type(), &|chunk| self.values.codes(chunk, copy))
    }
}

/// The types of keys and values, inside any fixed-size lists; `None` for other types.
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

/// An array of the type, with its dictionary array replaced.
fn within(
    array: &ArrayRef,
    data_type: &DataType,
    change: &dyn Fn(&dyn Array) -> Result<ArrayRef, Error>,
) -> Result<ArrayRef, Error> {
    let DataType::FixedSizeList(item, size) = data_type else { return change(array) };
    let values = within(array.as_fixed_size_list().values(), item.data_type(), change)?;
    let (item, nulls) = (Arc::clone(item), array.nulls().cloned());
    let lists = || FixedSizeListArray::try_new_with_length(item, *size, values, nulls, array.len());
    Ok(Arc::new(checked(lists)?))
}

/// Chunks of codes whose dictionaries differ, translated to one dictionary; `None` if the values are nested.
fn unified(
    chunks: &[ArrayRef],
    dictionaries: &[ArrayRef],
    (keys, values): (&DataType, &DataType),
) -> Result<Option<Vec<ArrayRef>>, Error> {
    if !tells_apart(values) {
        return Ok(None);
    }
    let (values, codes) = Dictionary::united(dictionaries, chunks[0].data_type(), keys)?;
    let unified = chunks.iter().zip(codes).map(|(chunk, codes)| {
        within(chunk, chunk.data_type(), &|chunk| {
            let nulls = checked(|| Ok(chunk.logical_nulls()))?;
            let codes = recoded(&items(chunk.as_any_dictionary().keys()), keys, &codes, keys)?;
            let data = ArrayData::builder(chunk.data_type().clone()).len(chunk.len()).nulls(nulls);
            let data = data.add_buffer(codes).add_child_data(values.to_data());
            checked(|| Ok(make_array(data.build()?)))
        })
    });
    unified.collect::<Result<Vec<_>, Error>>().map(Some)
}

/// Chunks of codes with one dictionary; `None` if the dictionaries differ and their values are nested.
pub(crate) fn of_one_dictionary(chunks: &[ArrayRef]) -> Result<Option<Vec<ArrayRef>>, Error> {
    let Some(types) = chunks.first().and_then(|chunk| leaf(chunk.data_type())) else {
        return Ok(None);
    };
    let dictionaries: Vec<ArrayRef> = chunks.iter().filter_map(dictionary_of).collect();
    if !are_same(&dictionaries) {
        return unified(chunks, &dictionaries, types);
    }
    let shared = chunks.iter().map(|chunk| {
        within(chunk, chunk.data_type(), &|chunk| {
            Ok(chunk.as_any_dictionary().with_values(Arc::clone(&dictionaries[0])))
        })
    });
    shared.collect::<Result<_, Error>>().map(Some)
}
