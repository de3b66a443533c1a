//! Foreign memory becomes an Arrow `Buffer`: the only call of `Buffer::from_custom_allocation`.
#![expect(unsafe_code, reason = "promises Arrow that foreign memory is readable")]

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;

use super::ManagedTensor;

/// A `Buffer` over the bytes that the tensor spans; the tensor's deleter runs when the last slice of
/// it goes, on whichever thread that is. `None`, and the tensor released, where the CPU cannot read.
///
/// A tensor without elements is released at once: its pointer may be NULL or dangling, and Arrow
/// asks even an empty buffer to be aligned.
pub(crate) fn adopt(tensor: ManagedTensor) -> Option<Buffer> {
    let (bytes, _) = tensor.span()?;
    if bytes.is_empty() {
        return Some(Buffer::default());
    }
    let (start, len) = (NonNull::from(bytes).cast(), bytes.len());
    let owner = Arc::new(tensor.owner);
    // SAFETY: I2, the span is readable until the deleter runs, and the buffer has the owner.
    Some(unsafe { Buffer::from_custom_allocation(start, len, owner) })
}
