//! The rows of a source and the plan of their values, before it is decided what of the rows is kept: offsets, lengths,
//! or one length.

use std::mem;
use std::num::NonZero;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteViewType, Int32Type};
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::cells::CellArray;
use super::column::{Column, ColumnPlan, Survey};
use super::options::{ExportOptions, NullPolicy, ReadAs};
use super::refusal;
use super::source::{Source, check_type, empty};
use crate::alloc::Fresh;
use crate::arrow_types::is_ragged;
use crate::chunks::{Bounds, RowItems, checked, place, validity};
use crate::extension::{Dimensions, Extension};
use crate::ffi::DLDataType;
use crate::task::Steps;
use crate::{CopyPolicy, CopyReason, Error, OffsetsProblem, alloc, layout};

/// Rows with their values planned.
pub(super) struct Lists {
    pub(super) rows: Vec<Rows>,
    read_as: ReadAs,
    pub(super) values: ColumnPlan,
    /// The values if they are contiguous; else some of them.
    some: Vec<CellArray>,
    /// Whether null rows have values, which are left out.
    pub(super) dropped: bool,
}

impl Lists {
    /// Reads at least one chunk of rows. Null rows are an error if the policy refuses them. The bounds of all rows are
    /// checked, unless there is one chunk whose bounds are shared.
    pub(super) fn read(
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
            Source::Table(..) => return Err(refusal::not_ragged(field)),
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
    pub(super) fn plan(rows: Vec<Rows>, options: &ExportOptions) -> Result<Self, Error> {
        let read_as = options.reading();
        let (mut survey, mut dropped, mut some) = (Survey::new(options), false, Vec::new());
        for chunk in &rows {
            let mut is_first = true;
            dropped |= chunk.each_run(read_as, &mut |run| {
                match run.uniform_cells().filter(|_| !is_first) {
                    Some(cells) => survey.add_uniform(run.len(), cells.saturating_mul(run.len())),
                    None => {
                        let cells = run.cells();
                        survey.add(&cells);
                        some = vec![cells];
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
        Ok(Self { rows, read_as, values, some, dropped })
    }

    /// The rows, and the values, which are contiguous.
    pub(super) fn shared(self) -> Result<(Vec<Rows>, Column), Error> {
        Ok((self.rows, self.values.with_chunks(self.some)?))
    }

    /// The rows, with bounds that no other code can change, and the values of the valid ones.
    pub(super) fn snapshot(self) -> Result<(Vec<Rows>, Column), Error> {
        let rows = alloc::try_collect(self.rows.into_iter().map(Rows::snapshot))?;
        // The plan shares the values of a single run, as those of one row of byte views.
        let bytes = if self.values.is_many { gathered(&rows)? } else { None };
        let values = match bytes {
            Some(bytes) => self.values.with_gathered(bytes)?,
            None => self.values.with_chunks(runs(&rows, self.read_as)?)?,
        };
        Ok((rows, values))
    }

    /// The values of rows without nulls, whose bounds do not matter any more.
    pub(super) fn values(self) -> Result<Column, Error> {
        match self.rows.iter().all(Rows::is_contiguous) {
            true => self.values.with_chunks(runs(&self.rows, self.read_as)?),
            false => Ok(self.snapshot()?.1),
        }
    }

    /// Logical shape of the values. Drops what of the values was kept for it.
    pub(super) fn shape(&mut self) -> Vec<i64> {
        let some = mem::take(&mut self.some);
        some.first().map_or_else(Vec::new, |cells| cells.shape(self.values.rows))
    }

    /// Number of rows.
    pub(super) fn count(&self) -> usize {
        self.rows.iter().map(|chunk| chunk.bounds.rows()).sum()
    }

    /// The lengths of all rows; that of a null row is 0.
    pub(super) fn lengths(rows: &[Rows]) -> impl Iterator<Item = usize> {
        rows.iter().flat_map(Rows::lengths)
    }

    /// The error of a value that does not fit, with its row.
    pub(super) fn in_row(rows: &[Rows], error: Error) -> Error {
        error.in_row(|value| {
            let ends = Self::lengths(rows).scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            ends.take_while(|&end| end <= value).count()
        })
    }

    /// The validity of the rows.
    pub(super) fn mask(rows: &[Rows], copy: CopyPolicy) -> Result<Column, Error> {
        let masks =
            rows.iter().map(|rows| CellArray::of_rows(rows.bounds.rows(), rows.nulls.as_ref()));
        Column::mask(alloc::try_collect(masks)?, copy, NonZero::new(1))
    }
}

/// The rows and values of an array.
///
/// The producer may still write to an array's offsets. If they are shared, only the first and the last are read, once
/// each. A plan reads the others where they are, and checks each range that it uses. What is copied is made from a
/// [snapshot](Self::snapshot) copy, which is checked again.
pub(super) struct Rows {
    pub(super) bounds: Bounds,
    /// The start of the first row and the end of the last one, if the rows are contiguous.
    pub(super) ends: Option<Range<usize>>,
    pub(super) nulls: Option<NullBuffer>,
    values: RowValues,
}

#[derive(Clone)]
enum RowValues {
    List(ArrayRef, FieldRef),
    Bytes(Buffer),
    /// The producer's byte views, which hold short values, and the buffers of the others.
    Views(ScalarBuffer<u128>, Vec<Buffer>),
}

/// Contiguous values of an array.
pub(super) enum Run<'a> {
    Rows(&'a CellArray, Range<usize>),
    Bytes(&'a Buffer, Range<usize>),
}

impl Run<'_> {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        let (Self::Rows(_, range) | Self::Bytes(_, range)) = self;
        range.len()
    }

    /// The cells of each value, if every run of the array is copied for the same reasons.
    pub(super) fn uniform_cells(&self) -> Option<usize> {
        match self {
            Self::Rows(all, _) => all.uniform_cells(),
            Self::Bytes(..) => Some(1),
        }
    }

    pub(super) fn cells(&self) -> CellArray {
        match self {
            Self::Rows(all, range) if (0..all.rows) == *range => (*all).clone(),
            Self::Rows(all, range) => all.slice(range.start, range.len()),
            Self::Bytes(block, range) => {
                CellArray::bytes(block.slice_with_length(range.start, range.len()))
            }
        }
    }
}

impl RowValues {
    /// Number of values, of which byte views have no count.
    fn len(&self) -> usize {
        match self {
            Self::List(items, _) => items.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Views(..) => usize::MAX,
        }
    }
}

impl Rows {
    pub(super) fn read(array: &dyn Array, field: &Field, read_as: ReadAs) -> Result<Self, Error> {
        fn views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> (Bounds, RowValues) {
            let values = RowValues::Views(array.views().clone(), array.data_buffers().to_vec());
            (Bounds::ByteViews(array.views().clone()), values)
        }
        match Extension::of(field)? {
            Some(Extension::Other(name)) if name == "arrow.json" => {}
            Some(Extension::VariableShapeTensor { .. }) => {
                return Err(refusal::variable_shape(field.data_type()));
            }
            // What has a tensor form has one length.
            Some(Extension::Bool8 | Extension::FixedShapeTensor { .. }) => {
                return Err(refusal::not_ragged(field));
            }
            Some(opaque) if opaque.dtype().is_some() => {
                return Err(refusal::not_ragged(field));
            }
            Some(_) if !read_as.physical => return Err(refusal::extension(field)),
            _ => {}
        }
        let (bounds, values) = match array.data_type() {
            DataType::Utf8View => views(array.as_string_view()),
            DataType::BinaryView => views(array.as_binary_view()),
            _ => match Bounds::of(array) {
                Some((bounds, RowItems::Bytes(bytes))) => (bounds, RowValues::Bytes(bytes.clone())),
                Some((bounds, RowItems::List(values, item))) => {
                    (bounds, RowValues::List(values.clone(), item.clone()))
                }
                _ => return Err(refusal::not_ragged(field)),
            },
        };
        let rows = Self { ends: bounds.ends(), bounds, nulls: array.nulls().cloned(), values };
        rows.check_ends()?;
        Ok(rows)
    }

    /// Whether the offsets can be shared.
    pub(super) fn is_shared(&self, wanted: Option<DLDataType>) -> bool {
        let own = self.bounds.dtype();
        let starts_at_0 = self.ends.as_ref().is_some_and(|ends| ends.start == 0);
        starts_at_0 && self.null_count() == 0 && wanted.is_none_or(|wanted| wanted == own)
    }

    /// Checks all bounds where they are.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.bounds.check(self.values.len())
    }

    /// The same rows with bounds and validity that no other code can change.
    pub(super) fn snapshot(self) -> Result<Self, Error> {
        let nulls = checked(|| validity(self.nulls.as_ref()))?;
        let bounds = self.bounds.snapshot(self.values.len())?;
        Ok(Self { ends: bounds.ends(), bounds, nulls, ..self })
    }

    /// The same rows, without the values from one on in each; those of byte views are whole.
    pub(super) fn cut(&self, width: usize) -> Result<Self, Error> {
        let bounds = self.bounds.cut(width)?;
        let (nulls, values) = (self.nulls.clone(), self.values.clone());
        Ok(Self { ends: bounds.ends(), bounds, nulls, values })
    }

    pub(super) fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether the values of all rows follow one another.
    pub(super) fn is_contiguous(&self) -> bool {
        self.ends.is_some() && self.null_count() == 0
    }

    /// The lengths of the rows; that of a null row is 0.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.bounds.lengths(self.nulls.as_ref())
    }

    fn check_ends(&self) -> Result<(), Error> {
        match &self.ends {
            Some(ends) => self.check_range(ends, self.bounds.rows()),
            None => Ok(()),
        }
    }

    /// Checks the range of values before the offset of this index.
    fn check_range(&self, range: &Range<usize>, index: usize) -> Result<(), Error> {
        let all = self.ends.as_ref().map_or(self.values.len(), |ends| ends.end);
        let values = all.min(self.values.len());
        let wide = |offset: usize| i64::try_from(offset).unwrap_or(i64::MAX);
        let (offset, previous) = (wide(range.end), wide(range.start));
        if range.end > values {
            return Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }));
        }
        let first = self.ends.as_ref().map_or(0, |ends| ends.start.min(ends.end));
        if range.end < range.start || range.start < first {
            return Err(Error::BadOffsets(OffsetsProblem::Decreasing { index, offset, previous }));
        }
        Ok(())
    }

