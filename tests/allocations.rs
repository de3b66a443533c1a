//! What conversions allocate: an export its tensor and nothing else, an import what Arrow's `Buffer` and
//! `ArrayRef` need, a copy its result and scratch that does not grow with the rows.
//!
//! The allocator counts for each thread by itself, so that the tests can run at once.
#![expect(unsafe_code, reason = "stands between the program and its allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::num::NonZero;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Int8Array,
    Int16Array, ListArray, ListViewArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_dlpack::export::{PadOptions, Source};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Order, export,
    from_dlpack, import, to_dlpack,
};
use arrow_schema::{DataType, Field};

use support::{Producer, Watch};

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
    /// Of the tensors that were passed to this thread's conversions.
    static WATCHES: RefCell<Vec<Watch>> = const { RefCell::new(Vec::new()) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn count(allocations: usize, more: usize, less: usize) {
        // A thread that ends counts no more.
        let _ = ASKED.try_with(|cell| {
            let mut asked = cell.get();
            asked.allocations += allocations;
            asked.held += signed(more) - signed(less);
            asked.peak = asked.peak.max(asked.held);
            cell.set(asked);
        });
    }
}

impl Counting {
    /// A failed allocation counts as requested, but not as held.
    fn given(start: *mut u8, layout: Layout) -> *mut u8 {
        Self::count(1, if start.is_null() { 0 } else { layout.size() }, 0);
        start
    }
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: all is done by the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::given(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::given(unsafe { System.alloc_zeroed(layout) }, layout)
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
    let (field, options) = (field(&column), ExportOptions::default());
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
        let (tensor, asked) = allocations(|| to_dlpack(&array, &field, &ExportOptions::default()));
        assert_eq!(tensor.as_ref().map(ManagedTensor::ndim).ok(), Some(rank));
        assert!((1..256).contains(&asked.held), "rank {rank}: {} bytes", asked.held);
    }
}

#[test]
fn sharing_a_nested_column_is_one_allocation() {
    for rank in 2..=4 {
        let array = nested(rank);
        let field = field(&array);
        let (_tensor, asked) = allocations(|| to_dlpack(&array, &field, &ExportOptions::default()));
        assert_eq!(asked.allocations, 1, "rank {rank}");
    }
}

/// All of them Arrow's own: the buffer's bytes and their owner, and the array.
#[test]
fn an_import_is_three_allocations_under_512_bytes() {
    let column = Float32Array::from(vec![0.5; 1000]);
    // The field of each type is made once, with the first array of it.
    drop(import::array(export::array(&column).unwrap()));
    let tensor = export::array(&column).unwrap();
    let (imported, asked) = allocations(|| from_dlpack(tensor, &ImportOptions::default()));
    assert!(imported.is_ok());
    assert_eq!(asked.allocations, 3);
    assert!(asked.peak < 512, "{} bytes", asked.peak);
}

/// Runs a conversion of two sizes: it holds its result, of so many bytes, and scratch. How many
/// allocations that took.
fn allocates_its_result<Source, Result, E>(
    prepare: impl Fn(usize) -> Source,
    bytes: impl Fn(usize) -> usize,
    convert: impl Fn(Source) -> std::result::Result<Result, E>,
) -> [usize; 2] {
    let sizes = if cfg!(miri) { [1 << 8, 1 << 10] } else { [1 << 18, 1 << 20] };
    // What a thread allocates once.
    assert!(convert(prepare(1)).is_ok());
    let counts = sizes.map(|rows| {
        let source = prepare(rows);
        let (result, asked) = allocations(|| convert(source));
        assert!(result.is_ok());
        let (peak, result) = (asked.peak, bytes(rows));
        assert!(peak >= signed(result), "{peak} bytes are fewer than the result's {result}");
        assert!(peak <= signed(result + SCRATCH), "{peak} bytes for a result of {result}");
        asked.allocations
    });
    WATCHES.take().into_iter().for_each(Watch::released_once);
    counts
}

fn exports<A: Array + 'static>(
    prepare: impl Fn(usize) -> A,
    bytes: impl Fn(usize) -> usize,
    options: &ExportOptions,
) {
    let convert = |array: A| to_dlpack(&array, &field(&array), options);
    let [few, many] = allocates_its_result(prepare, bytes, convert);
    assert_eq!(few, many, "allocations");
}

fn with_nulls(rows: usize) -> Float32Array {
    (0..rows).map(|row| (row % 10 > 0).then_some(0.5)).collect()
}

fn batch(columns: impl IntoIterator<Item = ArrayRef>) -> RecordBatch {
    let names = (0..).map(|at| format!("column {at}"));
    RecordBatch::try_from_iter(names.zip(columns)).expect("columns of one length")
}

fn floats(rows: usize) -> ArrayRef {
    Arc::new(Float32Array::from(vec![0.5; rows]))
}

