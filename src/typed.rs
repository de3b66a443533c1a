//! The shortest way, where the type is known when the program is compiled: arrays of the eleven numeric
//! types become tensors, and tensors such arrays, by `try_from`, without a field or options.

use std::sync::Arc;

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, cast::AsArray, types};
use arrow_schema::Field;

use crate::copy::CopyPolicy;
use crate::dtype::{Element, for_each_numeric};
use crate::error::Error;
use crate::export;
use crate::import::{self, ImportOptions, Representation};
use crate::memory::{ManagedTensor, Vector};

macro_rules! conversions {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => { $(
        /// Zero-copy and read-only, as [`to_dlpack`](crate::to_dlpack) with default options.
        ///
        /// ```
        #[doc = concat!("use arrow_array::", stringify!($arrow), "Array;")]
        /// use arrow_dlpack::ManagedTensor;
        ///
        #[doc = concat!("let array = ", stringify!($arrow), "Array::from_value(Default::default(), 3);")]
        /// let tensor = ManagedTensor::try_from(&array)?;
        /// assert_eq!(tensor.shape(), [3]);
        /// # Ok::<(), arrow_dlpack::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// `Nulls` if there are any.
        impl TryFrom<&PrimitiveArray<types::$type>> for ManagedTensor {
            type Error = Error;

            fn try_from(array: &PrimitiveArray<types::$type>) -> Result<Self, Error> {
                share(array)
            }
        }

        /// A tensor of one axis or none, or of axes of extent 1 behind the first, as in `(rows, 1)`; zero-copy if it is of this very dtype, contiguous and aligned; as
        /// [`from_dlpack`](crate::from_dlpack) asked for this type.
        ///
        /// ```
        #[doc = concat!("use arrow_array::", stringify!($arrow), "Array;")]
        /// use arrow_dlpack::ManagedTensor;
        ///
        #[doc = concat!("let array = ", stringify!($arrow), "Array::from_value(Default::default(), 3);")]
        /// let tensor = ManagedTensor::try_from(&array)?;
        #[doc = concat!("assert_eq!(", stringify!($arrow), "Array::try_from(tensor)?, array);")]
        /// # Ok::<(), arrow_dlpack::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// `CannotBecome` for other dtypes and more axes ([`ManagedTensor::reshape`] has fewer); `UnreadableDevice`;
        /// `OutOfMemory`.
        impl TryFrom<ManagedTensor> for PrimitiveArray<types::$type> {
            type Error = Error;

            fn try_from(tensor: ManagedTensor) -> Result<Self, Error> {
                adopt(tensor)
            }
        }
    )* };
}
for_each_numeric!(conversions);

fn share<T: ArrowPrimitiveType<Native: Element>>(
    array: &PrimitiveArray<T>,
) -> Result<ManagedTensor, Error> {
    match array.null_count() {
        0 => Ok(Vector::new(array.values()).share()),
        null_count => Err(export::nulls(array, null_count)),
    }
}

fn adopt<T: ArrowPrimitiveType<Native: Element>>(
    tensor: ManagedTensor,
) -> Result<PrimitiveArray<T>, Error> {
    let tensor = match import::adopt_as(tensor) {
        Ok(array) => return Ok(array),
        Err(tensor) => tensor,
    };
    // What models give is often (rows, 1).
    let tensor = match tensor.shape() {
        &[rows, ref others @ ..]
            if !others.is_empty() && others.iter().all(|&extent| extent == 1) =>
        {
            return adopt(tensor.reshape(&[rows], CopyPolicy::Never)?);
        }
        _ => tensor,
    };
    let representation = Representation::Field(Arc::new(Field::new("", T::DATA_TYPE, true)));
    let (array, _) =
        import::from_dlpack(tensor, &ImportOptions::default().with_representation(representation))?;
    Ok(array.as_primitive::<T>().clone())
}
