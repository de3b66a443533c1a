//! Lists as padded tensors, and lists of one length as tensors.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Int32Array, ListArray, ListViewArray,
    RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_dlpack::export::{self, Longer, PadOptions, Side};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, CopyReason, Error, ExportOptions, ImportOptions, LengthsProblem, ManagedTensor,
    NullPolicy, import,
};
use arrow_schema::Field;

type Row<'a> = Option<&'a [i32]>;

fn lists(rows: &[Row<'_>]) -> ListArray {
    let rows = rows.iter().map(|row| row.map(|row| row.iter().copied().map(Some)));
    ListArray::from_iter_primitive::<Int32Type, _, _>(rows)
}

fn field_of(array: &dyn Array) -> Field {
    Field::new("x", array.data_type().clone(), true)
}

fn ints(tensor: &ManagedTensor) -> &[i32] {
    tensor.as_slice().expect("int32")
}

fn bools(tensor: &ManagedTensor) -> Vec<bool> {
    tensor.as_bool_bytes().expect("bool").iter().map(|&byte| byte == 1).collect()
}

const MASKED: NullPolicy = NullPolicy::Masked;

#[test]
fn rows_are_padded_on_either_side_and_cut() {
    let array = lists(&[Some(&[9]), Some(&[1, 2, 3]), Some(&[]), Some(&[4])]).slice(1, 3);
    let plain = ExportOptions::default();
    let pad = PadOptions::default().with_value(-1);
    let longest = export::padded(&array, &pad, &plain).unwrap();
    assert_eq!(longest.values.shape(), [3, 3]);
    assert_eq!(ints(&longest.values), [1, 2, 3, -1, -1, -1, 4, -1, -1]);
    assert_eq!(longest.lengths.as_slice::<i64>(), Some(&[3, 0, 1][..]));
    assert!(longest.mask.is_none() && longest.dictionary.is_none());
    assert!(!longest.values.is_read_only());

    let left = pad.with_side(Side::Left).with_max_length(2);
    let left = export::padded(&array, &left, &plain).unwrap();
    assert_eq!(ints(&left.values), [1, 2, -1, -1, -1, 4]);
    assert_eq!(left.lengths.as_slice::<i64>(), Some(&[2, 0, 1][..]));

    let wide = export::padded(&array, &pad.with_max_length(5), &plain).unwrap();
    assert_eq!(wide.values.shape(), [3, 5]);
    let none = export::padded(&array, &pad.with_max_length(0), &plain).unwrap();
    assert_eq!(
        (none.values.shape(), none.lengths.as_slice::<i64>()),
        (&[3, 0][..], Some(&[0; 3][..]))
    );

    let strict = pad.with_max_length(2).with_longer(Longer::Error);
    let error = export::padded(&array, &strict, &plain).unwrap_err();
    assert_eq!(error, Error::RowTooLong { row: 0, length: 3, most: 2 });
    let empty = export::padded(&lists(&[]), &pad, &plain).unwrap();
    assert_eq!((empty.values.shape(), empty.lengths.shape()), (&[0, 0][..], &[0][..]));
}

#[test]
fn values_are_cast_and_nulls_filled_before_rows_are_padded() {
    let array = lists(&[Some(&[1, 2]), None, Some(&[3])]);
    let pad = PadOptions::default().with_value(0.5);
    let options = ExportOptions::default().with_dtype(DLDataType::FLOAT32);
    assert!(matches!(
        export::padded(&array, &pad, &options),
        Err(Error::Nulls { null_count: 1, .. })
    ));
    let made = export::padded(&array, &pad, &options.clone().with_nulls(MASKED)).unwrap();
    assert_eq!(made.values.as_slice::<f32>(), Some(&[1.0, 2.0, 0.5, 0.5, 3.0, 0.5][..]));
    assert_eq!(made.lengths.as_slice::<i64>(), Some(&[2, 0, 1][..]));
    assert_eq!(bools(&made.mask.unwrap()), [true, false, true]);
    let error = export::padded(&array, &pad, &ExportOptions::default().with_nulls(MASKED));
    assert!(matches!(error, Err(Error::PadDoesNotFit { .. })));

    // The values of a null row are left out, wherever they are.
    let hidden = ListArray::new(
        Arc::new(Field::new_list_field(arrow_schema::DataType::Int32, true)),
        OffsetBuffer::from_lengths([1, 2, 1]),
        Arc::new(Int32Array::from(vec![Some(1), Some(7), Some(8), None])),
        Some(vec![true, false, true].into()),
    );
    let filled = ExportOptions::default().with_nulls(NullPolicy::fill(5));
    let made = export::padded(&hidden, &PadOptions::default().with_max_length(2), &filled).unwrap();
    assert_eq!(ints(&made.values), [1, 0, 0, 0, 5, 0]);
    let masked = ExportOptions::default().with_nulls(MASKED);
    let error = export::padded(&hidden, &PadOptions::default(), &masked).unwrap_err();
    assert!(matches!(error, Error::NullsInRows { null_count: 1, .. }), "{error}");
}

#[test]
fn texts_views_chunks_and_items_of_several_values_are_padded() {
    let plain = ExportOptions::default();
    let bytes = |made: export::Padded| made.values.as_slice::<u8>().map(<[u8]>::to_vec);
    let texts: [ArrayRef; 2] = [
        Arc::new(StringArray::from(vec!["to", "", "b"])),
        Arc::new(StringViewArray::from(vec!["to", "", "b"])),
    ];
    for texts in texts {
        let made = export::padded(&texts, &PadOptions::default(), &plain).unwrap();
        assert_eq!(bytes(made).unwrap(), b"to\0\0b\0");
    }
    let views = ListViewArray::new(
        Arc::new(Field::new_list_field(arrow_schema::DataType::Int32, true)),
        ScalarBuffer::from(vec![1, 0, 3]),
        ScalarBuffer::from(vec![2, 2, 0]),
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        None,
    );
    let made = export::padded(&views, &PadOptions::default(), &plain).unwrap();
    assert_eq!(ints(&made.values), [2, 3, 1, 2, 0, 0]);

    let chunks: [ArrayRef; 2] = [Arc::new(lists(&[Some(&[1])])), Arc::new(lists(&[Some(&[2, 3])]))];
    let field = field_of(&chunks[0]);
    let made = export::padded((&chunks[..], &field), &PadOptions::default(), &plain).unwrap();
    assert_eq!(ints(&made.values), [1, 0, 2, 3]);
    let none = export::padded((&[][..], &field), &PadOptions::default(), &plain).unwrap();
    assert_eq!(none.values.shape(), [0, 0]);

    let pairs = (0..3).map(|at| Some([Some(2 * at), Some(2 * at + 1)]));
    let pairs = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(pairs, 2);
    let item = Arc::new(Field::new_list_field(pairs.data_type().clone(), true));
    let rows = ListArray::new(item, OffsetBuffer::from_lengths([1, 2]), Arc::new(pairs), None);
    let made = export::padded(&rows, &PadOptions::default().with_value(-1), &plain).unwrap();
    assert_eq!(made.values.shape(), [2, 2, 2]);
    assert_eq!(ints(&made.values), [0, 1, -1, -1, 2, 3, 4, 5]);
    let dense = export::tensor(&rows.slice(1, 1), &plain).unwrap();
    assert_eq!((dense.shape(), ints(&dense)), (&[1, 2, 2][..], &[2, 3, 4, 5][..]));
}

#[test]
fn a_plan_of_padding_names_its_copies() {
    let array = lists(&[Some(&[1, 2]), Some(&[])]);
    let options = ExportOptions::default().with_dtype(DLDataType::INT64).with_nulls(MASKED);
    let plan = export::prepare_padded(&array, &PadOptions::default(), &options).unwrap().plan();
    let sizes: Vec<usize> = plan.steps.iter().map(|step| step.nbytes).collect();
    assert_eq!(sizes, [2 * 8, 4 * 8, 2 * 8, 2]);
    assert_eq!(plan.steps[1].reasons, [CopyReason::Padded(2)]);
    assert_eq!(plan.steps[2].reasons, [CopyReason::Lengths]);
    let never = ExportOptions::default().with_copy(CopyPolicy::Never);
    let error = export::padded(&array, &PadOptions::default(), &never).unwrap_err();
    assert_eq!(error, Error::CopyForbidden { reason: CopyReason::Padded(2), nbytes: 16 });
}

#[test]
#[cfg(target_pointer_width = "64")]
fn lengths_that_no_memory_holds_are_errors() {
    let array = lists(&[Some(&[1, 2]), Some(&[])]);
    for most in [1 << 60, 1 << 62, usize::MAX, 1 << 46] {
        let pad = PadOptions::default().with_max_length(most);
        let error = export::padded(&array, &pad, &ExportOptions::default()).unwrap_err();
        let refused = matches!(error, Error::Overflow(_) | Error::OutOfMemory { .. });
        assert!(refused, "{most}: {error}");
    }
    let pad = PadOptions::default().with_max_length(1 << 60);
    let none = export::padded(&lists(&[]), &pad, &ExportOptions::default()).unwrap();
    assert_eq!(none.values.shape(), [0, 1 << 60]);
}

/// An array whose offsets arrow-rs did not check, as one of another library.
fn hostile(offsets: &[i32], values: i32) -> ListArray {
    let data = lists(&[Some(&[1]), Some(&[2])]).into_data().into_builder();
    let items = Int32Array::from_iter_values(0..values).into_data();
    let data = data.buffers(vec![Buffer::from_slice_ref(offsets)]).child_data(vec![items]);
    // SAFETY: nothing but this crate reads the array, and this test is that it does not trust offsets.
    #[expect(unsafe_code, reason = "makes what a checked constructor refuses")]
    ListArray::from(unsafe { data.build_unchecked() })
}

#[test]
fn offsets_that_lead_astray_are_refused() {
    for offsets in [[0, 3, 2], [-1, 0, 1], [0, 1, 9], [2, 1, 2]] {
        let array = hostile(&offsets, 4);
        for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never] {
            let options = ExportOptions::default().with_copy(copy);
            let padded = export::padded(&array, &PadOptions::default(), &options).unwrap_err();
            assert!(matches!(padded, Error::BadOffsets(_)), "{offsets:?}: {padded}");
            let dense = export::tensor(&array, &options).unwrap_err();
            assert!(matches!(dense, Error::BadOffsets(_)), "{offsets:?}: {dense}");
        }
    }
}

