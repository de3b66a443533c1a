//! Owners that panic when they are dropped: C calls a deleter, gets control back, and nothing is left open.

use std::panic;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Int8Array, cast::AsArray, types::Int8Type};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_dlpack::{export, import, live};

mod support;

static MEMORY: [u8; 3] = [1, 2, 3];

/// What the owner panics with.
#[derive(Clone, Copy, PartialEq)]
enum With {
    Words,
    Format,
    /// A value that panics in its turn when it is dropped.
    Bomb,
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a panic that panics");
    }
}

struct Owner {
    with: With,
    drops: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let drops = self.drops.fetch_add(1, Ordering::SeqCst);
        match self.with {
            With::Words => panic!("an owner that panics"),
            With::Format => panic!("an owner that panics, for the {drops}th time"),
            With::Bomb => panic::panic_any(Bomb),
        }
    }
}

/// An array over memory of such an owner.
#[expect(unsafe_code, reason = "makes a buffer of foreign memory")]
fn array(with: With) -> (Int8Array, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = Arc::new(Owner { with, drops: Arc::clone(&drops) });
    // SAFETY: static memory.
    let buffer = unsafe { Buffer::from_custom_allocation(NonNull::from(&MEMORY).cast(), 3, owner) };
    (Int8Array::new(ScalarBuffer::new(buffer, 0, 3), None), drops)
}

/// One test, because the counts are those of the process.
#[test]
fn a_deleter_returns_even_if_the_owner_panics() {
    panic::set_hook(Box::new(|_| {})); // these panics are meant to be
    let before = live();
    for with in [With::Words, With::Format, With::Bomb] {
        let dropped_once = |drops: Arc<AtomicUsize>| {
            assert_eq!(drops.load(Ordering::SeqCst), 1);
            assert_eq!(live(), before);
        };

        let (owned, drops) = array(with);
        let raw = export::array(&owned).expect("a share").into_raw();
        drop(owned);
        support::delete(raw);
        dropped_once(drops);

        let (owned, drops) = array(with);
        let raw = export::array(&owned).expect("a share").into_raw_legacy().expect("no padding");
        drop(owned);
        support::delete_legacy(raw);
        dropped_once(drops);

        // Dropped in Rust, or by an array that it became.
        let (owned, drops) = array(with);
        let tensor = export::array(&owned).expect("a share");
        drop(owned);
        let back = import::array(tensor).expect("an array");
        assert_eq!(back.as_primitive::<Int8Type>().values()[..], [1, 2, 3]);
        drop(back);
        dropped_once(drops);

        // While another panic is on its way.
        let (owned, drops) = array(with);
        let tensor = Arc::new(export::array(&owned).expect("a share"));
        let share = tensor.share();
        drop(owned);
        let unwound = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let _tensors = (tensor, share);
            panic!("the first");
        }));
        let words = unwound.expect_err("it panicked");
        assert_eq!(words.downcast_ref::<&str>(), Some(&"the first"));
        dropped_once(drops);
    }
}
