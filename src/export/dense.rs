//! Arrays whose rows all have the same shape, as cells one behind the other: one arm for each family.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, Field};

use super::{primitive, refusal};
use crate::chunks::{Dictionary, are_same, recoded, tells_apart};
use crate::dtype;
use crate::error::Error;
use crate::extension::Extension;
use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::kernels::{Cells, Values};
use crate::layout;
use crate::memory;

/// An array, or a chunk of one, before anything is decided about nulls and copies.
pub(super) struct Dense {
    /// The array's.
    data_type: DataType,
    pub(super) storage: Storage,
    pub(super) dtype: DLDataType,
    pub(super) rows: usize,
    /// Extents of one row as it lies in memory, row-major: none if a row is one value.
    item: Vec<i64>,
    /// Logical axis `i` of a row is its physical axis `order[i]`.
    order: Vec<usize>,
    /// What the codes of a dictionary stand for.
    dictionary: Option<ArrayRef>,
    /// Who can be null: the rows first, then what is in them. Only levels that have nulls.
    levels: Vec<Level>,
}

/// Where the cells are.
#[derive(Clone)]
pub(super) enum Storage {
    /// Items of a dtype; elements of under 8 bits take a byte each.
    Words(Buffer),
    /// Booleans, eight in a byte.
    Bits(BooleanBuffer),
}

/// A validity, each bit of which stands for so many cells.
struct Level {
    nulls: NullBuffer,
    cells: usize,
}

impl Dense {
    /// Reads an array as its field says; numbers with a meaning only if `physical`.
    pub(super) fn new(array: &dyn Array, field: &Field, physical: bool) -> Result<Self, Error> {
        let Some(extension) = Extension::of(field)? else { return Self::plain(array, physical) };
        if let Some(dtype) = extension.dtype() {
            return Self::opaque(array, dtype).map_err(|problem| malformed(field, problem));
        }
        match extension {
            Extension::Bool8 => Ok(Self::words(array, DLDataType::BOOL)),
            Extension::FixedShapeTensor { shape, dimensions } => {
                let list = array.as_fixed_size_list();
                let order = dimensions.order(shape.len());
                Self::list(list, &shape, &order, physical)
            }
            Extension::VariableShapeTensor { .. } => {
                Err(refusal::variable_shape(field.data_type()))
            }
            // Texts are texts.
            Extension::Other(name) if name == "arrow.json" => Self::plain(array, physical),
            _ if physical => Self::plain(array, physical),
            _ => Err(refusal::extension(field)),
        }
    }

    fn plain(array: &dyn Array, physical: bool) -> Result<Self, Error> {
        let data_type = array.data_type();
        if let Some(dtype) = DLDataType::from_arrow(data_type) {
            return Ok(Self::words(array, dtype));
        }
        match (data_type, dtype::physical(data_type)) {
            (DataType::Boolean, _) => {
                let bits = Storage::Bits(array.as_boolean().values().clone());
                Ok(Self::flat(array, bits, DLDataType::BOOL))
            }
            (DataType::FixedSizeList(_, size), _) => {
                Self::list(array.as_fixed_size_list(), &[i64::from(*size)], &[0], physical)
            }
            (DataType::FixedSizeBinary(size), _) => {
                let words = values(array, usize::try_from(*size).unwrap_or(0));
                let bytes = Self::flat(array, Storage::Words(words), DLDataType::UINT8);
                Ok(bytes.in_rows(&[i64::from(*size)]))
            }
            (DataType::Dictionary(..), Some(dtype)) if physical => Self::codes(array, dtype),
            (_, Some(dtype)) if physical => Ok(Self::words(array, dtype)),
            (_, Some(dtype)) => Err(Error::NotJustNumbers { data_type: data_type.clone(), dtype }),
            _ => Err(refusal::unsupported(data_type)),
        }
    }

    /// Rows that are lists of one size, whose axes are `shape` and then those of the values.
    fn list(
        list: &FixedSizeListArray,
        shape: &[i64],
        order: &[usize],
        physical: bool,
    ) -> Result<Self, Error> {
        let DataType::FixedSizeList(item, _) = list.data_type() else {
            return Err(refusal::unsupported(list.data_type()));
        };
        let size = usize::try_from(list.value_length()).unwrap_or(0);
        let values = list.values().slice(0, list.len() * size);
        let mut dense = Self::new(&values, item, physical)?;
        // In rows of which there are none, there may be any number.
        let cells = size.saturating_mul(dense.cells_in_a_row());
        dense.data_type = list.data_type().clone();
        dense.rows = list.len();
        dense.order = order
            .iter()
            .copied()
            .chain(dense.order.iter().map(|axis| axis + shape.len()))
            .collect();
        dense.item.splice(0..0, shape.iter().copied());
        dense.levels.splice(0..0, level(list.nulls(), cells));
        Ok(dense)
    }