#[test]
fn booleans_are_unpacked_into_the_result() {
    let booleans = |rows: usize| BooleanArray::from(vec![true; rows]);
    exports(booleans, |rows| rows, &ExportOptions::default());
    exports(|rows| booleans(rows + 3).slice(3, rows), |rows| rows, &ExportOptions::default());
}

#[test]
fn nulls_are_filled_in_the_result() {
    let nulls = NullPolicy::fill(0.0_f32);
    exports(with_nulls, |rows| 4 * rows, &alone().with_nulls(nulls));
    let nulls = NullPolicy::Nan;
    exports(with_nulls, |rows| 4 * rows, &alone().with_nulls(nulls));
}

#[test]
fn a_mask_is_made_in_the_result() {
    allocates_its_result(
        with_nulls,
        |rows| rows,
        |array| export::mask((&array, &field(&array)), &alone()),
    );
}

#[test]
fn values_are_cast_into_the_result() {
    let dtype = Some(FLOAT32);
    let options = alone().with_dtype(dtype);
    exports(|rows| Int16Array::from(vec![1; rows]), |rows| 4 * rows, &options);
    let options = alone().with_nulls(NullPolicy::fill(0)).with_dtype(dtype);
    let integers = |rows| (0..rows).map(|row| (row % 10 > 0).then_some(1)).collect::<Int16Array>();
    exports(integers, |rows| 4 * rows, &options);
}

#[test]
fn columns_are_woven_into_the_result() {
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let options = alone().with_order(order);
        let four = |rows| batch(std::array::from_fn::<_, 4, _>(|_| floats(rows)));
        allocates_its_result(four, |rows| 16 * rows, |batch| export::tensor(&batch, &options));

        let options = options.with_dtype(FLOAT32);
        let mixed = |rows| {
            let bytes: ArrayRef = Arc::new(Int8Array::from(vec![1; rows]));
            let shorts: ArrayRef = Arc::new(Int16Array::from(vec![1; rows]));
            batch([bytes, shorts, floats(rows), floats(rows)])
        };
        allocates_its_result(mixed, |rows| 16 * rows, |batch| export::tensor(&batch, &options));
    }
}

#[test]
fn weaving_takes_as_many_allocations_for_more_rows() {
    let columns = |rows| batch(std::array::from_fn::<_, 16, _>(|_| floats(rows)));
    let [few, many] =
        allocates_its_result(columns, |rows| 64 * rows, |batch| export::tensor(&batch, &alone()));
    assert_eq!(few, many);
}

/// Rows that end within a cache line are assembled elsewhere where the result is large.
#[test]
fn weaving_large_results_takes_a_stage() {
    let four = |rows| batch(std::array::from_fn::<_, 4, _>(|_| floats(rows)));
    let [few, many] =
        allocates_its_result(four, |rows| 16 * rows, |batch| export::tensor(&batch, &alone()));
    assert_eq!(many - few, if cfg!(miri) { 0 } else { 1 });
}

#[test]
fn chunks_are_put_together_in_the_result() {
    let chunks = |rows: usize| -> Vec<ArrayRef> { (0..64).map(|_| floats(rows / 64)).collect() };
    allocates_its_result(
        chunks,
        |rows| 4 * rows,
        |chunks| {
            let field = field(&chunks[0]);
            export::tensor(Source::Chunks(&chunks, &field), &alone())
        },
    );
}

/// Options for one thread: each of several has scratch of its own.
fn alone() -> ExportOptions {
    ExportOptions::default().with_threads(NonZero::new(1))
}

/// 2^62 elements, more than fit memory or can be repeated: every operation on them must allocate nothing, not
/// even temporarily. With addresses of 32 bits they cannot be counted.
#[test]
#[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
fn a_hostile_shape_costs_no_memory() {
    let huge = [1 << 62];
    for dtype in [FLOAT32, support::dtype(0, 64, 1), support::dtype(6, 8, 2)] {
        let (raw, watch) = Producer::bytes(dtype, &[0; 64], &huge, &[1]).versioned();
        // SAFETY: made just now; that it is too large is for the library to find out.
        let (refused, asked) = allocations(|| unsafe { ManagedTensor::from_raw(raw) });
        assert!(matches!(refused, Err(Error::Overflow(_))), "{refused:?}");
        assert!(asked.peak < 4096, "{} bytes", asked.peak);
        watch.released_once();
    }
    for dtype in [support::dtype(1, 8, 1), support::dtype(6, 8, 1), support::dtype(10, 8, 1)] {
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
            let producer = Producer::bytes(dtype, &[1], &huge, &[0]);
            let (tensor, watch) = producer.tensor(support::Abi::Versioned);
            let (refused, asked) = allocations(|| from_dlpack(tensor?, &support::import(copy)));
            let is_expected = match refused {
                Err(Error::OutOfMemory { .. } | Error::CopyForbidden { .. }) => {
                    cfg!(target_pointer_width = "64")
                }
                Err(Error::Overflow(_)) => cfg!(target_pointer_width = "32"),
                _ => false,
            };
            assert!(is_expected, "{refused:?}");
            assert!(asked.peak < 4096, "{} bytes", asked.peak);
            watch.released_once();
        }
    }
}

