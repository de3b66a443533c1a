//! One dictionary for all chunks of a column, so that a code stands for the same value in each of them: of dictionary
//! arrays, and of fixed-size lists of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::{fmt, process};

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Int32Array, cast::AsArray, make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef};

use super::{
    checked::checked, checked::logical_nulls, distinct_values::Distinct,
    distinct_values::tells_apart, footprint::items, snapshot,
};
use crate::{CopyPolicy, CopyReason, Error, alloc, arrow_types::most, ffi::DLDataType};

/// The dictionary of a stream, to which values are appended as chunks are read.
pub(crate) struct Dictionary {
    state: Mutex<Unified>,
    /// A forked process has the lock, but not the thread that may hold it.
    process: u32,
}

struct Unified {
    values: Values,
    /// The dictionary of the latest chunk, and the codes of its values.
    last: Option<(ArrayRef, Translation)>,
    /// The values, as they were last returned.
    made: Option<ArrayRef>,
}

enum Values {
    Distinct(Distinct),
    /// Nested values are not compared: the dictionary of the first chunk is the only one. Empty before it is read.
    Whole(ArrayRef),
}

/// How the codes of a chunk are translated.
#[derive(Clone)]
struct Translation {
    codes: Int32Array,
    /// Whether all codes stay the same.
    is_same: bool,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").finish_non_exhaustive()
    }
}

impl Dictionary {
    pub(crate) fn new(values: &DataType) -> Result<Self, Error> {
        let values = match Distinct::new(values) {
            Some(distinct) => Values::Distinct(distinct),
            None => {
                let none = checked(|| Ok(new_empty_array(values)));
                Values::Whole(none?)
            }
        };
        let state = Unified { values, last: None, made: None };
        Ok(Self { state: Mutex::new(state), process: process::id() })
    }

    fn lock(&self) -> Result<MutexGuard<'_, Unified>, Error> {
        if self.process == process::id() {
            return Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::Forked),
        }
    }

    /// Number of values so far.
    pub(crate) fn len(&self) -> Result<usize, Error> {
        Ok(match &self.lock()?.values {
            Values::Distinct(values) => values.len(),
            Values::Whole(values) => values.len(),
        })
    }

    /// The first `len` values.
    pub(crate) fn array(&self, len: usize) -> Result<ArrayRef, Error> {
        let mut state = self.lock()?;
        let Unified { values, made, .. } = &mut *state;
        let made = match (values, made) {
            (_, Some(made)) if made.len() >= len => made,
            (Values::Whole(values), _) => values,
            // All values together can overflow the type's offsets.
            (Values::Distinct(values), made) => {
                let all = values.array(values.len()).or_else(|_| values.array(len))?;
                made.insert(all)
            }
        };
        Ok(made.slice(0, len))
    }

    /// All values of these dictionaries of arrays of a type, if its keys can number them; and the codes of the values
    /// of each.
    pub(crate) fn united(
        dictionaries: &[ArrayRef],
        data_type: &DataType,
        keys: &DataType,
    ) -> Result<(ArrayRef, Vec<Int32Array>), Error> {
        let all = Self::new(dictionaries[0].data_type())?;
        let codes =
            dictionaries.iter().map(|values| Ok(all.lock()?.codes(values, data_type)?.codes));
        let codes = codes.collect::<Result<_, Error>>()?;
        match all.len()? {
            count if count > most(keys) => Err(Error::TooManyValues { count, keys: keys.clone() }),
            len => Ok((all.array(len)?, codes)),
        }
    }

    /// The codes of a chunk as codes of this dictionary; new values are appended.
    pub(crate) fn codes(&self, chunk: &dyn Array, copy: CopyPolicy) -> Result<ArrayRef, Error> {
        let chunk = chunk.as_any_dictionary();
        let of_values = self.lock()?.codes(chunk.values(), chunk.data_type())?;
        if of_values.is_same && chunk.keys().data_type() == &DataType::Int32 {
            return Ok(make_array(chunk.keys().to_data()));
        }
        if copy == CopyPolicy::Never {
            let nbytes = chunk.keys().len().saturating_mul(size_of::<i32>());
            let reason = match DLDataType::from_arrow(chunk.keys().data_type()) {
                Some(from) if of_values.is_same => CopyReason::Cast { from, to: DLDataType::INT32 },
                _ => CopyReason::Dictionaries,
            };
            return Err(Error::CopyForbidden { reason, nbytes });
        }
        let codes = &of_values.codes;
        let nulls = logical_nulls(chunk)?;
        let keys =
            recoded(&items(chunk.keys()), chunk.keys().data_type(), codes, &DataType::Int32)?;
        Ok(Arc::new(checked(|| Int32Array::try_new(keys.into(), nulls))?))
    }
}

