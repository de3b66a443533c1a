//! Arrow's C structures, checked before arrow-rs believes them.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>. arrow-rs trusts what it imports:
//! a negative length panics, a short child reads out of bounds. So everything that a structure itself
//! can prove is checked here first; that buffers are as long as the lengths say is the producer's
//! promise.
//!
//! **S1** A structure is valid for as long as its owner lives, as the interface says: its texts end
//! with a NUL, its arrays of pointers have the lengths given, and what they point to meets S1 too.
#![expect(unsafe_code, reason = "looks into foreign structures")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_data::{BufferSpec, layout};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, UnionMode};

use crate::fence;
use crate::possible::MAX_DEPTH;

/// Fields of a schema that are looked at, at all levels: far more than tables have. Children may be the same
/// structure again and again, and then a few of them are more than anyone could count.
pub(super) const MAX_FIELDS: usize = 1 << 20;

/// Buffers of a view array: their numbers are `int32`, and then there is the one of their sizes. Fewer than a
/// machine of 32 bits has addresses for.
const MAX_VARIADIC: usize = (1 << 31) / size_of::<*const c_void>();

/// What is wrong with a structure, in words.
pub(super) type Checked<T = ()> = Result<T, String>;

/// The field that a schema structure describes.
///
/// # Safety
///
/// `schema` points to a structure that meets S1.
pub(super) unsafe fn field_from(schema: *const FFI_ArrowSchema) -> Checked<FieldRef> {
    // SAFETY: the caller's promise.
    unsafe { field_at(schema, MAX_DEPTH, &mut { MAX_FIELDS }) }
}

/// The same. Numbers and structs, which is what tables are made of, are put together here, where their texts
/// have just been looked at: of thousands of columns arrow-rs's way takes twice the time.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1.
unsafe fn field_at(
    schema: *const FFI_ArrowSchema,
    depth: usize,
    fields: &mut usize,
) -> Checked<FieldRef> {
    // SAFETY: the caller's promise.
    let Node { schema, format, name, depth } = unsafe { check_node(schema, depth, fields) }?;
    let data_type = match (format, schema.dictionary.is_null()) {
        ("+s", true) => {
            let fields = children(schema.n_children, schema.children)?
                // SAFETY: S1 holds for children.
                .map(|child| unsafe { field_at(child, depth, fields) })
                .collect::<Checked<Vec<_>>>()?;
            Some(DataType::Struct(fields.into()))
        }
        (_, true) if schema.n_children == 0 => number(format),
        _ => None,
    };
    let Some(data_type) = data_type else {
        // SAFETY: the caller's promise; it has been checked itself.
        unsafe { check_below(schema, depth, fields) }?;
        return fenced(|| Field::try_from(schema).map(Arc::new));
    };
    let field = Field::new(name, data_type, schema.nullable());
    Ok(Arc::new(match schema.metadata.is_null() {
        true => field,
        false => field.with_metadata(fenced(|| schema.metadata())?),
    }))
}

/// The type of numbers of this format.
pub(super) fn number(format: &str) -> Option<DataType> {
    Some(match format {
        "c" => DataType::Int8,
        "C" => DataType::UInt8,
        "s" => DataType::Int16,
        "S" => DataType::UInt16,
        "i" => DataType::Int32,
        "I" => DataType::UInt32,
        "l" => DataType::Int64,
        "L" => DataType::UInt64,
        "e" => DataType::Float16,
        "f" => DataType::Float32,
        "g" => DataType::Float64,
        _ => return None,
    })
}

/// arrow-rs asserts some of what it imports: what the checks here miss is an error all the same.
pub(super) fn fenced<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Checked<T> {
    fence::fenced(work)
        .map_err(|_| "the Arrow structure is malformed".to_owned())?
        .map_err(|error| error.to_string())
}

/// A schema structure that has been looked at, but for what is below it.
pub(super) struct Node<'a> {
    pub(super) schema: &'a FFI_ArrowSchema,
    pub(super) format: &'a str,
    name: &'a str,
    /// Levels that there may be below it.
    pub(super) depth: usize,
}

