//! The options of batches.

use std::collections::HashMap;

use arrow_schema::Schema;

use super::categories::Categories;
use super::shuffle::Resume;
use crate::{
    CopyPolicy, Error, ExportOptions, NullPolicy, columns, export::PadOptions, ffi::DLDataType,
};

/// How to make batches. Options added later will default to the present behaviour.
///
/// ```
/// use arrow_dlpack::ExportOptions;
/// use arrow_dlpack::batches::{BatchOptions, Shuffle};
/// use arrow_dlpack::ffi::DLDataType;
///
/// let options = BatchOptions::default()
///     .with_batch_size(1024)
///     .with_label("price")
///     .with_matrix(true)
///     .with_export(ExportOptions::default().with_dtype(DLDataType::FLOAT32))
///     .with_shuffle(Shuffle { rows: 10_000, seed: 42 })
///     .with_prefetch(2);
/// assert_eq!(options.labels, ["price"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchOptions {
    /// Rows per batch, of which the last may have fewer; `None` for the batches of the reader. Rows of one batch of
    /// the reader are shared; rows that span several are copied once.
    pub batch_size: Option<usize>,
    /// Whether to drop a last batch of fewer rows.
    pub drop_last: bool,
    /// Names of the features, in the order of the result; `None` for all columns except the labels and [the index of
    /// pandas](crate::pandas::index_columns).
    pub columns: Option<Vec<String>>,
    /// The columns to predict. They are never among the features, even if `columns` names them, and need not be named
    /// there.
    pub labels: Vec<String>,
    /// Whether the features are one matrix (rows, columns) rather than one tensor per column. Columns of several values
    /// a row, such as fixed-size lists, and lists with [`Form::Dense`], are as many columns of it.
    pub matrix: bool,
    /// How columns become tensors. `dtype` and `order` apply to the features only, and so does NaN for nulls unless a
    /// label's values are floats: nulls of another label are an error, and its type stays.
    ///
    /// With `physical`, dictionary codes are int32, and a code refers to the same value in all batches of one
    /// [`Batches`](super::Batches), which numbers the values as it meets them.
    pub export: ExportOptions,
    /// What some columns become, labels too, by their names; of two for one name the later holds. The columns of a matrix
    /// have no dtype, policy for nulls or form of one column, but for lists that are [`Form::Dense`] and
    /// [`Form::Categories`].
    pub column_options: Vec<(String, ColumnOptions)>,
    /// Whether to draw rows at random, and how.
    pub shuffle: Option<Shuffle>,
    /// The part of the batches to make, by default all of them.
    pub shard: Shard,
    /// Batches at the start to leave out, which are read and not converted: those that a loop that is resumed has had.
    pub skip: usize,
    /// Batches to make ahead, on a thread; 0 to make batches on demand.
    pub prefetch: usize,
    /// The state of a shuffle, the rows of whose pool the reader has first.
    pub(crate) resume: Option<Resume>,
}

/// What a column becomes, by its type and its options alone. Options added later will default to the present behaviour.
///
/// ```
/// use arrow_dlpack::batches::{BatchOptions, ColumnOptions, Form};
/// use arrow_dlpack::export::PadOptions;
/// use arrow_dlpack::ffi::DLDataType;
///
/// let tokens = ColumnOptions::default().with_form(Form::Pad(PadOptions::default().with_max_length(512)));
/// let price = ColumnOptions::default().with_dtype(DLDataType::FLOAT32);
/// let options = BatchOptions::default().with_column_options("tokens", tokens).with_column_options("price", price);
/// assert_eq!(options.column_options.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ColumnOptions {
    /// The form of its rows in a batch.
    pub form: Form,
    /// The dtype of its values, in place of that of [`export`](BatchOptions::export).
    pub dtype: Option<DLDataType>,
    /// How its nulls are exported, in place of [`export`](BatchOptions::export).
    pub nulls: Option<NullPolicy>,
}

/// The form of a column's rows in a batch.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Form {
    /// [`Ragged`](Self::Ragged) for lists, [`Tensor`](Self::Tensor) for other types.
    #[default]
    Auto,
    /// A tensor, of values whose type gives them a shape.
    Tensor,
    /// Values and offsets, as of [`export::ragged`](crate::export::ragged).
    Ragged,
    /// Padded rows and their lengths, as of [`export::padded`](crate::export::padded).
    Pad(PadOptions),
    /// A tensor with an axis of the values of lists, which have this length; `None` for that of the first row, if nulls
    /// are refused. A row of another length is an error, in whatever batch it is.
    Dense(Option<usize>),
    /// An Arrow array, of any type.
    Arrow,
    /// A tensor of codes, the positions of the values among words. They are int32 unless the column's own `dtype` says
    /// otherwise, in a matrix int32 or int64, and nulls are refused where others become NaN.
    Categories(Categories),
}

