//! A record batch of plain numbers of one type as a matrix, straight from Arrow's C structures.
//!
//! To make a field and an array of arrow-rs for each of thousands of columns takes as long as the matrix itself. A batch
//! that is not plain, or not well-formed, takes the usual path, which has the same result or the error.
#![expect(unsafe_code, reason = "looks into foreign structures")]

use std::slice;

use arrow_schema::DataType;

use super::ffi::children;
use super::known::OwnedArray;
use super::schema::{MAX_FIELDS, check_node, number};
use super::structs::{ArrowArray, ArrowSchema};
use super::validate::{check_array, child_of};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::kernels::{self, CellValues, Cells, Threads};
use crate::{Error, ManagedTensor, memory, possible::MAX_DEPTH};

/// The type and the number of a table's columns.
pub(in crate::python) struct Columns {
    pub(in crate::python) data_type: DataType,
    dtype: DLDataType,
    pub(in crate::python) count: usize,
}

/// The columns of a table, if there are several, all numbers of one type, and neither they nor the table
/// have more metadata than names.
///
/// # Safety
///
/// `schema` points to a structure that meets S1.
pub(in crate::python) unsafe fn columns_of(schema: *const ArrowSchema) -> Option<Columns> {
    let mut fields = MAX_FIELDS;
    // SAFETY: the caller's promise.
    let table = unsafe { check_node(schema, MAX_DEPTH, &mut fields) }.ok()?;
    let is_plain = |schema: &ArrowSchema| schema.metadata.is_null() && schema.dictionary.is_null();
    if table.format != "+s" || !is_plain(table.schema) || table.schema.n_children < 2 {
        return None;
    }
    let mut columns =
        children(table.schema.n_children, table.schema.children).ok()?.map(|column| {
            // SAFETY: S1 holds for children.
            let column = unsafe { check_node(column, table.depth, &mut fields) }.ok()?;
            (is_plain(column.schema) && column.schema.n_children == 0).then_some(column.format)
        });
    let format = columns.next()??;
    let data_type = columns.all(|column| column == Some(format)).then(|| number(format))??;
    let count = usize::try_from(table.schema.n_children).ok()?;
    Some(Columns { dtype: DLDataType::from_arrow(&data_type)?, data_type, count })
}

/// The matrix of a table with such columns; the array back if it has nulls, or is not well-formed.
pub(in crate::python) fn made(
    array: ArrowArray,
    columns: &Columns,
    threads: Threads,
) -> Result<Result<ManagedTensor, ArrowArray>, Error> {
    let array = OwnedArray(array);
    let Some(cells) = cells_of(&array.0, columns)? else {
        return Ok(Err(array.into_inner()));
    };
    let rows = i64::try_from(array.0.len()).map_err(|_| Error::Overflow("length"))?;
    let width = i64::try_from(columns.count).map_err(|_| Error::Overflow("length"))?;
    let (dtype, flags) = (columns.dtype, DLPackFlags::IS_COPIED);
    let memory = kernels::interleave(&cells, array.0.len(), dtype, None, threads)?;
    ManagedTensor::from_fresh(memory, 0, dtype, flags, &[rows, width], &[width, 1]).map(Ok)
}

/// The cells of each column, if the array is well-formed, with the expected columns, and none is null.
fn cells_of<'a>(
    table: &'a ArrowArray,
    &Columns { ref data_type, dtype, count }: &Columns,
) -> Result<Option<Vec<[Cells<'a>; 1]>>, Error> {
    let rows = usize::try_from(table.length).ok().filter(|&rows| rows > 0);
    let (Some(rows), Ok(start)) = (rows, usize::try_from(table.offset)) else { return Ok(None) };
    let (end, width) = (start.saturating_add(rows), dtype.item_bits(true) / 8);
    let is_table = table.n_buffers == 1
        && table.dictionary.is_null()
        && (-1..=table.length).contains(&table.null_count);
    if !is_table || table.buffers.is_null() || !table.buffers.is_aligned() || has_nulls(table) {
        return Ok(None);
    }
    if usize::try_from(table.n_children) != Ok(count) {
        return Ok(None);
    }
    let Ok(columns) = children(table.n_children, table.children) else { return Ok(None) };
    let mut cells = memory::reserved(count)?;
    for column in columns {
        let is_whole = |column: &&ArrowArray| {
            check_array(column, data_type) == Ok(0) && column.len() >= end && !has_nulls(column)
        };
        let Some(column) = child_of(column).ok().filter(is_whole) else { return Ok(None) };
        // SAFETY: S1; it has been checked that there are the two buffers of numbers.
        let values = unsafe { column.buffers.add(1).read() }.cast::<u8>();
        if values.is_null() {
            return Ok(None);
        }
        // SAFETY: S1; so many values from the array's offset on are no overflow and are there, as long as the
        // array is, and Arrow's are not written to.
        let bytes = unsafe {
            let first = values.add((column.offset() + start) * width);
            slice::from_raw_parts(first, rows * width)
        };
        cells.push([Cells { values: CellValues::Words { bytes, dtype }, nulls: None }]);
    }
    Ok(Some(cells))
}

/// Whether there may be nulls in an array whose first buffer, which is there, is its validity.
fn has_nulls(array: &ArrowArray) -> bool {
    // SAFETY: S1, there is a pointer to it.
    array.null_count != 0 && !unsafe { array.buffers.read() }.is_null()
}
