//! Releases: of owners that hold other owners, in chains of any length, and with panics on the way.
#![expect(unsafe_code, reason = "lends buffers memory that panics when it goes")]

use std::cell::RefCell;
use std::panic::panic_any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_array::{Array, ArrayRef, Int32Array, UInt8Array};
use arrow_buffer::Buffer;
use arrow_dlpack::{CopyPolicy, ManagedTensor, export, from_dlpack};

use support::{Abi, Producer, Watch, delete, delete_legacy, import};

mod support;

/// Longer than any stack is deep.
const LONG: usize = if cfg!(miri) { 100 } else { 100_000 };

/// Shares of shares, so many of them, of a tensor of another producer.
fn shares(len: usize) -> (Arc<ManagedTensor>, Watch) {
    let (tensor, watch) = Producer::vector(&[1i32, 2]).tensor(Abi::Versioned);
    let mut tensor = Arc::new(tensor.expect("a true tensor"));
    for _ in 0..len {
        tensor = Arc::new(tensor.share());
    }
    (tensor, watch)
}

/// An array that has been a tensor so many times.
fn arrays(len: usize) -> (ArrayRef, Watch) {
    let (array, watch) = Producer::vector(&[1i32, 2]).array(Abi::Legacy, CopyPolicy::Never);
    let mut array = array.expect("a true tensor");
    for round in 0..len {
        let tensor = export::array(&array).expect("a tensor");
        // As this crate keeps it, and as another library would.
        let tensor = match round % 3 {
            0 => Ok(tensor),
            // SAFETY: given up just now.
            1 => unsafe { ManagedTensor::from_raw(tensor.into_raw()) },
            // SAFETY: given up just now.
            _ => unsafe { ManagedTensor::from_raw_legacy(tensor.into_raw_legacy().expect("one")) },
        };
        array = from_dlpack(tensor.expect("a tensor"), &import(CopyPolicy::Never)).expect("one").0;
    }
    (array, watch)
}

#[test]
fn what_was_handed_back_and_forth_is_let_go_at_any_length() {
    for len in [0, 1, 15, 16, 17, 33, LONG] {
        let (tensor, watch) = shares(len);
        assert_eq!(tensor.as_slice::<i32>(), Some(&[1, 2][..]));
        drop(tensor);
        watch.released_once();

        let (array, watch) = arrays(len);
        let slice = array.slice(1, 1);
        drop(array);
        assert_eq!(watch.deletions(), 0);
        drop(slice);
        watch.released_once();
    }
}

/// What a thread keeps goes when it ends, in the end also that in which long chains wait.
#[test]
fn a_thread_that_ends_lets_go_of_chains_of_any_length() {
    thread_local! {
        static KEPT: RefCell<Option<Arc<ManagedTensor>>> = const { RefCell::new(None) };
    }
    let ((first, first_watch), (last, last_watch)) = (shares(LONG), shares(LONG));
    let thread = thread::spawn(move || {
        // Of what is a thread's own, that which is there first goes last.
        KEPT.set(None);
        drop(first);
        KEPT.set(Some(last));
    });
    thread.join().expect("no panic");
    first_watch.released_once();
    last_watch.released_once();
}

/// When the deleter of the outermost has come back, nothing is left waiting.
#[test]
fn all_of_it_is_gone_when_the_deleter_returns() {
    let (tensor, watch) = shares(1000);
    let here = thread::current().id();
    delete(tensor.share().into_raw());
    assert_eq!(watch.deletions(), 0);
    let last = Arc::into_inner(tensor).expect("the only one");
    delete_legacy(last.into_raw_legacy().expect("numbers"));
    assert_eq!((watch.deletions(), watch.deleted_on()), (1, Some(here)));
    watch.released_once();

    let (array, watch) = arrays(1000);
    let there = thread::spawn(move || {
        drop(array);
        thread::current().id()
    });
    let there = there.join().expect("no panic");
    assert_eq!(watch.deleted_on(), Some(there));
    watch.released_once();
}

/// Memory whose owner panics when it goes, with something that panics when it goes.
#[derive(Debug)]
struct Grenade(Arc<AtomicUsize>);

impl Drop for Grenade {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic_any(Splinter);
    }
}

struct Splinter;

impl Drop for Splinter {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("dropped where it was caught");
        }
    }
}

fn booby_trapped(gone: &Arc<AtomicUsize>) -> Buffer {
    static BYTES: [u8; 3] = [1, 2, 3];
    let owner = Arc::new(Grenade(Arc::clone(gone)));
    // SAFETY: three bytes that stay for ever.
    unsafe { Buffer::from_custom_allocation(NonNull::from(&BYTES).cast(), 3, owner) }
}

#[test]
fn a_panic_while_letting_go_crosses_nothing() {
    let gone = Arc::new(AtomicUsize::new(0));
    let tensor = || {
        let array = UInt8Array::new(booby_trapped(&gone).into(), None);
        export::array(&array).expect("bytes")
    };
    let mut expected = 0;
    let mut gone_once = || {
        expected += 1;
        assert_eq!(gone.load(Ordering::SeqCst), expected);
    };
    drop(tensor());
    gone_once();
    delete(tensor().into_raw());
    gone_once();
    delete_legacy(tensor().into_raw_legacy().expect("bytes"));
    gone_once();
    drop(from_dlpack(tensor(), &import(CopyPolicy::Never)));
    gone_once();
    let mut chain = Arc::new(tensor());
    for _ in 0..100 {
        chain = Arc::new(chain.share());
    }
    drop(chain);
    gone_once();

    // And the thread lets go as before.
    let array = Int32Array::from(vec![1]);
    let (before, tensor) = (array.values().inner().strong_count(), export::array(&array));
    drop(tensor);
    assert_eq!(array.values().inner().strong_count(), before);
}
