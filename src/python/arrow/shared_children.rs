//! Children that the arrays of a stream share, checked once.
//!
//! Slices of one array refer to the same child by offsets or codes: lists to their items, dictionaries to their
//! values. Each of 800 chunks of a stream would check all of it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;

use super::structs::ArrowArray;
use super::validate::{CheckedArray, TypedArray};

/// The children that the last array referred to, in the order in which they are imported.
/// It holds that array until the next one is imported.
#[derive(Default)]
pub(in crate::python) struct SharedChildren {
    children: RefCell<Vec<Child>>,
    next: Cell<usize>,
}

struct Child {
    place: Vec<usize>,
    values: ArrayRef,
    /// While it lives, what is at the same addresses is the same memory.
    _owner: Arc<TypedArray>,
}

impl SharedChildren {
    /// The next array begins.
    pub(in crate::python) fn begin(&self) {
        self.next.set(0);
    }

    /// The child of the last array, if this one has the same memory; else what `import` makes of it.
    pub(super) fn child(
        &self,
        array: CheckedArray<'_>,
        owner: &Arc<TypedArray>,
        import: impl FnOnce() -> Result<ArrayRef, ArrowError>,
    ) -> Result<ArrayRef, ArrowError> {
        let index = self.next.replace(self.next.get() + 1);
        let mut place = Vec::new();
        place_of(array.array(), &mut place);
        let is_same =
            |child: &&Child| child.place == place && child.values.data_type() == array.data_type();
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
fn place_of(array: &ArrowArray, place: &mut Vec<usize>) {
    let number = |number| usize::try_from(number).unwrap_or(0);
    let (buffers, nulls) = (number(array.n_buffers()), usize::from(array.null_count() == 0));
    place.extend([number(array.length()), number(array.offset()), nulls, buffers]);
    place.extend((0..buffers).filter_map(|index| array.buffer(index)).map(<*const u8>::addr));
    let below = array.children().into_iter().flatten().chain(array.dictionary());
    for array in below.flatten() {
        place_of(array, place);
    }
}
