//! Other implementations of DLPack in Rust: `dlpark` in both ABIs, `dlpk` in the versioned one
//! (it has no owner for the other), and candle through dlpark. Tensors go both ways by raw pointer, as
//! C would pass them: the same values at the same addresses, what the flags say, one call of the
//! deleter.
//!
//! The last laws are what these libraries do wrong or cannot do. Their tests fail when that changes;
//! then there is something to delete.
#![expect(unsafe_code, reason = "passes tensors through raw pointers, as C does")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, Float64Array, Int32Array, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, ToByteSlice};
use arrow_dlpack::ffi::{DLDataType, DLManagedTensor, DLManagedTensorVersioned, DLPackFlags};
use arrow_dlpack::{CopyPolicy, Element, ExportOptions, ManagedTensor, export, from_dlpack};
use candle_core::{DType, Device, Tensor, WithDType};
use dlpark::allocation::dynamic::Initialized;
use dlpark::interop::candle::candle_tensor_from_dlpack;
use dlpark::{DlpackElement, DlpackFlags, ManagedTensorBase, TryFromDlpack};
use dlpk::{DLPackPointerCast, DLPackTensor, GetDLPackDataType};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, IxDyn, ShapeBuilder, array, s};

use support::{Abi, Data, Producer, for_each_numeric};

#[path = "../support/mod.rs"]
mod support;

const READ_ONLY: DLPackFlags = DLPackFlags::READ_ONLY;

/// A number that everyone knows.
trait Value: Element + DlpackElement + GetDLPackDataType + DLPackPointerCast {}
impl<T: Element + DlpackElement + GetDLPackDataType + DLPackPointerCast> Value for T {}

// Ours to theirs.

fn dlpark_versioned(tensor: ManagedTensor) -> dlpark::versioned::Dlpack {
    // SAFETY: `into_raw` gives up a true tensor; both structs mirror dlpack.h.
    unsafe { dlpark::Managed::from_raw(tensor.into_raw().cast()) }.expect("version 1")
}

fn dlpark_legacy(tensor: ManagedTensor) -> dlpark::legacy::Dlpack {
    let raw = tensor.into_raw_legacy().expect("whole bytes");
    // SAFETY: as above.
    unsafe { dlpark::Managed::from_raw(raw.cast()) }.expect("not NULL")
}

fn dlpk_versioned(tensor: ManagedTensor) -> DLPackTensor {
    // SAFETY: as above; the codes are among those that dlpk's enums know.
    unsafe { DLPackTensor::from_ptr(tensor.into_raw().cast()) }
}

