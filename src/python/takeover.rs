//! Arrow's C structures, once they are checked, as arrays of arrow-rs.
#![expect(unsafe_code, reason = "takes foreign structures over")]

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::{ArrayRef, make_array};
use arrow_schema::DataType;

use super::repair::repaired;
use super::structure::{Checked, check_array, child_types, fenced};
use crate::memory::PendingException;

/// Takes over an array structure, and says how many bytes of it are not aligned to their values, which
/// arrow-rs moves. Numeric arrays are checked in constant time, but for their nulls, if there are any, which are
/// counted; of others the contents are checked too, because offsets and keys are addresses of a kind.
pub(super) fn array_from(
    mut array: FFI_ArrowArray,
    data_type: &DataType,
) -> Checked<(ArrayRef, usize)> {
    let moved = check_array(&array, data_type)?;
    // SAFETY: it has been checked, so there is a child for each type.
    unsafe { correct(&raw mut array, data_type) };
    let array = releasing_quietly(array);
    let array = fenced(|| {
        // SAFETY: the structure has been checked, and S1 is the producer's promise for the rest.
        let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) }?;
        let data = repaired(data)?;
        if !data_type.is_primitive() {
            data.validate_full()?;
        }
        Ok(make_array(data))
    });
    Ok((array?, moved))
}

/// The same array, for whose release an exception in flight is put aside.
fn releasing_quietly(array: FFI_ArrowArray) -> FFI_ArrowArray {
    unsafe extern "C" fn release(array: *mut FFI_ArrowArray) {
        let _pending = PendingException::set_aside();
        // SAFETY: called once, by the interface, with the array that was made below.
        unsafe {
            drop(Box::from_raw((*array).private_data.cast::<FFI_ArrowArray>()));
            (*array).release = None;
        }
    }
    let inner = Box::into_raw(Box::new(array));
    // SAFETY: it has just been boxed; of the two, only the box releases it.
    let mut outer = unsafe { inner.read() };
    outer.release = Some(release);
    outer.private_data = inner.cast();
    outer
}

/// Makes arrays of nulls have no buffers, as the interface says they have, because arrow-rs asks what the
/// others would be; and has nulls counted wherever there are said to be some, because it relies on their number.
///
/// # Safety
///
/// `array` is ours, meets S1 and has passed [`check_array`].
unsafe fn correct(array: *mut FFI_ArrowArray, data_type: &DataType) {
    // SAFETY: the caller's promise; children and dictionaries are owned by their parent.
    unsafe {
        match data_type {
            DataType::Null => (*array).n_buffers = 0,
            _ if (*array).null_count > 0 => (*array).null_count = -1,
            _ => {}
        }
        for (index, (child_type, _)) in child_types(data_type).into_iter().enumerate() {
            correct((*array).children.add(index).read(), child_type);
        }
        if let DataType::Dictionary(_, values) = data_type {
            correct((*array).dictionary, values);
        }
    }
}
