//! Arrays at the edges of what can be counted, and nulls where nobody looks.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode};
use arrow_dlpack::{Error, Export, NullPolicy, to_dlpack};
use arrow_schema::{DataType, Field, Schema, UnionFields, UnionMode};

/// So many lists of nothing, which take no memory.
fn lists_of_nothing(len: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values = new_empty_array(&DataType::Int32);
    Arc::new(FixedSizeListArray::try_new_with_length(item, 0, values, nulls, len).expect("lists"))
}

#[test]
fn rows_that_cannot_be_counted_are_refused() {
    let many = lists_of_nothing(1 << 62, None);
    let field = Field::new("x", many.data_type().clone(), true);
    for count in [2, 3, 4, 5] {
        let chunks = vec![Arc::clone(&many); count];
        let options = Export { nulls: NullPolicy::Masked, ..Export::default() };
        for options in [Export::default(), options] {
            let refused = export::tensor(Source::Chunks(&chunks, &field), &options);
            assert_eq!(refused.unwrap_err(), Error::Overflow("length"));
        }
        let refused = export::mask(Source::Chunks(&chunks, &field), &Export::default());
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
        let tensor = to_dlpack(&new_empty_array(&data_type), &field, &Export::default());
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
    let options = Export { nulls: NullPolicy::Fill(7.into()), ..Export::default() };
    let tensor = to_dlpack(&array, &field, &options).expect("filled");
    assert_eq!((tensor.shape(), tensor.dtype()), (&[2][..], complex64));
    let refused = to_dlpack(&array, &field, &Export::default()).unwrap_err();
    assert!(matches!(refused, Error::Nulls { null_count: 1, len: 2, .. }), "{refused}");

    let (array, field) = numbers(vec![Some(vec![Some(1.0), None]), None]);
    let refused = to_dlpack(&array, &field, &options).unwrap_err();
    assert!(matches!(refused, Error::MalformedExtension { .. }), "{refused}");
}

#[test]
fn null_rows_are_counted_even_where_they_have_no_values() {
    let lists = lists_of_nothing(3, Some(NullBuffer::from(vec![true, false, false])));
    let field = Field::new("x", lists.data_type().clone(), true);
    let refused = to_dlpack(&lists, &field, &Export::default()).unwrap_err();
    assert!(matches!(refused, Error::Nulls { null_count: 2, len: 3, .. }), "{refused}");
}

#[test]
fn a_type_that_no_array_can_have_is_refused() {
    let unions = DataType::Union(UnionFields::empty(), UnionMode::Dense);
    let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
    let types = [
        unions.clone(),
        list(unions.clone()),
        DataType::FixedSizeBinary(-1),
        DataType::Dictionary(Box::new(DataType::Utf8), Box::new(DataType::Utf8)),
    ];
    for data_type in types {
        let field = Field::new("x", data_type, true);
        let schema = Schema::new(vec![field.clone()]);
        for source in [Source::Chunks(&[], &field), Source::Table(&[], &schema)] {
            let refused = export::tensor(source, &Export::default()).unwrap_err();
            assert!(refused.to_string().contains("has no tensor form"), "{refused}");
            assert_eq!(export::explain(source, &Export::default()), Err(refused));
        }
    }
}
