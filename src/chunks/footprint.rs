//! Computes the bytes that arrow's kernels reserve and write for an array: for a concatenation from its type and from the
//! size of each row, for a `take` from the rows. `None` stands for a number that overflows.
//!
//! arrow-rs aborts the process when memory runs out, and a small input can have a huge result. So this crate calls its
//! kernels only for results that fit, as [`reserve`] checks.

use std::ops::Range;

use arrow_array::{AnyDictionaryArray, Array, ArrayRef, UnionArray, cast::AsArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ByteView;
use arrow_schema::{DataType, FieldRef, UnionFields, UnionMode};

use super::checked::bytes_of_logical_nulls;
use super::row_ranges::{Bounds, RowItems};
use super::runs::Runs;
use crate::{Error, alloc};

/// Bytes of each row, as prefix sums, so that a range of rows takes constant time.
pub(crate) enum Sizes {
    /// All rows are of one size.
    Same(usize),
    /// The bytes of all rows before each row, and at the end those of all rows.
    Ends(Vec<usize>),
}

impl Sizes {
    /// The sums of `len` rows with these sizes.
    pub(crate) fn collect(len: usize, sizes: impl Iterator<Item = Option<usize>>) -> Option<Self> {
        let (mut ends, mut end) = (alloc::reserved(len.checked_add(1)?).ok()?, 0_usize);
        ends.push(end);
        for size in sizes {
            end = end.checked_add(size?)?;
            ends.push(end);
        }
        Some(Self::Ends(ends))
    }

    /// The bytes of a range of rows.
    pub(crate) fn between(&self, from: usize, to: usize) -> Option<usize> {
        match self {
            Self::Same(size) => to.checked_sub(from)?.checked_mul(*size),
            Self::Ends(ends) => ends.get(to)?.checked_sub(*ends.get(from)?),
        }
    }

    /// The bytes of one row.
    pub(crate) fn of_row(&self, row: usize) -> Option<usize> {
        self.between(row, row.checked_add(1)?)
    }
}

/// The bytes that kernels reserve for `rows` rows of a type, at every depth, before they write one. A row
/// counts at least one byte, because the time is proportional to rows.
pub(crate) fn of_type(data_type: &DataType, rows: usize) -> Option<usize> {
    let each = |width: usize| rows.checked_mul(width);
    let and =
        |own: usize, field: &FieldRef| each(own)?.checked_add(of_type(field.data_type(), rows)?);
    let all = |sum: usize, field: &FieldRef| sum.checked_add(of_type(field.data_type(), rows)?);
    match data_type {
        DataType::FixedSizeBinary(size) => each(usize::try_from(*size).ok()?.checked_add(1)?),
        DataType::FixedSizeList(item, size) => {
            let items = rows.checked_mul(usize::try_from(*size).ok()?)?;
            rows.checked_add(of_type(item.data_type(), items)?)
        }
        DataType::List(item) | DataType::Map(item, _) => and(8, item),
        DataType::LargeList(item) | DataType::ListView(item) => and(9, item),
        DataType::LargeListView(item) => and(17, item),
        DataType::Struct(fields) => fields.iter().try_fold(rows, all),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field).try_fold(each(5)?, all),
        DataType::RunEndEncoded(ends, values) => all(all(rows, ends)?, values),
        DataType::Dictionary(key, _) => each(key.primitive_width()?.checked_add(1)?),
        DataType::Null | DataType::Boolean => Some(rows),
        // Offsets and views take up to 16 bytes.
        other => each(other.primitive_width().unwrap_or(16).checked_add(1)?),
    }
}

