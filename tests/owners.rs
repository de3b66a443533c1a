//! Tensors over memory that any owner holds: nothing is copied, and the owner is dropped once.

#![expect(unsafe_code, reason = "promises that its own memory stays")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_dlpack::ffi::{DLDataType, DLDevice, DLDeviceType};
use arrow_dlpack::{Error, ManagedTensor, import};

/// Elements that count how often they are dropped.
struct Counted<T>(T, Arc<AtomicUsize>);

impl<E, T: AsRef<[E]>> AsRef<[E]> for Counted<T> {
    fn as_ref(&self) -> &[E] {
        self.0.as_ref()
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted<T>(values: T) -> (Counted<T>, impl Fn() -> usize) {
    let drops = Arc::new(AtomicUsize::new(0));
    (Counted(values, Arc::clone(&drops)), move || drops.load(Ordering::Relaxed))
}

fn address(tensor: &ManagedTensor) -> usize {
    tensor.as_ptr().addr()
}

#[test]
fn a_vectors_memory_is_the_tensors_and_the_arrays() {
    let values = vec![1_i64, 2, 3, 4, 5, 6];
    let start = values.as_ptr().addr();
    let mut tensor = ManagedTensor::from_vec(values, &[3, 2]).unwrap();
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 2][..], &[2, 1][..]));
    assert_eq!(address(&tensor), start);
    tensor.as_slice_mut::<i64>().unwrap()[5] = 7;
    assert_eq!(tensor.as_slice::<i64>(), Some(&[1, 2, 3, 4, 5, 7][..]));
    let array = import::array(tensor).unwrap();
    assert_eq!(
        (array.len(), array.to_data().child_data()[0].buffers()[0].as_ptr().addr()),
        (3, start)
    );
}

#[test]
fn owners_share_what_they_hold_until_the_last_tensor_goes() {
    let (owner, drops) = counted([0.5_f32, 1.5, 2.5]); // in the owner itself, so it must stay where it is
    let tensor = Arc::new(ManagedTensor::from_owner(owner, &[3, 1]).unwrap());
    assert!(tensor.is_read_only());
    let shared = tensor.share();
    drop(tensor);
    assert_eq!((shared.as_slice::<f32>(), drops()), (Some(&[0.5, 1.5, 2.5][..]), 0));
    let array = import::array(shared).unwrap();
    assert_eq!(drops(), 0);
    std::thread::spawn(move || drop(array)).join().unwrap();
    assert_eq!(drops(), 1);

    let boxed: Box<[u16]> = Box::new([1, 2]);
    let start = boxed.as_ptr().addr();
    assert_eq!(address(&ManagedTensor::from_owner(boxed, &[2]).unwrap()), start);
    let buffer = ScalarBuffer::from(vec![1_i8, 2, 3]).slice(1, 2);
    let start = buffer.as_ptr().addr();
    assert_eq!(address(&ManagedTensor::from_owner(buffer, &[2]).unwrap()), start);
}

#[test]
fn bytes_are_elements_of_any_dtype_at_any_address() {
    let buffer = Buffer::from_vec((0..9).collect::<Vec<u8>>()).slice(1);
    let start = buffer.as_ptr().addr();
    let owner: Vec<u8> = buffer.as_slice().to_vec();
    let tensor = ManagedTensor::from_bytes(owner, DLDataType::UINT32, &[2]).unwrap();
    assert_eq!(tensor.copied().unwrap().as_slice::<u32>(), Some(&[0x0403_0201, 0x0807_0605][..]));
    let (owner, drops) = counted(buffer.as_slice().to_vec());
    let tensor = ManagedTensor::from_bytes(owner, DLDataType::UINT16, &[2, 2]).unwrap();
    assert_ne!(address(&tensor), start);
    drop(tensor);
    assert_eq!(drops(), 1);
}

