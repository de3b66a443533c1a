//! What NumPy and the buffer protocol have of memory.
//!
//! - `array_interface` reads the array interfaces, checked, and `buffer_import` memory of a Python object; `refusal` refuses
//!   what `__dlpack__` leaves out: masks, units, signs.
//! - `buffer` is the buffer protocol of a tensor, `convert` its NumPy array, `elements` its values as Python has them.
//! - `item` has the element types as Python spells them.

pub(in crate::python) mod array_interface;
pub(in crate::python) mod buffer;
pub(in crate::python) mod buffer_import;
pub(in crate::python) mod convert;
pub(in crate::python) mod elements;
pub(in crate::python) mod item;
pub(in crate::python) mod refusal;
