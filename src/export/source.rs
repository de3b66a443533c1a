//! The source of an export.

use std::borrow::Cow;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray,
    GenericByteArray, GenericByteViewArray, GenericListArray, GenericListViewArray,
    OffsetSizeTrait, PrimitiveArray, RecordBatch, new_empty_array, types,
};
use arrow_schema::{DataType, Field, Schema};

use crate::{Error, arrow_types};

/// The input of an export. References to arrays and record batches convert to it, and so do pairs: an array or chunks
/// with a field, batches with a schema.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// An array, with its field if that carries more than the type, such as an extension type.
    Array(&'a dyn Array, Option<&'a Field>),
    /// Arrays to be concatenated.
    Chunks(&'a [ArrayRef], &'a Field),
    /// One row of an array, without the axis of rows. Rows that differ in shape can only be exported like this.
    Row(&'a dyn Array, Option<&'a Field>, usize),
    /// A table, as a matrix (rows, columns).
    Table(&'a [RecordBatch], &'a Schema),
}

impl<'a, A: Array> From<(&'a A, &'a Field)> for Source<'a> {
    fn from((array, field): (&'a A, &'a Field)) -> Self {
        Self::Array(array, Some(field))
    }
}

impl<'a> From<&'a dyn Array> for Source<'a> {
    fn from(array: &'a dyn Array) -> Self {
        Self::Array(array, None)
    }
}

// An impl for all arrays would exclude the one for record batches.
macro_rules! from_arrays {
    ($($array:ty $([$param:ident: $bound:path])?,)*) => {$(
        impl<'a, $($param: $bound)?> From<&'a $array> for Source<'a> {
            fn from(array: &'a $array) -> Self {
                Self::Array(array, None)
            }
        }
    )*};
}
from_arrays! {
    ArrayRef,
    BooleanArray,
    FixedSizeBinaryArray,
    FixedSizeListArray,
    PrimitiveArray<T> [T: types::ArrowPrimitiveType],
    DictionaryArray<T> [T: types::ArrowDictionaryKeyType],
    GenericByteArray<T> [T: types::ByteArrayType],
    GenericByteViewArray<T> [T: types::ByteViewType],
    GenericListArray<T> [T: OffsetSizeTrait],
    GenericListViewArray<T> [T: OffsetSizeTrait],
}

impl<'a> From<(&'a [ArrayRef], &'a Field)> for Source<'a> {
    fn from((chunks, field): (&'a [ArrayRef], &'a Field)) -> Self {
        Self::Chunks(chunks, field)
    }
}

impl<'a> From<(&'a [RecordBatch], &'a Schema)> for Source<'a> {
    fn from((batches, schema): (&'a [RecordBatch], &'a Schema)) -> Self {
        Self::Table(batches, schema)
    }
}

impl<'a> From<&'a RecordBatch> for Source<'a> {
    fn from(batch: &'a RecordBatch) -> Self {
        Self::Table(std::slice::from_ref(batch), batch.schema_ref())
    }
}

impl<'a> Source<'a> {
    /// The field of the column, by default a nameless one of the array's type. A table is a column of structs.
    pub(super) fn field(self) -> Cow<'a, Field> {
        let nameless = |data_type| Cow::Owned(Field::new("", data_type, true));
        match self {
            Self::Array(_, Some(field)) | Self::Row(_, Some(field), _) | Self::Chunks(_, field) => {
                Cow::Borrowed(field)
            }
            Self::Array(array, None) | Self::Row(array, None, _) => {
                nameless(array.data_type().clone())
            }
            Self::Table(_, schema) => nameless(DataType::Struct(schema.fields().clone())),
        }
    }

    /// An upper bound of the bytes that planning may read.
    pub(crate) fn nbytes(self) -> usize {
        match self {
            Self::Array(array, _) | Self::Row(array, ..) => array.get_buffer_memory_size(),
            Self::Chunks(chunks, _) => {
                chunks.iter().map(|chunk| chunk.get_buffer_memory_size()).sum()
            }
            Self::Table(batches, _) => {
                let columns = batches.iter().flat_map(RecordBatch::columns);
                columns.map(|column| column.get_buffer_memory_size()).sum()
            }
        }
    }
}

/// The number of columns. Each batch must have as many as the schema.
pub(crate) fn check_columns(batches: &[RecordBatch], schema: &Schema) -> Result<usize, Error> {
    let fields = schema.fields().len();
    match batches.iter().find(|batch| batch.num_columns() != fields) {
        Some(batch) => Err(Error::ColumnCount { fields, columns: batch.num_columns() }),
        None => Ok(fields),
    }
}

/// An empty array of the field's type, if the type is valid.
pub(super) fn empty(field: &Field) -> Result<ArrayRef, Error> {
    arrow_types::check(field.data_type())?;
    Ok(new_empty_array(field.data_type()))
}

/// Checks that the field is of the array's type, and that the type is valid and not too deep.
pub(crate) fn check_type(array: &dyn Array, field: &Field) -> Result<(), Error> {
    arrow_types::check(array.data_type())?;
    let (data_type, claimed) = (array.data_type(), field.data_type());
    if data_type == claimed {
        return Ok(());
    }
    Err(Error::FieldMismatch { field: claimed.clone(), array: data_type.clone() })
}
