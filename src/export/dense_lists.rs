//! A column of lists whose rows have one length: a tensor with an axis of their values, or fixed-size lists.

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, FixedSizeListArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::Field;
use arrow_select::take::take;

use super::column::{Axes, Column};
use super::lists::{Lists, Rows};
use super::options::{ExportOptions, NullPolicy};
use super::{padded::Frame, source::Source};
use crate::chunks::{Bounds, RowItems, addresses, checked, footprint, reserve};
use crate::{
    CopyPolicy, CopyReason, Error, ManagedTensor, Plan, alloc, ffi::DLDataType, layout, task::Steps,
};

/// Which length the rows of lists must have.
#[derive(Clone, Copy)]
pub(crate) enum RowLength<'a> {
    /// One that they share.
    Any,
    /// That of the batches before, if it is set; otherwise these rows set it.
    SameAcrossBatches(&'a OnceLock<usize>),
}

impl RowLength<'_> {
    fn get(self) -> Option<usize> {
        match self {
            Self::Any => None,
            Self::SameAcrossBatches(length) => length.get().copied(),
        }
    }

    /// The length, given that of these rows; 0 if there are no valid rows so far.
    fn settle(self, found: Option<usize>) -> usize {
        match (self, found) {
            (Self::SameAcrossBatches(length), Some(found)) => *length.get_or_init(|| found),
            (_, found) => found.unwrap_or(0),
        }
    }
}

/// A planned tensor of lists of one length, or the planned validity of their values.
pub(super) struct DenseLists {
    pub(super) plan: Plan,
    pub(super) shape: Vec<i64>,
    lists: Lists,
    length: usize,
    /// Where null rows are padded to the length of the others.
    frame: Option<Frame>,
}

impl DenseLists {
    pub(super) fn new(
        source: Source<'_>,
        options: &ExportOptions,
        length: RowLength<'_>,
    ) -> Result<Self, Error> {
        Self::plan(source, options, false, length)
    }

    /// [`Self::new`] for the validity of the values, at all levels.
    pub(super) fn mask(
        source: Source<'_>,
        options: &ExportOptions,
        length: RowLength<'_>,
    ) -> Result<Self, Error> {
        // The dtype says how decimals are read.
        let dtype = options.dtype.filter(|dtype| dtype.is_float());
        let options = options.clone().with_nulls(NullPolicy::Masked).with_dtype(dtype);
        Self::plan(source, &options, true, length)
    }

    fn plan(
        source: Source<'_>,
        options: &ExportOptions,
        is_mask: bool,
        length: RowLength<'_>,
    ) -> Result<Self, Error> {
        let rows = Lists::read(source, options, |_| false)?;
        let found = length_of(rows.iter().map(ranges), length.get());
        let found = match found {
            // If the items have no tensor form, ragged and padded would refuse them too: say that instead.
            Err(uneven @ Error::RowLength { .. }) => {
                return Err(match Lists::plan(rows, options) {
                    Err(error @ Error::UnsupportedType { .. }) => error,
                    _ => uneven,
                });
            }
            found => found?,
        };
        let length = length.settle(found);
        let is_padded = length > 0 && rows.iter().any(|rows| rows.null_count() > 0);
        // Padding copies the values in any case, so that theirs may be copied too; a mask does not contain them.
        let inner = if is_padded { CopyPolicy::IfNeeded } else { options.copy };
        let of_values = if is_mask { CopyPolicy::IfNeeded } else { inner };
        let mut lists = Lists::plan(rows, &options.clone().with_copy(of_values)).map_err(nulls)?;
        let values = lists.shape();
        if is_mask {
            let cells = layout::element_count(&values)?;
            lists.values = lists.values.into_mask(cells, inner)?;
        }
        let rows = lists.count();
        if !is_padded && rows.checked_mul(length) != usize::try_from(lists.values.rows).ok() {
            return Err(Error::offsets_changed());
        }
        let target = &lists.values.target;
        let fill = target.fill.unwrap_or_default();
        let frame = Frame::new([rows, length], &values, target.dtype, fill)?;
        let mut plan = lists.values.plan.clone();
        if is_padded {
            let reasons = vec![CopyReason::Padded(length)];
            plan = plan.and(Plan::decide(reasons, frame.nbytes()?, options.copy)?);
        }
        let shape = frame.shape.clone();
        Ok(Self { plan, shape, lists, length, frame: is_padded.then_some(frame) })
    }

    pub(super) fn dtype(&self) -> DLDataType {
        self.lists.values.target.dtype
    }

    pub(super) fn is_padded(&self) -> bool {
        self.frame.is_some()
    }

    /// The values of rows that are not padded.
    pub(super) fn into_column(self) -> Result<Column, Error> {
        let mut values = self.lists.values()?;
        values.planned.axes = Axes::Lists([self.shape[0], self.shape[1]]);
        Ok(values)
    }

