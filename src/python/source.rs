//! Arrow arrays from Python, through the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>. arrow-rs
//! trusts the C structures it imports: a negative length panics, a short child reads out of bounds.
//! So every structure is checked here first, as far as it can be: that buffers are as long as the
//! lengths say is the producer's promise.
#![expect(unsafe_code, reason = "moves C structures out of capsules and looks into them")]

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, make_array, new_empty_array};
use arrow_data::{BufferSpec, layout};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, UnionMode};
use arrow_select::concat::concat;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;

use super::capsule::Level;
use super::request::{described, type_name};

/// What is wrong with a structure, in words.
type Checked<T = ()> = Result<T, String>;

/// Levels of nesting in a type; the readers below, and arrow-rs's, go down one call a level.
const MAX_DEPTH: usize = 64;

/// Whether the object speaks the Arrow PyCapsule interface.
pub(super) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr(intern!(object.py(), "__arrow_c_array__"))?
        || object.hasattr(intern!(object.py(), "__arrow_c_stream__"))?)
}

/// The array of an object with `__arrow_c_array__`, or the concatenated arrays of one with
/// `__arrow_c_stream__`, and its field.
pub(super) fn import(object: &Bound<'_, PyAny>) -> PyResult<(ArrayRef, FieldRef)> {
    let py = object.py();
    let _level = Level::enter(py)?;
    if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        let pair = method.call0()?;
        let Ok((schema, array)) = pair.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()
        else {
            return Err(PyTypeError::new_err(format!(
                "{}.__arrow_c_array__ returned {}, not a pair of capsules",
                type_name(object),
                described(&pair)
            )));
        };
        let field = schema_of(&schema)?;
        let array = move_array(&array)?;
        let array = py.detach(|| array_from(array, field.data_type()));
        return Ok((array.map_err(PyValueError::new_err)?, field));
    }
    if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        let capsule = method.call0()?.cast_into::<PyCapsule>().map_err(|error| {
            PyTypeError::new_err(format!(
                "{}.__arrow_c_stream__ returned {}, not a capsule",
                type_name(object),
                described(&error.into_inner())
            ))
        })?;
        let stream = move_stream(&capsule)?;
        // The stream may need the interpreter on another thread.
        return py.detach(|| concatenated(stream)).map_err(PyValueError::new_err);
    }
    Err(PyTypeError::new_err(format!(
        "expected an Arrow array, an object with __arrow_c_array__ or __arrow_c_stream__, got {} (for a \
         tensor, use from_dlpack)",
        type_name(object)
    )))
}

/// The field that an `arrow_schema` capsule describes. The capsule keeps its structure.
pub(super) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<FieldRef> {
    let schema = pointer::<FFI_ArrowSchema>(capsule, c"arrow_schema")?;
    // SAFETY: S1, and the capsule outlives this call.
    unsafe { field_from(schema) }.map_err(PyValueError::new_err)
}

/// S1: a capsule with one of the interface's names holds a pointer to a structure of that name, valid
/// for as long as the capsule is. That much of the interface nobody can check.
fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<*mut T> {
    let pointer = capsule.pointer_checked(Some(name)).map_err(|_| {
        PyTypeError::new_err(format!("expected an {name:?} capsule, got {}", described(capsule)))
    })?;
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(PyValueError::new_err(format!("the {name:?} structure is misaligned")));
    }
    Ok(pointer.as_ptr())
}

fn move_array(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArray> {
    let array = pointer::<FFI_ArrowArray>(capsule, c"arrow_array")?;
    // SAFETY: S1. A released structure is left behind, as the interface asks; the section keeps other
    // threads from moving it too, where there is no GIL.
    let array = with_critical_section(capsule, || unsafe { FFI_ArrowArray::from_raw(array) });
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow array has been released already"));
    }
    Ok(array)
}

fn move_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, c"arrow_array_stream")?;
    // SAFETY: as for arrays.
    let stream =
        with_critical_section(capsule, || unsafe { FFI_ArrowArrayStream::from_raw(stream) });
    if stream.release.is_none() {
        return Err(PyValueError::new_err("the Arrow stream has been released already"));
    }
    Ok(stream)
}

/// All arrays of a stream as one; a single one is not copied.
fn concatenated(mut stream: FFI_ArrowArrayStream) -> Checked<(ArrayRef, FieldRef)> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err("the Arrow stream has no get_schema or no get_next".to_owned());
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: S1, the stream is live and ours, and its callbacks are called one after the other.
    let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    if code != 0 {
        return Err(failure(&mut stream, code));
    }
    // SAFETY: the callback filled it.
    let field = unsafe { field_from(&raw const schema) }?;

    let mut chunks = Vec::new();
    loop {
        let mut chunk = FFI_ArrowArray::empty();
        // SAFETY: as above.
        let code = unsafe { get_next(&raw mut stream, &raw mut chunk) };
        if code != 0 {
            return Err(failure(&mut stream, code));
        }
        if chunk.is_released() {
            break;
        }
        if chunk.length != 0 {
            chunks.push(array_from(chunk, field.data_type())?);
        }
    }
    let array = match chunks.as_slice() {
        [] => new_empty_array(field.data_type()),
        [chunk] => Arc::clone(chunk),
        chunks => {
            let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
            fenced(|| concat(&chunks))?
        }
    };
    Ok((array, field))
}

