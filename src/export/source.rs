//! The source of an export.

use std::{
    borrow::{Borrow, Cow},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, make_array, new_empty_array};
use arrow_schema::{DataType, Field, Schema};

use crate::{Error, arrow_types, chunks::batch};

/// The input of an export, which [`IntoSource`] makes of arrays, record batches and pairs.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, ListArray, types::Int32Type};
/// use arrow_dlpack::export::{self, Source};
/// use arrow_dlpack::ExportOptions;
///
/// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), Some(vec![])]);
/// let row = export::tensor(Source::row(&lists, 0), &ExportOptions::default())?;
/// assert_eq!(row.as_slice::<i32>(), Some(&[1, 2][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// An array, with its field if that carries more than the type, such as an extension type. A struct is a table of its
    /// fields, in which the fields of a null struct are null.
    Array(&'a dyn Array, Option<&'a Field>),
    /// Arrays to be concatenated.
    Chunks(&'a [ArrayRef], &'a Field),
    /// One row of an array, without the axis of rows. Rows that differ in shape can only be exported like this.
    Row(&'a dyn Array, Option<&'a Field>, usize),
    /// A table, as a matrix (rows, columns).
    Table(&'a [RecordBatch], &'a Schema),
}

/// What an export takes: a reference to an array or a record batch (a struct array is one too), an array or chunks with
/// a field, batches with a schema, or a [`Source`].
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch};
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{DataType, Field, FieldRef};
///
/// let options = ExportOptions::default();
/// let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
/// let field: FieldRef = Arc::new(Field::new("x", DataType::Int32, false));
/// export::tensor(&column, &options)?;
/// export::tensor(&*column, &options)?;
/// export::tensor((&column, &field), &options)?;
/// let chunks = vec![Arc::clone(&column), column];
/// assert_eq!(export::tensor((&chunks, &field), &options)?.shape(), [4]);
///
/// let batches = vec![RecordBatch::try_from_iter([("x", chunks[0].clone())])?];
/// assert_eq!(export::tensor((&batches, &batches[0].schema()), &options)?.shape(), [2, 1]);
///
/// /// The parameter `Marker` is inferred, in generic functions too.
/// fn rows<A: Array>(array: &A) -> Result<i64, arrow_dlpack::Error> {
///     Ok(export::tensor(array, &ExportOptions::default())?.shape()[0])
/// }
/// assert_eq!(rows(&Int32Array::from(vec![1, 2, 3]))?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no source of an export",
    label = "not an array, a record batch, chunks or a table by reference",
    note = "an export takes `&array` (of any type, `&ArrayRef` and `&dyn Array` too), `&record_batch`, `(&array, &field)`, \
            `(&chunks, &field)`, `(&batches, &schema)` or a `Source`",
    note = "they are those of arrow 59, the crates that `arrow_dlpack::{{arrow_array, arrow_schema}}` hand on: arrays of \
            another version of arrow are other types to the compiler"
)]
pub trait IntoSource<'a, Marker> {
    /// The source.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::export::{IntoSource, Source};
    ///
    /// let array = Int32Array::from(vec![1, 2]);
    /// assert!(matches!((&array).into_source(), Source::Array(_, None)));
    /// ```
    fn into_source(self) -> Source<'a>;
}

/// What tells apart the implementations of [`IntoSource`] for types of which the compiler cannot know that they differ.
#[expect(missing_debug_implementations, reason = "no caller can name them")]
mod form {
    pub enum Itself {}
    pub enum Typed {}
    pub enum Dynamic {}
    pub enum Shared {}
    pub enum Chunks {}
    pub enum Table {}
}

impl<'a> IntoSource<'a, form::Itself> for Source<'a> {
    fn into_source(self) -> Source<'a> {
        self
    }
}

impl<'a, A: Array> IntoSource<'a, form::Typed> for &'a A {
    fn into_source(self) -> Source<'a> {
        Source::Array(self, None)
    }
}

impl<'a> IntoSource<'a, form::Dynamic> for &'a dyn Array {
    fn into_source(self) -> Source<'a> {
        Source::Array(self, None)
    }
}

impl<'a, A: Array> IntoSource<'a, form::Shared> for &'a Arc<A> {
    fn into_source(self) -> Source<'a> {
        Source::Array(&**self, None)
    }
}

impl<'a, A: Array, F: Borrow<Field>> IntoSource<'a, form::Typed> for (&'a A, &'a F) {
    fn into_source(self) -> Source<'a> {
        Source::Array(self.0, Some(self.1.borrow()))
    }
}

impl<'a, F: Borrow<Field>> IntoSource<'a, form::Dynamic> for (&'a dyn Array, &'a F) {
    fn into_source(self) -> Source<'a> {
        Source::Array(self.0, Some(self.1.borrow()))
    }
}

impl<'a, A: Array, F: Borrow<Field>> IntoSource<'a, form::Shared> for (&'a Arc<A>, &'a F) {
    fn into_source(self) -> Source<'a> {
        Source::Array(&**self.0, Some(self.1.borrow()))
    }
}

