//! A record batch of plain numbers of one type as a matrix, straight from Arrow's C structures.
//!
//! To make a field and an array of arrow-rs for each of thousands of columns takes as long as the matrix itself. A batch
//! that is not plain, or not well-formed, takes the usual path, which has the same result or the error.

use super::schema::{MAX_FIELDS, check_node, number};
use super::structs::{ArrowArray, ArrowSchema};
use super::validate::{PlainColumns, TypedArray};
use crate::alloc::{self, Fresh};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::kernels::{self, CellValues, Cells, Threads};
use crate::tensor::TensorSpec;
use crate::{Error, ManagedTensor, arrow_types::MAX_DEPTH};

/// The columns of a table, if there are several, all numbers of one type, and neither they nor the table
/// have more metadata than names.
pub(super) fn columns_of(schema: &ArrowSchema) -> Option<PlainColumns> {
    let mut fields = MAX_FIELDS;
    let table = check_node(schema, MAX_DEPTH, &mut fields).ok()?;
    let is_plain = |schema: &ArrowSchema| !schema.has_metadata() && schema.dictionary().is_none();
    if table.format != "+s" || !is_plain(schema) || schema.n_children() < 2 {
        return None;
    }
    let mut columns = schema.children().ok()?.map(|column| {
        let column = column.ok()?;
        let node = check_node(column, table.depth, &mut fields).ok()?;
        (is_plain(column) && column.n_children() == 0).then_some(node.format)
    });
    let format = columns.next()??;
    let data_type = columns.all(|column| column == Some(format)).then(|| number(format))??;
    let count = usize::try_from(schema.n_children()).ok()?;
    Some(PlainColumns { data_type, count })
}

/// The matrix of a table with such columns; the array back if it has nulls, or is not well-formed.
pub(super) fn make(
    table: TypedArray<PlainColumns>,
    threads: Threads,
) -> Result<Result<ManagedTensor, ArrowArray>, Error> {
    let PlainColumns { data_type, count } = table.of();
    let (Some(dtype), Ok(width)) = (DLDataType::from_arrow(data_type), i64::try_from(*count))
    else {
        return Ok(Err(table.into_inner()));
    };
    let Some(cells) = cells_of(&table, dtype)? else {
        return Ok(Err(table.into_inner()));
    };
    let rows = table.array().length();
    let flags = DLPackFlags::IS_COPIED;
    let len = usize::try_from(rows).unwrap_or(0);
    let nbytes = len.saturating_mul(*count).saturating_mul(dtype.item_bits(true) / 8);
    let memory =
        Fresh::in_parts(nbytes, |out| kernels::interleave(&cells, len, dtype, None, threads, out))?;
    ManagedTensor::from_fresh(memory, TensorSpec::new(dtype, flags, &[rows, width], &[width, 1]))
        .map(Ok)
}

/// The cells of each column, if the array is well-formed, with the expected columns, and none is null.
fn cells_of(
    typed: &TypedArray<PlainColumns>,
    dtype: DLDataType,
) -> Result<Option<Vec<[Cells<'_>; 1]>>, Error> {
    let table = typed.array();
    let rows = usize::try_from(table.length()).ok().filter(|&rows| rows > 0);
    let (Some(rows), Ok(start)) = (rows, usize::try_from(table.offset())) else { return Ok(None) };
    let (end, width) = (start.saturating_add(rows), dtype.item_bits(true) / 8);
    let is_table = table.n_buffers() == 1
        && table.dictionary().is_none()
        && (-1..=table.length()).contains(&table.null_count());
    let has_nulls = |array: &ArrowArray| {
        array.null_count() != 0 && array.buffer(0).is_none_or(|bits| !bits.is_null())
    };
    if !is_table || table.buffer(0).is_none() || has_nulls(table) {
        return Ok(None);
    }
    let Ok(columns) = typed.columns() else { return Ok(None) };
    let mut cells = alloc::reserved(typed.of().count)?;
    for column in columns {
        let Ok((column, 0)) = column else { return Ok(None) };
        if column.len() < end || has_nulls(column.array()) {
            return Ok(None);
        }
        let Some(values) = column.values() else { return Ok(None) };
        let bytes = &values.get()[(column.offset() + start) * width..][..rows * width];
        cells.push([Cells { values: CellValues::Words { bytes, dtype }, nulls: None }]);
    }
    Ok(Some(cells))
}
