//! Rewrites imported arrays that are valid, but that arrow-rs 59 does not handle. arrow-rs 60.1 handles them: with it
//! this file goes.

use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, UnionMode};

/// An equal array over the same buffers, which arrow-rs handles.
pub(super) fn repaired(data: ArrayData) -> Result<ArrayData, ArrowError> {
    let is_struct = |data: &ArrayData| matches!(data.data_type(), DataType::Struct(_));
    let data = match has_below(&data, &is_struct) {
        true => cut(&data, 0, data.len())?,
        false => data,
    };
    normalize_empty_bytes(data)
}

/// A slice of elements in which the children of structs are sliced too.
///
/// `ArrayData::slice` of arrow-rs 59 applies the offset of a struct to its children and keeps it, so that it is applied
/// twice: an array with an offset, or with children longer than it needs, panics if a struct is among its children.
/// After this function no child is left to be sliced.
fn cut(data: &ArrayData, from: usize, len: usize) -> Result<ArrayData, ArrowError> {
    if len == 0 && has_bytes(data) {
        return Ok(ArrayData::new_empty(data.data_type()));
    }
    let start = data.offset() + from;
    let each = |cut: &dyn Fn(&ArrayData) -> Result<ArrayData, ArrowError>| {
        data.child_data().iter().map(cut).collect::<Result<Vec<_>, _>>()
    };
    let children = |from: usize, len: usize| each(&|child| cut(child, from, len));
    let builder = data.clone().into_builder();
    let builder = match data.data_type() {
        DataType::Struct(_) => builder.offset(0).child_data(children(start, len)?),
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            builder.offset(0).child_data(children(start * size, len * size)?)
        }
        DataType::Union(_, UnionMode::Sparse) => {
            let ids = data.buffers()[0].slice_with_length(start, len);
            builder.offset(0).buffers(vec![ids]).child_data(children(start, len)?)
        }
        _ => builder.offset(start).child_data(each(&|child| cut(child, 0, child.len()))?),
    };
    builder.len(len).nulls(data.nulls().map(|nulls| nulls.slice(from, len))).build()
}

/// The import of arrow-rs 59 gives texts and binaries without rows an empty buffer of bytes, even where the array has an
/// offset whose entry points behind these bytes. This function replaces such arrays by new ones, at any depth.
fn normalize_empty_bytes(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if !has_offsets_of_nothing(&data) {
        return Ok(data);
    }
    if data.is_empty() {
        return Ok(ArrayData::new_empty(data.data_type()));
    }
    let children = data.child_data().iter().cloned().map(normalize_empty_bytes);
    let children = children.collect::<Result<_, _>>()?;
    data.into_builder().child_data(children).build()
}

fn has_offsets_of_nothing(data: &ArrayData) -> bool {
    // arrow-rs represents a slice by an offset, or by a buffer of offsets that begins at the slice.
    let is_one = |data: &ArrayData| has_bytes(data) && data.is_empty();
    is_one(data) || has_below(data, &is_one)
}

fn has_bytes(data: &ArrayData) -> bool {
    use DataType::{Binary, LargeBinary, LargeUtf8, Utf8};
    matches!(data.data_type(), Utf8 | LargeUtf8 | Binary | LargeBinary)
}

/// Whether one of the children is such an array, at any depth.
fn has_below(data: &ArrayData, is_one: &impl Fn(&ArrayData) -> bool) -> bool {
    data.child_data().iter().any(|child| is_one(child) || has_below(child, is_one))
}
