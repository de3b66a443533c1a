//! Combines the errors of several columns.

use super::Error;

/// The errors of a table's columns, collected until all columns have been checked.
#[derive(Default)]
pub(crate) struct Refusals(Vec<Error>);

impl Refusals {
    /// The result of a column; keeps its error.
    ///
    /// # Errors
    ///
    /// That of [`task::check`](crate::task::check), which is of no column.
    pub(crate) fn note<T>(
        &mut self,
        name: &str,
        result: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.note_all(result.map_err(|error| Error::in_column(name, error)))
    }

    /// The result of several columns; keeps their errors, which have the columns' names.
    ///
    /// # Errors
    ///
    /// As [`Self::note`].
    pub(crate) fn note_all<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(made) => return Ok(Some(made)),
            Err(error @ Error::Reader(_)) => return Err(error),
            Err(Error::Columns { errors }) => self.0.extend(errors),
            Err(error) => self.0.push(error),
        }
        Ok(None)
    }

    /// One error for all columns, if any was refused.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => Err(Error::Columns { errors: self.0 }),
        }
    }
}
