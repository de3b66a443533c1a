//! Generated descriptors: drawn at random, mostly true with a lie or two, or all lies.
//!
//! The oracle, `support/truth.rs`, judges them by the words of `dlpack.h`. What it calls false has to be refused, what it
//! calls true has to be read as it reads it; always the deleter runs once, nothing is written to and
//! nothing stays open. `PROPTEST_CASES` draws more of them than the usual few.
#![expect(unsafe_code, reason = "reads tensors element by element")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_dlpack::ffi::{DLDataType, DLDevice, DLPackFlags, DLPackVersion};
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, Representation, from_dlpack,
    import, live, to_dlpack,
};
use arrow_schema::{DataType, Field, FieldRef};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use support::{
    Abi, Data, Ints, Producer, Random, Watch, delete, delete_legacy, device, dtype, is_dtype,
};
use truth::{MOST_AXES, Truth, is_readable, to_usize};

#[path = "support/drawn.rs"]
mod drawn;
mod support;
#[path = "support/truth.rs"]
mod truth;

/// `live()` counts for the whole process, so that one test at a time runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

// Descriptors.

/// Where an array of extents or strides is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Given,
    Null,
    Misaligned,
}

/// Where the elements are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Memory {
    /// Wherever there is as much as the descriptor says, so many bytes behind a multiple of 64.
    Given(usize),
    Null,
    /// Nothing is there.
    Address(usize),
}

/// All that a descriptor says; memory is made for it afterwards.
#[derive(Clone, Debug)]
struct Draft {
    abi: Abi,
    version: DLPackVersion,
    flags: DLPackFlags,
    memory: Memory,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: Vec<i64>,
    shape_place: Place,
    strides: Vec<i64>,
    strides_place: Place,
    byte_offset: u64,
    deleter: bool,
    seed: u64,
}

/// Numbers that overflow something, or nearly.
fn edge() -> impl Strategy<Value = i64> {
    let bits = [0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 47, 59, 60, 61, 62];
    prop_oneof![
        select(bits.to_vec()).prop_map(|bit| 1 << bit),
        select(bits.to_vec()).prop_map(|bit| -(1 << bit)),
        select(vec![0, -1, 3, i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, i64::MAX / 3]),
        any::<i64>(),
    ]
}

fn any_dtype() -> impl Strategy<Value = DLDataType> {
    let bits = prop_oneof![select(vec![0, 1, 2, 4, 6, 8, 16, 32, 64, 128, 255]), any::<u8>()];
    let lanes = prop_oneof![8 => Just(1), 1 => 0..5u16, 1 => any::<u16>()];
    (prop_oneof![8 => 0..20u8, 1 => any::<u8>()], bits, lanes)
        .prop_map(|(code, bits, lanes)| dtype(code, bits, lanes))
}

fn true_dtype() -> impl Strategy<Value = DLDataType> {
    let bits = |code| [1, 2, 4, 6, 8, 16, 32, 64, 128].map(|bits| (code, bits));
    let all = (0..19).chain([255]).flat_map(bits);
    let all = all.filter(|&(code, bits)| is_dtype(dtype(code, bits, 1))).collect::<Vec<_>>();
    let lanes = prop_oneof![12 => Just(1), 1 => 2..5u16, 1 => 1..=u16::MAX];
    (select(all), lanes).prop_map(|((code, bits), lanes)| dtype(code, bits, lanes))
}

fn any_device() -> impl Strategy<Value = DLDevice> {
    let kind = prop_oneof![
        16 => select(vec![1, 1, 1, 3, 11, 13]), 4 => 0..20, 1 => any::<i32>()
    ];
    (kind, select(vec![0, -1, 1, i32::MIN, i32::MAX])).prop_map(|(kind, id)| device(kind, id))
}

