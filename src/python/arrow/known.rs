//! Children that the arrays of a stream share, checked once.
//!
//! Slices of one array refer to the same child by offsets or codes: lists to their items, dictionaries to their
//! values. Each of 800 chunks of a stream would check all of it.
#![expect(unsafe_code, reason = "reads foreign structures")]

use std::cell::{Cell, RefCell};
use std::{mem, sync::Arc};

use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};

use super::structs::{ArrowArray, Structure};
use crate::memory::release_foreign;

/// A structure that is released when its last user is dropped.
pub(in crate::python) struct OwnedArray(pub(in crate::python) ArrowArray);

impl OwnedArray {
    /// The structure, which is not released.
    pub(in crate::python) fn into_inner(mut self) -> ArrowArray {
        mem::replace(&mut self.0, ArrowArray::released())
    }
}

impl Drop for OwnedArray {
    fn drop(&mut self) {
        let array = mem::replace(&mut self.0, ArrowArray::released());
        release_foreign(move || drop(array));
    }
}

/// The children that the last array referred to, in the order in which they are imported.
/// It holds that array until the next one is imported.
#[derive(Default)]
pub(in crate::python) struct Known {
    children: RefCell<Vec<Child>>,
    next: Cell<usize>,
}

struct Child {
    place: Vec<usize>,
    values: ArrayRef,
    /// While it lives, what is at the same addresses is the same memory.
    _owner: Arc<OwnedArray>,
}

impl Known {
    /// The next array begins.
    pub(in crate::python) fn begin(&self) {
        self.next.set(0);
    }

    /// The child of the last array, if this one has the same memory; else what `import` makes of it.
    ///
    /// # Safety
    ///
    /// `array` is the owner's or below it, meets S1 and has been checked.
    pub(in crate::python) unsafe fn child(
        &self,
        array: &ArrowArray,
        owner: &Arc<OwnedArray>,
        data_type: &DataType,
        import: impl FnOnce() -> Result<ArrayRef, ArrowError>,
    ) -> Result<ArrayRef, ArrowError> {
        let index = self.next.replace(self.next.get() + 1);
        let mut place = Vec::new();
        // SAFETY: the caller's promise.
        unsafe { place_of(array, &mut place) };
        let is_same =
            |child: &&Child| child.place == place && child.values.data_type() == data_type;
        if let Some(child) = self.children.borrow().get(index).filter(is_same) {
            return Ok(Arc::clone(&child.values));
        }
        let values = import()?;
        let child = Child { place, values: Arc::clone(&values), _owner: Arc::clone(owner) };
        let mut children = self.children.borrow_mut();
        match children.get_mut(index) {
            Some(known) => *known = child,
            None => children.push(child),
        }
        Ok(values)
    }
}

/// The lengths and addresses of an array and of all below it.
///
/// # Safety
///
/// `array` meets S1 and has been checked.
unsafe fn place_of(array: &ArrowArray, place: &mut Vec<usize>) {
    let count = |count| usize::try_from(count).unwrap_or(0);
    let has_no_nulls = usize::from(array.null_count == 0);
    place.extend([array.len(), array.offset(), has_no_nulls, count(array.n_buffers)]);
    // SAFETY: the caller's promise: there are so many buffers and children, and a dictionary or NULL.
    unsafe {
        place.extend(
            (0..count(array.n_buffers)).map(|index| array.buffers.add(index).read().addr()),
        );
        for index in 0..count(array.n_children) {
            place_of(array.child(index), place);
        }
        if let Some(dictionary) = array.dictionary.as_ref() {
            place_of(dictionary, place);
        }
    }
}
