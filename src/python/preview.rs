//! The first values of an array as text.

use std::fmt::{self, Write};

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_buffer::ArrowNativeType;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

use crate::Error;
use crate::chunks::{Runs, everything};

/// The first values as text; `None` for nested types, whose text has no bound.
pub(super) fn preview(array: &dyn Array) -> Option<String> {
    const SHOWN: usize = 6;
    if array.data_type().is_nested() {
        return None;
    }
    let options = FormatOptions::new().with_display_error(false).with_null("null");
    let value = |row| {
        let cell = cell(array, row).ok()?;
        if cell.is_null(0) || cell.data_type() == &DataType::Null {
            return Some("null".to_owned());
        }
        let formatter = ArrayFormatter::try_new(&cell, &options).ok()?;
        let mut text = Start { text: String::new(), is_full: false };
        // The error stops the formatter once the text is long enough. Times of no year have a number alone.
        let is_shown = write!(text, "{}", formatter.value(0)).is_ok() || text.is_full;
        if is_shown { Some(text.text) } else { number(&cell) }
    };
    let shown = (0..array.len().min(SHOWN)).map(|row| value(row).unwrap_or_else(|| "?".to_owned()));
    let mut values: Vec<String> = shown.collect();
    if array.len() > SHOWN {
        values.push("...".to_owned());
    }
    Some(values.join(", "))
}

/// The first 40 characters of a text; of a longer one 39 and an ellipsis.
struct Start {
    text: String,
    is_full: bool,
}

impl fmt::Write for Start {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for character in more.chars() {
            if self.text.chars().count() == 40 {
                self.text.pop();
                self.text.push('…');
                self.is_full = true;
                return Err(fmt::Error);
            }
            self.text.push(character);
        }
        Ok(())
    }
}

/// The number that a time is stored as.
fn number(cell: &ArrayRef) -> Option<String> {
    let data = cell.to_data();
    match data.data_type().primitive_width()? {
        4 => Some(data.buffer::<i32>(0)[0].to_string()),
        8 => Some(data.buffer::<i64>(0)[0].to_string()),
        _ => None,
    }
}

/// A row of a non-nested array as an array, which includes the value of its code or run.
fn cell(array: &dyn Array, row: usize) -> Result<ArrayRef, Error> {
    let beyond = |index: usize, values: &dyn Array| match index < values.len() {
        true => cell(values, index),
        false => Err(Error::NoSuchRow { index, len: values.len() }),
    };
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let key = everything(&dictionary.keys().slice(row, 1))?;
        if key.is_null(0) {
            return Ok(key);
        }
        let key = key.to_data();
        let index = match key.data_type().primitive_width() {
            Some(1) => key.buffer::<u8>(0)[0].into(),
            Some(2) => key.buffer::<u16>(0)[0].into(),
            Some(4) => key.buffer::<u32>(0)[0].as_usize(),
            _ => key.buffer::<u64>(0)[0].as_usize(),
        };
        return beyond(index, dictionary.values());
    }
    let value = array.slice(row, 1);
    match Runs::of(&value) {
        Some(run) => beyond(0, &run.values),
        None => everything(&value),
    }
}