impl ColumnOptions {
    /// Sets [`form`](Self::form).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
    /// use arrow_dlpack::batches::{BatchColumn, BatchOptions, Batches, ColumnOptions, Form};
    /// use arrow_dlpack::export::PadOptions;
    ///
    /// let texts: ArrayRef = Arc::new(StringArray::from(vec!["to", "be", "not"]));
    /// let table = RecordBatch::try_from_iter([("text", texts)])?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let padded = ColumnOptions::default().with_form(Form::Pad(PadOptions::default()));
    /// let options = BatchOptions::default().with_column_options("text", padded);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let Some(BatchColumn::Padded(padded, _)) = batch.column("text") else { panic!("not padded") };
    /// assert_eq!(padded.values.shape(), [3, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets [`dtype`](Self::dtype).
    ///
    /// ```
    /// use arrow_dlpack::batches::{BatchOptions, ColumnOptions};
    /// use arrow_dlpack::{ExportOptions, ffi::DLDataType};
    ///
    /// // float32, but for the column of ids.
    /// let floats = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    /// let ids = ColumnOptions::default().with_dtype(DLDataType::INT64);
    /// let options = BatchOptions::default().with_export(floats).with_column_options("id", ids);
    /// # assert_eq!(options.column_options[0].1.dtype, Some(DLDataType::INT64));
    /// ```
    #[must_use]
    pub fn with_dtype(mut self, dtype: impl Into<Option<DLDataType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// Sets [`nulls`](Self::nulls).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches, ColumnOptions};
    /// use arrow_dlpack::NullPolicy;
    ///
    /// let table = record_batch!(("x", Int32, [Some(1), None]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let x = ColumnOptions::default().with_nulls(-1);
    /// let options = BatchOptions::default().with_column_options("x", x);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.tensor("x").expect("a tensor").values.as_slice::<i32>(), Some(&[1, -1][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_nulls(mut self, nulls: impl Into<NullPolicy>) -> Self {
        self.nulls = Some(nulls.into());
        self
    }
}

/// Draws rows at random from a buffer. The result depends on the seed, and not on the batches of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// Rows that the buffer has at least, as long as the reader has more; it has at most twice as many.
    pub rows: usize,
    /// The same seed gives the same order.
    pub seed: u64,
}

/// Every `count`-th batch of the reader's order, from number `index` on: several readers of the same data get disjoint
/// parts. If they shuffle, give each a different seed. A part has the same rows in each epoch, unless the reader has another
/// order, the same for all parts: [`epoch::order`](super::epoch::order) draws one, of files and row groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of this part, from 0.
    pub index: usize,
    /// The number of parts.
    pub count: usize,
}

/// All batches.
impl Default for Shard {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl BatchOptions {
    /// Sets [`batch_size`](Self::batch_size).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2);
    /// let rows = Batches::try_new(reader, &options)?.map(|batch| batch.map(|batch| batch.rows));
    /// assert_eq!(rows.collect::<Result<Vec<_>, _>>()?, [2, 2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_batch_size(mut self, rows: impl Into<Option<usize>>) -> Self {
        self.batch_size = rows.into();
        self
    }

