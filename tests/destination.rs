//! Exports to memory of the caller's: the values are those of a tensor, wherever they are written.

#![expect(unsafe_code, reason = "reads memory that was not initialised, once it is written")]
#![cfg_attr(test, allow(clippy::as_conversions, reason = "of small numbers"))]

use std::mem::MaybeUninit;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray,
    Float32Array, Int32Array, Int64Array, ListArray, RecordBatch, record_batch,
};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, DestinationProblem, Element, Error, ExportOptions, ImportOptions, ManagedTensor,
    NullPolicy, Order, Representation, export, from_dlpack,
};
use arrow_schema::{DataType, Field};
use half::{bf16, f16};

fn options() -> ExportOptions {
    ExportOptions::default()
}

/// The values of each way to write are those of the tensor, and so is the shape.
fn check<T: Element>(source: export::Source<'_>, options: &ExportOptions) {
    let tensor = export::tensor(source, &options.clone().with_dtype(T::DTYPE)).expect("a tensor");
    let shape = tensor.dims();
    // A vector has the order of memory, which is the matrix's.
    let rows = tensor.copied().expect("memory").into_vec::<T>().expect("numbers");
    let expected: Vec<T> = match (options.order, &*shape) {
        (Order::ColumnMajor, &[count, width]) => {
            (0..width * count).map(|at| rows[at % count * width + at / count]).collect()
        }
        _ => rows,
    };
    let (values, found) = export::to_vec::<T, _>(source, options).expect("it is a tensor");
    assert_eq!((&found, &values), (&shape, &expected));

    let mut slice = vec![T::default(); expected.len()];
    assert_eq!(export::tensor_into(source, &mut slice[..], options), Ok(shape.clone()));
    assert_eq!(slice, expected);

    let mut memory = vec![MaybeUninit::<T>::uninit(); expected.len()];
    assert_eq!(export::tensor_into(source, &mut memory[..], options), Ok(shape));
    // SAFETY: all went well.
    let found: Vec<T> = memory.iter().map(|value| unsafe { value.assume_init() }).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_written_is_what_a_tensor_has() {
    let numbers = Int32Array::from(vec![5, 1, 2, 3, 4]);
    let numbers = numbers.slice(1, 4);
    check::<i32>(export::Source::Array(&numbers, None), &options());
    check::<f64>(export::Source::Array(&numbers, None), &options());
    check::<bf16>(export::Source::Array(&numbers, None), &options());
    check::<f16>(export::Source::Row(&numbers, None, 2), &options());

    let nulls = Int32Array::from(vec![Some(1), None, Some(3)]);
    check::<f32>(export::Source::Array(&nulls, None), &options().with_nulls(NullPolicy::fill(-1)));
    let decimals = Decimal128Array::from(vec![150, -225]).with_precision_and_scale(5, 2).unwrap();
    check::<f64>(export::Source::Array(&decimals, None), &options());

    let chunks: [ArrayRef; 3] = [
        Arc::new(Int32Array::from(vec![1, 2])),
        Arc::new(Int32Array::from(Vec::<i32>::new())),
        Arc::new(Int32Array::from(vec![3])),
    ];
    let field = Field::new("x", DataType::Int32, false);
    check::<i32>(export::Source::Chunks(&chunks, &field), &options());
    check::<i64>(export::Source::Chunks(&[], &field), &options());

    let words = |words: Vec<&str>| -> ArrayRef {
        Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>())
    };
    let words = [words(vec!["to", "be"]), words(vec!["be", "or"])];
    let field = Field::new("word", words[0].data_type().clone(), true);
    check::<i32>(export::Source::Chunks(&words, &field), &options().with_physical(true));
}

