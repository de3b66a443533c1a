//! A tensor in a larger shape is the same memory, seen more than once.

use arrow_array::types::Int32Type;
use arrow_array::{Array, FixedSizeListArray, Int32Array};
use arrow_dlpack::{Error, ManagedTensor, export, import};

fn column() -> Int32Array {
    Int32Array::from(vec![1, 2, 3])
}

/// One row of three.
fn row() -> ManagedTensor {
    let row = [Some([Some(1), Some(2), Some(3)])];
    let list = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(row, 3);
    export::array(&list).expect("a tensor")
}

fn values(tensor: ManagedTensor) -> Vec<Option<i32>> {
    let nested = import::array(tensor).expect("an array").into_data();
    let flat = nested.child_data().first().cloned().unwrap_or(nested);
    Int32Array::from(flat).iter().collect()
}

#[test]
fn axes_of_one_element_repeat_without_a_copy() {
    let tensor = row();
    let address = tensor.as_ptr();
    let many = tensor.broadcast_to(&[2, 3]).expect("broadcast");
    assert_eq!((many.shape(), &*many.strides()), (&[2, 3][..], &[0, 1][..]));
    assert_eq!(many.as_ptr(), address);
    assert_eq!(values(many), [1, 2, 3, 1, 2, 3].map(Some));
}

#[test]
fn new_axes_come_in_front() {
    let tensor = export::array(&column()).expect("a tensor");
    let many = tensor.broadcast_to(&[2, 3]).expect("broadcast");
    assert_eq!(&*many.strides(), [0, 1]);
    assert_eq!(values(many), [1, 2, 3, 1, 2, 3].map(Some));
}

#[test]
fn what_is_many_times_the_same_cannot_be_written_to() {
    let mut copy = row().copied().expect("a copy").broadcast_to(&[2, 3]).expect("broadcast");
    assert!(copy.is_read_only());
    assert_eq!(copy.as_slice_mut::<i32>(), None);
}

#[test]
fn no_rows_are_nowhere() {
    let none = row().broadcast_to(&[0, 3]).expect("broadcast");
    assert_eq!((none.size(), none.as_ptr().is_null()), (0, true));
}

#[test]
fn axes_of_other_lengths_do_not_repeat() {
    for to in [&[2, 4][..], &[3, 2], &[3], &[], &[2, 3, 1]] {
        let refused = row().broadcast_to(to).err();
        assert_eq!(refused, Some(Error::CannotBroadcast { from: vec![1, 3], to: to.into() }));
    }
    let negative = row().broadcast_to(&[-2, 3]).err();
    assert_eq!(negative, Some(Error::NegativeExtent { axis: 0, extent: -2 }));
    assert!(matches!(row().broadcast_to(&[i64::MAX, 3]), Err(Error::Overflow(_))));
}

#[test]
fn the_memory_is_kept_until_the_last_of_them_goes() {
    let column = column();
    let holders = || column.values().inner().strong_count();
    let many = export::array(&column).expect("a tensor").broadcast_to(&[5, 3]).expect("broadcast");
    assert_eq!(holders(), 2);
    drop(many);
    assert_eq!(holders(), 1);
}
