//! Rows as what a batch of them is, one call at a time.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};

use super::convert::BatchPlan;
use super::reader::{Codes, Piece};
use super::{Batch, BatchOptions};
use crate::chunks::checked;
use crate::export::check_type;
use crate::{Error, columns, fence::fenced};

/// Makes of rows what [`Batches`](super::Batches) makes of them as one batch: for a model in service, which gets a few rows
/// at a time and has to see what it saw in training.
///
/// It keeps the schema that it was made with, and the words of [`Categories`](super::Categories). Calls do not depend on one
/// another, and may come from several threads at once. What decides how rows are cut, drawn and read ahead is ignored.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{StringArray, record_batch};
/// use arrow_dlpack::ExportOptions;
/// use arrow_dlpack::batches::{BatchOptions, Categories, ColumnOptions, Encoder, Form};
/// use arrow_dlpack::ffi::DLDataType;
///
/// let trained = record_batch!(("fare", Float64, [7.5, 20.0]), ("port", Utf8, ["A", "B"]), ("paid", Int32, [0, 1]))?;
/// let ports = Categories::try_new(Arc::new(StringArray::from(vec!["A", "B"])))?;
/// let options = BatchOptions::default()
///     .with_export(ExportOptions::default().with_dtype(DLDataType::FLOAT32))
///     .with_column_options("port", ColumnOptions::default().with_form(Form::Categories(ports)))
///     .with_label("paid");
/// let encoder = Encoder::try_new(&trained.schema(), &options)?;
///
/// let request = record_batch!(("port", Utf8, ["B"]), ("fare", Float64, [9.25]))?; // without the label
/// let batch = encoder.encode(&request)?;
/// assert_eq!(batch.tensor("fare").expect("a tensor").values.as_slice::<f32>(), Some(&[9.25][..]));
/// assert_eq!(batch.tensor("port").expect("a tensor").values.as_slice::<i32>(), Some(&[1][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Encoder {
    /// The columns that are read; the labels are the last ones.
    schema: SchemaRef,
    features: BatchPlan,
    /// With the labels too, if there are any.
    all: Option<BatchPlan>,
}

impl Encoder {
    /// An encoder of rows with the columns of this schema, of which those are read that the options name.
    ///
    /// # Errors
    ///
    /// As [`Batches::try_new`](super::Batches::try_new); `InvalidOptions` for a column of codes of a dictionary, which are
    /// codes of one source alone.
    pub fn try_new(schema: &Schema, options: &BatchOptions) -> Result<Self, Error> {
        let options = BatchOptions {
            batch_size: None,
            drop_last: false,
            shuffle: None,
            resume: None,
            ..options.clone()
        };
        options.check()?;
        let all = BatchPlan::new(schema, true, &options)?;
        let width = all.columns.len() - options.labels.len();
        let fields = |plan: &BatchPlan| -> Vec<FieldRef> {
            plan.columns.iter().map(|&at| Arc::clone(&schema.fields()[at])).collect()
        };
        let read = Schema::new_with_metadata(fields(&all), schema.metadata().clone());
        if let Some(at) =
            all.codes.iter().position(|codes| matches!(codes, Some(Codes::Dictionary(_))))
        {
            return Err(Error::in_column(read.field(at).name(), Error::CODES_OF_ONE_SOURCE));
        }
        let is_label = |name: &String| options.labels.contains(name);
        let own = options.column_options.iter().filter(|(name, _)| !is_label(name)).cloned();
        let alone = BatchOptions {
            columns: Some(
                read.fields()[..width].iter().map(|field| field.name().clone()).collect(),
            ),
            column_options: own.collect(),
            labels: Vec::new(),
            ..options.clone()
        };
        let (features, all) = match options.labels.is_empty() {
            true => (all, None),
            false => (BatchPlan::new(&read, true, &alone)?, Some(all)),
        };
        Ok(Self { schema: Arc::new(read), features, all })
    }

    /// The columns that are read, with the types that rows have; the labels are the last ones.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The features of these rows. Columns are found by their names, and others are ignored.
    ///
    /// # Errors
    ///
    /// `NoSuchColumns`, `SeveralColumns`; `FieldMismatch` for a column of another type, but that values of
    /// [`Categories`](super::Categories) may be in another layout; the errors of a conversion, as of
    /// [`Batches`](super::Batches).
    pub fn encode(&self, rows: &RecordBatch) -> Result<Batch, Error> {
        self.encode_by(&self.features, rows)
    }

    /// The features of these rows, and their labels.
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    pub fn encode_with_labels(&self, rows: &RecordBatch) -> Result<Batch, Error> {
        self.encode_by(self.all.as_ref().unwrap_or(&self.features), rows)
    }

    fn encode_by(&self, plan: &BatchPlan, rows: &RecordBatch) -> Result<Batch, Error> {
        let fields = &self.schema.fields()[..plan.codes.len()];
        let wanted: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let found = columns::of_names(rows.schema_ref(), &wanted)?;
        let mut read = Vec::with_capacity(fields.len());
        for ((&at, field), codes) in found.iter().zip(fields).zip(&plan.codes) {
            let column = rows.column(at);
            if codes.is_none() {
                check_type(column, field).map_err(|error| Error::in_column(field.name(), error))?;
            }
            read.push((Arc::clone(column), Arc::clone(&rows.schema_ref().fields()[at])));
        }
        plan.encode(&read, rows.num_rows())
    }

    /// What [`Self::encode`] makes of columns in the order of the schema, whose types are right, each with the field that it
    /// has in the request.
    #[cfg(feature = "pyo3")]
    pub(crate) fn encode_columns(
        &self,
        columns: &[(ArrayRef, FieldRef)],
        rows: usize,
        with_labels: bool,
    ) -> Result<Batch, Error> {
        let plan = if with_labels { self.all.as_ref() } else { None };
        plan.unwrap_or(&self.features).encode(columns, rows)
    }
}

impl BatchPlan {
    fn encode(&self, columns: &[(ArrayRef, FieldRef)], rows: usize) -> Result<Batch, Error> {
        let mut read: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for ((column, field), codes) in columns.iter().zip(&self.codes) {
            read.push(match codes {
                Some(Codes::Categories(categories, _, data_type)) => {
                    categories.read(column, field, data_type)?
                }
                _ => Arc::clone(column),
            });
        }
        let converter = self.converter.of_rows_alone();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.read);
        let batch = checked(|| RecordBatch::try_new_with_options(schema, read, &options))?;
        let encoded = fenced(|| converter.batch(vec![Piece::whole(batch)]));
        encoded.unwrap_or_else(|panic| Err(Error::Panicked(panic)))
    }
}

/// No call changes it.
impl RefUnwindSafe for Encoder {}
impl UnwindSafe for Encoder {}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("schema", &self.schema).finish_non_exhaustive()
    }
}
