//! A hostile producer: any descriptor, in either ABI, over memory with canaries around it, with a
//! deleter that counts.
//!
//! A [`Producer`] says what the descriptor will say, field by field. [`Producer::tensor`] hands it to
//! the library and keeps a [`Watch`], which every test must settle: [`Watch::released_once`] asserts
//! that the deleter ran exactly once and that its memory was not written to.
#![expect(unsafe_code, reason = "plays the other side of a C ABI")]
#![allow(dead_code, unused_macros, reason = "each test binary uses the part that it needs")]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, Buffer, ToByteSlice};
use arrow_dlpack::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLPackFlags, DLPackVersion, DLTensor,
};
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, from_dlpack};

/// Calls a law once for each of the eleven numeric types, with the dtype that dlpack.h gives it:
/// written out here, so that the library's own table has something to be compared with.
macro_rules! for_each_numeric {
    ($law:ident) => {
        $law::<arrow_array::types::Int8Type>(crate::support::dtype(0, 8, 1));
        $law::<arrow_array::types::Int16Type>(crate::support::dtype(0, 16, 1));
        $law::<arrow_array::types::Int32Type>(crate::support::dtype(0, 32, 1));
        $law::<arrow_array::types::Int64Type>(crate::support::dtype(0, 64, 1));
        $law::<arrow_array::types::UInt8Type>(crate::support::dtype(1, 8, 1));
        $law::<arrow_array::types::UInt16Type>(crate::support::dtype(1, 16, 1));
        $law::<arrow_array::types::UInt32Type>(crate::support::dtype(1, 32, 1));
        $law::<arrow_array::types::UInt64Type>(crate::support::dtype(1, 64, 1));
        $law::<arrow_array::types::Float16Type>(crate::support::dtype(2, 16, 1));
        $law::<arrow_array::types::Float32Type>(crate::support::dtype(2, 32, 1));
        $law::<arrow_array::types::Float64Type>(crate::support::dtype(2, 64, 1));
    };
}
#[allow(unused_imports, reason = "each test binary uses the part that it needs")]
pub(crate) use for_each_numeric;

pub(crate) const fn dtype(code: u8, bits: u8, lanes: u16) -> DLDataType {
    DLDataType { code: DLDataTypeCode(code), bits, lanes }
}

/// Whether `dlpack.h` has such a type; of codes that it does not know, all but those of no bits.
pub(crate) fn is_dtype(DLDataType { code, bits, lanes }: DLDataType) -> bool {
    lanes > 0
        && match code.0 {
            0 | 1 => bits.count_ones() == 1,
            2 => [16, 32, 64, 128].contains(&bits),
            4 => bits == 16,
            5 => [32, 64, 128].contains(&bits),
            6..=14 => bits == 8,
            15 | 16 => bits == 6,
            17 => bits == 4,
            _ => bits > 0,
        }
}

pub(crate) const fn device(kind: i32, id: i32) -> DLDevice {
    DLDevice { device_type: DLDeviceType(kind), device_id: id }
}

#[allow(clippy::needless_update, reason = "more options will come")]
pub(crate) fn import(copy: CopyPolicy) -> ImportOptions {
    ImportOptions::default().with_copy(copy)
}

pub(crate) fn export(copy: CopyPolicy) -> ExportOptions {
    ExportOptions::default().with_copy(copy)
}

/// Which of the two managed structs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abi {
    Versioned,
    Legacy,
}

impl Abi {
    pub(crate) const BOTH: [Self; 2] = [Self::Versioned, Self::Legacy];
}

/// What an `int64_t*` of the descriptor will be.
#[derive(Clone, Debug)]
pub(crate) enum Ints {
    Null,
    Values(Vec<i64>),
    /// The values, at an address that is not aligned for them: i686 has them at multiples of 4.
    Misaligned(Vec<i64>),
    /// An address with nothing behind it, which must not be read.
    Address(usize),
}

impl<const N: usize> From<[i64; N]> for Ints {
    fn from(values: [i64; N]) -> Self {
        Self::Values(values.into())
    }
}

/// What `data` will be.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Null,
    /// An address with nothing behind it, which must not be read.
    Address(usize),
    /// These bytes; `data` is `origin` bytes behind the first of them, which is `misalign` bytes
    /// behind a multiple of 64.
    Bytes {
        bytes: Vec<u8>,
        origin: usize,
        misalign: usize,
    },
}

