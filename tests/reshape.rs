//! The elements in row-major order stay the same in any shape, without a copy where the strides allow it.

use arrow_array::{Float32Array, Int32Array};
use arrow_dlpack::{CopyPolicy, CopyReason, Error, ManagedTensor, export};

use support::{Abi, Data, Ints, Producer, Watch, device};

mod support;

fn vector() -> ManagedTensor {
    export::array(&Int32Array::from_iter_values(0..12)).expect("a tensor")
}

fn values(tensor: &ManagedTensor) -> Vec<i32> {
    tensor.copied().expect("a copy").as_slice::<i32>().expect("its own").to_vec()
}

/// 10, 8, 6, 4, 2, 0 of twelve numbers.
fn backwards() -> (ManagedTensor, Watch) {
    let bytes = (0..12_i32).flat_map(i32::to_ne_bytes).collect();
    let producer = Producer {
        data: Data::Bytes { bytes, origin: 40, misalign: 0 },
        shape: Ints::Values(vec![6]),
        strides: Ints::Values(vec![-2]),
        ..Producer::vector(&[0_i32])
    };
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    (tensor.expect("a true tensor"), watch)
}

#[test]
fn the_elements_stay_where_they_are_in_any_shape() {
    for shape in [&[12][..], &[3, 4], &[3, -1], &[2, 1, 6, 1], &[-1, 2], &[1, 12]] {
        let tensor = vector();
        let (home, all) = (tensor.as_ptr(), values(&tensor));
        let tensor = tensor.reshape(shape, CopyPolicy::Never).unwrap();
        assert_eq!((tensor.as_ptr(), values(&tensor)), (home, all), "{shape:?}");
        assert!(tensor.is_contiguous() && tensor.is_read_only());
        assert_eq!(tensor.size(), 12);
    }
    let one = export::array(&Int32Array::from(vec![7])).unwrap();
    assert_eq!(one.reshape(&[], CopyPolicy::Never).unwrap().ndim(), 0);
}

#[test]
fn steps_and_gaps_stay_and_are_copied_only_where_they_must_be() {
    let (tensor, watch) = backwards();
    let tensor = tensor.reshape(&[2, 3], CopyPolicy::Never).unwrap();
    assert_eq!((&*tensor.strides(), tensor.as_ptr().addr()), (&[-6, -2][..], watch.data()));
    assert_eq!(values(&tensor), [10, 8, 6, 4, 2, 0]);
    drop(tensor);
    watch.released_once();

    // Two runs of three: no axis goes along both.
    let rows = || {
        let bytes = (0..12_i32).flat_map(i32::to_ne_bytes).collect::<Vec<_>>();
        let producer = Producer::bytes(support::dtype(0, 32, 1), &bytes, &[2, 3], &[4, 1]);
        producer.tensor(Abi::Versioned)
    };
    let (tensor, watch) = rows();
    let refused = tensor.unwrap().reshape(&[6], CopyPolicy::Never);
    let reason = CopyReason::Strided { axis: 0, stride: 4, expected: 3 };
    assert_eq!(refused.unwrap_err(), Error::CopyForbidden { reason, nbytes: 24 });
    watch.released_once();

    let (tensor, watch) = rows();
    let tensor = tensor.unwrap().reshape(&[6], CopyPolicy::IfNeeded).unwrap();
    watch.released_once();
    assert_eq!(tensor.as_slice(), Some(&[0, 1, 2, 4, 5, 6][..]));
    let mut tensor = tensor.reshape(&[3, 2], CopyPolicy::IfNeeded).unwrap();
    tensor.as_slice_mut::<i32>().expect("a copy of its own")[5] = 9;
}

#[test]
fn a_copy_is_made_where_one_was_asked_for() {
    let tensor = vector();
    let home = tensor.as_ptr();
    let mut copy = tensor.reshape(&[4, 3], CopyPolicy::Always).unwrap();
    assert_ne!(copy.as_ptr(), home);
    copy.as_slice_mut::<i32>().expect("a copy of its own")[0] = 9;
}

#[test]
fn other_numbers_of_elements_are_refused() {
    for to in [&[5][..], &[], &[0], &[13], &[5, -1], &[0, -1], &[-1, -1]] {
        let refused = vector().reshape(to, CopyPolicy::IfNeeded).unwrap_err();
        assert_eq!(refused, Error::CannotReshape { from: vec![12], to: to.into() });
    }
    for to in [&[-12][..], &[-2, -1], &[i64::MIN]] {
        let refused = vector().reshape(to, CopyPolicy::IfNeeded).unwrap_err();
        assert!(matches!(refused, Error::NegativeExtent { .. }), "{refused}");
    }
    let huge = vector().reshape(&[i64::MAX, i64::MAX], CopyPolicy::IfNeeded).unwrap_err();
    assert_eq!(huge, Error::Overflow("number of elements"));
}

#[test]
fn nothing_has_any_shape_of_nothing() {
    let nothing = || export::array(&Int32Array::from(Vec::<i32>::new())).unwrap();
    for to in [&[0, 3][..], &[3, 0], &[-1], &[-1, 7]] {
        let tensor = nothing().reshape(to, CopyPolicy::Never).unwrap();
        assert_eq!((tensor.size(), tensor.as_ptr().is_null()), (0, true));
    }
    assert!(nothing().reshape(&[0, -1], CopyPolicy::Never).is_err(), "any number would do");
}

#[test]
fn memory_that_cannot_be_read_here_has_other_axes_too() {
    let producer = Producer { device: device(2, 0), ..Producer::vector(&[1.0_f32, 2.0]) };
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    let tensor = tensor.unwrap().reshape(&[2, 1], CopyPolicy::Never).unwrap();
    assert_eq!((tensor.shape(), tensor.device()), (&[2, 1][..], device(2, 0)));
    drop(tensor);
    watch.released_once();
}

/// What models give.
#[test]
fn one_column_of_a_matrix_is_a_column() {
    let model = |shape: &[i64]| {
        let rows = Float32Array::from(vec![1.0, 2.0, 3.0]);
        export::array(&rows).unwrap().reshape(shape, CopyPolicy::Never).unwrap()
    };
    for shape in [&[3, 1][..], &[3, 1, 1], &[3]] {
        let tensor = model(shape);
        let home = tensor.as_ptr();
        let column = Float32Array::try_from(tensor).unwrap();
        assert_eq!(column, Float32Array::from(vec![1.0, 2.0, 3.0]));
        assert_eq!(column.values().as_ptr().cast(), home.cast::<f32>());
    }
    for shape in [&[1, 3][..], &[1, 3, 1]] {
        let refused = Float32Array::try_from(model(shape)).unwrap_err();
        assert!(matches!(refused, Error::CannotBecome { .. }), "{refused}");
    }
    let (every_other, watch) = backwards();
    let every_other = every_other.reshape(&[6, 1], CopyPolicy::Never).unwrap();
    let gathered = Int32Array::try_from(every_other).unwrap();
    assert_eq!(gathered.values(), &[10, 8, 6, 4, 2, 0]);
    watch.released_once();
}
