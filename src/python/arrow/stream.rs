//! Streams of Arrow's C interface, read array by array.
//!
//! Source: <https://arrow.apache.org/docs/format/CStreamInterface.html>.
#![expect(unsafe_code, reason = "says of which type a stream's arrays are")]

use std::{ffi::CStr, sync::Arc};

use arrow_array::{ArrayRef, new_empty_array};
use arrow_schema::FieldRef;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::{intern, prelude::*};

use super::super::{errors::stream_failed, read_once::Reading, runtime::Interrupt};
use super::select::{Pick, field_of, wanted_of};
use super::structs::{ArrowArray, ArrowArrayStream, Failure, Structure};
use super::validate::TypedArray;
use super::{
    gather::Gather, import::array_from, imported::Imported, shared_children::SharedChildren,
};
use crate::{chunks::checked, tensor::release_foreign};

/// All arrays of a stream, on a thread that is not attached to Python.
pub(in crate::python) fn drained(
    stream: ArrowArrayStream,
    wanted: Option<&[String]>,
    reading: Reading,
) -> PyResult<Imported> {
    let mut stream = Stream::open(stream, wanted, reading)?;
    let field = Arc::clone(&stream.field);
    let (mut chunks, mut moved) = (Vec::new(), 0);
    let (mut gather, mut interrupt) = (Gather::new(field.data_type()), Interrupt::new());
    let mut pull = || -> PyResult<bool> {
        let Some(chunk) = stream.pull()? else { return Ok(false) };
        if chunk.array().length() == 0 {
            return Ok(true);
        }
        let (chunk, before) = gather.take(chunk)?;
        chunks.extend(before);
        if let Some(chunk) = chunk {
            let (chunk, bytes) = array_from(chunk, Some(&stream.known))?;
            chunks.push(chunk);
            moved += bytes;
        }
        Ok(true)
    };
    while pull()? {
        interrupt.step()?;
    }
    stream.reading.end()?;
    chunks.extend(gather.array()?);
    if chunks.is_empty() {
        chunks.push(checked(|| Ok(new_empty_array(field.data_type())))?);
    }
    let gathered = (gather.chunks, gather.nbytes);
    Ok(Imported { chunks, field: Arc::clone(&field), moved, gathered })
}

/// A stream, read array by array, and released when this is dropped.
pub(in crate::python) struct Stream {
    /// `Some` until this is dropped.
    stream: Option<ArrowArrayStream>,
    /// Made of the stream's schema, less the columns that `pick` leaves out.
    field: FieldRef,
    pick: Option<Pick>,
    known: SharedChildren,
    /// Which rows have been taken from the object that has the stream.
    pub(in crate::python) reading: Reading,
}

impl Stream {
    pub(in crate::python) fn open(
        mut stream: ArrowArrayStream,
        wanted: Option<&[String]>,
        reading: Reading,
    ) -> PyResult<Self> {
        stream.check().map_err(PyValueError::new_err)?;
        let schema = stream.schema();
        let schema = schema.map_err(|failure| PyValueError::new_err(words_of(failure)))?;
        let (field, pick) = field_of(&schema, wanted)?;
        Ok(Self { stream: Some(stream), field, pick, known: SharedChildren::default(), reading })
    }

    pub(in crate::python) fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The next array, and how many bytes of it had to be moved; `None` at the end.
    pub(in crate::python) fn next(&mut self) -> PyResult<Option<(ArrayRef, usize)>> {
        let Some(chunk) = self.pull()? else {
            // It holds the last array.
            self.known = SharedChildren::default();
            return Ok(None);
        };
        if chunk.array().length() == 0 {
            return Ok(Some((checked(|| Ok(new_empty_array(self.field.data_type())))?, 0)));
        }
        Ok(Some(array_from(chunk, Some(&self.known))?))
    }

    /// The next array, not checked; one without rows is released already.
    fn pull(&mut self) -> PyResult<Option<TypedArray>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let next = stream.next().map_err(|failure| raised(words_of(failure)));
        let Some(mut chunk) = next? else { return Ok(None) };
        self.reading.took(chunk.length());
        chunk = if chunk.length() == 0 {
            release_foreign(move || drop(chunk));
            ArrowArray::released()
        } else {
            wanted_of(self.pick.as_ref(), chunk).map_err(PyValueError::new_err)?
        };
        // SAFETY: S3, of this stream, less what `pick` leaves out of both.
        Ok(Some(unsafe { TypedArray::new(chunk, Arc::clone(&self.field)) }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.stream.take();
        release_foreign(move || drop(stream));
    }
}

const FAILED: &str = "the Arrow stream failed: ";

fn words_of(Failure { code, words }: Failure<'_>) -> String {
    let message = words.map(CStr::to_string_lossy);
    format!("{FAILED}{} (code {code})", message.as_deref().unwrap_or("no message"))
}

/// The exception for what a stream says of its failure. pyarrow appends the traceback of an exception that Python code
/// raised, and of the next one where streams are nested: the message is that of the first, and the rest a note. Ctrl-C may
/// have met this code.
fn raised(words: String) -> PyErr {
    const PYTHON: &str = ". Detail: Python exception: ";
    let Some((said, traceback)) = words.split_once(PYTHON) else {
        return stream_failed(words);
    };
    let first = traceback.split(PYTHON).next().unwrap_or(traceback);
    let message = message_of(said, first);
    let is_interrupt = message == "KeyboardInterrupt";
    let of = if is_interrupt { PyKeyboardInterrupt::new_err } else { stream_failed };
    let error = of(format!("{FAILED}{message}"));
    // Without the note, as where the interpreter is ending, the exception is as good.
    let _noted = Python::try_attach(|py| {
        error.value(py).call_method1(intern!(py, "add_note"), (traceback,)).map(drop)
    });
    error
}

/// The class and all lines of an exception's message, as pyarrow hands them on: `said` ends with the message, behind the
/// names of one status or more, and the traceback ends with both. Frames of Java's stack, of which Spark's messages have
/// dozens, are left to the note.
fn message_of(said: &str, traceback: &str) -> String {
    const SHOWN: usize = 20;
    let status = said.strip_prefix(FAILED).unwrap_or(said);
    let mut text = status;
    let class = loop {
        if text.is_empty() {
            let is_last = |line: &&str| !line.is_empty() && !line.starts_with("(code ");
            let last = traceback.lines().rev().map(str::trim).find(is_last);
            return last.unwrap_or(status).to_owned();
        }
        match (class_of(text, traceback), text.split_once(": ")) {
            (Some(class), _) => break format!("{class}: "),
            (None, Some((_, rest))) => text = rest,
            (None, None) => {
                text = status.split_once(": ").map_or(status, |(_, text)| text);
                break String::new();
            }
        }
    };
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        (line.starts_with("at ") && line.ends_with(')'))
            || (line.starts_with("... ") && line.ends_with(" more"))
    };
    let mut lines = text.lines().filter(|line| !is_frame(line));
    let shown: Vec<&str> = lines.by_ref().take(SHOWN).collect();
    let more = if lines.next().is_some() { "\n..." } else { "" };
    format!("{class}{}{more}", shown.join("\n"))
}

/// The name of the class before this message, where a traceback has it.
fn class_of<'a>(text: &str, traceback: &'a str) -> Option<&'a str> {
    let before = &traceback[..traceback.rfind(&format!(": {text}\n"))?];
    let class = before.rsplit('\n').next()?;
    (!class.is_empty() && !class.contains(char::is_whitespace)).then_some(class)
}
