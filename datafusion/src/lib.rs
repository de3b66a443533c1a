#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arguments;
mod batch;
mod describe;
mod function;
mod nulls;
mod once;
mod plan;
mod query;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../../docs/guides/queries.md")]
pub mod tensors_in_queries {}

pub use batch::Batch;
pub use describe::{BoxError, Input, Nulls, Output, TensorUdf};
