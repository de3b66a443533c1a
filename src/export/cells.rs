//! Arrays whose rows all have the same shape, as contiguous cells: one match arm for each family of types; which cells are
//! null, where in a nested type a null parent makes its cells null too; and the codes of several chunks in one dictionary.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, Field};

use super::options::ReadAs;
use super::{refusal, share};
use crate::alloc::Fresh;
use crate::chunks::{Dictionary, are_same, logical_nulls, recoded, tells_apart};
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels::{CellValues, Cells, Decimals};
use crate::{Error, alloc, dtype, layout};

/// An array, or a chunk of one, before nulls and copies are planned.
#[derive(Clone)]
pub(super) struct CellArray {
    /// The array's type.
    pub(super) data_type: DataType,
    pub(super) storage: CellBuffer,
    pub(super) dtype: DLDataType,
    pub(super) rows: usize,
    /// Extents of one row in memory, row-major; empty if a row is one value.
    pub(super) item: Vec<i64>,
    /// Logical axis `i` of a row is its physical axis `order[i]`.
    pub(super) order: Vec<usize>,
    /// The values of the dictionary, if the cells are codes.
    pub(super) dictionary: Option<ArrayRef>,
    /// The levels of nesting that have nulls, from the rows inwards.
    pub(super) levels: Vec<NullLevel>,
    /// Whether the storage is new memory, because the array has none: nulls without a type.
    pub(super) is_made: bool,
}

/// The buffer of the cells.
#[derive(Clone)]
pub(super) enum CellBuffer {
    /// Items of a dtype; elements of under 8 bits take a byte each.
    Words(Buffer),
    /// Booleans, eight in a byte.
    Bits(BooleanBuffer),
    /// Decimals, whose dtype is float64.
    Decimals(Buffer, Decimals),
}

/// A validity bitmap, each bit of which covers a fixed number of cells.
#[derive(Clone)]
pub(super) struct NullLevel {
    pub(super) nulls: NullBuffer,
    pub(super) cells: usize,
}

/// Whether it has columns of its own, or entries.
fn has_fields(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_) | DataType::Map(..) | DataType::Union(..))
}

impl CellArray {
    /// Reads an array by its field; times, decimals, codes and unknown extension types only if `read_as` says so.
    pub(super) fn new(array: &dyn Array, field: &Field, read_as: ReadAs) -> Result<Self, Error> {
        let Some(extension) = Extension::of(field)? else { return Self::plain(array, read_as) };
        if let Some(dtype) = extension.dtype() {
            return Self::opaque(array, dtype).map_err(|problem| malformed(field, problem));
        }
        match extension {
            Extension::Bool8 => Ok(Self::words(array, DLDataType::BOOL)),
            Extension::FixedShapeTensor { shape, dimensions } => {
                let list = array.as_fixed_size_list();
                let order = dimensions.order(shape.len());
                Self::list(list, &shape, &order, read_as)
            }
            Extension::VariableShapeTensor { .. } => {
                Err(refusal::variable_shape(field.data_type()))
            }
            // `arrow.json` is text, and is read as any other text is.
            Extension::Other(name) if name == "arrow.json" => Self::plain(array, read_as),
            // Of a storage of children, no option makes a tensor.
            _ if read_as.physical && !has_fields(array.data_type()) => Self::plain(array, read_as),
            _ => Err(refusal::extension(field)),
        }
    }

    fn plain(array: &dyn Array, read_as: ReadAs) -> Result<Self, Error> {
        let data_type = array.data_type();
        if let Some(dtype) = DLDataType::from_arrow(data_type) {
            return Ok(Self::words(array, dtype));
        }
        if let (true, Some(decimals)) = (read_as.as_floats, Decimals::of(data_type)) {
            let cells = CellBuffer::Decimals(values(array, decimals.width), decimals);
            return Ok(Self::flat(array, cells, DLDataType::FLOAT64));
        }
        match (data_type, dtype::physical(data_type)) {
            (DataType::Boolean, _) => {
                let bits = CellBuffer::Bits(array.as_boolean().values().clone());
                Ok(Self::flat(array, bits, DLDataType::BOOL))
            }
            (DataType::FixedSizeList(_, size), _) => {
                Self::list(array.as_fixed_size_list(), &[i64::from(*size)], &[0], read_as)
            }
            (DataType::FixedSizeBinary(size), _) => {
                let words = values(array, usize::try_from(*size).unwrap_or(0));
                let bytes = Self::flat(array, CellBuffer::Words(words), DLDataType::UINT8);
                Ok(bytes.in_rows(&[i64::from(*size)]))
            }
            (DataType::Dictionary(..), Some(dtype)) if read_as.physical => {
                Self::codes(array, dtype)
            }
            (DataType::Null, _) => match read_as.dtype.filter(|dtype| dtype.lanes == 1) {
                Some(dtype) => Self::nulls(array.len(), dtype),
                None => Err(refusal::unsupported(data_type)),
            },
            (_, Some(dtype)) if read_as.physical => Ok(Self::words(array, dtype)),
            (_, Some(dtype)) => Err(Error::NotJustNumbers { data_type: data_type.clone(), dtype }),
            _ => Err(refusal::unsupported_as(data_type, read_as.dtype)),
        }
    }