/// What arrow-rs takes for granted about a schema, all but what is below it.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1, for as long as the result is used.
pub(super) unsafe fn check_node<'a>(
    schema: *const FFI_ArrowSchema,
    depth: usize,
    fields: &mut usize,
) -> Checked<Node<'a>> {
    // SAFETY: the caller's promise.
    let schema = unsafe { schema_at(schema) }?;
    let text = |text: *const c_char| {
        // SAFETY: S1, texts end with a NUL.
        if text.is_null() { Some("") } else { unsafe { CStr::from_ptr(text) }.to_str().ok() }
    };
    let (Some(format), Some(name), false) =
        (text(schema.format), text(schema.name), schema.format.is_null())
    else {
        return Err("the Arrow schema's format or name is not a text".to_owned());
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the Arrow type is nested more than {MAX_DEPTH} levels deep"));
    };
    match fields.checked_sub(1) {
        Some(left) => *fields = left,
        None => return Err(format!("the Arrow type has more than {MAX_FIELDS} fields")),
    }
    if format.starts_with("w:-") || format.starts_with("+w:-") {
        return Err("the Arrow schema has a negative size".to_owned());
    }
    let needed = match format {
        "+l" | "+L" | "+vl" | "+vL" | "+m" => 1,
        "+r" => 2,
        _ if format.starts_with("+w") => 1,
        _ => 0,
    };
    if schema.n_children < needed {
        return Err(format!("the Arrow schema has {} children", schema.n_children));
    }
    // Not followed: there are no more than are looked at.
    if usize::try_from(schema.n_children).is_ok_and(|children| children > *fields) {
        return Err(format!("the Arrow type has more than {MAX_FIELDS} fields"));
    }
    // SAFETY: S1.
    unsafe { check_metadata(schema.metadata) }?;
    Ok(Node { schema, format, name, depth })
}

/// The same of what is below a schema, at all levels.
///
/// # Safety
///
/// The schema meets S1.
unsafe fn check_below(schema: &FFI_ArrowSchema, depth: usize, fields: &mut usize) -> Checked {
    let dictionary = Some(schema.dictionary.cast_const()).filter(|below| !below.is_null());
    for below in children(schema.n_children, schema.children)?.chain(dictionary) {
        // SAFETY: S1 holds for children and for the dictionary.
        unsafe {
            let Node { schema, depth, .. } = check_node(below, depth, fields)?;
            check_below(schema, depth, fields)?;
        }
    }
    Ok(())
}

/// A schema structure that is there.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1, for as long as the result is used.
pub(super) unsafe fn schema_at<'a>(schema: *const FFI_ArrowSchema) -> Checked<&'a FFI_ArrowSchema> {
    if schema.is_null() || !schema.is_aligned() {
        return Err("the Arrow schema has a child that is not there".to_owned());
    }
    // SAFETY: the caller's promise.
    let schema = unsafe { &*schema };
    match schema.release {
        None => Err("the Arrow schema has been released already".to_owned()),
        Some(_) => Ok(schema),
    }
}

/// Goes from text to text: arrow-rs makes room for as many as are said to be there before it looks.
///
/// # Safety
///
/// `metadata` is NULL, or what S1 says of a schema's.
pub(super) unsafe fn check_metadata(metadata: *const c_char) -> Checked {
    if metadata.is_null() {
        return Ok(());
    }
    let mut at = metadata.cast::<i32>();
    // SAFETY: S1, the number of entries comes first, not aligned; an entry is two texts.
    let entries = unsafe { at.read_unaligned() };
    for _ in 0..2 * i64::from(entries) {
        // SAFETY: S1, behind what came before there is a length, and behind that a text of it.
        let length = unsafe {
            at = at.add(1);
            at.read_unaligned()
        };
        let Ok(bytes) = usize::try_from(length) else {
            return Err(format!("the Arrow schema's metadata has a text of length {length}"));
        };
        // SAFETY: as above.
        at = unsafe { at.byte_add(bytes) };
    }
    Ok(())
}

