//! The first values of an array as text.

use std::fmt::{self, Write};

use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

use crate::chunks;

/// The first values as text, as they are now; `None` for nested types, whose text has no bound.
pub(super) fn preview(array: &dyn Array) -> Option<String> {
    const SHOWN: usize = 6;
    if array.data_type().is_nested() {
        return None;
    }
    let options = FormatOptions::new().with_display_error(true).with_null("null");
    let value = |row| {
        let cell = chunks::cell(array, row).ok()?;
        if cell.is_null(0) || cell.data_type() == &DataType::Null {
            return Some("null".to_owned());
        }
        let formatter = ArrayFormatter::try_new(&cell, &options).ok()?;
        let mut text = Start(String::new());
        // It stops the formatter once it has enough.
        let _ = write!(text, "{}", formatter.value(0));
        Some(text.0)
    };
    let shown = (0..array.len().min(SHOWN)).map(|row| value(row).unwrap_or_else(|| "?".to_owned()));
    let mut values: Vec<String> = shown.collect();
    if array.len() > SHOWN {
        values.push("...".to_owned());
    }
    Some(values.join(", "))
}

/// The first 40 characters of a text; of a longer one 39 and an ellipsis.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for character in more.chars() {
            if self.0.chars().count() == 40 {
                self.0.pop();
                self.0.push('…');
                return Err(fmt::Error);
            }
            self.0.push(character);
        }
        Ok(())
    }
}
