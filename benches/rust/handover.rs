//! Handing one column over: export and drop, import and drop; ours, dlpark's, and the limit.
#![expect(unsafe_code, reason = "passes tensors through raw pointers, as C does")]

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Float32Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_dlpack::ffi::DLManagedTensorVersioned;
use arrow_dlpack::{
    Error, ExportOptions, ImportOptions, ManagedTensor, export, from_dlpack, import, to_dlpack,
};
use arrow_schema::{DataType, Field};
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, BenchmarkId, Criterion};
use dlpark::metadata::Fixed;

/// What an exported tensor of one axis takes, and what the allocator is asked for in `limit`.
const TENSOR_BYTES: usize = 136;

/// The work does not depend on the rows, which these are here to show.
const EXPORTED_ROWS: [usize; 4] = [1, 1_000, 1_000_000, 100_000_000];
const IMPORTED_ROWS: [usize; 2] = [1, 100_000_000];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(50)
        .without_plots()
        .configure_from_args();
    let mut group = criterion.benchmark_group("export");
    for rows in EXPORTED_ROWS {
        exports(&mut group, rows);
    }
    group.finish();
    let mut group = criterion.benchmark_group("import");
    for rows in IMPORTED_ROWS {
        imports(&mut group, rows);
    }
    group.finish();
    criterion.final_summary();
}

fn exports(group: &mut BenchmarkGroup<'_, WallTime>, rows: usize) {
    // Zeros that are not touched take no memory.
    let array = Float32Array::from(vec![0.0; rows]);
    let field = Field::new("column", DataType::Float32, false);
    let options = ExportOptions::default();
    let mut bench = |name: &str, run: &mut dyn FnMut(&mut Bencher<'_>)| {
        group.bench_function(BenchmarkId::new(name, rows), |bencher| run(bencher));
    };

    bench("limit", &mut |bencher| bencher.iter(|| one_allocation(array.values().inner())));
    bench("ours", &mut |bencher| {
        bencher.iter(|| to_dlpack(black_box(&array), black_box(&field), black_box(&options)));
    });
    bench("ours without a field", &mut |bencher| {
        bencher.iter(|| export::array(black_box(&array)));
    });
    bench("ours by type", &mut |bencher| {
        bencher.iter(|| ManagedTensor::try_from(black_box(&array)));
    });
    let shared = Arc::new(array.clone());
    bench("dlpark", &mut |bencher| bencher.iter(|| dlpark_export(black_box(&shared))));
}

/// A tensor that is there already, taken over again and again: its deleter does nothing.
fn imports(group: &mut BenchmarkGroup<'_, WallTime>, rows: usize) {
    let array = Float32Array::from(vec![0.0; rows]);
    let options = ImportOptions::default();
    let raw = to_dlpack_raw(&array);
    // SAFETY: made just now, and no other code uses it.
    let deleter = unsafe { (*raw).deleter.replace(keep) };
    let mut bench = |name: &str, run: &mut dyn FnMut(&mut Bencher<'_>)| {
        group.bench_function(BenchmarkId::new(name, rows), |bencher| run(bencher));
    };

    let buffer = array.values().inner();
    let start = NonNull::new(buffer.as_ptr().cast_mut()).expect("a buffer's pointer");
    bench("buffer and array only", &mut |bencher| {
        bencher.iter(|| buffer_and_array(start, buffer.len()));
    });
    bench("limit", &mut |bencher| {
        bencher.iter(|| {
            one_allocation(buffer);
            buffer_and_array(start, buffer.len())
        });
    });
    bench("ours", &mut |bencher| {
        // SAFETY: a true tensor, and its deleter leaves it as it is.
        bencher.iter(|| from_dlpack(unsafe { ManagedTensor::from_raw(raw) }?, black_box(&options)));
    });
    bench("ours without a field", &mut |bencher| {
        // SAFETY: as above.
        bencher.iter(|| import::array(unsafe { ManagedTensor::from_raw(raw) }?));
    });
    bench("ours by type", &mut |bencher| {
        bencher.iter(|| {
            // SAFETY: as above.
            let array = Float32Array::try_from(unsafe { ManagedTensor::from_raw(raw) }?)?;
            let array: ArrayRef = Arc::new(array);
            Ok::<_, Error>(array)
        });
    });
    bench("dlpark", &mut |bencher| {
        bencher.iter(|| {
            // SAFETY: as above; both structs mirror dlpack.h.
            let tensor = unsafe { dlpark::versioned::Dlpack::from_raw(raw.cast()) };
            dlpark_import(tensor.expect("version 1"))
        });
    });
    // SAFETY: as it was given, and for the last time.
    unsafe {
        (*raw).deleter = deleter;
        drop(ManagedTensor::from_raw(raw));
    }
}

