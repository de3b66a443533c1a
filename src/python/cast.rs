//! Runs arrow's casts only where the result fits: its kernels abort the process where memory runs out, and a few
//! bytes can ask for more than there is. `bound` counts.

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;

use super::bound;
use super::ffi_validate::{Checked, fenced};
use crate::chunks::{everything, reserve};

/// The values of an array as another type, none of which the type cannot hold; the error says what is wrong.
pub(super) fn cast(array: &dyn Array, wanted: &DataType) -> Checked<ArrayRef> {
    let from = array.data_type();
    if !can_cast_types(from, wanted) {
        return Err("there is no way from one to the other".to_owned());
    }
    if !bound::is_known(from, wanted) {
        return Err("nobody knows how much memory that takes".to_owned());
    }
    let array = &everything(array).map_err(|error| error.to_string())?;
    if reserve(bound::of_cast(array, wanted)).is_err() {
        return Err(format!("{} of them do not fit memory", array.len()));
    }
    let checked = CastOptions { safe: false, ..CastOptions::default() };
    fenced(|| cast_with_options(array, wanted, &checked))
}