/// Strides of axes that lie in some order, with gaps, backwards, or repeated.
fn layout(shape: Vec<i64>) -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let axes = shape.len();
    let order = Just((0..axes).collect::<Vec<_>>());
    let order = prop_oneof![2 => order.clone(), 1 => order.prop_shuffle()];
    let factor = prop_oneof![12 => Just(1i64), 2 => Just(-1), 1 => Just(0), 1 => -3..4i64];
    (order, prop::collection::vec(factor, axes)).prop_map(move |(order, factors)| {
        let mut strides = vec![0; axes];
        let mut step = 1;
        for axis in order.into_iter().rev() {
            strides[axis] = step * factors[axis];
            step *= shape[axis].max(1) * factors[axis].abs().max(1);
        }
        (shape.clone(), strides)
    })
}

prop_compose! {
    /// A true one, over memory that can be made, unless it is on another device.
    fn true_draft()(
        extents in prop_oneof![
            8 => prop::collection::vec(prop_oneof![1 => Just(0), 12 => 1..6i64], 0..5),
            1 => prop::collection::vec(1..3i64, 0..9),
            1 => prop::collection::vec(0..300i64, 0..2),
        ],
    )(
        (shape, strides) in layout(extents),
        dtype in true_dtype(),
        strides_place in prop_oneof![4 => Just(Place::Given), 1 => Just(Place::Null)],
        flags in prop_oneof![4 => 0..8u64, 1 => any::<u64>()],
        (abi, minor) in (select(Abi::BOTH.to_vec()), prop_oneof![0..5u32, any::<u32>()]),
        device in any_device(),
        misalign in prop_oneof![2 => Just(0), 1 => 0..64usize],
        byte_offset in prop_oneof![2 => Just(0), 1 => 0..64u64],
        seed in any::<u64>(),
    ) -> Draft {
        Draft {
            abi,
            version: DLPackVersion { major: 1, minor },
            flags: DLPackFlags(flags),
            memory: Memory::Given(misalign),
            device,
            ndim: i32::try_from(shape.len()).expect("few"),
            dtype,
            shape,
            shape_place: Place::Given,
            strides,
            strides_place,
            byte_offset,
            deleter: true,
            seed,
        }
    }
}

/// One thing that a descriptor says, said otherwise.
#[derive(Clone, Debug)]
enum Lie {
    Major(u32),
    Dtype(DLDataType),
    Device(DLDevice),
    Ndim(i32),
    Extent(Index, i64),
    Stride(Index, i64),
    Shape(Place),
    Strides(Place),
    Memory(Memory),
    ByteOffset(u64),
    NoDeleter,
}

fn lie() -> impl Strategy<Value = Lie> {
    let place = || select(vec![Place::Null, Place::Misaligned]);
    let address = prop_oneof![
        0..200usize,
        (0..200usize).prop_map(|below| usize::MAX - below),
        any::<usize>()
    ];
    let memory = prop_oneof![Just(Memory::Null), address.prop_map(Memory::Address)];
    let offset = prop_oneof![any::<u64>(), (0..300u64).prop_map(|below| u64::MAX - below)];
    prop_oneof![
        prop_oneof![Just(0u32), Just(2), any::<u32>()].prop_map(Lie::Major),
        any_dtype().prop_map(Lie::Dtype),
        any_device().prop_map(Lie::Device),
        prop_oneof![-3..3, any::<i32>(), select(vec![257, i32::MAX])].prop_map(Lie::Ndim),
        (any::<Index>(), edge()).prop_map(|(axis, extent)| Lie::Extent(axis, extent)),
        (any::<Index>(), edge()).prop_map(|(axis, extent)| Lie::Extent(axis, extent)),
        (any::<Index>(), edge()).prop_map(|(axis, stride)| Lie::Stride(axis, stride)),
        (any::<Index>(), edge()).prop_map(|(axis, stride)| Lie::Stride(axis, stride)),
        place().prop_map(Lie::Shape),
        place().prop_map(Lie::Strides),
        memory.prop_map(Lie::Memory),
        offset.prop_map(Lie::ByteOffset),
        Just(Lie::NoDeleter),
    ]
}

