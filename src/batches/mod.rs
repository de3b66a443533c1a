//! Record batches as batches of tensors, for training loops.
//!
//! [`Batches`] is an iterator over any [`RecordBatchReader`], of Parquet files, queries or memory. It cuts the rows
//! to batches of a fixed size, shuffles and shards them, and makes them ahead of time on a thread, as
//! [`BatchOptions`] specify. Memory does not grow with the stream.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, RecordBatchIterator};
//! use arrow_dlpack::batches::{BatchOptions, Batches};
//!
//! let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5, 3.5, 4.5]));
//! let y: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0]));
//! let z: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 2, 3, 4]));
//! let batch = RecordBatch::try_from_iter([("x", x), ("y", y), ("z", z)])?;
//! let schema = batch.schema();
//! let reader = RecordBatchIterator::new([Ok(batch)], schema); // or a ParquetRecordBatchReader
//!
//! let options = BatchOptions::default()
//!     .with_batch_size(2)
//!     .with_drop_last(true)
//!     .with_matrix(true)
//!     .with_label("z")
//!     .with_prefetch(1);
//! let mut labels = Vec::new();
//! for batch in Batches::try_new(reader, &options)? {
//!     let batch = batch?;
//!     let (features, label) = (batch.matrix().unwrap(), batch.label().unwrap());
//!     assert_eq!(features.values.shape(), [2, 2]);
//!     let label = label.tensor().unwrap();
//!     labels.extend_from_slice(label.values.as_slice::<i64>().unwrap());
//! }
//! assert_eq!(labels, [0, 1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The files:
// - `options` are the arguments, of which `categories` have words; `reader` cuts chunks to blocks of rows; `shuffle` draws
//   rows at random (`items` of one width, `column`s of a pool, `resume` after some batches), by the random numbers of `epoch`.
// - `epoch` says what a seed's order and a rank's share are.
// - `convert` makes a `batch` of tensors, `encoder` one of rows that come alone; `prefetch` is the thread of `prefetch=`.

mod batch;
mod categories;
mod convert;
mod encoder;
pub mod epoch;
mod options;
mod prefetch;
mod reader;
mod shuffle;

use std::sync::{Arc, OnceLock};
use std::{fmt, iter::FusedIterator, slice};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{Schema, SchemaRef};

use crate::export::{check_columns, check_type};
use crate::{Error, ReaderError, chunks::Coded, fence::fenced};

pub use batch::{Batch, BatchColumn, BatchTensor, Features};
pub use categories::Categories;
use convert::{BatchPlan, Converter};
pub use encoder::Encoder;
pub use options::{BatchOptions, ColumnOptions, Form, Shard, Shuffle};
use prefetch::Prefetch;
pub(crate) use prefetch::Queue;
pub(crate) use reader::BatchChunks;
use reader::Reader;
pub(crate) use shuffle::{Resume, resume, rows_at};

/// An iterator over batches of tensors, for one pass.
///
/// An error of the reader is returned after all rows before it; an error of a conversion in place of its batch. A
/// panic of the reader is returned as an error. Each of these ends the iterator.
///
/// Dropping it stops the thread that reads ahead, and waits until the reader has been dropped, but at most a second,
/// since a reader may wait for a lock that the caller holds.
pub struct Batches {
    pub(crate) state: State,
    /// The dictionary columns.
    pub(crate) coded: Vec<Arc<Coded>>,
    /// How many batches come before the first one that an error of the source cut; known when that is made.
    pub(crate) whole: Arc<OnceLock<usize>>,
}

/// The state of the iteration.
#[derive(Default)]
pub(crate) enum State {
    Reading(Box<Pipeline>),
    Prefetch(Prefetch),
    #[default]
    Over,
}

/// Reads rows and converts them.
pub(crate) struct Pipeline {
    reader: Reader,
    /// Batches to leave out before the next one.
    skip: usize,
    converter: Converter,
    /// Batches that were made.
    made: usize,
    whole: Arc<OnceLock<usize>>,
}

