//! The positions of buffers in their allocations.

use std::ops::Range;

use arrow_buffer::Buffer;

/// The range of a buffer in its allocation.
pub(super) fn whole(buffer: &Buffer) -> Range<usize> {
    let start = buffer.ptr_offset();
    start..start + buffer.len()
}

/// Whether a buffer begins where another ends, in one allocation. Addresses alone do not suffice: allocators
/// place separate allocations end to end, and neither a slice nor a pointer may cross from one into the other.
///
/// Two live buffers whose allocations begin at the same address share one allocation, though they may record
/// different lengths of it. The length that `after` records, which ends later, covers both.
pub(crate) fn follows(before: &Buffer, after: &Buffer) -> bool {
    before.data_ptr() == after.data_ptr() && whole(before).end == after.ptr_offset()
}
