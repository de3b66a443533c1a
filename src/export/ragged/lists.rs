//! The rows of a source and the plan of their values, before it is decided what of the rows is kept: offsets, lengths,
//! or one length.

use std::{mem, num::NonZero};

use arrow_array::Array;

use super::rows::{Rows, gathered, runs};
use crate::export::column::{Column, ColumnPlan, Survey};
use crate::export::options::{ExportOptions, NullPolicy, Reading};
use crate::export::source::{Source, check_type, empty};
use crate::{CopyPolicy, CopyReason, Error, alloc, export::cells::Dense, export::refusal};

/// Rows with their values planned.
pub(in crate::export) struct Lists {
    pub(in crate::export) rows: Vec<Rows>,
    reading: Reading,
    pub(in crate::export) values: ColumnPlan,
    /// The values if they are contiguous; else some of them.
    some: Vec<Dense>,
    /// Whether null rows have values, which are left out.
    pub(super) dropped: bool,
}

impl Lists {
    /// Reads at least one chunk of rows. Null rows are an error if the policy refuses them. The bounds of all rows are
    /// checked, unless there is one chunk whose bounds are shared.
    pub(in crate::export) fn read(
        source: Source<'_>,
        options: &ExportOptions,
        is_shared: impl Fn(&Rows) -> bool,
    ) -> Result<Vec<Rows>, Error> {
        let (row, none);
        let field = &source.field();
        let chunks: Vec<&dyn Array> = match source {
            Source::Array(array, _) => vec![array],
            Source::Chunks([], _) => {
                none = empty(field)?;
                vec![&none]
            }
            Source::Chunks(chunks, _) => {
                chunks.iter().map(|chunk| -> &dyn Array { chunk }).collect()
            }
            Source::Row(array, _, index) if index < array.len() => {
                row = array.slice(index, 1);
                vec![&row]
            }
            Source::Row(array, _, index) => {
                return Err(Error::NoSuchRow { index, len: array.len() });
            }
            Source::Table(..) => return Err(refusal::not_ragged(field.data_type())),
        };
        let (mut rows, mut null_count) = (Vec::with_capacity(chunks.len()), 0);
        for &chunk in &chunks {
            check_type(chunk, field)?;
            rows.push(Rows::read(chunk, field, options.reading())?);
            null_count += chunk.null_count();
        }
        if !matches!(&rows[..], [one] if is_shared(one)) {
            rows.iter().try_for_each(Rows::check)?;
        }
        if options.nulls == NullPolicy::Refuse && null_count > 0 {
            let (data_type, len) =
                (field.data_type().clone(), chunks.iter().map(|chunk| chunk.len()));
            return Err(Error::Nulls { data_type, null_count, len: len.sum() });
        }
        Ok(rows)
    }

    /// Plans the values of all valid rows.
    pub(in crate::export) fn plan(rows: Vec<Rows>, options: &ExportOptions) -> Result<Self, Error> {
        let reading = options.reading();
        let (mut survey, mut dropped, mut some) = (Survey::new(options), false, Vec::new());
        for chunk in &rows {
            let mut is_first = true;
            dropped |= chunk.each_run(reading, &mut |run| {
                match run.uniform_cells().filter(|_| !is_first) {
                    Some(cells) => survey.add_uniform(run.len(), cells.saturating_mul(run.len())),
                    None => {
                        let dense = run.dense();
                        survey.add(&dense);
                        some = vec![dense];
                    }
                }
                is_first = false;
                Ok(())
            })?;
        }
        let many = match rows.len() {
            _ if dropped => CopyReason::NullRows,
            1 => CopyReason::Scattered,
            chunks => CopyReason::Chunks(chunks),
        };
        let values = survey.finish(many).map_err(refusal::in_rows)?;
        Ok(Self { rows, reading, values, some, dropped })
    }

    /// The rows, and the values, which are contiguous.
    pub(super) fn shared(self) -> Result<(Vec<Rows>, Column), Error> {
        Ok((self.rows, self.values.with_chunks(self.some)?))
    }

    /// The rows, with bounds that no other code can change, and the values of the valid ones.
    pub(in crate::export) fn snapshot(self) -> Result<(Vec<Rows>, Column), Error> {
        let rows = alloc::try_collect(self.rows.into_iter().map(Rows::snapshot))?;
        let values = match gathered(&rows)? {
            Some(bytes) => self.values.with_gathered(bytes)?,
            None => self.values.with_chunks(runs(&rows, self.reading)?)?,
        };
        Ok((rows, values))
    }

    /// The values of rows without nulls, whose bounds do not matter any more.
    pub(in crate::export) fn values(self) -> Result<Column, Error> {
        match self.rows.iter().all(Rows::is_contiguous) {
            true => self.values.with_chunks(runs(&self.rows, self.reading)?),
            false => Ok(self.snapshot()?.1),
        }
    }

    /// Logical shape of the values. Drops what of the values was kept for it.
    pub(in crate::export) fn shape(&mut self) -> Vec<i64> {
        let some = mem::take(&mut self.some);
        some.first().map_or_else(Vec::new, |dense| dense.shape(self.values.rows))
    }

    /// Number of rows.
    pub(in crate::export) fn count(&self) -> usize {
        self.rows.iter().map(|chunk| chunk.bounds.rows()).sum()
    }

    /// The lengths of all rows; that of a null row is 0.
    pub(in crate::export) fn lengths(rows: &[Rows]) -> impl Iterator<Item = usize> {
        rows.iter().flat_map(Rows::lengths)
    }

    /// The error of a value that does not fit, with its row.
    pub(in crate::export) fn in_row(rows: &[Rows], error: Error) -> Error {
        error.in_row(|value| {
            let ends = Self::lengths(rows).scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            ends.take_while(|&end| end <= value).count()
        })
    }

    /// The validity of the rows.
    pub(in crate::export) fn mask(rows: &[Rows], copy: CopyPolicy) -> Result<Column, Error> {
        let masks = rows.iter().map(|rows| Dense::of_rows(rows.bounds.rows(), rows.nulls.as_ref()));
        Column::mask(alloc::try_collect(masks)?, copy, NonZero::new(1))
    }
}
