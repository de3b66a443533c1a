//! Joins small chunks of a stream while reading it.
//!
//! A chunk as a separate array costs five allocations and a microsecond, however few rows it has; a copy of
//! the rows of a small one takes a hundredth of that. 100,000 chunks of ten floats took 10 times as long as a
//! loop in C that only walks the stream; joined, they take less than twice as long.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

use super::validate::{Bytes, CheckedArray, TypedArray};
use crate::chunks::checked;
use crate::{Error, alloc};

/// This many small chunks at first each become an array; later ones are joined.
const MANY: usize = 64;

/// The most bytes that a small chunk has.
const SMALL: usize = 4 << 10;

/// The approximate size of a joined array, in bytes.
const BLOCK: usize = 1 << 20;

/// Chunks that have been joined, and are not an array yet.
pub(in crate::python) struct Gather<'a> {
    data_type: &'a DataType,
    /// Bytes of a row; `None` for types whose chunks are never joined.
    width: Option<usize>,
    /// Small chunks in a row.
    small: usize,
    column: Option<ColumnBuilder>,
    /// How many chunks were joined in all, and how many bytes they had.
    pub(in crate::python) chunks: usize,
    pub(in crate::python) nbytes: usize,
}

impl<'a> Gather<'a> {
    pub(in crate::python) fn new(data_type: &'a DataType) -> Self {
        let width = row_width(data_type);
        Self { data_type, width, small: 0, column: None, chunks: 0, nbytes: 0 }
    }

    /// Joins a chunk of at least one row, or returns it; also returns the array of the chunks joined so far, if it is
    /// complete.
    pub(in crate::python) fn take(
        &mut self,
        chunk: TypedArray,
    ) -> Result<(Option<TypedArray>, Option<ArrayRef>), Error> {
        let is_taken = self.append(&chunk)?;
        let chunk = if is_taken { None } else { Some(chunk) };
        let is_time = !is_taken || self.is_full();
        Ok((chunk, if is_time { self.array()? } else { None }))
    }

    /// Appends a chunk if it is to be joined, and returns whether it did.
    fn append(&mut self, chunk: &TypedArray) -> Result<bool, Error> {
        let bytes = usize::try_from(chunk.array().length()).ok();
        let bytes = bytes.and_then(|rows| rows.checked_mul(self.width?));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= SMALL) else {
            self.small = 0;
            return Ok(false);
        };
        self.small += 1;
        if self.small <= MANY {
            return Ok(false);
        }
        let (chunk, _) = chunk.checked().map_err(Error::InvalidArray)?;
        if !has_buffers(chunk) {
            return Ok(false);
        }
        let column = match &mut self.column {
            Some(column) => column,
            None => {
                alloc::probe_alloc(2 * BLOCK)?;
                self.column.insert(ColumnBuilder::new(self.data_type))
            }
        };
        column.append(chunk, 0, chunk.len());
        self.chunks += 1;
        self.nbytes += bytes;
        Ok(true)
    }

    /// Whether the joined chunks are large enough for an array.
    fn is_full(&self) -> bool {
        let bytes =
            |column: &ColumnBuilder| self.width.map(|width| column.rows.saturating_mul(width));
        self.column.as_ref().and_then(bytes).is_some_and(|bytes| bytes >= BLOCK)
    }

    /// The chunks joined since the last array, if there are any.
    pub(in crate::python) fn array(&mut self) -> Result<Option<ArrayRef>, Error> {
        let Some(column) = self.column.take() else { return Ok(None) };
        checked(|| Ok(Some(make_array(column.finish()?))))
    }
}

/// Bytes of a row without validity, for types whose rows all have the same size: numbers, booleans, fixed-size
/// lists and structs of these.
pub(super) fn row_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::FixedSizeList(item, size) => {
            row_width(item.data_type())?.checked_mul(usize::try_from(*size).ok()?)
        }
        DataType::Struct(fields) => fields
            .iter()
            .try_fold(0_usize, |sum, field| sum.checked_add(row_width(field.data_type())?)),
        number => number.primitive_width(),
    }
    .filter(|&width| width > 0)
}

