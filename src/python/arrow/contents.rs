//! Looks at what arrays contain, at no more than some rows have.

use std::{ops::Range, str};

use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, OffsetSizeTrait, cast::AsArray};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;

/// Whether all rows are texts. Reads the bytes of these rows only: arrow-rs reads those before them too, again for each
/// slice of an array. The array has at least one row, and aligned offsets.
pub(in crate::python) fn are_texts<O: OffsetSizeTrait>(data: &ArrayData) -> bool {
    let offsets = &data.buffers()[0].typed_data::<O>()[data.offset()..=data.offset() + data.len()];
    let (first, last) = (offsets[0].as_usize(), offsets[data.len()].as_usize());
    let bytes = data.buffers()[1].get(first..last);
    bytes.and_then(|bytes| str::from_utf8(bytes).ok()).is_some_and(|text| {
        let is_boundary = |at: &O| text.is_char_boundary(at.as_usize().wrapping_sub(first));
        offsets.is_sorted() && offsets.iter().all(is_boundary)
    })
}

/// The runs that rows are in, by the ends of all runs; any runs, if the ends do not rise.
pub(in crate::python) fn runs_of(ends: &dyn Array, start: usize, len: usize) -> Range<usize> {
    let first = if start == 0 { 0 } else { ended(ends, start) };
    let last = if len == 0 { first } else { ended(ends, start + len - 1) + 1 };
    first..last.clamp(first, ends.len())
}

/// How many runs end at this row or before it.
fn ended(ends: &dyn Array, row: usize) -> usize {
    fn of<T: RunEndIndexType>(ends: &dyn Array, row: usize) -> Option<usize> {
        let ends = ends.as_primitive_opt::<T>()?;
        Some(ends.values().partition_point(|end| end.as_usize() <= row))
    }
    let narrow = of::<Int16Type>(ends, row).or_else(|| of::<Int32Type>(ends, row));
    narrow.or_else(|| of::<Int64Type>(ends, row)).unwrap_or(0)
}