impl Batches {
    /// Makes batches of the rows of a reader.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use arrow_array::{RecordBatch, RecordBatchIterator, record_batch};
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    /// use arrow_schema::ArrowError;
    ///
    /// let batch = record_batch!(("x", Int32, [1, 2]))?;
    /// let schema = batch.schema();
    /// let reader = RecordBatchIterator::new([Ok(batch), Err(ArrowError::MemoryError("full".into()))], schema);
    /// let mut batches = Batches::try_new(reader, &BatchOptions::default())?;
    /// let batch = batches.next().expect("rows before the error")?;
    /// assert_eq!(batch.tensor("x").unwrap().values.as_slice::<i32>(), Some(&[1, 2][..]));
    /// let error = batches.next().unwrap().unwrap_err();
    /// let cause = error.source().and_then(|source| source.downcast_ref::<ArrowError>());
    /// assert!(matches!(cause, Some(ArrowError::MemoryError(_))));
    /// assert!(batches.next().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidOptions`; `NoSuchColumns`, `SeveralColumns` and `AskedTwice`; `NoThread`; the errors of a conversion of this schema,
    /// see [`export::tensor`](crate::export::tensor). The iterator returns the same errors for the values of the
    /// rows, and `Reader` with the reader's error as its source.
    pub fn try_new(
        reader: impl RecordBatchReader + Send + 'static,
        options: &BatchOptions,
    ) -> Result<Self, Error> {
        let schema = reader.schema();
        let promised = Arc::clone(&schema);
        let chunks = reader.map(move |batch| {
            let batch = batch.map_err(|error| Error::Reader(ReaderError::new(error)))?;
            check_schema(&batch, &promised)?;
            Ok((batch, 0))
        });
        let mut batches = Self::open(Box::new(chunks), &schema, true, options)?;
        if options.prefetch > 0 {
            batches.read_ahead(options.prefetch)?;
        }
        Ok(batches)
    }

    /// Makes batches of chunks with the columns of the schema, or of a single column if `is_table` is false.
    pub(crate) fn open(
        chunks: BatchChunks,
        schema: &Schema,
        is_table: bool,
        options: &BatchOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        let BatchPlan { columns, codes, read, converter } =
            BatchPlan::new(schema, is_table, options)?;
        let with_codes = converter.coded.iter().flatten().cloned().collect();
        let reader = Reader::new(chunks, columns, codes, read, options);
        let whole = Arc::default();
        let own = Arc::clone(&whole);
        let pipeline = Pipeline { reader, skip: options.skip, converter, made: 0, whole: own };
        Ok(Self { state: State::Reading(Box::new(pipeline)), coded: with_codes, whole })
    }

    /// Makes this many batches ahead, on a thread.
    pub(crate) fn read_ahead(&mut self, most: usize) -> Result<(), Error> {
        let State::Reading(mut pipeline) = std::mem::take(&mut self.state) else { return Ok(()) };
        self.state = State::Prefetch(Prefetch::start(most, move || pipeline.next())?);
        Ok(())
    }

    /// The dictionary of each coded column, by the column's name: all values that have been read so far. Later
    /// batches append values.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchIterator, types::Int8Type};
    /// use arrow_dlpack::ExportOptions;
    /// use arrow_dlpack::batches::{BatchOptions, Batches};
    ///
    /// let batch = |words: [&str; 2]| {
    ///     let words: DictionaryArray<Int8Type> = words.into_iter().collect();
    ///     RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)])
    /// };
    /// let read = [batch(["to", "be"]), batch(["or", "to"])];
    /// let schema = read[0].as_ref().unwrap().schema();
    /// let options = BatchOptions::default().with_export(ExportOptions::default().with_physical(true));
    /// let mut batches = Batches::try_new(RecordBatchIterator::new(read, schema), &options)?;
    /// let mut codes = Vec::new();
    /// for batch in &mut batches {
    ///     codes.extend_from_slice(batch?.tensor("word").unwrap().values.as_slice::<i32>().unwrap());
    /// }
    /// assert_eq!(codes, [0, 1, 2, 0]);
    /// let dictionaries = batches.dictionaries()?;
    /// assert_eq!((&*dictionaries[0].0, dictionaries[0].1.len()), ("word", 3));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BatchTensor::dictionary`].
    pub fn dictionaries(&self) -> Result<Vec<(String, ArrayRef)>, Error> {
        let values =
            |coded: &Arc<Coded>| Ok((coded.field.name().clone(), coded.meaning()?.array()?));
        self.coded.iter().map(values).collect()
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.state {
            State::Reading(pipeline) => pipeline.next(),
            State::Prefetch(ahead) => ahead.next(),
            State::Over => return None,
        };
        if !matches!(next, Ok(Some(_))) {
            self.state = State::Over;
        }
        next.transpose()
    }
}

impl FusedIterator for Batches {}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Pipeline {
    /// The next batch, `None` at the end. An error or a panic ends the iteration.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, Error> {
        let next = || {
            while self.skip > 0 {
                self.skip -= 1;
                if self.reader.next()?.is_none() {
                    return Ok(None);
                }
            }
            let pieces = self.reader.next()?;
            if self.reader.is_cut() {
                self.whole.get_or_init(|| self.made);
            }
            self.made += 1;
            pieces.map(|pieces| self.converter.batch(pieces)).transpose()
        };
        fenced(next).unwrap_or_else(|panic| Err(Error::Panicked(panic)))
    }
}

/// An error for a batch whose types differ from the reader's schema.
fn check_schema(batch: &RecordBatch, promised: &SchemaRef) -> Result<(), Error> {
    if Arc::ptr_eq(batch.schema_ref(), promised) {
        return Ok(());
    }
    check_columns(slice::from_ref(batch), promised)?;
    let mut columns = promised.fields().iter().zip(batch.columns());
    columns.try_for_each(|(field, column)| check_type(column, field))
}
