//! Hostile sizes and depths: a clear error, and no memory asked for on the way there; and an allocator that
//! says no, which is an error too where a conversion needs memory in proportion to what it converts.
//!
//! The allocator counts and refuses for each thread by itself, so that the tests can run at once.
#![expect(unsafe_code, reason = "stands between the program and its allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;
use std::thread;

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeListArray, Int8Array, Int16Array,
    Int64Array, ListArray, ListViewArray, RecordBatch, StringArray, StringViewArray, cast::AsArray,
};
#[cfg(target_pointer_width = "64")]
use arrow_array::{Float64Array, NullArray, RunArray, StructArray, types::Int64Type};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_dlpack::export::{PadOptions, Source};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Order,
    Representation, export, from_dlpack, import, to_dlpack,
};
use arrow_schema::{DataType, Field, FieldRef};

use support::{Abi, Producer, Watch};

mod support;

/// Far too many levels or axes.
const MANY: usize = if cfg!(miri) { 1000 } else { 100_000 };

thread_local! {
    /// Blocks of so many bytes are refused from here on.
    static REFUSED_FROM: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The largest block that was asked for.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Stingy;

#[global_allocator]
static ALLOCATOR: Stingy = Stingy;

impl Stingy {
    fn gives(size: usize) -> bool {
        // A thread that ends counts no more.
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
        REFUSED_FROM.try_with(|refused| size < refused.get()).unwrap_or(true)
    }
}

// SAFETY: all is done by the system's allocator, or refused with NULL, and nothing here allocates.
unsafe impl GlobalAlloc for Stingy {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if Self::gives(layout.size()) { unsafe { System.alloc(layout) } } else { ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !Self::gives(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !Self::gives(size) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What `work` returns, and the largest block that it asked for.
fn largest<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let result = work();
    (result, LARGEST.get())
}

/// What `work` returns if no block of so many bytes is to be had.
fn without_memory<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    REFUSED_FROM.set(bytes);
    let result = work();
    REFUSED_FROM.set(usize::MAX);
    result
}

const HUGE: i64 = 1 << 62;

/// Every operation on a tensor that cannot be carried out.
fn asked(make: impl Fn() -> (Result<ManagedTensor, Error>, Watch)) {
    let options = |representation| ImportOptions::default().with_representation(representation);
    let with = |convert: &dyn Fn(ManagedTensor) -> Result<(), Error>| {
        let ((error, watch), asked_for) = largest(|| {
            let (tensor, watch) = make();
            (tensor.and_then(convert), watch)
        });
        assert!(error.is_err());
        watch.released_once();
        // But for the result itself, of which the allocator was asked whether it has it.
        if !matches!(error, Err(Error::OutOfMemory { .. } | Error::Column { .. })) {
            assert!(asked_for < 4096, "{asked_for} bytes");
        }
    };
    with(&|tensor| from_dlpack(tensor, &ImportOptions::default()).map(drop));
    with(&|tensor| from_dlpack(tensor, &options(Representation::FixedSizeList)).map(drop));
    with(&|tensor| {
        let always = ImportOptions::default().with_copy(CopyPolicy::Always);
        from_dlpack(tensor, &always).map(drop)
    });
    with(&|tensor| tensor.copied().map(drop));
    with(&|tensor| import::matrix(tensor, &["a", "b"], &ImportOptions::default()).map(drop));
    with(&|tensor| {
        import::record_batch(vec![("x".to_owned(), tensor)], &ImportOptions::default()).map(drop)
    });
    with(&|tensor| {
        let offsets = export::array(&Int64Array::from(vec![0, 1])).expect("a share");
        import::ragged(tensor, offsets, None, &ImportOptions::default()).map(drop)
    });
    with(&|tensor| {
        let values = export::array(&Int8Array::from(vec![0, 1])).expect("a share");
        import::ragged(values, tensor, None, &ImportOptions::default()).map(drop)
    });
}

#[test]
fn no_memory_is_asked_for_on_behalf_of_a_descriptor_that_lies() {
    for abi in Abi::BOTH {
        let vector = |shape: &[i64], strides: &[i64]| {
            Producer::bytes(support::dtype(0, 32, 1), &[0; 8], shape, strides).tensor(abi)
        };
        asked(|| vector(&[HUGE], &[0]));
        asked(|| vector(&[HUGE], &[1]));
        asked(|| vector(&[1 << 31, 1 << 31, 16], &[0, 0, 0]));
        asked(|| vector(&[HUGE, 2], &[0, 0]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
fn elements_that_take_one_byte_between_them_are_too_many_to_be_copied() {
    for abi in Abi::BOTH {
        // Their size in bytes can be counted, and no machine has it.
        for (code, bits) in [(0, 8), (6, 8), (4, 16), (17, 4), (5, 64)] {
            let dtype = support::dtype(code, bits, 1);
            asked(|| Producer::bytes(dtype, &[0; 8], &[1 << 57], &[0]).tensor(abi));
            asked(|| Producer::bytes(dtype, &[0; 8], &[1 << 56, 2], &[0, 0]).tensor(abi));
        }
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn to_explain_the_impossible_takes_no_memory() {
    let dtype = support::dtype(0, 8, 1);
    let (tensor, watch) = Producer::bytes(dtype, &[0; 8], &[1 << 60], &[0]).tensor(Abi::Versioned);
    let tensor = tensor.expect("it is consistent");
    let (plan, asked_for) = largest(|| import::explain(&tensor, &ImportOptions::default()));
    assert_eq!(plan.expect("a plan").bytes_copied(), 1 << 60);
    assert!(asked_for < 4096, "{asked_for} bytes");
    drop(tensor);
    watch.released_once();
}

#[test]
fn rows_of_no_size_can_be_any_number() {
    // 2^62, or as much for addresses of 32 bits.
    let rows = 1 << (usize::BITS - 2);
    let extent = i64::try_from(rows).expect("positive");
    let empty = FixedSizeListArray::try_new_with_length(
        Arc::new(Field::new("item", DataType::Int8, true)),
        0,
        Arc::new(Int8Array::from(Vec::<i8>::new())),
        None,
        rows,
    );
    let empty: ArrayRef = Arc::new(empty.expect("an array"));
    let field = Field::new("x", empty.data_type().clone(), true);
    for options in [
        ExportOptions::default(),
        ExportOptions::default().with_copy(CopyPolicy::Always),
        ExportOptions::default().with_nulls(NullPolicy::fill(0)),
    ] {
        let (tensor, asked_for) = largest(|| to_dlpack(&empty, &field, &options));
        let tensor = tensor.expect("a tensor");
        assert_eq!(tensor.shape(), [extent, 0]);
        assert!(asked_for < 4096, "{asked_for} bytes");
        // And back, as many as they are.
        let (back, asked_for) = largest(|| import::array(tensor));
        assert_eq!(back.expect("an array").len(), rows);
        assert!(asked_for < 4096, "{asked_for} bytes");
    }
    let (mask, asked_for) = largest(|| export::mask((&empty, &field), &ExportOptions::default()));
    assert_eq!(mask.expect("a mask").shape(), [extent, 0]);
    assert!(asked_for < 4096, "{asked_for} bytes");

    // Together they are too many to be counted. Extents have 64 bits everywhere, but rows are counted by addresses.
    for count in if cfg!(target_pointer_width = "64") { [2, 4] } else { [4, 5] } {
        let chunks = vec![Arc::clone(&empty); count];
        let source = || Source::Chunks(&chunks, &field);
        assert!(matches!(
            export::explain(source(), &ExportOptions::default()),
            Err(Error::Overflow(_))
        ));
        let (tensor, asked_for) = largest(|| export::tensor(source(), &ExportOptions::default()));
        assert!(matches!(tensor, Err(Error::Overflow(_))));
        assert!(asked_for < 4096, "{asked_for} bytes");
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn rows_that_nothing_stands_behind_are_refused_at_once() {
    let runs =
        RunArray::<Int64Type>::try_new(&vec![1 << 40].into(), &Float64Array::from(vec![1.5]));
    let runs: ArrayRef = Arc::new(runs.expect("one run"));
    let rows = usize::try_from(HUGE).expect("64 bits");
    let structs: ArrayRef = Arc::new(StructArray::new_empty_fields(rows, None));
    let nulls: ArrayRef = Arc::new(NullArray::new(rows));
    for array in [runs, structs, nulls] {
        let field = Field::new("x", array.data_type().clone(), true);
        let chunks = [Arc::clone(&array), Arc::clone(&array)];
        for options in [
            ExportOptions::default().with_physical(true),
            ExportOptions::default().with_nulls(NullPolicy::Masked),
        ] {
            let all = || {
                [
                    export::tensor((&array, &field), &options).err(),
                    export::tensor(Source::Chunks(&chunks, &field), &options).err(),
                    export::tensor(Source::Row(&array, Some(&field), 1 << 39), &options).err(),
                    export::explain((&array, &field), &options).err(),
                    export::mask((&array, &field), &options).err(),
                    export::ragged((&array, &field), None, &options).err(),
                ]
            };
            let (refusals, asked_for) = largest(all);
            assert!(refusals.iter().all(Option::is_some), "{}: {refusals:?}", array.data_type());
            assert!(asked_for < 4096, "{asked_for} bytes");
        }
    }
}

/// Runs `work`, whose results take at least so many bytes, without memory for those, and then with less and
/// less memory for temporaries: the only error may be `OutOfMemory`.
fn runs_out_of_memory<T>(what: &str, nbytes: usize, work: impl Fn() -> Result<T, Error>) {
    assert!(work().is_ok(), "{what}");
    for bytes in [nbytes, nbytes / 4, 1 << 15] {
        let mut error = without_memory(bytes, || work().err());
        if let Some(Error::Column { error: inner, .. }) = error {
            error = Some(*inner);
        }
        assert!(matches!(error, Some(Error::OutOfMemory { .. })), "{what}: {error:?}");
    }
}

const ROWS: usize = 1 << 20;

fn arrays() -> Vec<(&'static str, ArrayRef)> {
    let nulls = |row: usize| row % 10 > 0;
    let integers: Int16Array = (0..ROWS).map(|row| nulls(row).then_some(1)).collect();
    let booleans: BooleanArray = (0..ROWS).map(|row| nulls(row).then_some(true)).collect();
    let item = Arc::new(Field::new("item", DataType::Int16, true));
    let lists = FixedSizeListArray::new(Arc::clone(&item), 4, Arc::new(integers.clone()), None);
    let rows = (0..ROWS / 4).map(nulls).collect::<Vec<bool>>();
    let values: ArrayRef = Arc::new(integers.clone());
    let holey = FixedSizeListArray::new(item.clone(), 4, values, Some(rows.into()));
    vec![
        ("bytes without nulls", Arc::new(Int8Array::from(vec![1; ROWS]))),
        ("lists of one size with nulls on both levels", Arc::new(holey)),
        ("integers", Arc::new(integers)),
        ("booleans", Arc::new(booleans)),
        ("lists of one size", Arc::new(lists)),
    ]
}

#[test]
#[cfg_attr(miri, ignore = "a million rows take hours")]
fn exports_without_memory_are_errors() {
    for (what, array) in arrays() {
        let field = Field::new("x", array.data_type().clone(), true);
        let (nulls, copy) = (NullPolicy::fill(0), CopyPolicy::Always);
        let fill = ExportOptions::default().with_nulls(nulls).with_copy(copy);
        let cast = fill.clone().with_dtype(DLDataType::FLOAT64);
        for options in [&fill, &cast] {
            runs_out_of_memory(what, ROWS / 4, || to_dlpack(&array, &field, options));
            let chunks = [array.slice(0, ROWS / 8), array.slice(ROWS / 8, array.len() - ROWS / 8)];
            let source = || Source::Chunks(&chunks, &field);
            runs_out_of_memory(what, ROWS / 4, || export::tensor(source(), options));
        }
        runs_out_of_memory(what, ROWS / 4, || export::mask((&array, &field), &fill));
    }
}

#[test]
#[cfg_attr(miri, ignore = "a million rows take hours")]
fn tables_without_memory_are_errors() {
    let columns = arrays().into_iter().filter(|(_, array)| !array.data_type().is_nested());
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let nulls = NullPolicy::fill(0);
        let options = ExportOptions::default().with_nulls(nulls).with_order(order);
        runs_out_of_memory("a matrix", 2 * ROWS, || export::tensor(&batch, &options));
        runs_out_of_memory("its mask", 2 * ROWS, || export::mask(&batch, &options));
    }
}

#[test]
#[cfg_attr(miri, ignore = "a million rows take hours")]
fn ragged_exports_without_memory_are_errors() {
    let text = "a text that is too long to be in its view";
    let texts: Vec<Option<&str>> =
        (0..ROWS / 16).map(|row| (row % 3 > 0).then_some(text)).collect();
    let count = i32::try_from(ROWS / 16).expect("few rows");
    let item: FieldRef = Arc::new(Field::new("item", DataType::Int16, true));
    let values: ArrayRef = Arc::new(Int16Array::from(vec![1; ROWS]));
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter((0..=count).map(|row| row * 16)));
    let lists = ListArray::new(Arc::clone(&item), offsets, Arc::clone(&values), None);
    let starts = ScalarBuffer::from_iter((0..count).rev().map(|row| row * 16));
    let sizes = ScalarBuffer::from_iter((0..count).map(|_| 16));
    let views = ListViewArray::new(item, starts, sizes, values, None);
    let arrays: [ArrayRef; 5] = [
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts.clone())),
        Arc::new(BinaryViewArray::from_iter(texts.iter().map(|text| text.map(str::as_bytes)))),
        Arc::new(lists.slice(1, lists.len() - 1)),
        Arc::new(views),
    ];
    for array in arrays {
        let field = Field::new("x", array.data_type().clone(), true);
        let nulls = NullPolicy::Masked;
        let options = ExportOptions::default().with_nulls(nulls).with_copy(CopyPolicy::Always);
        let what = array.data_type().to_string();
        runs_out_of_memory(&what, 4 * (ROWS / 16), || {
            export::ragged((&array, &field), None, &options)
        });
        let pad = PadOptions::default();
        runs_out_of_memory(&what, 4 * (ROWS / 16), || {
            export::padded((&array, &field), &pad, &options)
        });
        if array.data_type().is_list() {
            runs_out_of_memory(&what, 4 * (ROWS / 16), || export::masked(&array, &options));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a million rows take hours")]
fn imports_without_memory_are_errors() {
    let rows = i64::try_from(ROWS).expect("rows");
    let watches = RefCell::new(Vec::new());
    let tensor = |code, bits, shape: &[i64], strides: &[i64]| {
        let dtype = support::dtype(code, bits, 1);
        let producer = Producer::bytes(dtype, &vec![1; 8 * ROWS], shape, strides);
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        watches.borrow_mut().push(watch);
        tensor.expect("a tensor")
    };
    let all_released = || watches.take().into_iter().for_each(Watch::released_once);
    for (code, bits) in [(0, 16), (2, 32), (6, 8), (4, 16), (5, 32), (17, 4)] {
        let what = format!("code {code}, {bits} bits");
        let run = |shape: &[i64], strides: &[i64], options: &ImportOptions| {
            runs_out_of_memory(&what, ROWS / 8, || {
                // The producer's memory is not the library's.
                let limit = REFUSED_FROM.replace(usize::MAX);
                let tensor = tensor(code, bits, shape, strides);
                REFUSED_FROM.set(limit);
                from_dlpack(tensor, options)
            });
            all_released();
        };
        run(&[rows], &[2], &ImportOptions::default());
        run(
            &[rows / 2, 2],
            &[1, rows / 2],
            &ImportOptions::default().with_representation(Representation::FixedSizeList),
        );
        run(&[rows], &[1], &ImportOptions::default().with_copy(CopyPolicy::Always));
    }
    let ragged = || {
        let limit = REFUSED_FROM.replace(usize::MAX);
        let (values, offsets) = (tensor(1, 8, &[rows], &[1]), tensor(1, 8, &[rows], &[0]));
        REFUSED_FROM.set(limit);
        import::ragged(values, offsets, None, &ImportOptions::default())
    };
    runs_out_of_memory("ragged", ROWS, ragged);
    all_released();
}

/// Lists within lists of one value.
fn nested(levels: usize) -> (ArrayRef, FieldRef) {
    let mut array: ArrayRef = Arc::new(Int8Array::from(vec![7]));
    let mut field: FieldRef = Arc::new(Field::new("item", DataType::Int8, true));
    for _ in 1..levels {
        array = Arc::new(FixedSizeListArray::new(Arc::clone(&field), 1, array, None));
        field = Arc::new(Field::new("item", array.data_type().clone(), true));
    }
    (array, field)
}

/// On a stack of 512 KiB, as macOS has them; in a debug build calls take several times what they do otherwise.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(512 << 10).spawn(work).expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn types_of_64_levels_go_through_a_small_stack_and_deeper_ones_do_not() {
    on_a_small_stack(|| {
        let (array, field) = nested(64);
        let tensor = to_dlpack(&array, &field, &ExportOptions::default()).expect("64 levels");
        assert_eq!(tensor.ndim(), 64);
        let options = ImportOptions::default().with_representation(Representation::FixedSizeList);
        let (back, _) = from_dlpack(tensor, &options).expect("64 levels");
        assert!(back.as_fixed_size_list().value(0).len() == 1);
    });
    on_a_small_stack(|| {
        for levels in [65, 300] {
            let (array, field) = nested(levels);
            let too_deep = |error: Option<Error>| {
                assert_eq!(error, Some(Error::TooDeep { most: 64 }), "{levels} levels");
            };
            too_deep(to_dlpack(&array, &field, &ExportOptions::default()).err());
            too_deep(export::explain((&array, &*field), &ExportOptions::default()).err());
            too_deep(export::mask((&array, &*field), &ExportOptions::default()).err());
            too_deep(
                export::ragged(
                    Source::Array(&array, Some(&field)),
                    None,
                    &ExportOptions::default(),
                )
                .err(),
            );
            too_deep(
                export::into_tensor_with_field(Arc::clone(&array), &field)
                    .err()
                    .map(|refused| refused.error),
            );
            let none: &[ArrayRef] = &[];
            too_deep(export::tensor(Source::Chunks(none, &field), &ExportOptions::default()).err());
            let batch = RecordBatch::try_from_iter([("x", Arc::clone(&array))]).expect("a column");
            let error = export::tensor(&batch, &ExportOptions::default()).err();
            assert!(
                matches!(error, Some(Error::Column { error, .. }) if *error == Error::TooDeep { most: 64 })
            );

            let options = ImportOptions::default()
                .with_representation(Representation::Field(Arc::clone(&field)));
            let vector = || export::array(&Int8Array::from(vec![1])).expect("a share");
            too_deep(from_dlpack(vector(), &options).err());
            let lists = Field::new("x", DataType::List(Arc::clone(&field)), true);
            let options = ImportOptions::default()
                .with_representation(Representation::Field(Arc::new(lists)));
            too_deep(import::ragged(vector(), vector(), None, &options).err());
        }
    });
}

#[test]
fn a_tensor_of_many_axes_is_no_deep_type() {
    on_a_small_stack(|| {
        let axes = 256; // the most that a tensor may have
        let tensor = || {
            let shape = vec![1; axes];
            let (tensor, watch) = Producer::bytes(support::dtype(0, 8, 1), &[7], &shape, &shape)
                .tensor(Abi::Versioned);
            (tensor.expect("a tensor"), watch)
        };
        let (lists, watch) = tensor();
        let options = ImportOptions::default().with_representation(Representation::FixedSizeList);
        assert_eq!(from_dlpack(lists, &options).err(), Some(Error::TooDeep { most: 64 }));
        watch.released_once();

        let (flat, watch) = tensor();
        let (array, field) =
            from_dlpack(flat, &ImportOptions::default()).expect("a fixed_shape_tensor");
        let back = to_dlpack(&array, &field, &ExportOptions::default()).expect("a share");
        assert_eq!(back.ndim(), axes);
        drop((array, back));
        watch.released_once();
    });
}

#[test]
fn metadata_that_is_nested_deeply_is_malformed() {
    on_a_small_stack(|| {
        let deep = format!("{}{}", "[".repeat(MANY), "]".repeat(MANY));
        let array = FixedSizeListArray::new(
            Arc::new(Field::new("item", DataType::Int8, true)),
            1,
            Arc::new(Int8Array::from(vec![1])),
            None,
        );
        for text in
            [format!(r#"{{"shape":{deep}}}"#), format!(r#"{{"shape":[1],"x":{deep}}}"#), deep]
        {
            let metadata = HashMap::from([
                ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
                ("ARROW:extension:metadata".to_owned(), text),
            ]);
            let field = Field::new("x", array.data_type().clone(), true).with_metadata(metadata);
            let error = to_dlpack(&array, &field, &ExportOptions::default()).err();
            assert!(matches!(error, Some(Error::MalformedExtension { .. })), "{error:?}");
        }
    });
}
