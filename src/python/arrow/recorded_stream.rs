//! A stream that records which rows are taken from it, for other readers of the C stream interface than ours.
//!
//! It calls no Python code. A generator around pyarrow's reader does: pyarrow's threads would then wait for the
//! interpreter, also while it ends, where a process hung or aborted.
#![expect(unsafe_code, reason = "is a stream of C callbacks")]

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use pyo3::{prelude::*, types::PyCapsule};

use super::super::{capsule::Level, read_once::Reading, source};
use super::structs::{ArrowArray, ArrowArrayStream, ArrowSchema, Structure};
use crate::fence::fenced;

/// The code for an argument that is wrong, which pyarrow raises as a `ValueError`.
const EINVAL: c_int = 22;

/// What `private_data` of the stream points to, from [`recorded`] until `release` of it.
struct Recorded {
    stream: ArrowArrayStream,
    reading: Reading,
    refusal: Option<CString>,
}

/// The stream of an object with `__arrow_c_stream__`, in a capsule, which is refused if earlier readings took all rows.
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(in crate::python) fn _recorded_stream<'py>(
    source: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyCapsule>>> {
    let _level = Level::enter(source.py())?;
    let reading = Reading::of(source)?;
    let Some(stream) = source::taken(source)? else { return Ok(None) };
    let stream = recorded(stream, reading);
    PyCapsule::new_with_value(source.py(), stream, ArrowArrayStream::CAPSULE).map(Some)
}

fn recorded(stream: ArrowArrayStream, reading: Reading) -> ArrowArrayStream {
    let recorded = Box::new(Recorded { stream, reading, refusal: None });
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(recorded).cast(),
    }
}

/// # Safety
///
/// `stream` is one that [`recorded`] made, is not released, and is not used elsewhere during `'a`.
unsafe fn inner<'a>(stream: *mut ArrowArrayStream) -> &'a mut Recorded {
    // SAFETY: the caller's promise; `private_data` is the box of `recorded`, which `release` alone takes back.
    unsafe { &mut *(*stream).private_data.cast::<Recorded>() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time, and memory for a schema.
    unsafe {
        let Recorded { stream, .. } = inner(stream);
        stream.get_schema.map_or(EINVAL, |get_schema| get_schema(stream, out))
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time.
    let Recorded { stream, reading, refusal } = unsafe { inner(stream) };
    let Some(get_next) = stream.get_next else { return EINVAL };
    // SAFETY: S1 of the inner stream, which is live and ours; the caller passes memory for an array.
    let code = unsafe { get_next(stream, out) };
    if code != 0 {
        return code;
    }
    // SAFETY: the callback has filled it.
    let chunk = unsafe { &*out };
    if !chunk.is_released() {
        reading.took(chunk.length);
        return 0;
    }
    let found = fenced(|| reading.refusal()).unwrap_or_else(Some);
    *refusal = found.map(|words| CString::new(words).unwrap_or_default());
    if refusal.is_some() { EINVAL } else { 0 }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time. Its text is valid until the
    // next call, as ours is.
    unsafe {
        let Recorded { stream, refusal, .. } = inner(stream);
        match (refusal, stream.get_last_error) {
            (Some(refusal), _) => refusal.as_ptr(),
            (None, Some(get_last_error)) => get_last_error(stream),
            (None, None) => ptr::null(),
        }
    }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: S1, by which the caller passes a live stream of ours, once. The box is that of `recorded`.
    let recorded = unsafe {
        (*stream).release = None;
        Box::from_raw((*stream).private_data.cast::<Recorded>())
    };
    // Who releases this stream released the inner one so before: nothing here asks for the interpreter.
    let _fenced = fenced(move || drop(recorded));
}
