//! A 16-byte SIMD register, for two steps that the compiler does not vectorise; and items at equal steps, with one bounds
//! check for all of them: a check for each item leaves the CPU fewer loads in flight, and takes a quarter longer.
//!
//! W1: SSE2 is available wherever `target_feature = "sse2"` is set, which is every x86-64.
#![expect(
    unsafe_code,
    reason = "calls intrinsics of SSE2, and reads between two addresses that it has checked"
)]

#[cfg(target_feature = "sse2")]
mod registers {
    #[cfg(target_arch = "x86")]
    use std::arch::x86 as arch;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64 as arch;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Lanes(arch::__m128i);

    impl Lanes {
        #[inline(always)]
        pub(in super::super) fn load(bytes: &[u8; 16]) -> Self {
            // SAFETY: W1; sixteen bytes at any address.
            Self(unsafe { arch::_mm_loadu_si128(bytes.as_ptr().cast()) })
        }

        #[inline(always)]
        pub(in super::super) fn store(self, bytes: &mut [u8; 16]) {
            // SAFETY: W1; sixteen bytes at any address.
            unsafe { arch::_mm_storeu_si128(bytes.as_mut_ptr().cast(), self.0) }
        }

        /// Interleaves the items of `N` bytes of two registers: of the low halves, and of the high halves.
        #[inline(always)]
        pub(in super::super) fn zip<const N: usize>(self, other: Self) -> (Self, Self) {
            let (a, b) = (self.0, other.0);
            // SAFETY: W1.
            let (low, high) = unsafe {
                match N {
                    1 => (arch::_mm_unpacklo_epi8(a, b), arch::_mm_unpackhi_epi8(a, b)),
                    2 => (arch::_mm_unpacklo_epi16(a, b), arch::_mm_unpackhi_epi16(a, b)),
                    4 => (arch::_mm_unpacklo_epi32(a, b), arch::_mm_unpackhi_epi32(a, b)),
                    _ => (arch::_mm_unpacklo_epi64(a, b), arch::_mm_unpackhi_epi64(a, b)),
                }
            };
            (Self(low), Self(high))
        }

        /// The bits of `other` where the mask has ones, and those of `self` elsewhere.
        #[inline(always)]
        pub(in super::super) fn select(self, other: Self, mask: Self) -> Self {
            // SAFETY: W1.
            Self(unsafe {
                let kept = arch::_mm_andnot_si128(mask.0, self.0);
                arch::_mm_or_si128(arch::_mm_and_si128(mask.0, other.0), kept)
            })
        }

        /// One bit per byte, set if the byte is not 0; the first byte is the lowest bit.
        #[inline(always)]
        pub(in super::super) fn nonzero(self) -> u16 {
            // SAFETY: W1.
            let zeros = unsafe {
                arch::_mm_movemask_epi8(arch::_mm_cmpeq_epi8(self.0, arch::_mm_setzero_si128()))
            };
            let [low, high, ..] = zeros.to_le_bytes();
            !u16::from_le_bytes([low, high])
        }
    }
}

#[cfg(any(not(target_feature = "sse2"), test))]
mod arrays {
    use super::super::array;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Lanes([u8; 16]);

    impl Lanes {
        pub(in super::super) fn load(bytes: &[u8; 16]) -> Self {
            Self(*bytes)
        }

        pub(in super::super) fn store(self, bytes: &mut [u8; 16]) {
            *bytes = self.0;
        }

        pub(in super::super) fn zip<const N: usize>(self, other: Self) -> (Self, Self) {
            let zipped = |half: usize| {
                let mut zipped = [0; 16];
                let pairs = self.0[half..].chunks_exact(N).zip(other.0[half..].chunks_exact(N));
                for (pair, (a, b)) in zipped.chunks_exact_mut(2 * N).zip(pairs) {
                    pair[..N].copy_from_slice(a);
                    pair[N..].copy_from_slice(b);
                }
                Self(zipped)
            };
            (zipped(0), zipped(8))
        }

        pub(in super::super) fn select(self, other: Self, mask: Self) -> Self {
            let [own, other, mask] = [self.0, other.0, mask.0].map(u128::from_ne_bytes);
            Self((mask & other | !mask & own).to_ne_bytes())
        }

        pub(in super::super) fn nonzero(self) -> u16 {
            u16::from_le_bytes([nonzero(array(&self.0[..8])), nonzero(array(&self.0[8..]))])
        }
    }

    fn nonzero(eight: [u8; 8]) -> u8 {
        const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;

        let word = u64::from_le_bytes(eight);
        let ones = (((word & LOW) + LOW) | word) >> 7 & 0x0101_0101_0101_0101;
        // The product moves byte i to bit 56 + i, without carries.
        let [.., bits] = ones.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
        bits
    }
}

#[cfg(not(target_feature = "sse2"))]
pub(super) use arrays::Lanes;
#[cfg(target_feature = "sse2")]
pub(super) use registers::Lanes;

/// The `N` bytes at each of `len` positions from `at` on.
///
/// # Panics
///
/// If the first or the last item is not within `bytes`.
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
        // SAFETY: all items are between the first and the last, which are within `bytes`; the closure runs at most
        // `len` times.
        unsafe { item.read() }
    })
}

#[cfg(test)]
mod strided_tests {
    use super::*;

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

#[cfg(all(test, target_feature = "sse2"))]
mod tests {
    use super::{arrays, registers};

    fn both(a: [u8; 16], b: [u8; 16]) {
        fn zips<const N: usize>(a: &[u8; 16], b: &[u8; 16]) {
            let mut found = [[0; 16]; 4];
            let (low, high) = registers::Lanes::load(a).zip::<N>(registers::Lanes::load(b));
            low.store(&mut found[0]);
            high.store(&mut found[1]);
            let (low, high) = arrays::Lanes::load(a).zip::<N>(arrays::Lanes::load(b));
            low.store(&mut found[2]);
            high.store(&mut found[3]);
            assert_eq!(found[..2], found[2..]);
        }
        zips::<1>(&a, &b);
        zips::<2>(&a, &b);
        zips::<4>(&a, &b);
        zips::<8>(&a, &b);
        let mut selected = [[0; 16]; 2];
        let mask = b.map(|byte| byte.wrapping_mul(3));
        let load = registers::Lanes::load;
        load(&a).select(load(&b), load(&mask)).store(&mut selected[0]);
        let load = arrays::Lanes::load;
        load(&a).select(load(&b), load(&mask)).store(&mut selected[1]);
        assert_eq!(selected[0], selected[1]);
        assert_eq!(registers::Lanes::load(&a).nonzero(), arrays::Lanes::load(&a).nonzero());
    }

    #[test]
    fn registers_and_arrays_give_the_same_results() {
        let ramp: [u8; 16] = std::array::from_fn(|index| [0, 1, 128, 127, 255][index * 7 % 5]);
        for shift in 0..16 {
            let mut a = ramp;
            a.rotate_left(shift);
            both(a, ramp);
            both(std::array::from_fn(|index| u8::from(index == shift)), a);
        }
    }
}