/// The bytes of all rows of an array, written one after the other.
pub(crate) fn of_rows(array: &dyn Array) -> Option<usize> {
    let rows = array.len();
    let own = |width: usize| rows.checked_mul(width);
    if let Some((bounds @ Bounds::Offsets(_), items)) = Bounds::of(array) {
        let Range { start, end } = bounds.ends()?;
        let length = end.checked_sub(start)?;
        let items = items.array().map_or(Some(length), |all| of_rows(&all.slice(start, length)))?;
        return rows.checked_add(1)?.checked_mul(9)?.checked_add(items);
    }
    match array.data_type() {
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = rows.checked_mul(usize::try_from(list.value_length()).ok()?)?;
            own(1)?.checked_add(of_rows(&list.values().slice(0, items))?)
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.try_fold(own(1)?, |sum, column| sum.checked_add(of_rows(column)?))
        }
        DataType::RunEndEncoded(..) => {
            let Runs { values, .. } = Runs::of(array)?;
            of_rows(&values)?.checked_add(values.len().checked_mul(8)?)
        }
        // A value that several rows refer to is written for each of them.
        DataType::ListView(_) | DataType::LargeListView(_) | DataType::Union(..) => {
            of_each_row(array)?.between(0, rows)
        }
        data_type => of_type(data_type, rows),
    }
}

/// The bytes of each row of an array if it shares nothing with other rows, which are also the bytes that a
/// comparison of rows reads.
pub(crate) fn of_each_row(array: &dyn Array) -> Option<Sizes> {
    let rows = array.len();
    if let Some((bounds, items)) = Bounds::of(array) {
        let items = items.array().map_or(Some(Sizes::Same(1)), of_each_row)?;
        let own = if let Bounds::Views(..) = bounds { 17 } else { 9 };
        let each = (0..rows).map(|row| bounds.range(row));
        let each = each.map(|row| items.between(row.start, row.end)?.checked_add(own));
        return Sizes::collect(rows, each);
    }
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).ok()?;
            of_each_list(rows, &of_each_row(array.as_fixed_size_list().values())?, size)
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter().map(|column| of_each_row(column));
            together(rows, &columns.collect::<Option<Vec<_>>>()?)
        }
        DataType::Union(fields, UnionMode::Sparse) => {
            let union = array.as_union();
            let children = fields.iter().map(|(id, _)| of_each_row(union.child(id)));
            together(rows, &children.collect::<Option<Vec<_>>>()?)
        }
        DataType::Union(fields, UnionMode::Dense) => of_each_choice(array.as_union(), fields),
        DataType::Utf8View => texts(array, array.as_string_view().views()),
        DataType::BinaryView => texts(array, array.as_binary_view().views()),
        DataType::Dictionary(..) => of_each_code(array.as_any_dictionary_opt()?),
        DataType::RunEndEncoded(..) => {
            let runs = Runs::of(array)?;
            match of_each_row(&runs.values)? {
                Sizes::Same(size) => Some(Sizes::Same(size.checked_add(16)?)),
                sizes => {
                    let each = runs.of_rows().map(|run| sizes.of_row(run)?.checked_add(16));
                    Sizes::collect(rows, each)
                }
            }
        }
        data_type => Some(Sizes::Same(of_type(data_type, 1)?)),
    }
}

fn of_each_choice(union: &UnionArray, fields: &UnionFields) -> Option<Sizes> {
    let children = fields.iter().map(|(id, _)| Some((id, of_each_row(union.child(id))?)));
    let children = children.collect::<Option<Vec<_>>>()?;
    let size = |row: usize| {
        let id = union.type_id(row);
        let (_, sizes) = children.iter().find(|(child, _)| *child == id)?;
        sizes.of_row(union.value_offset(row))?.checked_add(5)
    };
    Sizes::collect(union.len(), (0..union.len()).map(size))
}

fn of_each_list(rows: usize, items: &Sizes, size: usize) -> Option<Sizes> {
    match items {
        // `take` makes an index for each item.
        Sizes::Same(item) => {
            Some(Sizes::Same(item.checked_add(4)?.checked_mul(size)?.checked_add(1)?))
        }
        items => {
            let of = |row: usize| items.between(row * size, (row + 1) * size)?.checked_add(1);
            Sizes::collect(rows, (0..rows).map(of))
        }
    }
}

