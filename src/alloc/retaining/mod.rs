//! The system's allocator with huge pages for large blocks. It keeps a few freed large blocks for later results.
//!
//! Measured in the Python package, with results of 2 to 100 MB that are freed before the next one is made: above
//! 32 MB, which glibc maps and unmaps each time, glibc alone takes 1.4 to 2.1 times as long for bits to bytes,
//! chunks, casts and matrices; below, no longer. mimalloc 3 is as fast (0.9 to 1.2), but makes the wheel 36 KB
//! larger than it may be, and kept 350 MB of freed results for the process where this keeps 128 MiB at most.
//!
//! K1: every block of [`LARGE`] bytes or more is the system's, with the layout that [`large`] makes from the
//! requested one, whether it is new, in use or kept.
#![expect(unsafe_code, reason = "is an allocator")]

mod slots;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use slots::{MOST, Slots};

use super::huge_pages::{self, PAGE};
use crate::sync::atomic::{AtomicPtr, AtomicUsize};

/// The size from which on blocks take whole huge pages.
const LARGE: usize = 3 << 20;

const SLOTS: usize = 4;

/// The allocator of the Python package on Linux. Other extension modules can use it as their
/// `#[global_allocator]`.
///
/// The system fills new pages with zeros, which takes longer than many conversions that then write to them. So
/// blocks of 3 MiB or more take whole huge pages. Up to four freed ones, 128 MiB in all, are kept for later
/// results of the same size, and offered to the kernel (`MADV_FREE`), which reclaims them when memory runs
/// short. Until then they count as memory of this process; they are freed before an allocation fails.
#[derive(Debug)]
pub struct RetainingAllocator {
    slots: Slots<SLOTS>,
}

impl RetainingAllocator {
    /// An allocator that keeps no blocks yet.
    #[must_use]
    pub const fn new() -> Self {
        let blocks = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
        let (next, pages) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // SAFETY: they are null, and 0.
        Self { slots: unsafe { Slots::new(blocks, next, pages) } }
    }

    /// What the system answers; if it has no block, what it answers once the kept blocks are freed. Under a limit on a
    /// process's addresses (`ulimit -v`) these count too.
    fn ask_twice(&self, ask: impl Fn() -> *mut u8) -> *mut u8 {
        let block = ask();
        if !block.is_null() {
            return block;
        }
        self.clear();
        ask()
    }

    #[cold]
    fn clear(&self) {
        // SAFETY: K2.
        self.slots.clear(|block, pages| unsafe { free(block, pages) });
    }
}

/// # Safety
///
/// The block is a large one of this many pages, and the caller's to free.
unsafe fn free(block: *mut u8, pages: usize) {
    // SAFETY: the block is given up, and K1: these are its size and alignment, which are a valid layout.
    unsafe { System.dealloc(block, Layout::from_size_align_unchecked(pages * PAGE, PAGE)) };
}

