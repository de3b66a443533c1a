//! Concatenates arrays.
//!
//! arrow-select's `concat` trusts offsets, codes and texts that other code may still write to, so it would need a copy of
//! all offsets first and a check of all texts afterwards, both of which happen here while the result is written. Of a
//! thousand chunks of a thousand rows `concat` with these takes 2.5 times as long as this file for texts and structs,
//! 1.5 times for lists; of eight chunks of half a million, 2 to 5 times, and lists take 3 times as long without the checks
//! too. It copies all items of list views, and all children of dense unions, once for each slice, gives equal values of
//! dictionaries several codes, and its numbers do not begin at multiples of 64 bytes, where JAX takes them without a copy.

use std::sync::Arc;

use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RunArray, StructArray, UnionArray, cast::AsArray, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Fields, UnionFields, UnionMode};

use super::row_ranges::{Bounds, RowItems};
use super::snapshot::{self, Offset, not_of_rows, rebased};
use super::{checked::checked, dictionary::of_one_dictionary, footprint};
use crate::alloc::{self, Fresh};
use crate::{Error, arrow_types::most, task};

/// Several chunks as one array.
pub(crate) fn concat(chunks: &[ArrayRef]) -> Result<ArrayRef, Error> {
    footprint::check_joined(chunks)?;
    checked(|| concat_any(chunks))
}

/// All chunks as one array; there is at least one, and they are of one type.
fn concat_any(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let [first, others @ ..] = chunks else {
        return Err(ArrowError::InvalidArgumentError("no chunks".to_owned()));
    };
    if others.iter().any(|other| other.data_type() != first.data_type()) {
        return Err(ArrowError::InvalidArgumentError("chunks of several types".to_owned()));
    }
    match first.data_type() {
        DataType::Struct(fields) => structs(chunks, fields),
        DataType::List(_) | DataType::Map(..) | DataType::Utf8 | DataType::Binary => {
            rows::<i32>(chunks)
        }
        DataType::LargeList(_) | DataType::LargeUtf8 | DataType::LargeBinary => rows::<i64>(chunks),
        DataType::ListView(_) => views::<i32>(chunks),
        DataType::LargeListView(_) => views::<i64>(chunks),
        DataType::FixedSizeList(_, size) => fixed_size_lists(chunks, size.as_usize()),
        DataType::Union(fields, mode) => unions(chunks, fields, *mode),
        DataType::Boolean => booleans(chunks),
        other if footprint::item_width(other).is_some() => of_fixed_width(chunks),
        _ => indexed(&snapshot::chunks(chunks)?),
    }
}

/// Chunks whose indices no other code can change.
fn indexed(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    match chunks[0].data_type() {
        DataType::Dictionary(keys, _) => coded(chunks, keys),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(chunks),
            DataType::Int32 => runs::<Int32Type>(chunks),
            _ => runs::<Int64Type>(chunks),
        },
        _ => appended(chunks),
    }
}

/// Numbers, or any other values that all have as many bytes.
fn of_fixed_width(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let values = alloc::collect(chunks.iter().map(|chunk| footprint::items(chunk)))?;
    let values = together(&values)?;
    Ok(make_array(like(chunks)?.add_buffer(values).build()?))
}

fn booleans(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let values = bits(chunks, |chunk| Some(chunk.as_boolean().values()))?;
    Ok(make_array(like(chunks)?.add_buffer(values.into_inner()).build()?))
}

/// Lists, maps, texts or binaries, with only the values that are in a row.
fn rows<O: Offset>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let parts: Vec<_> = chunks.iter().filter_map(|chunk| Bounds::of(chunk)).collect();
    let own = parts.iter().map(|(bounds, items)| (bounds.offsets::<O>(), items.len()));
    let (offsets, ranges) = rebased(own)?;
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for ((_, items), range) in parts.iter().zip(ranges) {
        match items {
            RowItems::Bytes(all) => bytes.push(all.slice_with_length(range.start, range.len())),
            RowItems::List(all, _) => values.push(all.slice(range.start, range.len())),
            RowItems::Map(all) => values.push(Arc::new(all.slice(range.start, range.len()))),
        }
    }
    let data = like(chunks)?.add_buffer(offsets);
    let data = match values.as_slice() {
        [] => data.add_buffer(together(&bytes)?),
        values => data.add_child_data(concat_any(values)?.to_data()),
    };
    Ok(make_array(data.build()?))
}

