//! Arrays of numbers to tensors and back by `try_from`: what the ways with options give, in fewer steps.

use std::sync::Arc;

use arrow_array::types::{self, ArrowPrimitiveType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Int8Array,
    Int32Array, ListArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::ArrowNativeType;
use arrow_dlpack::export::{IntoSource, Source};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, ManagedTensor, NullPolicy, export};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use support::{Abi, Data, Ints, Producer, device, dtype, for_each_numeric};

mod support;

fn there_and_back<T: ArrowPrimitiveType>(dtype: DLDataType)
where
    ManagedTensor: for<'a> TryFrom<&'a PrimitiveArray<T>, Error = Error>,
    PrimitiveArray<T>: TryFrom<ManagedTensor, Error = Error>,
{
    let values = (1..=5).map(T::Native::usize_as);
    let array = PrimitiveArray::<T>::from_iter_values(values);
    for array in [array.clone(), array.slice(1, 3), array.slice(2, 0)] {
        let tensor = ManagedTensor::try_from(&array).expect("numbers");
        assert_eq!((tensor.dtype(), tensor.size()), (dtype, array.len()));
        assert!(tensor.is_read_only());
        let reference = export::array(&array).expect("numbers");
        assert_eq!((tensor.as_ptr(), tensor.shape()), (reference.as_ptr(), reference.shape()));

        let back = PrimitiveArray::<T>::try_from(tensor).expect("the same numbers");
        assert_eq!(back, array);
        if !array.is_empty() {
            assert_eq!(back.values().as_ptr(), array.values().as_ptr());
        }
    }
}

#[test]
fn an_array_comes_back_the_same_at_the_same_address() {
    for_each_numeric!(there_and_back);
}

#[test]
fn nulls_are_refused_and_a_validity_without_any_is_not() {
    let some = Float32Array::from(vec![Some(1.0), None, Some(3.0)]);
    let error = ManagedTensor::try_from(&some).expect_err("a null");
    assert_eq!(Err(error), export::array(&some).map(drop));
    let tensor = ManagedTensor::try_from(&some.slice(2, 1)).expect("no null in the slice");
    assert_eq!(tensor.as_slice::<f32>(), Some(&[3.0][..]));
}

#[test]
fn the_producers_memory_goes_when_the_array_goes() {
    for abi in Abi::BOTH {
        let (tensor, watch) = Producer::vector(&[1.0f32, 2.0, 3.0]).tensor(abi);
        let array = Float32Array::try_from(tensor.expect("a true tensor")).expect("floats");
        assert_eq!((array.values().as_ref(), watch.deletions()), (&[1.0, 2.0, 3.0][..], 0));
        let slice = array.slice(1, 1);
        drop(array);
        assert_eq!(watch.deletions(), 0);
        drop(slice);
        watch.released_once();
    }
}

/// A spoilt tensor is copied, or refused; either way it is released at once.
fn become_floats(producer: Producer) -> Result<Vec<f32>, Error> {
    let (tensor, watch) = producer.tensor(Abi::Versioned);
    let array = Float32Array::try_from(tensor.expect("a true tensor"));
    watch.released_once();
    Ok(array?.values().to_vec())
}

#[test]
fn what_is_elsewhere_in_memory_is_gathered() {
    let floats = [1.0f32, 2.0, 3.0, 4.0];
    let every_other =
        Producer { shape: [2].into(), strides: [2].into(), ..Producer::vector(&floats) };
    assert_eq!(become_floats(every_other), Ok(vec![1.0, 3.0]));

    let vector = Producer::vector(&floats);
    let Data::Bytes { bytes, origin, .. } = vector.data.clone() else { unreachable!("bytes") };
    let askew = Producer { data: Data::Bytes { bytes, origin, misalign: 2 }, ..vector };
    assert_eq!(become_floats(askew), Ok(floats.to_vec()));
}

