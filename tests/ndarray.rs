//! Tensors as ndarray views and arrays as tensors: the same elements at the same addresses, and only
//! those who are alone may write.
#![cfg(feature = "ndarray")]
#![expect(unsafe_code, reason = "passes tensors through raw pointers, and counts what is freed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array as _, Float32Array, Int32Array};
use arrow_buffer::{ArrowNativeType, ScalarBuffer, ToByteSlice};
use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{CopyReason, Element, Error, ManagedTensor, WriteObstacle, export};
use arrow_schema::{DataType, Field};

use ndarray::{Array, ArrayD, Axis, Ix1, Ix2, IxDyn, ShapeBuilder, Slice, array, s};
use support::{Abi, Data, Ints, Producer, Random, for_each_numeric};

mod support;

/// Layouts at random for each type.
const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };

const READ_ONLY: DLPackFlags = DLPackFlags::READ_ONLY;
const IS_COPIED: DLPackFlags = DLPackFlags::IS_COPIED;

/// The bytes of all elements in row-major order.
fn bytes_of<T: Element + ArrowNativeType>(tensor: &ManagedTensor) -> Vec<u8> {
    let view = tensor.view::<T, IxDyn>().expect("a view");
    view.iter().flat_map(|value| value.to_byte_slice().to_vec()).collect()
}

/// Extents from 0 to 4, strides from -9 to 9, and nonsense along axes of one element.
fn random_layout(random: &mut Random) -> (Vec<i64>, Vec<i64>) {
    let signed = |below: usize| i64::try_from(below).expect("small");
    (0..random.below(5))
        .map(|_| match random.below(12) {
            0 => (0, signed(random.below(19)) - 9),
            1 | 2 => (1, [i64::MIN, i64::MAX, -1, 0][random.below(4)]),
            extent => (signed(extent % 3) + 2, signed(random.below(19)) - 9),
        })
        .unzip()
}

#[test]
fn a_view_shows_each_element_where_its_strides_put_it() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType)
    where
        T::Native: Element,
    {
        let itemsize = size_of::<T::Native>();
        let mut random = Random(3);
        for _ in 0..ROUNDS {
            let (shape, strides) = random_layout(&mut random);
            // Space for 4 axes of 4 elements and 9 steps, in both directions.
            let bytes = random.bytes(2 * 128 * itemsize);
            let origin = 128 * itemsize;
            let at = if shape.contains(&0) {
                Vec::new()
            } else {
                let steps: Vec<_> =
                    shape.iter().zip(&strides).map(|(&n, &s)| if n > 1 { s } else { 0 }).collect();
                support::strided(&bytes, origin, &shape, &steps, itemsize)
            };
            for abi in Abi::BOTH {
                let producer = Producer::bytes(dtype, &bytes, &shape, &strides);
                let data = Data::Bytes { bytes: bytes.clone(), origin, misalign: 0 };
                let (tensor, watch) = Producer { data, ..producer }.tensor(abi);
                let tensor = tensor.unwrap();
                assert_eq!(bytes_of::<T::Native>(&tensor), at, "{shape:?} {strides:?}");
                let view = tensor.view::<T::Native, IxDyn>().unwrap();
                let extents = view.shape().iter().map(|&extent| i64::try_from(extent).unwrap());
                assert_eq!(extents.collect::<Vec<_>>(), shape);
                if !shape.contains(&0) {
                    assert_eq!(view.as_ptr().addr(), watch.data(), "the first element");
                }
                drop(tensor);
                watch.released_once();
            }
        }
    }
    for_each_numeric!(law);
}

/// Arrays of every memory layout that ndarray has: an array of distinct values is cut, permuted and
/// turned round in place, so that its memory begins before it and has gaps.
fn random_array<T: Element + ArrowNativeType>(random: &mut Random) -> ArrayD<T> {
    let extents: Vec<_> = (0..random.below(5)).map(|_| random.below(5)).collect();
    let shape = IxDyn(&extents).set_f(random.below(2) == 0);
    let mut array =
        ArrayD::from_shape_simple_fn(shape, || T::usize_as(random.below(usize::from(u16::MAX))));
    for axis in (0..array.ndim()).map(Axis) {
        let len = array.len_of(axis);
        let start = isize::try_from(random.below(len + 1)).expect("small");
        let step = [1, 1, 2, -1, -2][random.below(5)];
        array.slice_axis_inplace(axis, Slice::new(start, None, step));
    }
    if array.ndim() > 1 {
        array.swap_axes(0, random.below(array.ndim()));
    }
    if random.below(4) == 0 {
        array.insert_axis_inplace(Axis(random.below(array.ndim() + 1)));
    }
    array
}

