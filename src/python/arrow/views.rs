//! Texts and binaries as views, from Arrow's C structures.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

use crate::memory::Fresh;

/// An array of which some rows are null. There the view may be anything, which arrow-rs refuses: then these views are
/// empty, in a copy.
pub(in crate::python) fn views(
    data_type: &DataType,
    len: usize,
    nulls: &NullBuffer,
    mut buffers: Vec<Buffer>,
) -> Result<ArrayRef, ArrowError> {
    let made = |buffers| {
        let data = ArrayData::builder(data_type.clone()).len(len).nulls(Some(nulls.clone()));
        data.buffers(buffers).align_buffers(true).build().map(make_array)
    };
    made(buffers.clone()).or_else(|_| {
        let visible = Fresh::write::<i128>(len, |views| {
            for row in nulls.valid_indices() {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&buffers[0][16 * row..][..16]);
                views[row] = i128::from_ne_bytes(bytes);
            }
            Ok(())
        })?;
        buffers[0] = visible.into_buffer();
        made(buffers)
    })
}