/// The elements of a C array of pointers.
pub(super) fn children<T>(
    count: i64,
    children: *mut *mut T,
) -> Checked<impl Iterator<Item = *const T>> {
    let count =
        usize::try_from(count).map_err(|_| format!("an Arrow structure has {count} children"))?;
    if count > 0 && (children.is_null() || !children.is_aligned()) {
        return Err(format!("an Arrow structure has {count} children, but no pointer to them"));
    }
    // SAFETY: S1, `count` pointers are there.
    Ok((0..count).map(move |index| unsafe { children.add(index).read() }.cast_const()))
}

/// Everything that arrow-rs takes for granted about an array, and how many bytes are misaligned. Depth is
/// bounded by the type's.
pub(super) fn check_array(array: &FFI_ArrowArray, data_type: &DataType) -> Checked<usize> {
    let wrong = |what: String| Err(format!("the Arrow array of {data_type} is malformed: {what}"));
    let (length, offset, nulls) = (array.length, array.offset, array.null_count);
    let end = match (usize::try_from(length), usize::try_from(offset)) {
        (Ok(length), Ok(offset)) => length.checked_add(offset),
        _ => None,
    };
    let Some(end) = end else { return wrong(format!("length {length}, offset {offset}")) };
    if nulls < -1 || nulls > length {
        return wrong(format!("null_count {nulls} of length {length}"));
    }
    let (number, other);
    let (buffers, has_validity, is_variadic) = match values_of_number(data_type) {
        Some(values) => {
            number = [values];
            (number.as_slice(), true, false)
        }
        None => {
            other = layout(data_type);
            (other.buffers.as_slice(), other.can_contain_null_mask, other.variadic)
        }
    };
    let fixed = buffers.len() + usize::from(has_validity);
    let count = usize::try_from(array.n_buffers).unwrap_or(usize::MAX);
    // Views carry any number of buffers that a view has a number for, and then the sizes of these.
    let expected = match data_type {
        // By the interface it has none; polars gives it one, which nobody needs to look at.
        DataType::Null => count <= 1,
        _ if is_variadic => count > fixed && count - fixed <= MAX_VARIADIC,
        _ => count == fixed,
    };
    if !expected {
        return wrong(format!("{} buffers where {fixed} are expected", array.n_buffers));
    }
    if count > 0 && (array.buffers.is_null() || !array.buffers.is_aligned()) {
        return wrong("no pointer to its buffers".to_owned());
    }
    let widest = buffers.iter().map(|buffer| match buffer {
        BufferSpec::FixedWidth { byte_width, .. } => *byte_width,
        _ => 1,
    });
    let bytes = end.checked_add(1).and_then(|end| end.checked_mul(widest.max().unwrap_or(1)));
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return wrong(format!("length {length} and offset {offset} exceed the address space"));
    }
    if let Some(problem) = check_sizes(array, data_type, end, count) {
        return wrong(problem);
    }
    let mut moved = 0;
    for (index, buffer) in buffers.iter().enumerate() {
        if let BufferSpec::FixedWidth { byte_width, alignment } = buffer {
            let index = index + usize::from(has_validity);
            // SAFETY: S1, `count` pointers are there.
            let start = unsafe { array.buffers.add(index).read() };
            if start.addr() % alignment != 0 {
                moved += end * byte_width;
            }
        }
    }

    let types = child_types(data_type);
    if usize::try_from(array.n_children) != Ok(types.len()) {
        return wrong(format!("{} children where {} are expected", array.n_children, types.len()));
    }
    for (child, (child_type, needed)) in children(array.n_children, array.children)?.zip(types) {
        let child = child_of(child)?;
        let needed = needed.checked_mul(end);
        if needed
            .and_then(|needed| i64::try_from(needed).ok())
            .is_none_or(|needed| child.length < needed)
        {
            return wrong(format!("a child of length {} is too short", child.length));
        }
        moved += check_array(child, child_type)?;
    }
    match data_type {
        DataType::Dictionary(_, values) => {
            Ok(moved + check_array(child_of(array.dictionary)?, values)?)
        }
        _ if array.dictionary.is_null() => Ok(moved),
        _ => wrong("a dictionary where none is expected".to_owned()),
    }
}