#[test]
fn an_arrow_column_is_read_in_place_and_let_go() {
    fn in_dlpark<T: Value, M: ManagedTensorBase>(tensor: &dlpark::Managed<M>, expected: &[T]) {
        let seen = tensor.validate().unwrap();
        assert_eq!(seen.shape(), [i64::try_from(expected.len()).unwrap()]);
        assert_eq!(seen.strides(), Some(&[1][..]));
        assert_eq!(seen.dtype(), <T as DlpackElement>::DTYPE);
        assert_eq!(seen.device().device_type, dlpark::ffi::DLDeviceType::CPU);
        // SAFETY: our tensor is a true one.
        let values = unsafe { seen.cpu_slice::<T>() }.unwrap();
        assert_eq!(values, expected);
        if !expected.is_empty() {
            assert_eq!(values.as_ptr(), expected.as_ptr());
        }
    }
    fn in_dlpk<T: Value>(tensor: &DLPackTensor, expected: &[T]) {
        assert_eq!(tensor.shape(), [i64::try_from(expected.len()).unwrap()]);
        assert_eq!(tensor.strides(), Some(&[1][..]));
        assert_eq!(tensor.dtype(), T::get_dlpack_data_type());
        let values: &[T] = tensor.as_ref().try_into().unwrap();
        assert_eq!(values, expected);
        if !expected.is_empty() {
            assert_eq!(values.as_ptr(), expected.as_ptr());
        }
    }
    fn law<T: ArrowPrimitiveType>(_: DLDataType)
    where
        T::Native: Value,
    {
        let whole = PrimitiveArray::<T>::from_iter_values((0..9).map(T::Native::usize_as));
        for array in [whole.clone(), whole.slice(2, 5), whole.slice(9, 0)] {
            let holders = || array.values().inner().strong_count();
            let (before, values) = (holders(), array.values());
            let share = || export::array(&array).unwrap();

            let tensor = dlpark_versioned(share());
            assert_eq!(tensor.flags(), DlpackFlags::READ_ONLY);
            in_dlpark(&tensor, values);
            assert_eq!(holders(), before + 1);
            drop(tensor);
            assert_eq!(holders(), before);

            let tensor = dlpark_legacy(share());
            in_dlpark(&tensor, values);
            drop(tensor);
            assert_eq!(holders(), before);

            let tensor = dlpk_versioned(share());
            assert!(tensor.is_read_only() && !tensor.is_copied());
            in_dlpk(&tensor, values);
            assert_eq!(holders(), before + 1);
            drop(tensor);
            assert_eq!(holders(), before);

            // A copy says that it is one.
            let copy = || share().copied().unwrap();
            assert_eq!(dlpark_versioned(copy()).flags(), DlpackFlags::IS_COPIED);
            assert!(dlpk_versioned(copy()).is_copied());
        }
    }
    for_each_numeric!(law);
}

/// Strided memory of 24 values, in layouts that ndarray has words for.
fn strided<T: Element + support::Element>(shape: &[i64], strides: &[i64]) -> (Producer, Vec<T>) {
    let values: Vec<T> = (0..24).map(T::usize_as).collect();
    let bytes = values.to_byte_slice();
    // The first element is one further on, half by the pointer and half by byte_offset.
    let (size, byte_offset) = (size_of::<T>(), u64::try_from(size_of::<T>()).expect("small"));
    let data = Data::Bytes { bytes: bytes.to_vec(), origin: 2 * size, misalign: 0 };
    let producer = Producer::bytes(<T as Element>::DTYPE, bytes, shape, strides);
    let seen = support::strided(bytes, 3 * size, shape, strides, size);
    let seen = seen.chunks_exact(size).map(|bytes| {
        let index = values.iter().position(|value| value.to_byte_slice() == bytes);
        values[index.expect("one of the values")]
    });
    (Producer { data, byte_offset, ..producer }, seen.collect())
}

const LAYOUTS: [(&[i64], &[i64]); 6] = [
    (&[], &[]),
    (&[4, 5], &[5, 1]),
    (&[5, 4], &[1, 5]),
    (&[3, 2, 2], &[6, 1, 3]),
    (&[2, 3], &[0, 2]),
    (&[7], &[3]),
];

#[test]
fn strided_tensors_are_read_in_place_through_byte_offsets_too() {
    fn law<T: Value + support::Element>() {
        for (shape, strides) in LAYOUTS {
            for abi in Abi::BOTH {
                // Handed on as it came, with its byte_offset, or in a tensor of our own.
                let take: [fn(ManagedTensor) -> ManagedTensor; 2] =
                    [|tensor| tensor, |tensor| Arc::new(tensor).share()];
                for take in take {
                    let open = || {
                        let (producer, expected) = strided::<T>(shape, strides);
                        let (tensor, watch) = producer.tensor(abi);
                        let tensor = take(tensor.unwrap());
                        (tensor.as_ptr().cast::<T>(), tensor, expected, watch)
                    };
                    let check = |view: ArrayViewD<T>, expected: &[T], first: *const T| {
                        assert_eq!(view.iter().copied().collect::<Vec<_>>(), expected);
                        assert_eq!(view.as_ptr(), first);
                    };

                    let (first, tensor, expected, watch) = open();
                    let tensor = dlpark_versioned(tensor);
                    // SAFETY: our tensor is a true one.
                    check(unsafe { view_in(&tensor) }.unwrap(), &expected, first);
                    drop(tensor);
                    watch.released_once();

                    let (first, tensor, expected, watch) = open();
                    let tensor = dlpark_legacy(tensor);
                    // SAFETY: as above.
                    check(unsafe { view_in(&tensor) }.unwrap(), &expected, first);
                    drop(tensor);
                    watch.released_once();

                    let (first, tensor, expected, watch) = open();
                    let tensor = dlpk_versioned(tensor);
                    check(tensor.as_ref().try_into().unwrap(), &expected, first);
                    drop(tensor);
                    watch.released_once();
                }
            }
        }
    }
    law::<u8>();
    law::<half::f16>();
    law::<i32>();
    law::<f64>();
}

