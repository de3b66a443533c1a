//! There and back again: the same values at the same addresses.
#![expect(unsafe_code, reason = "passes tensors through raw pointers, as C does")]

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, Error, ManagedTensor, export, from_dlpack, to_dlpack};
use arrow_schema::Field;

use support::{Random, for_each_numeric, values_of};

mod support;

/// Random bits, so NaNs and infinities too: whole, sliced, empty, with a validity buffer.
fn arrays<T: ArrowPrimitiveType>() -> Vec<PrimitiveArray<T>> {
    let bytes = Random(21).bytes(11 * size_of::<T::Native>());
    let values = ScalarBuffer::<T::Native>::from(Buffer::from_slice_ref(&bytes));
    let plain = PrimitiveArray::<T>::new(values.clone(), None);
    let valid = PrimitiveArray::<T>::new(values, Some(NullBuffer::new_valid(11)));
    vec![plain.slice(3, 7), plain.slice(10, 1), plain.slice(4, 0), valid.slice(1, 2), valid, plain]
}

type Way = fn(ManagedTensor) -> Result<ManagedTensor, Error>;

/// Every way that a tensor can take from one library to another.
fn ways() -> [(&'static str, Way); 6] {
    [
        ("by value", Ok),
        ("versioned", versioned),
        ("legacy", legacy),
        ("versioned, then legacy", |tensor| legacy(versioned(tensor)?)),
        ("legacy, then versioned", |tensor| versioned(legacy(tensor)?)),
        ("shared", |tensor| Ok(Arc::new(tensor).share())),
    ]
}

fn versioned(tensor: ManagedTensor) -> Result<ManagedTensor, Error> {
    // SAFETY: `into_raw` gives up a true tensor.
    unsafe { ManagedTensor::from_raw(tensor.into_raw()) }
}

fn legacy(tensor: ManagedTensor) -> Result<ManagedTensor, Error> {
    // SAFETY: `into_raw_legacy` gives up a true tensor.
    unsafe { ManagedTensor::from_raw_legacy(tensor.into_raw_legacy()?) }
}

#[test]
fn arrow_to_dlpack_to_arrow_is_the_same_array_at_the_same_address() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType) {
        for array in arrays::<T>() {
            let field = Field::new("x", T::DATA_TYPE, false);
            for (name, way) in ways() {
                let tensor =
                    to_dlpack(&array, &field, &support::export(CopyPolicy::Never)).unwrap();
                let tensor = way(tensor).unwrap();
                let (back, field) =
                    from_dlpack(tensor, &support::import(CopyPolicy::Never)).unwrap();
                assert_eq!(field.data_type(), &T::DATA_TYPE);
                let expected: ArrayRef = Arc::new(array.clone());
                assert_eq!(&back, &expected, "{name}");
                let (there, here) = (values_of(&back), values_of(&array));
                assert_eq!(there.as_slice(), here.as_slice(), "{name}");
                if !array.is_empty() {
                    assert_eq!(there.as_ptr(), here.as_ptr(), "{name}");
                }
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn a_round_trip_holds_the_array_and_lets_it_go() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType) {
        for array in arrays::<T>().into_iter().filter(|array| !array.is_empty()) {
            for (name, way) in ways() {
                let holders = || array.values().inner().strong_count();
                let before = holders();
                let tensor = way(export::array(&array).unwrap()).unwrap();
                let (back, _) = from_dlpack(tensor, &support::import(CopyPolicy::Never)).unwrap();
                assert_eq!(holders(), before + 1, "{name}");
                drop(back);
                assert_eq!(holders(), before, "{name}");
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn a_round_trip_with_a_copy_is_the_same_array_elsewhere() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType) {
        for array in arrays::<T>().into_iter().filter(|array| !array.is_empty()) {
            for (there, back) in [
                (CopyPolicy::Always, CopyPolicy::Never),
                (CopyPolicy::Never, CopyPolicy::Always),
                (CopyPolicy::Always, CopyPolicy::Always),
            ] {
                let field = Field::new("x", T::DATA_TYPE, true);
                let tensor = to_dlpack(&array, &field, &support::export(there)).unwrap();
                let (copy, _) = from_dlpack(tensor, &support::import(back)).unwrap();
                assert_eq!(values_of(&copy).as_slice(), values_of(&array).as_slice());
                assert_ne!(values_of(&copy).as_ptr(), values_of(&array).as_ptr());
                assert_eq!(copy.null_count(), 0);
            }
        }
    }
    for_each_numeric!(law);
}

#[test]
fn what_was_given_comes_back_to_be_given_no_more() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType) {
        let array = PrimitiveArray::<T>::from_iter_values(vec![T::default_value(); 3]);
        let (at, field) = (array.values().as_ptr().addr(), Field::new("x", T::DATA_TYPE, true));
        let tensor =
            versioned(export::into_tensor_with_field(Arc::new(array), &field).unwrap()).unwrap();
        assert!(!tensor.is_read_only());
        let (back, _) = from_dlpack(tensor, &support::import(CopyPolicy::Never)).unwrap();
        assert_eq!(values_of(&back).as_ptr().addr(), at);
        assert!(
            export::into_tensor_with_field(back, &field).is_err(),
            "a consumer cannot tell whose memory it is"
        );
    }
    for_each_numeric!(law);
}