const FLOAT32: DLDataType = support::dtype(2, 32, 1);

/// A tensor of another library's, of such elements.
fn tensor_of(dtype: DLDataType, bytes: usize, shape: &[i64], strides: &[i64]) -> ManagedTensor {
    let producer = Producer::bytes(dtype, &vec![1; bytes], shape, strides);
    let (tensor, watch) = producer.tensor(support::Abi::Versioned);
    WATCHES.with_borrow_mut(|watches| watches.push(watch));
    tensor.expect("a true tensor")
}

fn extent(rows: usize) -> i64 {
    i64::try_from(rows).expect("rows")
}

fn imports(tensor: impl Fn(usize) -> ManagedTensor, bytes: impl Fn(usize) -> usize) {
    let [few, many] = allocates_its_result(tensor, bytes, |tensor| {
        from_dlpack(tensor, &ImportOptions::default())
    });
    assert_eq!(few, many, "allocations");
}

#[test]
fn strided_values_are_gathered_into_the_result() {
    imports(|rows| tensor_of(FLOAT32, 8 * rows, &[extent(rows)], &[2]), |rows| 4 * rows);
}

#[test]
fn booleans_are_packed_into_the_result() {
    let bools = support::dtype(6, 8, 1);
    imports(|rows| tensor_of(bools, rows, &[extent(rows)], &[1]), |rows| rows / 8);
}

#[test]
fn bfloat16_is_widened_into_the_result() {
    let bfloat16 = support::dtype(4, 16, 1);
    imports(|rows| tensor_of(bfloat16, 2 * rows, &[extent(rows)], &[1]), |rows| 4 * rows);
}

#[test]
fn a_matrix_is_taken_apart_into_the_result() {
    let matrix = |rows| tensor_of(FLOAT32, 16 * rows, &[extent(rows), 4], &[4, 1]);
    allocates_its_result(
        matrix,
        |rows| 16 * rows,
        |matrix| import::matrix(matrix, &["a", "b", "c", "d"], &ImportOptions::default()),
    );
}

/// The loop of a worker: a tensor is written to, read as an array, and handed over for the next round.
#[test]
fn what_goes_round_as_tensor_and_array_is_allocated_once() {
    const ROWS: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };
    let column = Float32Array::from(vec![0.5; ROWS]);
    let field = field(&column);
    let copy = export::array(&column).and_then(|tensor| tensor.copied()).expect("a copy");
    for mut tensor in
        [copy, export::into_tensor_with_field(Arc::new(column), &field).expect("its only holder")]
    {
        let (tensor, asked) = allocations(|| {
            for round in 0..8_u8 {
                tensor.as_slice_mut::<f32>().expect("its only holder")[0] = f32::from(round);
                let (array, _) = from_dlpack(tensor, &ImportOptions::default()).expect("an array");
                tensor = export::into_tensor_with_field(array, &field).expect("its only holder");
            }
            tensor
        });
        assert!(asked.peak < 4096, "{} bytes", asked.peak);
        assert_eq!(tensor.as_slice::<f32>().map(<[f32]>::len), Some(ROWS));
    }
}