    /// Rows that are fixed-size lists, with the axes `shape` followed by those of the values.
    fn list(
        list: &FixedSizeListArray,
        shape: &[i64],
        order: &[usize],
        read_as: ReadAs,
    ) -> Result<Self, Error> {
        let DataType::FixedSizeList(item, _) = list.data_type() else {
            return Err(refusal::unsupported(list.data_type()));
        };
        let size = usize::try_from(list.value_length()).unwrap_or(0);
        let values = list.values().slice(0, list.len() * size);
        let mut cells = Self::new(&values, item, read_as).map_err(refusal::in_rows)?;
        // An array of rows without cells can have any number of them.
        let in_a_row = size.saturating_mul(cells.cells_in_a_row());
        cells.data_type = list.data_type().clone();
        cells.rows = list.len();
        cells.put_in_front(shape, order);
        cells.levels.splice(0..0, level(list.nulls(), in_a_row));
        Ok(cells)
    }

    /// Nulls without a type, as those of a column of this dtype.
    fn nulls(rows: usize, dtype: DLDataType) -> Result<Self, Error> {
        let nbytes = rows.saturating_mul(dtype.item_bits(true) / 8);
        let zeros = Fresh::write::<u8>(nbytes, |_| Ok(()))?.into_buffer();
        alloc::probe_alloc(rows.div_ceil(8))?;
        let levels = level(Some(&NullBuffer::new_null(rows)), 1).into_iter().collect();
        let cells = CellBuffer::Words(zeros);
        let cells = Self::of_cells(DataType::Null, rows, cells, dtype);
        Ok(Self { levels, is_made: true, ..cells })
    }

    /// Elements of a dtype for which Arrow has no type.
    fn opaque(array: &dyn Array, dtype: DLDataType) -> Result<Self, String> {
        let width = dtype.item_bits(true) / 8;
        let stored = array.data_type();
        let wrong = || Err(format!("{dtype} is stored as {stored}"));
        match stored {
            DataType::FixedSizeBinary(size) if usize::try_from(*size) == Ok(width) => {}
            DataType::FixedSizeList(part, 2) if dtype.code == DLDataTypeCode::COMPLEX => {
                let half = DLDataType::scalar(DLDataTypeCode::FLOAT, dtype.bits / 2);
                if DLDataType::from_arrow(part.data_type()) != Some(half) {
                    return wrong();
                }
                let list = array.as_fixed_size_list();
                let parts = list.values().slice(0, 2 * list.len());
                // The parts of a null number may be null; pyarrow makes them so.
                let hidden = list.nulls().map(|nulls| nulls.expand(2));
                let is_hidden = |nulls| hidden.is_some_and(|hidden| hidden.contains(nulls));
                if parts.null_count() > 0 && !parts.nulls().is_some_and(is_hidden) {
                    return Err("a part of a complex number is null".to_owned());
                }
                let parts = values(&parts, width / 2);
                return Ok(Self::flat(array, CellBuffer::Words(parts), dtype));
            }
            other if other.primitive_width() == Some(width) => {}
            _ => return wrong(),
        }
        Ok(Self::flat(array, CellBuffer::Words(values(array, width)), dtype))
    }

    pub(super) fn words(array: &dyn Array, dtype: DLDataType) -> Self {
        Self::flat(array, CellBuffer::Words(values(array, dtype.item_bits(true) / 8)), dtype)
    }

