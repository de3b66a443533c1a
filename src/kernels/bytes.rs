//! Bytes of a slice as an array.

/// `bytes`, which must have length `N`, as an array.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}
