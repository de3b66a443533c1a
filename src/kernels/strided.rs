//! Items at equal steps, checked once for all of them: with a check for each, the CPU has fewer loads in
//! flight, which takes a quarter longer.
#![expect(unsafe_code, reason = "reads between two addresses that it has checked")]

/// The `N` bytes at each of `len` positions from `at` on.
///
/// # Panics
///
/// Where `bytes` ends before the first or the last of them does.
pub(super) fn strided<const N: usize>(
    bytes: &[u8],
    at: usize,
    len: usize,
    step: isize,
) -> impl Iterator<Item = [u8; N]> {
    let steps = isize::try_from(len.saturating_sub(1)).ok();
    let last = steps.and_then(|steps| steps.checked_mul(step));
    let last = last.and_then(|reach| at.checked_add_signed(reach));
    let is_within = |at: usize| at.checked_add(N).is_some_and(|end| end <= bytes.len());
    assert!(len == 0 || is_within(at) && last.is_some_and(is_within), "elements are in the span");

    let mut next = bytes.as_ptr().wrapping_add(at);
    (0..len).map(move |_| {
        let item = next.cast::<[u8; N]>();
        next = next.wrapping_offset(step);
        // SAFETY: not before the lower and not behind the higher of the first and the last item, which
        // are within `bytes`; this is called `len` times at most.
        unsafe { item.read() }
    })
}

#[cfg(test)]
mod tests {
    use super::strided;

    #[test]
    fn ends_are_checked() {
        let bytes: [u8; 10] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        let read = |at, len, step: isize| strided::<2>(&bytes, at, len, step).collect::<Vec<_>>();
        assert_eq!(read(0, 3, 4), [[0, 1], [4, 5], [8, 9]]);
        assert_eq!(read(8, 3, -4), [[8, 9], [4, 5], [0, 1]]);
        assert_eq!(read(3, 2, 0), [[3, 4], [3, 4]]);
        assert!(read(99, 0, 7).is_empty());
        let (max, min) = (isize::MAX, isize::MIN);
        let outside =
            [(0, 3, 5), (9, 1, 0), (7, 3, -4), (1, 2, max), (8, 2, min), (8, 3, min), (99, 1, -97)];
        for (at, len, step) in outside {
            assert!(std::panic::catch_unwind(|| read(at, len, step)).is_err(), "{at} {len} {step}");
        }
        assert!(std::panic::catch_unwind(|| strided::<2>(&bytes, 0, usize::MAX, 1)).is_err());
    }
}