    /// The values of a single row.
    pub(super) fn only(self, read_as: ReadAs) -> Result<CellArray, Error> {
        match &self.values {
            RowValues::Views(..) => {
                let mut only = no_values();
                self.each_run(read_as, &mut |run| {
                    only = run.cells();
                    Ok(())
                })?;
                Ok(only)
            }
            _ => {
                let rows = self.snapshot()?;
                rows.span(&rows.bounds.range(0), read_as)
            }
        }
    }

    /// Calls a function with the values of the valid rows, as contiguous runs, at least one. Returns whether null rows
    /// have values, which are left out.
    pub(super) fn each_run(
        &self,
        read_as: ReadAs,
        each: &mut dyn FnMut(Run<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if let (Bounds::ByteViews(checked), RowValues::Views(views, blocks)) =
            (&self.bounds, &self.values)
        {
            let (mut has_text, mut steps) = (false, Steps::default());
            // The view of a null row may be invalid.
            for (row, &view) in checked.iter().enumerate().filter(|&(row, _)| !self.is_null(row)) {
                steps.done(size_of_val(&view))?;
                let (block, at) = place(view, row, views, blocks).map_err(Error::BadOffsets)?;
                if !at.is_empty() {
                    has_text = true;
                    each(Run::Bytes(block, at))?;
                }
            }
            return if has_text {
                Ok(false)
            } else {
                each(Run::Rows(&no_values(), 0..0)).map(|()| false)
            };
        }
        let all = self.ends.clone().unwrap_or(0..self.values.len());
        let span = self.span(&all, read_as)?;
        if self.is_contiguous() {
            return each(Run::Rows(&span, 0..all.len())).map(|()| false);
        }
        let (mut run, mut dropped, mut has_run) = (all.start..all.start, false, false);
        let mut end_run = |run: &Range<usize>, is_last: bool| {
            if run.is_empty() && (has_run || !is_last) {
                return Ok(());
            }
            has_run = true;
            each(Run::Rows(&span, run.start - all.start..run.end - all.start))
        };
        let mut steps = Steps::default();
        for row in 0..self.bounds.rows() {
            steps.done(size_of::<i64>())?;
            let range = self.bounds.range(row);
            if self.is_null(row) {
                dropped |= !range.is_empty();
            } else if range.start == run.end && range.end >= range.start {
                run.end = range.end;
            } else if !range.is_empty() {
                self.check_range(&run, row)?;
                end_run(&run, false)?;
                run = range;
            }
        }
        self.check_range(&run, self.bounds.rows())?;
        end_run(&run, true)?;
        Ok(dropped)
    }

    /// The values of contiguous rows.
    fn span(&self, all: &Range<usize>, read_as: ReadAs) -> Result<CellArray, Error> {
        match &self.values {
            RowValues::List(values, item) => {
                let values = values.slice(all.start, all.len());
                CellArray::new(&values, item, read_as).map_err(refusal::in_rows)
            }
            RowValues::Bytes(bytes) => {
                Ok(CellArray::bytes(bytes.slice_with_length(all.start, all.len())))
            }
            RowValues::Views(..) => Ok(no_values()),
        }
    }
}

/// The values of all valid rows, as contiguous runs.
pub(super) fn runs(rows: &[Rows], read_as: ReadAs) -> Result<Vec<CellArray>, Error> {
    let mut runs = Vec::new();
    for chunk in rows {
        chunk.each_run(read_as, &mut |run| {
            let nbytes = 2 * size_of_val(runs.as_slice());
            runs.try_reserve(1).map_err(|_| Error::OutOfMemory { nbytes })?;
            runs.push(run.cells());
            Ok(())
        })?;
    }
    Ok(runs)
}

/// The bytes of the valid rows of byte views, one row behind the other; `None` for other rows.
pub(super) fn gathered(rows: &[Rows]) -> Result<Option<Buffer>, Error> {
    if !rows.iter().all(|chunk| matches!(chunk.values, RowValues::Views(..))) {
        return Ok(None);
    }
    let nbytes = rows.iter().flat_map(Rows::lengths).fold(0, usize::saturating_add);
    let mut steps = Steps::default();
    let bytes = Fresh::try_build::<u8>(nbytes, |out| {
        for chunk in rows {
            let (Bounds::ByteViews(checked), RowValues::Views(views, blocks)) =
                (&chunk.bounds, &chunk.values)
            else {
                continue;
            };
            for (row, &view) in checked.iter().enumerate().filter(|&(row, _)| !chunk.is_null(row)) {
                let (block, at) = place(view, row, views, blocks).map_err(Error::BadOffsets)?;
                steps.done(at.len().max(size_of_val(&view)))?;
                out.extend_from_slice(&block[at]);
            }
        }
        Ok(())
    })?;
    Ok(Some(bytes.into_buffer()))
}

fn no_values() -> CellArray {
    CellArray::bytes(Buffer::default())
}

/// A row, whose first axis, of extent 1, is the axis of rows.
pub(super) fn read_row(
    array: &dyn Array,
    field: &Field,
    index: usize,
    read_as: ReadAs,
) -> Result<CellArray, Error> {
    let len = array.len();
    if index >= len {
        return Err(Error::NoSuchRow { index, len });
    }
    let row = array.slice(index, 1);
    let dimensions = match Extension::of(field)? {
        Some(Extension::VariableShapeTensor { dimensions, .. }) => Some(dimensions),
        None | Some(Extension::Other(_)) if is_ragged(field.data_type()) => None,
        _ => return CellArray::new(&row, field, read_as),
    };
    if row.is_null(0) {
        // A null row has no shape to fill.
        return Err(refusal::nulls(&row, 1));
    }
    match dimensions {
        Some(dimensions) => variable_shape(&row, &dimensions, read_as),
        None => {
            let values = Rows::read(&row, field, read_as)?.only(read_as)?;
            let extent = i64::try_from(values.rows).map_err(|_| Error::Overflow("length"))?;
            Ok(values.in_one_row(&[extent], &[0]))
        }
    }
}

/// The row of an `arrow.variable_shape_tensor`, whose storage type `Extension::of` has checked.
fn variable_shape(
    row: &dyn Array,
    dimensions: &Dimensions,
    read_as: ReadAs,
) -> Result<CellArray, Error> {
    let row = row.as_struct();
    let (Some(data), Some(shape)) = (row.column_by_name("data"), row.column_by_name("shape"))
    else {
        return Err(refusal::unsupported(row.data_type()));
    };
    for child in [data, shape] {
        if child.is_null(0) {
            return Err(refusal::nulls(child, 1));
        }
    }
    let extents = shape.as_fixed_size_list().value(0);
    if extents.null_count() > 0 {
        return Err(refusal::nulls(&extents, extents.null_count()));
    }
    let item: Vec<i64> =
        extents.as_primitive::<Int32Type>().values().iter().map(|&extent| extent.into()).collect();
    let list = Field::new("data", data.data_type().clone(), true);
    let values = Rows::read(data, &list, read_as)?.only(read_as)?;
    if layout::element_count(&item)? != values.rows {
        return Err(Error::MalformedExtension {
            name: "arrow.variable_shape_tensor".to_owned(),
            problem: format!("a row of shape {item:?} has {} values", values.rows),
        });
    }
    let order = dimensions.order(item.len());
    Ok(values.in_one_row(&item, &order))
}
