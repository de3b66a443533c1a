//! Threads that share arrays and tensors, all let go at once by a barrier. Each law holds the counts of open
//! tensors against those before, so that the laws take turns.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, cast::AsArray, types::Int32Type};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    ExportOptions, ImportOptions, ManagedTensor, NullPolicy, export, from_dlpack, import, live,
};
use arrow_schema::{DataType, Field};

use support::{Abi, Producer, Watch};

mod support;

const THREADS: usize = 8;
const ROUNDS: usize = if cfg!(miri) { 4 } else { 250 };

/// Runs `work` in so many threads, which begin at the same time, again and again; in each round they get
/// clones of one value. Afterwards no more is open than before.
fn at_once<T: Clone + Send>(mut make: impl FnMut(usize) -> T, work: impl Fn(usize, T) + Sync) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = live();
    let mut clones: Vec<T> = Vec::new();
    for round in 0..ROUNDS {
        clones.extend(std::iter::repeat_n(make(round), THREADS));
    }
    let (clones, barrier) = (Mutex::new(clones), Barrier::new(THREADS));
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (clones, barrier, work) = (&clones, &barrier, &work);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let clone = clones.lock().expect("no panic").pop().expect("one for each");
                    barrier.wait();
                    work(index, clone);
                    // No thread clones the next value before all have this one's.
                    barrier.wait();
                }
            });
        }
    });
    assert_eq!(live(), before);
}

#[test]
fn one_array_goes_to_and_fro_in_many_threads() {
    let array = Int32Array::from_iter((0..100).map(|value| (value % 7 > 0).then_some(value)));
    let field = Field::new("x", DataType::Int32, true);
    let filled =
        ExportOptions::default().with_nulls(NullPolicy::fill(0)).with_dtype(DLDataType::FLOAT64);
    let booleans = BooleanArray::from_iter((0..100).map(|value| Some(value % 3 == 0)));
    at_once(
        |_| (),
        |index, ()| match index % 4 {
            0 => {
                let tensor = arrow_dlpack::to_dlpack(&array, &field, &filled).expect("a copy");
                assert_eq!(
                    tensor.as_slice::<f64>().expect("floats")[1..9],
                    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 8.0]
                );
            }
            1 => {
                let (back, _) = from_dlpack(
                    export::array(&booleans).expect("a copy"),
                    &ImportOptions::default(),
                )
                .expect("an array");
                assert_eq!(back.as_boolean(), &booleans);
            }
            2 => {
                let dense = array.slice(1, 6);
                let back =
                    import::array(export::array(&dense).expect("a share")).expect("an array");
                assert_eq!(back.as_primitive::<Int32Type>(), &dense);
            }
            _ => {
                let plan = export::explain((&array, &field), &filled).expect("a plan");
                assert_eq!(plan.bytes_copied(), 800);
                assert!(export::array(&array).is_err(), "it has nulls");
            }
        },
    );
}

#[test]
fn a_tensor_that_all_share_is_deleted_once_when_the_last_one_lets_go() {
    let mut watches = Vec::new();
    let make = |round: usize| {
        let (tensor, watch) = Producer::vector(&[1_i32, 2, 3]).tensor(Abi::BOTH[round % 2]);
        watches.push(watch);
        Arc::new(tensor.expect("a tensor"))
    };
    at_once(make, |index, tensor: Arc<ManagedTensor>| {
        let share = tensor.share();
        // The last thread takes the tensor itself.
        match Arc::try_unwrap(tensor) {
            Ok(only) => drop(import::array(only).expect("an array")),
            Err(shared) => drop(shared),
        }
        assert_eq!(share.as_slice::<i32>(), Some(&[1, 2, 3][..]));
        if index % 2 == 0 {
            support::delete(share.into_raw());
        }
    });
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn slices_of_what_was_imported_go_in_any_order() {
    let mut watches = Vec::new();
    let make = |_| {
        let (tensor, watch) = Producer::vector(&[1_i32, 2, 3]).tensor(Abi::Versioned);
        watches.push(watch);
        import::array(tensor.expect("a tensor")).expect("an array")
    };
    at_once(make, |index, array| {
        let slice = array.slice(index % 3, 1);
        drop(array);
        let again = export::array(&slice).expect("a share");
        drop(slice);
        assert_eq!(again.as_slice::<i32>().expect("integers")[0], [1, 2, 3][index % 3]);
    });
    watches.into_iter().for_each(Watch::released_once);
}

#[test]
fn of_several_who_give_the_same_memory_away_at_most_one_may_write_to_it() {
    let field = Field::new("x", DataType::Int32, false);
    let make = |_| {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![7; 64]));
        (array, Arc::new(AtomicUsize::new(0)))
    };
    at_once(make, |index, (array, given)| {
        let number = i32::try_from(index).expect("few threads");
        match export::into_tensor_with_field(array, &field) {
            Ok(mut tensor) => {
                let values = tensor.as_slice_mut::<i32>().expect("it was given");
                assert_eq!(values, [7; 64]);
                values.fill(number);
                thread::yield_now();
                assert_eq!(values, [number; 64]);
                assert_eq!(given.fetch_add(1, Ordering::Relaxed), 0);
            }
            Err(refused) => {
                assert_eq!(refused.array.as_primitive::<Int32Type>().values()[..], [7; 64]);
            }
        }
    });
}

#[test]
fn what_one_thread_exports_another_imports_and_a_third_drops() {
    /// What each thread has in front of it.
    #[derive(Default)]
    struct Place {
        tensors: Mutex<Vec<ManagedTensor>>,
        arrays: Mutex<Vec<ArrayRef>>,
    }
    let array = Int32Array::from(vec![1, 2, 3]);
    let make = |_| Arc::new(std::array::from_fn::<Place, THREADS, _>(|_| Place::default()));
    at_once(make, |index, places| {
        let to = |by: usize| &places[(index + by) % THREADS];
        for _ in 0..4 {
            let tensor = export::array(&array).expect("a share");
            to(1).tensors.lock().expect("no panic").push(tensor);
            let tensors = std::mem::take(&mut *to(0).tensors.lock().expect("no panic"));
            for tensor in tensors {
                let back = import::array(tensor).expect("an array");
                to(3).arrays.lock().expect("no panic").push(back);
            }
            for back in std::mem::take(&mut *to(0).arrays.lock().expect("no panic")) {
                assert_eq!(back.as_primitive::<Int32Type>(), &array);
            }
        }
        // Tensors that were not taken are dropped by the last thread.
    });
}

#[test]
fn a_thread_that_ends_with_tensors_gives_them_back() {
    thread_local! {
        static KEPT: RefCell<Vec<ManagedTensor>> = const { RefCell::new(Vec::new()) };
    }
    let array = Int32Array::from(vec![1, 2, 3]);
    at_once(
        |_| (),
        |_, ()| {
            // Dropped by the thread's own destructors, before or after the library's.
            for counts_first in [false, true] {
                let tensor = || export::array(&array).expect("a share");
                let thread = || {
                    if counts_first {
                        drop(tensor());
                    }
                    KEPT.with_borrow_mut(|kept| kept.push(tensor()));
                };
                thread::scope(|scope| scope.spawn(thread).join().expect("no panic"));
            }
        },
    );
}