/// The buffer of values of numbers, which [`layout`] allocates a vector for.
fn values_of_number(data_type: &DataType) -> Option<BufferSpec> {
    let byte_width = data_type.primitive_width().filter(|_| data_type.is_numeric())?;
    let alignment = match byte_width {
        8 => align_of::<u64>(),
        1 | 2 | 4 => byte_width,
        _ => return None,
    };
    Some(BufferSpec::FixedWidth { byte_width, alignment })
}

pub(super) fn child_of<'a>(child: *const FFI_ArrowArray) -> Checked<&'a FFI_ArrowArray> {
    if child.is_null() || !child.is_aligned() {
        return Err("the Arrow array has a child or a dictionary that is not there".to_owned());
    }
    // SAFETY: S1 holds for children, which live as long as their parent.
    let child = unsafe { &*child };
    if child.is_released() {
        return Err("the Arrow array has a child that has been released already".to_owned());
    }
    Ok(child)
}

/// The buffer sizes that arrow-rs reads out of other buffers: strings' last offset, views' sizes.
fn check_sizes(
    array: &FFI_ArrowArray,
    data_type: &DataType,
    end: usize,
    count: usize,
) -> Option<String> {
    // SAFETY: S1, `count` pointers are there, and each buffer is as long as the array's length says.
    let buffer = |index: usize| unsafe { array.buffers.add(index).read() };
    let last = |wide: bool| {
        let (offsets, size) = (buffer(1), if wide { 8 } else { 4 });
        if array.length == 0 {
            return None;
        }
        if offsets.is_null() || offsets.addr() % size != 0 {
            return Some("its offsets are missing or misaligned".to_owned());
        }
        // SAFETY: as above: `end + 1` aligned offsets.
        let last = unsafe {
            if wide {
                offsets.cast::<i64>().add(end).read()
            } else {
                offsets.cast::<i32>().add(end).read().into()
            }
        };
        (last < 0).then(|| format!("its last offset is {last}"))
    };
    match data_type {
        DataType::Utf8 | DataType::Binary => last(false),
        DataType::LargeUtf8 | DataType::LargeBinary => last(true),
        DataType::Utf8View | DataType::BinaryView if count > 3 => {
            let (sizes, variadic) = (buffer(count - 1).cast::<i64>(), count - 3);
            if sizes.is_null() || !sizes.is_aligned() {
                return Some("its buffer sizes are missing or misaligned".to_owned());
            }
            // SAFETY: as above: one size for each variadic buffer.
            let negative = (0..variadic)
                .map(|index| unsafe { sizes.add(index).read() })
                .find(|&size| size < 0);
            negative.map(|size| format!("a buffer size is {size}"))
        }
        _ => None,
    }
}

/// The types of the children, and how many elements of each belong to one of the parent's (0 where
/// offsets say, which `validate_full` checks).
pub(super) fn child_types(data_type: &DataType) -> Vec<(&DataType, usize)> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => vec![(field.data_type(), 0)],
        DataType::FixedSizeList(field, size) => {
            vec![(field.data_type(), usize::try_from(*size).unwrap_or(0))]
        }
        DataType::Struct(fields) => fields.iter().map(|field| (field.data_type(), 1)).collect(),
        DataType::Union(fields, mode) => {
            let needed = usize::from(*mode == UnionMode::Sparse);
            fields.iter().map(|(_, field)| (field.data_type(), needed)).collect()
        }
        DataType::RunEndEncoded(ends, values) => {
            vec![(ends.data_type(), 0), (values.data_type(), 0)]
        }
        _ => Vec::new(),
    }
}