#[test]
fn lists_of_one_length_are_shared_as_a_tensor() {
    let never = ExportOptions::default().with_copy(CopyPolicy::Never);
    let array = lists(&[Some(&[9, 9]), Some(&[1, 2]), Some(&[3, 4]), Some(&[5, 6])]).slice(1, 3);
    let tensor = export::tensor(&array, &never).unwrap();
    assert_eq!((tensor.shape(), &*tensor.strides()), (&[3, 2][..], &[2, 1][..]));
    assert_eq!(ints(&tensor), [1, 2, 3, 4, 5, 6]);
    let values = array.values().as_primitive::<Int32Type>().values();
    assert_eq!(tensor.as_ptr().cast::<i32>(), values[2..].as_ptr());
    assert!(export::explain(&array, &never).unwrap().is_zero_copy());
    let prepared = export::prepare(&array, &never).unwrap();
    assert_eq!((prepared.dtype(), &*prepared.shape()), (DLDataType::INT32, &[3, 2][..]));

    let field = field_of(&array);
    let chunks: [ArrayRef; 3] =
        [Arc::new(array.slice(0, 1)), Arc::new(array.slice(1, 0)), Arc::new(array.slice(2, 1))];
    let wide = ExportOptions::default().with_dtype(DLDataType::INT64);
    let tensor = export::tensor((&chunks[..], &field), &wide).unwrap();
    assert_eq!((tensor.shape(), tensor.as_slice::<i64>()), (&[2, 2][..], Some(&[1, 2, 5, 6][..])));
    for none in [export::tensor((&[][..], &field), &never), export::tensor(&lists(&[]), &never)] {
        assert_eq!(none.unwrap().shape(), [0, 0]);
    }
    let hollow = export::tensor(&lists(&[Some(&[]), Some(&[])]), &never).unwrap();
    assert_eq!(hollow.shape(), [2, 0]);
    let row = export::tensor(export::Source::Row(&array, None, 1), &never).unwrap();
    assert_eq!((row.shape(), ints(&row)), (&[2][..], &[3, 4][..]));
}

