//! Memory that the crate has allocated, or that was given to it, goes round as often as one likes: written to as a
//! tensor, read as an array, and given away again.

use std::sync::Arc;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int32Array};
use arrow_dlpack::{
    CopyPolicy, Error, GiveObstacle, ImportOptions, ManagedTensor, export, from_dlpack, import,
};
use arrow_schema::{DataType, Field};

fn field() -> Field {
    Field::new("x", DataType::Float32, false)
}

fn numbers(len: u16) -> Float32Array {
    (0..len).map(f32::from).collect()
}

/// An array of a copy, and its address.
fn copied(len: u16) -> (ArrayRef, usize) {
    let copy = export::array(&numbers(len)).and_then(|tensor| tensor.copied()).expect("a copy");
    let address = copy.data().addr();
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
        let mut tensor = export::give(array, &field()).expect("it has one holder");
        add_one(&mut tensor);
        assert_eq!(tensor.data().addr(), home);
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
fn what_was_given_goes_round() {
    let array: ArrayRef = Arc::new(Float32Array::from_iter_values((0..100_u16).map(f32::from)));
    let home = address(&array);
    goes_round(array, home);
}

#[test]
fn it_comes_back_while_others_hold_it_and_goes_when_they_are_gone() {
    let (array, home) = copied(8);
    let values = array.as_primitive::<Float32Type>().values().clone();
    let refused = export::give(array, &field()).unwrap_err();
    assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Shared));
    assert_eq!(address(&refused.array), home);

    let lent = export::array(refused.array.as_ref()).unwrap();
    drop(values);
    let refused = export::give(refused.array, &field()).unwrap_err();
    assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Shared));
    drop(lent);
    let tensor = export::give(refused.array, &field()).unwrap();
    assert_eq!(tensor.as_slice::<f32>().unwrap()[7], 7.0);
}

#[test]
fn its_beginning_goes_and_its_end_comes_back() {
    let (array, home) = copied(8);
    let end = array.slice(6, 2);
    drop(array);
    let refused = export::give(end, &field()).unwrap_err();
    assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Sliced));
    assert_eq!(address(&refused.array), home + 24);

    let (array, home) = copied(8);
    let beginning = array.slice(0, 2);
    drop(array);
    let mut tensor = export::give(beginning, &field()).unwrap();
    add_one(&mut tensor);
    assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
    assert_eq!(tensor.data().addr(), home);
}

/// The elements of nested arrays are arrays too.
#[test]
fn it_goes_round_in_any_shape() {
    let (array, home) = copied(12);
    let tensor = export::give(array, &field()).unwrap();
    let mut tensor = tensor.reshape(&[3, -1], CopyPolicy::Never).unwrap();
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 4][..], &[4, 1][..]));
    add_one(&mut tensor);
    let lists = import::array(tensor).unwrap();
    let values = lists.as_fixed_size_list().values().clone();
    drop(lists);
    let tensor = export::give(values, &field()).unwrap();
    assert_eq!((tensor.shape(), tensor.data().addr()), (&[12][..], home));
    assert_eq!(tensor.as_slice::<f32>().unwrap()[11], 12.0);
}

#[test]
fn what_came_back_from_c_is_no_more_known_to_be_ours() {
    let copy = export::array(&Int32Array::from(vec![1, 2])).unwrap().copied().unwrap();
    // SAFETY: `into_raw` made it just now.
    #[expect(unsafe_code, reason = "goes through C")]
    let back = unsafe { ManagedTensor::from_raw(copy.into_raw()) }.unwrap();
    let array = import::array(back).unwrap();
    assert_eq!(array.as_primitive::<Int32Type>().values(), &[1, 2]);
    let refused = export::give(array, &Field::new("x", DataType::Int32, false)).unwrap_err();
    assert_eq!(refused.error, Error::NotGivable(GiveObstacle::Foreign));
    assert!(!refused.to_string().contains("outside of Rust"), "{refused}");
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
