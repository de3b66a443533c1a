//! Room for what is as large as the data, where a `Vec` or arrow-rs would abort the process for want of it.

use crate::error::Error;

/// An error unless so many bytes could be had now, for those who cannot be told that they could not.
pub(crate) fn room(nbytes: usize) -> Result<(), Error> {
    let room = Vec::<u8>::new().try_reserve_exact(nbytes);
    room.map_err(|_| Error::OutOfMemory { nbytes })
}

/// All items in a vector.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let nbytes = items.len().saturating_mul(size_of::<T>());
    let mut vector = Vec::new();
    vector.try_reserve_exact(items.len()).map_err(|_| Error::OutOfMemory { nbytes })?;
    vector.extend(items);
    Ok(vector)
}

/// [`collect`] where making an item can fail.
pub(crate) fn try_collect<T>(
    items: impl ExactSizeIterator<Item = Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let nbytes = items.len().saturating_mul(size_of::<T>());
    let mut vector = Vec::new();
    vector.try_reserve_exact(items.len()).map_err(|_| Error::OutOfMemory { nbytes })?;
    for item in items {
        vector.push(item?);
    }
    Ok(vector)
}
