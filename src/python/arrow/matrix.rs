//! Plain numbers of a record batch as a row-major matrix, straight from Arrow's C structures.
//!
//! To make a field and an array of arrow-rs for each of thousands of columns takes as long as the matrix itself, and for a
//! batch of few rows longer. A batch that is not plain, or not well-formed, or of which a value does not fit, takes the
//! usual path, which has the same result or the error.

use arrow_schema::DataType;

use super::schema::{MAX_FIELDS, check_node, number};
use super::structs::{ArrowArray, ArrowSchema};
use super::validate::{PlainColumns, TypedArray};
use crate::alloc::{self, Fresh};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::kernels::{self, CellValues, Cells};
use crate::tensor::TensorSpec;
use crate::{Error, ExportOptions, ManagedTensor, arrow_types::MAX_DEPTH, columns, export};

/// Columns of a table that are all numbers, with no more metadata than names, as the table has; two or more. `wanted`: their
/// names, in the order of the matrix; all columns if there are none.
pub(super) fn columns_of(schema: &ArrowSchema, wanted: Option<&[String]>) -> Option<PlainColumns> {
    let mut fields = MAX_FIELDS;
    let table = check_node(schema, MAX_DEPTH, &mut fields).ok()?;
    let is_plain = |schema: &ArrowSchema| !schema.has_metadata() && schema.dictionary().is_none();
    let count = usize::try_from(schema.n_children()).ok()?;
    if table.format != "+s" || !is_plain(schema) || !(2..=MAX_FIELDS).contains(&count) {
        return None;
    }
    let positions = match wanted {
        None => None,
        Some(wanted) => {
            let name = |column: Result<_, _>| -> Option<&str> {
                let column: &ArrowSchema = column.ok()?;
                column.name()?.to_str().ok()
            };
            let own: Vec<&str> = schema.children().ok()?.map(name).collect::<Option<_>>()?;
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            Some(columns::positions(&own, &wanted).ok()?)
        }
    };
    let mut last: Option<(&str, DataType)> = None;
    let width = positions.as_ref().map_or(count, Vec::len);
    if width < 2 {
        return None;
    }
    let mut columns = alloc::reserved(width).ok()?;
    for index in 0..width {
        let at = positions.as_ref().map_or(index, |positions| positions[index]);
        let column = schema.child(at).ok()?;
        let node = check_node(column, table.depth, &mut fields).ok()?;
        if !is_plain(column) || column.n_children() != 0 {
            return None;
        }
        // Most columns have the type of the one before.
        let data_type = match &last {
            Some((format, data_type)) if *format == node.format => data_type.clone(),
            _ => last.insert((node.format, number(node.format)?)).1.clone(),
        };
        columns.push((at, data_type));
    }
    Some(PlainColumns { columns, among: count })
}

/// The matrix of such columns; the array back if it has nulls, is not well-formed, or has a value that does not fit.
pub(super) fn make(
    table: TypedArray<PlainColumns>,
    options: &ExportOptions,
) -> Result<Result<ManagedTensor, ArrowArray>, Error> {
    let types = table.schema().columns.iter().map(|(_, data_type)| data_type);
    let dtype = export::matrix_dtype(types, options);
    let (Some(dtype), Some(cells)) = (dtype, cells_of(&table)?) else {
        return Ok(Err(table.into_inner()));
    };
    let (rows, width) = (table.array().length(), cells.len());
    let len = usize::try_from(rows).unwrap_or(0);
    let nbytes = len.saturating_mul(width).saturating_mul(dtype.item_bits(true) / 8);
    let threads = options.threads;
    let made =
        Fresh::in_parts(nbytes, |out| kernels::interleave(&cells, len, dtype, None, threads, out));
    let memory = match made {
        Err(Error::ValueDoesNotFit { .. }) => {
            drop(cells);
            return Ok(Err(table.into_inner()));
        }
        made => made?,
    };
    let width = i64::try_from(width).map_err(|_| Error::Overflow("length"))?;
    let flags = DLPackFlags::IS_COPIED;
    ManagedTensor::from_fresh(memory, TensorSpec::new(dtype, flags, &[rows, width], &[width, 1]))
        .map(Ok)
}

/// The cells of each column, if the array is well-formed, with the expected columns, and none is null.
fn cells_of(typed: &TypedArray<PlainColumns>) -> Result<Option<Vec<[Cells<'_>; 1]>>, Error> {
    let table = typed.array();
    let rows = usize::try_from(table.length()).ok().filter(|&rows| rows > 0);
    let (Some(rows), Ok(start)) = (rows, usize::try_from(table.offset())) else { return Ok(None) };
    let end = start.saturating_add(rows);
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
    let mut cells = alloc::reserved(typed.schema().columns.len())?;
    for column in columns {
        let Ok((column, 0)) = column else { return Ok(None) };
        if column.len() < end || has_nulls(column.array()) {
            return Ok(None);
        }
        let dtype = DLDataType::from_arrow(column.data_type());
        let (Some(dtype), Some(values)) = (dtype, column.values()) else { return Ok(None) };
        let width = dtype.item_bits(true) / 8;
        let bytes = &values.get()[(column.offset() + start) * width..][..rows * width];
        cells.push([Cells { values: CellValues::Words { bytes, dtype }, nulls: None }]);
    }
    Ok(Some(cells))
}