    /// Rows of one cell each.
    fn flat(array: &dyn Array, storage: CellBuffer, dtype: DLDataType) -> Self {
        let levels = level(array.nulls(), 1).into_iter().collect();
        let plain = Self::of_cells(array.data_type().clone(), array.len(), storage, dtype);
        Self { levels, ..plain }
    }

    /// Rows of one cell each, without nulls.
    pub(super) fn of_cells(
        data_type: DataType,
        rows: usize,
        storage: CellBuffer,
        dtype: DLDataType,
    ) -> Self {
        let (item, order, levels) = (Vec::new(), Vec::new(), Vec::new());
        let (dictionary, is_made) = (None, false);
        Self { data_type, storage, dtype, rows, item, order, dictionary, levels, is_made }
    }

    /// The same cells, grouped to rows of these extents. Each row must be one cell so far.
    pub(super) fn in_rows(mut self, item: &[i64]) -> Self {
        self.item = item.to_vec();
        self.order = (0..item.len()).collect();
        let cells = self.cells_in_a_row();
        self.levels.iter_mut().for_each(|level| level.cells *= cells);
        self
    }

    /// Bytes without nulls.
    pub(super) fn bytes(bytes: Buffer) -> Self {
        let (rows, cells) = (bytes.len(), CellBuffer::Words(bytes));
        Self::of_cells(DataType::UInt8, rows, cells, DLDataType::UINT8)
    }

    /// Rows as cells without values, for their validity.
    pub(super) fn of_rows(rows: usize, nulls: Option<&NullBuffer>) -> Result<Self, Error> {
        alloc::probe_alloc(rows.div_ceil(8))?;
        let bits = CellBuffer::Bits(BooleanBuffer::new_unset(rows));
        let levels = level(nulls, 1).into_iter().collect();
        Ok(Self { levels, ..Self::of_cells(DataType::Boolean, rows, bits, DLDataType::BOOL) })
    }

    /// The cells of each row, if every slice would be copied for the same reasons.
    pub(super) fn uniform_cells(&self) -> Option<usize> {
        let is_uniform = self.levels.is_empty() && self.dtype != DLDataType::BOOL;
        is_uniform.then(|| self.cells_in_a_row())
    }

    /// These rows.
    pub(super) fn slice(&self, from: usize, rows: usize) -> Self {
        let (each, width) = (self.cells_in_a_row(), self.width());
        let (start, cells) = (from * each, rows * each);
        let storage = match &self.storage {
            CellBuffer::Words(bytes) => {
                CellBuffer::Words(bytes.slice_with_length(start * width, cells * width))
            }
            CellBuffer::Bits(bits) => CellBuffer::Bits(bits.slice(start, cells)),
            CellBuffer::Decimals(bytes, decimals) => CellBuffer::Decimals(
                bytes.slice_with_length(start * width, cells * width),
                *decimals,
            ),
        };
        let levels = self.levels.iter().filter_map(|NullLevel { nulls, cells }| {
            let bits = nulls.len() / self.rows.max(1);
            level(Some(&nulls.slice(from * bits, rows * bits)), *cells)
        });
        let (item, order) = (self.item.clone(), self.order.clone());
        let (dictionary, levels) = (self.dictionary.clone(), levels.collect());
        let cells = Self::of_cells(self.data_type.clone(), rows, storage, self.dtype);
        Self { item, order, dictionary, levels, is_made: self.is_made, ..cells }
    }

    /// All cells as one row of these extents, in this logical order; the axes of a former row follow.
    pub(super) fn in_one_row(mut self, item: &[i64], order: &[usize]) -> Self {
        self.rows = 1;
        self.put_in_front(item, order);
        self
    }

    /// Adds axes of these extents, in this logical order, in front of those of a row.
    fn put_in_front(&mut self, item: &[i64], order: &[usize]) {
        self.order.iter_mut().for_each(|axis| *axis += item.len());
        self.order.splice(0..0, order.iter().copied());
        self.item.splice(0..0, item.iter().copied());
    }

    pub(super) fn cells_in_a_row(&self) -> usize {
        // The extents were checked: they fit i32, and their product is the length of the buffer.
        layout::element_count(&self.item).unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        match &self.storage {
            CellBuffer::Words(bytes) | CellBuffer::Decimals(bytes, _) => bytes.len() / self.width(),
            CellBuffer::Bits(bits) => bits.len(),
        }
    }

