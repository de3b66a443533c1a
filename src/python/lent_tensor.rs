//! A tensor whose memory Python may be writing to.
#![expect(unsafe_code, reason = "hands out memory that other code may write to")]

use std::borrow::Cow;
use std::sync::Arc;

use crate::alloc::{self, Fresh, Place};
use crate::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLPackFlags, DLTensor};
use crate::tensor::Index;
use crate::{DestinationProblem, Element, Error, ManagedTensor, kernels, layout};

/// A tensor whose memory Python may be writing to, unless it is read-only.
///
/// **N1** If it is not read-only, no code in Rust borrows its memory, but as cells, as the callers of [`Self::get`] and
/// [`Self::shared`] promise, or while the functions here copy it. What other threads and the handlers of signals write
/// meanwhile may be in such a copy in part.
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
    pub(super) unsafe fn new(tensor: Arc<ManagedTensor>) -> Self {
        Self(tensor)
    }

    /// Another tensor over the memory: writable if this one is.
    ///
    /// # Safety
    ///
    /// It goes to a consumer in another language, stays in an object for one, or becomes an Arrow array, which the docs say
    /// may change. Code in Rust does not borrow its memory, but for a copy.
    pub(super) unsafe fn shared(&self) -> ManagedTensor {
        // SAFETY: N1, and no code in Rust borrows the memory but for a copy.
        unsafe { self.0.share_writable() }
    }

    /// [`ManagedTensor::copied`].
    pub(super) fn copied(&self) -> Result<ManagedTensor, Error> {
        self.0.copied()
    }

    /// The elements in row-major order: a copy. `None` unless they are contiguous `T`s.
    pub(super) fn to_vec<T: Element>(&self) -> Option<Result<Vec<T>, Error>> {
        self.0.as_slice::<T>().map(|elements| alloc::collect(elements.iter().copied()))
    }

    /// The elements in row-major order, as numbers of Rust's: floats of under 16 bits and bfloat16 as float32, integers of
    /// under 8 bits as those of 8.
    pub(super) fn numbers(&self) -> Result<Fresh, Error> {
        let dtype = self.dtype();
        match (dtype.code, dtype.bits) {
            (DLDataTypeCode::BFLOAT | DLDataTypeCode(7..=17), _) => kernels::widen(&self.0),
            (DLDataTypeCode::INT | DLDataTypeCode::UINT, ..8) => kernels::widen_integers(&self.0),
            _ => kernels::gather(&self.0),
        }
    }

    /// The elements in row-major order, of under 8 bits, in a byte each: integers with their sign, floats as their bits.
    pub(super) fn in_bytes(&self) -> Result<Fresh, Error> {
        match self.dtype().code {
            DLDataTypeCode::INT | DLDataTypeCode::UINT => kernels::widen_integers(&self.0),
            _ => kernels::unpack(&self.0),
        }
    }

    /// The elements as cells, and their number. Others may write to them.
    pub(super) fn run_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        self.0.run_of()
    }

    /// As [`Self::run_of`], of any strides: the elements from the lowest one to the highest.
    #[cfg(feature = "ndarray")]
    pub(super) fn span_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        self.0.span_of()
    }

    /// A view, with the tensor's strides, of cells of these elements.
    #[cfg(feature = "ndarray")]
    pub(super) fn view_of<'a, E, D: ndarray::Dimension>(
        &self,
        cells: &'a [E],
    ) -> Result<ndarray::ArrayView<'a, E, D>, Error> {
        self.0.view_of(cells)
    }

    /// Whether the CPU may write to the memory, and the elements lie side by side: row-major, or a matrix column-major.
    pub(super) fn check_writable(&self) -> Result<(), DestinationProblem> {
        if !self.device().is_host_readable() {
            return Err(DestinationProblem::Unreachable(self.device()));
        }
        if self.is_read_only() {
            return Err(DestinationProblem::ReadOnly);
        }
        let is_column_major = || match (self.shape(), &*self.strides()) {
            (&[rows, columns], &[down, across]) => {
                layout::row_major_obstacle(&[columns, rows], &[across, down]).is_none()
            }
            _ => false,
        };
        match self.is_contiguous() || is_column_major() {
            true => Ok(()),
            false => Err(DestinationProblem::Strided),
        }
    }

    /// The memory, to be written to.
    ///
    /// # Safety
    ///
    /// [`Self::check_writable`] holds, and code in Rust borrows none of the memory for as long as the place is there.
    pub(super) unsafe fn place(&mut self) -> Place<'_> {
        // SAFETY: `check_writable` holds: the producer says that it may be written to, and the elements lie from `data` on,
        // side by side. Code in Rust borrows none of them while the place is there.
        unsafe { Place::at(self.data(), self.nbytes()) }
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

    /// A view of some of the elements.
    pub(super) fn part(&self, picks: &[Index]) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.part(picks)?))) }
    }

    /// The bytes of elements in row-major order, as one axis.
    pub(super) fn as_bytes(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.as_bytes()?))) }
    }

    /// The same bytes as unsigned integers of the elements' size.
    pub(super) fn as_integers(&self) -> Result<Self, Error> {
        // SAFETY: N1, of the same memory.
        unsafe { Ok(Self::new(Arc::new(self.0.as_integers()?))) }
    }
}
