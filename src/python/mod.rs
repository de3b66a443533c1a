//! The Python classes, for this project's package and for any other PyO3 extension (feature `pyo3`).
//!
//! [`PyArray`] and [`PyTensor`] are the package's `Array` and `Tensor`. As arguments they take any object that
//! supports the Arrow PyCapsule interface or DLPack; as results they support both, so that an extension
//! needs nothing else to exchange arrays with NumPy, PyTorch, JAX, pyarrow, polars and the rest. [`Chunks`] and
//! [`Table`] are arguments too, of several arrays. With feature `pyo3-arrow` the classes of that crate convert
//! to these, and back.
//!
//! A whole extension, which is `examples/extension` of the repository, built by maturin and called by
//! the tests:
//!
#![doc = include_str!("extension.md")]
//!
//! Extensions that also want the classes under names of their own call [`register`].
//!
//! # Ownership of memory
//!
//! Python may write to a tensor at any time, and a `&[f64]` promises that its memory does not change. So
//! [`PyTensor`] gives safe code its metadata, addresses, copies ([`PyTensor::to_vec`], [`PyTensor::copied`]),
//! and its elements as [`ReadOnlyCell`]s; the [`ManagedTensor`](crate::ManagedTensor) itself, with slices and
//! Arrow arrays of the same memory, takes `unsafe` ([`PyTensor::tensor`]), because only you can know that no
//! code writes.
//!
//! - **Arrow data is assumed to be immutable**, because Arrow's C interface requires that of all exported data.
//!   Python code that makes an array of NumPy's memory, by pyarrow or `from_dlpack`, and then writes to
//!   that memory, breaks this promise.
//! - **DLPack tensors may be written to**: a [`PyArray`] argument that gets a tensor is a copy of it. The flag
//!   `IS_COPIED` is the only sign that the memory has no other holder: [`PyTensor::into_exclusive`].
//! - **Memory that Rust keeps is read-only in Python**: a `PyTensor` made of an `Arc`, or of a share of a
//!   tensor. One that is made by value of a copy, or of memory that was handed over, is writable there.
//!   (PyTorch writes through
//!   `READ_ONLY` all the same: give it a copy.)
//! - **With a GIL** no Python code writes while you hold `py` and call no Python code. NumPy and PyTorch may
//!   write in threads that have released the GIL, and on a free-threaded build any thread may. A cell then has
//!   its value from before or after the write; a copy may have a mix of both.

// The files:
// - `functions` are the package's functions, with `assemble`, which makes one array or table of several tensors, and
//   `asdlpack`; `array`, `tensor`, `field` and `plan` (with `explain`) are its classes. What `Array` and `Tensor` do is in
//   `array_methods` and `tensor_methods`, which import modules that import the classes; `lent_tensor` is memory that Python
//   may be writing to.
// - `source` receives Arrow data from Python, by which method, and asks the package about frames of pandas; `data` makes
//   tensors of it, columns and tables; `named_tuples` are those of rows that differ in length; `read_once` knows readers that
//   are spent; `protocols` says which protocols an object supports; `out` is memory of the caller's for a result.
// - `arrow` speaks Arrow's C interfaces, `dlpack` the protocol of that name, `numpy` the buffer protocol and the array
//   interfaces; `batches` are the batches of a stream, as Python has them, and `encoder` makes one of the rows of a request.
// - `args`, `index` and `dtype` read arguments, which `describe` has words for; `errors` has the exceptions, `advice` what
//   to do with objects of the wrong kind; `objects` are those of which pyarrow makes Arrow data; `runtime` knows the
//   interpreter; `preview` and `pickle` show and pickle.
// - `rust_api` and `pyo3_arrow` are for other extensions.

mod advice;
mod args;
mod array;
mod array_methods;
mod arrow;
mod asdlpack;
mod assemble;
mod batches;
mod data;
mod describe;
mod dlpack;
mod dtype;
mod encoder;
mod errors;
mod field;
mod functions;
mod index;
mod lent_tensor;
mod named_tuples;
mod numpy;
mod objects;
mod out;
mod pickle;
mod plan;
mod preview;
mod protocols;
#[cfg(feature = "pyo3-arrow")]
mod pyo3_arrow;
mod read_once;
mod runtime;
mod rust_api;
mod source;
mod tensor;
mod tensor_methods;

use pyo3::{prelude::*, wrap_pyfunction};

