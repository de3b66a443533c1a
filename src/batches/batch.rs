//! What a batch is made of.

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

use crate::chunks::Meaning;
use crate::error::Error;
use crate::memory::ManagedTensor;

/// Rows as tensors.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// What to predict from.
    pub features: Features,
    /// What to predict, if [`label`](super::BatchOptions::label) names it.
    pub label: Option<BatchTensor>,
    /// Number of rows.
    pub rows: usize,
}

/// The features of a batch.
#[expect(clippy::large_enum_variant, reason = "there is one a batch")]
#[derive(Debug)]
#[non_exhaustive]
pub enum Features {
    /// A tensor for each.
    Columns(Vec<BatchTensor>),
    /// All of them as (rows, columns), with [`matrix`](super::BatchOptions::matrix).
    Matrix(BatchTensor),
}

/// One tensor of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchTensor {
    /// The values.
    pub values: ManagedTensor,
    /// Which of them are valid, as booleans of the same shape; with
    /// [`NullPolicy::Masked`](crate::NullPolicy::Masked) only.
    pub mask: Option<ManagedTensor>,
    /// The column that it is; `None` for a matrix.
    pub field: Option<FieldRef>,
    pub(crate) meaning: Option<Meaning>,
}

impl Batch {
    /// The features as a matrix, if they are one.
    #[must_use]
    pub fn matrix(&self) -> Option<&BatchTensor> {
        match &self.features {
            Features::Matrix(matrix) => Some(matrix),
            Features::Columns(_) => None,
        }
    }

    /// A feature by its name; `None` if there is none, or features are a matrix.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&BatchTensor> {
        let is_it =
            |column: &&BatchTensor| column.field.as_ref().is_some_and(|field| field.name() == name);
        match &self.features {
            Features::Columns(columns) => columns.iter().find(is_it),
            Features::Matrix(_) => None,
        }
    }
}

impl BatchTensor {
    /// What the values stand for, if they are the codes of a dictionary. That of a later batch begins with the
    /// same values, and may have more.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; `InvalidArray` if there are more values than an array of their type can hold.
    pub fn dictionary(&self) -> Result<Option<ArrayRef>, Error> {
        self.meaning.as_ref().map(Meaning::array).transpose()
    }
}
