//! A tensor that could be made: what it takes is decided here, and done when it is run.

use arrow_array::Array;
use arrow_schema::Field;

use super::column::Column;
use super::dense::Dense;
use super::matrix::Matrix;
use super::options::ExportOptions;
use super::source::{Source, check_type, empty};
use super::{primitive, row};
use crate::copy::CopyReason;
use crate::error::Error;
use crate::memory::ManagedTensor;
use crate::plan::Plan;

/// A conversion that has been decided, and not been done.
///
/// It holds what it converts, and nothing of what it will make.
#[must_use]
pub struct Prepared(Kind);

enum Kind {
    Column(Column),
    Matrix(Matrix),
}

/// Decides what [`tensor`](super::tensor) does, and does none of it.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::{ExportOptions, export};
/// use arrow_schema::{DataType, Field};
///
/// let array = BooleanArray::from(vec![true, false, true]);
/// let field = Field::new("x", DataType::Boolean, false);
/// let prepared = export::prepare((&array, &field), &ExportOptions::default())?;
/// assert_eq!(prepared.plan().to_string(), "copies 3 bytes: Arrow stores booleans as bits");
/// assert_eq!(prepared.run()?.shape(), [3]);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`tensor`](super::tensor), but for values that do not fit and for memory.
pub fn prepare<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
) -> Result<Prepared, Error> {
    let source = source.into();
    Ok(Prepared(match source {
        Source::Table(batches, schema) => Kind::Matrix(Matrix::new(batches, schema, options)?),
        _ => {
            let chunks = chunks(source, options)?;
            let many = CopyReason::Chunks(chunks.len());
            Kind::Column(axes_of(source, Column::new(chunks, many, options)?))
        }
    }))
}

impl Prepared {
    /// Decides what [`mask`](super::mask) does.
    pub(crate) fn mask(source: Source<'_>, options: &ExportOptions) -> Result<Self, Error> {
        Ok(Self(match source {
            Source::Table(batches, schema) => Kind::Matrix(Matrix::mask(batches, schema, options)?),
            _ => {
                let chunks = chunks(source, options)?;
                Kind::Column(axes_of(source, Column::mask(&chunks, options.copy)?))
            }
        }))
    }

    /// What [`run`](Self::run) will copy, and why.
    pub fn plan(&self) -> &Plan {
        match &self.0 {
            Kind::Column(column) => &column.plan,
            Kind::Matrix(matrix) => &matrix.plan,
        }
    }

    /// Does what was decided.
    ///
    /// # Errors
    ///
    /// `ValueDoesNotFit`, within `Column` for tables; `OutOfMemory`.
    pub fn run(self) -> Result<ManagedTensor, Error> {
        match self.0 {
            Kind::Column(column) => column.run(),
            Kind::Matrix(matrix) => matrix.run(),
        }
    }
}

/// Most arrays are numbers to be shared, for which there is nothing to prepare: these, `None` for others.
#[inline]
pub(crate) fn share(
    source: Source<'_>,
    options: &ExportOptions,
) -> Option<Result<ManagedTensor, Error>> {
    let Source::Array(array, field) = source else { return None };
    let plain = field.metadata().is_empty() && array.data_type() == field.data_type();
    if !plain || *options != ExportOptions::default() {
        return None;
    }
    match primitive::vector(array) {
        Some(vector) => Some(Ok(vector.share())),
        None => primitive::nested(array),
    }
}

/// The chunks of what is no table, at least one.
fn chunks(source: Source<'_>, options: &ExportOptions) -> Result<Vec<Dense>, Error> {
    let dense = |array: &dyn Array, field: &Field| {
        check_type(array, field)?;
        Dense::new(array, field, options.physical)
    };
    match source {
        Source::Array(array, field) => Ok(vec![dense(array, field)?]),
        Source::Row(array, field, index) => {
            check_type(array, field)?;
            Ok(vec![row::of(array, field, index, options.physical)?])
        }
        Source::Chunks([], field) => Ok(vec![dense(&empty(field)?, field)?]),
        Source::Chunks(arrays, field) => arrays.iter().map(|array| dense(array, field)).collect(),
        Source::Table(..) => unreachable!("a table is a matrix"),
    }
}

/// One row has no axis of rows.
fn axes_of(source: Source<'_>, column: Column) -> Column {
    match source {
        Source::Row(..) => column.without_rows(),
        _ => column,
    }
}