    /// Bytes of a cell in memory, if it has whole bytes.
    fn width(&self) -> usize {
        match &self.storage {
            CellBuffer::Decimals(_, decimals) => decimals.width,
            _ => self.dtype.item_bits(true) / 8,
        }
    }

    /// Logical shape of this many rows.
    pub(super) fn shape(&self, rows: i64) -> Vec<i64> {
        std::iter::once(rows).chain(self.order.iter().map(|&axis| self.item[axis])).collect()
    }

    /// Logical strides of this many rows, in elements.
    pub(super) fn strides(&self, rows: i64) -> Vec<i64> {
        let physical: Vec<i64> = std::iter::once(rows).chain(self.item.iter().copied()).collect();
        let strides = layout::row_major(&physical);
        std::iter::once(strides[0])
            .chain(self.order.iter().map(|&axis| strides[axis + 1]))
            .collect()
    }

    /// The input for the kernels; `nulls` is the validity, or `None` if it does not matter.
    pub(super) fn cells<'a>(&'a self, nulls: Option<&'a NullBuffer>) -> Cells<'a> {
        let values = match &self.storage {
            CellBuffer::Words(bytes) => CellValues::Words { bytes, dtype: self.dtype },
            CellBuffer::Bits(bits) => CellValues::Bits(bits),
            CellBuffer::Decimals(bytes, decimals) => CellValues::Decimals(bytes, *decimals),
        };
        Cells { values, nulls }
    }

    /// [`Self::cells`] of these rows, where they have whole bytes and are all valid.
    pub(super) fn valid_cells(&self, rows: &Range<usize>) -> Option<Cells<'_>> {
        let row = self.uniform_cells()? * self.width();
        let bytes = rows.start * row..rows.end * row;
        let values = match &self.storage {
            CellBuffer::Words(all) => CellValues::Words { bytes: &all[bytes], dtype: self.dtype },
            CellBuffer::Decimals(all, decimals) => CellValues::Decimals(&all[bytes], *decimals),
            CellBuffer::Bits(_) => return None,
        };
        Some(Cells { values, nulls: None })
    }
}

pub(super) fn level(nulls: Option<&NullBuffer>, cells: usize) -> Option<NullLevel> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?.clone();
    Some(NullLevel { nulls, cells })
}

/// The values of an array that stores items of `width` bytes, restricted to the slice.
fn values(array: &dyn Array, width: usize) -> Buffer {
    if let Some(numbers) = share::buffer(array) {
        return numbers;
    }
    let data = array.to_data();
    match data.buffers() {
        [buffer, ..] => buffer.slice_with_length(data.offset() * width, data.len() * width),
        [] => Buffer::default(),
    }
}

fn malformed(field: &Field, problem: String) -> Error {
    let name = field.extension_type_name().unwrap_or_default().to_owned();
    Error::MalformedExtension { name, problem }
}

/// The nulls of the chunks of one column.
#[derive(Default)]
pub(super) struct NullCount {
    /// The type of the first chunk that has nulls.
    data_type: Option<DataType>,
    cells: usize,
    null_cells: usize,
    /// Rows without cells can be null too.
    rows: usize,
    null_rows: usize,
}

impl NullCount {
    pub(super) fn add(&mut self, chunk: &CellArray) {
        self.cells += chunk.len();
        self.rows = self.rows.saturating_add(chunk.rows);
        if !chunk.levels.is_empty() {
            self.data_type.get_or_insert_with(|| chunk.data_type.clone());
            self.null_cells += chunk.null_count();
            self.null_rows +=
                chunk.levels.iter().map(|level| level.nulls.null_count()).sum::<usize>();
        }
    }

    /// The error for nulls, if there are any.
    pub(super) fn refuse(self) -> Result<(), Error> {
        let Some(data_type) = self.data_type else { return Ok(()) };
        let (null_count, len) = match self.cells {
            0 => (self.null_rows, self.rows),
            cells => (self.null_cells, cells),
        };
        Err(Error::Nulls { data_type, null_count, len })
    }
}

impl CellArray {
    /// Number of null cells, at any level.
    pub(super) fn null_count(&self) -> usize {
        match self.len() {
            0 => 0,
            len => len - valid(&self.levels, 0..len),
        }
    }

