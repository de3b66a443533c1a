//! The block of the tensor that a thread let go last, kept for its next one.
//!
//! Mostly a tensor goes before the next one comes, and what is made of one takes no longer than malloc and
//! free do for it.
#![expect(unsafe_code, reason = "is an allocator")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr;

use super::local::{LOCAL, Local};

/// What the block of a vector takes that has a `Buffer` for its owner. Smaller ones are given as much.
pub(super) const SMALL: Layout = match Layout::from_size_align(136, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("8 is a power of two"),
};

/// Whether a block is kept. Not where bugs are looked for: who uses a tensor after its end shall be seen to.
pub(super) const KEEP: bool = !cfg!(debug_assertions);

/// **Q1** It holds a block that was allocated as [`SMALL`], and that nobody else knows of; or NULL.
pub(super) struct Spare(Cell<*mut u8>);

impl Spare {
    pub(super) const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// The block, which is the caller's from now on; or NULL.
    fn take(&self) -> *mut u8 {
        self.0.replace(ptr::null_mut())
    }

    /// Takes such a block over, unless there is one already.
    fn keep(&self, block: *mut u8) -> bool {
        let is_free = self.0.get().is_null();
        if is_free {
            self.0.set(block);
        }
        is_free
    }

    pub(super) fn clear(&self) {
        let block = self.take();
        if !block.is_null() {
            // SAFETY: Q1.
            unsafe { dealloc(block, SMALL) };
        }
    }
}

/// What is allocated for a block of this layout.
fn rounded(layout: Layout) -> Layout {
    let is_small = layout.size() <= SMALL.size() && layout.align() <= SMALL.align();
    if is_small { SMALL } else { layout }
}

/// A block; NULL if there is no memory.
///
/// # Safety
///
/// The layout is not empty.
#[inline]
pub(super) unsafe fn block<const KEEP: bool>(layout: Layout) -> *mut u8 {
    let layout = rounded(layout);
    if KEEP && layout == SMALL {
        let spare = LOCAL.with(|local| local.spare.take());
        if !spare.is_null() {
            return spare;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { alloc(layout) }
}

/// Frees a block, or keeps it.
///
/// # Safety
///
/// It is from [`block`], with this layout, and nobody uses it any more.
#[inline]
pub(super) unsafe fn free<const KEEP: bool>(block: *mut u8, layout: Layout) {
    let layout = rounded(layout);
    // A thread without a slot may be at its end: nobody would free what it keeps.
    let keep = |local: &Local| local.slot.get().is_some() && local.spare.keep(block);
    if !(KEEP && layout == SMALL && LOCAL.with(keep)) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::live;

    fn small() -> *mut u8 {
        // SAFETY: it is not empty.
        unsafe { alloc(SMALL) }
    }

    #[test]
    fn one_block_is_kept_and_given_out_once() {
        let spare = Spare::new();
        assert!(spare.take().is_null());
        let (first, second) = (small(), small());
        assert!(spare.keep(first));
        assert!(!spare.keep(second));
        assert_eq!(spare.take(), first);
        assert!(spare.take().is_null());
        assert!(spare.keep(second) && !spare.keep(first));
        spare.clear();
        spare.clear();
        assert!(spare.keep(first));
        spare.clear();
    }

    /// Miri and LeakSanitizer see whether it is freed.
    #[test]
    fn a_thread_keeps_its_block_until_it_ends() {
        let work = || {
            // SAFETY: blocks are not used at all, and freed once.
            unsafe {
                let first = block::<true>(SMALL);
                free::<true>(first, SMALL);
                // Without a slot it was not kept.
                assert!(LOCAL.with(|local| local.spare.take()).is_null());
                live::exported(1);
                live::exported(-1);
                let [first, second] = [block::<true>(SMALL), block::<true>(SMALL)];
                free::<true>(first, SMALL);
                free::<true>(second, SMALL);
                assert_eq!(block::<true>(SMALL), first);
                free::<true>(first, SMALL);
            }
        };
        std::thread::spawn(work).join().expect("no panic");
    }

    #[test]
    fn blocks_of_any_size_come_and_go() {
        for (size, align) in [(1, 1), (136, 8), (136, 64), (137, 8), (8, 16), (4096, 8)] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            for _ in 0..3 {
                // SAFETY: not empty, used within its layout, and freed with it.
                unsafe {
                    let both = [block::<true>(layout), block::<true>(layout)];
                    assert!(both[0] != both[1]);
                    for block in both {
                        assert!(block.addr() % align == 0);
                        block.write_bytes(7, size);
                    }
                    for block in both {
                        free::<true>(block, layout);
                    }
                }
            }
        }
    }
}
