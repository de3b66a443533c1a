//! What a batch will hold, planned before any of it is made.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use super::batch::{BatchColumn, BatchTensor};
use crate::Error;
use crate::chunks::{self, Meaning};
use crate::export::{Exported, Prepared, PreparedPadded, PreparedRagged, UniformMatrix};

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
                    Err(chunks) => chunks::joined(&chunks),
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
