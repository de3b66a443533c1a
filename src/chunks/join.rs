//! Concatenates arrays.
//!
//! arrow-select's `concat` does that too. But its dictionaries pull in `interleave`, of every type, which
//! would be a twentieth of the package; `coded` replaces it here.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, OffsetSizeTrait, PrimitiveArray, RunArray, StructArray, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer};
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Fields};

use super::checked::checked;
use super::coded::of_one_dictionary;
use super::dictionary::most;
use super::{fit, settled};
use crate::error::Error;
use crate::memory;

/// Several chunks as one array.
pub(crate) fn joined(chunks: &[ArrayRef]) -> Result<ArrayRef, Error> {
    fit::check_joined(chunks)?;
    let chunks = settled::chunks(chunks)?;
    checked(|| concat(&chunks))
}

/// All chunks as one array; there is at least one, and they are of one type.
fn concat(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let [first, others @ ..] = chunks else {
        return Err(ArrowError::InvalidArgumentError("no chunks".to_owned()));
    };
    if others.iter().any(|other| other.data_type() != first.data_type()) {
        return Err(ArrowError::InvalidArgumentError("chunks of several types".to_owned()));
    }
    match first.data_type() {
        DataType::Struct(fields) => structs(chunks, fields),
        DataType::List(_) => lists::<i32>(chunks),
        DataType::LargeList(_) => lists::<i64>(chunks),
        DataType::ListView(_) => views::<i32>(chunks),
        DataType::LargeListView(_) => views::<i64>(chunks),
        DataType::Dictionary(..) | DataType::FixedSizeList(..) => coded(chunks),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(chunks),
            DataType::Int32 => runs::<Int32Type>(chunks),
            _ => runs::<Int64Type>(chunks),
        },
        _ => appended(chunks),
    }
}

fn structs(chunks: &[ArrayRef], fields: &Fields) -> Result<ArrayRef, ArrowError> {
    let column = |index| {
        let chunks = chunks.iter().map(|chunk| Arc::clone(chunk.as_struct().column(index)));
        concat(&chunks.collect::<Vec<_>>())
    };
    let columns = (0..fields.len()).map(column).collect::<Result<_, _>>()?;
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let nulls = nulls(chunks)?;
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows)?))
}

/// Of the values only those that are in a list.
fn lists<O: OffsetSizeTrait>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let lists = || chunks.iter().map(|chunk| chunk.as_list::<O>());
    let values = lists().map(|list| {
        let (first, last) = (list.offsets()[0].as_usize(), list.offsets()[list.len()].as_usize());
        list.values().slice(first, last - first)
    });
    let values = concat(&values.collect::<Vec<_>>())?;
    if O::from_usize(values.len()).is_none() {
        return Err(ArrowError::OffsetOverflowError(values.len()));
    }
    check_own::<O>(chunks)?;
    let offsets =
        OffsetBuffer::<O>::from_lengths(lists().flat_map(|list| list.offsets().lengths()));
    let data = like(chunks)?.add_buffer(offsets.into_inner().into_inner());
    Ok(make_array(data.add_child_data(values.to_data()).build()?))
}

/// Of the values all, because rows may share some.
fn views<O: OffsetSizeTrait>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let lists = || chunks.iter().map(|chunk| chunk.as_list_view::<O>());
    let values = concat(&lists().map(|list| Arc::clone(list.values())).collect::<Vec<_>>())?;
    if O::from_usize(values.len()).is_none() {
        return Err(ArrowError::OffsetOverflowError(values.len()));
    }
    check_own::<O>(chunks)?;
    let (mut offsets, mut start) = (Vec::new(), O::zero());
    for list in lists() {
        offsets.extend(list.offsets().iter().map(|&offset| start + offset));
        start += O::usize_as(list.values().len());
    }
    let sizes = lists().flat_map(|list| list.sizes()).copied().collect::<Vec<_>>();
    let data =
        like(chunks)?.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from_vec(sizes));
    Ok(make_array(data.add_child_data(values.to_data()).build()?))
}