#[test]
fn lists_are_written_by_the_axes_that_a_tensor_has() {
    let row = |values: [i32; 2]| Some(values.map(Some));
    let fixed =
        FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>([row([1, 2]), row([3, 4])], 2);
    check::<i32>(export::Source::Array(&fixed, None), &options());
    let lists =
        ListArray::from_iter_primitive::<Int32Type, _, _>([row([9, 9]), row([1, 2]), row([3, 4])]);
    check::<i32>(export::Source::Array(&lists.slice(1, 2), None), &options());
    check::<f32>(export::Source::Array(&lists, None), &options());
    // Padded: the null row gets as many values as the others.
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([row([1, 2]), None, row([3, 4])]);
    check::<i32>(export::Source::Array(&lists, None), &options().with_nulls(NullPolicy::fill(7)));
}

#[test]
fn a_table_is_written_in_the_order_that_is_asked_for() {
    let pairs = |from: i32| -> ArrayRef {
        let row = |at: i32| Some(vec![Some(at), Some(at + 1)]);
        Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
            (from..from + 3).map(row),
            2,
        ))
    };
    let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
    let narrow =
        RecordBatch::try_from_iter([("x", Arc::clone(&x)), ("y", Arc::clone(&x))]).unwrap();
    let wide = RecordBatch::try_from_iter([("x", x), ("pairs", pairs(3))]).unwrap();
    for batch in [narrow, wide] {
        let schema = batch.schema();
        for batches in [
            &[batch.clone()][..],
            &[batch.slice(0, 1), batch.slice(1, 2)],
            &[batch.slice(0, 0)],
            &[],
        ] {
            for order in [Order::RowMajor, Order::ColumnMajor] {
                let options = options().with_order(order);
                check::<f32>(export::Source::Table(batches, &schema), &options);
                check::<f64>(export::Source::Table(batches, &schema), &options);
            }
        }
    }
}

/// From some megabytes on several threads write it, past the caches.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn large_results_are_written_by_several_threads() {
    let count = 3 << 20;
    let x: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let batch = RecordBatch::try_from_iter([("x", Arc::clone(&x)), ("y", x)]).unwrap();
    let (values, shape) = export::to_vec::<f32, _>(&batch, &options()).unwrap();
    assert_eq!(shape, [3 << 20, 2]);
    let is_row = |(row, pair): (usize, &[f32])| pair == [row as f32; 2];
    assert!(values.chunks_exact(2).enumerate().all(is_row));
    let mut columns = vec![0.0_f32; values.len()];
    let options = options().with_order(Order::ColumnMajor);
    export::tensor_into(&batch, &mut columns[..], &options).unwrap();
    assert!(columns.iter().enumerate().all(|(at, &value)| value == (at % (3 << 20)) as f32));
}

#[test]
fn booleans_are_written_to_vectors() {
    let bits = BooleanArray::from(vec![true, false, true]);
    assert_eq!(
        export::to_vec::<bool, _>(&bits, &options()),
        Ok((vec![true, false, true], vec![3]))
    );
    let tensor = ManagedTensor::from_vec(vec![true, false], &[1, 2]).unwrap();
    assert_eq!((tensor.dtype(), tensor.as_bool_bytes()), (DLDataType::BOOL, Some(&[1, 0][..])));
}

