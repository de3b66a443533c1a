//! Generated arrays: of any type, nested, sliced and null anywhere. They become the tensors
//! that a naive reader of arrays would make of them, where they are if they can stay there, and come back
//! as what they were. `PROPTEST_CASES` draws more of them than the usual few.
#![expect(unsafe_code, reason = "reads tensors element by element")]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, ListArray, RecordBatch, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Number, Order,
    Representation, from_dlpack, to_dlpack,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use proptest::prelude::*;
use proptest::sample::select;

use support::{Random, device, dtype};

#[path = "support/drawn.rs"]
mod drawn;
mod support;

/// A type, and how its tensor's elements are stored: in so many bytes, or in bits.
#[derive(Clone, Debug)]
enum Kind {
    Bytes {
        field: Field,
        dtype: DLDataType,
        width: usize,
    },
    Bits,
    /// A row of so many bytes.
    Binary(i32),
    List(Box<Kind>, i32),
    /// Extents as they lie in memory, and the permutation.
    Tensor(Box<Kind>, Vec<i64>, Option<Vec<usize>>),
}

fn leaf() -> impl Strategy<Value = Kind> {
    let plain = |data_type, code, bits: u8| Kind::Bytes {
        field: Field::new("x", data_type, true),
        dtype: dtype(code, bits, 1),
        width: usize::from(bits / 8),
    };
    let opaque = |storage, of: DLDataType, width| Kind::Bytes {
        field: Extension::opaque(of).annotate(Field::new("x", storage, true)),
        dtype: of,
        width,
    };
    let bool8 = Kind::Bytes {
        field: Extension::Bool8.annotate(Field::new("x", DataType::Int8, true)),
        dtype: dtype(6, 8, 1),
        width: 1,
    };
    let second = TimeUnit::Second;
    select(vec![
        plain(DataType::Int8, 0, 8),
        plain(DataType::UInt16, 1, 16),
        plain(DataType::Float16, 2, 16),
        plain(DataType::Float32, 2, 32),
        plain(DataType::Int64, 0, 64),
        plain(DataType::UInt64, 1, 64),
        plain(DataType::Float64, 2, 64),
        plain(DataType::Date32, 0, 32),
        plain(DataType::Time32(second), 0, 32),
        plain(DataType::Timestamp(second, Some("UTC".into())), 0, 64),
        plain(DataType::Decimal64(18, 2), 0, 64),
        opaque(DataType::UInt16, dtype(4, 16, 1), 2),
        opaque(DataType::UInt8, dtype(10, 8, 1), 1),
        opaque(DataType::FixedSizeBinary(16), dtype(5, 128, 1), 16),
        opaque(DataType::FixedSizeBinary(1), dtype(17, 4, 1), 1),
        bool8,
        Kind::Bits,
        Kind::Binary(3),
        Kind::Binary(0),
    ])
}

/// The bytes of values of the type, which some integers are not.
fn valued(data_type: &DataType, mut bytes: Vec<u8>) -> Vec<u8> {
    match data_type {
        DataType::Time32(_) => {
            for value in bytes.chunks_exact_mut(4) {
                let number = i32::from_ne_bytes(value.try_into().expect("four"));
                value.copy_from_slice(&number.rem_euclid(24 * 60 * 60).to_ne_bytes());
            }
        }
        DataType::Decimal64(digits, _) => {
            for value in bytes.chunks_exact_mut(8) {
                let number = i64::from_ne_bytes(value.try_into().expect("eight"));
                let most = 10_i64.pow((*digits).into());
                value.copy_from_slice(&(number % most).to_ne_bytes());
            }
        }
        _ => {}
    }
    bytes
}