#[test]
fn one_value_is_an_array_of_one() {
    let one =
        Producer { ndim: 0, shape: Ints::Null, strides: Ints::Null, ..Producer::vector(&[7.0f32]) };
    let (tensor, watch) = one.tensor(Abi::Versioned);
    let array = Float32Array::try_from(tensor.expect("a true tensor"));
    assert_eq!(array, Ok(Float32Array::from(vec![7.0])));
    drop(array);
    watch.released_once();
}

#[test]
fn bfloats_are_widened_as_by_the_other_ways() {
    let brains = Producer::bytes(dtype(4, 16, 1), &[0x80, 0x3f, 0x00, 0xc0], &[2], &[1]);
    assert_eq!(become_floats(brains), Ok(vec![1.0, -2.0]));
}

#[test]
fn what_is_not_such_an_array_is_refused_and_released() {
    let cannot = |producer| match become_floats(producer) {
        Err(Error::CannotBecome { dtype, shape, .. }) => (dtype.to_string(), shape),
        other => panic!("{other:?}"),
    };
    assert_eq!(cannot(Producer::vector(&[1i32])), ("int32".to_owned(), vec![1]));
    assert_eq!(cannot(Producer::vector(&[1.0f64])), ("float64".to_owned(), vec![1]));
    let table = Producer::bytes(dtype(2, 32, 1), &[0; 16], &[2, 2], &[2, 1]);
    assert_eq!(cannot(table), ("float32".to_owned(), vec![2, 2]));

    let elsewhere = Producer { device: device(2, 0), ..Producer::vector(&[1.0f32]) };
    let unreadable = Error::UnreadableDevice { device: device(2, 0) };
    assert_eq!(become_floats(elsewhere), Err(unreadable));

    let booleans = export::array(&BooleanArray::from(vec![true]));
    let bits = Int8Array::try_from(booleans.expect("a copy"));
    assert!(matches!(bits, Err(Error::CannotBecome { .. })), "{bits:?}");
}

#[test]
fn booleans_are_copied_there_and_back() {
    let array = BooleanArray::from(vec![true, false, true]).slice(1, 2);
    let tensor = ManagedTensor::try_from(&array).unwrap();
    assert_eq!((tensor.dtype(), tensor.is_read_only()), (DLDataType::BOOL, false));
    let tensor = tensor.reshape(&[-1, 1], CopyPolicy::Never).unwrap();
    assert_eq!(BooleanArray::try_from(tensor), Ok(array));
    let nulls = ManagedTensor::try_from(&BooleanArray::from(vec![Some(true), None]));
    assert!(matches!(nulls, Err(Error::Nulls { null_count: 1, len: 2, .. })), "{nulls:?}");
    let numbers = ManagedTensor::from_vec(vec![1_u8, 0], &[2]).unwrap();
    assert!(matches!(BooleanArray::try_from(numbers), Err(Error::CannotBecome { .. })));
}

#[test]
fn an_array_is_a_source_without_a_field() {
    let options = ExportOptions::default().with_nulls(NullPolicy::fill(0));
    let integers = Int8Array::from(vec![Some(1), None]);
    let array: ArrayRef = Arc::new(integers.clone());
    let field = Field::new("x", DataType::Int8, true);
    let fielded = export::tensor((&integers, &field), &options).unwrap();
    for source in [(&integers).into_source(), (&array).into_source(), (&*array).into_source()] {
        let tensor = export::tensor(source, &options).unwrap();
        assert_eq!(tensor.as_slice::<i8>(), fielded.as_slice::<i8>());
        assert_eq!(export::explain(source, &options).unwrap().bytes_copied(), 2);
        assert_eq!(export::mask(source, &options).unwrap().as_bool_bytes(), Some(&[1, 0][..]));
        let [(field, column)] = &export::columns(source, &options).unwrap()[..] else { panic!() };
        assert_eq!((field.name().as_str(), column.values.size()), ("", 2));
        let row = export::tensor(Source::Row(&array, None, 1), &options).unwrap();
        assert_eq!((row.ndim(), row.as_slice::<i8>()), (0, Some(&[0][..])));
        assert!(matches!(export::tensor(source, &<_>::default()), Err(Error::Nulls { .. })));
    }

    let pair = || Some([Some(1), Some(2)]);
    let lists = ListArray::from_iter_primitive::<types::Int8Type, _, _>([pair(), None]);
    let pairs = FixedSizeListArray::from_iter_primitive::<types::Int8Type, _, _>([pair()], 2);
    let codes: DictionaryArray<types::Int8Type> = ["a", "b"].into_iter().collect();
    let texts = StringArray::from(vec!["to", "be"]);
    let views = StringViewArray::from(vec!["to", "be"]);
    for source in [(&lists).into_source(), (&texts).into_source(), (&views).into_source()] {
        let ragged = export::ragged(source, None, &options).unwrap();
        assert_eq!(ragged.offsets.size(), 3);
    }
    let options = options.with_physical(true);
    let booleans = BooleanArray::from(vec![true; 2]);
    for source in [(&pairs).into_source(), (&codes).into_source(), (&booleans).into_source()] {
        assert_eq!(export::tensor(source, &options).unwrap().size(), 2);
    }
}

