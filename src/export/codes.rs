//! Dictionary codes: translates the codes of several chunks to one dictionary.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::DataType;

use super::dense::{CellBuffer, Dense, level};
use crate::chunks::{Dictionary, are_same, recoded, tells_apart};
use crate::{Error, ffi::DLDataType, memory};

impl Dense {
    /// The codes of a dictionary array. A code of a null value is a null cell.
    pub(super) fn codes(array: &dyn Array, dtype: DLDataType) -> Result<Self, Error> {
        let mut dense = Self::words(array, dtype);
        let dictionary = array.as_any_dictionary().values();
        if dictionary.is_nullable() {
            memory::probe_alloc(
                array.len().div_ceil(8).saturating_add(dictionary.len().div_ceil(8)),
            )?;
            dense.levels = level(array.logical_nulls().as_ref(), 1).into_iter().collect();
        }
        dense.dictionary = Some(Arc::clone(dictionary));
        Ok(dense)
    }

    /// Whether the chunks have different dictionaries, which must be unified.
    ///
    /// # Errors
    ///
    /// As [`are_several`].
    pub(super) fn is_of_several_dictionaries(chunks: &[Self]) -> Result<bool, Error> {
        are_several(&dictionaries(chunks), &chunks[0].data_type)
    }

    /// Translates the codes of chunks with [different dictionaries](Self::is_of_several_dictionaries) to one
    /// dictionary.
    pub(super) fn unify(chunks: &mut [Self]) -> Result<(), Error> {
        let Self { data_type, dtype, .. } = &chunks[0];
        let keys_type = dtype.to_arrow().unwrap_or(DataType::Int32);
        let (values, of_values) = Dictionary::united(&dictionaries(chunks), data_type, &keys_type)?;
        for (chunk, codes) in chunks.iter_mut().zip(of_values) {
            let CellBuffer::Words(keys) = &mut chunk.storage else { continue };
            *keys = recoded(keys, &keys_type, &codes, &keys_type)?;
            chunk.dictionary = Some(Arc::clone(&values));
        }
        Ok(())
    }
}

/// Whether these are different dictionaries, of codes of this type.
///
/// # Errors
///
/// `DifferentDictionaries` if the values are nested.
pub(super) fn are_several(dictionaries: &[ArrayRef], data_type: &DataType) -> Result<bool, Error> {
    match dictionaries {
        [] | [_] => Ok(false),
        _ if are_same(dictionaries) => Ok(false),
        [first, ..] if tells_apart(first.data_type()) => Ok(true),
        _ => Err(Error::DifferentDictionaries { data_type: data_type.clone() }),
    }
}

fn dictionaries(chunks: &[Dense]) -> Vec<ArrayRef> {
    chunks.iter().filter_map(|chunk| chunk.dictionary.clone()).collect()
}