/// All bytes in new memory.
fn together(parts: &[Buffer]) -> Result<Buffer, ArrowError> {
    Ok(Fresh::copied(parts.iter().map(Buffer::as_slice))?.into_buffer())
}

fn structs(chunks: &[ArrayRef], fields: &Fields) -> Result<ArrayRef, ArrowError> {
    let column = |index| {
        let chunks = chunks.iter().map(|chunk| Arc::clone(chunk.as_struct().column(index)));
        concat_any(&chunks.collect::<Vec<_>>())
    };
    let columns = (0..fields.len()).map(column).collect::<Result<_, _>>()?;
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let nulls = nulls(chunks)?;
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows)?))
}

fn fixed_size_lists(chunks: &[ArrayRef], size: usize) -> Result<ArrayRef, ArrowError> {
    let values =
        chunks.iter().map(|chunk| chunk.as_fixed_size_list().values().slice(0, chunk.len() * size));
    let values = concat_any(&alloc::collect(values)?)?;
    Ok(make_array(like(chunks)?.add_child_data(values.to_data()).build()?))
}

/// List views, with the values from the first to the last that is in a row: rows may share some.
fn views<O: Offset>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    alloc::probe_alloc(rows.saturating_mul(4 * size_of::<O>()))?;
    let (mut offsets, mut sizes, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut base = 0;
    for list in chunks.iter().map(|chunk| chunk.as_list_view::<O>()) {
        // Other code may write to them: each is read once.
        let own = alloc::collect(list.offsets().iter().copied().zip(list.sizes().iter().copied()))?;
        let rows = own.iter().filter(|(_, size)| !size.is_zero());
        let ends = rows.map(|(start, size)| {
            (start.as_usize(), start.as_usize().saturating_add(size.as_usize()))
        });
        let ends = ends.reduce(|ends, row| (ends.0.min(row.0), ends.1.max(row.1)));
        let (first, end) = ends.unwrap_or((0, 0));
        if end > list.values().len() {
            return Err(not_of_rows().into());
        }
        let last = base + end - first;
        let fits = |at: usize| O::from_usize(at).ok_or(ArrowError::OffsetOverflowError(last));
        fits(last)?;
        for (start, size) in own {
            let at = if size.is_zero() { base } else { base + start.as_usize() - first };
            offsets.push(fits(at)?);
            sizes.push(size);
        }
        values.push(list.values().slice(first, end - first));
        base = last;
    }
    let values = concat_any(&values)?;
    let data =
        like(chunks)?.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from_vec(sizes));
    Ok(make_array(data.add_child_data(values.to_data()).build()?))
}

/// Unions, child by child. Other code may write to type ids and offsets: they are copied first, and the copies are checked.
fn unions(
    chunks: &[ArrayRef],
    fields: &UnionFields,
    mode: UnionMode,
) -> Result<ArrayRef, ArrowError> {
    let unions: Vec<&UnionArray> = chunks.iter().map(|chunk| chunk.as_union()).collect();
    let rows = unions.iter().map(|union| union.len()).sum::<usize>();
    alloc::probe_alloc(rows.saturating_mul(5))?;
    let ids: Vec<i8> = unions.iter().flat_map(|union| union.type_ids().iter().copied()).collect();
    let mut data = ArrayData::builder(chunks[0].data_type().clone()).len(rows);
    let mut offsets = vec![0; if mode == UnionMode::Dense { rows } else { 0 }];
    for (id, _) in fields.iter() {
        let (mut parts, mut first, mut before) = (Vec::with_capacity(unions.len()), 0, 0);
        for union in &unions {
            let rows = first..first + union.len();
            let child = union.child(id);
            let part = match union.offsets() {
                Some(own) => {
                    dense_child(id, child, own, &ids[rows.clone()], before, &mut offsets[rows])?
                }
                None => child.slice(0, union.len()),
            };
            (first, before) = (first + union.len(), before + part.len());
            parts.push(part);
        }
        data = data.add_child_data(concat_any(&parts)?.to_data());
    }
    data = data.add_buffer(Buffer::from_vec(ids));
    if mode == UnionMode::Dense {
        data = data.add_buffer(Buffer::from_vec(offsets));
    }
    Ok(make_array(data.build()?))
}

