//! Plans a tensor for each column of a table.

use std::sync::Arc;

use arrow_schema::FieldRef;

use super::options::ExportOptions;
use super::prepare::{Exported, Prepared, prepare, prepare_by_type};
use super::source::{Source, check_columns};
use crate::{Error, Plan, chunks::column, error::Refusals};

/// A planned conversion of a table's columns to one tensor each.
#[must_use]
pub struct PreparedColumns(Vec<(FieldRef, Prepared)>);

/// Plans what [`columns`](super::columns) does, as [`prepare`] does for one tensor.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, BooleanArray, Float32Array, RecordBatch};
/// use arrow_dlpack::{ExportOptions, export};
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let y: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", y)])?;
/// let options = ExportOptions::default();
/// let prepared = export::prepare_columns(&batch, &options)?;
/// assert_eq!(prepared.plan().to_string(), "copies 2 bytes: Arrow stores booleans as bits");
/// assert_eq!(prepared.run()?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`columns`](super::columns), except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare_columns<'a>(
    source: impl Into<Source<'a>>,
    options: &ExportOptions,
) -> Result<PreparedColumns, Error> {
    let source = source.into();
    let Source::Table(batches, schema) = source else {
        let field = source.field().into_owned();
        let prepared = prepare(source, options);
        let prepared = prepared.map_err(|error| Error::in_column(field.name(), error))?;
        return Ok(PreparedColumns(vec![(Arc::new(field), prepared)]));
    };
    let count = check_columns(batches, schema)?;
    let (mut columns, mut refusals) = (Vec::with_capacity(count), Refusals::default());
    for (index, field) in schema.fields().iter().enumerate() {
        let prepared = prepare_by_type((&*column(batches, index), &**field), options);
        let prepared = refusals.note(field.name(), prepared)?;
        columns.extend(prepared.map(|prepared| (Arc::clone(field), prepared)));
    }
    refusals.finish()?;
    Ok(PreparedColumns(columns))
}

impl PreparedColumns {
    /// What [`run`](Self::run) will copy, column by column.
    pub fn plan(&self) -> Plan {
        let steps = self.0.iter().flat_map(|(_, prepared)| prepared.plan().steps);
        Plan { steps: steps.collect() }
    }

    /// Bytes that the plan copies.
    pub(crate) fn bytes_copied(&self) -> usize {
        let bytes = self.0.iter().map(|(_, prepared)| prepared.bytes_copied());
        bytes.fold(0, usize::saturating_add)
    }

    /// Runs the plan: returns a tensor for each column, with its field.
    ///
    /// # Errors
    ///
    /// As [`Prepared::run`], wrapped in `Column`.
    pub fn run(self) -> Result<Vec<(FieldRef, Exported)>, Error> {
        let made = |(field, prepared): (FieldRef, Prepared)| match prepared.run() {
            Ok(made) => Ok((field, made)),
            Err(error) => Err(Error::in_column(field.name(), error)),
        };
        self.0.into_iter().map(made).collect()
    }
}
