//! The loops, without any policy: safe code over slices, except in `simd`.
//!
//! - `cast` converts numbers, `decimal` decimals, `formats` elements that Arrow has no type for; `convert` does so for a
//!   chunk, `encode` for one value, and `fill` replaces nulls.
//! - `interleave` makes rows of columns, `transpose` and `gather` read tensors of any strides, `pad` makes rows equally long,
//!   `bits` packs and unpacks booleans.
//! - `threads` fills results block by block, on several threads where that pays.

mod bits;
mod cast;
mod convert;
mod decimal;
mod encode;
mod fill;
mod formats;
mod gather;
mod interleave;
mod pad;
mod simd;
#[cfg(test)]
mod tests;
mod threads;
mod transpose;

pub(crate) use bits::{are_bools, pack_bools};
#[cfg(feature = "pyo3")]
pub(crate) use cast::nearest_half;
pub(crate) use convert::{CellValues, Cells, can_convert};
pub(crate) use decimal::Decimals;
pub(crate) use fill::FillBytes;
pub(crate) use formats::{unpack, widen, widen_integers};
pub(crate) use gather::gather;
pub(crate) use interleave::{concat_columns, interleave_wide};
pub(crate) use interleave::{concatenate, interleave};
pub(crate) use pad::Padding;
pub use pad::Side;
pub(crate) use threads::Threads;

/// `bytes`, which must have length `N`, as an array.
#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}
