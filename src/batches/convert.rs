//! Converts rows to batches of tensors, by what is planned before any of it is made.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::batch::{Batch, BatchColumn, BatchTensor, Features};
use super::options::{BatchOptions, ColumnOptions, Form};
use super::reader::{Codes, Piece};
use crate::arrow_types::child_types;
use crate::chunks::{self, Coded, Meaning, checked};
use crate::error::Refusals;
use crate::export::{
    self, Exported, Prepared, PreparedPadded, PreparedRagged, RowLength, Source, UniformMatrix,
};
use crate::ffi::DLDataType;
use crate::{
    CopyPolicy, CopyReason, Error, ExportOptions, Hint, NullPolicy, Order, arrow_types, columns,
};

/// Which columns are read, which of them as codes, and how they become a batch.
pub(super) struct BatchPlan {
    /// Positions of the columns to read; the labels are the last ones.
    pub(super) columns: Vec<usize>,
    pub(super) codes: Vec<Option<Codes>>,
    /// The schema of what is read, as nullable fields.
    pub(super) read: SchemaRef,
    pub(super) converter: Converter,
}

impl BatchPlan {
    /// Of columns of this schema, or of a single column if `is_table` is false. Types that cannot be converted are an error.
    pub(super) fn new(
        schema: &Schema,
        is_table: bool,
        options: &BatchOptions,
    ) -> Result<Self, Error> {
        let columns = if is_table { options.positions(schema)? } else { vec![0] };
        let named: Vec<&str> = options.column_options.iter().map(|(name, _)| &**name).collect();
        let read =
            Schema::new(columns.iter().map(|&at| schema.field(at).clone()).collect::<Vec<_>>());
        columns::of_names(&read, &named)?;
        // Batches are small, and more than one process may be making them.
        let threads = options.export.threads.or(NonZero::new(1));
        let mut export = options.export.clone().with_threads(threads);
        if options.shuffle.is_some() {
            // Drawn rows are copies without other holders, which are handed out writable.
            export.copy = CopyPolicy::Always;
        }
        let width = columns.len() - options.labels.len();
        let (mut fields, mut codes, mut forms) = (Vec::new(), Vec::new(), Vec::new());
        let mut lengths = Vec::new();
        let own: HashMap<&str, &ColumnOptions> =
            options.column_options.iter().map(|(name, own)| (name.as_str(), own)).collect();
        for (index, &at) in columns.iter().enumerate() {
            let field = &schema.fields()[at];
            arrow_types::check(field.data_type())?;
            let own = own.get(field.name().as_str()).copied().cloned().unwrap_or_default();
            let form = ColumnForm::new(own, field, &export, index < width, is_table);
            lengths.push(form.length(field)?);
            let dtype = form.options.dtype;
            let own = Codes::of(field, &form.form, dtype, options.export.physical)?;
            fields.push(own.as_ref().map_or_else(|| Arc::clone(field), Codes::field));
            codes.push(own);
            forms.push(form);
        }
        let schema = Arc::new(Schema::new(fields));
        let converter = Converter {
            features: Schema::new(schema.fields()[..width].to_vec()).into(),
            schema: Arc::clone(&schema),
            coded: codes.iter().map(|own| own.as_ref()?.dictionary()).collect(),
            is_table,
            labels: options.labels.len(),
            as_matrix: options.matrix,
            lengths,
            matrix: export,
            forms,
        };
        // Before the first row is read.
        let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
        let read = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        drop(converter.batch(vec![Piece::whole(RecordBatch::new_empty(schema))])?);
        Ok(Self { columns, codes, read, converter })
    }
}

/// The conversion of rows to a batch.
#[derive(Clone)]
pub(super) struct Converter {
    /// The columns that are read; the labels are the last ones.
    pub(super) schema: SchemaRef,
    /// These without the label.
    pub(super) features: SchemaRef,
    /// The dictionaries of the coded columns.
    pub(super) coded: Vec<Option<Arc<Coded>>>,
    /// Whether errors name the columns.
    pub(super) is_table: bool,
    /// How many labels there are.
    pub(super) labels: usize,
    pub(super) as_matrix: bool,
    /// Of dense lists: the length of all rows.
    pub(super) lengths: Vec<OnceLock<usize>>,
    /// The options of a matrix.
    pub(super) matrix: ExportOptions,
    /// The form of each column.
    pub(super) forms: Vec<ColumnForm>,
}

/// What a column becomes.
#[derive(Clone)]
pub(super) struct ColumnForm {
    pub(super) form: Form,
    options: ExportOptions,
}

