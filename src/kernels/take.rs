//! Copies the items at given positions.

use arrow_buffer::{ArrowNativeType, Buffer};

use crate::error::Error;
use crate::memory::Fresh;

/// The items of `width` bytes, at least one, at these positions, which exist.
pub(crate) fn take(values: &Buffer, width: usize, positions: &[u64]) -> Result<Fresh, Error> {
    fn items<T: ArrowNativeType>(values: &Buffer, positions: &[u64]) -> Result<Fresh, Error> {
        let values = values.typed_data::<T>();
        Fresh::build(positions.len(), |out| {
            out.extend(positions.iter().map(|at| values[at.as_usize()]));
        })
    }
    match width {
        1 => items::<u8>(values, positions),
        // Rows of several smaller numbers may be less aligned.
        2 | 4 | 8 if values.as_ptr().addr() % width == 0 => match width {
            2 => items::<u16>(values, positions),
            4 => items::<u32>(values, positions),
            _ => items::<u64>(values, positions),
        },
        _ => Fresh::build(positions.len().saturating_mul(width), |out| {
            for at in positions {
                out.extend_from_slice(&values[at.as_usize() * width..][..width]);
            }
        }),
    }
}
