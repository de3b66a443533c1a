//! Allocations that grow with the data. They return an error where `Vec` or arrow-rs would abort the process.
//!
//! A probe allocates and frees: 18 ns for a megabyte, 4 to 6 µs for 64 MB or more, whose copy takes milliseconds.

use std::hint::black_box;

use crate::Error;

/// An error unless so many bytes can be allocated now. Called before code that aborts if they cannot.
pub(crate) fn probe_alloc(nbytes: usize) -> Result<(), Error> {
    // The optimiser may remove an allocation that nothing reads.
    reserved::<u8>(nbytes).map(|memory| drop(black_box(memory)))
}

/// An empty vector with capacity for so many items.
pub(crate) fn reserved<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(count) {
        Ok(()) => Ok(vector),
        Err(_) => Err(Error::OutOfMemory { nbytes: count.saturating_mul(size_of::<T>()) }),
    }
}

/// So many bytes that are 0.
pub(crate) fn zeros(nbytes: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = reserved(nbytes)?;
    bytes.resize(nbytes, 0);
    Ok(bytes)
}

/// All items in a vector.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut vector = reserved(items.len())?;
    vector.extend(items);
    Ok(vector)
}

/// [`collect`] where making an item can fail.
pub(crate) fn try_collect<T>(
    items: impl ExactSizeIterator<Item = Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let mut vector = reserved(items.len())?;
    for item in items {
        vector.push(item?);
    }
    Ok(vector)
}