#[test]
fn what_is_shared_or_in_a_vec_is_a_source_as_what_it_holds() {
    fn values<'a, F>(source: impl IntoSource<'a, F>) -> Vec<i32> {
        let tensor = export::tensor(source, &ExportOptions::default()).unwrap();
        tensor.as_slice::<i32>().unwrap().to_vec()
    }
    fn of_any<A: Array>(array: &A) -> Vec<i32> {
        values(array)
    }
    let array = Int32Array::from(vec![1, 2]);
    let shared = Arc::new(array.clone());
    let dynamic: ArrayRef = Arc::new(array.clone());
    let field: FieldRef = Arc::new(Field::new("x", DataType::Int32, false));
    let schema: SchemaRef = Arc::new(Schema::new(vec![Arc::clone(&field)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&dynamic)]).unwrap();
    let chunks = vec![Arc::clone(&dynamic)];
    let batches = vec![batch.clone()];
    let found = [
        of_any(&array),
        of_any(&dynamic),
        of_any(&&array),
        values(&shared),
        values(&dynamic),
        values(&*dynamic),
        values((&array, &field)),
        values((&shared, &field)),
        values((&dynamic, &field)),
        values((&*dynamic, &field)),
        values((&*dynamic, &*field)),
        values((&chunks, &field)),
        values((&chunks[..], &*field)),
        values((&[Arc::clone(&dynamic)], &field)),
        values(&batch),
        values((&batches, &schema)),
        values((&batches[..], &*schema)),
        values((std::array::from_ref(&batch), &schema)),
        values((&batches, &batch.schema())),
    ];
    assert_eq!(found, [[1, 2]; 19]);
    let dynamic_tensors = [ManagedTensor::try_from(&dynamic), ManagedTensor::try_from(&*dynamic)];
    for tensor in dynamic_tensors.map(Result::unwrap) {
        assert_eq!(tensor.as_slice::<i32>(), Some(&[1, 2][..]));
    }
}

#[test]
fn chunks_with_a_field_and_batches_with_a_schema_are_sources() {
    let chunk: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("x", Arc::clone(&chunk)), ("y", chunk)]).unwrap();
    let (options, schema) = (ExportOptions::default(), batch.schema());
    let (batches, chunks) = (vec![batch.clone(), batch.clone()], batch.columns());
    let chunked = export::tensor((chunks, schema.field(0)), &options).unwrap();
    assert_eq!(chunked.as_slice::<i8>(), Some(&[1, 2, 1, 2][..]));
    let matrix = export::tensor((batches.as_slice(), &*schema), &options).unwrap();
    assert_eq!(matrix.shape(), [4, 2]);
    let matrix = ManagedTensor::try_from(&batch).unwrap();
    assert_eq!(matrix.as_slice::<i8>(), Some(&[1, 1, 2, 2][..]));
    assert_eq!(ArrayRef::try_from(matrix).unwrap().len(), 2);
}