fn kind() -> impl Strategy<Value = Kind> {
    let lists = leaf().prop_recursive(3, 8, 1, |kind| {
        (kind, 0..4i32).prop_map(|(kind, size)| Kind::List(Box::new(kind), size))
    });
    let shape = prop::collection::vec(prop_oneof![1 => Just(0i64), 9 => 1..4i64], 0..4);
    let tensors = (leaf(), shape).prop_flat_map(|(kind, shape)| {
        let axes = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(kind), Just(shape), prop::option::of(axes))
            .prop_map(|(kind, shape, axes)| Kind::Tensor(Box::new(kind), shape, axes))
    });
    prop_oneof![2 => lists, 1 => tensors]
}

/// Which values of an array are null.
#[derive(Clone, Copy, Debug)]
enum Nulls {
    Unsaid,
    /// There is a validity, and all of it is true.
    None,
    Some,
}

fn nulls() -> impl Strategy<Value = Nulls> {
    prop_oneof![4 => Just(Nulls::Unsaid), 2 => Just(Nulls::None), 1 => Just(Nulls::Some)]
}

impl Nulls {
    fn buffer(self, len: usize, random: &mut Random) -> Option<NullBuffer> {
        match self {
            Self::Unsaid => None,
            Self::None => Some(NullBuffer::new_valid(len)),
            Self::Some => Some((0..len).map(|_| random.below(4) > 0).collect()),
        }
    }
}

impl Kind {
    fn field(&self) -> Field {
        match self {
            Self::Bytes { field, .. } => field.clone(),
            Self::Bits => Field::new("x", DataType::Boolean, true),
            Self::Binary(width) => Field::new("x", DataType::FixedSizeBinary(*width), true),
            Self::List(item, size) => {
                Field::new("x", DataType::FixedSizeList(Arc::new(item.field()), *size), true)
            }
            Self::Tensor(item, shape, permutation) => {
                let size = i32::try_from(shape.iter().product::<i64>()).expect("few");
                let list = Self::List(item.clone(), size).field();
                let dimensions = Dimensions { permutation: permutation.clone(), names: None };
                Extension::FixedShapeTensor { shape: shape.clone(), dimensions }.annotate(list)
            }
        }
    }

    /// An array of so many values, which are slices of longer ones at every level.
    fn array(&self, len: usize, nulls: [Nulls; 2], random: &mut Random) -> ArrayRef {
        let (before, behind) = (random.below(4), random.below(4));
        let all = before + len + behind;
        let validity = nulls[0].buffer(all, random);
        let array: ArrayRef = match self {
            Self::Bytes { field, width, .. } => {
                // Booleans, mostly; nothing else minds.
                let bytes = match field.extension_type_name() {
                    Some("arrow.bool8") if random.below(2) == 0 => {
                        (0..all).map(|_| u8::from(random.below(2) == 0)).collect()
                    }
                    _ => random.bytes(all * width),
                };
                values(field.data_type().clone(), all, &valued(field.data_type(), bytes), validity)
            }
            Self::Bits => {
                let bits = (0..all).map(|_| random.below(2) == 0).collect::<BooleanBuffer>();
                Arc::new(BooleanArray::new(bits, validity))
            }
            Self::Binary(width) => {
                let bytes = random.bytes(all * usize::try_from(*width).expect("small"));
                values(DataType::FixedSizeBinary(*width), all, &bytes, validity)
            }
            Self::List(item, _) | Self::Tensor(item, ..) => {
                let DataType::FixedSizeList(field, size) = self.field().data_type().clone() else {
                    unreachable!("a list")
                };
                let count = all * usize::try_from(size).expect("small");
                let items = item.array(count, [nulls[1], nulls[1]], random);
                let lists =
                    FixedSizeListArray::try_new_with_length(field, size, items, validity, all);
                Arc::new(lists.expect("lists"))
            }
        };
        array.slice(before, len)
    }

