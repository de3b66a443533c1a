//! Arrays at the edges of what can be counted, and nulls in unused places.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Int32Array, ListArray, new_empty_array,
    record_batch,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_dlpack::export::{self, PadOptions, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode};
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy, Number, to_dlpack};
use arrow_schema::{DataType, Field};

/// So many lists of nothing, which take no memory.
fn lists_of_nothing(len: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values = new_empty_array(&DataType::Int32);
    Arc::new(FixedSizeListArray::try_new_with_length(item, 0, values, nulls, len).expect("lists"))
}

#[test]
fn rows_that_cannot_be_counted_are_refused() {
    let many = lists_of_nothing(1 << (usize::BITS - 2), None);
    let field = Field::new("x", many.data_type().clone(), true);
    // Extents have 64 bits everywhere, but rows are counted by addresses.
    let too_many: &[usize] =
        if cfg!(target_pointer_width = "64") { &[2, 3, 4, 5] } else { &[4, 5] };
    for &count in too_many {
        let chunks = vec![Arc::clone(&many); count];
        let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
        for options in [ExportOptions::default(), options] {
            let refused = export::tensor(Source::Chunks(&chunks, &field), &options);
            assert_eq!(refused.unwrap_err(), Error::Overflow("length"));
        }
        let refused = export::mask(Source::Chunks(&chunks, &field), &ExportOptions::default());
        assert_eq!(refused.unwrap_err(), Error::Overflow("length"));
    }
}

#[test]
fn rows_too_large_to_count_are_shapes_where_there_are_none() {
    let mut data_type = DataType::Int32;
    for axes in 1..10 {
        let item = Arc::new(Field::new_list_field(data_type, true));
        data_type = DataType::FixedSizeList(item, i32::MAX);
        let field = Field::new("x", data_type.clone(), true);
        let tensor = to_dlpack(&new_empty_array(&data_type), &field, &ExportOptions::default());
        let tensor = tensor.expect("a tensor of nothing");
        let row = vec![i64::from(i32::MAX); axes];
        assert_eq!((tensor.shape()[0], &tensor.shape()[1..]), (0, &row[..]));
    }
}

#[test]
fn the_parts_of_a_null_complex_number_may_be_null_and_no_others() {
    let complex64 = DLDataType::scalar(DLDataTypeCode::COMPLEX, 64);
    let numbers = |rows: Vec<Option<Vec<Option<f32>>>>| {
        let array = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2);
        let field = Field::new("z", array.data_type().clone(), true);
        (array, Extension::opaque(complex64).annotate(field))
    };
    let (array, field) = numbers(vec![Some(vec![Some(1.0), Some(2.0)]), None]);
    assert_eq!(array.values().null_count(), 2);
    let options = ExportOptions::default().with_nulls(NullPolicy::fill(7));
    let tensor = to_dlpack(&array, &field, &options).expect("filled");
    assert_eq!((tensor.shape(), tensor.dtype()), (&[2][..], complex64));
    let refused = to_dlpack(&array, &field, &ExportOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Nulls { null_count: 1, len: 2, .. }), "{refused}");

    let (array, field) = numbers(vec![Some(vec![Some(1.0), None]), None]);
    let refused = to_dlpack(&array, &field, &options).unwrap_err();
    assert!(matches!(refused, Error::MalformedExtension { .. }), "{refused}");
}

#[test]
fn null_rows_are_counted_even_where_they_have_no_values() {
    let lists = lists_of_nothing(3, Some(NullBuffer::from(vec![true, false, false])));
    let field = Field::new("x", lists.data_type().clone(), true);
    let refused = to_dlpack(&lists, &field, &ExportOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Nulls { null_count: 2, len: 3, .. }), "{refused}");
}

#[test]
fn a_buffer_may_end_within_a_value() {
    let array = || {
        let bytes = Buffer::from_slice_ref([1i32, 2, 3]).slice_with_length(0, 11);
        Int32Array::new(ScalarBuffer::from(bytes), None)
    };
    let (field, values) = (Field::new("x", DataType::Int32, true), Some(&[1, 2][..]));
    assert_eq!(export::array(&array()).expect("a tensor").as_slice::<i32>(), values);
    let given = export::into_tensor_with_field(Arc::new(array()), &field).expect("given");
    assert_eq!(given.as_slice::<i32>(), values);
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
        let options = ExportOptions::default().with_copy(copy);
        let tensor = to_dlpack(&array(), &field, &options).expect("a tensor");
        assert_eq!(tensor.as_slice::<i32>(), values);
    }
    let chunks: Vec<ArrayRef> = vec![Arc::new(array()), Arc::new(array().slice(1, 1))];
    let tensor = export::tensor(Source::Chunks(&chunks, &field), &ExportOptions::default());
    assert_eq!(tensor.expect("a tensor").as_slice::<i32>(), Some(&[1, 2, 2][..]));
}

