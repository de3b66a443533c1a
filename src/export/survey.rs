//! What the plan of a column depends on.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::options::{ExportOptions, NullPolicy};
use super::{codes, dense::Dense, target::Target, validity::NullCount};

use crate::{CopyReason, Error, Plan};

/// Facts about the chunks of a column, added up chunk by chunk, so that the chunks need not exist at once.
pub(super) struct Survey<'a> {
    options: &'a ExportOptions,
    /// The target of all chunks.
    target: Option<Result<Target, Error>>,
    reasons: Vec<CopyReason>,
    /// The type of the last chunk.
    data_type: DataType,
    /// Counted only if nulls are refused.
    nulls: NullCount,
    dictionaries: Vec<ArrayRef>,
    /// `None` if they overflow: chunks without cells take no memory.
    rows: Option<usize>,
    cells: usize,
    /// How many chunks have cells.
    filled: usize,
}

/// The plan of a column.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) target: Target,
    /// Whether more than one chunk has cells.
    pub(super) is_many: bool,
    /// Whether the chunks have different dictionaries.
    pub(super) of_several: bool,
    pub(super) rows: i64,
}

impl<'a> Survey<'a> {
    pub(super) fn new(options: &'a ExportOptions) -> Self {
        Self {
            options,
            target: None,
            reasons: Vec::new(),
            data_type: DataType::Null,
            nulls: NullCount::default(),
            dictionaries: Vec::new(),
            rows: Some(0),
            cells: 0,
            filled: 0,
        }
    }

    pub(super) fn add(&mut self, chunk: &Dense) {
        self.rows = self.rows.and_then(|rows| rows.checked_add(chunk.rows));
        self.cells += chunk.len();
        self.filled += usize::from(chunk.len() > 0);
        if self.options.nulls == NullPolicy::Refuse {
            self.nulls.add(chunk);
        }
        let is_new =
            |own: &&ArrayRef| !self.dictionaries.last().is_some_and(|last| Arc::ptr_eq(last, own));
        self.dictionaries.extend(chunk.dictionary.as_ref().filter(is_new).cloned());
        self.data_type.clone_from(&chunk.data_type);
        let target = self.target.get_or_insert_with(|| Target::new(chunk.dtype, self.options));
        if let Ok(known) = target {
            match known.reasons(chunk) {
                Ok(more) => merge(&mut self.reasons, more),
                Err(error) => *target = Err(error),
            }
        }
    }

    /// Adds a chunk that is copied for the same reasons as the one before.
    pub(super) fn add_uniform(&mut self, rows: usize, cells: usize) {
        self.rows = self.rows.and_then(|sum| sum.checked_add(rows));
        self.cells += cells;
        self.filled += usize::from(cells > 0);
    }

    /// The plan for the chunks, of which there was at least one; `many` is the reason for a copy of several.
    pub(super) fn finish(self, many: CopyReason) -> Result<Planned, Error> {
        let Self { options, target, mut reasons, data_type, nulls, dictionaries, .. } = self;
        let Self { rows, cells, filled, .. } = self;
        let rows = extent(rows)?;
        nulls.refuse()?;
        let target = target.unwrap_or(Err(Error::Overflow("number of chunks")))?;
        let of_several = filled != 1 && codes::are_several(&dictionaries, &data_type)?;
        if filled > 1 {
            reasons.extend(of_several.then_some(CopyReason::Dictionaries));
            reasons.push(many);
        }
        if cells == 0 {
            // An empty result needs no copy.
            reasons.clear();
        }
        let plan = Plan::of(reasons, target.nbytes(cells)?, options.copy)?;
        Ok(Planned { plan, target, is_many: filled > 1, of_several, rows })
    }
}

/// The number of rows as an extent.
pub(super) fn extent(rows: Option<usize>) -> Result<i64, Error> {
    rows.and_then(|rows| i64::try_from(rows).ok()).ok_or(Error::Overflow("length"))
}

/// Adds reasons that are not listed yet, and sums the counts of nulls.
pub(super) fn merge(reasons: &mut Vec<CopyReason>, more: Vec<CopyReason>) {
    for reason in more {
        let known = reasons.iter_mut().find(|known| match (&**known, &reason) {
            (CopyReason::Filled { .. }, CopyReason::Filled { .. }) => true,
            (known, reason) => known == reason,
        });
        match (known, reason) {
            (Some(CopyReason::Filled { count: sum }), CopyReason::Filled { count }) => {
                *sum += count
            }
            (Some(_), _) => {}
            (None, reason) => reasons.push(reason),
        }
    }
}
