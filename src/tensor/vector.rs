//! The short cut for plain numbers: from a column to a tensor without repeated checks.
#![expect(unsafe_code, reason = "describes the memory of a buffer")]

use std::ptr;

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};

use super::ManagedTensor;
use super::block::{Description, Packed, pack};
use super::construct::TensorSpec;
use super::descriptor::View;
use super::owner::Owner;
use super::release::Outgoing;
use crate::ffi::{DLDataType, DLDevice, DLPackFlags, DLPackVersion};
use crate::{Element, Error};

/// Contiguous numbers, whose buffer may have other holders. Most columns are plain, so that this path has no repeated
/// checks, and everything is inlined: the processor stalls where one function writes to the stack and another reads it
/// back with a wider load.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'a> {
    /// At least `size` elements of `dtype`, of `itemsize` bytes each.
    buffer: &'a Buffer,
    dtype: DLDataType,
    size: usize,
    itemsize: usize,
}

impl<'a> Vector<'a> {
    #[inline(always)]
    pub(crate) fn new<T: Element + ArrowNativeType>(values: &'a ScalarBuffer<T>) -> Self {
        let (buffer, size) = (values.inner(), values.len());
        Self { buffer, dtype: T::DTYPE, size, itemsize: size_of::<T>() }
    }

    /// As a read-only tensor.
    #[inline(always)]
    pub(crate) fn share(self) -> ManagedTensor {
        let Self { dtype, size, itemsize, .. } = self;
        let packed = self.pack();
        // SAFETY: P1 for the header and its arrays; the memory is the buffer's, which holds the elements
        // and which the tensor owns.
        unsafe {
            let descriptor = &raw const (*packed.header()).dl_tensor;
            let view = View::of_vector(descriptor, dtype, size, itemsize);
            ManagedTensor::from_view(view, Owner::packed(packed))
        }
    }

    /// As a read-only tensor of other axes.
    pub(crate) fn share_as(self, shape: &[i64], strides: &[i64]) -> Result<ManagedTensor, Error> {
        let flags = DLPackFlags::default();
        ManagedTensor::from_shared(
            self.buffer.clone(),
            TensorSpec::new(self.dtype, flags, shape, strides),
        )
    }

    /// [`Self::share`] for a C consumer that supports versions up to `newest`.
    #[inline(always)]
    pub(crate) fn share_outgoing(self, newest: DLPackVersion) -> Outgoing {
        // No plain number needs more than 1.0.
        self.pack().into_versioned(newest, 0)
    }

    #[inline(always)]
    fn pack(self) -> Packed {
        let Self { buffer, dtype, size, .. } = self;
        let data = if size == 0 { ptr::null_mut() } else { buffer.as_ptr().cast_mut() };
        let extent = i64::try_from(size).unwrap_or_else(|_| unreachable!("it fits a buffer"));
        let (device, flags) = (DLDevice::CPU, DLPackFlags::READ_ONLY);
        let (shape, strides) = (&[extent], &[1]);
        let description =
            Description { data, byte_offset: 0, device, dtype, flags, shape, strides };
        // SAFETY: the elements are in the buffer, as `new` found them, which keeps them where they are; a buffer is not
        // written to, and the tensor is read-only.
        unsafe { pack(|| buffer.clone(), &description) }
    }
}