#[test]
fn without_chunks_there_are_no_values_but_a_type() -> Result<(), Error> {
    let field = Field::new("x", DataType::Float32, true);
    let tensor = export::tensor(Source::Chunks(&[], &field), &ExportOptions::default())?;
    assert_eq!((tensor.shape(), tensor.dtype()), (&[0][..], DLDataType::FLOAT32));
    Ok(())
}

#[test]
fn a_row_that_is_not_there_is_refused() {
    let array: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let field = Field::new("x", DataType::Float32, true);
    let row = Source::Row(&array, Some(&field), 2);
    let refused = export::tensor(row, &ExportOptions::default()).err();
    assert_eq!(refused, Some(Error::NoSuchRow { index: 2, len: 2 }));
}

#[test]
fn tensors_of_any_shape_are_annotated_as_they_are_read() -> Result<(), Error> {
    let extents = |extent| Field::new_list_field(extent, false);
    let shape = |extent| Field::new_fixed_size_list("shape", extents(extent), 2, false);
    let data = || Field::new_list("data", Field::new_list_field(DataType::Float32, true), false);
    let stored = |extent| Field::new_struct("x", vec![data(), shape(extent)], true);
    let dimensions = Dimensions {
        names: Some(vec!["y".to_owned(), "x".to_owned()]),
        permutation: Some(vec![1, 0]),
    };
    let extension = Extension::VariableShapeTensor { ndim: 2, dimensions };
    let field = extension.annotate(stored(DataType::Int32));
    assert_eq!(Extension::of(&field)?, Some(extension.clone()));
    let wide = extension.annotate(stored(DataType::Int64));
    assert!(matches!(Extension::of(&wide), Err(Error::MalformedExtension { .. })));
    Ok(())
}

#[test]
fn a_scalar_is_shown_as_what_it_is() {
    let shown = [Number::from(true), Number::from(-1), Number::from(1.0)].map(|it| it.to_string());
    assert_eq!(shown, ["true", "-1", "1.0"]);
}

#[test]
fn what_is_prepared_tells_its_shape_and_dtype_and_is_shown_with_its_plan() -> Result<(), Error> {
    let options = ExportOptions::default();
    let numbers = Int32Array::from(vec![1, 2, 3]);
    let shared = export::prepare(&numbers, &options)?;
    assert_eq!((&*shared.shape(), shared.dtype()), (&[3][..], DLDataType::INT32));
    let batch = record_batch!(("x", Int32, [1, 2, 3]), ("y", Int32, [4, 5, 6])).expect("a table");
    let batches = [batch];
    let table = Source::table(&batches, batches[0].schema_ref());
    let matrix = export::prepare(table, &options)?;
    assert_eq!((&*matrix.shape(), matrix.dtype()), (&[3, 2][..], DLDataType::INT32));
    assert!(format!("{matrix:?}").starts_with("Prepared { plan: Plan {"));
    let columns = format!("{:?}", export::prepare_columns(&batches[0], &options)?);
    assert!(columns.starts_with("{\"x\": Prepared { plan: Plan {"), "{columns}");
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0)])]);
    let ragged = format!("{:?}", export::prepare_ragged(&lists, None, &options)?);
    assert!(ragged.starts_with("PreparedRagged { plan: Plan {"), "{ragged}");
    let pad = PadOptions::default();
    let padded = format!("{:?}", export::prepare_padded(&lists, &pad, &options)?);
    assert!(padded.starts_with("PreparedPadded { plan: Plan {"), "{padded}");
    let row = export::tensor(Source::row(&numbers, 1), &options)?;
    assert_eq!((row.shape(), row.as_slice::<i32>()), (&[][..], Some(&[2][..])));
    Ok(())
}

#[test]
fn the_plan_of_a_table_is_that_of_its_columns() {
    let batch = record_batch!(
        ("bits", Boolean, [true, false, true]),
        ("shared", Int32, [1, 2, 3]),
        ("filled", Int16, [Some(1), None, Some(3)])
    )
    .expect("a table");
    let options = ExportOptions::default().with_nulls(NullPolicy::fill(0));
    let prepared = export::prepare_columns(&batch, &options);
    let prepared = prepared.expect("columns of numbers");
    let copied: Vec<usize> = prepared.plan().steps.iter().map(|step| step.nbytes).collect();
    assert_eq!(copied, [3, 6]);
    let columns = prepared.run().expect("there is memory");
    let filled = columns[2].1.values.as_slice::<i16>();
    assert_eq!((columns[2].0.name().as_str(), filled), ("filled", Some(&[1, 0, 3][..])));
}