/// # Safety
///
/// The tensor is a true one.
unsafe fn view_in<T: Value, M: ManagedTensorBase>(
    tensor: &dlpark::Managed<M>,
) -> Result<ArrayViewD<'_, T>, dlpark::interop::ndarray::Error> {
    // SAFETY: the caller's promise.
    unsafe { ArrayViewD::<T>::try_from_dlpack(tensor, ()) }
}

// Theirs to ours.

/// The two managed structs.
trait Header: Sized + 'static {
    fn deleter(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
    /// # Safety
    ///
    /// As `ManagedTensor::from_raw`.
    unsafe fn take(tensor: *mut Self) -> ManagedTensor;
}

impl Header for DLManagedTensorVersioned {
    fn deleter(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.deleter
    }

    unsafe fn take(tensor: *mut Self) -> ManagedTensor {
        // SAFETY: the caller's promise.
        unsafe { ManagedTensor::from_raw(tensor) }.expect("a true tensor")
    }
}

impl Header for DLManagedTensor {
    fn deleter(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.deleter
    }

    unsafe fn take(tensor: *mut Self) -> ManagedTensor {
        // SAFETY: the caller's promise.
        unsafe { ManagedTensor::from_raw_legacy(tensor) }.expect("a true tensor")
    }
}

type Deleter = Box<dyn FnOnce(*mut c_void) + Send>;

/// The deleters of the other libraries' tensors that are counted, by the tensors' addresses.
static SPIED: Mutex<BTreeMap<usize, Deleter>> = Mutex::new(BTreeMap::new());

/// Takes over another library's tensor, and counts how often its deleter is called.
fn take<H: Header>(tensor: *mut H) -> (ManagedTensor, Deletions) {
    unsafe extern "C" fn spied<H>(tensor: *mut H) {
        let deleter = SPIED.lock().expect("no panic here").remove(&tensor.addr());
        deleter.expect("the deleter is called once")(tensor.cast());
    }
    let count = Deletions::default();
    let Deletions(counter) = count.clone();
    // SAFETY: the other library gives up a valid tensor, and keeps no reference to it.
    unsafe {
        let deleter = (*tensor).deleter().replace(spied).expect("they all have one");
        let call = move |tensor: *mut c_void| {
            counter.fetch_add(1, Ordering::SeqCst);
            deleter(tensor.cast());
        };
        SPIED.lock().expect("no panic here").insert(tensor.addr(), Box::new(call));
        (H::take(tensor), count)
    }
}

#[derive(Clone, Debug, Default)]
struct Deletions(Arc<AtomicUsize>);

