//! An array whose rows differ in length, read as bounds and values.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use crate::chunks::{Bounds, Items, checked, place, validity};
use crate::error::{Error, OffsetsProblem};
use crate::export::dense::Dense;
use crate::export::refusal;
use crate::extension::Extension;
use crate::ffi::DLDataType;
use crate::memory;

/// The rows and values of an array.
///
/// The producer may still write to an array's offsets. If they are shared, only the first and the last are read, once
/// each. All other uses read a copy, and that copy is what is checked.
pub(in crate::export) struct Rows {
    pub(super) bounds: Bounds,
    /// The start of the first row and the end of the last one, if the rows are contiguous.
    pub(super) ends: Option<Range<usize>>,
    /// The array's own offsets, to be shared.
    pub(super) own: Option<Buffer>,
    pub(super) nulls: Option<NullBuffer>,
    values: RowValues,
}

enum RowValues {
    List(ArrayRef, FieldRef),
    Bytes(Buffer),
    /// One buffer per row, from byte views.
    Views(Vec<Buffer>),
}

impl RowValues {
    fn len(&self) -> usize {
        match self {
            Self::List(items, _) => items.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Views(texts) => texts.len(),
        }
    }
}

impl Rows {
    pub(in crate::export) fn read(
        array: &dyn Array,
        field: &Field,
        physical: bool,
    ) -> Result<Self, Error> {
        match Extension::of(field)? {
            Some(Extension::Other(name)) if name == "arrow.json" => {}
            Some(Extension::VariableShapeTensor { .. }) => {
                return Err(refusal::variable_shape(field.data_type()));
            }
            Some(_) if !physical => return Err(refusal::extension(field)),
            _ => {}
        }
        let (bounds, values) = match array.data_type() {
            DataType::Utf8View => Self::views(array.as_string_view())?,
            DataType::BinaryView => Self::views(array.as_binary_view())?,
            other => match Bounds::of(array) {
                Some((bounds, Items::Bytes(bytes))) => (bounds, RowValues::Bytes(bytes.clone())),
                Some((bounds, Items::List(values, item))) => {
                    (bounds, RowValues::List(values.clone(), item.clone()))
                }
                _ => return Err(refusal::not_ragged(other)),
            },
        };
        let (own, nulls) = (bounds.buffer().cloned(), array.nulls().cloned());
        let rows = Self { ends: bounds.ends(), bounds, own, nulls, values };
        rows.check_ends()?;
        Ok(rows)
    }

    /// Whether the offsets can be shared.
    pub(super) fn is_shared(&self, wanted: Option<DLDataType>) -> bool {
        let own = self.bounds.dtype();
        let starts_at_0 = self.ends.as_ref().is_some_and(|ends| ends.start == 0);
        starts_at_0 && self.null_count() == 0 && wanted.is_none_or(|wanted| wanted == own)
    }

    /// The same rows with bounds that no other code can change.
    pub(in crate::export) fn settled(self) -> Result<Self, Error> {
        let Self { bounds, own, nulls, values, .. } = self;
        let nulls = checked(|| validity(nulls.as_ref()))?;
        let bounds = bounds.settled(values.len())?;
        Ok(Self { ends: bounds.ends(), bounds, own, nulls, values })
    }

    pub(super) fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    fn check_ends(&self) -> Result<(), Error> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let values = self.values.len();
        let wide = |offset: usize| i64::try_from(offset).unwrap_or(i64::MAX);
        let (offset, previous) = (wide(ends.end), wide(ends.start));
        if ends.end > values {
            return Err(Error::BadOffsets(OffsetsProblem::Beyond { offset, values }));
        }
        if ends.end < ends.start {
            let index = self.bounds.rows();
            return Err(Error::BadOffsets(OffsetsProblem::Decreasing { index, offset, previous }));
        }
        Ok(())
    }

    fn views<T: types::ByteViewType>(
        array: &arrow_array::GenericByteViewArray<T>,
    ) -> Result<(Bounds, RowValues), Error> {
        // The view of a null row may be invalid.
        let nulls = array.nulls();
        let buffers = memory::try_collect((0..array.len()).map(|row| match nulls {
            Some(nulls) if nulls.is_null(row) => Ok(Buffer::default()),
            _ => match place(array.views(), array.data_buffers(), row) {
                Ok((block, at)) => Ok(block.slice_with_length(at.start, at.len())),
                Err(problem) => Err(Error::BadOffsets(problem)),
            },
        }))?;
        let bounds = Bounds::Lengths(memory::collect(buffers.iter().map(Buffer::len))?);
        Ok((bounds, RowValues::Views(buffers)))
    }

    /// The values of a single row.
    pub(in crate::export) fn only(&self, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            RowValues::Views(buffers) => Ok(Dense::bytes(buffers[0].clone())),
            _ => self.chunk(&self.bounds.range(0), physical),
        }
    }

    /// The values of the valid rows, as contiguous pieces; and whether null rows have values, which are left out.
    pub(super) fn pieces(&self, physical: bool) -> Result<(Vec<Dense>, bool), Error> {
        if let RowValues::Views(buffers) = &self.values {
            return Ok((memory::collect(buffers.iter().cloned().map(Dense::bytes))?, false));
        }
        let (runs, dropped) = self.runs()?;
        Ok((memory::try_collect(runs.iter().map(|run| self.chunk(run, physical)))?, dropped))
    }

    fn chunk(&self, run: &Range<usize>, physical: bool) -> Result<Dense, Error> {
        match &self.values {
            RowValues::List(values, item) => {
                let values = values.slice(run.start, run.len());
                Dense::new(&values, item, physical).map_err(refusal::in_rows)
            }
            RowValues::Bytes(bytes) => {
                Ok(Dense::bytes(bytes.slice_with_length(run.start, run.len())))
            }
            RowValues::Views(_) => Ok(Dense::bytes(Buffer::default())),
        }
    }

    /// Contiguous ranges of the values of valid rows, at least one; and whether null rows have values.
    fn runs(&self) -> Result<(Vec<Range<usize>>, bool), Error> {
        if let (Some(ends), 0) = (&self.ends, self.null_count()) {
            return Ok((vec![ends.clone()], false));
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut dropped = false;
        for row in 0..self.bounds.rows() {
            let range = self.bounds.range(row);
            if range.is_empty() {
                continue;
            }
            if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                dropped = true;
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => {
                    let nbytes = 2 * size_of_val(runs.as_slice());
                    runs.try_reserve(1).map_err(|_| Error::OutOfMemory { nbytes })?;
                    runs.push(range);
                }
            }
        }
        if runs.is_empty() {
            runs.push(0..0);
        }
        Ok((runs, dropped))
    }
}