    /// Elements of a dtype that Arrow has no type for.
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
                // In a number that is null they may be; pyarrow makes them so.
                let hidden = list.nulls().map(|nulls| nulls.expand(2));
                let is_hidden = |nulls| hidden.is_some_and(|hidden| hidden.contains(nulls));
                if parts.null_count() > 0 && !parts.nulls().is_some_and(is_hidden) {
                    return Err("a part of a complex number is null".to_owned());
                }
                let parts = values(&parts, width / 2);
                return Ok(Self::flat(array, Storage::Words(parts), dtype));
            }
            other if other.primitive_width() == Some(width) => {}
            _ => return wrong(),
        }
        Ok(Self::flat(array, Storage::Words(values(array, width)), dtype))
    }

    /// Codes of a dictionary; what stands for a null is one.
    fn codes(array: &dyn Array, dtype: DLDataType) -> Result<Self, Error> {
        let mut dense = Self::words(array, dtype);
        let dictionary = array.as_any_dictionary().values();
        if dictionary.is_nullable() {
            memory::probe_alloc(
                array.len().div_ceil(8).saturating_add(dictionary.len().div_ceil(8)),
            )?;
            dense.levels = level(array.logical_nulls().as_ref(), 1).into_iter().collect();
        }
        dense.dictionary = Some(Arc::clone(dictionary));
        Ok(dense)
    }

    fn words(array: &dyn Array, dtype: DLDataType) -> Self {
        Self::flat(array, Storage::Words(values(array, dtype.item_bits(true) / 8)), dtype)
    }

    /// One cell a row.
    fn flat(array: &dyn Array, storage: Storage, dtype: DLDataType) -> Self {
        let levels = level(array.nulls(), 1).into_iter().collect();
        let (data_type, rows) = (array.data_type().clone(), array.len());
        Self {
            data_type,
            storage,
            dtype,
            rows,
            item: Vec::new(),
            order: Vec::new(),
            dictionary: None,
            levels,
        }
    }

    /// The same cells, so many of them in a row. Until now, a row was one cell.
    pub(super) fn in_rows(mut self, item: &[i64]) -> Self {
        self.item = item.to_vec();
        self.order = (0..item.len()).collect();
        let cells = self.cells_in_a_row();
        self.levels.iter_mut().for_each(|level| level.cells *= cells);
        self
    }

    /// Bytes, which no null can be among.
    pub(super) fn bytes(bytes: Buffer) -> Self {
        Self {
            data_type: DataType::UInt8,
            rows: bytes.len(),
            dtype: DLDataType::UINT8,
            storage: Storage::Words(bytes),
            item: Vec::new(),
            order: Vec::new(),
            dictionary: None,
            levels: Vec::new(),
        }
    }

    /// The rows of an array, each of which is one cell of no value: for their validity.
    pub(super) fn of_rows(array: &dyn Array) -> Result<Self, Error> {
        memory::probe_alloc(array.len().div_ceil(8))?;
        let bits = BooleanBuffer::new_unset(array.len());
        Ok(Self::flat(array, Storage::Bits(bits), DLDataType::BOOL))
    }

    /// All cells as one row of these extents, in this logical order; if a row was more than one cell,
    /// its axes follow.
    pub(super) fn in_one_row(mut self, item: &[i64], order: &[usize]) -> Self {
        self.rows = 1;
        self.order =
            order.iter().copied().chain(self.order.iter().map(|axis| axis + item.len())).collect();
        self.item.splice(0..0, item.iter().copied());
        self
    }

    pub(super) fn item(&self) -> &[i64] {
        &self.item
    }

    fn cells_in_a_row(&self) -> usize {
        // Extents come from sizes that fit i32 and whose product fits the buffer.
        layout::element_count(&self.item).unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        match &self.storage {
            Storage::Words(bytes) => bytes.len() / (self.dtype.item_bits(true) / 8),
            Storage::Bits(bits) => bits.len(),
        }
    }

    /// Extents of so many rows, logical.
    pub(super) fn shape(&self, rows: i64) -> Vec<i64> {
        std::iter::once(rows).chain(self.order.iter().map(|&axis| self.item[axis])).collect()
    }

    /// Strides of so many rows, logical.
    pub(super) fn strides(&self, rows: i64) -> Vec<i64> {
        let physical: Vec<i64> = std::iter::once(rows).chain(self.item.iter().copied()).collect();
        let strides = layout::row_major(&physical);
        std::iter::once(strides[0])
            .chain(self.order.iter().map(|&axis| strides[axis + 1]))
            .collect()
    }

    /// Whether the codes of chunks stand for different values, which then become those of one dictionary.
    ///
    /// # Errors
    ///
    /// `DifferentDictionaries` of values that are not told apart.
    pub(super) fn is_of_several_dictionaries(chunks: &[Self]) -> Result<bool, Error> {
        let dictionaries = dictionaries(chunks);
        if are_same(&dictionaries) {
            return Ok(false);
        }
        if tells_apart(dictionaries[0].data_type()) {
            return Ok(true);
        }
        Err(Error::DifferentDictionaries { data_type: chunks[0].data_type.clone() })
    }

    /// Gives the codes of chunks one dictionary, which comes back; `None` for what has no codes.
    pub(super) fn unify(chunks: &mut [Self]) -> Result<Option<ArrayRef>, Error> {
        let of_one = !Self::is_of_several_dictionaries(chunks)?;
        let Some(Self { data_type, dictionary: Some(first), dtype, .. }) = chunks.first() else {
            return Ok(None);
        };
        if of_one {
            return Ok(Some(Arc::clone(first)));
        }
        let all = Dictionary::new(first.data_type())?;
        let of_values = dictionaries(chunks);
        let of_values = of_values.iter().map(|values| all.of_values(values, data_type));
        let of_values = of_values.collect::<Result<Vec<_>, _>>()?;
        let keys_type = dtype.to_arrow().unwrap_or(DataType::Int32);
        let values = all.of_keys(&keys_type)?;
        for (chunk, codes) in chunks.iter_mut().zip(of_values) {
            if let Storage::Words(keys) = &mut chunk.storage {
                *keys = recoded(keys, &keys_type, &codes, &keys_type)?;
            }
            chunk.dictionary = Some(Arc::clone(&values));
        }
        Ok(Some(values))
    }

    /// The error for nulls in chunks of one column, if there are any.
    pub(super) fn refuse_nulls(chunks: &[Self]) -> Result<(), Error> {
        let mut levels = chunks.iter().flat_map(|chunk| &chunk.levels).peekable();
        let (Some(Self { data_type, .. }), Some(_)) = (chunks.first(), levels.peek()) else {
            return Ok(());
        };
        let (null_count, len) = match chunks.iter().map(Self::len).sum() {
            // Rows without cells can be null too.
            0 => (
                levels.map(|level| level.nulls.null_count()).sum(),
                chunks.iter().map(|chunk| chunk.rows).sum(),
            ),
            len => (chunks.iter().map(Self::null_count).sum::<Result<_, _>>()?, len),
        };
        Err(Error::Nulls { data_type: data_type.clone(), null_count, len })
    }

    /// Null cells, whatever the level at which they are null.
    pub(super) fn null_count(&self) -> Result<usize, Error> {
        Ok(match self.levels.as_slice() {
            [] => 0,
            [Level { nulls, cells }] => nulls.null_count() * cells,
            _ => self.validity()?.map_or(0, |nulls| nulls.null_count()),
        })
    }

    /// Which cells are valid, `None` if all are.
    pub(super) fn validity(&self) -> Result<Option<NullBuffer>, Error> {
        match self.levels.as_slice() {
            [] | [Level { cells: 1, .. }] => {}
            _ => memory::probe_alloc(self.len().div_ceil(8))?,
        }
        let levels = self.levels.iter().map(|level| match level.cells {
            1 => level.nulls.clone(),
            cells => level.nulls.expand(cells),
        });
        Ok(levels
            .reduce(|outer, inner| NullBuffer::union(Some(&outer), Some(&inner)).unwrap_or(outer)))
    }

    /// The same rows and axes, where each cell says whether this one's is valid.
    pub(super) fn mask(&self) -> Result<Self, Error> {
        let bits = match self.validity()? {
            Some(nulls) => nulls.into_inner(),
            None => {
                memory::probe_alloc(self.len().div_ceil(8))?;
                BooleanBuffer::new_set(self.len())
            }
        };
        Ok(Self {
            data_type: DataType::Boolean,
            storage: Storage::Bits(bits),
            dtype: DLDataType::BOOL,
            rows: self.rows,
            item: self.item.clone(),
            order: self.order.clone(),
            dictionary: None,
            levels: Vec::new(),
        })
    }

    /// As the kernels take them; `nulls` is this one's validity, or `None` if it does not matter.
    pub(super) fn cells<'a>(&'a self, nulls: Option<&'a NullBuffer>) -> Cells<'a> {
        let values = match &self.storage {
            Storage::Words(bytes) => Values::Words { bytes, dtype: self.dtype },
            Storage::Bits(bits) => Values::Bits(bits),
        };
        Cells { values, nulls }
    }
}

fn dictionaries(chunks: &[Dense]) -> Vec<ArrayRef> {
    chunks.iter().filter_map(|chunk| chunk.dictionary.clone()).collect()
}

fn level(nulls: Option<&NullBuffer>, cells: usize) -> Option<Level> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?.clone();
    Some(Level { nulls, cells })
}

/// The values of an array that stores items of `width` bytes, less those outside of the slice.
fn values(array: &dyn Array, width: usize) -> Buffer {
    if let Some(numbers) = primitive::buffer(array) {
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
