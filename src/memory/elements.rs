//! The elements of a tensor as Rust slices.
#![expect(unsafe_code, reason = "promises Rust that foreign memory is readable, or writable")]

use super::ManagedTensor;
use crate::{Element, Error, WriteObstacle, ffi::DLDataType};

impl ManagedTensor {
    /// The elements, if they are `T`s, aligned, in row-major order, in memory that the CPU can read.
    ///
    /// ```
    /// use arrow_array::Int16Array;
    /// let tensor = arrow_dlpack::export::array(&Int16Array::from(vec![1, 2, 3]))?;
    /// assert_eq!(tensor.as_slice::<i16>(), Some(&[1, 2, 3][..]));
    /// assert_eq!(tensor.as_slice::<u16>(), None);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        let (elements, _) = self.elements().ok()?;
        self.is_contiguous().then_some(elements)
    }

    /// As [`Self::as_slice`], to write to, if the tensor is not read-only and its memory has no
    /// other holder: a copy, memory that was handed over, or what
    /// [`Self::assume_exclusive`] vouches for.
    ///
    /// ```
    /// use arrow_array::Int16Array;
    /// let mut tensor = arrow_dlpack::export::array(&Int16Array::from(vec![1, 2, 3]))?;
    /// assert_eq!(tensor.as_slice_mut::<i16>(), None); // the array has the memory too
    ///
    /// let mut copy = tensor.copied()?;
    /// copy.as_slice_mut::<i16>().unwrap()[0] = 10;
    /// assert_eq!(copy.as_slice::<i16>(), Some(&[10, 2, 3][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let contiguous = self.is_contiguous();
        let (elements, _) = self.elements_mut().ok()?;
        contiguous.then_some(elements)
    }

    /// The elements of a tensor of booleans, a byte for each, if they are in row-major order, in memory that the CPU
    /// can read. Any byte but 0 is true: most producers write 1, but not all.
    ///
    /// ```
    /// use arrow_array::BooleanArray;
    /// let tensor = arrow_dlpack::export::array(&BooleanArray::from(vec![true, false, true]))?;
    /// assert_eq!(tensor.as_bool_bytes(), Some(&[1, 0, 1][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn as_bool_bytes(&self) -> Option<&[u8]> {
        let (bytes, _) = self.span()?;
        (self.dtype() == DLDataType::BOOL && self.is_contiguous()).then_some(bytes)
    }

    /// A pointer to the elements, and their number, if they are aligned `T`s in row-major order that the
    /// CPU can read. It is valid for as long as the tensor lives. Other code may write to them.
    pub(crate) fn run_of<T: Element>(&self) -> Result<(*const T, usize), Error> {
        let (lowest, len, _) = self.view.elements()?;
        match self.row_major_obstacle().filter(|_| !self.is_contiguous()) {
            Some(reason) => Err(Error::CopyForbidden { reason, nbytes: self.nbytes() }),
            None => Ok((lowest, len)),
        }
    }

    /// Everything from the lowest element to the highest, and the position of the first one in it.
    pub(crate) fn elements<T: Element>(&self) -> Result<(&[T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        // SAFETY: I2, V3. Any bits are a `T`.
        Ok((unsafe { std::slice::from_raw_parts(lowest, len) }, origin))
    }

    /// As [`Self::elements`], of booleans, if every byte is 0 or 1.
    #[cfg(feature = "ndarray")]
    pub(crate) fn bools(&self) -> Result<(&[bool], usize), Error> {
        if self.dtype() != DLDataType::BOOL {
            return Err(Error::DtypeMismatch { expected: DLDataType::BOOL, found: self.dtype() });
        }
        let unreadable = || Error::UnreadableDevice { device: self.device() };
        let (bytes, origin) = self.view.span().ok_or_else(unreadable)?;
        if bytes.iter().fold(0, |all, byte| all | byte) > 1 {
            let (reason, nbytes) = (crate::copy::CopyReason::BoolBytes, self.nbytes());
            return Err(Error::CopyForbidden { reason, nbytes });
        }
        // SAFETY: I2, V3, as in `span`; each of these bytes is 0 or 1.
        Ok((unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }, origin))
    }

    /// As [`Self::elements`], to write to.
    pub(crate) fn elements_mut<T: Element>(&mut self) -> Result<(&mut [T], usize), Error> {
        let (lowest, len, origin) = self.view.elements()?;
        if self.is_read_only() {
            return Err(Error::NotWritable(WriteObstacle::ReadOnly));
        }
        if !self.exclusive.get() {
            return Err(Error::NotWritable(WriteObstacle::Shared));
        }
        // SAFETY: I2, V3, and I3: all reads and writes of this memory go through `self`, which is
        // borrowed mutably for as long as the slice.
        Ok((unsafe { std::slice::from_raw_parts_mut(lowest, len) }, origin))
    }
}