/// The values of a child of a dense union from the first to the last that a row has. Writes the offsets of these rows,
/// where values of other chunks come before them.
fn dense_child(
    id: i8,
    child: &ArrayRef,
    own: &[i32],
    ids: &[i8],
    before: usize,
    offsets: &mut [i32],
) -> Result<ArrayRef, ArrowError> {
    let mut ends: Option<(i32, i32)> = None;
    for ((&at, written), _) in own.iter().zip(&mut *offsets).zip(ids).filter(|(_, of)| **of == id) {
        *written = at;
        ends = ends.map_or(Some((at, at)), |(first, last)| Some((first.min(at), last.max(at))));
    }
    let Some((first, last)) = ends else { return Ok(child.slice(0, 0)) };
    if first < 0 || last.as_usize() >= child.len() {
        let message = "the union's rows are in no child".to_owned();
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let len = (last - first).as_usize() + 1;
    let end = before.saturating_add(len);
    i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?;
    let by = i32::try_from(before).unwrap_or(0) - first;
    for (written, _) in offsets.iter_mut().zip(ids).filter(|(_, of)| **of == id) {
        *written += by;
    }
    Ok(child.slice(first.as_usize(), len))
}

/// Run-end encoded chunks.
fn runs<T: RunEndIndexType>(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let runs = || chunks.iter().filter_map(|chunk| chunk.as_run_opt::<T>());
    let values = concat_any(&runs().map(RunArray::values_slice).collect::<Vec<_>>())?;
    alloc::probe_alloc(values.len().saturating_mul(size_of::<T::Native>()))?;
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

/// Codes of one unified dictionary. Dictionaries of nested values are concatenated instead, if the keys can
/// number all values.
fn coded(chunks: &[ArrayRef], keys: &DataType) -> Result<ArrayRef, ArrowError> {
    let of_one = of_one_dictionary(chunks);
    if let Some(of_one) = of_one? {
        return appended(&of_one);
    }
    let values = chunks.iter().map(|chunk| chunk.as_any_dictionary().values().len());
    match values.sum::<usize>() > most(keys) {
        true => Err(ArrowError::DictionaryKeyOverflowError),
        false => appended(chunks),
    }
}

fn appended(chunks: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    footprint::check_appended(chunks, chunks[0].data_type())?;
    let data: Vec<_> = chunks.iter().map(|chunk| chunk.to_data()).collect();
    let rows = Capacities::Array(data.iter().map(|data| data.len()).sum());
    let mut all = MutableArrayData::with_capacities(data.iter().collect(), false, rows);
    for (index, data) in data.iter().enumerate() {
        all.try_extend(index, 0, data.len())?;
        task::check()?;
    }
    Ok(make_array(all.freeze()))
}

/// The `ArrayData` of all chunks together, without buffers and children. Arrays are built from `ArrayData`,
/// because each typed array that is named here would instantiate arrow-array's code for it once more.
fn like(chunks: &[ArrayRef]) -> Result<ArrayDataBuilder, ArrowError> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    Ok(ArrayData::builder(chunks[0].data_type().clone()).len(rows).nulls(nulls(chunks)?))
}

fn nulls(chunks: &[ArrayRef]) -> Result<Option<NullBuffer>, ArrowError> {
    if chunks.iter().all(|chunk| chunk.null_count() == 0) {
        return Ok(None);
    }
    Ok(Some(NullBuffer::new(bits(chunks, |chunk| Some(chunk.nulls()?.inner()))?)))
}

/// The bits of all chunks; those that `of` has none for are true.
fn bits(
    chunks: &[ArrayRef],
    of: fn(&ArrayRef) -> Option<&BooleanBuffer>,
) -> Result<BooleanBuffer, ArrowError> {
    // Rows of structs without fields take no memory, so that there may be any number of them.
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    alloc::probe_alloc(rows.div_ceil(8))?;
    let mut bits = BooleanBufferBuilder::new(rows);
    for chunk in chunks {
        match of(chunk) {
            Some(own) => bits.append_buffer(own),
            None => bits.append_n(chunk.len(), true),
        }
    }
    Ok(bits.finish())
}

#[cfg(test)]
mod tests;