fn problem(result: Result<impl Sized, Error>) -> DestinationProblem {
    match result.map(drop) {
        Err(Error::BadDestination(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_that_does_not_fit_stays_as_it_was() {
    let batch = record_batch!(("x", Int32, [1, 2]), ("y", Int32, [3, 4])).unwrap();
    let needed = vec![2, 2];
    for size in [0, 3, 5] {
        let mut out = vec![7_i32; size];
        let found = problem(export::tensor_into(&batch, &mut out[..], &options()));
        assert_eq!(found, DestinationProblem::Size { needed: needed.clone(), found: size });
        assert!(out.iter().all(|&value| value == 7));
    }
    let floats = options().with_dtype(DLDataType::FLOAT32);
    let mismatch =
        DestinationProblem::Dtype { needed: DLDataType::FLOAT32, found: DLDataType::INT32 };
    let mut out = [7; 4];
    assert_eq!(problem(export::tensor_into(&batch, &mut out[..], &floats)), mismatch);
    assert_eq!(problem(export::to_vec::<i32, _>(&batch, &floats)), mismatch);
    let never = options().with_copy(CopyPolicy::Never);
    for refused in [
        export::tensor_into(&batch, &mut out[..], &never).map(drop),
        export::to_vec::<i32, _>(&batch, &never).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::CopyForbidden { nbytes: 16, .. })), "{refused:?}");
    }
    let nulls = Int32Array::from(vec![Some(1), None, None, Some(2)]);
    assert!(matches!(
        export::tensor_into(&nulls, &mut out[..], &options()),
        Err(Error::Nulls { .. })
    ));
    assert_eq!(out, [7; 4]);
}

#[test]
fn a_vector_comes_back_from_a_tensor_where_it_is() {
    fn check<T: Element>(values: Vec<T>) {
        let (address, capacity, copy) = (values.as_ptr(), values.capacity(), values.clone());
        let tensor = ManagedTensor::from_vec(values, &[copy.len()]).unwrap();
        let values = tensor.into_vec::<T>().unwrap();
        assert_eq!((values.as_ptr(), values.capacity(), &values), (address, capacity, &copy));
    }
    check(vec![1_i8, 2]);
    check(vec![bf16::ONE, bf16::MIN]);
    check(vec![1.5_f64; 1000]);
    let mut spare = Vec::with_capacity(9);
    spare.extend([1_u32, 2]);
    check(spare);

    assert_eq!(
        ManagedTensor::from_vec(Vec::<f32>::new(), &[0, 3]).unwrap().into_vec(),
        Ok(Vec::<f32>::new())
    );
    let shared = export::array(&Int32Array::from(vec![1, 2, 3])).unwrap();
    assert_eq!(shared.into_vec::<i32>(), Ok(vec![1, 2, 3]));
    let other = ManagedTensor::from_vec(vec![1_u32], &[1]).unwrap().into_vec::<i32>();
    assert_eq!(
        other,
        Err(Error::DtypeMismatch { expected: DLDataType::INT32, found: DLDataType::UINT32 })
    );
    // Any byte but 0 is true.
    let bytes: Box<[u8]> = Box::new([0, 2, 255]);
    let bools = ManagedTensor::from_bytes(bytes, DLDataType::BOOL, &[3]).unwrap();
    assert_eq!(bools.into_vec::<bool>(), Ok(vec![false, true, true]));
    // Misaligned, it is moved.
    let bytes: Box<[u8]> = Box::new([1, 0, 0, 0, 2, 0, 0, 0, 3]);
    let tensor = ManagedTensor::from_bytes(bytes, DLDataType::UINT8, &[9]).unwrap();
    assert_eq!(tensor.into_vec::<u8>(), Ok(vec![1, 0, 0, 0, 2, 0, 0, 0, 3]));
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use arrow_dlpack::ndarray::{Array1, Array2, Array3, ShapeBuilder, array, s};

    use super::*;

    #[test]
    fn axes_that_lie_in_another_order_are_written_row_major() {
        let cube = Array3::from_shape_fn((2, 3, 2), |(i, j, k)| (i * 100 + j * 10 + k) as i32);
        let tensor = ManagedTensor::from(cube.permuted_axes([0, 2, 1]));
        let options_of = ImportOptions::default().with_representation(Representation::Permuted);
        let (rows, field) = from_dlpack(tensor, &options_of).unwrap();
        check::<i32>(export::Source::Array(&rows, Some(&field)), &options());
        check::<f64>(export::Source::Array(&rows, Some(&field)), &options());

        let matrix = ManagedTensor::from(array![[1, 2, 3], [4, 5, 6]].reversed_axes());
        assert_eq!(matrix.into_vec::<i32>(), Ok(vec![1, 4, 2, 5, 3, 6]));
        let matrix = ManagedTensor::from(array![[1, 2, 3], [4, 5, 6]]);
        assert_eq!(matrix.into_vec::<i32>(), Ok(vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_view_is_filled_in_the_order_that_it_has() {
        let batch = record_batch!(("x", Int32, [1, 2, 3]), ("y", Int32, [4, 5, 6])).unwrap();
        let expected = array![[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]];
        for mut out in [Array2::<f64>::zeros((3, 2)), Array2::zeros((3, 2).f())] {
            for order in [Order::RowMajor, Order::ColumnMajor] {
                out.fill(7.0);
                let options = options().with_order(order);
                assert_eq!(export::tensor_into(&batch, out.view_mut(), &options), Ok(vec![3, 2]));
                assert_eq!(out, expected);
            }
        }
        // Rows of a larger one.
        let mut large = Array2::<i32>::zeros((5, 2));
        export::tensor_into(&batch, large.slice_mut(s![1..4, ..]), &options()).unwrap();
        assert_eq!(large, array![[0, 0], [1, 4], [2, 5], [3, 6], [0, 0]]);
        let lists = [Some(vec![Some(1), Some(4)]), Some(vec![Some(2), Some(5)])];
        let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone(), 2);
        let any = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        for mut out in [Array2::<f64>::zeros((2, 2)), Array2::zeros((2, 2).f())] {
            for rows in [&fixed as &dyn Array, &any] {
                out.fill(7.0);
                export::tensor_into(rows, out.view_mut(), &options()).unwrap();
                assert_eq!(out, array![[1.0, 4.0], [2.0, 5.0]]);
            }
        }
        let column = Int32Array::from(vec![1, 2, 3]);
        let mut out = Array1::<i32>::zeros(3);
        export::tensor_into(&column, out.view_mut(), &options()).unwrap();
        assert_eq!(out, array![1, 2, 3]);
    }

    #[test]
    fn a_view_of_another_form_stays_as_it_was() {
        let batch = record_batch!(("x", Int32, [1, 2, 3]), ("y", Int32, [4, 5, 6])).unwrap();
        let mut out = Array2::<i32>::zeros((2, 3));
        let shape = DestinationProblem::Shape { needed: vec![3, 2], found: vec![2, 3] };
        assert_eq!(problem(export::tensor_into(&batch, out.view_mut(), &options())), shape);
        let mut out = Array2::<i32>::zeros((3, 4));
        let gaps = export::tensor_into(&batch, out.slice_mut(s![.., ..2]), &options());
        assert_eq!(problem(gaps), DestinationProblem::Strided);
        let mut out = Array1::<i32>::zeros(3);
        let backwards = export::tensor_into(
            &Int32Array::from(vec![1, 2, 3]),
            out.slice_mut(s![..;-1]),
            &options(),
        );
        assert_eq!(problem(backwards), DestinationProblem::Strided);
        let mut out = Array3::<i32>::zeros((3, 2, 1).f());
        assert_eq!(
            problem(export::tensor_into(&batch, out.view_mut(), &options())),
            DestinationProblem::Strided
        );
        assert!(out.iter().all(|&value| value == 0));
    }
}

#[test]
fn rows_come_back_from_ragged_and_padded_tensors() {
    let words: DictionaryArray<Int8Type> = ["a", "b", "a"].into_iter().collect();
    let field = Arc::new(Field::new_list_field(words.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
    let lists = ListArray::new(field, offsets, Arc::new(words), None);
    let ragged = export::ragged(&lists, None, &options().with_physical(true)).unwrap();
    assert!(matches!(ArrayRef::try_from(ragged), Err(Error::InvalidOptions(_))));

    let row = |values: [i32; 2]| Some(values.map(Some));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([row([1, 2]), None, row([3, 4])]);
    let masked = options().with_nulls(NullPolicy::Masked);
    let ragged = export::ragged(&lists, None, &masked).unwrap();
    assert_eq!(*ArrayRef::try_from(ragged).unwrap(), lists);
    let padded = export::padded(&lists, &export::PadOptions::default(), &masked).unwrap();
    assert_eq!(*ArrayRef::try_from(padded).unwrap(), lists);
}