impl Default for RetainingAllocator {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RetainingAllocator {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The layout that is requested from the system for a large block: whole pages.
fn large(layout: Layout) -> Option<Layout> {
    let is_large = layout.size() >= LARGE && layout.align() <= PAGE;
    let size = is_large.then(|| layout.size().checked_next_multiple_of(PAGE))??;
    Layout::from_size_align(size, PAGE).ok()
}

// SAFETY: blocks are the system's; a large one has at least the size and the alignment asked for, is
// freed as it was allocated (K1), and has one owner at any time (K2). Nothing here allocates or panics.
unsafe impl GlobalAlloc for RetainingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(large) = large(layout) else {
            // SAFETY: the layout is not empty, as `GlobalAlloc::alloc` asks.
            return self.ask_twice(|| unsafe { System.alloc(layout) });
        };
        let kept = self.slots.take(large.size() / PAGE);
        if !kept.is_null() {
            return kept;
        }
        // SAFETY: a large layout has pages: it is not empty, as `GlobalAlloc::alloc` asks.
        let block = self.ask_twice(|| unsafe { System.alloc(large) });
        if !block.is_null() {
            // SAFETY: just allocated, and with no other owner.
            unsafe { huge_pages::advise_pages(block, large.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match large(layout) {
            Some(large) if large.size() / PAGE <= MOST => {
                // SAFETY: the block is given up, so that its contents are not read again.
                unsafe { huge_pages::offer(block, large.size()) };
                // SAFETY: the block is given up, and large by K1; those that it displaces are this allocator's by K2.
                unsafe {
                    self.slots.keep(block, large.size() / PAGE, |block, pages| free(block, pages));
                }
            }
            // SAFETY: the block is given up, and the system's with this layout by K1.
            Some(large) => unsafe { System.dealloc(block, large) },
            // SAFETY: the block is given up, and was allocated by the system with this layout.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `GlobalAlloc::realloc` asks that `size` does not overflow when it is rounded up to the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (large(layout), large(wanted)) {
            // SAFETY: the block is the system's with this layout, and `size` not 0; one that did not grow is as it was.
            (None, None) => self.ask_twice(|| unsafe { System.realloc(block, layout, size) }),
            (Some(had), Some(large)) if had == large => block,
            _ => {
                // SAFETY: `size` is not 0, as `GlobalAlloc::realloc` asks.
                let new = unsafe { self.alloc(wanted) };
                if !new.is_null() {
                    // SAFETY: both blocks have at least this many bytes, the old one the caller's to free.
                    unsafe {
                        new.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                }
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).expect("it is small")
    }

    /// Allocates, looks at both ends, and leaves a mark there.
    fn alloc(allocator: &RetainingAllocator, size: usize) -> *mut u8 {
        // SAFETY: it is not empty, and has these bytes.
        unsafe {
            let block = allocator.alloc(layout(size));
            assert!(!block.is_null());
            block.write(1);
            block.add(size - 1).write(2);
            block
        }
    }

    fn free(allocator: &RetainingAllocator, block: *mut u8, size: usize) {
        // SAFETY: every block in these tests is freed once, with its size.
        unsafe {
            assert_eq!((block.read(), block.add(size - 1).read()), (1, 2));
            allocator.dealloc(block, layout(size));
        }
    }

    fn kept(allocator: &RetainingAllocator) -> usize {
        let (pages, counted) = allocator.slots.kept();
        assert_eq!(counted, pages);
        pages
    }

    #[test]
    fn a_block_is_kept_for_the_next_of_its_size() {
        let allocator = RetainingAllocator::new();
        let block = alloc(&allocator, 10_000_000);
        assert!(block.addr() % PAGE == 0);
        free(&allocator, block, 10_000_000);
        assert_eq!(kept(&allocator), 5);
        let other = alloc(&allocator, 8_000_000);
        assert!(other != block);
        let again = alloc(&allocator, 9_999_999);
        assert_eq!(again, block);
        let third = alloc(&allocator, 10_000_000);
        assert!(third != block);
        for (block, size) in [(other, 8_000_000), (again, 9_999_999), (third, 10_000_000)] {
            free(&allocator, block, size);
        }
        assert_eq!(kept(&allocator), 14);
    }

    #[test]
    fn no_more_is_kept_than_is_said() {
        let allocator = RetainingAllocator::new();
        for size in [1000, LARGE - 1, 200 << 20] {
            free(&allocator, alloc(&allocator, size), size);
            assert_eq!(kept(&allocator), 0);
        }
        let sizes = [100 << 20, 20 << 20, 50 << 20, 60 << 20, 4 << 20, 4 << 20, 4 << 20, 128 << 20];
        let blocks = sizes.map(|size| alloc(&allocator, size));
        let after = std::iter::zip(blocks, sizes).map(|(block, size)| {
            free(&allocator, block, size);
            kept(&allocator)
        });
        assert_eq!(after.collect::<Vec<_>>(), [50, 60, 35, 55, 57, 59, 36, 64]);
    }

    #[test]
    fn reallocated_blocks_hold_what_they_held() {
        let allocator = RetainingAllocator::default();
        let mut size = 1000;
        let mut block = alloc(&allocator, size);
        for next in [2000, LARGE, LARGE + 1, 5 << 20, 20 << 20, 6 << 20, 500] {
            // SAFETY: the block is there, with this size.
            unsafe {
                block.add(size.min(next) - 1).write(7);
                let held = size.min(next) - 1;
                block = allocator.realloc(block, layout(size), next);
                assert_eq!((block.read(), block.add(held).read()), (1, 7));
                block.add(next - 1).write(2);
            }
            size = next;
        }
        free(&allocator, block, size);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    #[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
    fn what_is_kept_is_freed_before_the_answer_is_no() {
        let allocator = RetainingAllocator::new();
        free(&allocator, alloc(&allocator, LARGE), LARGE);
        assert!(kept(&allocator) > 0);
        // SAFETY: it is not empty; no machine has so much memory.
        assert!(unsafe { allocator.alloc(layout(1 << 60)) }.is_null());
        assert_eq!(kept(&allocator), 0);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    #[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
    fn a_block_that_cannot_grow_stays_as_it_was() {
        let allocator = RetainingAllocator::new();
        let block = alloc(&allocator, 1000);
        // SAFETY: the block is there, with this size; no machine has so much memory.
        let grown = unsafe { allocator.realloc(block, layout(1000), 1 << 60) };
        assert!(grown.is_null());
        free(&allocator, block, 1000);
    }

    #[test]
    fn zeroed_is_zero_wherever_it_comes_from() {
        let allocator = RetainingAllocator::new();
        free(&allocator, alloc(&allocator, LARGE), LARGE);
        // SAFETY: the layout is not empty; the block has these bytes, and is freed once.
        unsafe {
            let block = allocator.alloc_zeroed(layout(LARGE));
            assert!(std::slice::from_raw_parts(block, LARGE) == vec![0; LARGE]);
            allocator.dealloc(block, layout(LARGE));
        }
    }

    #[test]
    fn threads_never_share_a_block() {
        let allocator = RetainingAllocator::new();
        std::thread::scope(|scope| {
            for own in 0..4_u8 {
                let allocator = &allocator;
                scope.spawn(move || {
                    for round in 0..if cfg!(miri) { 5 } else { 500 } {
                        let size = LARGE + PAGE * (round % 3);
                        // SAFETY: the layout is not empty; each block is freed once, with its size.
                        unsafe {
                            let block = allocator.alloc(layout(size));
                            block.write_volatile(own);
                            std::thread::yield_now();
                            assert_eq!(block.read_volatile(), own);
                            allocator.dealloc(block, layout(size));
                        }
                    }
                });
            }
        });
        kept(&allocator);
    }
}
