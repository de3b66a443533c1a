//! The loops: safe code over slices, with no policy in it.
#![allow(dead_code, unused_imports, reason = "the rooms above begin to use them one by one")]

mod bits;
mod gather;
mod minifloat;
mod widen;

pub(crate) use bits::{are_bools, pack_bools};
pub(crate) use gather::gather;
pub(crate) use widen::{unpack, widen, widen_integers};
