#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod arguments;
mod describe;
mod function;
mod nulls;
mod once;
mod plan;
mod query;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../../docs/tensors-in-queries.md")]
pub mod tensors_in_queries {}

pub use describe::{Batch, BoxError, Input, Nulls, Output, TensorUdf};