fn of_each_code(dictionary: &dyn AnyDictionaryArray) -> Option<Sizes> {
    let values = match of_each_row(dictionary.values())? {
        _ if dictionary.values().is_empty() => Sizes::Same(0),
        values => values,
    };
    if let Sizes::Same(size) = values {
        return Some(Sizes::Same(size.checked_add(9)?));
    }
    let rows = dictionary.len();
    alloc::probe_alloc(rows.checked_mul(8)?).ok()?;
    let keys = dictionary.normalized_keys();
    Sizes::collect(rows, keys.iter().map(|&key| values.of_row(key)?.checked_add(9)))
}

fn texts(array: &dyn Array, views: &[u128]) -> Option<Sizes> {
    // Under a null there may be any bits.
    let length = |(row, &view): (usize, &u128)| match array.is_null(row) {
        true => Some(17),
        false => usize::try_from(ByteView::from(view).length).ok()?.checked_add(17),
    };
    Sizes::collect(views.len(), views.iter().enumerate().map(length))
}

/// The sizes of rows that consist of a row of each of these.
fn together(rows: usize, columns: &[Sizes]) -> Option<Sizes> {
    let same = columns.iter().try_fold(1_usize, |sum, column| match column {
        Sizes::Same(size) => sum.checked_add(*size),
        Sizes::Ends(_) => None,
    });
    if let Some(same) = same {
        return Some(Sizes::Same(same));
    }
    let each = |row| {
        let mut columns = columns.iter();
        columns.try_fold(1_usize, |sum, column| sum.checked_add(column.of_row(row)?))
    };
    Sizes::collect(rows, (0..rows).map(each))
}

/// An error unless this many bytes can be allocated; `None` stands for a number that overflows.
pub(crate) fn reserve(nbytes: Option<usize>) -> Result<(), Error> {
    alloc::probe_alloc(nbytes.unwrap_or(usize::MAX))
}

/// An error unless the rows of several chunks can be counted.
pub(crate) fn check_joined(chunks: &[ArrayRef]) -> Result<(), Error> {
    let rows = chunks.iter().try_fold(0_usize, |sum, chunk| sum.checked_add(chunk.len()));
    match rows.and_then(|rows| i64::try_from(rows).ok()) {
        None if chunks.len() > 1 => Err(Error::Overflow("number of rows")),
        _ => Ok(()),
    }
}

/// An error unless the concatenation of the chunks, as arrow's kernels make it, fits memory.
pub(super) fn check_appended(chunks: &[ArrayRef], data_type: &DataType) -> Result<(), Error> {
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let written = || {
        chunks
            .iter()
            .try_fold(of_type(data_type, rows)?, |sum, chunk| sum.checked_add(of_rows(chunk)?))
    };
    reserve(written())
}

/// The bytes of an item, of types whose items all have as many: numbers, times and `FixedSizeBinary`.
pub(crate) fn item_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(size) => usize::try_from(*size).ok(),
        other => other.primitive_width(),
    }
}

/// The items of an array of such a type.
pub(crate) fn items(array: &dyn Array) -> Buffer {
    let data = array.to_data();
    let width = item_width(data.data_type()).unwrap_or(0);
    data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
}

/// Bytes of a batch from which on memory is asked for.
const SMALL: usize = 1 << 20;

/// An error unless the result of a `take` of all rows, in any order, fits memory.
pub(crate) fn check_taken(array: &dyn Array) -> Result<(), Error> {
    let taken = || {
        let written = of_rows(array)?.checked_add(of_take(array, array.len())?)?;
        written.checked_add(of_type(array.data_type(), array.len())?)
    };
    reserve(taken())
}

