//! Zeroed memory, for writes in any order. Zeros cost nothing if the allocator gets the memory from the system.
#![expect(unsafe_code, reason = "allocates by hand, which a Vec cannot do without aborting")]

use std::alloc::{Layout, alloc_zeroed};

use arrow_buffer::ArrowNativeType;

/// `len` zeros; `None` if `len` is 0 or the allocation fails.
pub(super) fn zeroed<T: ArrowNativeType>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    // SAFETY: just allocated with the layout of a vector of this capacity; a number of zero bits is 0.
    Some(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}