impl Draft {
    fn tell(&mut self, lie: Lie) {
        match lie {
            Lie::Major(major) => self.version.major = major,
            Lie::Dtype(dtype) => self.dtype = dtype,
            Lie::Device(device) => self.device = device,
            // Too many to be followed.
            Lie::Ndim(ndim) if ndim > MOST_AXES => self.ndim = ndim,
            // There must be as many extents as it says: that they are there cannot be checked.
            Lie::Ndim(ndim) => {
                self.ndim = ndim.min(i32::try_from(self.shape.len()).expect("few"));
            }
            Lie::Extent(axis, extent) if !self.shape.is_empty() => {
                *axis.get_mut(&mut self.shape) = extent;
            }
            Lie::Stride(axis, stride) if !self.strides.is_empty() => {
                *axis.get_mut(&mut self.strides) = stride;
            }
            Lie::Extent(..) | Lie::Stride(..) => {}
            Lie::Shape(place) => self.shape_place = place,
            Lie::Strides(place) => self.strides_place = place,
            Lie::Memory(memory) => self.memory = memory,
            Lie::ByteOffset(byte_offset) => self.byte_offset = byte_offset,
            Lie::NoDeleter => self.deleter = false,
        }
    }

    /// What the descriptor says, but for its memory. The legacy ABI has no place for flags and versions.
    fn said(&self) -> Producer {
        let ints = |values: &[i64], place| match place {
            Place::Given => Ints::Values(values.to_vec()),
            Place::Null => Ints::Null,
            Place::Misaligned => Ints::Misaligned(values.to_vec()),
        };
        let legacy = self.abi == Abi::Legacy;
        Producer {
            version: DLPackVersion {
                major: if legacy { 1 } else { self.version.major },
                ..self.version
            },
            flags: if legacy { DLPackFlags(0) } else { self.flags },
            data: Data::Null,
            device: self.device,
            ndim: self.ndim,
            dtype: self.dtype,
            shape: ints(&self.shape, self.shape_place),
            strides: ints(&self.strides, self.strides_place),
            byte_offset: self.byte_offset,
            deleter: self.deleter,
        }
    }

    /// What is to be read out of it; `None` if it contradicts itself.
    fn truth(&self) -> Option<Truth> {
        Truth::of(&self.said())
    }

    /// Whether all that the descriptor says can be true at once.
    fn is_true(&self) -> bool {
        self.truth().is_some_and(|truth| {
            let data = match self.memory {
                // Any address that leaves space for all of it.
                Memory::Given(_) => NOWHERE,
                Memory::Null => 0,
                Memory::Address(address) => address,
            };
            truth.is_believable(&self.said(), data)
        })
    }

    /// The descriptor, with memory where it has to be true that there is some.
    fn producer(&self) -> Producer {
        let data = match (self.memory, self.extent()) {
            (Memory::Null, _) => Data::Null,
            (Memory::Address(address), _) => Data::Address(address),
            (Memory::Given(misalign), Some((below, above))) => {
                let offset = to_usize(self.byte_offset.into());
                let bytes = Random(self.seed).bytes(offset + below + above);
                Data::Bytes { bytes, origin: below, misalign }
            }
            // It is not read: the descriptor is false, or the memory not ours to read, which `is_readable` tells.
            (Memory::Given(_), None) => Data::Address(NOWHERE),
        };
        Producer { data, ..self.said() }
    }

    /// Bytes below the first element and from it on, if these are few enough to be there.
    fn extent(&self) -> Option<(usize, usize)> {
        const FEW: i128 = 1 << 16;
        let truth = self.truth()?;
        let (below, above) = (truth.extent.below, truth.extent.above);
        let few = below <= FEW && above <= FEW && self.byte_offset <= 1 << 16;
        (few && truth.size > 0).then(|| (to_usize(below), to_usize(above)))
    }

    fn is_readable(&self) -> bool {
        is_readable(self.device)
    }
}

/// An address with nothing behind it, and unmapped space around it.
const NOWHERE: usize = if cfg!(target_pointer_width = "64") { 1 << 40 } else { 1 << 30 };

// The laws.

/// The elements of a true draft, bit for bit; those that share bytes are in a byte each.
fn expected(draft: &Draft, producer: &Producer) -> Vec<u8> {
    let Data::Bytes { bytes, origin, .. } = &producer.data else { return Vec::new() };
    let first = origin + to_usize(draft.byte_offset.into());
    truth::elements(&draft.truth().expect("true"), bytes, first)
}