fn to_dlpack_raw(array: &Float32Array) -> *mut DLManagedTensorVersioned {
    export::array(array).expect("numbers").into_raw()
}

unsafe extern "C" fn keep(_: *mut DLManagedTensorVersioned) {}

/// One malloc and free of a tensor's size, one clone of an `Arc`.
fn one_allocation(buffer: &Buffer) {
    let buffer = black_box(buffer).clone();
    let layout = Layout::from_size_align(TENSOR_BYTES, 8).expect("a layout");
    // SAFETY: the layout has a size; what was allocated is freed.
    unsafe {
        let start = black_box(alloc(layout));
        dealloc(start, layout);
    }
    drop(black_box(buffer));
}

/// What Arrow needs for memory of another's: a buffer with its owner, an array.
fn buffer_and_array(start: NonNull<u8>, len: usize) -> ArrayRef {
    // SAFETY: the array that the memory belongs to outlives the benchmark.
    let buffer =
        unsafe { Buffer::from_custom_allocation(start, len, Arc::new(black_box(0_usize))) };
    Arc::new(Float32Array::new(ScalarBuffer::from(buffer), None))
}

/// An array as a dlpark user would hand it over, without a second allocation for the owner.
fn dlpark_export(array: &Arc<Float32Array>) -> dlpark::versioned::Dlpack {
    let rows = i64::try_from(array.len()).expect("rows");
    let data = array.values().inner().as_ptr().cast_mut().cast();
    let mut tensor = Fixed::new([rows], [1_i64]).initialize(Arc::clone(array)).expect("a tensor");
    tensor
        .set_data(data)
        .set_dtype(dlpark::ffi::DLDataType::F32)
        .set_device(dlpark::ffi::DLDevice::CPU);
    tensor.set_flags(dlpark::DlpackFlags::READ_ONLY).expect("no IS_COPIED");
    // SAFETY: the pointer, the extent and the dtype are the array's, which the tensor owns.
    unsafe { tensor.finish() }
}

/// dlpark has no Arrow: its check, then what a user of both would write.
fn dlpark_import(tensor: dlpark::versioned::Dlpack) -> ArrayRef {
    let seen = tensor.validate().expect("a true tensor");
    // SAFETY: a true tensor of this dtype.
    let values = unsafe { seen.cpu_slice::<f32>() }.expect("floats");
    let (start, len) = (NonNull::from(values).cast(), size_of_val(values));
    // SAFETY: the buffer owns the tensor.
    let buffer = unsafe { Buffer::from_custom_allocation(start, len, Arc::new(Shared(tensor))) };
    Arc::new(Float32Array::new(ScalarBuffer::from(buffer), None))
}

/// dlpark's tensors are not shared between threads, which Arrow's buffers are.
struct Shared(#[expect(dead_code, reason = "owns")] dlpark::versioned::Dlpack);

// SAFETY: no code reads it until it is dropped, which dlpark allows on any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}
impl std::panic::RefUnwindSafe for Shared {}
