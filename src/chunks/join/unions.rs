//! Concatenates unions, child by child.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UnionArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_schema::{ArrowError, UnionFields, UnionMode};

use crate::memory;

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
    memory::probe_alloc(rows.saturating_mul(5))?;
    let ids: Vec<i8> = unions.iter().flat_map(|union| union.type_ids().iter().copied()).collect();
    let mut children: BTreeMap<i8, Vec<ArrayRef>> =
        fields.iter().map(|(id, _)| (id, Vec::with_capacity(unions.len()))).collect();
    let mut offsets = Vec::new();
    match mode {
        UnionMode::Sparse => {
            for (id, parts) in &mut children {
                parts.extend(unions.iter().map(|union| union.child(*id).slice(0, union.len())));
            }
        }
        UnionMode::Dense => {
            let mut first = 0;
            for union in &unions {
                let ids = &ids[first..first + union.len()];
                append_dense(union, ids, &mut offsets, &mut children)?;
                first += union.len();
            }
        }
    }
    let children = fields.iter().map(|(id, _)| concat(&children[&id]));
    let children = children.collect::<Result<_, _>>()?;
    let offsets = (mode == UnionMode::Dense).then(|| ScalarBuffer::from(offsets));
    Ok(std::sync::Arc::new(UnionArray::try_new(fields.clone(), ids.into(), offsets, children)?))
}

/// Appends the offsets of a dense union, and from each child the values between the first and the last that a row has.
fn append_dense(
    union: &UnionArray,
    ids: &[i8],
    offsets: &mut Vec<i32>,
    children: &mut BTreeMap<i8, Vec<ArrayRef>>,
) -> Result<(), ArrowError> {
    let malformed =
        || ArrowError::InvalidArgumentError("the union's rows are in no child".to_owned());
    let own: Vec<i32> = union.offsets().ok_or_else(malformed)?.to_vec();
    let mut ends: BTreeMap<i8, (usize, usize)> = BTreeMap::new();
    for (id, at) in ids.iter().zip(&own) {
        let at = usize::try_from(*at).map_err(|_| malformed())?;
        let ends = ends.entry(*id).or_insert((at, at));
        *ends = (ends.0.min(at), ends.1.max(at));
    }
    let mut starts: BTreeMap<i8, usize> = BTreeMap::new();
    for (id, parts) in children {
        let (first, len) = ends.get(id).map_or((0, 0), |ends| (ends.0, ends.1 - ends.0 + 1));
        let child = union.child(*id);
        if first.saturating_add(len) > child.len() {
            return Err(malformed());
        }
        starts.insert(*id, parts.iter().map(|part| part.len()).sum());
        parts.push(child.slice(first, len));
    }
    for (id, at) in ids.iter().zip(own) {
        let (Some(start), Some(ends)) = (starts.get(id), ends.get(id)) else {
            return Err(malformed());
        };
        let at = start + at.as_usize() - ends.0;
        offsets.push(i32::try_from(at).map_err(|_| ArrowError::OffsetOverflowError(at))?);
    }
    Ok(())
}
