//! A stream that records which rows are taken from it, for other readers of the C stream interface than ours. It leaves out
//! chunks without rows.
//!
//! It calls no Python code. A generator around pyarrow's reader does: pyarrow's threads would then wait for the
//! interpreter, also while it ends, where a process hung or aborted.
#![expect(unsafe_code, reason = "is a stream of C callbacks")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use super::schema::check_counts;
use super::structs::{ArrowArray, ArrowArrayStream, ArrowSchema, EINVAL, Structure};
use crate::fence::fenced;
use crate::python::read_once::Reading;
use crate::python::runtime::RecursionGuard;
use crate::python::source;
use crate::tensor::release_foreign;

/// Chunks without rows that are left out in one call: among more of them the reader looks for signals.
const MOST_LEFT_OUT: usize = 1 << 10;

/// What `private_data` of the stream points to, from [`recorded`] until `release` of it.
struct RecordedStream {
    stream: ArrowArrayStream,
    reading: Reading,
    /// What the last call failed with.
    words: Option<CString>,
}

/// The stream of an object with `__arrow_c_stream__`, in a capsule, which is refused if earlier readings took all rows.
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(in crate::python) fn _recorded_stream<'py>(
    source: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyCapsule>>> {
    let _level = RecursionGuard::enter(source.py())?;
    let reading = Reading::of(source)?;
    let Some(stream) = source::stream_of(source)? else { return Ok(None) };
    stream.check().map_err(PyValueError::new_err)?;
    let stream = recorded(stream, reading);
    PyCapsule::new_with_value(source.py(), stream, ArrowArrayStream::CAPSULE).map(Some)
}

fn recorded(stream: ArrowArrayStream, reading: Reading) -> ArrowArrayStream {
    let recorded = Box::into_raw(Box::new(RecordedStream { stream, reading, words: None }));
    // SAFETY: the callbacks below are for streams that have this box.
    unsafe { ArrowArrayStream::new(get_schema, get_next, get_last_error, release, recorded.cast()) }
}

/// # Safety
///
/// `stream` is one that [`recorded`] made, is not released, and is not used elsewhere during `'a`.
unsafe fn inner<'a>(stream: *mut ArrowArrayStream) -> &'a mut RecordedStream {
    // SAFETY: a live stream of `recorded`, used only here; `private_data` is its box, which `release` alone takes back.
    unsafe { &mut *(*stream).private_data().cast::<RecordedStream>() }
}

unsafe extern "C-unwind" fn get_schema(
    stream: *mut ArrowArrayStream,
    out: *mut ArrowSchema,
) -> c_int {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time.
    let RecordedStream { stream, words, .. } = unsafe { inner(stream) };
    let schema = match stream.schema() {
        Ok(schema) => schema,
        Err(failure) => {
            *words = failure.words.map(CStr::to_owned);
            return failure.code;
        }
    };
    if let Err(refusal) = fenced(|| check_counts(&schema)).unwrap_or_else(Err) {
        *words = Some(CString::new(refusal).unwrap_or_default());
        return EINVAL;
    }
    // SAFETY: S1, by which the caller passes memory for a schema.
    unsafe { out.write(schema) };
    0
}

unsafe extern "C-unwind" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time.
    let RecordedStream { stream, reading, words } = unsafe { inner(stream) };
    let mut left_out = 0;
    let chunk = loop {
        match stream.next() {
            // Of views without rows that lie at an offset pyarrow 26 makes an array that it calls invalid.
            Ok(Some(chunk)) if chunk.length() == 0 && left_out < MOST_LEFT_OUT => {
                left_out += 1;
                release_foreign(move || drop(chunk));
            }
            Ok(chunk) => break chunk,
            Err(failure) => {
                *words = failure.words.map(CStr::to_owned);
                return failure.code;
            }
        }
    };
    if let Some(chunk) = &chunk {
        reading.took(chunk.length());
    } else if let Some(refusal) = fenced(|| reading.refusal()).unwrap_or_else(Some) {
        *words = Some(CString::new(refusal).unwrap_or_default());
        return EINVAL;
    }
    // SAFETY: S1, by which the caller passes memory for an array.
    unsafe { out.write(chunk.unwrap_or_else(ArrowArray::released)) };
    0
}

unsafe extern "C-unwind" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: S1, by which the caller passes a live stream of ours, in one call at a time. The text is valid until the
    // next call.
    let RecordedStream { words, .. } = unsafe { inner(stream) };
    words.as_deref().map_or(ptr::null(), CStr::as_ptr)
}

unsafe extern "C-unwind" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: S1, by which the caller passes a live stream of ours, once. The box is that of `recorded`.
    let recorded = unsafe { Box::from_raw((*stream).forget().cast::<RecordedStream>()) };
    release_foreign(move || drop(recorded));
}
