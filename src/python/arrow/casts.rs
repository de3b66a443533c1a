//! Casts in which no value changes.

use arrow_array::types::{Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, cast::AsArray, new_null_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;

use crate::Error;
use crate::chunks::{checked, footprint, reserve};
use crate::import::ranges;
use crate::kernels::Decimals;

/// The values as another type. A value that comes back different from a cast there and back is an error, and so is a
/// number that stores no value of that type: arrow's casts between numbers and times look at none.
pub(in crate::python) fn there_and_back(
    array: &ArrayRef,
    wanted: &DataType,
) -> Result<ArrayRef, Error> {
    let (stored, no) = (array.data_type(), |why: &str| Err(Error::InvalidArray(why.to_owned())));
    if !can_cast_types(stored, wanted) || !can_cast_types(wanted, stored) {
        return no("there is no way from one to the other and back");
    }
    reserve(bytes_of_cast(array, wanted))?;
    let there = cast(array, wanted)?;
    ranges::check(&there)?;
    match cast(&there, stored) {
        Err(error @ Error::OutOfMemory { .. }) => Err(error),
        Ok(back) if &back == array => match has_rounded(array, &there) {
            true => no(
                "a float has no more exact digits than 15: take it as it is, and cast it in pyarrow",
            ),
            false => Ok(there),
        },
        _ => no("not all values come back the same: take it as it is, and cast it in pyarrow"),
    }
}

/// Whether arrow's cast between decimals and floats rounds twice, which a cast back does not tell.
fn has_rounded(array: &ArrayRef, there: &ArrayRef) -> bool {
    match (array.data_type().is_floating(), there.data_type().is_floating()) {
        (true, false) => has_rounded_digits(there),
        (false, true) => {
            // arrow divides by the power of ten.
            let is_rounded = |decimals: Decimals| !decimals.has_exact_scale();
            has_rounded_digits(array) || Decimals::of(array.data_type()).is_some_and(is_rounded)
        }
        _ => false,
    }
}

/// Its callers ask for memory before: arrow's kernels abort the process where there is none.
pub(in crate::python) fn cast(array: &dyn Array, wanted: &DataType) -> Result<ArrayRef, Error> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    checked(|| cast_with_options(array, wanted, &options))
}

/// Whether decimals have digits that no float has: those that arrow's cast made of floats come of its multiplication alone, and
/// those that it makes floats of are rounded before its division rounds again.
fn has_rounded_digits(decimals: &dyn Array) -> bool {
    let is_rounded = |digits: u128| digits >= 1 << f64::MANTISSA_DIGITS;
    match decimals.data_type() {
        DataType::Decimal64(..) => {
            let mut known = decimals.as_primitive::<Decimal64Type>().iter().flatten();
            known.any(|digits| is_rounded(digits.unsigned_abs().into()))
        }
        DataType::Decimal128(..) => {
            let mut known = decimals.as_primitive::<Decimal128Type>().iter().flatten();
            known.any(|digits| is_rounded(digits.unsigned_abs()))
        }
        DataType::Decimal256(..) => {
            let mut known = decimals.as_primitive::<Decimal256Type>().iter().flatten();
            known.any(|digits| {
                digits.to_i128().is_none_or(|digits| is_rounded(digits.unsigned_abs()))
            })
        }
        _ => false,
    }
}

/// A column of nulls.
pub(in crate::python) fn nulls(data_type: &DataType, rows: usize) -> Result<ArrayRef, Error> {
    reserve(footprint::of_type(data_type, rows))?;
    checked(|| Ok(new_null_array(data_type, rows)))
}

/// A bound of the bytes that a cast of leaves, or of codes of leaves, reserves there and back; `None` stands for a number
/// that overflows.
pub(in crate::python) fn bytes_of_cast(array: &dyn Array, wanted: &DataType) -> Option<usize> {
    // A decimal of 76 digits with 128 zeros behind them; no other number, time or interval is as long.
    const LONGEST_TEXT: usize = 205;
    let all = |array: &dyn Array| footprint::of_each_row(array)?.between(0, array.len());
    let (stored, rows) = (array.data_type(), array.len());
    let is_printed = (stored.is_primitive() || stored == &DataType::Boolean)
        && (wanted.is_string() || wanted.is_binary());
    let printed = if is_printed { rows.checked_mul(LONGEST_TEXT)? } else { 0 };
    let values = match array.as_any_dictionary_opt() {
        Some(codes) => all(codes.values())?,
        None => 0,
    };
    let sums = [footprint::of_type(wanted, rows)?, printed, values];
    let bytes = sums.into_iter().try_fold(all(array)?, usize::checked_add)?;
    // The cast, the way back, and buffers that double, of which old and new are there at once.
    bytes.checked_mul(3)
}

/// Whether values of a type have no children.
pub(in crate::python) fn is_leaf(data_type: &DataType) -> bool {
    data_type.is_primitive()
        || data_type.is_string()
        || data_type.is_binary()
        || data_type == &DataType::Boolean
}
