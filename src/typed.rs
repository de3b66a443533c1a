//! Conversions by `try_from`, without a field or options: arrays of the eleven numeric types, of booleans and
//! record batches to tensors, and tensors to such arrays, or to the array type that fits.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, cast::AsArray,
    types,
};
use arrow_schema::{DataType, Field};

use crate::{
    CopyPolicy, Element, Error, ExportOptions, ImportOptions, ManagedTensor, Representation,
    dtype::for_each_numeric,
    export::{self, Padded, Ragged},
    import,
    tensor::Vector,
};

macro_rules! conversions {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => { $(
        /// Shares the array, zero-copy and read-only, as [`to_dlpack`](crate::to_dlpack) with default options.
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
        /// `Nulls` if the array has any.
        impl TryFrom<&PrimitiveArray<types::$type>> for ManagedTensor {
            type Error = Error;

            fn try_from(array: &PrimitiveArray<types::$type>) -> Result<Self, Error> {
                share(array)
            }
        }

        /// Imports a tensor of one axis or none, or whose axes after the first have extent 1, as in `(rows, 1)`.
        /// Zero-copy if it has exactly this dtype, and is contiguous and aligned; otherwise as
        /// [`from_dlpack`](crate::from_dlpack) with a field of this type.
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
        /// `CannotBecome` for other dtypes and more axes ([`ManagedTensor::reshape`] can merge axes);
        /// `UnreadableDevice`; `OutOfMemory`.
        impl TryFrom<ManagedTensor> for PrimitiveArray<types::$type> {
            type Error = Error;

            fn try_from(tensor: ManagedTensor) -> Result<Self, Error> {
                primitive_array(tensor)
            }
        }
    )* };
}
for_each_numeric!(conversions);

/// Exports an array of any type, as [`export::array()`]: zero-copy and read-only where the layout allows it.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array};
/// use arrow_dlpack::ManagedTensor;
///
/// let column: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// assert_eq!(ManagedTensor::try_from(&column)?.as_slice::<f32>(), Some(&[0.5, 1.5][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`to_dlpack`](crate::to_dlpack).
impl TryFrom<&ArrayRef> for ManagedTensor {
    type Error = Error;

    fn try_from(array: &ArrayRef) -> Result<Self, Error> {
        export::array(array)
    }
}

/// Exports an array of any type, as [`export::array()`].
///
/// # Errors
///
/// As [`to_dlpack`](crate::to_dlpack).
impl TryFrom<&dyn Array> for ManagedTensor {
    type Error = Error;

    fn try_from(array: &dyn Array) -> Result<Self, Error> {
        export::array(array)
    }
}

/// Exports the booleans, a byte each, as [`to_dlpack`](crate::to_dlpack) with default options: a copy, which is
/// writable.
///
/// ```
/// use arrow_array::BooleanArray;
/// use arrow_dlpack::ManagedTensor;
///
/// let array = BooleanArray::from(vec![true, false]);
/// let tensor = ManagedTensor::try_from(&array)?;
/// assert_eq!(tensor.as_bool_bytes(), Some(&[1, 0][..]));
/// assert_eq!(BooleanArray::try_from(tensor)?, array);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `Nulls` if the array has any; `OutOfMemory`.
impl TryFrom<&BooleanArray> for ManagedTensor {
    type Error = Error;

    fn try_from(array: &BooleanArray) -> Result<Self, Error> {
        export::array(array)
    }
}

/// Imports a tensor of booleans with one axis or none, or whose axes after the first have extent 1: a copy, of a bit
/// each. Any byte but 0 is true.
///
/// # Errors
///
/// As for arrays of numbers.
impl TryFrom<ManagedTensor> for BooleanArray {
    type Error = Error;

    fn try_from(tensor: ManagedTensor) -> Result<Self, Error> {
        Ok(of_type(tensor, DataType::Boolean)?.as_boolean().clone())
    }
}

/// Exports a matrix (rows, columns), as [`export::tensor`] with default options: a copy, unless there is a single
/// column.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array, RecordBatch};
/// use arrow_dlpack::ManagedTensor;
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let batch = RecordBatch::try_from_iter([("x", Arc::clone(&x)), ("y", x)])?;
/// assert_eq!(ManagedTensor::try_from(&batch)?.shape(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`export::tensor`].
impl TryFrom<&RecordBatch> for ManagedTensor {
    type Error = Error;

