//! Keeps a few blocks of memory, which threads store and take without waiting for each other.
//!
//! K2: a slot is null or holds one block with no other owner: its address, which is a multiple of
//! [`PAGE`], plus how many of these it has.
//!
//! `tests/models` tries every order of the threads' steps.

use std::ptr;

use super::super::huge::PAGE;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The most that is kept, in pages: 128 MiB.
pub(super) const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct Slots<const N: usize> {
    pub(super) blocks: [AtomicPtr<u8>; N],
    /// The slot that is filled next: the one that was for the longest time.
    pub(super) next: AtomicUsize,
    /// In all slots; more than that for a moment.
    pub(super) pages: AtomicUsize,
}

impl<const N: usize> Slots<N> {
    /// A block of so many pages, which is the caller's from now on; or null.
    pub(super) fn take(&self, pages: usize) -> *mut u8 {
        for slot in &self.blocks {
            let kept = slot.load(Ordering::Relaxed);
            // The thread that exchanges it owns it alone, with all that was done to it before.
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

    /// Keeps a block of so many pages, which are no more than [`MOST`], and was the caller's until now;
    /// `free` gets what has to go for it.
    pub(super) fn keep(&self, block: *mut u8, pages: usize, free: impl Fn(*mut u8, usize)) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        self.replace(first, block.map_addr(|address| address + pages), &free);
        // Whichever of two threads looks into the other's slot later finds what that one has put there, and
        // knows of its pages: so one of them sees that both together are too many.
        for slot in 1..N {
            if self.pages.load(Ordering::Relaxed) > MOST {
                self.replace(first.wrapping_add(slot), ptr::null_mut(), &free);
            }
        }
    }

    /// Keeps nothing any more.
    pub(super) fn clear(&self, free: impl Fn(*mut u8, usize)) {
        for slot in 0..N {
            self.replace(slot, ptr::null_mut(), &free);
        }
    }

    /// Puts something into a slot; what was in it goes.
    fn replace(&self, slot: usize, kept: *mut u8, free: &impl Fn(*mut u8, usize)) {
        let kept = self.blocks[slot % N].swap(kept, Ordering::AcqRel);
        let pages = count(kept);
        if pages > 0 {
            self.pages.fetch_sub(pages, Ordering::Relaxed);
            free(kept.map_addr(|address| address - pages), pages);
        }
    }
}

/// The pages of a block in a slot: the part of its address that is none.
fn count(kept: *mut u8) -> usize {
    kept.addr() % PAGE
}
