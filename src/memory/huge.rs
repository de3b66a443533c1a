//! Large memory in large pages.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "calls madvise"))]

/// Asks for huge pages where they make a difference.
///
/// The first write to each page of new memory costs a fault, and for a copy of tens of megabytes these
/// faults cost several times what the copy does. NumPy asks too, from the same size on. Advice can be
/// refused without harm.
#[cfg(target_os = "linux")]
pub(super) fn advise<T>(memory: &mut [T]) {
    const WORTH_IT: usize = 4 << 20;
    const PAGE: usize = 4096;
    const MADV_HUGEPAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
    }

    let nbytes = size_of_val(memory);
    if nbytes < WORTH_IT {
        return;
    }
    let start: *mut u8 = memory.as_mut_ptr().cast();
    let skip = start.align_offset(PAGE);
    let length = nbytes.saturating_sub(skip) / PAGE * PAGE;
    // SAFETY: the pages lie within `memory`, and this advice changes neither what they hold nor what
    // may be done with them.
    unsafe { madvise(start.wrapping_add(skip), length, MADV_HUGEPAGE) };
}

/// Other systems decide for themselves.
#[cfg(not(target_os = "linux"))]
pub(super) fn advise<T>(_memory: &mut [T]) {}