impl Unified {
    fn codes(&mut self, values: &ArrayRef, data_type: &DataType) -> Result<Translation, Error> {
        if let Some((last, codes)) = &self.last {
            if last.to_data().ptr_eq(&values.to_data()) {
                return Ok(codes.clone());
            }
        }
        // Other code may have written to the offsets or views of the values.
        let own = &snapshot::addresses(values)?;
        let codes = match &mut self.values {
            Values::Distinct(distinct) => distinct.codes(own)?,
            Values::Whole(whole) => {
                if whole.is_empty() {
                    *whole = Arc::clone(own);
                }
                if !is_same(whole, own) {
                    return Err(Error::DifferentDictionaries { data_type: data_type.clone() });
                }
                let len = i32::try_from(values.len()).map_err(|_| Error::Overflow("length"))?;
                alloc::probe_alloc(values.len().saturating_mul(size_of::<i32>()))?;
                Int32Array::new((0..len).collect(), logical_nulls(values)?)
            }
        };
        let mut pairs = (0..).zip(codes.values());
        let is_same = codes.null_count() == 0 && pairs.all(|(at, &code)| at == code);
        let codes = Translation { codes, is_same };
        self.last = Some((Arc::clone(values), codes.clone()));
        Ok(codes)
    }
}

/// Translates keys to the type `to`: the same, or Int32. Keys that are out of range, as they may be under a
/// null, become 0. Keys are not negative, so only the width of their type matters.
pub(crate) fn recoded(
    keys: &Buffer,
    from: &DataType,
    codes: &Int32Array,
    to: &DataType,
) -> Result<Buffer, Error> {
    fn mapped<K: ArrowNativeType, T: ArrowNativeType>(keys: &Buffer, codes: &[i32]) -> Buffer {
        let code = |key: &K| codes.get(key.as_usize()).map_or(0, |code| code.as_usize());
        keys.typed_data::<K>().iter().map(|key| T::usize_as(code(key))).collect()
    }
    let width = from.primitive_width().unwrap_or(8);
    alloc::probe_alloc(keys.len().saturating_mul(4_usize.div_ceil(width)))?;
    let mapped = match (width, from == to) {
        (1, true) => mapped::<u8, u8>,
        (1, false) => mapped::<u8, i32>,
        (2, true) => mapped::<u16, u16>,
        (2, false) => mapped::<u16, i32>,
        (4, _) => mapped::<u32, i32>,
        (_, true) => mapped::<u64, u64>,
        (_, false) => mapped::<u64, i32>,
    };
    Ok(mapped(keys, codes.values()))
}

/// The dictionary of a tensor's codes.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Array(ArrayRef),
    /// The first values of a dictionary that may have grown since.
    Growing(Arc<Dictionary>, usize),
}

impl Meaning {
    pub(crate) fn array(&self) -> Result<ArrayRef, Error> {
        match self {
            Self::Array(values) => Ok(Arc::clone(values)),
            Self::Growing(values, len) => values.array(*len),
        }
    }
}

/// The values of the dictionary of an array, or of the items of its lists.
pub(crate) fn dictionary_of(array: &ArrayRef) -> Option<ArrayRef> {
    match array.as_fixed_size_list_opt() {
        Some(list) => dictionary_of(list.values()),
        None => array.as_any_dictionary_opt().map(|codes| Arc::clone(codes.values())),
    }
}

/// Whether all dictionaries are equal; equal addresses suffice. Offsets that other code has written to since
/// the check make them unequal, and unifying them then fails.
pub(crate) fn are_same(dictionaries: &[ArrayRef]) -> bool {
    let same = || dictionaries.iter().all(|other| is_same(&dictionaries[0], other));
    checked(|| Ok(same())).unwrap_or(false)
}

fn is_same(one: &ArrayRef, other: &ArrayRef) -> bool {
    one.to_data().ptr_eq(&other.to_data()) || one == other
}

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
            let nulls = logical_nulls(chunk)?;
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// In a process that was forked off, a lock that is held stays held.
    #[test]
    fn a_fork_does_not_wait_for_a_thread_that_it_has_not() {
        let there = Dictionary::new(&DataType::Utf8).expect("a dictionary of texts");
        let forked = Dictionary { process: process::id() ^ 1, ..there };
        assert_eq!(forked.len(), Ok(0));
        let held = forked.state.lock();
        assert_eq!(forked.len(), Err(Error::Forked));
        drop(held);
        let panics = || {
            let _held = forked.state.lock();
            panic!("of arrow-rs");
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(forked.len(), Ok(0));
        assert_eq!(forked.array(0).map(|values| values.len()), Ok(0));
    }
}
