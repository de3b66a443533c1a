//! `Tensor`: the DLPack side as a Python object.
#![expect(unsafe_code, reason = "lets Python write to memory")]

use std::sync::Arc;

use arrow_schema::FieldRef;
use pyo3::{exceptions::PyBufferError, prelude::*};

use super::{dlpack::exchange::BorrowedTensor, lent_tensor::LentTensor};
use crate::pending::attached;
use crate::tensor::{Index, release_foreign};
use crate::{Error, ManagedTensor, chunks::Meaning};

/// A DLPack tensor of any rank, strides, dtype and device. Its memory is not read or written unless asked for.
///
/// Tensor.from_dlpack(x) takes one from any framework; other frameworks take it with their from_dlpack. The C
/// exchange API of DLPack 1.3 is used where the other library supports it.
/// On the CPU it also has the buffer protocol, so that memoryview(tensor) and np.asarray(tensor) work.
/// It computes nothing: == is true of the same object alone, and np.asarray(tensor) == 3 compares elements.
///
/// >>> import numpy as np
/// >>> from arrow_dlpack import Tensor
/// >>> tensor = Tensor.from_dlpack(np.zeros((2, 3), dtype=np.float32).T)
/// >>> tensor
/// <arrow_dlpack.Tensor float32, shape (3, 2), strides (1, 3), cpu>
/// >>> np.from_dlpack(tensor).shape
/// (3, 2)
#[pyclass(name = "Tensor", module = "arrow_dlpack", frozen)]
#[derive(Debug)]
pub struct PyTensor {
    pub(super) tensor: LentTensor,
    /// The producer, if the tensor is not on the CPU: it knows how to synchronise.
    pub(super) producer: Producer,
    /// The Arrow column that it came from.
    pub(super) field: Option<FieldRef>,
    /// What its elements stand for, if they are the codes of a dictionary.
    pub(super) meaning: Option<Meaning>,
    /// Whether all work on the memory is known to be complete, so that any stream may use it.
    pub(super) synchronised: bool,
    /// Whether it is a view of some of its producer's elements.
    pub(super) is_part: bool,
    /// The tensor that the exchange API hands out as borrowed.
    pub(super) borrowed: BorrowedTensor,
}

/// An object that is released like a tensor: it may hold another one that has a producer.
#[derive(Debug, Default)]
pub(super) struct Producer(pub(super) Option<Py<PyAny>>);

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(producer) = self.0.take() {
            // Postponed, it may run where the thread is detached.
            release_foreign(move || {
                attached(move |_| drop(producer));
            });
        }
    }
}

impl PyTensor {
    /// A tensor made from a column, with the column's field.
    pub(super) fn of_column(
        tensor: ManagedTensor,
        field: Option<&FieldRef>,
        meaning: Option<Meaning>,
    ) -> Self {
        Self { field: field.cloned(), meaning, ..Self::from(tensor) }
    }

    /// The tensor, or with a mask a pair of both.
    pub(super) fn with_mask(
        self,
        py: Python<'_>,
        mask: Option<ManagedTensor>,
    ) -> PyResult<Bound<'_, PyAny>> {
        match mask {
            None => Ok(Bound::new(py, self)?.into_any()),
            Some(mask) => Ok((self, Self::from(mask)).into_pyobject(py)?.into_any()),
        }
    }

    /// A tensor that Python may write to unless it is read-only.
    ///
    /// # Safety
    ///
    /// N1: unless it is read-only, no code in Rust borrows its memory but by this object.
    pub(super) unsafe fn received(tensor: Arc<ManagedTensor>) -> Self {
        // SAFETY: N1.
        Self::of_lent(unsafe { LentTensor::new(tensor) })
    }

    fn of_lent(tensor: LentTensor) -> Self {
        Self {
            tensor,
            producer: Producer::default(),
            field: None,
            meaning: None,
            synchronised: false,
            is_part: false,
            borrowed: BorrowedTensor::default(),
        }
    }

    /// The same tensor, as another object.
    pub(super) fn share(&self, py: Python<'_>) -> Self {
        Self {
            producer: Producer(self.producer.0.as_ref().map(|producer| producer.clone_ref(py))),
            field: self.field.clone(),
            meaning: self.meaning.clone(),
            synchronised: self.synchronised,
            is_part: self.is_part,
            tensor: self.tensor.clone(),
            borrowed: BorrowedTensor::default(),
        }
    }

    /// A view of some of the elements. It keeps the column's field if it consists of whole rows.
    pub(super) fn part(&self, py: Python<'_>, picks: &[Index]) -> PyResult<Self> {
        let tensor = self.tensor.part(picks).map_err(|error| match error {
            Error::PackedStrides { .. } => PyBufferError::new_err(format!(
                "{error}: numpy.asarray(x) is an array of all, in a byte each, and x.tolist() has their values"
            )),
            error => error.into(),
        })?;
        let is_rows = tensor.ndim() > 0 && tensor.shape().get(1..) == self.tensor.shape().get(1..);
        let field = self.field.clone().filter(|_| is_rows);
        Ok(Self { tensor, field, is_part: true, ..self.share(py) })
    }

    /// The bytes of elements in row-major order, as one axis.
    pub(super) fn as_bytes(&self) -> Result<Self, Error> {
        self.tensor.as_bytes().map(Self::of_lent)
    }

    /// The same bytes as unsigned integers of the elements' size.
    pub(super) fn as_integers(&self) -> Result<Self, Error> {
        self.tensor.as_integers().map(Self::of_lent)
    }
}