impl<'a, C: AsRef<[ArrayRef]> + ?Sized, F: Borrow<Field>> IntoSource<'a, form::Chunks>
    for (&'a C, &'a F)
{
    fn into_source(self) -> Source<'a> {
        Source::Chunks(self.0.as_ref(), self.1.borrow())
    }
}

impl<'a, B: AsRef<[RecordBatch]> + ?Sized, S: Borrow<Schema>> IntoSource<'a, form::Table>
    for (&'a B, &'a S)
{
    fn into_source(self) -> Source<'a> {
        Source::Table(self.0.as_ref(), self.1.borrow())
    }
}

impl<'a> IntoSource<'a, form::Table> for &'a RecordBatch {
    fn into_source(self) -> Source<'a> {
        Source::Table(std::slice::from_ref(self), self.schema_ref())
    }
}

impl<'a> Source<'a> {
    /// An array without a field, as `&array` is.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::{ExportOptions, export::{self, Source}};
    ///
    /// let column = Int32Array::from(vec![1, 2]);
    /// for (source, shape) in [(Source::array(&column), &[2][..]), (Source::row(&column, 0), &[])] {
    ///     assert_eq!(export::tensor(source, &ExportOptions::default())?.shape(), shape);
    /// }
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn array(array: &'a dyn Array) -> Self {
        Self::Array(array, None)
    }

    /// Arrays to be concatenated, and the field of all of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int32Array};
    /// use arrow_dlpack::{ExportOptions, export::{self, Source}};
    /// use arrow_schema::{DataType, Field};
    ///
    /// let chunks: Vec<ArrayRef> =
    ///     vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(Int32Array::from(vec![3]))];
    /// let field = Field::new("x", DataType::Int32, false);
    /// let tensor = export::tensor(Source::chunks(&chunks, &field), &ExportOptions::default())?;
    /// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, 2, 3][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn chunks(chunks: &'a [ArrayRef], field: &'a Field) -> Self {
        Self::Chunks(chunks, field)
    }

    /// One row of an array, without the axis of rows. Rows that differ in shape can only be exported like this; their
    /// extension type is that of a field, which [`Self::Row`] takes.
    ///
    /// ```
    /// use arrow_array::{FixedSizeListArray, types::Float32Type};
    /// use arrow_dlpack::{ExportOptions, export::{self, Source}};
    ///
    /// let points = [Some(vec![Some(0.5), Some(1.5)]), Some(vec![Some(2.5), Some(3.5)])];
    /// let points = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(points, 2);
    /// let row = export::tensor(Source::row(&points, 1), &ExportOptions::default())?;
    /// assert_eq!((row.shape(), row.as_slice::<f32>()), (&[2][..], Some(&[2.5, 3.5][..])));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn row(array: &'a dyn Array, index: usize) -> Self {
        Self::Row(array, None, index)
    }

    /// A table, as a matrix (rows, columns).
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{ExportOptions, export::{self, Source}};
    ///
    /// let batches = [record_batch!(("x", Int32, [1, 2]))?, record_batch!(("x", Int32, [3]))?];
    /// let source = Source::table(&batches, batches[0].schema_ref());
    /// assert_eq!(export::tensor(source, &ExportOptions::default())?.shape(), [3, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn table(batches: &'a [RecordBatch], schema: &'a Schema) -> Self {
        Self::Table(batches, schema)
    }

    /// The source for which `then` works: a table for a struct that is no extension type's storage.
    pub(super) fn as_table<R>(
        self,
        then: impl FnOnce(Source<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (arrays, field): (Vec<ArrayRef>, _) = match self {
            Self::Array(array, field) if matches!(array.data_type(), DataType::Struct(_)) => {
                (vec![make_array(array.to_data())], field)
            }
            Self::Chunks(chunks, field) if matches!(field.data_type(), DataType::Struct(_)) => {
                (chunks.to_vec(), Some(field))
            }
            _ => return then(self),
        };
        let field = field.map_or_else(|| self.field(), Cow::Borrowed);
        let Some(schema) = table_schema(&field) else { return then(self) };
        arrays.iter().try_for_each(|array| check_type(array, &field))?;
        let batches = arrays.iter().map(|array| batch(array, &schema));
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        then(Source::Table(&batches, &schema))
    }

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
        let mut nbytes = 0;
        self.each_array(|array| nbytes += array.get_buffer_memory_size());
        nbytes
    }

    /// Calls this with each array of the column, or of the table's columns.
    pub(crate) fn each_array(self, mut call: impl FnMut(&dyn Array)) {
        match self {
            Self::Array(array, _) | Self::Row(array, ..) => call(array),
            Self::Chunks(chunks, _) => chunks.iter().for_each(|chunk| call(chunk)),
            Self::Table(batches, _) => {
                batches.iter().flat_map(RecordBatch::columns).for_each(|column| call(column));
            }
        }
    }
}

/// The schema of a table; `None` for the field of a column.
pub(crate) fn table_schema(field: &Field) -> Option<Schema> {
    match field.data_type() {
        // An extension type that is stored as a struct is a column, and no table.
        DataType::Struct(fields) if field.extension_type_name().is_none() => {
            Some(Schema::new_with_metadata(fields.clone(), field.metadata().clone()))
        }
        _ => None,
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