/// The elements of a tensor of whole bytes, one at a time, in row-major order.
fn elements(tensor: &ManagedTensor) -> Vec<u8> {
    let itemsize = tensor.itemsize().expect("whole bytes");
    let mut offsets = vec![0isize];
    for (&extent, &stride) in tensor.shape().iter().zip(&*tensor.strides()) {
        let stride = if extent > 1 { isize::try_from(stride).expect("64 bits") } else { 0 };
        let extent = isize::try_from(extent).expect("64 bits");
        offsets = offsets
            .into_iter()
            .flat_map(|at| (0..extent).map(move |index| at + index * stride))
            .collect();
    }
    let size = isize::try_from(itemsize).expect("small");
    let read = |offset: isize| {
        let start = tensor.as_ptr().wrapping_offset(offset * size);
        // SAFETY: an element of a readable tensor, as the tensor says.
        unsafe { std::slice::from_raw_parts(start, itemsize) }.to_vec()
    };
    offsets.into_iter().flat_map(read).collect()
}

/// What an element becomes in Arrow, unless it is asked for bit for bit: `None` where other tests tell.
fn natural(dtype: DLDataType, elements: &[u8]) -> Option<Vec<u8>> {
    Some(match (dtype.code.0, dtype.bits) {
        (6, _) => elements.iter().map(|&byte| u8::from(byte != 0)).collect(),
        (0, ..8) => {
            let shift = 8 - dtype.bits;
            let signed = |code: &u8| (i8::from_ne_bytes([code << shift]) >> shift).to_ne_bytes()[0];
            elements.iter().map(signed).collect()
        }
        (1, ..8) => elements.iter().map(|code| code & (u8::MAX >> (8 - dtype.bits))).collect(),
        (4, _) => {
            let upper = |half: &[u8]| u16::from_ne_bytes([half[0], half[1]]);
            let widen = |half| (u32::from(upper(half)) << 16).to_ne_bytes();
            elements.chunks(2).flat_map(widen).collect()
        }
        (7..=17, _) => return None,
        _ => elements.to_vec(),
    })
}

/// Whether Arrow has something for it: one lane, of a type of its own or one that is a DLPack dtype.
fn has_array(dtype: DLDataType) -> bool {
    dtype.lanes == 1
        && match dtype.code.0 {
            0 | 1 => dtype.bits <= 64,
            2 => dtype.bits <= 64,
            4..=17 => true,
            _ => false,
        }
}

/// Settles a watch for a producer with or without a deleter.
fn settle(draft: &Draft, watch: Watch) {
    if draft.deleter { watch.released_once() } else { watch.never_released() }
}

/// Hands the draft over; the deleter runs once, whatever `work` does with the tensor.
fn with<T>(draft: &Draft, work: impl FnOnce(ManagedTensor, &Watch) -> T) -> Result<T, Error> {
    let (tensor, watch) = draft.producer().tensor(draft.abi);
    let result = tensor.map(|tensor| work(tensor, &watch));
    settle(draft, watch);
    result
}

fn representations(field: Option<&FieldRef>) -> Vec<Representation> {
    let mut all = vec![
        Representation::Canonical,
        Representation::Bool8,
        Representation::Opaque,
        Representation::FixedSizeList,
        Representation::Permuted,
    ];
    all.extend(field.cloned().map(Representation::Field));
    all
}

const POLICIES: [CopyPolicy; 3] = [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always];

fn check(draft: &Draft) {
    let before = live();
    judge(draft);
    assert_eq!(live(), before, "something is open");
}

