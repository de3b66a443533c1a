//! Batches of tensors.

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use crate::export::{Padded, Ragged};
use crate::{Error, ManagedTensor, chunks::Meaning};

/// Rows of a reader as tensors.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The input of a model.
    pub features: Features,
    /// The columns to predict, which [`labels`](super::BatchOptions::labels) names, in its order.
    pub labels: Vec<BatchColumn>,
    /// Number of rows.
    pub rows: usize,
}

/// The features of a batch.
#[expect(clippy::large_enum_variant, reason = "there is one a batch")]
#[derive(Debug)]
#[non_exhaustive]
pub enum Features {
    /// What each column became.
    Columns(Vec<BatchColumn>),
    /// All columns as (rows, columns), with [`matrix`](super::BatchOptions::matrix).
    Matrix(BatchTensor),
}

/// What a column of a batch became, with its field; its [`Form`](super::Form) decides.
#[expect(clippy::large_enum_variant, reason = "the largest is by far the most frequent")]
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchColumn {
    /// A tensor.
    Tensor(BatchTensor),
    /// Values and offsets.
    Ragged(Box<Ragged>, FieldRef),
    /// Padded rows, and their lengths.
    Padded(Box<Padded>, FieldRef),
    /// The rows as they are.
    Arrow(ArrayRef, FieldRef),
}

/// One tensor of a batch. It may share the reader's memory, and is read-only then. It is always writable with a
/// [`shuffle`](super::BatchOptions::shuffle), with [`CopyPolicy::Always`](crate::CopyPolicy::Always), and if its rows
/// are from several of the reader's batches.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchTensor {
    /// The values.
    pub values: ManagedTensor,
    /// The validity of the values, as booleans of the same shape; with
    /// [`NullPolicy::Masked`](crate::NullPolicy::Masked) only.
    pub mask: Option<ManagedTensor>,
    /// The field of the column; `None` for a matrix.
    pub field: Option<FieldRef>,
    pub(crate) meaning: Option<Meaning>,
}

impl Batch {
    /// The features as a matrix; `None` if there is a tensor for each column.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_matrix(true);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.matrix().expect("a matrix").values.shape(), [5, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn matrix(&self) -> Option<&BatchTensor> {
        match &self.features {
            Features::Matrix(matrix) => Some(matrix),
            Features::Columns(_) => None,
        }
    }

    /// [`Self::matrix`], whose values may be written to where [`BatchTensor`] says so.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    /// use arrow_dlpack::{ExportOptions, ffi::DLDataType};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let export = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let options = BatchOptions::default().with_matrix(true).with_export(export);
    /// let mut batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let matrix = batch.matrix_mut().expect("a matrix");
    /// let values = matrix.values.as_slice_mut::<f32>().expect("exclusive memory");
    /// values.iter_mut().for_each(|value| *value /= 10.0);
    /// assert_eq!(values[9], 0.9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn matrix_mut(&mut self) -> Option<&mut BatchTensor> {
        match &mut self.features {
            Features::Matrix(matrix) => Some(matrix),
            Features::Columns(_) => None,
        }
    }

    /// [`Self::matrix`], by value. (Its memory is aligned to 64 bytes, so that [`ManagedTensor::into_vec`] copies it: where
    /// a library takes over a `Vec`, [`export::to_vec`](crate::export::to_vec) of the rows makes none.)
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_matrix(true);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let matrix = batch.into_matrix().expect("a matrix").values;
    /// let (values, shape) = (matrix.as_slice::<i32>(), matrix.shape());
    /// assert_eq!((values.map(<[_]>::len), shape), (Some(10), &[5, 2][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_matrix(self) -> Option<BatchTensor> {
        match self.features {
            Features::Matrix(matrix) => Some(matrix),
            Features::Columns(_) => None,
        }
    }

    /// A feature by its name; `None` if there is none, or the features are a matrix.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchColumn, BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default();
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert!(matches!(batch.column("x"), Some(BatchColumn::Tensor(_))));
    /// assert!(batch.column("z").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&BatchColumn> {
        match &self.features {
            Features::Columns(columns) => named(columns, name),
            Features::Matrix(_) => None,
        }
    }

    /// The label, or the first of several.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_label("y");
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let label = batch.label().expect("a label");
    /// assert_eq!(label.field().map(|field| field.name().as_str()), Some("y"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn label(&self) -> Option<&BatchColumn> {
        self.labels.first()
    }

    /// A label by its name.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_label("y").with_label("x");
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let x = batch.label_named("x").and_then(|label| label.tensor()).expect("a tensor");
    /// assert_eq!(x.values.as_slice::<i32>(), Some(&[0, 1, 2, 3, 4][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn label_named(&self, name: &str) -> Option<&BatchColumn> {
        named(&self.labels, name)
    }

    /// A [`column`](Self::column) that is a tensor; otherwise `None`.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default();
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let x = batch.tensor("x").expect("a tensor");
    /// assert_eq!(x.values.as_slice::<i32>(), Some(&[0, 1, 2, 3, 4][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&BatchTensor> {
        self.column(name)?.tensor()
    }
}

fn named<'a>(columns: &'a [BatchColumn], name: &str) -> Option<&'a BatchColumn> {
    columns.iter().find(|column| column.field().is_some_and(|field| field.name() == name))
}

impl BatchColumn {
    /// The field of the column; `None` for one without a name.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default();
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let x = batch.column("x").expect("a column");
    /// assert_eq!(x.field().map(|field| field.name().as_str()), Some("x"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn field(&self) -> Option<&FieldRef> {
        match self {
            Self::Tensor(tensor) => tensor.field.as_ref(),
            Self::Ragged(_, field) | Self::Padded(_, field) | Self::Arrow(_, field) => Some(field),
        }
    }

    /// The tensor, if the column is one.
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default();
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let x = batch.column("x").and_then(|column| column.tensor()).expect("a tensor");
    /// assert_eq!(x.values.shape(), [5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tensor(&self) -> Option<&BatchTensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

impl BatchTensor {
    /// The dictionary, if the values are codes. The dictionary of a later batch begins with the same values, and may
    /// have more.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchIterator, types::Int8Type};
    /// use arrow_dlpack::ExportOptions;
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let words: DictionaryArray<Int8Type> = ["to", "be", "to"].into_iter().collect();
    /// let table = RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)])?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let codes = ExportOptions::default().with_physical(true);
    /// let options = BatchOptions::default().with_export(codes);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let words = batch.tensor("word").expect("a tensor");
    /// assert_eq!(words.values.as_slice::<i32>(), Some(&[0, 1, 0][..]));
    /// assert_eq!(words.dictionary()?.map(|words| words.len()), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; `InvalidArray` if an array of the type cannot hold all values.
    pub fn dictionary(&self) -> Result<Option<ArrayRef>, Error> {
        self.meaning.as_ref().map(Meaning::array).transpose()
    }
}
