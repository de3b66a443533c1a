//! Slots for a few freed blocks of memory. Threads store and take blocks without locks.
//!
//! K2: a slot is null or holds one block with no other owner: its address, which is a multiple of
//! [`PAGE`], plus how many of these it has.
//!
//! `tests/models` tries every order of the threads' steps.
#![expect(unsafe_code, reason = "gives out again what it was given")]

use std::ptr;

use super::super::huge_pages::PAGE;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The most memory that is kept, in pages: 128 MiB.
pub(super) const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct Slots<const N: usize> {
    blocks: [AtomicPtr<u8>; N],
    /// The slot to fill next, which was filled the longest time ago.
    next: AtomicUsize,
    /// Pages in all slots; briefly it may count more.
    pages: AtomicUsize,
}

impl<const N: usize> Slots<N> {
    /// Slots made of the atomics that only the caller can make: those of loom not in a constant.
    ///
    /// # Safety
    ///
    /// The pointers are null, and the number of pages is 0.
    pub(super) const unsafe fn new(
        blocks: [AtomicPtr<u8>; N],
        next: AtomicUsize,
        pages: AtomicUsize,
    ) -> Self {
        Self { blocks, next, pages }
    }

    /// The pages of the blocks in the slots, and as they are counted.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let in_slots = self.blocks.iter().map(|slot| count(slot.load(Ordering::Relaxed))).sum();
        (in_slots, self.pages.load(Ordering::Relaxed))
    }

    /// A block of this many pages, which the caller then owns; or null.
    pub(super) fn take(&self, pages: usize) -> *mut u8 {
        for slot in &self.blocks {
            let kept = slot.load(Ordering::Relaxed);
            // The thread that exchanges it is its only owner, and sees all earlier writes to it.
            if count(kept) == pages
                && slot
                    .compare_exchange(kept, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                self.pages.fetch_sub(pages, Ordering::Relaxed);
                return kept.map_addr(|address| address - pages);
            }
        }
        ptr::null_mut()
    }

    /// Keeps a block of this many pages, at most [`MOST`]. `free` gets the blocks that it displaces.
    ///
    /// # Safety
    ///
    /// The caller owns the block, of this many pages, at most [`MOST`], at a multiple of [`PAGE`], and gives it up.
    pub(super) unsafe fn keep(&self, block: *mut u8, pages: usize, free: impl Fn(*mut u8, usize)) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        self.replace(first, block.map_addr(|address| address + pages), &free);
        // Of two threads, the one that reads the other's slot later finds its block and has counted its pages, so one
        // of them sees that both together are too many.
        for slot in 1..N {
            if self.pages.load(Ordering::Relaxed) > MOST {
                self.replace(first.wrapping_add(slot), ptr::null_mut(), &free);
            }
        }
    }

    /// Frees all blocks.
    pub(super) fn clear(&self, free: impl Fn(*mut u8, usize)) {
        for slot in 0..N {
            self.replace(slot, ptr::null_mut(), &free);
        }
    }

    /// Puts a block into a slot, and frees the one that was in it.
    fn replace(&self, slot: usize, kept: *mut u8, free: &impl Fn(*mut u8, usize)) {
        let kept = self.blocks[slot % N].swap(kept, Ordering::AcqRel);
        let pages = count(kept);
        if pages > 0 {
            self.pages.fetch_sub(pages, Ordering::Relaxed);
            free(kept.map_addr(|address| address - pages), pages);
        }
    }
}

/// The number of pages of a block in a slot, from the low bits of its address.
fn count(kept: *mut u8) -> usize {
    kept.addr() % PAGE
}
