//! Law: a mask beside a tensor makes nulls of exactly what it is false for, or is refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, Int64Array};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::import::{self, Representation};
use arrow_dlpack::{CopyPolicy, Error, ImportOptions, ManagedTensor, MaskProblem, export};
use arrow_schema::{DataType, Field};
use support::{Abi, Data, Producer};

mod support;

/// `live()` counts for the whole process, so that one test at a time runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::unwrap_used, reason = "it can be exported")]
fn values() -> ManagedTensor {
    export::array(&Int64Array::from(vec![1, 2, 3])).unwrap()
}

#[expect(clippy::unwrap_used, reason = "it can be exported")]
fn mask(of: Vec<bool>) -> ManagedTensor {
    export::array(&BooleanArray::from(of)).unwrap()
}

#[test]
fn values_under_false_are_null() {
    let _alone = alone();
    let options = ImportOptions::default();
    let (array, field) = import::masked(values(), mask(vec![true, false, true]), &options).unwrap();
    assert_eq!(array.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1), None, Some(3)]));
    assert!(field.is_nullable());
    let (array, _) = import::masked(values(), mask(vec![true; 3]), &options).unwrap();
    assert!(array.nulls().is_none());
}

#[test]
fn a_mask_is_bool_and_of_the_rows_or_of_the_elements() {
    let _alone = alone();
    let refused = |mask| import::masked(values(), mask, &ImportOptions::default()).unwrap_err();
    assert!(matches!(refused(values()), Error::BadMask(MaskProblem::Dtype(_))));
    for mask in [mask(vec![true]), mask(vec![true; 3]).broadcast_to(&[3, 3]).unwrap()] {
        assert!(matches!(refused(mask), Error::BadMask(MaskProblem::Shape { .. })));
    }
    let live = arrow_dlpack::live();
    assert_eq!((live.exported, live.imported), (0, 0));
}

#[test]
fn a_mask_takes_a_copy() {
    let _alone = alone();
    let options = ImportOptions::default().with_copy(CopyPolicy::Never);
    let error = import::masked(values(), mask(vec![true; 3]), &options).unwrap_err();
    assert!(matches!(error, Error::CopyForbidden { nbytes: 1, .. }));
}

#[test]
fn what_is_prepared_has_the_field_of_the_array() {
    let _alone = alone();
    let options = ImportOptions::default();
    let prepared = import::prepare_masked(values(), mask(vec![true, false, true]), &options);
    let prepared = prepared.unwrap();
    let field = prepared.field().clone();
    assert_eq!((field.data_type(), field.is_nullable()), (&DataType::Int64, true));
    assert_eq!(prepared.run().unwrap().1, field);
}

#[test]
fn a_mask_of_the_elements_needs_items_in_the_rows() {
    let _alone = alone();
    let bytes = ManagedTensor::from_vec(vec![0_u8; 4], &[2, 2]).unwrap();
    let mask = ManagedTensor::from_bytes([1, 0, 1, 1], DLDataType::BOOL, &[2, 2]).unwrap();
    let field = Arc::new(Field::new("x", DataType::FixedSizeBinary(2), true));
    let options = ImportOptions::default();
    let options = options.with_representation(Representation::Field(Arc::clone(&field)));
    let error = import::masked(bytes, mask, &options).unwrap_err();
    assert_eq!(error, Error::BadMask(MaskProblem::NoItems { field }));
}

#[test]
fn a_mask_is_where_the_cpu_can_read_it() {
    let _alone = alone();
    let (device, data) = (support::device(2, 0), Data::Address(64));
    let elsewhere = Producer { device, data, ..Producer::bytes(DLDataType::BOOL, &[], &[3], &[1]) };
    let (mask, watch) = elsewhere.tensor(Abi::Versioned);
    let error = import::masked(values(), mask.unwrap(), &ImportOptions::default()).unwrap_err();
    assert_eq!(error, Error::UnreadableDevice { device });
    watch.released_once();
}
