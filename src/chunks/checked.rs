//! Lets arrow-rs make an array of data that may be inconsistent.

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

use crate::{Error, alloc, fence};

/// What arrow-rs makes; an error where it fails or panics.
pub(crate) fn checked<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, Error> {
    match fence::fenced(work) {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(ArrowError::ExternalError(error))) => Err(match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::InvalidArray(error.to_string()),
        }),
        Ok(Err(ArrowError::OffsetOverflowError(end))) => Err(Error::InvalidArray(format!(
            "offsets of 32 bits overflow where texts, binaries or lists end together at {end}: cast them to large ones \
             (large_string, large_binary, large_list), or put fewer rows together"
        ))),
        Ok(Err(error)) => Err(Error::InvalidArray(error.to_string())),
        Err(_) => Err(Error::InvalidArray("the Arrow arrays are malformed".to_owned())),
    }
}

/// Which values are null; an error if what they claim is more than there is memory for.
pub(crate) fn logical_nulls<A: Array + ?Sized>(array: &A) -> Result<Option<NullBuffer>, Error> {
    match bytes_of_logical_nulls(array) {
        0 => {}
        nbytes => alloc::probe_alloc(nbytes)?,
    }
    checked(|| Ok(array.logical_nulls()))
}

/// The bytes that arrow-rs needs to tell nulls where no buffer does: a bit for each value of nulls, and of a dictionary, runs
/// or a union, and of what these are of.
pub(crate) fn bytes_of_logical_nulls<A: Array + ?Sized>(array: &A) -> usize {
    fn bits(data: &ArrayData) -> usize {
        match data.data_type() {
            DataType::Null
            | DataType::Dictionary(..)
            | DataType::RunEndEncoded(..)
            | DataType::Union(..) => {
                data.child_data().iter().map(bits).fold(data.len(), usize::saturating_add)
            }
            _ => 0,
        }
    }
    bits(&array.to_data()).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_errors_pass_and_all_else_is_an_invalid_array() {
        let ours = || Err::<(), _>(Error::Overflow("length").into());
        assert_eq!(checked(ours), Err(Error::Overflow("length")));
        let invalid = |words: &str| Err(Error::InvalidArray(words.to_owned()));
        let others = || Err::<(), _>(ArrowError::ExternalError("a disk".into()));
        assert_eq!(checked(others), invalid("a disk"));
        let words = || Err::<(), _>(ArrowError::ComputeError("too hard".to_owned()));
        assert_eq!(checked(words), invalid("Compute error: too hard"));
        let long = checked(|| Err::<(), _>(ArrowError::OffsetOverflowError(1 << 31)));
        assert!(long.is_err_and(|error| error.to_string().contains("end together at 2147483648")));
        let panics = || -> Result<(), _> { panic!("of arrow-rs") };
        assert_eq!(checked(panics), invalid("the Arrow arrays are malformed"));
    }
}
