//! A struct array as the record batch that it stands for in Arrow's C interface.

use std::{borrow::Cow, slice, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, UInt64Array,
    cast::AsArray, make_array, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use arrow_select::take::take;

use super::{checked::checked, concat::concat, footprint::check_taken, snapshot::addresses};
use crate::{Error, alloc};

/// A struct array as a batch. A null struct becomes null in all fields.
pub(crate) fn batch(array: &ArrayRef, schema: &Schema) -> Result<RecordBatch, Error> {
    let array = array.as_struct();
    let nullable = |field: &FieldRef| match field.is_nullable() {
        true => Arc::clone(field),
        false => Arc::new(Field::clone(field).with_nullable(true)),
    };
    let fields: Fields = schema.fields().iter().map(nullable).collect();
    let columns = fields_of(array)?;
    checked(|| {
        let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
    })
}

/// The fields of structs, null where a struct is.
pub(crate) fn fields_of(array: &StructArray) -> Result<Vec<ArrayRef>, Error> {
    let columns = array.columns().iter().map(|column| match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => with_nulls(column, nulls),
        _ => Ok(Arc::clone(column)),
    });
    columns.collect()
}

/// The chunks of a column.
pub(crate) fn column(batches: &[RecordBatch], index: usize) -> Cow<'_, [ArrayRef]> {
    match batches {
        [batch] => Cow::Borrowed(slice::from_ref(batch.column(index))),
        _ => batches.iter().map(|batch| Arc::clone(batch.column(index))).collect(),
    }
}

/// The column, in which these rows are null too.
fn with_nulls(column: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef, Error> {
    match column.data_type() {
        DataType::Null => Ok(Arc::clone(column)),
        // Their nulls are those of children: one row that is null stands for all.
        data_type @ (DataType::Union(..) | DataType::RunEndEncoded(..)) => {
            let len = column.len();
            alloc::probe_alloc(len.saturating_mul(2 * size_of::<u64>()))?;
            let rows = concat(&[Arc::clone(column), new_null_array(data_type, 1)])?;
            let last = u64::try_from(len).unwrap_or(u64::MAX);
            let rows_of = (0..).zip(nulls).map(|(at, is_there)| if is_there { at } else { last });
            let places = UInt64Array::from_iter_values(rows_of);
            check_taken(&rows)?;
            checked(|| take(&rows, &places, None))
        }
        DataType::Boolean => {
            // Bits that begin within a byte.
            let values = column.as_boolean().values().clone();
            let nulls = NullBuffer::union(column.nulls(), Some(nulls));
            Ok(Arc::new(BooleanArray::new(values, nulls)))
        }
        _ => {
            let nulls = NullBuffer::union(column.nulls(), Some(nulls));
            checked(|| Ok(make_array(column.to_data().into_builder().nulls(nulls).build()?)))
        }
    }
}

/// Concatenates batches. The result's offsets, views and the like are copies, which no other code can change.
pub(crate) fn concat_batches(batches: Vec<RecordBatch>) -> Result<RecordBatch, Error> {
    let schema = batches[0].schema();
    let columns = 0..schema.fields().len();
    let columns = columns.map(|index| as_one(&column(&batches, index)));
    let columns = columns.collect::<Result<Vec<_>, Error>>()?;
    checked(|| RecordBatch::try_new(schema, columns))
}

/// [`concat_batches`] of one column, of at least one chunk.
pub(crate) fn as_one(chunks: &[ArrayRef]) -> Result<ArrayRef, Error> {
    match chunks {
        [chunk] => addresses(chunk),
        _ => concat(chunks),
    }
}
