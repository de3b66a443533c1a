//! The positions of buffers in their allocations.

use std::ops::Range;

use arrow_buffer::Buffer;

/// The bytes of its allocation that a buffer has.
pub(super) fn whole(buffer: &Buffer) -> Range<usize> {
    let start = buffer.ptr_offset();
    start..start + buffer.len()
}

/// Whether a buffer begins where another ends, in one allocation. Addresses alone do not tell: allocators put
/// separate allocations end to end, and neither a slice nor a pointer may go from one into the other.
///
/// Two buffers that are alive, and whose allocations begin at the same address, have one allocation, though they
/// may know more or less of it: `after`, which ends later, knows all that there is of both.
pub(crate) fn follows(before: &Buffer, after: &Buffer) -> bool {
    before.data_ptr() == after.data_ptr() && whole(before).end == after.ptr_offset()
}