impl ColumnForm {
    /// The form of a column with these options among those of all columns. A column that is no table's is a tensor.
    pub(super) fn new(
        own: ColumnOptions,
        field: &Field,
        all: &ExportOptions,
        is_feature: bool,
        is_table: bool,
    ) -> Self {
        let is_coded = matches!(own.form, Form::Categories(_));
        let dtype = match is_coded {
            true => own.dtype.or(Some(DLDataType::INT32)),
            false if is_feature => own.dtype.or(all.dtype),
            false => own.dtype,
        };
        // A label keeps its type: classes are integers, and so are codes.
        let keeps_type = all.nulls == NullPolicy::Nan
            && (is_coded || (!is_feature && !is_float(field.data_type())));
        let nulls = if keeps_type { NullPolicy::Refuse } else { all.nulls };
        let options = all.clone().with_dtype(dtype).with_nulls(own.nulls.unwrap_or(nulls));
        let order = if is_feature { all.order } else { Order::default() };
        let form = match own.form {
            Form::Auto if is_table && arrow_types::is_variable_list(field.data_type()) => {
                Form::Ragged
            }
            Form::Auto => Form::Tensor,
            form => form,
        };
        Self { form, options: options.with_order(order) }
    }

    /// The length of all rows, of dense lists: the one that was asked for, or none yet. It is needed where rows may be
    /// null, or a batch of such rows alone would have another shape.
    pub(super) fn length(&self, field: &Field) -> Result<OnceLock<usize>, Error> {
        let Form::Dense(expected) = self.form else { return Ok(OnceLock::new()) };
        // With a fill value they would have no axis of items, which other lists have.
        if field.data_type() == &DataType::Null {
            let refused =
                "Dense is for columns of lists: cast nulls without a type to those that you mean";
            return Err(Error::in_column(field.name(), Error::InvalidOptions(refused)));
        }
        let has_nulls = self.options.nulls != NullPolicy::Refuse;
        let Some(expected) = expected else {
            return match has_nulls && arrow_types::is_variable_list(field.data_type()) {
                true => Err(Error::in_column(field.name(), Error::NO_LENGTH)),
                false => Ok(OnceLock::new()),
            };
        };
        let refused = match field.data_type() {
            DataType::FixedSizeList(_, size) => match usize::try_from(*size).unwrap_or(0) {
                length if length == expected => return Ok(OnceLock::from(expected)),
                length => Error::RowLength { row: 0, length, expected },
            },
            other if arrow_types::is_variable_list(other) => return Ok(OnceLock::from(expected)),
            _ => Error::InvalidOptions("the length of Dense is for columns of lists"),
        };
        Err(Error::in_column(field.name(), refused))
    }
}

/// Whether the values, or those of lists, are floats.
fn is_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _)
        | DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => is_float(item.data_type()),
        other => other.is_floating(),
    }
}