    /// Runs the plan. Also returns the dictionary, if the values are codes.
    pub(super) fn run(self) -> Result<(ManagedTensor, Option<ArrayRef>), Error> {
        let Some(frame) = self.frame else { return self.into_column()?.run() };
        let (rows, values) = self.lists.snapshot()?;
        if length_of(rows.iter().map(ranges), None)?.is_some_and(|length| length != self.length) {
            return Err(Error::offsets_changed());
        }
        let (values, dictionary) = values.run().map_err(|error| Lists::in_row(&rows, error))?;
        Ok((frame.run(&values, Lists::lengths(&rows))?, dictionary))
    }
}

/// The length of all valid rows, which is the known one, if it is known; otherwise `None` if there are none.
fn length_of<'a>(
    chunks: impl Iterator<Item = (&'a Bounds, Option<&'a NullBuffer>)>,
    known: Option<usize>,
) -> Result<Option<usize>, Error> {
    let (mut found, mut first, mut steps) = (known, 0, Steps::default());
    for (bounds, nulls) in chunks {
        for (at, length) in bounds.lengths(nulls).enumerate() {
            steps.done(size_of::<i64>())?;
            if nulls.is_some_and(|nulls| nulls.is_null(at)) {
                continue;
            }
            let expected = *found.get_or_insert(length);
            if length != expected {
                return Err(Error::RowLength { row: first + at, length, expected });
            }
        }
        first += bounds.rows();
    }
    Ok(found)
}

fn ranges(rows: &Rows) -> (&Bounds, Option<&NullBuffer>) {
    (&rows.bounds, rows.nulls.as_ref())
}

/// A mask shows the nulls in the rows too.
fn nulls(error: Error) -> Error {
    match error {
        Error::NullsInRows { data_type, null_count, len } => {
            Error::Nulls { data_type, null_count, len }
        }
        error => error,
    }
}

/// Chunks of lists as fixed-size lists of one length.
pub(crate) fn fixed_size(
    chunks: &[ArrayRef],
    length: RowLength<'_>,
    copy: CopyPolicy,
) -> Result<Vec<ArrayRef>, Error> {
    let chunks = alloc::try_collect(chunks.iter().map(addresses))?;
    let lists: Vec<_> =
        chunks.iter().filter_map(|chunk| Some((chunk, Bounds::of(chunk)?))).collect();
    lists.iter().try_for_each(|(_, (bounds, items))| bounds.check(items.len()))?;
    let ranges = lists.iter().map(|(list, (bounds, _))| (bounds, list.nulls()));
    let length = length.settle(length_of(ranges, length.get())?);
    let made = lists.iter().map(|(list, rows)| of_length(list, rows, length, copy));
    made.collect()
}

/// A chunk of such lists: over the same values, or over copies where null rows have to be padded, or rows do not lie one
/// behind the other.
fn of_length(
    lists: &ArrayRef,
    (bounds, items): &(Bounds, RowItems<'_>),
    length: usize,
    copy: CopyPolicy,
) -> Result<ArrayRef, Error> {
    let &RowItems::List(values, item) = items else { return Ok(Arc::clone(lists)) };
    let (rows, valid) = (0..lists.len(), |row: &usize| lists.is_valid(*row));
    let count = rows.len().checked_mul(length).ok_or_else(Error::overflow("length"))?;
    let first = rows.clone().next().map_or(0, |row| bounds.range(row).start);
    let lies = |row: usize| bounds.range(row) == (first + row * length..first + (row + 1) * length);
    let values = if count == 0 {
        values.slice(0, 0)
    } else if rows.clone().all(lies) {
        values.slice(first, count)
    } else {
        let nbytes = footprint::of_type(values.data_type(), count);
        if copy == CopyPolicy::Never {
            let nbytes = nbytes.unwrap_or(usize::MAX);
            return Err(Error::CopyForbidden { reason: CopyReason::Scattered, nbytes });
        }
        reserve(nbytes.and_then(|nbytes| nbytes.checked_add(count.checked_mul(9)?)))?;
        let cells = rows.flat_map(|row| {
            let start = valid(&row).then(|| bounds.range(row).start);
            (0..length).map(move |cell| Some(u64::try_from(start? + cell).unwrap_or(u64::MAX)))
        });
        let cells = cells.collect::<UInt64Array>();
        checked(|| take(values, &cells, None))?
    };
    let item = Arc::new(Field::clone(item).with_nullable(true));
    let length = i32::try_from(length).map_err(|_| Error::Overflow("length"))?;
    let (rows, nulls) = (lists.len(), lists.nulls().cloned());
    let made =
        checked(|| FixedSizeListArray::try_new_with_length(item, length, values, nulls, rows));
    Ok(Arc::new(made?))
}
