//! Memory that the crate has allocated, or that was handed over to it, goes round as often as one likes: written to as a
//! tensor, read as an array, and handed over again.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, Float32Array, Int8Array, Int32Array};
use arrow_buffer::Buffer;
use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, Error, ExclusiveObstacle, ImportOptions, ManagedTensor, export, from_dlpack, import,
};
use arrow_schema::{DataType, Field};

fn numbers(len: u16) -> Float32Array {
    (0..len).map(f32::from).collect()
}

/// An array of a copy, and its address.
fn copied(len: u16) -> (ArrayRef, usize) {
    let copy = export::array(&numbers(len)).and_then(|tensor| tensor.copied()).expect("a copy");
    let address = copy.as_ptr().addr();
    (import::array(copy).expect("an array"), address)
}

fn address(array: &ArrayRef) -> usize {
    array.as_primitive::<Float32Type>().values().as_ptr().addr()
}

fn add_one(tensor: &mut ManagedTensor) {
    for value in tensor.as_slice_mut::<f32>().expect("it is alone with its memory") {
        *value += 1.0;
    }
}

fn goes_round(mut array: ArrayRef, home: usize) {
    for _ in 0..3 {
        assert_eq!(address(&array), home);
        let mut tensor = export::into_tensor(array).expect("it has one holder");
        add_one(&mut tensor);
        assert_eq!(tensor.as_ptr().addr(), home);
        array = from_dlpack(tensor, &ImportOptions::default()).expect("an array").0;
    }
    let expected: Float32Array = numbers(100).iter().map(|x| x.map(|x| x + 3.0)).collect();
    assert_eq!(array.as_primitive::<Float32Type>(), &expected);
}

#[test]
fn a_copy_goes_round() {
    let (array, home) = copied(100);
    goes_round(array, home);
}

#[test]
fn what_was_handed_over_goes_round() {
    let array: ArrayRef = Arc::new(Float32Array::from_iter_values((0..100_u16).map(f32::from)));
    let home = address(&array);
    goes_round(array, home);
}

#[test]
fn it_comes_back_while_others_hold_it_and_goes_when_they_are_gone() {
    let (array, home) = copied(8);
    let values = array.as_primitive::<Float32Type>().values().clone();
    let refused = export::into_tensor(array).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    assert_eq!(address(&refused.array), home);

    let share = export::array(refused.array.as_ref()).unwrap();
    drop(values);
    let refused = export::into_tensor(refused.array).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    drop(share);
    let tensor = export::into_tensor(refused.array).unwrap();
    assert_eq!(tensor.as_slice::<f32>().unwrap()[7], 7.0);
}

#[test]
fn its_beginning_goes_and_its_end_comes_back() {
    let (array, home) = copied(8);
    let end = array.slice(6, 2);
    drop(array);
    let refused = export::into_tensor(end).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Sliced));
    assert_eq!(address(&refused.array), home + 24);

    let (array, home) = copied(8);
    let beginning = array.slice(0, 2);
    drop(array);
    let mut tensor = export::into_tensor(beginning).unwrap();
    add_one(&mut tensor);
    assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
    assert_eq!(tensor.as_ptr().addr(), home);
}

/// The elements of nested arrays are arrays too.
#[test]
fn it_goes_round_in_any_shape() {
    let (array, home) = copied(12);
    let tensor = export::into_tensor(array).unwrap();
    let mut tensor = tensor.reshape(&[3, -1], CopyPolicy::Never).unwrap();
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 4][..], &[4, 1][..]));
    add_one(&mut tensor);
    let lists = import::array(tensor).unwrap();
    let values = lists.as_fixed_size_list().values().clone();
    let refused = export::into_tensor(lists).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    drop(refused);
    let tensor = export::into_tensor(values).unwrap();
    assert_eq!((tensor.shape(), tensor.as_ptr().addr()), (&[12][..], home));
    assert_eq!(tensor.as_slice::<f32>().unwrap()[11], 12.0);
}

