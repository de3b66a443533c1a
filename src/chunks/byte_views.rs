//! The values of byte views, whose memory other code may still write to.

use std::ops::Range;

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};

use crate::error::OffsetsProblem;

/// The buffer and the range in it where the value of a row is.
///
/// The view is passed by itself, because it may change where it is stored.
pub(crate) fn place<'a>(
    view: u128,
    row: usize,
    views: &'a ScalarBuffer<u128>,
    blocks: &'a [Buffer],
) -> Result<(&'a Buffer, Range<usize>), OffsetsProblem> {
    let view = ByteView::from(view);
    if view.length <= MAX_INLINE_VIEW_LEN {
        // Short values are stored in the view itself, after the length.
        let start = 16 * row + 4;
        return Ok((views.inner(), start..start + view.length.as_usize()));
    }
    let start = view.offset.as_usize();
    let end = start.saturating_add(view.length.as_usize());
    match blocks.get(view.buffer_index.as_usize()) {
        Some(block) if end <= block.len() => Ok((block, start..end)),
        block => {
            let offset = i64::try_from(end).unwrap_or(i64::MAX);
            Err(OffsetsProblem::Beyond { offset, values: block.map_or(0, Buffer::len) })
        }
    }
}
