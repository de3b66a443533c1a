//! Foreign memory that Arrow shares: the same addresses, and a deleter that runs when the last slice
//! of the last buffer goes, wherever that is, once, and not before.

use std::sync::{Arc, Barrier};
use std::thread;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, ManagedTensor, export};

use support::{Abi, Producer, Random, Watch, for_each_numeric, values_of};

mod support;

fn adopted(abi: Abi, values: &[i32]) -> (ArrayRef, Watch) {
    let (array, watch) = Producer::vector(values).array(abi, CopyPolicy::Never);
    (array.expect("contiguous and aligned"), watch)
}

#[test]
fn a_tensor_may_go_to_any_thread() {
    fn may_go<T: Send + Sync + 'static>() {}
    may_go::<ManagedTensor>();
}

#[test]
fn an_adopted_array_is_where_the_producer_put_it() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let bytes = Random(1).bytes(9 * size_of::<T::Native>());
        for abi in Abi::BOTH {
            let producer = Producer::bytes(dtype, &bytes, &[9], &[1]);
            let (array, watch) = producer.array(abi, CopyPolicy::IfNeeded);
            let array = array.unwrap();
            let values = values_of(&array);
            assert_eq!((values.as_ptr().addr(), values.len()), (watch.data(), bytes.len()));
            drop((array, values));
            watch.released_once();
        }
    }
    for_each_numeric!(law);
}

#[test]
fn a_copy_is_elsewhere_and_lets_go_at_once() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType) {
        let bytes = Random(2).bytes(9 * size_of::<T::Native>());
        for abi in Abi::BOTH {
            let producer = Producer::bytes(dtype, &bytes, &[9], &[1]);
            let (array, watch) = producer.array(abi, CopyPolicy::Always);
            let values = values_of(&array.unwrap());
            assert_eq!(watch.deletions(), 1);
            assert_eq!(values.as_slice(), bytes);
            assert_ne!(values.as_ptr().addr(), watch.data());
            watch.released_once();
        }
    }
    for_each_numeric!(law);
}

#[test]
fn the_last_slice_calls_the_deleter_and_no_earlier_one() {
    for abi in Abi::BOTH {
        let (array, watch) = adopted(abi, &[0, 1, 2, 3, 4, 5]);
        let (tail, clone) = (array.slice(4, 2), Arc::clone(&array));
        let buffer = values_of(&tail);
        let empty = array.slice(6, 0);
        for earlier in [array, clone, tail] {
            drop(earlier);
            assert_eq!(watch.deletions(), 0);
        }
        assert_eq!(buffer.typed_data::<i32>(), [4, 5]);
        drop(buffer);
        // Even a slice without values is a slice of the buffer.
        assert_eq!(watch.deletions(), 0);
        drop(empty);
        watch.released_once();
    }
}

#[test]
fn the_owner_may_go_before_its_view() {
    for abi in Abi::BOTH {
        let (array, watch) = adopted(abi, &[7, 8, 9]);
        let typed = array.as_any().downcast_ref::<Int32Array>().unwrap();
        let view = typed.values().slice(1, 2);
        drop(array);
        assert_eq!(&*view, &[8, 9]);
        assert_eq!(watch.deletions(), 0);
        drop(view);
        watch.released_once();
    }
}

#[test]
fn the_deleter_runs_on_the_thread_that_lets_go_last() {
    for abi in Abi::BOTH {
        let (array, watch) = adopted(abi, &[1, 2, 3]);
        let slice = array.slice(1, 1);
        drop(array);
        let other = thread::spawn(move || {
            assert_eq!(values_of(&slice).typed_data::<i32>(), [2]);
            drop(slice);
            thread::current().id()
        });
        let other = other.join().unwrap();
        assert_ne!(other, thread::current().id());
        assert_eq!(watch.deleted_on(), Some(other));
        watch.released_once();
    }
}

#[test]
fn many_threads_letting_go_at_once_call_the_deleter_once() {
    for round in 0..20 {
        let (array, watch) = adopted(Abi::BOTH[round % 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        let all = Arc::new(Barrier::new(8));
        let threads = (0..8).map(|index| {
            let (slice, all) = (array.slice(index, 1), Arc::clone(&all));
            thread::spawn(move || {
                all.wait();
                assert_eq!(
                    values_of(&slice).typed_data::<i32>(),
                    [i32::try_from(index).unwrap() + 1]
                );
                drop(slice);
            })
        });
        let threads: Vec<_> = threads.collect();
        drop(array);
        for thread in threads {
            thread.join().unwrap();
        }
        watch.released_once();
    }
}

#[test]
fn a_panic_while_holding_an_array_still_lets_go() {
    let (array, watch) = adopted(Abi::Versioned, &[1, 2, 3]);
    let outcome = thread::spawn(move || {
        let _held = array;
        // Not `panic!`, which would print a report into a test that passes.
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(outcome.join().is_err());
    watch.released_once();
}

#[test]
fn a_tensor_that_is_not_read_is_deleted_where_it_is_dropped() {
    for abi in Abi::BOTH {
        let (tensor, watch) = Producer::vector(&[1.5f32]).tensor(abi);
        let tensor = tensor.unwrap();
        assert_eq!(watch.deletions(), 0);
        let other = thread::spawn(move || {
            drop(tensor);
            thread::current().id()
        });
        assert_eq!(Some(other.join().unwrap()), watch.deleted_on());
        watch.released_once();
    }
}

#[test]
fn an_adopted_array_can_be_shared_on() {
    for abi in Abi::BOTH {
        let (array, watch) = adopted(abi, &[1, 2, 3]);
        let exported: ManagedTensor = export::array(&array.slice(1, 2)).unwrap();
        drop(array);
        assert_eq!(exported.as_ptr().addr(), watch.data() + 4);
        assert_eq!(support::bytes_of(&exported), [2i32, 3].map(i32::to_ne_bytes).concat());
        assert_eq!(watch.deletions(), 0);
        drop(exported);
        watch.released_once();
    }
}
