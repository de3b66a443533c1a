//! Concatenates unions, child by child.

use arrow_array::{Array, ArrayRef, UnionArray, cast::AsArray, make_array};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, UnionFields, UnionMode};

use crate::alloc;

/// All chunks as one array; `concat` does it for their children.
///
/// Other code may write to type ids and offsets. They are copied first, and the copies are checked.
pub(super) fn concat(
    chunks: &[ArrayRef],
    fields: &UnionFields,
    mode: UnionMode,
    concat: &dyn Fn(&[ArrayRef]) -> Result<ArrayRef, ArrowError>,
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
                Some(own) => dense(id, child, own, &ids[rows.clone()], before, &mut offsets[rows])?,
                None => child.slice(0, union.len()),
            };
            (first, before) = (first + union.len(), before + part.len());
            parts.push(part);
        }
        data = data.add_child_data(concat(&parts)?.to_data());
    }
    data = data.add_buffer(Buffer::from_vec(ids));
    if mode == UnionMode::Dense {
        data = data.add_buffer(Buffer::from_vec(offsets));
    }
    Ok(make_array(data.build()?))
}

/// The values of a child of a dense union from the first to the last that a row has. Writes the offsets of these rows,
/// where values of other chunks come before them.
fn dense(
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
