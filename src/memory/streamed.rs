//! Stores that go past the caches, for large results.
//!
//! Of the time without, a copy of 100 chunks takes 0.55, a matrix of 64 MB 0.4, casts and nulls 0.8 to 0.95.
//!
//! E1: before anybody reads or writes what [`line`] wrote, on any thread, the thread that called it drops a [`Fence`]:
//! by the documentation of `_mm_sfence` all that comes earlier is a race.
#![expect(unsafe_code, reason = "intrinsics, and writes to memory")]

use std::{mem::MaybeUninit, ptr};

use stores::fence;
pub(super) use stores::line;

/// Orders the streamed stores before all later ones, when it is dropped.
pub(super) struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        fence();
    }
}

/// Bytes of a result from which on whole cache lines are written past the caches. Otherwise the processor reads each
/// line from memory before it writes it: for 40 MB that takes twice the time. Smaller results are partly still in a
/// cache when the tensor is read.
pub(super) const STREAMED: usize = 16 << 20;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Copies `from`, whole cache lines past the caches.
///
/// # Panics
///
/// If the lengths differ.
pub(super) fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    let len = to.len();
    assert_eq!(from.len(), len, "a copy is as long");
    let head = to.as_ptr().align_offset(LINE).min(len);
    let lines = head..head + (len - head) / LINE * LINE;
    let (from, to) = (from.as_ptr(), to.as_mut_ptr().cast::<u8>());
    let _fence = Fence;
    // SAFETY: both have the length; each byte of `to`, which is borrowed mutably, is written once; a cache line begins
    // every LINE bytes from `head` on; E1.
    unsafe {
        ptr::copy_nonoverlapping(from, to, lines.start);
        for at in lines.clone().step_by(LINE) {
            line(from.add(at).cast(), to.add(at).cast());
        }
        ptr::copy_nonoverlapping(from.add(lines.end), to.add(lines.end), len - lines.end);
    }
}

/// Stores that go past the caches, by SSE2, which is there wherever `target_feature = "sse2"` says so. Miri does
/// not know them.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod stores {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use super::LINE;

    /// Copies a cache line.
    ///
    /// # Safety
    ///
    /// `from` can be read, and `to`, which is where a cache line begins, be written; the caller keeps E1.
    #[inline(always)]
    pub(in super::super) unsafe fn line(from: *const [u8; LINE], to: *mut [u8; LINE]) {
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            // SAFETY: the caller's promise; the parts of what is aligned are.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }

    pub(super) fn fence() {
        // SAFETY: SSE2 has it.
        unsafe { _mm_sfence() };
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
mod stores {
    use super::LINE;

    /// Copies a cache line.
    ///
    /// # Safety
    ///
    /// `from` can be read, and `to` be written.
    pub(in super::super) unsafe fn line(from: *const [u8; LINE], to: *mut [u8; LINE]) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, 1) };
    }

    pub(super) fn fence() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_writes_each_byte_once_at_any_address() {
        let from: Vec<u8> = (0..=255).cycle().take(5 * LINE).collect();
        for (start, len) in
            [(0, 5), (3, 0), (1, LINE - 1), (1, LINE), (7, 4 * LINE), (LINE, 3 * LINE + 1)]
        {
            let mut to = vec![MaybeUninit::new(0); 6 * LINE];
            copy(&from[..len], &mut to[start..start + len]);
            // SAFETY: all of them were written, as zeros if not by the copy.
            let to: Vec<u8> = to.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            assert_eq!(to[start..start + len], from[..len], "{len} bytes at {start}");
            assert!(to[..start].iter().chain(&to[start + len..]).all(|byte| *byte == 0));
        }
    }

    #[test]
    #[should_panic(expected = "a copy is as long")]
    fn a_copy_of_another_length_is_refused() {
        copy(&[1], &mut []);
    }
}