fn judge(draft: &Draft) {
    let accepted = with(draft, |tensor, watch| describe(draft, &tensor, watch.data()));
    assert_eq!(accepted.is_ok(), draft.is_true(), "{accepted:?}");
    if accepted.is_err() {
        return;
    }
    let truth = draft.truth().expect("true");
    let is_readable = draft.is_readable();
    let is_there = matches!(draft.memory, Memory::Given(_)) && draft.extent().is_some();
    if is_readable && truth.size > 0 && !is_there {
        // It could be true, but is not.
        return;
    }
    if is_readable && truth.size > 1 << 16 && truth.size < 1 << 44 {
        // A machine may have as much memory.
        return;
    }
    for deleter in [true, false] {
        let raw = with(draft, |tensor, _| hand_on(tensor, deleter));
        assert!(raw.is_ok());
    }
    for copy in POLICIES {
        become_table(draft, &truth, copy);
    }
    let field = with(draft, |tensor, _| import::field(&tensor, &ImportOptions::default()).ok());
    for representation in representations(field.expect("true").as_ref()) {
        for copy in POLICIES {
            become_array(
                draft,
                &truth,
                &ImportOptions::default()
                    .with_copy(copy)
                    .with_representation(representation.clone()),
            );
        }
    }
}

/// The accessors say what the descriptor does.
fn describe(draft: &Draft, tensor: &ManagedTensor, data: usize) {
    let truth = draft.truth().expect("it was accepted");
    let ndim = usize::try_from(draft.ndim).expect("it was accepted");
    assert_eq!(tensor.shape(), &draft.shape[..ndim]);
    assert_eq!((tensor.ndim(), tensor.dtype(), tensor.device()), (ndim, draft.dtype, draft.device));
    assert_eq!(i128::try_from(tensor.size()), Ok(truth.size));
    assert_eq!(i128::try_from(tensor.nbytes()), Ok(truth.nbytes));
    if draft.strides_place == Place::Given {
        assert_eq!(&*tensor.strides(), &draft.strides[..ndim]);
    }
    assert_eq!(tensor.is_contiguous(), truth.is_contiguous());
    let flags = if draft.abi == Abi::Versioned { draft.flags } else { DLPackFlags::READ_ONLY };
    assert_eq!((tensor.flags(), tensor.is_read_only()), (flags, flags.0 & 1 == 1));
    let place = match (truth.size, draft.is_readable()) {
        (0, _) => (0, 0),
        (_, true) => (data.wrapping_add(to_usize(draft.byte_offset.into())), 0),
        // The handle may be opaque.
        (_, false) => (data, draft.byte_offset),
    };
    assert_eq!((tensor.as_ptr().addr(), tensor.byte_offset()), place);
    let _ = format!("{tensor:?}");
}

/// What others will make of it.
fn hand_on(tensor: ManagedTensor, legacy: bool) {
    let tensor = Arc::new(tensor);
    let share = tensor.share();
    assert_eq!((share.shape(), share.dtype()), (tensor.shape(), tensor.dtype()));
    assert_eq!((share.as_ptr(), share.byte_offset()), (tensor.as_ptr(), tensor.byte_offset()));
    drop(tensor);
    if legacy {
        let padded = share.dtype().bits < 8 && share.flags().0 & 4 != 0;
        let raw = share.into_raw_legacy();
        assert_eq!(raw.is_err(), padded);
        raw.into_iter().for_each(delete_legacy);
    } else {
        delete(share.into_raw());
    }
}

/// An array, if there can be one, has the elements that the naive reader reads, and gives them back.
fn become_array(draft: &Draft, truth: &Truth, options: &ImportOptions) {
    let outcome = with(draft, |tensor, watch| {
        let copied = tensor.copied();
        let plan = import::explain(&tensor, options);
        let at = tensor.as_ptr();
        let array = from_dlpack(tensor, options);
        if let (Ok(plan), Err(error)) = (&plan, &array) {
            assert!(matches!(error, Error::OutOfMemory { .. }), "{plan}, and then {error}");
        }
        if let Ok((array, _)) = &array {
            let plan = plan.expect("what can be done can be explained");
            let kept = plan.is_zero_copy() && truth.size > 0;
            assert_eq!(watch.deletions(), usize::from(!kept && draft.deleter), "{plan}");
            if kept {
                assert_eq!(address(array), at.addr());
            }
            assert!(!plan.is_zero_copy() || options.copy != CopyPolicy::Always);
            array.to_data().validate_full().expect("a valid array");
        }
        if let Ok(copied) = copied {
            assert_eq!(copied.shape(), &draft.shape[..copied.ndim()]);
            if truth.size > 0 && copied.itemsize().is_some() {
                assert_eq!(elements(&copied), expected(draft, &draft.producer()));
            }
        }
        array.map(|(array, field)| values(draft, truth, &array, &field, options))
    });
    let outcome = outcome.expect("true");
    let Err(error) = outcome else { return };
    let forbidden =
        options.copy == CopyPolicy::Never && matches!(error, Error::CopyForbidden { .. });
    let small = truth.shape.iter().all(|&extent| extent < 1 << 16);
    let is_possible = match &options.representation {
        Representation::Bool8 => draft.dtype.code.0 == 6,
        Representation::Opaque => matches!(draft.dtype.code.0, 4 | 5 | 7..=17),
        _ => true,
    };
    let no_way = !draft.is_readable() || !has_array(draft.dtype) || !is_possible;
    assert!(forbidden || no_way || !small, "{options:?}: {error}");
}

