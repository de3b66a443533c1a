//! Adopts foreign memory as an Arrow `Buffer`.
#![expect(unsafe_code, reason = "promises Arrow that foreign memory is readable")]

use std::{ptr::NonNull, sync::Arc};

use arrow_buffer::Buffer;

use super::{ManagedTensor, own, owner::Abi};

/// A `Buffer` over the bytes that the tensor spans; the tensor's deleter runs when the last slice of
/// it is dropped, on any thread. If the CPU cannot read the memory, the tensor is released and the result is `None`.
///
/// A tensor without elements is released at once: its pointer may be NULL or dangling, and Arrow
/// requires even an empty buffer to be aligned.
pub(crate) fn adopt(tensor: ManagedTensor) -> Option<Buffer> {
    if matches!(tensor.owner().abi(), Abi::Fresh(_)) {
        return Some(match tensor.into_fresh() {
            // Allocated by Arrow; its only holder may write to it again.
            Ok(memory) if memory.is_whole() => memory.into_buffer(),
            Ok(memory) => own::into_buffer(memory),
            Err(_) => Buffer::default(),
        });
    }
    let (bytes, _) = tensor.span()?;
    if bytes.is_empty() {
        return Some(Buffer::default());
    }
    let (start, len) = (NonNull::from(bytes).cast(), bytes.len());
    let owner = Arc::new(tensor.into_owner());
    // SAFETY: I2, the span is readable until the deleter runs, and the buffer has the owner.
    Some(unsafe { Buffer::from_custom_allocation(start, len, owner) })
}