/// An error unless the result of a `take` of these rows fits memory. [`check_taken`] has asked for all rows before, but what
/// was free then may be in use by now.
pub(crate) fn check_taken_at(array: &dyn Array, which: &[u64]) -> Result<(), Error> {
    let taken = || {
        let (rows, ahead) = (which.len(), of_take(array, which.len())?);
        let items = match Bounds::of(array) {
            Some((bounds, items)) => {
                let lengths = which.iter().map(|row| bounds.range(row.as_usize()).len());
                of_some(items, lengths.fold(0, usize::saturating_add))?.checked_add(ahead)?
            }
            None => of_mean(array, rows)?.checked_add(ahead)?,
        };
        of_type(array.data_type(), rows)?.checked_add(items)
    };
    let mean =
        || of_type(array.data_type(), which.len())?.checked_add(of_mean(array, which.len())?);
    // What is small is not asked for: to add up the lengths takes a tenth of the time of a shuffle of texts.
    if mean().is_some_and(|nbytes| nbytes < SMALL) { Ok(()) } else { reserve(taken()) }
}

/// The bytes that arrow's `take` of `rows` rows reserves besides those that it writes: for lists it assumes their mean length,
/// and what their items consist of it puts into buffers that double, of which old and new are there at once.
fn of_take(array: &dyn Array, rows: usize) -> Option<usize> {
    let mean = |values: &dyn Array| {
        let items = values.len().checked_div(array.len()).unwrap_or(0).checked_mul(rows)?;
        of_type(values.data_type(), items)?.checked_add(of_mean(values, items)?.checked_mul(2)?)
    };
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let items = rows.checked_mul(usize::try_from(*size).ok()?)?;
            let values = array.as_fixed_size_list().values();
            let nulls = bytes_of_logical_nulls(values);
            items.checked_mul(4)?.checked_add(of_take(values, items)?)?.checked_add(nulls)
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.try_fold(0, |sum: usize, column| sum.checked_add(of_take(column, rows)?))
        }
        DataType::Union(fields, _) => fields.iter().try_fold(rows, |sum, (id, _)| {
            sum.checked_add(of_take(array.as_union().child(id), rows)?)
        }),
        // Each row may be a run: its value, and its end and index in buffers that double, beside the place of each
        // row twice.
        DataType::RunEndEncoded(..) => {
            let whole = of_each_row(array)?.between(0, array.len())?;
            let values = whole.checked_div(array.len()).unwrap_or(0).checked_add(1)?;
            rows.checked_mul(values.checked_add(64)?)
        }
        _ => match Bounds::of(array) {
            Some((Bounds::Offsets(_), items)) => items.array().map_or(Some(0), mean),
            _ => Some(0),
        },
    }
}

/// The bytes of `count` of the items of rows.
fn of_some(items: RowItems<'_>, count: usize) -> Option<usize> {
    let Some(values) = items.array() else { return Some(count) };
    of_type(values.data_type(), count)?.checked_add(of_mean(values, count)?)
}

/// The bytes of the items of `rows` rows, if these have as many as all rows have on average.
fn of_mean(array: &dyn Array, rows: usize) -> Option<usize> {
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let items = rows.checked_mul(usize::try_from(*size).ok()?)?;
            of_mean(array.as_fixed_size_list().values(), items)
        }
        DataType::Struct(_) => {
            let mut columns = array.as_struct().columns().iter();
            columns.try_fold(0, |sum: usize, column| sum.checked_add(of_mean(column, rows)?))
        }
        DataType::Union(fields, _) => fields.iter().try_fold(0, |sum: usize, (id, _)| {
            sum.checked_add(of_mean(array.as_union().child(id), rows)?)
        }),
        _ => match Bounds::of(array) {
            Some((_, items)) => {
                let count = u128::try_from(items.len()).ok()? * u128::try_from(rows).ok()?;
                let mean = count.checked_div(u128::try_from(array.len()).ok()?).unwrap_or(0);
                of_some(items, usize::try_from(mean).ok()?)
            }
            None => Some(0),
        },
    }
}