impl Converter {
    /// The same for rows that no other ones went before: of dense lists the length of all rows may be theirs.
    pub(super) fn of_rows_alone(&self) -> Cow<'_, Self> {
        match self.forms.iter().any(|form| form.form == Form::Dense(None)) {
            true => Cow::Owned(self.clone()),
            false => Cow::Borrowed(self),
        }
    }

    /// Converts at least one piece.
    pub(super) fn batch(&self, pieces: Vec<Piece>) -> Result<Batch, Error> {
        let rows = pieces.iter().map(Piece::rows).sum();
        let fields = self.schema.fields();
        let width = fields.len() - self.labels;
        let (mut refusals, mut planned) = (Refusals::default(), Vec::with_capacity(fields.len()));
        let mut matrix = None;
        if self.as_matrix {
            matrix = refusals.note_all(self.matrix(&pieces, width))?;
        }
        for index in if self.as_matrix { width } else { 0 }..fields.len() {
            let column = self.column(&pieces, index);
            planned.extend(match self.is_table {
                true => refusals.note(fields[index].name(), column)?,
                false => Some(column?),
            });
        }
        refusals.finish()?;
        // Drops other references to the rows: then a copy that only serves to make memory exclusive is not needed.
        drop(pieces);
        let matrix = matrix.map(|matrix| matrix.make()).transpose()?;
        let mut made = Vec::with_capacity(planned.len());
        for planned in planned {
            made.push(planned.make(self.is_table)?);
        }
        let labels = made.split_off(made.len() - self.labels);
        let features = matrix.map_or(Features::Columns(made), Features::Matrix);
        Ok(Batch { features, labels, rows })
    }

    fn column(&self, pieces: &[Piece], index: usize) -> Result<Planned, Error> {
        let read = &self.schema.fields()[index];
        let ColumnForm { form, options } = &self.forms[index];
        let arrays: Vec<_> = pieces.iter().map(|piece| piece.column(index)).collect();
        let source = Source::Chunks(&arrays, read);
        if *form != Form::Arrow {
            refuse_codes_in_lists(read.data_type())?;
        }
        let field = Arc::clone(read);
        Ok(match form {
            Form::Arrow => Planned::Arrow(rows_as_they_are(&arrays, options)?, field),
            Form::Ragged => {
                Planned::Ragged(export::prepare_ragged(source, None, options)?.into(), field)
            }
            Form::Pad(pad) => {
                Planned::Padded(export::prepare_padded(source, pad, options)?.into(), field)
            }
            Form::Auto | Form::Tensor | Form::Dense(_) | Form::Categories(_) => {
                Planned::Tensor(self.tensor(source, index)?)
            }
        })
    }

    /// A column as a tensor; lists only if they are to be dense, because nothing depends on their lengths otherwise.
    fn tensor(&self, source: Source<'_>, index: usize) -> Result<PlannedTensor, Error> {
        let ColumnForm { form, options } = &self.forms[index];
        let prepared = match form {
            Form::Dense(_) => {
                let length = RowLength::SameAcrossBatches(&self.lengths[index]);
                export::prepare_dense(source, options, length)?
            }
            _ => export::prepare_by_type(source, options)?,
        };
        let (field, meaning) = match &self.coded[index] {
            None => (&self.schema.fields()[index], None),
            Some(coded) => (&coded.field, Some(coded.meaning()?)),
        };
        Ok(PlannedTensor { prepared, field: Some(Arc::clone(field)), meaning })
    }

    fn matrix(&self, pieces: &[Piece], width: usize) -> Result<PlannedMatrix, Error> {
        let options = &self.matrix;
        if !self.is_table {
            let arrays: Vec<_> = pieces.iter().map(|piece| piece.column(0)).collect();
            let planned = self.tensor(Source::Chunks(&arrays, &self.schema.fields()[0]), 0)?;
            return Ok(PlannedMatrix::Tensor(planned));
        }
        let has_lists = (0..width).any(|index| self.is_dense(index));
        if let ([piece], false) = (pieces, has_lists) {
            let plan = |chunk: &RecordBatch| {
                let features = self.features(&[Piece::whole(chunk.clone())], width).ok()?;
                UniformMatrix::new(&features[0], &self.features, options)
            };
            if let Some((matrix, rows)) = piece.matrix(plan) {
                return Ok(PlannedMatrix::Rows(matrix, rows));
            }
        }
        let prepared = if has_lists {
            let pieces = self.with_one_length(pieces, width)?;
            export::prepare((&pieces[..], &*pieces[0].schema()), options)
        } else {
            export::prepare((&self.features(pieces, width)?[..], &*self.features), options)
        };
        let planned = PlannedTensor { prepared: prepared?, field: None, meaning: None };
        Ok(PlannedMatrix::Tensor(planned))
    }

    /// The features of the pieces.
    fn features(&self, pieces: &[Piece], width: usize) -> Result<Vec<RecordBatch>, Error> {
        if self.labels == 0 {
            return Ok(pieces.iter().map(Piece::batch).collect());
        }
        let features = |piece: &Piece| {
            let (schema, columns) =
                (Arc::clone(&self.features), (0..width).map(|index| piece.column(index)).collect());
            let rows = RecordBatchOptions::new().with_row_count(Some(piece.rows()));
            RecordBatch::try_new_with_options(schema, columns, &rows)
        };
        checked(|| pieces.iter().map(features).collect::<Result<Vec<_>, _>>())
    }

    /// Whether a column is of lists that are to be dense.
    fn is_dense(&self, index: usize) -> bool {
        let data_type = self.schema.fields()[index].data_type();
        matches!(self.forms[index].form, Form::Dense(_)) && arrow_types::is_variable_list(data_type)
    }

    /// The features of the pieces, with fixed-size lists in place of lists that are to be dense.
    fn with_one_length(&self, pieces: &[Piece], width: usize) -> Result<Vec<RecordBatch>, Error> {
        let (mut fields, mut columns) = (Vec::new(), vec![Vec::new(); pieces.len()]);
        for (index, field) in self.schema.fields().iter().take(width).enumerate() {
            let mut chunks: Vec<_> = pieces.iter().map(|piece| piece.column(index)).collect();
            let mut field = Field::clone(field).with_nullable(true);
            if self.is_dense(index) {
                let length = RowLength::SameAcrossBatches(&self.lengths[index]);
                chunks = refuse_codes_in_lists(field.data_type())
                    .and_then(|()| export::fixed_size(&chunks, length, self.matrix.copy))
                    .map_err(|error| Error::in_column(field.name(), error))?;
                field = Field::new(field.name(), chunks[0].data_type().clone(), true);
            }
            fields.push(field);
            columns.iter_mut().zip(chunks).for_each(|(columns, chunk)| columns.push(chunk));
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = |(piece, columns): (&Piece, _)| {
            let rows = RecordBatchOptions::new().with_row_count(Some(piece.rows()));
            RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &rows)
        };
        checked(|| pieces.iter().zip(columns).map(batch).collect())
    }
}

