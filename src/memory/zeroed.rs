//! Memory for writes in any order: it is 0 until then, which costs nothing where the allocator gets it
//! from the system.
#![expect(unsafe_code, reason = "allocates by hand, which a Vec cannot do without aborting")]

use std::alloc::{Layout, alloc_zeroed};

use arrow_buffer::ArrowNativeType;

/// `len` zeros, more than none; `None` if the allocator has no room for them.
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