    fn try_from(batch: &RecordBatch) -> Result<Self, Error> {
        export::tensor(batch, &ExportOptions::default())
    }
}

/// Imports the tensor, as [`import::array`].
///
/// ```
/// use arrow_array::{Array, ArrayRef};
/// use arrow_dlpack::ManagedTensor;
///
/// let array = ArrayRef::try_from(ManagedTensor::from_vec(vec![1_i16, 2, 3], &[3])?)?;
/// assert_eq!(array.len(), 3);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_dlpack`](crate::from_dlpack).
impl TryFrom<ManagedTensor> for ArrayRef {
    type Error = Error;

    fn try_from(tensor: ManagedTensor) -> Result<Self, Error> {
        import::array(tensor)
    }
}

/// Makes lists of values and offsets, as [`import::ragged`] with default options: of what
/// [`export::ragged`] made of texts it makes lists of bytes.
///
/// ```
/// use arrow_array::{ArrayRef, ListArray, cast::AsArray, types::Int32Type};
/// use arrow_dlpack::{ExportOptions, export};
///
/// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), Some(vec![])]);
/// let ragged = export::ragged(&lists, None, &ExportOptions::default())?;
/// assert_eq!(ArrayRef::try_from(ragged)?.as_list::<i32>(), &lists);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// Those of `import::ragged`; `InvalidOptions` for codes of a dictionary.
impl TryFrom<Ragged> for ArrayRef {
    type Error = Error;

    fn try_from(ragged: Ragged) -> Result<Self, Error> {
        let Ragged { values, offsets, mask, dictionary } = ragged;
        check_codes(dictionary.as_ref())?;
        Ok(import::ragged(values, offsets, mask, &ImportOptions::default())?.0)
    }
}

/// Makes lists of padded rows and their lengths, as [`import::padded`] with default options.
///
/// ```
/// use arrow_array::{ArrayRef, ListArray, cast::AsArray, types::Int32Type};
/// use arrow_dlpack::export::{self, PadOptions};
/// use arrow_dlpack::ExportOptions;
///
/// let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), Some(vec![])]);
/// let padded = export::padded(&lists, &PadOptions::default(), &ExportOptions::default())?;
/// assert_eq!(ArrayRef::try_from(padded)?.as_list::<i32>(), &lists);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// Those of `import::padded`; `InvalidOptions` for codes of a dictionary.
impl TryFrom<Padded> for ArrayRef {
    type Error = Error;

    fn try_from(padded: Padded) -> Result<Self, Error> {
        let Padded { values, lengths, side, mask, dictionary } = padded;
        check_codes(dictionary.as_ref())?;
        Ok(import::padded(values, lengths, mask, side, &ImportOptions::default())?.0)
    }
}

/// Refuses codes, whose dictionary an array of them would lack.
fn check_codes(dictionary: Option<&ArrayRef>) -> Result<(), Error> {
    match dictionary {
        Some(_) => Err(Error::InvalidOptions(
            "these values are codes of a dictionary, which an array of them would lack: import::ragged and \
             import::padded make lists of the codes",
        )),
        None => Ok(()),
    }
}

fn share<T: ArrowPrimitiveType<Native: Element>>(
    array: &PrimitiveArray<T>,
) -> Result<ManagedTensor, Error> {
    match array.null_count() {
        0 => Ok(Vector::new(array.values()).share()),
        null_count => Err(export::nulls(array, null_count)),
    }
}

fn primitive_array<T: ArrowPrimitiveType<Native: Element>>(
    tensor: ManagedTensor,
) -> Result<PrimitiveArray<T>, Error> {
    match import::import_primitive_as(tensor) {
        Ok(array) => Ok(array),
        Err(tensor) => Ok(of_type(tensor, T::DATA_TYPE)?.as_primitive::<T>().clone()),
    }
}

/// Imports a tensor as an array of this type.
fn of_type(tensor: ManagedTensor, data_type: DataType) -> Result<ArrayRef, Error> {
    // Models often return shape (rows, 1).
    let tensor = match *tensor.shape() {
        [rows, ref others @ ..] if !others.is_empty() && others.iter().all(|&n| n == 1) => {
            tensor.reshape(&[rows], CopyPolicy::Never)?
        }
        _ => tensor,
    };
    let representation = Representation::Field(Arc::new(Field::new("", data_type, true)));
    let options = ImportOptions::default().with_representation(representation);
    Ok(import::from_dlpack(tensor, &options)?.0)
}