    /// Which cells are valid, `None` if all are.
    pub(super) fn validity(&self) -> Result<Option<NullBuffer>, Error> {
        match self.levels.as_slice() {
            [] | [NullLevel { cells: 1, .. }] => {}
            _ => alloc::probe_alloc(self.len().div_ceil(8))?,
        }
        let levels = self.levels.iter().map(|level| match level.cells {
            1 => level.nulls.clone(),
            cells => level.nulls.expand(cells),
        });
        Ok(levels
            .reduce(|outer, inner| NullBuffer::union(Some(&outer), Some(&inner)).unwrap_or(outer)))
    }

    /// A copy with the validity as its cells, of the same shape.
    pub(super) fn mask(&self) -> Result<Self, Error> {
        let bits = match self.validity()? {
            Some(nulls) => nulls.into_inner(),
            None => {
                alloc::probe_alloc(self.len().div_ceil(8))?;
                BooleanBuffer::new_set(self.len())
            }
        };
        let (item, order, cells) = (self.item.clone(), self.order.clone(), CellBuffer::Bits(bits));
        let cells = Self::of_cells(DataType::Boolean, self.rows, cells, DLDataType::BOOL);
        Ok(Self { item, order, ..cells })
    }
}

/// Number of these cells that are valid at all levels.
fn valid(levels: &[NullLevel], cells: Range<usize>) -> usize {
    let Some((NullLevel { nulls, cells: each }, inner)) = levels.split_first() else {
        return cells.len();
    };
    let (first, count) = (cells.start / each, cells.len() / each);
    if inner.is_empty() && count == nulls.len() {
        return (count - nulls.null_count()) * each; // counted already
    }
    let rows = nulls.inner().slice(first, count);
    if inner.is_empty() {
        return rows.count_set_bits() * each;
    }
    let runs = rows.set_slices().map(|(start, end)| (first + start) * each..(first + end) * each);
    runs.map(|run| valid(inner, run)).sum()
}

impl CellArray {
    /// The codes of a dictionary array. A code of a null value is a null cell.
    pub(super) fn codes(array: &dyn Array, dtype: DLDataType) -> Result<Self, Error> {
        let mut cells = Self::words(array, dtype);
        let dictionary = array.as_any_dictionary().values();
        if dictionary.is_nullable() {
            cells.levels = level(logical_nulls(array)?.as_ref(), 1).into_iter().collect();
        }
        cells.dictionary = Some(Arc::clone(dictionary));
        Ok(cells)
    }

    /// Whether the chunks have different dictionaries, which must be unified.
    ///
    /// # Errors
    ///
    /// As [`are_several`].
    pub(super) fn is_of_several_dictionaries(chunks: &[Self]) -> Result<bool, Error> {
        are_several(&dictionaries(chunks), &chunks[0].data_type)
    }

    /// Translates the codes of chunks with [different dictionaries](Self::is_of_several_dictionaries) to one
    /// dictionary.
    pub(super) fn unify(chunks: &mut [Self]) -> Result<(), Error> {
        let Self { data_type, dtype, .. } = &chunks[0];
        let keys_type = dtype.to_arrow().unwrap_or(DataType::Int32);
        let (values, of_values) = Dictionary::united(&dictionaries(chunks), data_type, &keys_type)?;
        for (chunk, codes) in chunks.iter_mut().zip(of_values) {
            let CellBuffer::Words(keys) = &mut chunk.storage else { continue };
            *keys = recoded(keys, &keys_type, &codes, &keys_type)?;
            chunk.dictionary = Some(Arc::clone(&values));
        }
        Ok(())
    }
}

/// Whether these are different dictionaries, of codes of this type.
///
/// # Errors
///
/// `DifferentDictionaries` if the values are nested.
pub(super) fn are_several(dictionaries: &[ArrayRef], data_type: &DataType) -> Result<bool, Error> {
    match dictionaries {
        [] | [_] => Ok(false),
        _ if are_same(dictionaries) => Ok(false),
        [first, ..] if tells_apart(first.data_type()) => Ok(true),
        _ => Err(Error::DifferentDictionaries { data_type: data_type.clone() }),
    }
}

fn dictionaries(chunks: &[CellArray]) -> Vec<ArrayRef> {
    chunks.iter().filter_map(|chunk| chunk.dictionary.clone()).collect()
}