#[test]
fn an_array_of_any_layout_becomes_a_writable_tensor_at_its_address() {
    fn law<T: ArrowPrimitiveType>(dtype: DLDataType)
    where
        T::Native: Element,
    {
        let mut random = Random(5);
        for _ in 0..ROUNDS {
            let array = random_array::<T::Native>(&mut random);
            let (expected, first) = (array.clone(), array.as_ptr().addr());
            let strides: Vec<_> =
                array.strides().iter().map(|&stride| i64::try_from(stride).unwrap()).collect();
            let tensor = ManagedTensor::from(array);
            assert_eq!((tensor.dtype(), tensor.flags()), (dtype, DLPackFlags::default()));
            assert_eq!(tensor.view::<T::Native, IxDyn>().unwrap(), expected);
            if expected.is_empty() {
                assert!(tensor.as_ptr().is_null());
                continue;
            }
            assert_eq!(tensor.as_ptr().addr(), first);
            assert_eq!(&*tensor.strides(), strides);

            // And through C, in both ABIs.
            // SAFETY: `into_raw` and `into_raw_legacy` give up true tensors.
            let tensor = unsafe {
                let tensor = ManagedTensor::from_raw(tensor.into_raw()).unwrap();
                ManagedTensor::from_raw_legacy(tensor.into_raw_legacy().unwrap()).unwrap()
            };
            assert_eq!(tensor.as_ptr().addr(), first);
            assert_eq!(tensor.view::<T::Native, IxDyn>().unwrap(), expected);
        }
    }
    for_each_numeric!(law);
}

#[test]
fn what_is_written_through_a_view_is_there_and_nowhere_else() {
    fn law<T: ArrowPrimitiveType>(_: DLDataType)
    where
        T::Native: Element,
    {
        let mut random = Random(7);
        for _ in 0..ROUNDS {
            let array = random_array::<T::Native>(&mut random);
            let tensor = ManagedTensor::from(array.clone());
            for mut tensor in [tensor.copied().unwrap(), tensor] {
                let mut expected = array.clone();
                let mut view = tensor.view_mut::<T::Native, IxDyn>().unwrap();
                let value = T::Native::usize_as(random.below(100));
                let axis = random.below(expected.ndim().max(1));
                for array in [view.view_mut(), expected.view_mut()] {
                    if array.ndim() == 0 {
                        array.into_slice().unwrap()[0] = value;
                    } else if array.len_of(Axis(axis)) > 0 {
                        array.index_axis_move(Axis(axis), 0).fill(value);
                    }
                }
                assert_eq!(view, expected);
                assert_eq!(tensor.view::<T::Native, IxDyn>().unwrap(), expected);
            }
        }
    }
    for_each_numeric!(law);

    // The gaps between strided elements are not anyone's to write to.
    let mut tensor = ManagedTensor::from(Array::from_iter(0..6).slice_move(s![1..;2]));
    tensor.view_mut::<i32, IxDyn>().unwrap().fill(-1);
    // SAFETY: the array had 6 elements, and the tensor's first is its second.
    let memory = unsafe { std::slice::from_raw_parts(tensor.as_ptr().cast::<i32>().sub(1), 6) };
    assert_eq!(memory, [0, -1, 2, -1, 4, -1]);
}