/// The columns of a matrix are those that the naive reader reads.
fn become_table(draft: &Draft, truth: &Truth, copy: CopyPolicy) {
    let &[rows, width @ 0..=16] = truth.shape.as_slice() else { return };
    let names: Vec<String> = (0..width).map(|column| column.to_string()).collect();
    let options = ImportOptions::default().with_copy(copy);
    let batch = with(draft, |tensor, _| {
        let batch = import::matrix(tensor, &names, &options);
        batch.map(|batch| columns(draft, &batch, rows))
    });
    let Err(error) = batch.expect("true") else { return };
    let forbidden = copy == CopyPolicy::Never && matches!(error, Error::CopyForbidden { .. });
    let no_way = !draft.is_readable() || !has_array(draft.dtype);
    let apart = matches!(error, Error::PackedStrides { .. });
    assert!(forbidden || no_way || apart || rows > 1 << 16, "{copy:?}: {error}");
}

fn columns(draft: &Draft, batch: &RecordBatch, rows: i64) {
    assert_eq!(i64::try_from(batch.num_rows()), Ok(rows));
    if rows == 0 || batch.num_columns() == 0 {
        return;
    }
    let read = expected(draft, &draft.producer());
    let Some(all) = natural(draft.dtype, &read) else { return };
    let item = all.len() / batch.num_rows() / batch.num_columns();
    for (index, (column, field)) in batch.columns().iter().zip(batch.schema().fields()).enumerate()
    {
        column.to_data().validate_full().expect("a valid column");
        let tensor =
            to_dlpack(column, field, &ExportOptions::default()).expect("what was a tensor");
        let cells = all.chunks(item).skip(index).step_by(batch.num_columns());
        assert_eq!(elements(&tensor), cells.collect::<Vec<_>>().concat());
    }
}

/// Where the values of an array begin.
fn address(array: &ArrayRef) -> usize {
    match array.as_fixed_size_list_opt() {
        Some(list) => address(list.values()),
        None => array.to_data().buffers()[0].as_ptr().addr(),
    }
}

/// The array is what the naive reader has read, and so is the tensor that is made of it.
fn values(
    draft: &Draft,
    truth: &Truth,
    array: &ArrayRef,
    field: &FieldRef,
    options: &ImportOptions,
) {
    assert!(has_array(draft.dtype) && draft.is_readable());
    assert_eq!((array.data_type(), array.null_count()), (field.data_type(), 0));
    let back = to_dlpack(array, field, &ExportOptions::default()).expect("what was a tensor");
    let mut shape: Vec<i64> = draft.shape[..usize::try_from(draft.ndim).expect("true")].to_vec();
    if shape.is_empty() {
        shape.push(1);
    }
    let bit_for_bit = match &options.representation {
        Representation::Opaque => true,
        Representation::Field(field) => field.extension_type_name() == Some("arrow.opaque"),
        _ => false,
    };
    if !bit_for_bit && draft.dtype.code.0 == 5 {
        shape.push(2);
    }
    assert_eq!(back.shape(), shape);
    if truth.size == 0 {
        return;
    }
    let read = expected(draft, &draft.producer());
    let expected = if bit_for_bit { Some(read.clone()) } else { natural(draft.dtype, &read) };
    if let Some(expected) = expected {
        assert_eq!(elements(&back), expected, "{field:?}");
    } else {
        assert_eq!(back.nbytes(), 4 * read.len());
    }
}