#[test]
fn an_error_names_the_first_row_of_another_length_and_both_lengths() {
    let chunks: [ArrayRef; 2] =
        [Arc::new(lists(&[Some(&[1, 2]), Some(&[3, 4])])), Arc::new(lists(&[Some(&[5])]))];
    let field = field_of(&chunks[0]);
    let error = export::tensor((&chunks[..], &field), &ExportOptions::default()).unwrap_err();
    assert_eq!(error, Error::RowLength { row: 2, length: 1, expected: 2 });
    assert!(error.is_type_refusal());
    assert!(error.to_string().contains("export::padded"), "{error}");
}

#[test]
fn null_rows_of_even_lists_are_filled_or_masked() {
    let array = lists(&[None, Some(&[1, 2]), None, Some(&[3, 4])]);
    let error = export::tensor(&array, &ExportOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Nulls { null_count: 2, len: 4, .. }), "{error}");
    let with = |nulls| ExportOptions::default().with_nulls(nulls);
    let filled = export::tensor(&array, &with(NullPolicy::fill(-1))).unwrap();
    assert_eq!((filled.shape(), ints(&filled)), (&[4, 2][..], &[-1, -1, 1, 2, -1, -1, 3, 4][..]));
    let nan = export::tensor(&array, &with(NullPolicy::Nan)).unwrap();
    assert!(nan.as_slice::<f64>().unwrap()[..2].iter().all(|value| value.is_nan()));
    let prepared = export::prepare(&array, &with(MASKED)).unwrap();
    assert_eq!(prepared.plan().steps[0].reasons, [CopyReason::Padded(2)]);
    let masked = prepared.run().unwrap();
    assert_eq!(masked.values.shape(), [4, 2]);
    let mask = masked.mask.unwrap();
    assert_eq!(mask.shape(), [4, 2]);
    assert_eq!(bools(&mask), [false, false, true, true, false, false, true, true]);
    let never = with(MASKED).with_copy(CopyPolicy::Never);
    assert!(matches!(export::tensor(&array, &never), Err(Error::CopyForbidden { .. })));
    let none = export::tensor(&lists(&[None, None]), &with(NullPolicy::fill(0))).unwrap();
    assert_eq!(none.shape(), [2, 0]);

    // A mask shows the nulls within the rows too.
    let rows = [Some(vec![Some(1), None]), Some(vec![Some(3), Some(4)])];
    let inner = ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
    let error = export::tensor(&inner, &ExportOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Nulls { null_count: 1, len: 4, .. }), "{error}");
    let mask = export::mask(&inner, &ExportOptions::default()).unwrap();
    assert_eq!((mask.shape(), bools(&mask)), (&[2, 2][..], vec![true, false, true, true]));
}