/// Everything that a descriptor says. Start from one that is true and spoil it:
/// `Producer { strides: [2].into(), ..Producer::vector(&[1i32, 2, 3]) }`.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    pub(crate) version: DLPackVersion,
    pub(crate) flags: DLPackFlags,
    pub(crate) data: Data,
    pub(crate) device: DLDevice,
    pub(crate) ndim: i32,
    pub(crate) dtype: DLDataType,
    pub(crate) shape: Ints,
    pub(crate) strides: Ints,
    pub(crate) byte_offset: u64,
    pub(crate) deleter: bool,
}

impl Producer {
    /// A contiguous vector on the CPU, all of it true.
    pub(crate) fn vector<T: Element>(values: &[T]) -> Self {
        let extent = i64::try_from(values.len()).expect("a short vector");
        Self::bytes(T::DTYPE, values.to_byte_slice(), &[extent], &[1])
    }

    /// Bytes on the CPU as elements of any dtype and shape, the first element first.
    pub(crate) fn bytes(dtype: DLDataType, bytes: &[u8], shape: &[i64], strides: &[i64]) -> Self {
        Self {
            version: DLPackVersion { major: 1, minor: 3 },
            flags: DLPackFlags(0),
            data: Data::Bytes { bytes: bytes.to_vec(), origin: 0, misalign: 0 },
            device: device(1, 0),
            ndim: i32::try_from(shape.len()).expect("a few axes"),
            dtype,
            shape: Ints::Values(shape.to_vec()),
            strides: Ints::Values(strides.to_vec()),
            byte_offset: 0,
            deleter: true,
        }
    }

    /// Hands a tensor of the given ABI over to the library.
    ///
    /// Not marked unsafe, or every test would be: a test that has the library believe a lie about
    /// readable memory is a bug in that test.
    pub(crate) fn tensor(self, abi: Abi) -> (Result<ManagedTensor, Error>, Watch) {
        match abi {
            Abi::Versioned => {
                let (raw, watch) = self.versioned();
                // SAFETY: made just now, given up here, and as true as the test wants it.
                (unsafe { ManagedTensor::from_raw(raw) }, watch)
            }
            Abi::Legacy => {
                let (raw, watch) = self.legacy();
                // SAFETY: as above.
                (unsafe { ManagedTensor::from_raw_legacy(raw) }, watch)
            }
        }
    }

    /// Hands a tensor over and asks for an Arrow array.
    pub(crate) fn array(self, abi: Abi, copy: CopyPolicy) -> (Result<ArrayRef, Error>, Watch) {
        let (tensor, watch) = self.tensor(abi);
        let array = tensor.and_then(|tensor| from_dlpack(tensor, &import(copy)));
        (array.map(|(array, _)| array), watch)
    }

    /// The pointer that a C consumer would get.
    pub(crate) fn versioned(self) -> (*mut DLManagedTensorVersioned, Watch) {
        let (version, flags) = (self.version, self.flags);
        let deleter: Option<Deleter<_>> = self.deleter.then_some(count_and_free);
        let (dl_tensor, state) = self.build();
        let manager_ctx = ptr::null_mut();
        lend(DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor }, state)
    }

    /// As [`Self::versioned`], in the legacy ABI.
    pub(crate) fn legacy(self) -> (*mut DLManagedTensor, Watch) {
        let deleter: Option<Deleter<_>> = self.deleter.then_some(count_and_free);
        let (dl_tensor, state) = self.build();
        lend(DLManagedTensor { dl_tensor, manager_ctx: ptr::null_mut(), deleter }, state)
    }

    fn build(self) -> (DLTensor, Arc<State>) {
        let mut memory = Vec::new();
        let mut lend = |bytes: &[u8], misalign| {
            let guarded = Guarded::new(bytes, misalign);
            let start = guarded.start();
            memory.push(guarded);
            start
        };
        let mut ints = |ints: &Ints| match ints {
            Ints::Null => ptr::null_mut(),
            Ints::Values(values) => lend(values.to_byte_slice(), 0).cast(),
            Ints::Misaligned(values) => lend(values.to_byte_slice(), align_of::<i64>() / 2).cast(),
            Ints::Address(address) => ptr::without_provenance_mut(*address),
        };
        let (shape, strides) = (ints(&self.shape), ints(&self.strides));
        let data = match &self.data {
            Data::Null => ptr::null_mut(),
            Data::Address(address) => ptr::without_provenance_mut(*address),
            Data::Bytes { bytes, origin, misalign } => lend(bytes, *misalign).wrapping_add(*origin),
        };
        let dl_tensor = DLTensor {
            data: data.cast(),
            device: self.device,
            ndim: self.ndim,
            dtype: self.dtype,
            shape,
            strides,
            byte_offset: self.byte_offset,
        };
        let state = State {
            data: data.addr(),
            deletions: AtomicUsize::new(0),
            spoiled: AtomicBool::new(false),
            memory: Mutex::new(memory),
            thread: Mutex::new(None),
        };
        (dl_tensor, Arc::new(state))
    }
}