    /// Extents of one value, as they lie in memory, and the place there of each axis.
    fn axes(&self) -> (Vec<i64>, Vec<usize>) {
        let (extents, places) = match self {
            Self::Bytes { .. } | Self::Bits => return (Vec::new(), Vec::new()),
            Self::Binary(width) => return (vec![i64::from(*width)], vec![0]),
            Self::List(_, size) => (vec![i64::from(*size)], vec![0]),
            Self::Tensor(_, shape, permutation) => {
                let in_order = || (0..shape.len()).collect();
                (shape.clone(), permutation.clone().unwrap_or_else(in_order))
            }
        };
        let (Self::List(item, _) | Self::Tensor(item, ..)) = self else { unreachable!("as above") };
        let (inner, inner_places) = item.axes();
        let outer = extents.len();
        let places = places.into_iter().chain(inner_places.iter().map(|place| outer + place));
        let places = places.collect();
        ([extents, inner].concat(), places)
    }

    fn dtype(&self) -> DLDataType {
        match self {
            Self::Bytes { dtype, .. } => *dtype,
            Self::Bits => dtype(6, 8, 1),
            Self::Binary(_) => dtype(1, 8, 1),
            Self::List(item, _) | Self::Tensor(item, ..) => item.dtype(),
        }
    }

    /// What a naive reader makes of each element, in the order of memory: `None` for those that are null,
    /// or in something that is.
    fn cells(&self, array: &dyn Array) -> Vec<Option<Vec<u8>>> {
        let one = |row: usize| -> Vec<Option<Vec<u8>>> {
            let data = array.to_data();
            let stored = |width: usize| {
                let start = (data.offset() + row) * width;
                data.buffers()[0].as_slice()[start..start + width].to_vec()
            };
            match self {
                Self::Bytes { dtype, width, .. } if dtype.code.0 == 6 => {
                    vec![Some(stored(*width).iter().map(|&byte| u8::from(byte != 0)).collect())]
                }
                Self::Bytes { width, .. } => vec![Some(stored(*width))],
                Self::Bits => vec![Some(vec![u8::from(array.as_boolean().value(row))])],
                Self::Binary(width) => stored(usize::try_from(*width).expect("small"))
                    .into_iter()
                    .map(|byte| Some(vec![byte]))
                    .collect(),
                Self::List(item, _) | Self::Tensor(item, ..) => {
                    item.cells(&array.as_fixed_size_list().value(row))
                }
            }
        };
        let per_row = usize::try_from(self.axes().0.iter().product::<i64>()).expect("few");
        let null = || vec![None; per_row];
        (0..array.len())
            .flat_map(|row| if array.is_null(row) { null() } else { one(row) })
            .collect()
    }

    fn has_nulls(&self, array: &dyn Array) -> bool {
        let within = match self {
            Self::List(item, _) | Self::Tensor(item, ..) => {
                item.has_nulls(array.as_fixed_size_list().values())
            }
            _ => false,
        };
        array.null_count() > 0 || within
    }

    /// Where the elements of an array begin.
    fn address(&self, array: &dyn Array) -> usize {
        let data = array.to_data();
        let at = |width: usize| data.buffers()[0].as_ptr().addr() + data.offset() * width;
        match self {
            Self::Bytes { width, .. } => at(*width),
            Self::Binary(width) => at(usize::try_from(*width).expect("small")),
            Self::Bits => 0,
            Self::List(item, _) | Self::Tensor(item, ..) => {
                item.address(array.as_fixed_size_list().values())
            }
        }
    }

    fn width(&self) -> usize {
        usize::from(self.dtype().bits).div_ceil(8)
    }
}

fn values(data_type: DataType, len: usize, bytes: &[u8], nulls: Option<NullBuffer>) -> ArrayRef {
    let mut buffer = MutableBuffer::new(bytes.len());
    buffer.extend_from_slice(bytes);
    let data = ArrayData::builder(data_type).len(len).add_buffer(Buffer::from(buffer)).nulls(nulls);
    make_array(data.build().expect("an array"))
}

/// The bytes of cells, those that are null being 0.
fn filled(cells: &[Option<Vec<u8>>], width: usize) -> Vec<u8> {
    cells.iter().flat_map(|cell| cell.clone().unwrap_or_else(|| vec![0; width])).collect()
}