fn obstacle(tensor: &mut ManagedTensor) -> Option<WriteObstacle> {
    let writes = tensor.as_slice_mut::<i32>().is_some();
    match tensor.view_mut::<i32, IxDyn>() {
        Ok(_) => {
            assert!(writes, "a slice where there is a view");
            None
        }
        Err(Error::NotWritable(obstacle)) => {
            assert!(!writes, "no slice where there is no view");
            Some(obstacle)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn only_a_tensor_that_is_alone_with_its_memory_can_be_written_to() {
    let column = Int32Array::from(vec![1, 2, 3]);
    let field = Field::new("x", DataType::Int32, false);
    let raw = |tensor: ManagedTensor| {
        // SAFETY: `into_raw` gives up a true tensor.
        unsafe { ManagedTensor::from_raw(tensor.into_raw()) }.unwrap()
    };
    // SAFETY: the memory of the tensors that this is called with has no other holder.
    let vouch = |tensor: ManagedTensor| unsafe { tensor.assume_exclusive() };
    let (shared, writable) = (Some(WriteObstacle::Shared), None);
    let read_only = Some(WriteObstacle::ReadOnly);

    // Ours.
    let mut share = export::array(&column).unwrap();
    assert_eq!(obstacle(&mut share), read_only);
    let mut copy = share.copied().unwrap();
    assert_eq!(obstacle(&mut copy), writable);
    assert_eq!(obstacle(&mut raw(copy)), writable, "a copy says so, through C too");
    let give = || {
        export::into_tensor_with_field(Arc::new(Int32Array::from(vec![1, 2, 3])), &field).unwrap()
    };
    assert_eq!(obstacle(&mut give()), writable);
    assert_eq!(obstacle(&mut raw(give())), shared, "given memory cannot say so through C");
    assert_eq!(obstacle(&mut vouch(raw(give()))), writable);
    assert_eq!(obstacle(&mut ManagedTensor::from(array![1, 2, 3])), writable);

    // A second holder, and when it has gone.
    let mut tensor = Arc::new(ManagedTensor::from(array![1, 2, 3]));
    let mut second = tensor.share();
    assert_eq!(obstacle(&mut second), read_only);
    assert!(Arc::get_mut(&mut tensor).is_none());
    drop(second);
    assert_eq!(obstacle(Arc::get_mut(&mut tensor).unwrap()), writable);

    // Other libraries'.
    for (flags, alone, vouched) in [
        (DLPackFlags::default(), shared, writable),
        (IS_COPIED, writable, writable),
        (READ_ONLY, read_only, read_only),
        (READ_ONLY.union(IS_COPIED), read_only, read_only),
    ] {
        let (tensor, watch) =
            Producer { flags, ..Producer::vector(&[1i32, 2, 3]) }.tensor(Abi::Versioned);
        let mut tensor = tensor.unwrap();
        assert_eq!(obstacle(&mut tensor), alone, "{flags:?}");
        assert_eq!(obstacle(&mut vouch(tensor)), vouched, "{flags:?}");
        watch.released_once();
    }
    let (tensor, watch) = Producer::vector(&[1i32, 2, 3]).tensor(Abi::Legacy);
    let mut tensor = tensor.unwrap();
    assert_eq!(obstacle(&mut tensor), read_only, "a legacy tensor cannot say that it is writable");
    assert_eq!(obstacle(&mut vouch(tensor)), read_only);
    watch.released_once();
}

#[test]
fn what_cannot_be_viewed_is_refused_with_the_numbers() {
    fn both<T: Element>(producer: Producer, expected: &Error) {
        for abi in Abi::BOTH {
            let (tensor, watch) = producer.clone().tensor(abi);
            let mut tensor = tensor.unwrap();
            assert_eq!(tensor.view::<T, IxDyn>().unwrap_err(), *expected);
            assert_eq!(tensor.view_mut::<T, IxDyn>().unwrap_err(), *expected);
            drop(tensor);
            watch.released_once();
        }
    }
    let vector = Producer::vector(&[1.0_f32, 2.0]);
    let mismatch = |expected, found| Error::DtypeMismatch { expected, found };
    both::<f64>(vector.clone(), &mismatch(DLDataType::FLOAT64, DLDataType::FLOAT32));
    both::<u32>(vector.clone(), &mismatch(DLDataType::UINT32, DLDataType::FLOAT32));
    let lanes = Producer { dtype: support::dtype(2, 32, 2), shape: [1].into(), ..vector.clone() };
    both::<f32>(lanes, &mismatch(DLDataType::FLOAT32, support::dtype(2, 32, 2)));

    let (device, data) = (support::device(2, 0), Data::Address(64));
    both::<f32>(Producer { device, data, ..vector.clone() }, &Error::UnreadableDevice { device });

    let data = Data::Bytes { bytes: vec![0; 8], origin: 0, misalign: 2 };
    let reason = CopyReason::Misaligned { align: 4 };
    both::<f32>(Producer { data, ..vector.clone() }, &Error::CopyForbidden { reason, nbytes: 8 });

    // Without elements, but with more of the other axes than ndarray counts.
    let endless = Producer::bytes(DLDataType::FLOAT32, &[], &[1 << 40, 0, 1 << 40], &[0, 0, 0]);
    let (tensor, watch) = Producer { flags: IS_COPIED, ..endless }.tensor(Abi::Versioned);
    let (mut tensor, overflow) = (tensor.unwrap(), Error::Overflow("number of elements"));
    assert_eq!(tensor.view::<f32, IxDyn>().unwrap_err(), overflow);
    assert_eq!(tensor.view_mut::<f32, IxDyn>().unwrap_err(), overflow);
    drop(tensor);
    watch.released_once();

    let error = mismatch(DLDataType::FLOAT64, DLDataType::FLOAT32);
    assert_eq!(error.to_string(), "the elements are float32, not float64");
}

#[test]
fn booleans_can_be_read_if_their_bytes_are_0_and_1() {
    let tensor = |bytes: &'static [u8], shape: &[usize]| {
        ManagedTensor::from_bytes(bytes, DLDataType::BOOL, shape).expect("a tensor")
    };
    let matrix = tensor(&[1, 0, 0, 1, 1, 0], &[2, 3]);
    let view = matrix.view::<bool, Ix2>().expect("a view");
    assert_eq!(view, array![[true, false, false], [true, true, false]]);
    assert_eq!(view.as_ptr().addr(), matrix.as_ptr().addr());
    let repeated = tensor(&[1, 0], &[2, 1]).broadcast_to(&[2, 4]).expect("a tensor");
    assert_eq!(repeated.view::<bool, Ix2>().expect("a view"), array![[true; 4], [false; 4]]);
    assert!(tensor(&[], &[0]).view::<bool, Ix1>().expect("a view").is_empty());

    let refused = |tensor: &ManagedTensor| tensor.view::<bool, Ix1>().expect_err("an error");
    let forbidden = Error::CopyForbidden { reason: CopyReason::BoolBytes, nbytes: 3 };
    assert_eq!(refused(&tensor(&[1, 0, 2], &[3])), forbidden);
    let bytes = ManagedTensor::from(array![1_u8, 0]);
    let mismatch = Error::DtypeMismatch { expected: DLDataType::BOOL, found: DLDataType::UINT8 };
    assert_eq!(refused(&bytes), mismatch);
    let (device, data) = (support::device(2, 0), Data::Address(64));
    let elsewhere = Producer { device, data, ..Producer::bytes(DLDataType::BOOL, &[], &[2], &[1]) };
    let (tensor, watch) = elsewhere.tensor(Abi::Versioned);
    assert_eq!(refused(&tensor.expect("a tensor")), Error::UnreadableDevice { device });
    watch.released_once();
}

#[test]
fn overlapping_elements_can_be_read_but_not_written() {
    for (shape, strides, overlap) in [
        ([4, 2], [0, 1], Some((0, 0, 1))),
        ([2, 3], [2, 1], Some((0, 2, 3))),
        ([2, 3], [-1, 1], Some((1, 1, 2))),
        ([3, 2], [1, -3], None),
        ([1, 3], [0, 2], None),
    ] {
        let (mut tensor, watch) = {
            let values: Vec<i32> = (0..12).collect();
            let data =
                Data::Bytes { bytes: values.to_byte_slice().to_vec(), origin: 16, misalign: 0 };
            let (tensor, watch) = Producer {
                data,
                ndim: 2,
                shape: shape.into(),
                strides: Ints::Values(strides.into()),
                flags: IS_COPIED,
                ..Producer::vector(&values)
            }
            .tensor(Abi::Versioned);
            (tensor.unwrap(), watch)
        };
        assert_eq!(tensor.view::<i32, IxDyn>().unwrap()[[0, 0]], 4);
        let refused = tensor.view_mut::<i32, IxDyn>().err();
        let expected = overlap.map(|(axis, stride, needed)| {
            Error::NotWritable(WriteObstacle::Overlapping { axis, stride, needed })
        });
        assert_eq!(refused, expected, "{strides:?}");
        drop(tensor);
        watch.released_once();
    }
    let error = WriteObstacle::Overlapping { axis: 0, stride: 2, needed: 3 };
    assert_eq!(
        Error::NotWritable(error).to_string(),
        "cannot write to this tensor: its elements may overlap, the stride of axis 0 being 2 where \
         3 would keep them apart; copy it first"
    );
}

#[test]
fn an_arrow_column_and_an_array_meet_without_a_copy() {
    let column = Float32Array::new(ScalarBuffer::from(vec![0.5, 1.5, 2.5, 3.5]), None);
    let tensor = export::array(&column.slice(1, 3)).unwrap();
    let view = tensor.view::<f32, IxDyn>().unwrap();
    assert_eq!(view, array![1.5, 2.5, 3.5].into_dyn());
    assert_eq!(view.as_ptr(), column.values()[1..].as_ptr());

    let array = array![1.0_f32, 2.0];
    let first = array.as_ptr();
    let back = arrow_dlpack::import::array(ManagedTensor::from(array)).unwrap();
    assert_eq!(back.len(), 2);
    assert_eq!(support::values_of(&back).as_ptr().cast(), first);
}

#[test]
fn a_view_of_another_rank_is_refused() {
    let mut tensor = ManagedTensor::from(array![[1.0, 2.0, 3.0]]);
    assert_eq!(tensor.view::<f64, Ix2>().unwrap(), array![[1.0, 2.0, 3.0]]);
    let refused = Error::WrongRank { what: "the tensor", expected: 1, ndim: 2 };
    assert_eq!(tensor.view::<f64, Ix1>().unwrap_err(), refused);
    assert_eq!(tensor.view_mut::<f64, Ix1>().unwrap_err(), refused);
}

#[test]
fn an_array_of_booleans_hands_over_its_memory() {
    let array = Array::from_shape_fn((4, 3), |(i, j)| (i + j) % 2 == 0).slice_move(s![..;-2, 1..]);
    let (first, expected) = (array.as_ptr().addr(), array.mapv(u8::from).into_dyn());
    let mut tensor = ManagedTensor::from(array);
    assert_eq!((tensor.dtype(), tensor.flags()), (DLDataType::BOOL, DLPackFlags(0)));
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[2, 2][..], &[-6, 1][..]));
    assert_eq!(tensor.as_ptr().addr(), first);
    assert_eq!(tensor.as_bool_bytes(), None, "they are not in row-major order");
    let copy = tensor.copied().unwrap();
    assert_eq!(copy.as_bool_bytes(), expected.as_standard_layout().as_slice());
    assert!(tensor.view_mut::<u8, Ix2>().is_err(), "other bytes than 0 and 1 are no booleans");
}

