//! The loops: safe code over slices, with no policy in it.

mod gather;

pub(crate) use gather::gather;
