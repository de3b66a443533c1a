//! Arrow arrays to [DLPack](https://dmlc.github.io/dlpack/latest/) tensors and back, without a copy where the memory
//! allows it.
//!
//! arrow-rs keeps columns; candle, ONNX Runtime, TVM, NumPy and PyTorch take tensors. Plain numbers lie in memory alike
//! in both, so a column can become a tensor, and a tensor a column, over the same memory. This crate makes these
//! conversions, for every Arrow type that a tensor can hold, and refuses the others with an error that names the
//! way out.
//!
//! ```
//! use arrow_array::{Array, Float32Array};
//! use arrow_dlpack::{ExportOptions, ManagedTensor, export};
//!
//! let column = Float32Array::from(vec![1.5, 2.5, 4.0]);
//! let tensor = export::tensor(&column.slice(1, 2), &ExportOptions::default())?;
//! assert_eq!((tensor.shape(), tensor.is_read_only()), (&[2][..], true));
//! assert_eq!(tensor.as_slice::<f32>(), Some(&column.values()[1..]));
//!
//! // And back. Where the program knows the type, `try_from` is the shortest way, and the fastest.
//! let tensor = ManagedTensor::try_from(&column)?;
//! let back = Float32Array::try_from(tensor)?;
//! assert_eq!(back.values().as_ptr(), column.values().as_ptr());
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```
//!
//! # Concepts
//!
//! **[`ManagedTensor`]** owns a tensor: its memory, dtype, shape, strides and device, and the deleter of its producer, which
//! runs once, when the tensor or the last array over its memory is dropped. It was validated when it was made, so
//! its methods need no `unsafe`.
//!
//! **Prepare, then run.** A conversion is decided before anything is done. [`export::prepare`] and [`import::prepare`]
//! return what was decided: a [`Plan`] of the copies with their bytes and reasons, and `run()`, which does exactly that.
//! [`export::tensor`], [`from_dlpack`] and the like do both at once. [`CopyPolicy::Never`] forbids every copy;
//! [`export::explain`] returns the plan alone.
//!
//! ```
//! use arrow_array::{BooleanArray, Int32Array};
//! use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy, export};
//!
//! let ages = Int32Array::from(vec![Some(31), None, Some(45)]);
//! let options = ExportOptions::default();
//! assert!(matches!(export::tensor(&ages, &options), Err(Error::Nulls { .. })));
//!
//! let prepared = export::prepare(&ages, &options.clone().with_nulls(NullPolicy::Nan))?;
//! assert_eq!(prepared.plan().bytes_copied(), 24);
//! let tensor = prepared.run()?.values;
//! assert_eq!(tensor.dtype().to_string(), "float64");
//!
//! let bits = BooleanArray::from(vec![true, false]);
//! let refused = export::tensor(&bits, &options.with_copy(CopyPolicy::Never));
//! assert!(matches!(refused, Err(Error::CopyForbidden { .. })));
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```
//!
//! **Who owns what.**
//!
//! | conversion | the memory belongs to | the tensor is |
//! | --- | --- | --- |
//! | share: [`export::tensor`], [`to_dlpack`], [`ManagedTensor::share`] | the array's buffer, which the tensor keeps alive | read-only |
//! | copy: [`CopyPolicy::Always`], and where there is no other way | the tensor alone | writable, `IS_COPIED` |
//! | hand over: [`export::into_tensor`] | the tensor alone; the array is consumed, and comes back if it has another owner | writable |
//! | [`ManagedTensor::from_vec`], `from_owner` | the `Vec` or owner, which the tensor keeps | writable if the owner is exclusive |
//! | [`from_dlpack`] | the producer; the array keeps the tensor alive | gone: the array has it |
//! | [`ManagedTensor::into_raw`] | the holder of the pointer, which has to call its deleter | as before |
//!
//! Safe code writes to a tensor only if the crate knows that no other code has its memory:
//! [`as_slice_mut`](ManagedTensor::as_slice_mut) returns `None` for a share. The unsafe
//! [`assume_exclusive`](ManagedTensor::assume_exclusive) is for the others. What another language may do to shared
//! memory meanwhile, no type can prevent: the contract of [`ManagedTensor::from_raw`] says what a producer promises. Once
//! it is made, a [`copied`](ManagedTensor::copied) tensor is safe from all of it; a producer that writes while it is being
//! made breaks that promise, and the copy may have parts of values from before and after.
//!
//! The **field** of a column carries extension types: [`to_dlpack`] takes one, [`from_dlpack`] returns one, and so do tables.
//! Fields say that a column is a tensor of a fixed shape, or bfloat16 ([`extension`]).
//!
//! # Examples
//!
//! ## arrow-rs
//!
//! Tables become a matrix or a tensor for each column, lists become values and offsets, chunks are put together.
//! For training, [`batches::Batches`] cuts any `RecordBatchReader` into batches of tensors, and shuffles, shards and
//! reads ahead.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, types::Int32Type};
//! use arrow_dlpack::ffi::DLDataType;
//! use arrow_dlpack::{ExportOptions, ImportOptions, ManagedTensor, export, import};
//!
//! let age: ArrayRef = Arc::new(Int64Array::from(vec![31, 45]));
//! let fare: ArrayRef = Arc::new(Float32Array::from(vec![7.5, 71.25]));
//! let batch = RecordBatch::try_from_iter([("age", age), ("fare", fare)])?;
//! let matrix = export::tensor(&batch, &ExportOptions::default().with_dtype(DLDataType::FLOAT32))?;
//! assert_eq!(matrix.as_slice::<f32>(), Some(&[31.0, 7.5, 45.0, 71.25][..]));
//!
//! let tokens = ListArray::from_iter_primitive::<Int32Type, _, _>([
//!     Some(vec![Some(101), Some(102)]),
//!     Some(vec![Some(103)]),
//! ]);
//! let ragged = export::ragged(&tokens, None, &ExportOptions::default())?;
//! assert_eq!(ragged.values.as_slice::<i32>(), Some(&[101, 102, 103][..]));
//! assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 3][..]));
//!
//! // What a model returns: tensors of one length are the columns of a table.
//! let scores = ManagedTensor::from_vec(vec![0.25_f32, 0.75], &[2])?;
//! let table = import::record_batch(vec![("score".into(), scores)], &ImportOptions::default())?;
//! assert_eq!((table.num_rows(), table.num_columns()), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## ndarray
//!
//! With feature `ndarray`, a tensor of any strides is viewed as an array, and an array becomes a tensor, without a copy.
//!
#![cfg_attr(feature = "ndarray", doc = "```")]
#![cfg_attr(not(feature = "ndarray"), doc = "```ignore")]
//! use arrow_array::Array;
//! use arrow_dlpack::{ImportOptions, ManagedTensor, from_dlpack};
//! use ndarray::{Ix2, array};
//!
//! let weights = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let mut tensor = ManagedTensor::from(weights);
//! tensor.view_mut::<f32, Ix2>()?[[0, 0]] = 7.0;
//! assert_eq!(tensor.view::<f32, Ix2>()?.sum_axis(ndarray::Axis(1)), array![12.0, 15.0]);
//!
//! let (rows, field) = from_dlpack(tensor, &ImportOptions::default())?; // a row of the array is a row of the column
//! assert_eq!((rows.len(), field.extension_type_name()), (2, Some("arrow.fixed_shape_tensor")));
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```
//!
//! ## candle
//!
//! candle takes over a `Vec` as it is, and copies all else. [`export::to_vec`] writes the values of Arrow data straight into one:
//!
//! ```
//! # use arrow_array::record_batch;
//! # use arrow_dlpack::{ExportOptions, export};
//! # let batch = record_batch!(("x", Int32, [1, 2]))?;
//! let (values, shape) = export::to_vec::<f32, _>(&batch, &ExportOptions::default())?;
//! // let matrix = Tensor::from_vec(values, shape, &Device::Cpu)?;
//! # assert_eq!((values, shape), (vec![1.0, 2.0], vec![2, 1]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Back, candle copies: `ManagedTensor::from_vec(y.flatten_all()?.to_vec1::<f32>()?, y.dims())`, of which
//! [`import::record_batch`] and [`import::matrix`] make columns.
//!
//! The network in `examples/candle` (candle 0.11) learns from Parquet files by [`batches::Batches`] and this function, which
//! copies each batch once more:
//!
//! ```ignore
//! /// A tensor of floats as candle's.
//! fn tensor(values: &ManagedTensor) -> Result<Tensor, Box<dyn Error>> {
//!     let floats = values.as_slice::<f32>().ok_or("these are no floats, or not row after row")?;
//!     Ok(Tensor::from_slice(floats, values.dims(), &Device::Cpu)?)
//! }
//! ```
//!
//! ## PyO3
//!
//! With feature `pyo3`, functions of an extension take and return any Arrow array or tensor of Python. This one is from
//! `examples/extension`; [its page](python/index.html) has all of it.
//!
//! ```ignore
//! /// Twice each value of a float64 column: from pyarrow, polars, NumPy, torch, to any of them.
//! #[pyfunction]
//! fn doubled(column: PyArray) -> PyResult<PyArray> {
//!     let Some(values) = column.array().as_primitive_opt::<Float64Type>() else {
//!         return Err(PyTypeError::new_err(format!(
//!             "expected Float64, got {}",
//!             column.array().data_type()
//!         )));
//!     };
//!     let doubled: ArrayRef =
//!         Arc::new(values.iter().map(|x| x.map(|x| 2.0 * x)).collect::<Float64Array>());
//!     let field = Field::new("doubled", DataType::Float64, true);
//!     Ok(PyArray::try_new(doubled, Arc::new(field))?)
//! }
//! ```
//!
//! ## C
//!
//! A function in C takes or returns a `DLManagedTensorVersioned *`. The holder of the pointer owns the tensor.
//!
//! ```
//! use arrow_array::Float32Array;
//! use arrow_dlpack::ffi::DLManagedTensorVersioned;
//! use arrow_dlpack::{Error, ManagedTensor};
//!
//! /// In C: `DLManagedTensorVersioned *prices(void);`
//! extern "C" fn prices() -> *mut DLManagedTensorVersioned {
//!     match ManagedTensor::try_from(&Float32Array::from(vec![1.5, 2.5])) {
//!         Ok(tensor) => tensor.into_raw(),
//!         Err(_) => std::ptr::null_mut(),
//!     }
//! }
//!
//! // SAFETY: `prices` gives up a truthful tensor, or NULL, which is an error here.
//! let tensor = unsafe { ManagedTensor::from_raw(prices()) }?;
//! assert_eq!(tensor.as_slice::<f32>(), Some(&[1.5, 2.5][..]));
//! assert!(matches!(unsafe { ManagedTensor::from_raw(std::ptr::null_mut()) }, Err(Error::NullTensor)));
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```
//!
//! [`from_raw_legacy`](ManagedTensor::from_raw_legacy) and `into_raw_legacy` do so for the ABI before DLPack 1.0, whose
//! tensors cannot say that they are read-only. `examples/c_producer` is a producer written in C.
//!
//! # Modules
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`export`] | Arrow to DLPack: [`tensor`](export::tensor), [`columns`](export::columns), [`ragged`](export::ragged), [`padded`](export::padded), [`into_tensor`](export::into_tensor), [`to_vec`](export::to_vec), their options and plans |
//! | [`import`] | DLPack to Arrow: [`from_dlpack`], [`record_batch`](import::record_batch), [`ragged`](import::ragged), [`masked`](import::masked) |
//! | [`batches`] | a stream of record batches as batches of tensors |
//! | [`extension`] | Arrow's canonical extension types in the metadata of fields |
//! | [`ffi`] | `dlpack.h` 1.3, mirrored |
//! | [`pandas`] | which columns of a table are the index of pandas |
//! | [`python`](python/index.html) | feature `pyo3`: arguments and classes for extension modules |
//! | [`what_can_go_wrong`] | what can surprise, in Python for the most part, with the lines that show it |
//!
//! A model in SQL is another crate, `arrow-dlpack-datafusion`: its `TensorUdf` makes a function of DataFusion from a
//! closure over tensors.
//!
//! # Features
//!
//! None is enabled by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `ndarray` | views of tensors as `ndarray`'s, and its arrays as tensors |
//! | `pyo3` | `python`: the Python classes, for this project's wheel and for any other extension |
//! | `pyo3-arrow` | conversions to and from the classes of the crate pyo3-arrow |
//!
//! # Versions
//!
//! To the compiler, the types of arrow 59 and those of arrow 60 are different types, so one line of releases has one
//! arrow major: 0.1 has arrow 59, DataFusion 55, pyo3-arrow 0.20 and PyO3 0.30. It hands on the crates whose types it takes, as
//! `arrow_dlpack::arrow_array`, `arrow_schema`, `arrow_buffer`, and `ndarray` with its feature; beside them
//! `cargo add arrow-array@59` adds the same version, and `cargo add arrow-array` a newer one, whose arrays the compiler
//! refuses. 0.1 stays with arrow 59 until DataFusion and pyo3-arrow have releases on 60; the sources pass their tests with
//! 60 too. The Python wheel has its arrow inside, and exchanges data with every other version through Arrow's C interface.
//!
//! The crate builds with Rust 1.85. Machines are little-endian, of 32 or 64 bits; for big-endian ones the crate does not compile.
#![cfg_attr(docsrs, feature(doc_cfg))]
// `make lint` has all features on, where none of this is allowed, so that it finds what is dead. Without `pyo3` about 35
// items, and the imports of 15 files, have no caller: a `cfg` at each would be longer than what it leaves out.
#![cfg_attr(
    not(feature = "pyo3"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "what only the Python classes call"
    )
)]

#[cfg(target_endian = "big")]
compile_error!(
    "arrow-dlpack is for little-endian machines: on big-endian ones nested nulls come out wrong, in arrow-rs too"
);

/// Does not compile for a type that is `Send`, for which the trait is ambiguous.
#[cfg(test)]
macro_rules! assert_not_send {
    ($type:ty) => {
        const _: () = {
            trait NotSend<Which> {
                const IS: () = ();
            }
            struct Sendable;
            impl<T: ?Sized> NotSend<()> for T {}
            impl<T: ?Sized + Send> NotSend<Sendable> for T {}
            <$type as NotSend<_>>::IS
        };
    };
}

pub mod batches;
mod chunks;
mod dtype;
pub mod export;
pub mod extension;
pub mod ffi;
pub mod import;
#[cfg(feature = "ndarray")]
mod ndarray_views;
pub mod pandas {
    //! The columns that pandas marks as an index in a schema's metadata.
    //!
    //! pandas and pyarrow store an index as columns of the table, after the others, with the names of its levels. The
    //! schema's metadata lists them in JSON under the key `pandas`:
    //! <https://pandas.pydata.org/docs/development/developer.html#storing-pandas-dataframe-objects-in-apache-parquet-format>.

    pub use crate::columns::index_columns;
}
#[cfg(feature = "pyo3")]
pub mod python;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/what-can-go-wrong.md")]
pub mod what_can_go_wrong {}

/// The pages of the site that have Rust, which `cargo test` runs. They are not in the package.
#[cfg(doctest)]
mod site {
    #[doc = include_str!("../docs/index.md")]
    mod index {}
    #[doc = include_str!("../docs/guides/columns.md")]
    mod columns {}
    #[doc = include_str!("../docs/guides/nulls.md")]
    mod nulls {}
    #[doc = include_str!("../docs/guides/tables.md")]
    mod tables {}
    #[doc = include_str!("../docs/guides/lists.md")]
    mod lists {}
    #[doc = include_str!("../docs/guides/extensions.md")]
    mod extensions {}
    #[doc = include_str!("../docs/guides/images.md")]
    mod images {}
    #[doc = include_str!("../docs/guides/devices.md")]
    mod devices {}
    #[doc = include_str!("../docs/guides/training.md")]
    mod training {}
    #[doc = include_str!("../docs/guides/service.md")]
    mod service {}
}

mod alloc;
mod arrow_types;
mod columns;
mod copy;
mod error;
mod exported;
mod fence;
mod kernels;
mod layout;
mod number;
#[cfg(feature = "pyo3")]
mod pending;
mod plan;
mod reshape;
mod task;
mod tensor;
mod typed;

/// Without Python there are no exceptions to set aside.
#[cfg(not(feature = "pyo3"))]
mod pending {
    pub(crate) fn without_exception<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
}

// The name of the module for atomics and locks; `tests/models` replaces it by loom's.
use std::sync;

// The crates whose types this one takes and returns, in the versions that it takes.
#[cfg(feature = "ndarray")]
pub use ::ndarray;
pub use {arrow_array, arrow_buffer, arrow_schema};

pub use copy::{CopyPolicy, CopyReason};
pub use dtype::{Element, ElementOrBool};
pub use error::{
    DestinationProblem, Error, ErrorKind, ExclusiveObstacle, Hint, LengthsProblem, MaskProblem,
    OffsetsProblem, ReaderError, WriteObstacle,
};
pub use export::{ExportOptions, NullPolicy, Order, to_dlpack};
pub use import::{ImportOptions, Representation, from_dlpack};
pub use number::Number;
pub use plan::{Plan, Step};
pub use tensor::{Live, ManagedTensor, live};
