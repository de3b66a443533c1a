//! Distinct values, numbered in the order in which they come.
//!
//! arrow-rs has a builder of dictionaries for each type; this module treats all types as bytes, so that there is
//! one table, and running out of memory is an error.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use arrow_array::types::{self, ByteArrayType, ByteViewType};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericByteViewArray, Int32Array, OffsetSizeTrait,
    cast::AsArray, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer};
use arrow_data::{ArrayData, ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::DataType;
use half::f16;
use hashbrown::{HashTable, hash_table::Entry};

use super::{checked::checked, checked::logical_nulls, footprint::item_width, row_ranges::place};
use crate::Error;
use crate::alloc::{self, Fresh};

/// Distinct values of one type. Floats are equal if they have the same bits, or are both NaN.
pub(crate) struct Distinct {
    data_type: DataType,
    width: Width,
    /// Whether both zeros are one value.
    one_zero: bool,
    /// The bytes of all values, concatenated.
    bytes: Vec<u8>,
    /// Where each ends, if they differ in width.
    ends: Vec<usize>,
    len: usize,
    /// A value's code is its position.
    codes: HashTable<i32>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
enum Width {
    Same(usize),
    Different,
}

impl Width {
    fn of(data_type: &DataType) -> Option<Self> {
        use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
        Some(match data_type {
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => Self::Different,
            DataType::Null => Self::Same(0),
            DataType::Boolean => Self::Same(1),
            other => Self::Same(item_width(other)?),
        })
    }
}

/// Whether values of a type can be compared, and so dictionaries of them be unified: those of nested types cannot.
pub(crate) fn tells_apart(data_type: &DataType) -> bool {
    Width::of(data_type).is_some()
}

impl Distinct {
    /// No values yet; `None` for nested types.
    pub(crate) fn new(data_type: &DataType) -> Option<Self> {
        let width = Width::of(data_type)?;
        Some(Self {
            data_type: data_type.clone(),
            width,
            one_zero: false,
            bytes: Vec::new(),
            ends: Vec::new(),
            len: 0,
            codes: HashTable::new(),
            hasher: RandomState::new(),
        })
    }

    /// [`Self::new`], in which both zeros are one value.
    pub(crate) fn of_numbers(data_type: &DataType) -> Option<Self> {
        Some(Self { one_zero: true, ..Self::new(data_type)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The codes of an array's values, null where the values are; new values are appended.
    pub(crate) fn codes(&mut self, values: &dyn Array) -> Result<Int32Array, Error> {
        let len = values.len();
        alloc::probe_alloc(len.saturating_mul(size_of::<i32>() + 1))?;
        let nulls = logical_nulls(values)?;
        let data = values.to_data();
        let value = reader(values, &data, self.one_zero);
        let mut codes = Vec::with_capacity(len);
        let mut next = 0;
        for index in 0..len {
            let code = match &nulls {
                Some(nulls) if nulls.is_null(index) => 0,
                _ => {
                    let code = self.code(value(index), next)?;
                    next = usize::try_from(code).unwrap_or(0) + 1;
                    code
                }
            };
            codes.push(code);
        }
        Ok(Int32Array::new(codes.into(), nulls))
    }

    /// Gives the code of each value of an array without children, whose type has the same bytes; `None` for one that is not
    /// among these.
    pub(crate) fn finder<'a>(
        &'a self,
        values: &'a dyn Array,
        data: &'a ArrayData,
    ) -> impl Fn(usize) -> Option<i32> + 'a {
        let value = reader(values, data, self.one_zero);
        let known = |code: i32| self.at(usize::try_from(code).unwrap_or(0));
        move |index| {
            let value = value(index);
            self.codes.find(self.hasher.hash_one(value), |&code| known(code) == value).copied()
        }
    }

    fn at(&self, index: usize) -> &[u8] {
        at(self.width, &self.bytes, &self.ends, index)
    }

    /// Dictionaries often have their values in the same order, so the value after the previous match, `next`,
    /// is compared before the table is searched.
    fn code(&mut self, value: &[u8], next: usize) -> Result<i32, Error> {
        let Self { width, bytes, ends, codes, hasher, .. } = self;
        if next < self.len && at(*width, bytes, ends, next) == value {
            return code_of(next);
        }
        let known = |code: i32| at(*width, bytes, ends, usize::try_from(code).unwrap_or(0));
        let rehash = |&code: &i32| hasher.hash_one(known(code));
        let nbytes = bytes.len().saturating_add(value.len());
        codes.try_reserve(1, rehash).map_err(|_| Error::OutOfMemory { nbytes })?;
        let hash = hasher.hash_one(value);
        let vacant = match codes.entry(hash, |&code| known(code) == value, rehash) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let code = code_of(self.len)?;
        bytes.try_reserve(value.len()).map_err(|_| Error::OutOfMemory { nbytes })?;
        ends.try_reserve(1).map_err(|_| Error::OutOfMemory { nbytes })?;
        bytes.extend_from_slice(value);
        if let Width::Different = width {
            ends.push(bytes.len());
        }
        vacant.insert(code);
        self.len += 1;
        Ok(code)
    }

    /// The first `len` values as an array.
    pub(crate) fn array(&self, len: usize) -> Result<ArrayRef, Error> {
        let len = len.min(self.len);
        let nbytes = match self.width {
            Width::Same(width) => len * width,
            Width::Different => len.checked_sub(1).map_or(0, |last| self.ends[last]),
        };
        let bytes = Fresh::copied(std::iter::once(&self.bytes[..nbytes]))?.into_buffer();
        let ends = &self.ends[..len.min(self.ends.len())];
        let buffers = match &self.data_type {
            DataType::Null => Vec::new(),
            DataType::Boolean => {
                let bits = BooleanBuffer::collect_bool(len, |index| self.bytes[index] == 1);
                vec![bits.into_inner()]
            }
            DataType::Utf8 | DataType::Binary => vec![offsets::<i32>(ends)?, bytes],
            DataType::LargeUtf8 | DataType::LargeBinary => vec![offsets::<i64>(ends)?, bytes],
            DataType::Utf8View | DataType::BinaryView => {
                let views = (0..ends.len()).map(|index| view(&bytes, range(ends, index)));
                vec![Buffer::from_vec(alloc::try_collect(views)?), bytes]
            }
            _ => vec![bytes],
        };
        // Other code may have written to the text between the check and the copy.
        let data = ArrayData::builder(self.data_type.clone()).len(len).buffers(buffers);
        checked(|| Ok(make_array(data.build()?)))
    }
}

/// The ends of values as offsets.
fn offsets<O: OffsetSizeTrait>(ends: &[usize]) -> Result<Buffer, Error> {
    let offsets = Fresh::try_build::<O>(ends.len() + 1, |offsets| {
        offsets.push(O::zero());
        for &end in ends {
            let offset = O::from_usize(end);
            offsets.push(offset.ok_or_else(Error::overflow("offset of the dictionary"))?);
        }
        Ok(())
    })?;
    Ok(offsets.into_buffer())
}

/// The view of a value that is these bytes of the first data block.
fn view(block: &[u8], at: Range<usize>) -> Result<u128, Error> {
    let overflow = Error::Overflow("offset of the dictionary");
    let value = &block[at.clone()];
    let Ok(length) = u32::try_from(value.len()) else { return Err(overflow) };
    let mut view = [0; 16];
    view[..4].copy_from_slice(&length.to_le_bytes());
    if length <= MAX_INLINE_VIEW_LEN {
        view[4..4 + value.len()].copy_from_slice(value);
        return Ok(u128::from_le_bytes(view));
    }
    let Ok(offset) = u32::try_from(at.start) else { return Err(overflow) };
    Ok(ByteView::new(length, &value[..4]).with_offset(offset).as_u128())
}

fn code_of(index: usize) -> Result<i32, Error> {
    let count = index.saturating_add(1);
    i32::try_from(index).map_err(|_| Error::TooManyValues { count, keys: DataType::Int32 })
}

fn at<'a>(width: Width, bytes: &'a [u8], ends: &[usize], index: usize) -> &'a [u8] {
    match width {
        Width::Same(width) => &bytes[index * width..][..width],
        Width::Different => &bytes[range(ends, index)],
    }
}

fn range(ends: &[usize], index: usize) -> Range<usize> {
    index.checked_sub(1).map_or(0, |last| ends[last])..ends[index]
}

type ValueBytes<'a> = Box<dyn Fn(usize) -> &'a [u8] + 'a>;

/// The bytes of each value of a non-nested array, which `data` describes.
fn reader<'a>(values: &'a dyn Array, data: &'a ArrayData, one_zero: bool) -> ValueBytes<'a> {
    match values.data_type() {
        DataType::Utf8 => texts(values.as_bytes::<types::Utf8Type>()),
        DataType::LargeUtf8 => texts(values.as_bytes::<types::LargeUtf8Type>()),
        DataType::Binary => texts(values.as_bytes::<types::BinaryType>()),
        DataType::LargeBinary => texts(values.as_bytes::<types::LargeBinaryType>()),
        DataType::Utf8View => views(values.as_byte_view::<types::StringViewType>()),
        DataType::BinaryView => views(values.as_byte_view::<types::BinaryViewType>()),
        DataType::Boolean => {
            let bits = values.as_boolean().values();
            Box::new(|index| if bits.value(index) { &[1] } else { &[0] })
        }
        other => {
            let words = words(data, item_width(other).unwrap_or(0));
            match other {
                DataType::Float16 => {
                    let zero = one_zero.then(|| f16::NEG_ZERO.to_ne_bytes());
                    numbers(words, &F16_NAN, zero, |it| f16::from_ne_bytes(it).is_nan())
                }
                DataType::Float32 => {
                    let zero = one_zero.then(|| (-0.0_f32).to_ne_bytes());
                    numbers(words, &F32_NAN, zero, |it| f32::from_ne_bytes(it).is_nan())
                }
                DataType::Float64 => {
                    let zero = one_zero.then(|| (-0.0_f64).to_ne_bytes());
                    numbers(words, &F64_NAN, zero, |it| f64::from_ne_bytes(it).is_nan())
                }
                _ => words,
            }
        }
    }
}

const F16_NAN: [u8; 2] = f16::NAN.to_ne_bytes();
const F32_NAN: [u8; 4] = f32::NAN.to_ne_bytes();
const F64_NAN: [u8; 8] = f64::NAN.to_ne_bytes();

/// Floats, with every NaN replaced by the same one, and the negative zero, if it is given, by the other.
fn numbers<'a, const N: usize>(
    words: ValueBytes<'a>,
    nan: &'static [u8; N],
    negative_zero: Option<[u8; N]>,
    is_nan: fn([u8; N]) -> bool,
) -> ValueBytes<'a> {
    Box::new(move |index| match words(index).try_into() {
        Ok(bytes) if is_nan(bytes) => nan,
        Ok(bytes) if Some(bytes) == negative_zero => &[0; N],
        _ => words(index),
    })
}

fn words(data: &ArrayData, width: usize) -> ValueBytes<'_> {
    let bytes = data.buffers().first().map_or(&[][..], Buffer::as_slice);
    Box::new(move |index| &bytes[(data.offset() + index) * width..][..width])
}

// Other code may change offsets after the check, so each is read once and checked again.

fn texts<T: ByteArrayType>(values: &GenericByteArray<T>) -> ValueBytes<'_> {
    let (offsets, bytes) = (values.value_offsets(), values.value_data());
    Box::new(move |index| &bytes[offsets[index].as_usize()..offsets[index + 1].as_usize()])
}

fn views<T: ByteViewType>(values: &GenericByteViewArray<T>) -> ValueBytes<'_> {
    Box::new(move |index| {
        match place(values.views()[index], index, values.views(), values.data_buffers()) {
            Ok((block, at)) => &block[at],
            Err(problem) => unreachable!("the views were checked: {problem}"),
        }
    })
}
