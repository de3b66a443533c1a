//! One column of a pool.

use std::{iter, sync::Arc};

use arrow_array::{
    Array, ArrayRef, StructArray, UInt64Array, cast::AsArray, make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;

use super::items::{Drawn, PooledItems};
use crate::chunks::{as_one, check_taken, check_taken_at, checked};
use crate::{Error, alloc, chunks, chunks::footprint::items, task};

/// Rows between two checks whether to end.
const BLOCK: usize = 1 << 16;

/// The rows of a column that have not been drawn, and those that have.
pub(super) enum PooledColumn {
    FixedWidth(FixedWidth),
    /// The rows that were read of a column whose rows have no fixed width. They stay in place until a refill.
    Other(Option<ArrayRef>),
}

/// A column of numbers or booleans, or of as many of them in each row.
pub(super) struct FixedWidth {
    data_type: DataType,
    values: Box<dyn Drawn>,
    validity: Validity,
    /// That of the items, if rows are fixed-size lists.
    inner: Option<Validity>,
}

/// The validity as bytes, once there are nulls.
struct Validity {
    bytes: Option<PooledItems<u8>>,
    /// Bytes of a row.
    each: usize,
    /// Bytes that all rows have.
    len: usize,
}

impl PooledColumn {
    pub(super) fn new(data_type: &DataType) -> Self {
        let inner = match data_type {
            DataType::FixedSizeList(item, size) if item.data_type().primitive_width().is_some() => {
                usize::try_from(*size).ok().filter(|&size| size > 0).map(Validity::new)
            }
            _ => None,
        };
        match values_of(data_type) {
            None => Self::Other(None),
            Some(values) => {
                let (data_type, validity) = (data_type.clone(), Validity::new(1));
                Self::FixedWidth(FixedWidth { data_type, values, validity, inner })
            }
        }
    }

    pub(super) fn needs_positions(&self) -> bool {
        matches!(self, Self::Other(_))
    }

    /// Adds chunks; `left` are the positions of the rows that have not been drawn.
    pub(super) fn append(&mut self, chunks: &[ArrayRef], left: &[u64]) -> Result<(), Error> {
        match self {
            Self::FixedWidth(fixed) => chunks.iter().try_for_each(|chunk| fixed.append(chunk)),
            Self::Other(rows) => {
                let mut all = Vec::new();
                for left in left.chunks(BLOCK) {
                    task::check()?;
                    all.extend(rows.as_ref().map(|rows| take_if_it_fits(rows, left)).transpose()?);
                }
                all.extend(chunks.iter().cloned());
                *rows = None;
                if !all.is_empty() {
                    let all = as_one(&all)?;
                    check_taken(&all)?;
                    *rows = Some(all);
                }
                Ok(())
            }
        }
    }

    /// Draws rows, by positions among those that are left.
    pub(super) fn draw(&mut self, draws: &[usize]) -> Result<(), Error> {
        match self {
            Self::FixedWidth(FixedWidth { values, validity, inner, .. }) => {
                values.draw(draws)?;
                validity.draw(draws)?;
                inner.iter_mut().try_for_each(|inner| inner.draw(draws))
            }
            Self::Other(_) => Ok(()),
        }
    }

    /// The items of the rows that have not been drawn; none for rows without a fixed width.
    pub(super) fn rest(&self) -> Result<Buffer, Error> {
        match self {
            Self::FixedWidth(fixed) => fixed.values.rest(),
            Self::Other(_) => Ok(Buffer::default()),
        }
    }

    /// Some of the drawn rows; `drawn` are the positions of all of them.
    pub(super) fn batch(
        &self,
        start: usize,
        rows: usize,
        drawn: &[u64],
    ) -> Result<ArrayRef, Error> {
        match self {
            Self::FixedWidth(fixed) => fixed.batch(start, rows),
            Self::Other(all) => {
                let all = all.as_ref().ok_or(Error::Overflow("number of rows"))?;
                take_if_it_fits(all, &drawn[start..start + rows])
            }
        }
    }
}

/// Memory for the values of a type; `None` if its rows have no fixed width.
fn values_of(data_type: &DataType) -> Option<Box<dyn Drawn>> {
    let (width, each) = match data_type {
        DataType::Boolean => (1, 1),
        DataType::FixedSizeBinary(size) => (1, usize::try_from(*size).ok()?),
        DataType::FixedSizeList(item, size) => {
            (item.data_type().primitive_width()?, usize::try_from(*size).ok()?)
        }
        other => (other.primitive_width()?, 1),
    };
    match (width, each) {
        (_, 0) => None,
        (1, _) => Some(Box::new(PooledItems::<u8>::new(each))),
        (2, _) => Some(Box::new(PooledItems::<u16>::new(each))),
        (4, _) => Some(Box::new(PooledItems::<u32>::new(each))),
        _ => Some(Box::new(PooledItems::<u64>::new(width / 8 * each))),
    }
}

impl FixedWidth {
    fn append(&mut self, chunk: &ArrayRef) -> Result<(), Error> {
        let rows = chunk.len();
        self.validity.append(rows, chunk.nulls())?;
        let Some(inner) = &mut self.inner else { return self.values.append(&values(chunk)) };
        let list = chunk.as_fixed_size_list();
        let items = list.values().slice(0, rows * inner.each);
        inner.append(items.len(), items.nulls())?;
        self.values.append(&values(&items))
    }

    fn batch(&self, start: usize, rows: usize) -> Result<ArrayRef, Error> {
        let values = self.values.batch(start, rows)?;
        let of = |data_type: &DataType, len, nulls| {
            ArrayData::builder(data_type.clone()).len(len).nulls(nulls)
        };
        let nulls = self.validity.batch(start, rows);
        let data = of(&self.data_type, rows, nulls);
        let data = match (&self.data_type, &self.inner) {
            (DataType::FixedSizeList(item, _), Some(inner)) => {
                let nulls = inner.batch(start, rows);
                let items = of(item.data_type(), rows * inner.each, nulls).add_buffer(values);
                data.add_child_data(checked(|| items.build())?)
            }
            (DataType::Boolean, _) => {
                let bits = BooleanBuffer::collect_bool(rows, |row| values[row] != 0);
                data.add_buffer(bits.into_inner())
            }
            _ => data.add_buffer(values),
        };
        checked(|| Ok(make_array(data.build()?)))
    }
}

/// The values of an array of fixed width; booleans as bytes.
fn values(array: &ArrayRef) -> Buffer {
    match array.as_boolean_opt() {
        Some(bits) => bits.values().iter().map(u8::from).collect(),
        None => items(array),
    }
}

impl Validity {
    fn new(each: usize) -> Self {
        Self { bytes: None, each, len: 0 }
    }

    fn append(&mut self, count: usize, nulls: Option<&NullBuffer>) -> Result<(), Error> {
        if nulls.is_some_and(|nulls| nulls.null_count() > 0) && self.bytes.is_none() {
            let mut bytes = PooledItems::new(self.each);
            bytes.extend(self.len, iter::repeat_n(1, self.len))?;
            self.bytes = Some(bytes);
        }
        self.len += count;
        match (&mut self.bytes, nulls) {
            (None, _) => Ok(()),
            (Some(bytes), None) => bytes.extend(count, iter::repeat_n(1, count)),
            (Some(bytes), Some(nulls)) => bytes.extend(count, nulls.iter().map(u8::from)),
        }
    }

    fn draw(&mut self, draws: &[usize]) -> Result<(), Error> {
        self.len -= draws.len() * self.each;
        self.bytes.iter_mut().try_for_each(|bytes| bytes.draw(draws))
    }

    fn batch(&self, start: usize, rows: usize) -> Option<NullBuffer> {
        let drawn = &self.bytes.as_ref()?.drawn()[start * self.each..][..rows * self.each];
        Some(NullBuffer::new(BooleanBuffer::collect_bool(drawn.len(), |at| drawn[at] != 0)))
    }
}

/// The rows of chunks at these positions, in their order.
pub(crate) fn rows_at(chunks: &[ArrayRef], which: &UInt64Array) -> Result<ArrayRef, Error> {
    let rows = as_one(chunks)?;
    check_taken(&rows)?;
    if which.values().iter().any(|&at| at.as_usize() >= rows.len()) {
        return Err(Error::InvalidOptions("a position is behind the last row"));
    }
    let mut parts = Vec::new();
    for some in which.values().chunks(16 * BLOCK) {
        parts.push(taken(&rows, some)?);
        task::check()?;
    }
    match parts.as_slice() {
        [] => taken(&rows, &[]),
        [only] => Ok(Arc::clone(only)),
        parts => chunks::concat(parts),
    }
}

/// [`taken`], for which memory is asked anew.
fn take_if_it_fits(rows: &ArrayRef, which: &[u64]) -> Result<ArrayRef, Error> {
    check_taken_at(rows, which)?;
    taken(rows, which)
}

/// The rows at these positions.
fn taken(rows: &ArrayRef, which: &[u64]) -> Result<ArrayRef, Error> {
    let which = alloc::collect(which.iter().copied())?;
    taken_by(rows, &UInt64Array::from(which))
}

fn taken_by(rows: &ArrayRef, which: &UInt64Array) -> Result<ArrayRef, Error> {
    // arrow-select returns rows without values as no rows, also within structs.
    let valid = |nulls: &NullBuffer| {
        NullBuffer::from_iter(which.values().iter().map(|at| nulls.is_valid(at.as_usize())))
    };
    if let Some(structs) = rows.as_struct_opt() {
        let columns = structs.columns().iter().map(|column| taken_by(column, which));
        let columns = columns.collect::<Result<_, _>>()?;
        let (fields, nulls) = (structs.fields().clone(), rows.nulls().map(valid));
        let made = || StructArray::try_new_with_length(fields, columns, nulls, which.len());
        return Ok(Arc::new(checked(made)?));
    }
    if let DataType::FixedSizeList(_, 0) | DataType::FixedSizeBinary(0) = rows.data_type() {
        let data = ArrayData::builder(rows.data_type().clone()).len(which.len());
        let data = data.nulls(rows.nulls().map(valid));
        let data = match rows.data_type() {
            DataType::FixedSizeList(item, _) => {
                data.add_child_data(new_empty_array(item.data_type()).to_data())
            }
            _ => data.add_buffer(Buffer::default()),
        };
        return checked(|| Ok(make_array(data.build()?)));
    }
    let taken = checked(|| take(rows, which, None))?;
    match taken.len() == which.len() {
        true => Ok(taken),
        false => Err(Error::InvalidArray(format!("rows of {} cannot be drawn", rows.data_type()))),
    }
}
