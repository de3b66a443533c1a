//! The metadata of a tensor: dtype, shape and strides.

use std::{borrow::Cow, sync::Arc};

use arrow_schema::FieldRef;

use crate::{Error, ManagedTensor, ffi::DLDataType};

/// The metadata of a tensor, or of a part of one, which needs no access to its memory.
pub(super) struct Form<'a> {
    pub(super) dtype: DLDataType,
    /// Whether several elements share a byte.
    pub(super) is_packed: bool,
    pub(super) shape: &'a [i64],
    pub(super) strides: Cow<'a, [i64]>,
}

impl<'a> Form<'a> {
    pub(super) fn of(tensor: &'a ManagedTensor) -> Self {
        Self {
            dtype: tensor.dtype(),
            is_packed: tensor.itemsize().is_none(),
            shape: tensor.shape(),
            strides: tensor.strides(),
        }
    }

    /// Extents of one value of the array: all but the first.
    pub(super) fn row_shape(&self) -> &'a [i64] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// Number of rows: 1 for a tensor without axes.
    pub(super) fn rows(&self) -> Result<usize, Error> {
        let rows = self.shape.first().copied().unwrap_or(1);
        usize::try_from(rows).map_err(|_| Error::Overflow("number of rows"))
    }

    pub(super) fn cannot_become(&self, field: &FieldRef) -> Error {
        let (dtype, shape, field) = (self.dtype, self.shape.to_vec(), Arc::clone(field));
        Error::CannotBecome { dtype, shape, field }
    }
}