/// Lists of fixed size are axes, permuted ones too; their beginning goes, and their end comes back as it was.
#[test]
fn nested_arrays_go_round_with_their_axes() {
    let (array, home) = copied(12);
    let tensor = export::into_tensor(array).unwrap();
    let tensor = tensor.reshape(&[2, 3, 2], CopyPolicy::Never).unwrap();
    let (array, field) = from_dlpack(tensor, &ImportOptions::default()).unwrap();
    let beginning = array.slice(0, 1);
    let end = array.slice(1, 1);
    drop(array);
    let refused = export::into_tensor_with_field(end, &field).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Sliced));
    assert_eq!(address(refused.array.as_fixed_size_list().values()), home + 24);
    assert_eq!((refused.array.data_type(), refused.array.len()), (field.data_type(), 1));
    drop(refused);

    let mut tensor = export::into_tensor_with_field(beginning, &field).unwrap();
    assert_eq!((tensor.shape(), tensor.as_ptr().addr()), (&[1, 3, 2][..], home));
    add_one(&mut tensor);
    assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));

    let metadata = r#"{"shape":[3,2],"permutation":[1,0]}"#;
    let permuted = field.as_ref().clone().with_metadata(HashMap::from([
        ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
        ("ARROW:extension:metadata".to_owned(), metadata.to_owned()),
    ]));
    let array = from_dlpack(tensor, &ImportOptions::default()).unwrap().0;
    let tensor = export::into_tensor_with_field(array, &permuted).unwrap();
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[1, 2, 3][..], &[6, 1, 2][..]));
    assert_eq!(tensor.as_ptr().addr(), home);
}

#[test]
fn binaries_of_one_size_go_and_come_back() {
    let array = FixedSizeBinaryArray::new(2, Buffer::from_vec(vec![1_u8, 2, 3, 4]), None);
    let (home, end) = (array.value_data().as_ptr().addr(), array.slice(1, 1));
    let refused = export::into_tensor(Arc::new(array)).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Shared));
    assert_eq!(refused.array.as_fixed_size_binary().value(1), [3, 4]);
    drop(end);
    let mut tensor = export::into_tensor(refused.array).unwrap();
    assert_eq!((tensor.shape(), tensor.as_ptr().addr()), (&[2, 2][..], home));
    assert!(tensor.as_slice_mut::<u8>().is_some());
}

#[test]
fn only_a_field_tells_bytes_from_booleans() {
    let bytes = || -> ArrayRef { Arc::new(Int8Array::from(vec![1, 0, 1])) };
    let bool8 = Field::new("x", DataType::Int8, false).with_metadata(HashMap::from([(
        "ARROW:extension:name".to_owned(),
        "arrow.bool8".to_owned(),
    )]));
    let of_field = export::into_tensor_with_field(bytes(), &bool8).unwrap();
    assert_eq!((of_field.dtype(), of_field.flags()), (DLDataType::BOOL, DLPackFlags(0)));
    assert_eq!(export::into_tensor(bytes()).unwrap().dtype(), DLDataType::INT8);

    let others: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
    let refused = export::into_tensor_with_field(others, &bool8).unwrap_err();
    assert!(matches!(refused.error, Error::CopyForbidden { .. }));
    assert_eq!(refused.array.len(), 2);
}

#[test]
fn what_came_back_from_c_is_no_more_known_to_be_ours() {
    let copy = export::array(&Int32Array::from(vec![1, 2])).unwrap().copied().unwrap();
    // SAFETY: `into_raw` made it just now.
    #[expect(unsafe_code, reason = "goes through C")]
    let back = unsafe { ManagedTensor::from_raw(copy.into_raw()) }.unwrap();
    let array = import::array(back).unwrap();
    assert_eq!(array.as_primitive::<Int32Type>().values(), &[1, 2]);
    let refused = export::into_tensor(array).unwrap_err();
    assert_eq!(refused.error, Error::NotExclusive(ExclusiveObstacle::Foreign));
    assert!(!refused.to_string().contains("outside of Rust"), "{refused}");
}

/// As it is with an array that has gone out and in again through Arrow's C interface.
#[test]
fn another_buffer_over_the_memory_is_known_to_be_ours() {
    let (array, home) = copied(8);
    let values = array.as_primitive::<Float32Type>().values().inner().clone();
    let start = NonNull::new(values.as_ptr().cast_mut()).unwrap();
    // SAFETY: the buffer has the other one, and with it the memory.
    #[expect(unsafe_code, reason = "makes a buffer of an address")]
    let back =
        unsafe { Buffer::from_custom_allocation(start, values.len(), Arc::new(values.clone())) };
    drop(values);
    let back: ArrayRef = Arc::new(Float32Array::new(back.into(), None));
    assert_eq!(address(&back), home);
    let refused = export::into_tensor(back).unwrap_err();
    assert_eq!(address(&refused.array), home);
    assert_eq!(&refused.array, &array);
    let again = refused.array.clone();
    assert_eq!(Error::from(refused), Error::NotExclusive(ExclusiveObstacle::Shared));
    drop(array);
    let mut tensor = export::into_tensor(again).unwrap();
    add_one(&mut tensor);
    assert_eq!((tensor.as_ptr().addr(), tensor.shape()), (home, &[8][..]));
}

#[test]
fn threads_do_not_get_into_each_others_memory() {
    let rounds = if cfg!(miri) { 2 } else { 200 };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let (array, home) = copied(100);
                    goes_round(array, home);
                }
            });
        }
    });
}