/// The elements of a tensor, one at a time, the axes in the order of memory: behind the axis of rows, if
/// there is one, axis `i` is in the place `places[i]` there.
fn elements(tensor: &ManagedTensor, places: &[usize]) -> Vec<u8> {
    let itemsize = tensor.itemsize().expect("whole bytes");
    let rows = tensor.ndim() - places.len();
    let mut axes: Vec<(i64, i64)> = vec![(1, 0); tensor.ndim()];
    for (axis, (&extent, &stride)) in tensor.shape().iter().zip(&*tensor.strides()).enumerate() {
        let place = if axis < rows { axis } else { rows + places[axis - rows] };
        axes[place] = (extent, stride);
    }
    let mut offsets = vec![0i64];
    for (extent, stride) in axes {
        offsets = offsets
            .into_iter()
            .flat_map(|at| (0..extent).map(move |index| at + index * stride))
            .collect();
    }
    let read = |offset: i64| {
        let offset = isize::try_from(offset).expect("64 bits");
        let size = isize::try_from(itemsize).expect("small");
        let start = tensor.as_ptr().wrapping_offset(offset * size);
        // SAFETY: an element of a readable tensor, as the tensor says.
        unsafe { std::slice::from_raw_parts(start, itemsize) }.to_vec()
    };
    offsets.into_iter().flat_map(read).collect()
}

#[derive(Clone, Debug)]
struct Column {
    kind: Kind,
    array: ArrayRef,
}

/// Rows, as a group of bits; Miri takes minutes for so many.
const MANY: Range<usize> = if cfg!(miri) { 9..10 } else { 60..70 };

prop_compose! {
    fn column()(
        kind in kind(),
        len in prop_oneof![1 => Just(0usize), 8 => 1..12usize, 1 => MANY],
        nulls in [nulls(), nulls()],
        seed in any::<u64>(),
    ) -> Column {
        let array = kind.array(len, nulls, &mut Random(seed));
        Column { kind, array }
    }
}

const POLICIES: [CopyPolicy; 3] = [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always];

fn options(copy: CopyPolicy, nulls: NullPolicy) -> ExportOptions {
    ExportOptions::default().with_copy(copy).with_nulls(nulls).with_physical(true)
}

const ZERO: NullPolicy = NullPolicy::Fill(Number::Int(0));

impl Column {
    fn shape(&self) -> Vec<i64> {
        let (extents, places) = self.kind.axes();
        let rows = i64::try_from(self.array.len()).expect("few");
        std::iter::once(rows).chain(places.iter().map(|&place| extents[place])).collect()
    }

