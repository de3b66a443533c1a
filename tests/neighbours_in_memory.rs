//! Columns become one matrix without a copy only if they are slices of one allocation: a slice of Rust's may
//! not cross from one allocation into another, however close they lie.
//!
//! The allocator gives pages out one behind the other, as those without headers do.
#![expect(unsafe_code, reason = "is an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_dlpack::{CopyPolicy, CopyReason, Error, ExportOptions, ManagedTensor, Order, export};

const PAGE: usize = 4096;
const PAGES: usize = 256;
const ROWS: usize = PAGE / size_of::<f64>();

#[repr(C, align(4096))]
struct Pages(UnsafeCell<[u8; PAGES * PAGE]>);

// SAFETY: each page has one owner, whom the allocator gave it to.
unsafe impl Sync for Pages {}

static MEMORY: Pages = Pages(UnsafeCell::new([0; PAGES * PAGE]));
static GIVEN: AtomicUsize = AtomicUsize::new(0);

struct EndToEnd;

#[global_allocator]
static ALLOCATOR: EndToEnd = EndToEnd;

fn is_page(layout: Layout) -> bool {
    layout.size() == PAGE && layout.align() == align_of::<f64>()
}

// SAFETY: a page is given once; all else is the system's.
unsafe impl GlobalAlloc for EndToEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_page(layout) {
            let page = GIVEN.fetch_add(1, Ordering::Relaxed);
            assert!(page < PAGES, "enough pages for all tests");
            return MEMORY.0.get().cast::<u8>().wrapping_add(page * PAGE);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_page(layout) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(block, layout) }
        }
    }
}

/// Columns of a page each.
fn allocated(count: u8) -> Vec<Float64Array> {
    (0..count).map(|i| Float64Array::from(vec![f64::from(i); ROWS])).collect()
}

/// Columns in one allocation, each beginning so many rows behind the end of the one before it.
fn sliced(count: usize, apart: usize) -> Vec<Float64Array> {
    let values = ScalarBuffer::from(vec![1.0; count * (ROWS + apart)]);
    let column = |i| Float64Array::new(values.slice(i * (ROWS + apart), ROWS), None);
    (0..count).map(column).collect()
}

fn matrix(columns: &[Float64Array], copy: CopyPolicy) -> Result<ManagedTensor, Error> {
    let named = columns.iter().enumerate().map(|(i, column)| {
        let column: ArrayRef = Arc::new(column.clone());
        (format!("c{i}"), column)
    });
    let batch = RecordBatch::try_from_iter(named).expect("columns of one length");
    let options = ExportOptions::default().with_copy(copy).with_order(Order::ColumnMajor);
    export::tensor(&batch, &options)
}

fn refusal(columns: usize) -> Error {
    let reason = CopyReason::Columns(columns);
    Error::CopyForbidden { reason, nbytes: columns * PAGE }
}

fn address(column: &Float64Array) -> usize {
    column.values().inner().as_ptr().addr()
}

#[test]
fn columns_of_separate_allocations_are_copied_though_they_lie_end_to_end() {
    for _ in 0..16 {
        let mut columns = allocated(2);
        columns.sort_by_key(address);
        if address(&columns[0]) + PAGE != address(&columns[1]) {
            continue; // another test took the page between them
        }
        assert_eq!(matrix(&columns, CopyPolicy::Never).unwrap_err(), refusal(2));
        let matrix = matrix(&columns, CopyPolicy::IfNeeded).unwrap();
        assert!(!matrix.is_read_only(), "a copy");
        let values: Vec<f64> = columns.iter().flat_map(|column| column.values().to_vec()).collect();
        let turned = Float64Array::from(values);
        drop(columns);
        let back = arrow_dlpack::import::matrix(matrix, &["x", "y"], &Default::default()).unwrap();
        for (i, column) in back.columns().iter().enumerate() {
            assert_eq!(column.to_data(), turned.slice(i * ROWS, ROWS).to_data());
        }
        return;
    }
    panic!("no two pages lie end to end");
}

#[test]
fn slices_of_one_allocation_that_lie_end_to_end_are_one_matrix() {
    let columns = sliced(3, 0);
    let first = address(&columns[0]);
    let tensor = matrix(&columns, CopyPolicy::Never).unwrap();
    assert_eq!(tensor.as_ptr().addr(), first);
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[512, 3][..], &[1, 512][..]));
    // It keeps the memory by itself, to its last element.
    drop(columns);
    assert_eq!(tensor.copied().unwrap().as_slice::<f64>(), Some(&[1.0; 3 * ROWS][..]));
}

#[test]
fn slices_of_one_allocation_in_another_order_or_apart_are_copied() {
    let apart = sliced(3, 1);
    assert_eq!(matrix(&apart, CopyPolicy::Never).unwrap_err(), refusal(3));
    let [first, second, third] = sliced(3, 0).try_into().unwrap();
    let overlapping = [first.clone(), first.clone()];
    assert_eq!(matrix(&overlapping, CopyPolicy::Never).unwrap_err(), refusal(2));
    let turned = [third, second, first];
    assert_eq!(matrix(&turned, CopyPolicy::Never).unwrap_err(), refusal(3));
}

/// Two buffers over the same memory, each with an owner of its own: the later column's reaches over both.
#[test]
fn memory_that_was_shared_twice_is_one_allocation() {
    let values = vec![2.0_f64; 2 * ROWS];
    let (start, nbytes) = (values.as_ptr().cast_mut().cast(), 2 * PAGE);
    let owner = Arc::new(values);
    let buffer = |nbytes| {
        // SAFETY: the vector's memory, which stays where it is until the last owner goes.
        unsafe {
            Buffer::from_custom_allocation(NonNull::new(start).unwrap(), nbytes, owner.clone())
        }
    };
    let column = |buffer, at| Float64Array::new(ScalarBuffer::new(buffer, at, ROWS), None);
    let columns = [column(buffer(PAGE), 0), column(buffer(nbytes), ROWS)];
    let tensor = matrix(&columns, CopyPolicy::Never).unwrap();
    drop((columns, owner));
    assert_eq!(tensor.copied().unwrap().as_slice::<f64>(), Some(&[2.0; 2 * ROWS][..]));
}
