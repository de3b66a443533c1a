//! Lists in several chunks as values and offsets.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, ListArray, RecordBatch, StringViewArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_dlpack::export::{self, PadOptions, Source};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, CopyReason, Error, ExportOptions, NullPolicy, Number};
use arrow_schema::Field;

fn field_of(array: &dyn Array) -> Field {
    Field::new("x", array.data_type().clone(), true)
}

#[test]
fn the_only_text_of_views_is_shared_as_planned() {
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(4);
    for text in ["abc", &long] {
        for rows in [vec![text], vec!["", text], vec![text, ""], vec![text, text]] {
            let views = StringViewArray::from(rows.clone());
            let data = views.to_data();
            let prepared = export::prepare_ragged(&views, None, &ExportOptions::default()).unwrap();
            let plan = prepared.plan();
            let ragged = prepared.run().unwrap();
            let bytes = ragged.values.as_slice::<u8>().unwrap();
            assert_eq!(bytes, rows.concat().as_bytes());
            let of_values = if rows == [text, text] { bytes.len() } else { 0 };
            assert_eq!(plan.bytes_copied(), of_values + 8 * (rows.len() + 1));
            let is_in = |buffer: &Buffer| buffer.as_ptr_range().contains(&bytes.as_ptr());
            assert_eq!(data.buffers().iter().any(is_in), of_values == 0);
        }
    }
}

#[test]
fn ragged_chunks_are_put_together_in_the_one_copy_that_is_made() {
    let lists = |rows: &[Option<&[i32]>]| -> ArrayRef {
        let rows = rows.iter().map(|row| row.map(|row| row.iter().copied().map(Some)));
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
    };
    let chunks = [
        lists(&[Some(&[9]), Some(&[1, 2]), Some(&[])]).slice(1, 2),
        lists(&[]),
        lists(&[Some(&[3]), None, Some(&[4, 5])]),
    ];
    let field = field_of(&chunks[0]);
    let options = ExportOptions::default().with_nulls(NullPolicy::Masked);
    let prepared = export::prepare_ragged((&chunks[..], &field), None, &options).unwrap();
    let plan = prepared.plan();
    assert_eq!(plan.bytes_copied(), 5 * 4 + 6 * 4 + 5);
    assert_eq!(plan.steps[0].reasons, [CopyReason::Chunks(3)]);
    let ragged = prepared.run().unwrap();
    assert_eq!(ragged.values.as_slice::<i32>(), Some(&[1, 2, 3, 4, 5][..]));
    assert_eq!(ragged.offsets.as_slice::<i32>(), Some(&[0, 2, 2, 3, 3, 5][..]));
    let mask: ArrayRef = ragged.mask.expect("asked for").try_into().unwrap();
    assert_eq!(mask.as_boolean().values().iter().filter(|&valid| !valid).count(), 1);

    // One chunk is shared as an array is, and none has the offset 0.
    let never = ExportOptions::default().with_copy(CopyPolicy::Never);
    let one = [lists(&[Some(&[1]), Some(&[2, 3])])];
    assert!(export::ragged((&one[..], &field), None, &never).is_ok());
    let none = export::ragged((&[][..], &field), None, &ExportOptions::default()).unwrap();
    assert_eq!(none.offsets.as_slice::<i32>(), Some(&[0][..]));

    // A code stands for one value in all chunks here too.
    let words = |words: Vec<&str>| -> ArrayRef {
        let codes: DictionaryArray<Int8Type> = words.into_iter().collect();
        let item = Arc::new(Field::new_list_field(codes.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([codes.len()]);
        Arc::new(ListArray::new(item, offsets, Arc::new(codes), None))
    };
    let chunks = [words(vec!["to", "be"]), words(vec!["be", "or"])];
    let physical = ExportOptions::default().with_physical(true);
    let ragged = export::ragged((&chunks[..], &field_of(&chunks[0])), None, &physical).unwrap();
    assert_eq!(ragged.values.as_slice::<i8>(), Some(&[0, 1, 1, 2][..]));
    assert_eq!(ragged.dictionary.map(|words| words.len()), Some(3));
}

#[test]
fn one_row_is_ragged_too_and_a_table_is_not() {
    let rows = [vec![1, 2], vec![3], vec![4, 5, 6]].map(|row| Some(row.into_iter().map(Some)));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
    let field = field_of(&lists);
    let row =
        |index| export::ragged(Source::Row(&lists, Some(&field), index), None, &<_>::default());
    let last = row(2).unwrap();
    assert_eq!(last.values.as_slice::<i32>(), Some(&[4, 5, 6][..]));
    assert_eq!(last.offsets.as_slice::<i32>(), Some(&[0, 3][..]));
    assert_eq!(row(3).unwrap_err(), Error::NoSuchRow { index: 3, len: 3 });

    let column: ArrayRef = Arc::new(lists.clone());
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let refused = export::ragged(&batch, None, &ExportOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::NotRagged { .. }), "{refused}");
}

#[test]
fn a_value_that_does_not_fit_is_named_by_its_row() {
    let rows = [Some(vec![Some(1.0)]), None, Some(vec![]), Some(vec![Some(2.0), Some(1e300)])];
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    let masked = options.clone().with_nulls(NullPolicy::Masked);
    let pad = PadOptions::default();
    let even = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(
        [Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(1e300)])],
        2,
    );
    for (found, expected) in [
        (export::ragged(&lists, None, &masked).map(drop), 3),
        (export::padded(&lists, &pad, &masked).map(drop), 3),
        (export::tensor(&even, &options).map(drop), 1),
    ] {
        let Err(Error::ValueDoesNotFit { value, row, .. }) = found else { panic!("{found:?}") };
        assert_eq!((value, row), (Number::Float(1e300), expected));
    }
}