/// Runs, however long they are.
fn runs<T: RunEndIndexType>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let runs = || chunks.iter().filter_map(|chunk| chunk.as_run_opt::<T>());
    let values = concat(&runs().map(RunArray::values_slice).collect::<Vec<_>>())?;
    memory::probe_alloc(values.len().saturating_mul(size_of::<T::Native>()))?;
    let (mut ends, mut start) = (Vec::with_capacity(values.len()), 0_usize);
    for chunk in runs() {
        for end in chunk.run_ends().sliced_values() {
            let end = start + end.as_usize();
            let end = T::Native::from_usize(end).filter(|&ended| ended.as_usize() == end);
            ends.push(end.ok_or(ArrowError::RunEndIndexOverflowError)?);
        }
        start += chunk.len();
    }
    let ends = PrimitiveArray::<T>::new(ends.into(), None).into_data();
    Ok(make_array(like(chunks)?.child_data(vec![ends, values.to_data()]).build()?))
}

/// Codes, which are those of one dictionary then. Where values are not told apart, all of them come one behind
/// the other, if there are keys for so many.
fn coded(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let of_one = of_one_dictionary(chunks);
    if let Some(of_one) = of_one? {
        return appended(&of_one);
    }
    let DataType::Dictionary(keys, _) = chunks[0].data_type() else { return appended(chunks) };
    let values = chunks.iter().map(|chunk| chunk.as_any_dictionary().values().len());
    match values.sum::<usize>() > most(keys) {
        true => Err(ArrowError::DictionaryKeyOverflowError),
        false => appended(chunks),
    }
}

fn appended(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    fit::check_appended(chunks, chunks[0].data_type())?;
    let data: Vec<_> = chunks.iter().map(|chunk| chunk.to_data()).collect();
    let rows = data.iter().map(|data| data.len()).sum();
    let bytes =
        |of: fn(&ArrayRef) -> usize| Capacities::Binary(rows, Some(chunks.iter().map(of).sum()));
    let capacities = match chunks[0].data_type() {
        DataType::Utf8 => bytes(|chunk| length(chunk.as_string::<i32>().value_offsets())),
        DataType::LargeUtf8 => bytes(|chunk| length(chunk.as_string::<i64>().value_offsets())),
        DataType::Binary => bytes(|chunk| length(chunk.as_binary::<i32>().value_offsets())),
        DataType::LargeBinary => bytes(|chunk| length(chunk.as_binary::<i64>().value_offsets())),
        _ => Capacities::Array(rows),
    };
    let mut all = MutableArrayData::with_capacities(data.iter().collect(), false, capacities);
    for (index, data) in data.iter().enumerate() {
        all.try_extend(index, 0, data.len())?;
    }
    Ok(make_array(all.freeze()))
}

/// An error unless there is room for offsets and sizes of the rows of all chunks.
fn check_own<O: OffsetSizeTrait>(chunks: &[ArrayRef]) -> Result<(), ArrowError> {
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let nbytes = rows.saturating_add(1).saturating_mul(4 * size_of::<O>());
    Ok(memory::probe_alloc(nbytes)?)
}

fn length<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
    (offsets[offsets.len() - 1] - offsets[0]).as_usize()
}

/// What all chunks together are, but for their contents. Arrays are made from that, as a class that is named here
/// would be another copy of all that arrow-array has of it.
fn like(chunks: &[ArrayRef]) -> Result<ArrayDataBuilder, ArrowError> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    Ok(ArrayData::builder(chunks[0].data_type().clone()).len(rows).nulls(nulls(chunks)?))
}

fn nulls(chunks: &[ArrayRef]) -> Result<Option<NullBuffer>, ArrowError> {
    if chunks.iter().all(|chunk| chunk.null_count() == 0) {
        return Ok(None);
    }
    // Rows of structs without fields take no memory, so that there may be any number of them.
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    memory::probe_alloc(rows.div_ceil(8))?;
    let mut valid = BooleanBufferBuilder::new(rows);
    for chunk in chunks {
        match chunk.nulls() {
            Some(nulls) => valid.append_buffer(nulls.inner()),
            None => valid.append_n(chunk.len(), true),
        }
    }
    Ok(Some(NullBuffer::new(valid.finish())))
}
