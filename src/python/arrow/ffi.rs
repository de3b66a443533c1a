//! Checks Arrow's C structures before arrow-rs imports them.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>. arrow-rs trusts what it imports: a
//! negative length panics, a short child reads out of bounds. So this module first checks everything that a
//! structure shows by itself. That buffers are as long as the lengths say cannot be checked, and is the
//! producer's promise.
//!
//! **S1** A structure is valid for as long as its owner lives and nobody moves it, as the interface says:
//!
//! - its texts end with a NUL, its metadata have the lengths that they give, its arrays of pointers those given in it,
//!   and what these point to meets S1 too;
//! - of an array with rows, a buffer that is not NULL is readable for as many bytes as the type, the length and the
//!   offset of the array ask for, or the offsets and sizes in the buffers before it;
//! - none of that changes. Of the bytes in buffers it is not relied on: other code may write to memory that it shared,
//!   so that a number that decides on an access is read once, and what was checked is used.
#![expect(unsafe_code, reason = "looks into foreign structures")]

use arrow_schema::ArrowError;

use crate::fence;

/// A result whose error describes what is wrong with a structure.
pub(in crate::python) type Checked<T = ()> = Result<T, String>;

/// Turns a panic of arrow-rs, which asserts some of what it imports, into an error.
pub(in crate::python) fn fenced<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Checked<T> {
    fence::fenced(work)
        .map_err(|_| "the Arrow structure is malformed".to_owned())?
        .map_err(|error| error.to_string())
}

/// The elements of a C array of pointers.
pub(in crate::python) fn children<T>(
    count: i64,
    children: *mut *mut T,
) -> Checked<impl Iterator<Item = *const T>> {
    let count =
        usize::try_from(count).map_err(|_| format!("an Arrow structure has {count} children"))?;
    if count > 0 && (children.is_null() || !children.is_aligned()) {
        return Err(format!("an Arrow structure has {count} children, but no pointer to them"));
    }
    // SAFETY: S1, `count` pointers are there.
    Ok((0..count).map(move |index| unsafe { children.add(index).read() }.cast_const()))
}
