//! What conversions allocate: an export its tensor and nothing else, an import what Arrow's `Buffer` and
//! `ArrayRef` need, a copy its result and scratch that does not grow with the rows.
//!
//! The allocator counts for each thread by itself, so that the tests can run at once.
#![expect(unsafe_code, reason = "stands between the program and its allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Int8Array, Int16Array,
    RecordBatch, StringArray,
};
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode};
use arrow_dlpack::{
    Export, Import, ManagedTensor, NullPolicy, Order, export, from_dlpack, import, to_dlpack,
};
use arrow_schema::{DataType, Field};

use support::{Data, Producer};

mod support;

/// Beside the result: plans, names, blocks of rows.
const SCRATCH: usize = 256 << 10;

/// What a thread has asked for, since it was last set to zero.
#[derive(Clone, Copy, Default)]
struct Asked {
    allocations: usize,
    /// Bytes held now, and the most at any time.
    held: isize,
    peak: isize,
}

thread_local! {
    static ASKED: Cell<Asked> = const {
        Cell::new(Asked { allocations: 0, held: 0, peak: 0 })
    };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn count(allocations: usize, more: usize, less: usize) {
        // A thread that ends has nobody left to count for.
        let _ = ASKED.try_with(|cell| {
            let mut asked = cell.get();
            asked.allocations += allocations;
            asked.held += signed(more) - signed(less);
            asked.peak = asked.peak.max(asked.held);
            cell.set(asked);
        });
    }
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: all is done by the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(1, layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(1, layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old memory and the new exist at once, at worst.
        Self::count(1, size, 0);
        Self::count(0, 0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        Self::count(0, 0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What `work` allocates on this thread, and its result, which still holds its part.
fn allocations<T>(work: impl FnOnce() -> T) -> (T, Asked) {
    ASKED.set(Asked::default());
    let result = work();
    (result, ASKED.get())
}

fn field(array: &dyn Array) -> Field {
    Field::new("column", array.data_type().clone(), true)
}

/// Float32 values in `rank` axes, of two each but the first.
fn nested(rank: usize) -> ArrayRef {
    let mut array: ArrayRef = Arc::new(Float32Array::from(vec![0.5; 64]));
    for _ in 1..rank {
        let item = Arc::new(Field::new("item", array.data_type().clone(), false));
        array = Arc::new(FixedSizeListArray::new(item, 2, array, None));
    }
    array
}

#[test]
fn sharing_a_column_is_one_allocation_under_256_bytes() {
    let column = Float32Array::from(vec![0.5; 1000]);
    let (column, sliced) = (column.clone(), column.slice(3, 500));
    let (field, options) = (field(&column), Export::default());
    for array in [&column, &sliced] {
        let (tensor, asked) = allocations(|| to_dlpack(array, &field, &options));
        assert_eq!(asked.allocations, 1);
        assert!(asked.peak < 256, "{} bytes", asked.peak);
        drop(tensor);
        assert_eq!(ASKED.get().held, 0);

        let (_tensor, asked) = allocations(|| export::array(array));
        assert_eq!(asked.allocations, 1);
    }
}

#[test]
fn what_remains_of_a_share_of_any_rank_up_to_4_is_under_256_bytes() {
    for rank in 1..=4 {
        let array = nested(rank);
        let field = field(&array);
        let (tensor, asked) = allocations(|| to_dlpack(&array, &field, &Export::default()));
        assert_eq!(tensor.as_ref().map(ManagedTensor::ndim).ok(), Some(rank));
        assert!((1..256).contains(&asked.held), "rank {rank}: {} bytes", asked.held);
        eprintln!("rank {rank}: {} allocations, {} bytes at most", asked.allocations, asked.peak);
    }
}

#[test]
fn an_import_allocates_what_buffer_and_array_need() {
    let column = Float32Array::from(vec![0.5; 1000]);
    let tensor = || export::array(&column).unwrap();
    let options = Import::default();
    let first = tensor();
    let (imported, asked) = allocations(|| from_dlpack(first, &options));
    eprintln!("import: {} allocations, {} bytes at most", asked.allocations, asked.peak);
    drop(imported);
    let second = tensor();
    let (imported, asked) = allocations(|| import::array(second));
    eprintln!("import: {} allocations, {} bytes at most", asked.allocations, asked.peak);
    drop(imported);
}
