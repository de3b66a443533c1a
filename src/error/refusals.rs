//! The errors of several columns as one.

use super::Error;

/// What is wrong with the columns of a table, gathered until all have been looked at.
#[derive(Default)]
pub(crate) struct Refusals(Vec<Error>);

impl Refusals {
    /// What became of a column, if it was not refused.
    pub(crate) fn note<T>(&mut self, name: &str, result: Result<T, Error>) -> Option<T> {
        self.note_all(result.map_err(|error| Error::in_column(name, error)))
    }

    /// What became of several columns, whose errors have their names.
    pub(crate) fn note_all<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(made) => return Some(made),
            Err(Error::Columns { errors }) => self.0.extend(errors),
            Err(error) => self.0.push(error),
        }
        None
    }

    /// One error for all.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => Err(Error::Columns { errors: self.0 }),
        }
    }
}