// Rows.

/// A vector of integers of any width, and what it says.
fn integers() -> impl Strategy<Value = (DLDataType, Vec<u8>, Vec<i128>)> {
    let sums = |steps: Vec<u8>| {
        let mut sum = 0u64;
        let mut sums = vec![0];
        sums.extend(steps.into_iter().map(|step| {
            sum += u64::from(step);
            sum
        }));
        sums
    };
    let sorted = prop::collection::vec(prop_oneof![Just(0u8), 0..6u8], 0..6).prop_map(sums);
    let spoiled = (sorted.clone(), any::<Index>(), any::<u64>(), 0..64u32);
    let spoiled = spoiled.prop_map(|(mut offsets, at, other, shift)| {
        *at.get_mut(&mut offsets) = other >> shift;
        offsets
    });
    let raw = prop_oneof![
        8 => sorted.clone(),
        2 => sorted.prop_map(|offsets| offsets[1..].to_vec()),
        4 => spoiled,
        1 => prop::collection::vec(any::<u64>(), 0..4),
    ];
    (raw, 0..2u8, select(vec![8u8, 16, 32, 64])).prop_map(|(raw, code, bits)| {
        let width = usize::from(bits / 8);
        let of = |value: &u64| {
            let bytes = value.to_le_bytes();
            let negative = code == 0 && bytes[width - 1] >= 0x80;
            let mut wide = if negative { [0xFF; 16] } else { [0; 16] };
            wide[..width].copy_from_slice(&bytes[..width]);
            i128::from_le_bytes(wide)
        };
        let values: Vec<i128> = raw.iter().map(of).collect();
        let bytes = values.iter().flat_map(|value| {
            let bytes = value.to_le_bytes();
            let mut bytes = bytes[..width].to_vec();
            if cfg!(target_endian = "big") {
                bytes.reverse();
            }
            bytes
        });
        (dtype(code, bits, 1), bytes.collect(), values)
    })
}

/// Offsets, and where their rows are, if they are offsets of rows among so many values.
fn rows_of(offsets: &[i128], values: usize) -> Option<Vec<std::ops::Range<usize>>> {
    let ends: Vec<usize> =
        offsets.iter().map(|&offset| usize::try_from(offset).ok()).collect::<Option<_>>()?;
    let sorted = ends.is_sorted() && *ends.last()? <= values;
    sorted.then(|| ends.windows(2).map(|pair| pair[0]..pair[1]).collect())
}

fn become_rows(
    values: &Producer,
    (dtype, bytes, offsets): &(DLDataType, Vec<u8>, Vec<i128>),
    flags: u64,
    options: &ImportOptions,
    is_expected: impl FnOnce(Option<(&ArrayRef, &[std::ops::Range<usize>])>),
) {
    let Data::Bytes { bytes: all, .. } = &values.data else { unreachable!("as made") };
    let len = all.len() / usize::from(values.dtype.bits / 8);
    let extent = i64::try_from(offsets.len()).expect("few");
    let flags = DLPackFlags(flags);
    let offsets_tensor = Producer { flags, ..Producer::bytes(*dtype, bytes, &[extent], &[1]) };
    let (offsets_tensor, offsets_watch) = offsets_tensor.tensor(Abi::Versioned);
    let (values, values_watch) = Producer { flags, ..values.clone() }.tensor(Abi::Versioned);
    let outcome =
        import::ragged(values.expect("true"), offsets_tensor.expect("true"), None, options);
    let rows = rows_of(offsets, len);
    match outcome {
        Ok((array, field)) => {
            assert_eq!((array.data_type(), array.null_count()), (field.data_type(), 0));
            array.to_data().validate_full().expect("a valid array");
            let rows = rows.expect("these are no offsets");
            assert_eq!(array.len(), rows.len());
            is_expected(Some((&array, &rows)));
        }
        Err(Error::CopyForbidden { .. }) if options.copy == CopyPolicy::Never => {}
        Err(Error::BadOffsets(_)) => assert!(rows.is_none()),
        Err(Error::NotUtf8 { .. }) => is_expected(None),
        Err(error) => panic!("{error}"),
    }
    values_watch.released_once();
    offsets_watch.released_once();
}