#[test]
fn lists_in_tables_and_handed_over_are_refused_whatever_their_lengths() {
    let even: ArrayRef = Arc::new(lists(&[Some(&[1, 2]), Some(&[3, 4])]));
    let batch = RecordBatch::try_from_iter([("x", Arc::clone(&even))]).unwrap();
    let options = ExportOptions::default();
    let refused = |error: Error| match error {
        Error::Column { error, .. } => matches!(*error, Error::UnsupportedType { .. }),
        _ => false,
    };
    assert!(refused(export::columns(&batch, &options).unwrap_err()));
    assert!(refused(export::tensor(&batch, &options).unwrap_err()));
    drop(batch);
    let handed_over = export::into_tensor(even).unwrap_err();
    assert!(matches!(handed_over.error, Error::UnsupportedType { .. }));
}

#[test]
fn padded_rows_and_their_lengths_are_lists_again() {
    let array = lists(&[Some(&[1, 2, 3]), None, Some(&[]), Some(&[4])]);
    let options = ExportOptions::default().with_nulls(MASKED);
    let made = export::padded(&array, &PadOptions::default(), &options).unwrap();
    let back = ImportOptions::default();
    let (again, _) =
        import::padded(made.values, made.lengths, made.mask, made.side, &back).unwrap();
    assert_eq!(again.as_list::<i32>(), &array);
    let on_the_left = PadOptions::default().with_side(Side::Left);
    let made = export::padded(&array, &on_the_left, &options).unwrap();
    assert_eq!(made.values.as_slice::<i32>().unwrap()[9..], [0, 0, 4]);
    assert_eq!(ArrayRef::try_from(made).unwrap().as_list::<i32>(), &array);

    let vector =
        |values: Vec<i32>, shape: &[usize]| ManagedTensor::from_vec(values, shape).unwrap();
    let values = || vector((0..6).collect(), &[2, 3]);
    let problem = |lengths: ManagedTensor| match import::padded(
        values(),
        lengths,
        None,
        Side::Right,
        &ImportOptions::default(),
    ) {
        Err(Error::BadLengths(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let bad = |row, length| LengthsProblem::Row { row, length, width: 3 };
    assert_eq!(problem(vector(vec![1, 4], &[2])), bad(1, 4));
    assert_eq!(problem(vector(vec![-1, 1], &[2])), bad(0, -1));
    assert_eq!(problem(vector(vec![1], &[1])), LengthsProblem::Count { lengths: 1, rows: 2 });
    let floats = ManagedTensor::from_vec(vec![1.0, 2.0], &[2]).unwrap();
    assert_eq!(problem(floats), LengthsProblem::Dtype(DLDataType::FLOAT64));
    let flat =
        import::padded(vector(vec![1, 2], &[2]), vector(vec![1, 1], &[2]), None, Side::Left, &back);
    assert!(matches!(flat, Err(Error::WrongRank { .. })));
    let never = ImportOptions::default().with_copy(CopyPolicy::Never);
    let error =
        import::padded(values(), vector(vec![1, 1], &[2]), None, Side::Left, &never).unwrap_err();
    assert!(matches!(error, Error::CopyForbidden { reason: CopyReason::Padded(3), .. }));
    let mask = export::array(&BooleanArray::from(vec![true])).unwrap();
    let error = import::padded(values(), vector(vec![1, 1], &[2]), Some(mask), Side::Left, &back)
        .unwrap_err();
    assert!(matches!(error, Error::BadMask(_)));
}

#[test]
fn a_value_that_is_cut_away_need_not_fit() {
    let rows = [
        Some(vec![Some(1.0), Some(1e300)]),
        None,
        Some(vec![]),
        Some(vec![Some(2.0), Some(3.0), Some(-1e300)]),
    ];
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
    let options =
        ExportOptions::default().with_dtype(DLDataType::FLOAT32).with_nulls(NullPolicy::Masked);
    let cut = |width: usize| {
        let pad = PadOptions::default().with_max_length(width);
        export::padded(&lists, &pad, &options)
    };
    let made = cut(1).unwrap();
    assert_eq!(made.values.as_slice::<f32>(), Some(&[1.0, 0.0, 0.0, 2.0][..]));
    assert_eq!(made.lengths.as_slice::<i64>(), Some(&[1, 0, 0, 1][..]));
    for (width, expected) in [(2, 0), (3, 0)] {
        let Err(Error::ValueDoesNotFit { row, .. }) = cut(width) else { panic!("1e300 is read") };
        assert_eq!(row, expected);
    }
    let pad = PadOptions::default().with_max_length(3);
    let refused = export::padded(&lists.slice(1, 3), &pad, &options).unwrap_err();
    assert!(matches!(refused, Error::ValueDoesNotFit { row: 2, .. }), "{refused}");
}