/// No tensor, at an address where none can be.
pub(crate) fn misaligned_tensor(abi: Abi, address: usize) -> Result<ManagedTensor, Error> {
    assert_ne!(address % 8, 0);
    // SAFETY: nothing is there, and nothing may be looked for.
    unsafe {
        match abi {
            Abi::Versioned => ManagedTensor::from_raw(ptr::without_provenance_mut(address)),
            Abi::Legacy => ManagedTensor::from_raw_legacy(ptr::without_provenance_mut(address)),
        }
    }
}

/// Does what a C consumer does in the end.
pub(crate) fn delete(raw: *mut DLManagedTensorVersioned) {
    // SAFETY: the tests pass what `into_raw` returned, once.
    unsafe { ((*raw).deleter.expect("a deleter"))(raw) }
}

/// As [`delete`], in the legacy ABI.
pub(crate) fn delete_legacy(raw: *mut DLManagedTensor) {
    // SAFETY: the tests pass what `into_raw_legacy` returned, once.
    unsafe { ((*raw).deleter.expect("a deleter"))(raw) }
}

/// Hands over a NULL pointer.
pub(crate) fn null_tensor(abi: Abi) -> Result<ManagedTensor, Error> {
    // SAFETY: NULL is allowed.
    unsafe {
        match abi {
            Abi::Versioned => ManagedTensor::from_raw(ptr::null_mut()),
            Abi::Legacy => ManagedTensor::from_raw_legacy(ptr::null_mut()),
        }
    }
}

/// Rust's type for a dtype.
pub(crate) trait Element: ArrowNativeType {
    const DTYPE: DLDataType;
}

macro_rules! elements {
    ($($type:ty, $code:literal, $bits:literal;)*) => {
        $(impl Element for $type { const DTYPE: DLDataType = dtype($code, $bits, 1); })*
    };
}
elements! {
    i8, 0, 8; i16, 0, 16; i32, 0, 32; i64, 0, 64; u8, 1, 8; u16, 1, 16; u32, 1, 32; u64, 1, 64;
    half::f16, 2, 16; f32, 2, 32; f64, 2, 64;
}

/// What the deleter leaves behind, and what it takes away.
#[derive(Debug)]
struct State {
    /// What `data` of the descriptor says.
    data: usize,
    deletions: AtomicUsize,
    spoiled: AtomicBool,
    memory: Mutex<Vec<Guarded>>,
    thread: Mutex<Option<ThreadId>>,
}

impl State {
    fn delete(&self) {
        self.deletions.fetch_add(1, Ordering::SeqCst);
        *self.thread.lock().expect("no panic here") = Some(thread::current().id());
        // The memory is freed now, so that ASan sees who reads it later.
        for guarded in self.memory.lock().expect("no panic here").drain(..) {
            if !guarded.is_whole() {
                self.spoiled.store(true, Ordering::SeqCst);
            }
        }
    }
}

/// A managed struct, and behind it the state that its deleter finds: `manager_ctx` is not needed.
#[repr(C)]
struct Exported<H> {
    header: H,
    state: Arc<State>,
}

type Deleter<H> = unsafe extern "C" fn(*mut H);

unsafe extern "C" fn count_and_free<H>(tensor: *mut H) {
    // SAFETY: `lend` made it, and it lives until the test settles its watch, so that even a second
    // call is only counted.
    unsafe { (*tensor.cast::<Exported<H>>()).state.delete() }
}

fn lend<H: 'static>(header: H, state: Arc<State>) -> (*mut H, Watch) {
    let exported = Box::into_raw(Box::new(Exported { header, state: Arc::clone(&state) }));
    let free: Box<dyn FnOnce()> = Box::new(move || {
        // SAFETY: from `Box::into_raw`, and freed once, for `FnOnce`.
        drop(unsafe { Box::from_raw(exported) });
    });
    (exported.cast(), Watch { state, free: Some(free) })
}

/// What became of a tensor that was handed over. A test that forgets to ask fails.
#[must_use = "say what must have become of the tensor"]
pub(crate) struct Watch {
    state: Arc<State>,
    free: Option<Box<dyn FnOnce()>>,
}

impl Watch {
    /// How often the deleter has been called until now.
    #[must_use]
    pub(crate) fn deletions(&self) -> usize {
        self.state.deletions.load(Ordering::SeqCst)
    }