/// Whether no buffer of values is NULL, of a type that has a [`row_width`]; if one is, the import of arrays returns the
/// error.
fn has_buffers(array: CheckedArray<'_>) -> bool {
    match array.data_type() {
        DataType::FixedSizeList(..) => has_buffers(array.child(0)),
        DataType::Struct(fields) => (0..fields.len()).all(|index| has_buffers(array.child(index))),
        _ => array.values().is_some(),
    }
}

/// Joined rows of a type.
struct ColumnBuilder {
    data_type: DataType,
    rows: usize,
    /// `None` while there are no nulls.
    valid: Option<BooleanBufferBuilder>,
    values: ValuesBuilder,
}

enum ValuesBuilder {
    /// Values of a width in bytes.
    Items(usize, MutableBuffer),
    Bits(BooleanBufferBuilder),
    /// A column with this many items in each row.
    Lists(usize, Box<ColumnBuilder>),
    Structs(Vec<ColumnBuilder>),
}

impl ColumnBuilder {
    fn new(data_type: &DataType) -> Self {
        let values = match data_type {
            DataType::Boolean => ValuesBuilder::Bits(BooleanBufferBuilder::new(0)),
            DataType::FixedSizeList(item, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                ValuesBuilder::Lists(size, Box::new(Self::new(item.data_type())))
            }
            DataType::Struct(fields) => ValuesBuilder::Structs(
                fields.iter().map(|field| Self::new(field.data_type())).collect(),
            ),
            number => {
                ValuesBuilder::Items(number.primitive_width().unwrap_or(0), MutableBuffer::new(0))
            }
        };
        Self { data_type: data_type.clone(), rows: 0, valid: None, values }
    }

    /// Appends `rows` rows of an array of this type, which [`has_buffers`], from one on.
    fn append(&mut self, array: CheckedArray<'_>, from: usize, len: usize) {
        let start = array.offset() + from;
        let valid = array.validity().map(Bytes::get).filter(|bits| !bits.is_empty());
        self.append_valid(valid, start, len);
        self.rows += len;
        match &mut self.values {
            ValuesBuilder::Items(width, values) => {
                let items = array.values().map_or(&[][..], Bytes::get);
                values.extend_from_slice(&items[start * *width..][..len * *width]);
            }
            ValuesBuilder::Bits(values) => {
                values.append_packed_range(
                    start..start + len,
                    array.values().map_or(&[][..], Bytes::get),
                );
            }
            ValuesBuilder::Lists(size, items) => {
                items.append(array.child(0), start * *size, len * *size);
            }
            ValuesBuilder::Structs(columns) => {
                for (index, column) in columns.iter_mut().enumerate() {
                    column.append(array.child(index), start, len);
                }
            }
        }
    }

    fn append_valid(&mut self, bits: Option<&[u8]>, start: usize, len: usize) {
        if bits.is_none() && self.valid.is_none() {
            return;
        }
        let rows = self.rows;
        let valid = self.valid.get_or_insert_with(|| {
            let mut valid = BooleanBufferBuilder::new(rows + len);
            valid.append_n(rows, true);
            valid
        });
        match bits {
            Some(bits) => valid.append_packed_range(start..start + len, bits),
            None => valid.append_n(len, true),
        }
    }

    fn finish(self) -> Result<ArrayData, ArrowError> {
        let valid = self.valid.map(|mut valid| NullBuffer::new(valid.finish()));
        let nulls = valid.filter(|valid| valid.null_count() > 0);
        let data = ArrayData::builder(self.data_type).len(self.rows).nulls(nulls);
        match self.values {
            ValuesBuilder::Items(_, values) => data.add_buffer(values.into()),
            ValuesBuilder::Bits(mut bits) => data.add_buffer(bits.finish().into_inner()),
            ValuesBuilder::Lists(_, items) => data.add_child_data(items.finish()?),
            ValuesBuilder::Structs(columns) => {
                let columns = columns.into_iter().map(Self::finish);
                data.child_data(columns.collect::<Result<_, _>>()?)
            }
        }
        .build()
    }
}
