//! Streams of Arrow's C interface, read array by array.
//!
//! Source: <https://arrow.apache.org/docs/format/CStreamInterface.html>.

use std::sync::Arc;

use arrow_array::{ArrayRef, new_empty_array};
use arrow_schema::FieldRef;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::{intern, prelude::*};

use super::super::{read_once::Reading, runtime::Interrupt};
use super::select::{Pick, field_of, wanted_of};
use super::structs::{ArrowArray, ArrowArrayStream, Checked, fenced};
use super::{gather::Gather, import::array_from, imported::Imported, known::Known};
use crate::memory::release_foreign;

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
    let mut pull = || -> Checked<bool> {
        let Some(chunk) = stream.pull()? else { return Ok(false) };
        if chunk.length() == 0 {
            release(chunk);
            return Ok(true);
        }
        let (chunk, before) = gather.take(wanted_of(stream.pick.as_ref(), chunk)?)?;
        chunks.extend(before);
        if let Some(chunk) = chunk {
            let (chunk, bytes) = array_from(chunk, field.data_type(), Some(&stream.known))?;
            chunks.push(chunk);
            moved += bytes;
        }
        Ok(true)
    };
    while pull().map_err(raised)? {
        interrupt.step()?;
    }
    stream.reading.end()?;
    chunks.extend(gather.array().map_err(PyValueError::new_err)?);
    if chunks.is_empty() {
        let empty = fenced(|| Ok(new_empty_array(field.data_type())));
        chunks.push(empty.map_err(PyValueError::new_err)?);
    }
    let gathered = (gather.chunks, gather.nbytes);
    Ok(Imported { chunks, field: Arc::clone(&field), moved, gathered })
}

/// A stream, read array by array, and released when this is dropped.
pub(in crate::python) struct Stream {
    /// `Some` until this is dropped.
    stream: Option<ArrowArrayStream>,
    pub(in crate::python) field: FieldRef,
    pick: Option<Pick>,
    known: Known,
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
        let schema = schema.map_err(|code| PyValueError::new_err(failure(&mut stream, code)))?;
        let (field, pick) = field_of(&schema, wanted)?;
        Ok(Self { stream: Some(stream), field, pick, known: Known::default(), reading })
    }

    /// The next array, and how many bytes of it had to be moved; `None` at the end.
    pub(in crate::python) fn next(&mut self) -> Checked<Option<(ArrayRef, usize)>> {
        let Some(chunk) = self.pull()? else {
            // It holds the last array.
            self.known = Known::default();
            return Ok(None);
        };
        let data_type = self.field.data_type();
        if chunk.length() == 0 {
            release(chunk);
            return Ok(Some((fenced(|| Ok(new_empty_array(data_type)))?, 0)));
        }
        array_from(wanted_of(self.pick.as_ref(), chunk)?, data_type, Some(&self.known)).map(Some)
    }

    /// The next array, not checked.
    fn pull(&mut self) -> Checked<Option<ArrowArray>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let chunk = stream.next().map_err(|code| failure(stream, code))?;
        chunk.iter().for_each(|chunk| self.reading.took(chunk.length()));
        Ok(chunk)
    }
}

/// Releases an array.
fn release(array: ArrowArray) {
    release_foreign(move || drop(array));
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.stream.take();
        release_foreign(move || drop(stream));
    }
}

const FAILED: &str = "the Arrow stream failed: ";

fn failure(stream: &mut ArrowArrayStream, code: i32) -> String {
    let message = stream.last_error().map(|text| text.to_string_lossy());
    format!("{FAILED}{} (code {code})", message.as_deref().unwrap_or("no message"))
}

/// The exception for what a stream says of its failure. pyarrow appends the traceback of an exception that Python code
/// raised, and of the next one where streams are nested: the message is that of the first, and the rest a note. Ctrl-C may
/// have met this code.
pub(in crate::python) fn raised(words: String) -> PyErr {
    const PYTHON: &str = ". Detail: Python exception: ";
    let Some((said, traceback)) = words.split_once(PYTHON) else {
        return PyValueError::new_err(words);
    };
    let first = traceback.split(PYTHON).next().unwrap_or(traceback);
    let message = message_of(said, first);
    let is_interrupt = message == "KeyboardInterrupt";
    let of = if is_interrupt { PyKeyboardInterrupt::new_err } else { PyValueError::new_err };
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