impl Deletions {
    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn from_dlpark<M: ManagedTensorBase, H: Header, O>(
    owner: O,
    flags: DlpackFlags,
) -> (ManagedTensor, Deletions)
where
    Box<O>: TryInto<Initialized<M>, Error: std::fmt::Debug>,
{
    let mut initialized = Box::new(owner).try_into().expect("a layout that it knows");
    initialized.set_flags(flags).expect("flags that anyone may set");
    // SAFETY: the interop modules fill everything in.
    let managed = unsafe { initialized.finish() };
    take(managed.into_raw().cast::<H>())
}

type ParkVersioned = dlpark::ffi::DLManagedTensorVersioned;
type ParkLegacy = dlpark::ffi::DLManagedTensor;

fn from_dlpk(tensor: DLPackTensor) -> (ManagedTensor, Deletions) {
    take(tensor.into_raw().as_ptr().cast::<DLManagedTensorVersioned>())
}

/// Arrays of any layout: C and Fortran order, cut, reversed, without axes, without elements.
fn arrays<T: Element + ArrowNativeType>() -> Vec<ArrayD<T>> {
    let vector = Array::from_iter((0..12).map(T::usize_as));
    let matrix = vector.clone().into_shape_with_order((3, 4)).expect("12 values");
    vec![
        vector.clone().slice_move(s![2..;-3]).into_dyn(),
        vector.slice_move(s![1..11]).into_dyn(),
        matrix.clone().reversed_axes().into_dyn(),
        matrix.clone().slice_move(s![.., 1..;2]).into_dyn(),
        matrix.slice_move(s![..;-1, 2..]).into_dyn(),
        ArrayD::from_elem(IxDyn(&[]), T::usize_as(7)),
        ArrayD::from_elem(IxDyn(&[2, 0, 3]).f(), T::default()),
    ]
}

#[test]
fn their_arrays_are_ours_at_the_same_address_until_we_let_go() {
    fn check<T: Element + ArrowNativeType>(
        taken: (ManagedTensor, Deletions),
        flags: u64,
        expected: &ArrayD<T>,
    ) {
        let (tensor, deletions) = taken;
        assert_eq!((tensor.dtype(), tensor.flags()), (T::DTYPE, DLPackFlags(flags)));
        assert_eq!(tensor.dims(), expected.shape());
        let copy = tensor.copied().unwrap();
        let values: Vec<T> = expected.iter().copied().collect();
        assert_eq!(copy.as_slice::<T>(), Some(&*values));

        let at = tensor.as_ptr().addr();
        let tensor = if expected.ndim() > 1 {
            tensor
        } else {
            // A vector becomes an Arrow array; contiguous, it stays where it is.
            let copies = !tensor.is_contiguous();
            let (array, _) = from_dlpack(tensor, &support::import(CopyPolicy::IfNeeded)).unwrap();
            let buffer = support::values_of(&array);
            assert_eq!(buffer.as_slice(), values.to_byte_slice());
            assert_eq!(buffer.as_ptr().addr() != at, copies);
            assert_eq!(deletions.now(), usize::from(copies));
            return drop_array(array, buffer, &deletions);
        };
        assert_eq!(deletions.now(), 0);
        drop(tensor);
        assert_eq!(deletions.now(), 1);
    }
    fn drop_array(array: ArrayRef, buffer: Buffer, deletions: &Deletions) {
        drop(array);
        drop(buffer);
        assert_eq!(deletions.now(), 1);
    }
    fn law<T: ArrowPrimitiveType>(_: DLDataType)
    where
        T::Native: Value,
    {
        for array in arrays::<T::Native>() {
            for flags in [DlpackFlags::empty(), DlpackFlags::READ_ONLY] {
                let taken =
                    from_dlpark::<ParkVersioned, DLManagedTensorVersioned, _>(array.clone(), flags);
                check(taken, flags.bits(), &array);
            }
            let none = DlpackFlags::empty();
            let taken = from_dlpark::<ParkLegacy, DLManagedTensor, _>(array.clone(), none);
            // Whether it may be written to, the legacy ABI cannot say.
            check(taken, READ_ONLY.0, &array);

            let owned = DLPackTensor::try_from(array.clone()).unwrap();
            check(from_dlpk(owned), DLPackFlags::IS_COPIED.0, &array);
            let shared = DLPackTensor::try_from(array.clone().into_shared()).unwrap();
            check(from_dlpk(shared), READ_ONLY.0, &array);
        }
        let values: Vec<T::Native> = (0..5).map(T::Native::usize_as).collect();
        let tensor = DLPackTensor::try_from(values.clone()).unwrap();
        check(from_dlpk(tensor), DLPackFlags::IS_COPIED.0, &Array::from_vec(values).into_dyn());
    }
    for_each_numeric!(law);
}

#[test]
fn what_they_vouch_for_can_be_written_to_and_nothing_else() {
    let values = || array![1, 2, 3].into_dyn();
    // dlpk gives up an array that it owns, and says so.
    let (mut tensor, _) = from_dlpk(DLPackTensor::try_from(values()).unwrap());
    tensor.as_slice_mut::<i32>().unwrap()[0] = 10;
    assert_eq!(tensor.as_slice::<i32>(), Some(&[10, 2, 3][..]));
    let shared = DLPackTensor::try_from(values().into_shared()).unwrap();
    assert!(from_dlpk(shared).0.as_slice_mut::<i32>().is_none());
    // dlpark says nothing, whether it owns an array or shares a candle tensor with its other holders.
    let none = DlpackFlags::empty();
    let (mut owned, _) = from_dlpark::<ParkVersioned, DLManagedTensorVersioned, _>(values(), none);
    assert!(owned.as_slice_mut::<i32>().is_none());
    let candle = Tensor::new(&[1i64, 2, 3], &Device::Cpu).unwrap();
    let (mut shared, _) =
        from_dlpark::<ParkVersioned, DLManagedTensorVersioned, _>(candle.clone(), none);
    assert!(!shared.is_read_only() && shared.as_slice_mut::<i64>().is_none());
}

// Candle.

#[test]
fn candle_takes_a_matrix_where_it_was_written() {
    let x: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
    let (values, shape) = export::to_vec::<f32, _>(&batch, &ExportOptions::default()).unwrap();
    let at = values.as_ptr();
    let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
    let (storage, _) = tensor.storage_and_layout();
    let candle_core::Storage::Cpu(candle_core::CpuStorage::F32(found)) = &*storage else {
        panic!("they are floats in memory");
    };
    assert_eq!((found.as_ptr(), &**found), (at, &[1.0, 0.5, 2.0, 1.5][..]));
}

#[test]
fn a_candle_tensor_becomes_an_arrow_array_without_a_copy() {
    fn law<T: Element + ArrowNativeType + WithDType + candle_core::NdArray>(abi: Abi) {
        let values: Vec<T> = (0..12).map(T::usize_as).collect();
        let tensor = Tensor::from_slice(&values, (3, 4), &Device::Cpu).unwrap();
        let none = DlpackFlags::empty();
        let taken = |tensor: &Tensor| match abi {
            Abi::Versioned => {
                from_dlpark::<ParkVersioned, DLManagedTensorVersioned, _>(tensor.clone(), none)
            }
            Abi::Legacy => from_dlpark::<ParkLegacy, DLManagedTensor, _>(tensor.clone(), none),
        };
        let (at, itemsize) = (address(&tensor), size_of::<T>());

        // A row: part of the storage, and one run.
        let (row, deletions) = taken(&tensor.get(1).unwrap());
        assert_eq!(row.as_ptr().addr(), at + 4 * itemsize);
        let (array, _) = from_dlpack(row, &support::import(CopyPolicy::Never)).unwrap();
        let buffer = support::values_of(&array);
        assert_eq!(buffer.as_slice(), values[4..8].to_byte_slice());
        assert_eq!(buffer.as_ptr().addr(), at + 4 * itemsize);
        drop((array, buffer));
        assert_eq!(deletions.now(), 1);

        // The transpose, which outlives the candle tensor.
        let transpose = tensor.t().unwrap();
        let (ours, deletions) = taken(&transpose);
        let expected = transpose.flatten_all().unwrap().to_vec1::<T>().unwrap();
        drop((tensor, transpose));
        assert_eq!((ours.shape(), &*ours.strides()), (&[4, 3][..], &[1, 4][..]));
        assert_eq!((ours.dtype(), ours.as_ptr().addr()), (<T as Element>::DTYPE, at));
        assert_eq!(ours.copied().unwrap().as_slice::<T>(), Some(&*expected));
        drop(ours);
        assert_eq!(deletions.now(), 1);
    }
    for abi in Abi::BOTH {
        law::<u8>(abi);
        law::<u32>(abi);
        law::<i16>(abi);
        law::<i32>(abi);
        law::<i64>(abi);
        law::<half::f16>(abi);
        law::<f32>(abi);
        law::<f64>(abi);
    }
}

/// Where a candle tensor's first element is.
fn address(tensor: &Tensor) -> usize {
    let initialized: Initialized<ParkVersioned> =
        Box::new(tensor.clone()).try_into().expect("a layout that it knows");
    // SAFETY: the interop module fills everything in.
    let managed = unsafe { initialized.finish() };
    managed.validate().expect("a true tensor").data_ptr().addr()
}

#[test]
fn an_arrow_column_becomes_a_candle_tensor_by_a_copy() {
    fn law<T: ArrowPrimitiveType>()
    where
        T::Native: Value + WithDType,
    {
        let column = PrimitiveArray::<T>::from_iter_values((0..9).map(T::Native::usize_as));
        let slice = column.slice(3, 4);
        let (share, holders) =
            (|| export::array(&slice).unwrap(), || column.values().inner().strong_count());
        let before = holders();
        let (versioned, legacy) = (dlpark_versioned(share()), dlpark_legacy(share()));
        // SAFETY: our tensors are true ones.
        let tensors =
            unsafe { [candle_tensor_from_dlpack(&versioned), candle_tensor_from_dlpack(&legacy)] };
        drop((versioned, legacy));
        assert_eq!(holders(), before, "candle has its own memory");
        for tensor in tensors {
            let tensor = tensor.unwrap();
            assert_eq!(
                (tensor.dims(), tensor.dtype()),
                (&[4][..], <T::Native as WithDType>::DTYPE)
            );
            assert_eq!(tensor.to_vec1::<T::Native>().unwrap(), slice.values().to_vec());
        }
    }
    use arrow_array::types;
    law::<types::UInt8Type>();
    law::<types::UInt32Type>();
    law::<types::Int16Type>();
    law::<types::Int32Type>();
    law::<types::Int64Type>();
    law::<types::Float16Type>();
    law::<types::Float32Type>();
    law::<types::Float64Type>();
}

#[test]
fn candle_gathers_any_strides_and_refuses_what_it_has_no_type_for() {
    for (shape, strides) in LAYOUTS.into_iter().chain([(&[2, 4][..], &[6, -1][..])]) {
        let (producer, expected) = strided::<i64>(shape, strides);
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        let tensor = dlpark_versioned(tensor.unwrap());
        // SAFETY: a true tensor.
        let candle = unsafe { candle_tensor_from_dlpack(&tensor) }.unwrap();
        drop(tensor);
        watch.released_once();
        assert_eq!(candle.flatten_all().unwrap().to_vec1::<i64>().unwrap(), expected);
    }
    for dtype in [DLDataType::UINT16, DLDataType::UINT64, DLDataType::INT8] {
        let (tensor, watch) = Producer::bytes(dtype, &[0; 8], &[1], &[1]).tensor(Abi::Versioned);
        let tensor = dlpark_versioned(tensor.unwrap());
        // SAFETY: a true tensor.
        assert!(unsafe { candle_tensor_from_dlpack(&tensor) }.is_err());
        drop(tensor);
        watch.released_once();
    }
}

// Where they fall short. None of this is ours to mend, but users will meet it.

#[test]
fn dlpk_reads_a_strided_vector_as_if_it_were_contiguous() {
    // `Vec`, `Box<[T]>` and slices from a dlpk tensor take its first `len` values, whatever its
    // strides; with a negative stride they would read past its memory. Its ndarray views are right.
    let (tensor, watch) =
        Producer { shape: [3].into(), strides: [2].into(), ..Producer::vector(&[0, 1, 2, 3, 4]) }
            .tensor(Abi::Versioned);
    let tensor = dlpk_versioned(tensor.unwrap());
    let view: ArrayViewD<i32> = tensor.as_ref().try_into().unwrap();
    assert_eq!(view, array![0, 2, 4].into_dyn());
    let slice: &[i32] = tensor.as_ref().try_into().unwrap();
    assert_eq!(slice, [0, 1, 2], "the right answer is an error");
    assert_eq!(Vec::<i32>::try_from(tensor).unwrap(), [0, 1, 2]);
    watch.released_once();
}

#[test]
fn neither_views_a_reversed_tensor() {
    let reversed = || {
        let data = Producer::vector(&[1, 2, 3]).data;
        let Data::Bytes { bytes, misalign, .. } = data else { unreachable!("a vector has bytes") };
        let data = Data::Bytes { bytes, origin: 8, misalign };
        let producer = Producer { data, strides: [-1].into(), ..Producer::vector(&[1, 2, 3]) };
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        (tensor.unwrap(), watch)
    };
    // dlpark says so.
    let (tensor, watch) = reversed();
    let tensor = dlpark_versioned(tensor);
    // SAFETY: a true tensor.
    let refused = unsafe { view_in::<i32, _>(&tensor) }.unwrap_err();
    assert_eq!(refused.to_string(), "DLPack stride 0 is negative: -1");
    drop(tensor);
    watch.released_once();

    // dlpk breaks the contract of ndarray's `from_shape_ptr`, which is only checked in a debug build.
    let (tensor, watch) = reversed();
    let tensor = dlpk_versioned(tensor);
    let viewed = catch_unwind(AssertUnwindSafe(|| {
        let view: ArrayView<i32, IxDyn> = tensor.as_ref().try_into().unwrap();
        view.iter().copied().collect::<Vec<_>>()
    }));
    if cfg!(debug_assertions) {
        assert!(viewed.is_err(), "a panic, where an error would do");
    }
    drop(tensor);
    watch.released_once();
}

#[test]
fn dlpark_believes_the_stride_of_an_axis_of_one_element() {
    // It means nothing, and where it is not the usual one (ndarray's `insert_axis` makes it 0), dlpark
    // refuses the tensor as not contiguous.
    let producer = Producer::bytes(DLDataType::INT32, &[0; 8], &[1, 2], &[0, 1]);
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert!(tensor.is_contiguous());
    let tensor = dlpark_versioned(tensor);
    // SAFETY: a true tensor.
    assert!(unsafe { tensor.validate().unwrap().cpu_slice::<i32>() }.is_err());
    drop(tensor);
    watch.released_once();
}

#[test]
fn dlpark_calls_candles_float8_by_the_name_of_another() {
    // Candle's type is finite: 0x7e is 448, as in float8_e4m3fn (code 10). dlpark says float8_e4m3
    // (code 8), where the same bits are not a number, and takes tensors of that for candle's.
    let bits = 0x7e;
    let producer = Producer::bytes(support::dtype(8, 8, 1), &[bits], &[1], &[1]);
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    let tensor = dlpark_versioned(tensor.unwrap());
    // SAFETY: a true tensor.
    let candle = unsafe { candle_tensor_from_dlpack(&tensor) }.unwrap();
    drop(tensor);
    watch.released_once();
    assert_eq!(candle.dtype(), DType::F8E4M3);
    assert_eq!(candle.to_dtype(DType::F32).unwrap().to_vec1::<f32>().unwrap(), [448.0]);
    let none = DlpackFlags::empty();
    let (ours, _) = from_dlpark::<ParkVersioned, DLManagedTensorVersioned, _>(candle, none);
    assert_eq!(ours.dtype().to_string(), "float8_e4m3");
}
