//! The numeric family: one buffer, one axis.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, types};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;

use super::{Export, GiveError, refusal};
use crate::copy::CopyPolicy;
use crate::dtype::for_each_numeric;
use crate::error::{Error, GiveObstacle};
use crate::ffi::{DLDataType, DLPackFlags};
use crate::memory::{Fresh, ManagedTensor};

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// Shares or copies a numeric array.
        pub(super) fn export(array: &dyn Array, options: &Export) -> Result<ManagedTensor, Error> {
            match array.data_type() {
                $(DataType::$arrow => export_as::<types::$type>(array, DLDataType::$dtype, options),)*
                other => Err(refusal::unsupported(other)),
            }
        }

        /// Gives a numeric array away, or back.
        pub(super) fn give(array: ArrayRef) -> Result<ManagedTensor, GiveError> {
            match array.data_type() {
                $(DataType::$arrow => give_as::<types::$type>(array, DLDataType::$dtype),)*
                other => Err(GiveError { error: refusal::unsupported(other), array }),
            }
        }
    };
}
for_each_numeric!(dispatch);

fn export_as<T: ArrowPrimitiveType>(
    array: &dyn Array,
    dtype: DLDataType,
    options: &Export,
) -> Result<ManagedTensor, Error> {
    let Some(array) = array.as_any().downcast_ref::<PrimitiveArray<T>>() else {
        return Err(refusal::unsupported(array.data_type()));
    };
    refuse_nulls(array)?;
    let values = array.values();
    let shape = [extent(array)?];
    match options.copy {
        CopyPolicy::IfNeeded | CopyPolicy::Never => {
            ManagedTensor::over_shared(values.inner().clone(), dtype, &shape, &[1])
        }
        CopyPolicy::Always => {
            let copy = Fresh::build(values.len(), |out| out.extend_from_slice(values))?;
            ManagedTensor::over_fresh(copy, 0, dtype, DLPackFlags::IS_COPIED, &shape, &[1])
        }
    }
}

fn give_as<T: ArrowPrimitiveType>(
    array: ArrayRef,
    dtype: DLDataType,
) -> Result<ManagedTensor, GiveError> {
    let refuse = |array, error| Err(GiveError { array, error });
    let Some(typed) = array.as_any().downcast_ref::<PrimitiveArray<T>>() else {
        let error = refusal::unsupported(array.data_type());
        return refuse(array, error);
    };
    let shape = match refuse_nulls(typed).and_then(|()| extent(typed)) {
        Ok(extent) => [extent],
        Err(error) => return refuse(array, error),
    };
    if Arc::strong_count(&array) > 1 {
        return refuse(array, Error::NotGivable(GiveObstacle::Shared));
    }
    // The clone outlives the original, so that its buffer has one owner if no one else has it.
    let (data_type, values, nulls) = typed.clone().into_parts();
    drop(array);
    match Fresh::claim(values.into_inner()) {
        Ok(memory) => {
            let flags = DLPackFlags::default();
            ManagedTensor::over_fresh(memory, 0, dtype, flags, &shape, &[1])
                .map_err(|_| unreachable!("an array's extent fits its buffer"))
        }
        Err((buffer, obstacle)) => {
            let typed = PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), nulls);
            refuse(Arc::new(typed.with_data_type(data_type)), Error::NotGivable(obstacle))
        }
    }
}

fn refuse_nulls(array: &dyn Array) -> Result<(), Error> {
    match array.null_count() {
        0 => Ok(()),
        null_count => {
            Err(Error::Nulls { data_type: array.data_type().clone(), null_count, len: array.len() })
        }
    }
}

fn extent(array: &dyn Array) -> Result<i64, Error> {
    i64::try_from(array.len()).map_err(|_| Error::Overflow("length"))
}
