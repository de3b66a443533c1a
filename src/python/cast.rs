//! Runs arrow's casts only if the result fits memory, because arrow's kernels abort the process when memory
//! runs
//! out, and a small input can have a huge result. `bound` computes the size.

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;

use super::bound;
use super::ffi_validate::{Checked, fenced};
use crate::chunks::{everything, reserve};

/// The values of an array as another type. A value that the type cannot hold is an error, which says why.
pub(super) fn cast(array: &dyn Array, wanted: &DataType) -> Checked<ArrayRef> {
    let from = array.data_type();
    if !can_cast_types(from, wanted) {
        return Err("there is no way from one to the other".to_owned());
    }
    if !bound::is_known(from, wanted) {
        return Err("the memory that the cast takes has no known bound".to_owned());
    }
    let array = &everything(array).map_err(|error| error.to_string())?;
    if reserve(bound::of_cast(array, wanted)).is_err() {
        return Err(format!("{} of them do not fit memory", array.len()));
    }
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    fenced(|| cast_with_options(array, wanted, &checked))
}