    fn exports(&self, copy: CopyPolicy, nulls: NullPolicy) {
        let (field, options) = (self.kind.field(), options(copy, nulls));
        let plan = export::explain(Source::Array(&self.array, Some(&field)), &options);
        let prepared = export::prepare(Source::Array(&self.array, Some(&field)), &options);
        let tensor = prepared.and_then(|prepared| Ok(prepared.run()?.values));
        if self.kind.has_nulls(&self.array) && nulls == NullPolicy::Refuse {
            assert!(matches!(tensor, Err(Error::Nulls { .. })), "{tensor:?}");
            return;
        }
        let tensor = match tensor {
            Ok(tensor) => tensor,
            Err(Error::CopyForbidden { .. }) => {
                assert_eq!(copy, CopyPolicy::Never);
                let if_needed = options.with_copy(CopyPolicy::IfNeeded);
                let plan = export::explain(Source::Array(&self.array, Some(&field)), &if_needed);
                assert!(!plan.expect("a plan").is_zero_copy());
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!((tensor.shape(), tensor.dtype()), (&*self.shape(), self.kind.dtype()));
        assert_eq!(tensor.byte_offset(), 0);
        let cells = self.kind.cells(&self.array);
        let kept = tensor.is_read_only();
        if kept {
            let at = if cells.is_empty() { 0 } else { self.kind.address(&self.array) };
            assert_eq!(tensor.as_ptr().addr(), at);
        }
        // With a mask the plan has one step more, and is forbidden where that is.
        if nulls != NullPolicy::Masked {
            let plan = plan.expect("a plan");
            assert_eq!(plan.is_zero_copy(), kept);
            assert_eq!(plan.bytes_copied(), if kept { 0 } else { tensor.nbytes() });
        }
        if nulls != NullPolicy::Masked {
            let (_, places) = self.kind.axes();
            assert_eq!(elements(&tensor, &places), filled(&cells, self.kind.width()));
        }
        if !self.kind.has_nulls(&self.array) {
            self.comes_back(tensor, kept && !cells.is_empty());
        }
    }

    fn comes_back(&self, tensor: ManagedTensor, kept: bool) {
        let field = Arc::new(self.kind.field());
        let at = tensor.as_ptr().addr();
        let representation = Representation::Field(Arc::clone(&field));
        let options = ImportOptions::default().with_representation(representation);
        let (array, back) = from_dlpack(tensor, &options).expect("what it was");
        assert_eq!(back, field);
        array.to_data().validate_full().expect("a valid array");
        assert_eq!(self.kind.cells(&array), self.kind.cells(&self.array));
        if kept {
            assert_eq!(self.kind.address(&array), at);
            assert_eq!(&array, &self.array);
        }
    }
}

proptest! {
    #![proptest_config(drawn::cases())]

    #[test]
    fn an_array_becomes_what_is_in_it_and_comes_back(column in column()) {
        for copy in POLICIES {
            for nulls in [NullPolicy::Refuse, ZERO, NullPolicy::Masked] {
                column.exports(copy, nulls);
            }
        }
    }

    #[test]
    fn c_finds_strides_at_any_rank_and_no_offset(column in column()) {
        let field = column.kind.field();
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Always] {
            let tensor = to_dlpack(&column.array, &field, &options(copy, ZERO)).expect("a tensor");
            let (shape, empty) = (column.shape(), column.kind.cells(&column.array).is_empty());
            let raw = tensor.into_raw();
            // SAFETY: `into_raw` made it just now.
            let managed = unsafe { raw.read() };
            let tensor = managed.dl_tensor;
            assert_eq!((tensor.ndim, tensor.byte_offset), (i32::try_from(shape.len()).expect("few"), 0));
            assert_eq!((tensor.device, tensor.dtype), (device(1, 0), column.kind.dtype()));
            assert_eq!(tensor.data.is_null(), empty);
            assert!(!tensor.strides.is_null() && tensor.strides.is_aligned());
            // SAFETY: the header promises as many as axes.
            assert_eq!(unsafe { std::slice::from_raw_parts(tensor.shape, shape.len()) }, shape);
            assert!(managed.deleter.is_some() && !managed.manager_ctx.is_null());
            support::delete(raw);
        }
    }

    #[test]
    fn a_mask_is_false_where_something_is_null(column in column()) {
        let field = column.kind.field();
        let options = options(CopyPolicy::IfNeeded, NullPolicy::Masked);
        let mask = export::mask(Source::Array(&column.array, Some(&field)), &options).expect("a mask");
        let cells = column.kind.cells(&column.array);
        let valid: Vec<u8> = cells.iter().map(|cell| u8::from(cell.is_some())).collect();
        let (_, places) = column.kind.axes();
        assert_eq!((mask.shape(), mask.dtype()), (&*column.shape(), dtype(6, 8, 1)));
        assert_eq!(elements(&mask, &places), valid);
    }

    #[test]
    fn chunks_are_the_array_that_they_are_of(column in column(), cuts in [0..70usize, 0..70usize]) {
        let len = column.array.len();
        let (first, second) = (cuts[0].min(cuts[1]).min(len), cuts[0].max(cuts[1]).min(len));
        let chunks = [
            column.array.slice(0, first),
            column.array.slice(first, second - first),
            column.array.slice(second, len - second),
        ];
        let field = column.kind.field();
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Always] {
            let source = Source::Chunks(&chunks, &field);
            let tensor = export::tensor(source, &options(copy, ZERO)).expect("a tensor");
            assert_eq!((tensor.shape(), tensor.dtype()), (&*column.shape(), column.kind.dtype()));
            let cells = column.kind.cells(&column.array);
            let (_, places) = column.kind.axes();
            assert_eq!(elements(&tensor, &places), filled(&cells, column.kind.width()));
        }
    }

