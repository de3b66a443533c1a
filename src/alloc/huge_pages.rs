//! Large pages for large allocations.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "calls madvise"))]

/// Asks for huge pages where they make a difference.
///
/// The first write to each page of new memory costs a page fault, and for a copy of tens of megabytes these
/// faults take several times as long as the copy. NumPy asks too, from the same size on. Advice can be
/// refused without harm.
#[cfg(target_os = "linux")]
pub(super) fn advise<T>(memory: &mut [T]) {
    const WORTH_IT: usize = 4 << 20;

    if size_of_val(memory) >= WORTH_IT {
        // SAFETY: the slice is the caller's.
        unsafe { advise_pages(memory.as_mut_ptr().cast(), size_of_val(memory)) }
    }
}

/// Other systems decide for themselves.
#[cfg(not(target_os = "linux"))]
pub(super) fn advise<T>(_memory: &mut [T]) {}

/// The size of a huge page, on most machines.
#[cfg(target_os = "linux")]
pub(super) const PAGE: usize = 2 << 20;

/// Asks for huge pages.
///
/// # Safety
///
/// `nbytes` bytes from `start` on are the caller's.
#[cfg(target_os = "linux")]
pub(super) unsafe fn advise_pages(start: *mut u8, nbytes: usize) {
    const MADV_HUGEPAGE: i32 = 14;

    // SAFETY: these bytes are the caller's; this advice changes neither what pages hold nor what may be done
    // with them.
    unsafe { advise_whole_pages(start, nbytes, MADV_HUGEPAGE) }
}

/// Lets the kernel reclaim the memory when it needs some. Its contents are undefined until it is written to
/// again.
///
/// # Safety
///
/// `nbytes` bytes from `start` on are the caller's, and are not read before they are written to.
#[cfg(target_os = "linux")]
pub(super) unsafe fn offer(start: *mut u8, nbytes: usize) {
    const MADV_FREE: i32 = 8;

    // SAFETY: these bytes are the caller's, and not read before they are written to: the advice takes their contents.
    unsafe { advise_whole_pages(start, nbytes, MADV_FREE) }
}

/// # Safety
///
/// `nbytes` bytes from `start` on are the caller's, who answers for the effect of the advice.
#[cfg(target_os = "linux")]
unsafe fn advise_whole_pages(start: *mut u8, nbytes: usize, advice: i32) {
    const SMALL_PAGE: usize = 4096;
    unsafe extern "C" {
        fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
    }

    // Miri knows no `madvise`; advice can be left out without harm.
    if cfg!(miri) {
        return;
    }
    let skip = start.align_offset(SMALL_PAGE);
    let length = nbytes.saturating_sub(skip) / SMALL_PAGE * SMALL_PAGE;
    // SAFETY: the pages lie within memory that is the caller's, who answers for the effect.
    unsafe { madvise(start.wrapping_add(skip), length, advice) };
}
