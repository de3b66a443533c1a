//! `Tensor`: the DLPack side as a Python object.
#![expect(unsafe_code, reason = "lets Python write to memory")]

use std::{borrow::Cow, sync::Arc};

use arrow_schema::FieldRef;
use pyo3::prelude::*;

use super::dlpack::exchange::BorrowedTensor;
use crate::ffi::{DLDataType, DLDevice, DLPackFlags, DLTensor};
use crate::memory::{Index, release_foreign};
use crate::{Element, Error, ManagedTensor, chunks::Meaning};

/// A DLPack tensor of any rank, strides, dtype and device. Its memory is not read or written unless asked for.
///
/// Tensor.from_dlpack(x) takes one from any framework; other frameworks take it with their from_dlpack. The C
/// exchange API of DLPack 1.3 is used where the other library supports it.
/// On the CPU it also has the buffer protocol, so that memoryview(tensor) and np.asarray(tensor) work.
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

/// A tensor whose memory Python may be writing to, unless it is read-only.
///
/// **N1** If it is not read-only, no code in Rust borrows its memory, but for a copy ([`Self::read`]), as cells, or as the
/// caller of [`Self::get`] promises.
#[derive(Clone, Debug)]
pub(super) struct LentTensor(Arc<ManagedTensor>);

/// What does not read the memory.
macro_rules! metadata {
    ($($name:ident: $of:ty),*) => {
        impl LentTensor {
            $(pub(super) fn $name(&self) -> $of {
                self.0.$name()
            })*
        }
    };
}
metadata! {
    shape: &[i64], strides: Cow<'_, [i64]>, ndim: usize, size: usize, nbytes: usize, itemsize: Option<usize>,
    dtype: DLDataType, device: DLDevice, flags: DLPackFlags, is_read_only: bool, is_contiguous: bool, data: *mut u8,
    dl_tensor: Option<DLTensor>
}

impl LentTensor {
    /// # Safety
    ///
    /// N1.
    unsafe fn new(tensor: Arc<ManagedTensor>) -> Self {
        Self(tensor)
    }

    /// Another tensor over the memory, for a consumer in another language: writable if this one is.
    pub(super) fn shared(&self) -> ManagedTensor {
        // SAFETY: N1.
        unsafe { self.0.share_writable() }
    }

    /// What a function makes of the elements, which calls no Python code: a copy. What other threads write meanwhile may be
    /// in it in part.
    pub(super) fn read<T>(&self, read: fn(&ManagedTensor) -> T) -> T {
        read(&self.0)
    }

    /// The elements as cells, and their number. Others may write to them.
    pub(super) fn run_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        self.0.run_of()
    }

    /// The tensor, if it is the only way to its memory.
    pub(super) fn into_exclusive(self) -> Result<ManagedTensor, Self> {
        match self.0.may_change() {
            true => Err(self),
            false => Arc::try_unwrap(self.0).map_err(Self),
        }
    }

    /// # Safety
    ///
    /// That of [`PyTensor::tensor`].
    pub(super) unsafe fn get(&self) -> &Arc<ManagedTensor> {
        &self.0
    }
}

/// An object that is released like a tensor: it may hold another one that has a producer.
#[derive(Debug, Default)]
pub(super) struct Producer(pub(super) Option<Py<PyAny>>);

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(producer) = self.0.take() {
            release_foreign(move || drop(producer));
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
        Self {
            // SAFETY: the caller's promise.
            tensor: unsafe { LentTensor::new(tensor) },
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
        // SAFETY: N1, of the same memory.
        let tensor = unsafe { LentTensor::new(Arc::new(self.tensor.0.part(picks)?)) };
        let is_rows = tensor.ndim() > 0 && tensor.shape().get(1..) == self.tensor.shape().get(1..);
        let field = self.field.clone().filter(|_| is_rows);
        Ok(Self { tensor, field, is_part: true, ..self.share(py) })
    }

    /// The bytes of elements in row-major order, as one axis.
    pub(super) fn as_bytes(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::received(Arc::new(self.tensor.0.as_bytes()?))) }
    }

    /// The same bytes as unsigned integers of the elements' size.
    pub(super) fn as_integers(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::received(Arc::new(self.tensor.0.as_integers()?))) }
    }
}
