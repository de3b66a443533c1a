//! Lets arrow-rs make an array of data that may be inconsistent.

use arrow_schema::ArrowError;

use crate::error::Error;
use crate::fence;

/// What arrow-rs makes; an error where it fails or panics.
pub(crate) fn checked<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, Error> {
    match fence::fenced(work) {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(ArrowError::ExternalError(error))) => Err(match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::InvalidArray(error.to_string()),
        }),
        Ok(Err(error)) => Err(Error::InvalidArray(error.to_string())),
        Err(_) => Err(Error::InvalidArray("the Arrow arrays are malformed".to_owned())),
    }
}