/// A size that nothing else in this binary asks for.
const TELLTALE: usize = 104_729;
static FREED: AtomicUsize = AtomicUsize::new(0);

struct CountsFrees;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for CountsFrees {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.size() == TELLTALE {
            FREED.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountsFrees = CountsFrees;

#[test]
fn the_memory_of_an_array_lives_as_long_as_the_last_holder_and_is_freed_once() {
    let mut freed = 0;
    let mut frees = |drops: &mut dyn FnMut()| {
        assert_eq!(FREED.load(Ordering::SeqCst), freed);
        drops();
        freed += 1;
        assert_eq!(FREED.load(Ordering::SeqCst), freed);
    };
    let tensor = || {
        // Begins in the middle of its memory, and does not reach its end.
        let array = Array::<u8, _>::zeros(TELLTALE).slice_move(s![10..20;-3]);
        ManagedTensor::from(array)
    };
    let mut held = Some(tensor());
    frees(&mut || drop(held.take()));

    // The deleter of either ABI.
    let versioned = tensor().into_raw();
    frees(&mut || support::delete(versioned));
    let legacy = tensor().into_raw_legacy().unwrap();
    frees(&mut || support::delete_legacy(legacy));

    // In both orders.
    let tensor = Arc::new(tensor());
    let mut share = Some(tensor.share());
    drop(tensor);
    assert_eq!(share.as_ref().unwrap().view::<u8, Ix1>().unwrap().sum(), 0);
    frees(&mut || drop(share.take()));
}