/// What is decided costs the same for a thousand rows and for a million; so does a refusal.
#[test]
fn what_is_decided_allocates_nothing_that_grows_with_the_data() {
    type Make = fn(usize) -> Vec<ArrayRef>;
    fn lists(rows: usize) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(DataType::Float32, true));
        let valid = (0..rows).map(|row| row % 7 > 0).collect();
        let values = Arc::new(with_nulls(2 * rows));
        Arc::new(FixedSizeListArray::new(item, 2, values, Some(valid)))
    }
    fn codes(rows: usize, words: [&str; 2]) -> ArrayRef {
        let keys = Int8Array::from_iter((0..rows).map(|row| (row % 3 > 0).then_some(1)));
        Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(words.to_vec()))))
    }
    let columns: [(&str, Make); 6] = [
        ("numbers", |rows| vec![floats(rows)]),
        ("nulls", |rows| vec![Arc::new(with_nulls(rows))]),
        ("booleans", |rows| vec![Arc::new(BooleanArray::from(vec![true; rows]))]),
        ("nested nulls", |rows| vec![lists(rows)]),
        ("chunks", |rows| vec![floats(rows), Arc::new(with_nulls(rows)), floats(1)]),
        ("codes", |rows| vec![codes(rows, ["to", "be"]), codes(rows, ["or", "not"])]),
    ];
    let options = ExportOptions::default().with_physical(true);
    let wishes = [
        options.clone().with_nulls(NullPolicy::fill(0)),
        options.clone().with_nulls(NullPolicy::Masked),
        options.clone().with_nulls(NullPolicy::Masked).with_copy(CopyPolicy::Never),
        options.clone().with_nulls(NullPolicy::fill(0)).with_copy(CopyPolicy::Never),
        options.clone().with_nulls(NullPolicy::fill(0)).with_dtype(Some(FLOAT32)),
    ];
    let sizes = if cfg!(miri) { [1 << 6, 1 << 8] } else { [1 << 10, 1 << 20] };
    for ((name, make), options) in
        columns.iter().flat_map(|column| wishes.iter().map(move |wish| (column, wish)))
    {
        let asked = sizes.map(|rows| {
            let chunks = make(rows);
            let field = field(&chunks[0]);
            let (_, one) =
                allocations(|| export::prepare((&chunks[..], &field), options).map(drop));
            let batches: Vec<_> = if chunks.len() == 1 {
                vec![batch(vec![Arc::clone(&chunks[0]); 2])]
            } else {
                Vec::new()
            };
            let (_, table) = allocations(|| match batches.first() {
                Some(batch) => export::explain(batch, options).map(drop),
                None => Ok(()),
            });
            (one.allocations, one.peak, table.allocations, table.peak)
        });
        assert_eq!(asked[0], asked[1], "{name}, {options:?}");
    }
}

/// Offsets and views are read where they are.
#[test]
fn what_is_decided_of_rows_of_different_lengths_holds_nothing_that_grows_with_them() {
    type Make = fn(usize) -> Vec<ArrayRef>;
    fn lists(rows: usize) -> ListArray {
        let item = Arc::new(Field::new_list_field(DataType::Float32, true));
        let valid = (0..rows).map(|row| row % 7 > 0).collect();
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(3, rows));
        ListArray::new(
            item,
            offsets,
            Arc::new(Float32Array::from(vec![0.5; 3 * rows])),
            Some(valid),
        )
    }
    fn list_views(rows: usize) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(DataType::Float32, true));
        let end = i32::try_from(rows).expect("rows");
        let (offsets, sizes) = ((0..end).rev().collect(), vec![1; rows].into());
        Arc::new(ListViewArray::new(item, offsets, sizes, Arc::new(with_nulls(rows)), None))
    }
    fn texts(rows: usize) -> impl Iterator<Item = Option<&'static str>> {
        (0..rows).map(|row| (row % 5 > 0).then_some("to be or not to be"))
    }
    let columns: [(&str, Make); 5] = [
        ("lists", |rows| vec![Arc::new(lists(rows))]),
        ("a slice", |rows| vec![Arc::new(lists(rows).slice(1, rows - 1))]),
        ("chunks", |rows| vec![Arc::new(lists(rows)), Arc::new(lists(rows))]),
        ("list views", |rows| vec![list_views(rows)]),
        ("text views", |rows| vec![Arc::new(texts(rows).collect::<StringViewArray>())]),
    ];
    let filled = ExportOptions::default().with_nulls(NullPolicy::Fill(0.into()));
    let masked = ExportOptions::default().with_nulls(NullPolicy::Masked);
    let wishes = [filled.clone(), filled.with_copy(CopyPolicy::Never), masked];
    let sizes = if cfg!(miri) { [1 << 6, 1 << 8] } else { [1 << 10, 1 << 18] };
    for ((name, make), options) in
        columns.iter().flat_map(|column| wishes.iter().map(move |wish| (column, wish)))
    {
        let peaks = sizes.map(|rows| {
            let chunks = make(rows);
            let field = field(&chunks[0]);
            let prepare = || export::prepare_ragged((&chunks[..], &field), None, options);
            let (prepared, asked) = allocations(prepare);
            if let Ok(prepared) = prepared {
                let bytes = prepared.plan().bytes_copied();
                let ragged = prepared.run().expect("what was planned");
                let mask = ragged.mask.as_ref().map_or(0, ManagedTensor::nbytes);
                assert_eq!(
                    bytes,
                    ragged.values.nbytes() + ragged.offsets.nbytes() + mask,
                    "{name}"
                );
            }
            let pad = PadOptions::default();
            let padded = || export::prepare_padded((&chunks[..], &field), &pad, options);
            let even = || export::prepare((&chunks[..], &field), options);
            [asked.peak, allocations(padded).1.peak, allocations(even).1.peak]
        });
        for (few, many) in peaks[0].into_iter().zip(peaks[1]) {
            // A view array has more buffers if it is longer.
            assert!(many - few < 4096, "{name}, {options:?}: {peaks:?}");
        }
    }
}