    #[test]
    fn each_row_is_a_tensor_of_its_own(column in column()) {
        let field = column.kind.field();
        let (_, places) = column.kind.axes();
        for row in 0..column.array.len() {
            let source = Source::Row(&column.array, Some(&field), row);
            let tensor = export::tensor(source, &options(CopyPolicy::IfNeeded, ZERO)).expect("one");
            assert_eq!(tensor.shape(), &column.shape()[1..]);
            let cells = column.kind.cells(&column.array.slice(row, 1));
            assert_eq!(elements(&tensor, &places), filled(&cells, column.kind.width()));
        }
    }

    #[test]
    fn a_table_is_its_columns_side_by_side(
        (kind, nulls) in (leaf().prop_filter("one cell", |kind| kind.axes().0.is_empty()), nulls()),
        (rows, width) in (0..70usize, 1..6usize),
        seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let columns: Vec<ArrayRef> =
            (0..width).map(|_| kind.array(rows, [nulls; 2], &mut random)).collect();
        let fields: Vec<Field> =
            (0..width).map(|index| kind.field().with_name(index.to_string())).collect();
        let schema = Arc::new(Schema::new(fields));
        let cells: Vec<_> = columns.iter().map(|column| kind.cells(column)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("a table");
        let cut = random.below(rows + 1);
        let batches = [batch.slice(0, cut), batch.slice(cut, rows - cut)];
        for order in [Order::RowMajor, Order::ColumnMajor] {
            for batches in [&[batch.clone()][..], &batches] {
                let options = options(CopyPolicy::IfNeeded, ZERO).with_order(order);
                let matrix = export::tensor(Source::Table(batches, &schema), &options);
                let matrix = matrix.expect("a matrix");
                let side_by_side: Vec<_> =
                    (0..rows).flat_map(|row| cells.iter().map(move |cells| cells[row].clone())).collect();
                assert_eq!(elements(&matrix, &[]), filled(&side_by_side, kind.width()));
            }
        }
    }

    #[test]
    fn lists_are_their_values_and_where_each_row_begins(
        kind in kind(),
        lengths in prop::collection::vec(0..4usize, 0..8),
        (validity, seed) in (nulls(), any::<u64>()),
    ) {
        let mut random = Random(seed);
        let (before, behind) = (random.below(3), random.below(3));
        let ends = OffsetBuffer::from_lengths(
            std::iter::once(before).chain(lengths.iter().copied()),
        );
        let count = before + lengths.iter().sum::<usize>() + behind;
        let items = kind.array(count, [Nulls::None, Nulls::Unsaid], &mut random);
        let nulls = validity.buffer(lengths.len() + 1, &mut random);
        let lists = ListArray::new(Arc::new(kind.field()), ends, items, nulls).slice(1, lengths.len());
        let field = Field::new("x", lists.data_type().clone(), true);
        let ragged = export::ragged(
            (&lists, &field),
            None,
            &options(CopyPolicy::IfNeeded, NullPolicy::Masked),
        );
        let ragged = ragged.expect("ragged");
        let (mut cells, mut offsets, mut valid) = (Vec::new(), vec![0i32], Vec::new());
        for row in 0..lists.len() {
            let is_valid = lists.is_valid(row);
            let items = lists.value(row).slice(0, if is_valid { lengths[row] } else { 0 });
            cells.extend(kind.cells(&items));
            offsets.push(offsets[row] + i32::try_from(items.len()).expect("few"));
            valid.push(u8::from(is_valid));
        }
        assert_eq!(elements(&ragged.values, &kind.axes().1), filled(&cells, kind.width()));
        assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&offsets[..]));
        assert_eq!(elements(&ragged.mask.expect("asked for"), &[]), valid);
    }
}