fn failure(stream: &mut FFI_ArrowArrayStream, code: i32) -> String {
    // SAFETY: S1; the text is valid until the next call on the stream.
    let message = unsafe {
        let text = stream.get_last_error.map(|get| get(stream)).filter(|text| !text.is_null());
        text.map(|text| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    format!("the Arrow stream failed: {} (code {code})", message.as_deref().unwrap_or("no message"))
}

/// # Safety
///
/// `schema` points to a structure that meets S1.
unsafe fn field_from(schema: *const FFI_ArrowSchema) -> Checked<FieldRef> {
    // SAFETY: the caller's promise.
    let schema = unsafe { check_schema(schema, MAX_DEPTH)? };
    fenced(|| Field::try_from(schema).map(Arc::new))
}

/// arrow-rs asserts some of what it imports: what the checks here miss is an error all the same.
fn fenced<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Checked<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| "the Arrow structure is malformed".to_owned())?
        .map_err(|error| error.to_string())
}

/// Everything that arrow-rs takes for granted about a schema.
///
/// # Safety
///
/// `schema` is NULL or points to a structure that meets S1, for as long as the result is used.
unsafe fn check_schema<'a>(
    schema: *const FFI_ArrowSchema,
    depth: usize,
) -> Checked<&'a FFI_ArrowSchema> {
    if schema.is_null() || !schema.is_aligned() {
        return Err("the Arrow schema has a child that is not there".to_owned());
    }
    // SAFETY: the caller's promise.
    let schema = unsafe { &*schema };
    if schema.release.is_none() {
        return Err("the Arrow schema has been released already".to_owned());
    }
    let text = |text: *const std::ffi::c_char| {
        // SAFETY: S1, texts end with a NUL.
        text.is_null() || unsafe { CStr::from_ptr(text) }.to_str().is_ok()
    };
    if schema.format.is_null() || !text(schema.format) || !text(schema.name) {
        return Err("the Arrow schema's format or name is not a text".to_owned());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the Arrow type is nested more than {MAX_DEPTH} levels deep"));
    };
    // SAFETY: S1, and it is a text.
    let needed = match unsafe { CStr::from_ptr(schema.format) }.to_bytes() {
        b"+l" | b"+L" | b"+vl" | b"+vL" | b"+m" | [b'+', b'w', ..] => 1,
        b"+r" => 2,
        _ => 0,
    };
    if schema.n_children < needed {
        return Err(format!("the Arrow schema has {} children", schema.n_children));
    }
    for child in children(schema.n_children, schema.children)? {
        // SAFETY: S1 holds for children.
        unsafe { check_schema(child, depth)? };
    }
    if !schema.dictionary.is_null() {
        // SAFETY: S1 holds for the dictionary.
        unsafe { check_schema(schema.dictionary, depth)? };
    }
    Ok(schema)
}

/// The elements of a C array of pointers.
fn children<T>(count: i64, children: *mut *mut T) -> Checked<impl Iterator<Item = *const T>> {
    let count =
        usize::try_from(count).map_err(|_| format!("an Arrow structure has {count} children"))?;
    if count > 0 && (children.is_null() || !children.is_aligned()) {
        return Err(format!("an Arrow structure has {count} children, but no pointer to them"));
    }
    // SAFETY: S1, `count` pointers are there.
    Ok((0..count).map(move |index| unsafe { children.add(index).read() }.cast_const()))
}

/// Takes over an array structure. Numeric arrays are checked in constant time; of others the contents
/// are checked too, because offsets and keys are addresses of a kind.
fn array_from(array: FFI_ArrowArray, data_type: &DataType) -> Checked<ArrayRef> {
    check_array(&array, data_type)?;
    fenced(|| {
        // SAFETY: the structure has been checked, and S1 is the producer's promise for the rest.
        let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) }?;
        if !data_type.is_primitive() {
            data.validate_full()?;
        }
        Ok(make_array(data))
    })
}

/// Everything that arrow-rs takes for granted about an array. Depth is bounded by the type's.
fn check_array(array: &FFI_ArrowArray, data_type: &DataType) -> Checked {
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
    if let DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) = data_type {
        if *size < 0 {
            return wrong(format!("size {size}"));
        }
    }

    let spec = layout(data_type);
    let fixed = spec.buffers.len() + usize::from(spec.can_contain_null_mask);
    let count = usize::try_from(array.n_buffers).unwrap_or(usize::MAX);
    // Views carry any number of buffers, and then the sizes of these.
    let expected = if spec.variadic { count > fixed } else { count == fixed };
    if !expected || array.n_buffers < 0 {
        return wrong(format!("{} buffers where {fixed} are expected", array.n_buffers));
    }
    if count > 0 && (array.buffers.is_null() || !array.buffers.is_aligned()) {
        return wrong("no pointer to its buffers".to_owned());
    }
    let widest = spec.buffers.iter().map(|buffer| match buffer {
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
        check_array(child, child_type)?;
    }
    match data_type {
        DataType::Dictionary(_, values) => check_array(child_of(array.dictionary)?, values),
        _ if array.dictionary.is_null() => Ok(()),
        _ => wrong("a dictionary where none is expected".to_owned()),
    }
}

fn child_of<'a>(child: *const FFI_ArrowArray) -> Checked<&'a FFI_ArrowArray> {
    if child.is_null() || !child.is_aligned() {
        return Err("the Arrow array has a child or a dictionary that is not there".to_owned());
    }
    // SAFETY: S1 holds for children, which live as long as their parent.
    Ok(unsafe { &*child })
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
fn child_types(data_type: &DataType) -> Vec<(&DataType, usize)> {
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