#[test]
fn what_is_refused_is_dropped_once() {
    let wrong = |shape: &[usize]| {
        let (owner, drops) = counted(vec![1_i32, 2, 3]);
        let error = ManagedTensor::from_owner::<i32>(owner, shape).unwrap_err();
        assert_eq!(drops(), 1);
        assert_eq!(ManagedTensor::from_vec(vec![1_i32, 2, 3], shape).unwrap_err(), error);
        error
    };
    assert_eq!(wrong(&[2]), Error::ElementCount { shape: vec![2], needed: 2, found: 3 });
    assert_eq!(wrong(&[]), Error::ElementCount { shape: vec![], needed: 1, found: 3 });
    assert_eq!(wrong(&[2]).to_string(), "shape [2] is one of 2 elements, not of 3");
    assert_eq!(wrong(&[1; 257]), Error::TooManyAxes { ndim: 257, most: 256 });
    assert_eq!(wrong(&[usize::MAX >> 1; 2]), Error::Overflow("number of elements"));

    for (dtype, shape, error) in [
        (DLDataType::INT32, &[2][..], Some(Error::WrongLength { needed: 8, found: 12 })),
        (DLDataType::INT32, &[4][..], Some(Error::WrongLength { needed: 16, found: 12 })),
        (DLDataType::INT32, &[1; 300][..], Some(Error::TooManyAxes { ndim: 300, most: 256 })),
        (DLDataType { lanes: 0, ..DLDataType::INT32 }, &[3][..], None),
    ] {
        let (owner, drops) = counted(vec![0_u8; 12]);
        let found = ManagedTensor::from_bytes(owner, dtype, shape).unwrap_err();
        assert_eq!(drops(), 1);
        if let Some(error) = error {
            assert_eq!(found, error);
        }
    }
}

#[test]
fn nothing_has_no_address() {
    let (owner, drops) = counted(Vec::<f64>::new());
    let tensor = ManagedTensor::from_owner::<f64>(owner, &[0, 3]).unwrap();
    assert_eq!((tensor.shape(), tensor.size(), address(&tensor)), (&[0, 3][..], 0, 0));
    drop(tensor);
    assert_eq!(drops(), 1);
    assert_eq!(address(&ManagedTensor::from_vec(Vec::<u8>::new(), &[4, 0]).unwrap()), 0);
}

#[test]
fn raw_parts_say_strides_and_device() {
    let (mut owner, drops) = counted(vec![1_i16, 2, 3, 4, 5, 6]);
    // Of the whole vector, as the tensor reaches back to its start.
    let last = owner.0.as_mut_ptr().wrapping_add(5).cast();
    let strides = Some(&[-3, -1][..]);
    // SAFETY: the vector's elements stay where they are, and it has no other holder.
    let tensor = unsafe {
        ManagedTensor::from_raw_parts(
            owner,
            last,
            DLDataType::INT16,
            &[2, 2],
            strides,
            DLDevice::CPU,
        )
    };
    let tensor = tensor.unwrap();
    assert!(!tensor.is_read_only());
    assert_eq!(tensor.copied().unwrap().as_slice::<i16>(), Some(&[6, 5, 3, 2][..]));
    drop(tensor);
    assert_eq!(drops(), 1);

    let device = DLDevice { device_type: DLDeviceType::CUDA, device_id: 1 };
    let somewhere = std::ptr::without_provenance_mut(4096);
    for (strides, is_taken) in [(None, true), (Some(&[1][..]), false)] {
        let (owner, drops) = counted(());
        // SAFETY: memory on that device is not read.
        let tensor = unsafe {
            let dtype = DLDataType::FLOAT32;
            ManagedTensor::from_raw_parts(owner, somewhere, dtype, &[2, 3], strides, device)
        };
        match tensor {
            Ok(tensor) => assert_eq!((tensor.device(), &*tensor.strides()), (device, &[3, 1][..])),
            Err(error) => {
                assert_eq!(error, Error::WrongRank { what: "strides", expected: 2, ndim: 1 });
            }
        }
        assert_eq!((is_taken, drops()), (strides.is_none(), 1));
    }
}