pub use array::PyArray;
pub use field::PyField;
pub use plan::{PyPlan, PyStep};
pub use rust_api::ReadOnlyCell;
pub use rust_api::{Chunks, Table};
pub use tensor::PyTensor;

#[cfg(target_os = "linux")]
pub use crate::alloc::RetainingAllocator;

/// Adds the classes and functions of the package `arrow_dlpack` to a module, in the main interpreter.
///
/// ```
/// use pyo3::prelude::*;
///
/// /// The package's classes and functions, as `extension.tensors.to_tensor` and so on.
/// #[pymodule]
/// fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
///     let tensors = PyModule::new(module.py(), "tensors")?;
///     arrow_dlpack::python::register(&tensors)?;
///     module.add_submodule(&tensors)
/// }
/// ```
///
/// # Errors
///
/// `ImportError` in a sub-interpreter, before anything has been made there. State of the process (classes,
/// names, threads) would be shared by several interpreters, and PyO3 may attach to another one. Any other
/// exception that Python raises, such as `MemoryError`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    runtime::refuse_other_than_main(module.py())?;
    errors::name_functions();
    module.add_class::<PyArray>()?;
    module.add_class::<PyTensor>()?;
    module.add_class::<PyField>()?;
    module.add_class::<PyPlan>()?;
    module.add_class::<PyStep>()?;
    module.add_function(wrap_pyfunction!(functions::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(functions::to_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(functions::to_tensor_dict, module)?)?;
    module.add_function(wrap_pyfunction!(assemble::record_batch, module)?)?;
    module.add_function(wrap_pyfunction!(functions::ragged, module)?)?;
    module.add_function(wrap_pyfunction!(assemble::from_ragged, module)?)?;
    module.add_function(wrap_pyfunction!(assemble::from_padded, module)?)?;
    module.add_function(wrap_pyfunction!(plan::explain, module)?)?;
    named_tuples::register(module)?;
    module.add_function(wrap_pyfunction!(asdlpack::asdlpack, module)?)?;
    module.add_class::<batches::PyBatches>()?;
    module.add_class::<encoder::PyEncoder>()?;
    module.add_function(wrap_pyfunction!(advice::_way_to_table, module)?)?;
    module.add_function(wrap_pyfunction!(encoder::_words, module)?)?;
    module.add_function(wrap_pyfunction!(encoder::schema::_members, module)?)?;
    module.add_function(wrap_pyfunction!(encoder::schema::_schema_of, module)?)?;
    module.add_class::<batches::categories::PyCategories>()?;
    module.add_function(wrap_pyfunction!(batches::categories::_categories, module)?)?;
    module.add_class::<read_once::Reading>()?;
    module.add_function(wrap_pyfunction!(objects::_check_objects, module)?)?;
    module.add_function(wrap_pyfunction!(read_once::_is_read_once, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::recorded_stream::_recorded_stream, module)?)?;
    module.add("_BusyError", module.py().get_type::<batches::BusyError>())?;
    module.add_function(wrap_pyfunction!(batches::source::_take, module)?)?;
    module.add_function(wrap_pyfunction!(batches::_open_batches, module)?)?;
    module.add_function(wrap_pyfunction!(batches::_resume_shuffle, module)?)?;
    module.add_function(wrap_pyfunction!(batches::epoch::_seed_of_epoch, module)?)?;
    module.add_function(wrap_pyfunction!(batches::epoch::_seed_of_part, module)?)?;
    module.add_function(wrap_pyfunction!(batches::epoch::_order, module)?)?;
    module.add_function(wrap_pyfunction!(batches::epoch::_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(batches::prefetch::_stop_batches, module)?)?;
    module.add_function(wrap_pyfunction!(args::_check_names, module)?)?;
    module.add_function(wrap_pyfunction!(args::_check_nulls, module)?)?;
    module.add_function(wrap_pyfunction!(args::_index_columns, module)?)?;
    module.add_function(wrap_pyfunction!(args::_index_steps, module)?)?;
    module.add_function(wrap_pyfunction!(pickle::_unpickle_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(pickle::_unpickle_array, module)?)?;
    module.add_function(wrap_pyfunction!(functions::_live, module)?)?;
    module.add_function(wrap_pyfunction!(dtype::_dtype_name, module)?)?;
    module.add("MissingProtocolError", errors::missing_protocol_error(module.py())?)?;
    module.add("StreamError", errors::stream_error(module.py())?)?;
    module.add("UnsupportedError", errors::unsupported_error(module.py())?)
}
