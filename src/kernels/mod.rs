//! The loops, without any policy: safe code over slices, except in `lanes` and `strided`.
mod beside;
mod bits;
mod bytes;
mod cast;
mod columns;
mod convert;
mod decimal;
mod encode;
mod fill;
mod gather;
mod lanes;
mod minifloat;
mod pad;
mod strided;
#[cfg(test)]
mod tests;
mod threads;
mod transpose;
mod transpose_tile;
mod widen;

pub(crate) use beside::{one_behind_the_other, side_by_side};
pub(crate) use bits::{are_bools, pack_bools};
pub(crate) use columns::{concatenate, interleave};
pub(crate) use convert::{CellValues, Cells, can_convert};
pub(crate) use decimal::Decimals;
pub(crate) use fill::FillBytes;
pub(crate) use gather::gather;
pub(crate) use pad::Padding;
pub(crate) use threads::Threads;
pub(crate) use widen::{unpack, widen, widen_integers};
