//! Allocates and frees the blocks of tensors, by the allocator or the thread's cache.
#![expect(unsafe_code, reason = "is an allocator")]

use std::alloc::{Layout, alloc, dealloc};

use super::block_cache::SMALL;
use super::local::{LOCAL, Local};

/// The layout that is allocated for a block of this layout.
fn rounded(layout: Layout) -> Layout {
    let is_small = layout.size() <= SMALL.size() && layout.align() <= SMALL.align();
    if is_small { SMALL } else { layout }
}

/// A block; NULL if the allocation fails.
///
/// # Safety
///
/// The layout is not empty.
#[inline]
pub(super) unsafe fn block<const KEEP: bool>(layout: Layout) -> *mut u8 {
    let layout = rounded(layout);
    if KEEP && layout == SMALL {
        let kept = LOCAL.with(|local| local.blocks.take());
        if !kept.is_null() {
            return kept;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { alloc(layout) }
}

/// Frees a block, or caches it.
///
/// # Safety
///
/// It is from [`block`], with this layout, and is not used any more.
#[inline]
pub(super) unsafe fn free<const KEEP: bool>(block: *mut u8, layout: Layout) {
    let layout = rounded(layout);
    // A thread without a slot may be ending, and would leak a cached block.
    let keep = |local: &Local| local.slot.get().is_some() && local.blocks.keep(block);
    if !(KEEP && layout == SMALL && LOCAL.with(keep)) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::live;

    /// Miri and LeakSanitizer see whether it is freed.
    #[test]
    fn a_thread_keeps_its_block_until_it_ends() {
        let work = || {
            // SAFETY: blocks are not used at all, and freed once.
            unsafe {
                let first = block::<true>(SMALL);
                free::<true>(first, SMALL);
                // Without a slot it was not kept.
                assert!(LOCAL.with(|local| local.blocks.take()).is_null());
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