proptest! {
    #![proptest_config(drawn::cases())]

    #[test]
    fn what_is_true_is_read_as_it_says(draft in true_draft()) {
        let _alone = alone();
        prop_assert!(draft.is_true());
        check(&draft);
    }

    #[test]
    fn one_lie_or_two_are_found_out(
        mut draft in true_draft(),
        lies in prop::collection::vec(lie(), 1..3),
    ) {
        let _alone = alone();
        lies.into_iter().for_each(|lie| draft.tell(lie));
        check(&draft);
    }

    #[test]
    fn of_lies_alone_nothing_is_believed_that_is_not_consistent(
        mut draft in true_draft(),
        extents in prop::collection::vec(prop_oneof![
            6 => edge().prop_map(|extent| extent.checked_abs().unwrap_or(0)), 1 => edge(), 1 => 0..3i64,
        ], 4),
        strides in prop::collection::vec(edge(), 4),
        lies in prop::collection::vec(lie(), 4..12),
        ndim in 0..5i32,
    ) {
        let _alone = alone();
        (draft.shape, draft.strides, draft.ndim) = (extents, strides, ndim);
        lies.into_iter().for_each(|lie| draft.tell(lie));
        check(&draft);
    }

    #[test]
    fn offsets_are_those_of_rows_or_refused(
        values in prop::collection::vec(any::<i32>(), 0..20),
        offsets in integers(),
        flags in 0..4u64,
        copy in select(POLICIES.to_vec()),
    ) {
        let _alone = alone();
        let before = live();
        let options = ImportOptions::default().with_copy(copy);
        become_rows(&Producer::vector(&values), &offsets, flags, &options, |rows| {
            let (array, rows) = rows.expect("these are no texts");
            for (row, range) in rows.iter().enumerate() {
                let list = match array.as_list_opt::<i32>() {
                    Some(lists) => lists.value(row),
                    None => array.as_list::<i64>().value(row),
                };
                assert_eq!(list.as_primitive::<Int32Type>().values(), &values[range.clone()]);
            }
        });
        prop_assert_eq!(live(), before);
    }

    #[test]
    fn texts_are_utf8_or_refused(
        bytes in prop_oneof!["[a-zäß€]{0,8}".prop_map(String::into_bytes), any::<Vec<u8>>()],
        offsets in integers(),
        flags in 0..4u64,
        copy in select(POLICIES.to_vec()),
    ) {
        let _alone = alone();
        let before = live();
        let text = Representation::Field(Arc::new(Field::new("x", DataType::LargeUtf8, true)));
        let options = ImportOptions::default().with_copy(copy).with_representation(text);
        // Of the bytes from one on, up to the last row's.
        let is_text = |start: usize, rows: &[std::ops::Range<usize>]| {
            let end = rows.last().map_or(to_usize(offsets.2[0]), |row| row.end);
            std::str::from_utf8(&bytes[start..end]).is_ok_and(|text| {
                rows.iter().all(|row| text.is_char_boundary(row.start - start))
            })
        };
        become_rows(&Producer::vector(&bytes), &offsets, flags, &options, |rows| {
            let Some((array, rows)) = rows else {
                // arrow-rs 59 wants text before the first row too, 60 does not look there.
                let rows = rows_of(&offsets.2, bytes.len());
                return assert!(!rows.is_some_and(|rows| is_text(0, &rows)));
            };
            assert!(is_text(to_usize(offsets.2[0]), rows));
            for (text, row) in array.as_string::<i64>().iter().zip(rows) {
                assert_eq!(text.map(str::as_bytes), Some(&bytes[row.clone()]));
            }
        });
        prop_assert_eq!(live(), before);
    }
}