    /// Sets [`drop_last`](Self::drop_last).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2).with_drop_last(true);
    /// let rows = Batches::try_new(reader, &options)?.map(|batch| batch.map(|batch| batch.rows));
    /// assert_eq!(rows.collect::<Result<Vec<_>, _>>()?, [2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Sets [`columns`](Self::columns).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_columns(["y"]);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert!(batch.tensor("x").is_none());
    /// assert_eq!(batch.tensor("y").expect("a tensor").values.shape(), [5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a column to [`labels`](Self::labels).
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
    /// assert!(batch.tensor("y").is_none());
    /// let label = batch.label().and_then(|label| label.tensor()).expect("a tensor");
    /// assert_eq!(label.values.as_slice::<i32>(), Some(&[5, 6, 7, 8, 9][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>) -> Self {
        self.labels.push(name.into());
        self
    }

    /// Sets [`matrix`](Self::matrix).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2).with_matrix(true);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let matrix = batch.matrix().expect("a matrix");
    /// assert_eq!(matrix.values.as_slice::<i32>(), Some(&[0, 5, 1, 6][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_matrix(mut self, matrix: bool) -> Self {
        self.matrix = matrix;
        self
    }

    /// Sets [`export`](Self::export).
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
    /// let options = BatchOptions::default().with_export(export);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.tensor("x").expect("a tensor").values.dtype(), DLDataType::FLOAT32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_export(mut self, export: ExportOptions) -> Self {
        self.export = export;
        self
    }

    /// Adds the options of a column to [`column_options`](Self::column_options).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches, ColumnOptions};
    /// use arrow_dlpack::ffi::DLDataType;
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let x = ColumnOptions::default().with_dtype(DLDataType::INT64);
    /// let options = BatchOptions::default().with_column_options("x", x);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.tensor("x").expect("a tensor").values.dtype(), DLDataType::INT64);
    /// assert_eq!(batch.tensor("y").expect("a tensor").values.dtype(), DLDataType::INT32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_column_options(mut self, name: impl Into<String>, options: ColumnOptions) -> Self {
        self.column_options.push((name.into(), options));
        self
    }

    /// Sets [`shuffle`](Self::shuffle).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches, Shuffle};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(5).with_shuffle(Shuffle { rows: 1024, seed: 42 });
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// let x = &batch.tensor("x").expect("a tensor").values;
    /// let mut drawn = x.as_slice::<i32>().expect("it is of i32").to_vec();
    /// drawn.sort_unstable();
    /// assert_eq!(drawn, [0, 1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_shuffle(mut self, shuffle: impl Into<Option<Shuffle>>) -> Self {
        self.shuffle = shuffle.into();
        self
    }

    /// Sets [`shard`](Self::shard).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches, Shard};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2).with_shard(Shard { index: 1, count: 2 });
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.tensor("x").expect("a tensor").values.as_slice::<i32>(), Some(&[2, 3][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_shard(mut self, shard: Shard) -> Self {
        self.shard = shard;
        self
    }

    /// Sets [`skip`](Self::skip).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2).with_skip(1);
    /// let batch = Batches::try_new(reader, &options)?.next().expect("a batch")?;
    /// assert_eq!(batch.tensor("x").expect("a tensor").values.as_slice::<i32>(), Some(&[2, 3][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_skip(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    /// Sets [`prefetch`](Self::prefetch).
    ///
    /// ```
    /// use arrow_array::{RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let table = record_batch!(("x", Int32, [0, 1, 2, 3, 4]), ("y", Int32, [5, 6, 7, 8, 9]))?;
    /// let schema = table.schema();
    /// let reader = RecordBatchIterator::new([Ok(table)], schema);
    /// let options = BatchOptions::default().with_batch_size(2).with_prefetch(2);
    /// let rows = Batches::try_new(reader, &options)?.map(|batch| batch.map(|batch| batch.rows));
    /// assert_eq!(rows.collect::<Result<Vec<_>, _>>()?, [2, 2, 1]); // as without
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_prefetch(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }

    /// An error for contradictory options.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Shard { index, count } = self.shard;
        Err(Error::InvalidOptions(match self {
            Self { batch_size: Some(0), .. } => "batches of no rows never end",
            Self { batch_size: None, drop_last: true, .. } => "drop_last needs a batch_size",
            Self { batch_size: None, shuffle: Some(_), .. } => "shuffle needs a batch_size",
            Self { shuffle: Some(_), export, .. } if export.copy == CopyPolicy::Never => {
                "shuffle copies each row, and copying was forbidden"
            }
            Self { resume: Some(Resume { rows, left, .. }), .. } if left > rows || count > 1 => {
                "this is no state of a shuffle"
            }
            Self { matrix: true, column_options, labels, .. }
                if column_options.iter().any(|(name, own)| {
                    let codes = [None, Some(DLDataType::INT32), Some(DLDataType::INT64)];
                    let is_other = match own.form {
                        Form::Dense(_) => own.dtype.is_some(),
                        Form::Categories(_) => !codes.contains(&own.dtype),
                        _ => true,
                    };
                    !labels.contains(name) && (is_other || own.nulls.is_some())
                }) =>
            {
                "a matrix has the dtype and the policy for nulls of BatchOptions::export, and none of one column; the only forms \
                 of its columns are the dense one and categories"
            }
            Self { labels, .. }
                if (1..labels.len()).any(|at| labels[..at].contains(&labels[at])) =>
            {
                "a label is named twice"
            }
            _ if index >= count => "the index of a shard is below the count of shards",
            _ => return Ok(()),
        }))
    }

    /// Names of the features, followed by those of the labels; `None` for all columns.
    pub(crate) fn names(&self) -> Option<Vec<&str>> {
        let features = self.columns.as_ref()?.iter().filter(|name| !self.labels.contains(name));
        Some(features.chain(&self.labels).map(String::as_str).collect())
    }

    /// Positions of the features in a table, followed by those of the labels.
    pub(super) fn positions(&self, schema: &Schema) -> Result<Vec<usize>, Error> {
        let positions = match self.names() {
            // One error lists all missing names, those of labels too.
            Some(wanted) => columns::of_names(schema, &wanted)?,
            None => {
                let mut positions = columns::features(schema);
                positions.retain(|&at| !self.labels.contains(schema.field(at).name()));
                let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
                positions.extend(columns::of_names(schema, &labels)?);
                positions
            }
        };
        let features = &positions[..positions.len() - self.labels.len()];
        let name = |at: &usize| schema.field(*at).name();
        let mut names = HashMap::new();
        match features.iter().find_map(|at| names.insert(name(at), at).map(|first| (first, at))) {
            Some((first, at)) if !self.matrix => Err(match first == at {
                true => Error::AskedTwice(name(at).clone()),
                false => Error::SeveralColumns { name: name(at).clone(), count: 2 },
            }),
            _ if self.matrix && features.is_empty() => Err(Error::NoColumns),
            _ => Ok(positions),
        }
    }
}