    /// What the descriptor said of `data`.
    #[must_use]
    pub(crate) fn data(&self) -> usize {
        self.state.data
    }

    /// The thread that called the deleter.
    #[must_use]
    pub(crate) fn deleted_on(&self) -> Option<ThreadId> {
        *self.state.thread.lock().expect("no panic here")
    }

    /// The law of every consumer: one call of the deleter, and nothing written. To be called when
    /// everything made from the tensor is gone.
    #[track_caller]
    pub(crate) fn released_once(self) {
        self.settle(1);
    }

    /// For a tensor without a deleter: nothing was called and nothing written.
    #[track_caller]
    pub(crate) fn never_released(self) {
        self.settle(0);
    }

    #[track_caller]
    fn settle(mut self, deletions: usize) {
        assert_eq!(self.deletions(), deletions, "calls of the deleter");
        let spoiled = self.state.spoiled.load(Ordering::SeqCst);
        let left = self.state.memory.lock().expect("no panic here");
        assert!(
            !spoiled && left.iter().all(Guarded::is_whole),
            "the producer's memory was written to"
        );
        drop(left);
        if let Some(free) = self.free.take() {
            free();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // When a test has failed already, the tensor may still be in use: its header leaks.
        assert!(self.free.is_none() || thread::panicking(), "a watch that was not settled");
    }
}

/// Bytes with canaries on both sides.
#[derive(Debug)]
struct Guarded {
    block: NonNull<u8>,
    layout: Layout,
    expected: Vec<u8>,
    at: usize,
}

// SAFETY: owns its block, as a `Vec` would.
unsafe impl Send for Guarded {}

impl Guarded {
    const CANARY: u8 = 0xC5;
    const FREED: u8 = 0xDD;
    const MARGIN: usize = 64;

    fn new(bytes: &[u8], misalign: usize) -> Self {
        let at = Self::MARGIN + misalign;
        let mut expected = vec![Self::CANARY; at + bytes.len() + Self::MARGIN];
        expected[at..at + bytes.len()].copy_from_slice(bytes);
        let layout = Layout::from_size_align(expected.len(), 64).expect("a few bytes");
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc(layout) }).expect("a few bytes");
        // SAFETY: the block is as long as `expected`.
        unsafe { block.as_ptr().copy_from_nonoverlapping(expected.as_ptr(), expected.len()) };
        Self { block, layout, expected, at }
    }

    fn start(&self) -> *mut u8 {
        self.block.as_ptr().wrapping_add(self.at)
    }

    /// Whether payload and canaries are as they were.
    fn is_whole(&self) -> bool {
        // SAFETY: the block is as long as `expected`, and no writer is left.
        let now = unsafe { slice::from_raw_parts(self.block.as_ptr(), self.expected.len()) };
        now == self.expected
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe {
            self.block.as_ptr().write_bytes(Self::FREED, self.layout.size());
            dealloc(self.block.as_ptr(), self.layout);
        }
    }
}

/// The bytes of a contiguous CPU tensor.
pub(crate) fn bytes_of(tensor: &ManagedTensor) -> Vec<u8> {
    assert!(tensor.is_contiguous() && tensor.device().is_host_readable());
    if tensor.nbytes() == 0 {
        return Vec::new();
    }
    // SAFETY: contiguous and readable, says the library, and it lives as long as the tensor.
    unsafe { slice::from_raw_parts(tensor.as_ptr(), tensor.nbytes()) }.to_vec()
}

/// The values of a numeric array as one buffer, sliced as the array is.
pub(crate) fn values_of(array: &dyn Array) -> Buffer {
    let data = array.to_data();
    assert_eq!((data.buffers().len(), data.offset()), (1, 0), "not one buffer");
    data.buffers()[0].clone()
}

/// The elements of strided memory, one index at a time: the definition, not an algorithm.
pub(crate) fn strided(
    bytes: &[u8],
    origin: usize,
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
) -> Vec<u8> {
    let (Some((&extent, shape)), Some((&stride, strides))) =
        (shape.split_first(), strides.split_first())
    else {
        return bytes[origin..origin + itemsize].to_vec();
    };
    let step = isize::try_from(stride).expect("small") * isize::try_from(itemsize).expect("small");
    (0..isize::try_from(extent).expect("small"))
        .map(|index| origin.checked_add_signed(index * step).expect("inside the memory"))
        .flat_map(|origin| strided(bytes, origin, shape, strides, itemsize))
        .collect()
}

/// The same numbers in every run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to just below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("64 bits");
        usize::try_from(self.next() % end).expect("below a usize")
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
