//! Converts rows to batches of tensors.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, SchemaRef};

use super::batch::{Batch, BatchTensor, Features};
use crate::chunks::{self, Coded, Meaning, checked};
use crate::error::{Error, Refusals};
use crate::export::{self, ExportOptions, Exported, Prepared};

/// The conversion of rows to a batch.
pub(super) struct Converter {
    /// The columns that are read; the label is the last one.
    pub(super) schema: SchemaRef,
    /// The dictionaries of the coded columns.
    pub(super) coded: Vec<Option<Arc<Coded>>>,
    /// Whether errors name the columns.
    pub(super) is_table: bool,
    pub(super) has_label: bool,
    pub(super) as_matrix: bool,
    pub(super) features: ExportOptions,
    pub(super) label: ExportOptions,
}

/// A planned batch. It holds only the rows that the tensor needs.
struct Planned {
    prepared: Prepared,
    field: Option<FieldRef>,
    meaning: Option<Meaning>,
}

impl Converter {
    /// Converts at least one piece.
    pub(super) fn batch(&self, pieces: Vec<RecordBatch>) -> Result<Batch, Error> {
        let rows = pieces.iter().map(RecordBatch::num_rows).sum();
        let fields = self.schema.fields();
        let width = fields.len() - usize::from(self.has_label);
        let (mut refusals, mut planned) = (Refusals::default(), Vec::with_capacity(fields.len()));
        let column = |index, options| self.column(&pieces, index, options);
        match (self.as_matrix, self.is_table) {
            (true, true) => planned.extend(refusals.note_all(self.matrix(&pieces, width))),
            (true, false) => planned.push(column(0, &self.features)?),
            (false, _) => planned.extend((0..width).filter_map(|index| {
                refusals.note(fields[index].name(), column(index, &self.features))
            })),
        }
        if self.has_label {
            planned.extend(refusals.note(fields[width].name(), column(width, &self.label)));
        }
        refusals.finish()?;
        // Drops other references to the rows: then a copy that only serves to make memory exclusive is not needed.
        drop(pieces);
        let made = planned.into_iter().map(|planned| planned.make(self.is_table));
        let mut made = made.collect::<Result<Vec<_>, Error>>()?;
        let label = if self.has_label { made.pop() } else { None };
        let features = match self.as_matrix {
            true => Features::Matrix(made.remove(0)),
            false => Features::Columns(made),
        };
        Ok(Batch { features, label, rows })
    }

    fn column(
        &self,
        pieces: &[RecordBatch],
        index: usize,
        options: &ExportOptions,
    ) -> Result<Planned, Error> {
        let read = &self.schema.fields()[index];
        let prepared = export::prepare((&*chunks::column(pieces, index), &**read), options)?;
        let (field, meaning) = match &self.coded[index] {
            None => (read, None),
            Some(coded) => (&coded.field, Some(coded.meaning()?)),
        };
        Ok(Planned { prepared, field: Some(Arc::clone(field)), meaning })
    }

    fn matrix(&self, pieces: &[RecordBatch], width: usize) -> Result<Planned, Error> {
        let options = &self.features;
        let prepared = if self.has_label {
            let features: Vec<usize> = (0..width).collect();
            let (pieces, schema) = checked(|| {
                let pieces = pieces.iter().map(|piece| piece.project(&features));
                Ok((pieces.collect::<Result<Vec<_>, _>>()?, self.schema.project(&features)?))
            })?;
            export::prepare((&pieces[..], &schema), options)
        } else {
            export::prepare((pieces, &*self.schema), options)
        };
        Ok(Planned { prepared: prepared?, field: None, meaning: None })
    }
}

impl Planned {
    fn make(self, is_of_table: bool) -> Result<BatchTensor, Error> {
        let Self { prepared, field, meaning } = self;
        match (prepared.run(), &field) {
            (Ok(Exported { values, mask, .. }), _) => {
                Ok(BatchTensor { values, mask, field, meaning })
            }
            (Err(error), Some(field)) if is_of_table => Err(Error::in_column(field.name(), error)),
            (Err(error), _) => Err(error),
        }
    }
}