/// The chunks, if they may be put together.
fn rows_as_they_are(chunks: &[ArrayRef], options: &ExportOptions) -> Result<Vec<ArrayRef>, Error> {
    if chunks.len() > 1 && options.copy == CopyPolicy::Never {
        let nbytes = chunks.iter().map(|chunk| chunk.get_buffer_memory_size()).sum();
        return Err(Error::CopyForbidden { reason: CopyReason::Chunks(chunks.len()), nbytes });
    }
    Ok(chunks.to_vec())
}

/// A code stands for one value in all batches, which holds for columns of codes only.
fn refuse_codes_in_lists(data_type: &DataType) -> Result<(), Error> {
    fn coded(data_type: &DataType) -> Option<&DataType> {
        match data_type {
            DataType::Dictionary(_, values) => Some(values),
            list if list.is_list() => child_types(list).iter().find_map(|(item, _)| coded(item)),
            _ => None,
        }
    }
    let Some(values) = coded(data_type).filter(|_| arrow_types::is_variable_list(data_type)) else {
        return Ok(());
    };
    let hint = Hint::Text(match DLDataType::from_arrow(values) {
        Some(_) => {
            "its codes may mean other values in the next batch: cast its items to their values first"
        }
        None => {
            "its codes may mean other values in the next batch: flatten the lists first, for a column of codes"
        }
    });
    Err(Error::UnsupportedType { data_type: data_type.clone(), hint })
}

/// A planned column of a batch. It holds only the rows that the result needs.
pub(super) enum Planned {
    Tensor(PlannedTensor),
    Ragged(Box<PreparedRagged>, FieldRef),
    Padded(Box<PreparedPadded>, FieldRef),
    Arrow(Vec<ArrayRef>, FieldRef),
}

pub(super) struct PlannedTensor {
    pub(super) prepared: Prepared,
    pub(super) field: Option<FieldRef>,
    pub(super) meaning: Option<Meaning>,
}

/// A planned matrix of the features.
pub(super) enum PlannedMatrix {
    Tensor(PlannedTensor),
    /// These rows of a chunk.
    Rows(UniformMatrix, Range<usize>),
}

impl Planned {
    pub(super) fn make(self, is_of_table: bool) -> Result<BatchColumn, Error> {
        let named = |field: &FieldRef, error| match is_of_table {
            true => Error::in_column(field.name(), error),
            false => error,
        };
        match self {
            Self::Tensor(PlannedTensor { prepared, field, meaning }) => {
                match (prepared.run(), field) {
                    (Ok(Exported { values, mask, .. }), field) => {
                        Ok(BatchColumn::Tensor(BatchTensor { values, mask, field, meaning }))
                    }
                    (Err(error), Some(field)) => Err(named(&field, error)),
                    (Err(error), None) => Err(error),
                }
            }
            Self::Ragged(prepared, field) => match prepared.run() {
                Ok(made) => Ok(BatchColumn::Ragged(made.into(), field)),
                Err(error) => Err(named(&field, error)),
            },
            Self::Padded(prepared, field) => match prepared.run() {
                Ok(made) => Ok(BatchColumn::Padded(made.into(), field)),
                Err(error) => Err(named(&field, error)),
            },
            Self::Arrow(chunks, field) => {
                let made = match <[ArrayRef; 1]>::try_from(chunks) {
                    Ok([only]) => Ok(only),
                    Err(chunks) => chunks::concat(&chunks),
                };
                match made {
                    Ok(made) => Ok(BatchColumn::Arrow(made, field)),
                    Err(error) => Err(named(&field, error)),
                }
            }
        }
    }
}

impl PlannedMatrix {
    pub(super) fn make(self) -> Result<BatchTensor, Error> {
        match self {
            Self::Tensor(planned) => planned.make(),
            Self::Rows(matrix, rows) => {
                let values = matrix.rows(rows)?;
                Ok(BatchTensor { values, mask: None, field: None, meaning: None })
            }
        }
    }
}

impl PlannedTensor {
    pub(super) fn make(self) -> Result<BatchTensor, Error> {
        let Exported { values, mask, .. } = self.prepared.run()?;
        Ok(BatchTensor { values, mask, field: self.field, meaning: self.meaning })
    }
}
