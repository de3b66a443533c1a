//! Laws of the blocks that are kept.
#![expect(unsafe_code, reason = "calls what is under test")]

use std::ptr;
use std::sync::Arc;

use loom::cell::Cell;
use loom::sync::atomic::{AtomicPtr, AtomicUsize};
use loom::thread;

use super::super::huge_pages::PAGE;
use super::slots::{MOST, Slots};
use crate::in_every_order;

const BLOCKS: usize = 3;

/// Two slots, and the memory of a few blocks: what their owners have written.
struct Model {
    slots: Slots<2>,
    blocks: [Cell<Owner>; BLOCKS],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Thread(usize),
    Unowned,
    /// The system.
    Freed,
}

impl Model {
    #[expect(clippy::arc_with_non_send_sync, reason = "the threads of loom take turns")]
    fn new() -> Arc<Self> {
        let blocks = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        // SAFETY: they are null, and 0.
        let slots = unsafe { Slots::new(blocks, AtomicUsize::new(0), AtomicUsize::new(0)) };
        Arc::new(Self { slots, blocks: std::array::from_fn(|_| Cell::new(Owner::Freed)) })
    }

    /// The address of a block; there is nothing at it.
    fn address(block: usize) -> *mut u8 {
        ptr::without_provenance_mut((block + 1) * PAGE)
    }

    fn block_at(&self, address: *mut u8) -> &Cell<Owner> {
        assert_eq!(address.addr() % PAGE, 0, "no block begins there");
        &self.blocks[address.addr() / PAGE - 1]
    }

    /// Takes a block if one is kept, and keeps it again.
    fn use_kept(&self, thread: usize, pages: usize) {
        let address = self.slots.take(pages);
        if !address.is_null() {
            let block = self.block_at(address);
            assert_eq!(block.replace(Owner::Thread(thread)), Owner::Unowned);
            self.keep(address, thread, pages);
        }
    }

    /// A new block, used and kept.
    fn use_new(&self, block: usize, thread: usize, pages: usize) {
        let address = Self::address(block);
        assert_eq!(self.block_at(address).replace(Owner::Thread(thread)), Owner::Freed);
        self.keep(address, thread, pages);
    }

    fn keep(&self, address: *mut u8, thread: usize, pages: usize) {
        assert_eq!(self.block_at(address).replace(Owner::Unowned), Owner::Thread(thread));
        // SAFETY: no block is at any address; who has which is what the model checks.
        unsafe { self.slots.keep(address, pages, |address, _| self.free(address)) };
    }

    fn free(&self, address: *mut u8) {
        assert_eq!(self.block_at(address).replace(Owner::Freed), Owner::Unowned);
    }

    /// What is true when all threads are done; then nothing is kept any more.
    fn settle(&self) {
        let (pages, counted) = self.slots.kept();
        assert_eq!(counted, pages, "as many as are in slots");
        assert!(pages <= MOST, "{pages} pages are kept");
        self.slots.clear(|address, _| self.free(address));
        for block in &self.blocks {
            assert_eq!(block.get(), Owner::Freed);
        }
    }
}

#[test]
fn a_block_is_never_in_two_hands() {
    in_every_order(None, || {
        let model = Model::new();
        model.use_new(0, 0, 2);
        let others = [1, 2].map(|thread| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.use_kept(thread, 2))
        });
        for other in others {
            other.join().expect("no panic");
        }
        model.settle();
    });
}

#[test]
fn what_one_thread_did_to_a_block_the_next_one_knows() {
    in_every_order(None, || {
        let model = Model::new();
        let other = Arc::clone(&model);
        let other = thread::spawn(move || other.use_new(0, 1, 2));
        model.use_kept(0, 2);
        other.join().expect("no panic");
        model.settle();
    });
}

#[test]
fn no_more_than_the_most_is_kept_in_any_order() {
    in_every_order(None, || {
        let model = Model::new();
        let others = [1, 2].map(|thread| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.use_new(thread, thread, 40))
        });
        for other in others {
            other.join().expect("no panic");
        }
        model.settle();
    });
}

#[test]
fn blocks_of_several_sizes_come_and_go() {
    in_every_order(Some(3), || {
        let model = Model::new();
        model.use_new(0, 0, 30);
        let others = [(1, 30), (2, 40)].map(|(thread, pages)| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.use_new(thread, thread, pages);
                model.use_kept(thread, 30);
            })
        });
        for other in others {
            other.join().expect("no panic");
        }
        model.settle();
    });
}
