use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Int8Type};
use arrow_array::{
    BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    FixedSizeListArray, Float64Array, LargeListArray, LargeStringArray, ListArray, ListViewArray,
    MapArray, NullArray, StringArray, StringViewArray, UnionArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, UnionFields};

use super::*;

fn arrays() -> Vec<ArrayRef> {
    let texts = ["a", "", "zwölf", "d", "e", "six"];
    let some = |row: usize| row % 4 != 1;
    let rows = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].into_iter().enumerate();
    let rows = rows.map(|(row, value)| some(row).then(|| vec![Some(value), None]));
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..6 {
        map.keys().append_value(format!("key {row}"));
        map.values().append_value(row);
        map.append(row != 2).unwrap();
    }
    let numbers: ArrayRef =
        Arc::new(Float64Array::from_iter((0..6).map(|row| Some(f64::from(row)))));
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone()));
    let runs = PrimitiveArray::<Int32Type>::from(vec![1, 4, 6]);
    let runs = RunArray::try_new(&runs, &StringArray::from(vec!["x", "y", "z"])).unwrap();
    let columns = [("numbers", numbers.clone()), ("lists", lists.clone())];
    vec![
        numbers,
        lists,
        Arc::new(StructArray::try_from(columns.to_vec()).unwrap()),
        Arc::new(BooleanArray::from_iter((0..6).map(|row| some(row).then_some(row > 2)))),
        Arc::new(Decimal128Array::from_iter((0..6).map(Some))),
        Arc::new(StringArray::from_iter((0..6).map(|row| some(row).then_some(texts[row])))),
        Arc::new(LargeStringArray::from_iter_values(texts)),
        Arc::new(BinaryArray::from_iter_values(texts)),
        Arc::new(StringViewArray::from_iter_values(["longer than twelve bytes"; 6])),
        Arc::new(FixedSizeBinaryArray::try_from_iter(["ab"; 6].iter()).unwrap()),
        Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone())),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2)),
        Arc::new(map.finish()),
        Arc::new(NullArray::new(6)),
        Arc::new(list_view()),
        union(None),
        union(Some(vec![0, 0, 1, 2, 1, 3].into())),
        Arc::new(runs),
    ]
}

fn list_view() -> ListViewArray {
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let values = StringArray::from_iter((0..9).map(|row| (row != 4).then(|| format!("{row}"))));
    let (offsets, sizes) = (vec![7, 0, 3, 3, 0, 8], vec![2, 3, 2, 3, 0, 1]);
    ListViewArray::new(item, offsets.into(), sizes.into(), Arc::new(values), None)
}

/// A dense union if there are offsets, whose codes are not in the order of its children.
fn union(offsets: Option<ScalarBuffer<i32>>) -> ArrayRef {
    let fields =
        [Field::new("numbers", DataType::Float64, true), Field::new("texts", DataType::Utf8, true)];
    let fields = UnionFields::try_new([5, 2], fields).unwrap();
    let numbers = Arc::new(Float64Array::from_iter_values([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    let texts = Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e", "f"]));
    let ids = vec![5, 2, 5, 2, 2, 5].into();
    Arc::new(UnionArray::try_new(fields, ids, offsets, vec![numbers, texts]).unwrap())
}

#[test]
fn slices_of_nested_dictionaries_keep_the_dictionary() {
    let words: Vec<_> = (0..100).map(|word| word.to_string()).collect();
    let words = words.iter().map(String::as_str).collect::<DictionaryArray<Int8Type>>();
    let words: ArrayRef = Arc::new(words);
    let item = Arc::new(Field::new_list_field(words.data_type().clone(), true));
    let entries = [("keys", words.clone()), ("values", words.clone())];
    let entries = StructArray::try_from(entries.to_vec()).unwrap();
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let lengths = OffsetBuffer::from_lengths([2; 50]);
    let arrays: [ArrayRef; 3] = [
        Arc::new(FixedSizeListArray::new(item.clone(), 2, words.clone(), None)),
        Arc::new(ListArray::new(item, lengths.clone(), words, None)),
        Arc::new(MapArray::new(field, lengths, entries, None, false)),
    ];
    for array in arrays {
        let chunks = (0..25).map(|at| array.slice(2 * at, 2)).collect::<Vec<_>>();
        assert_eq!(&concat(&chunks).unwrap(), &array);
    }
}

#[test]
fn slices_of_any_type_are_the_same_rows_as_by_arrow_select() {
    for array in arrays() {
        for parts in [&[0..6, 0..6][..], &[1..5, 2..2, 0..3, 5..6], &[3..3, 3..3]] {
            let chunks = parts.iter().map(|part| array.slice(part.start, part.len()));
            let chunks = chunks.collect::<Vec<_>>();
            let refs = chunks.iter().map(|chunk| &**chunk).collect::<Vec<_>>();
            let expected = arrow_select::concat::concat(&refs).unwrap();
            assert_eq!(&concat(&chunks).unwrap(), &expected, "{}", array.data_type());
        }
    }
}

#[test]
fn a_slice_of_runs_is_copied_without_the_runs_outside() {
    let ends = PrimitiveArray::<Int32Type>::from_iter_values((1..=1000).map(|run| 3 * run));
    let values = StringArray::from_iter_values((0..1000).map(|run| run.to_string()));
    let runs: ArrayRef = Arc::new(RunArray::try_new(&ends, &values).unwrap());
    for (start, rows, expected) in [(0, 3000, 1000), (0, 3, 1), (2, 2, 2), (2997, 3, 1), (7, 1, 1)]
    {
        let slice = runs.slice(start, rows);
        let copy = snapshot::chunks(std::slice::from_ref(&slice)).unwrap();
        assert_eq!(copy[0].as_run::<Int32Type>().values().len(), expected);
        assert_eq!(&copy[0], &slice);
        assert_eq!(&snapshot::everything(&slice).unwrap(), &slice);
    }
    let slices = (0..3000).map(|row| runs.slice(row, 1)).collect::<Vec<_>>();
    let rows = concat(&slices).unwrap();
    let texts = rows.as_run::<Int32Type>().downcast::<StringArray>().unwrap().into_iter();
    assert!(texts.map(Option::unwrap).eq((0..3000).map(|row| (row / 3).to_string())));
}

#[test]
fn offsets_are_rebased_and_those_that_are_none_refused() {
    let of = |chunks: &[(&'static [i32], usize)]| rebased(chunks.iter().copied());
    let (rebased, ranges) = of(&[(&[2, 3, 5], 9), (&[], 0), (&[0], 4), (&[1, 1, 4], 4)]).unwrap();
    assert_eq!(rebased.typed_data::<i32>(), [0, 1, 3, 3, 6]);
    assert_eq!(ranges, [2..5, 0..0, 0..0, 1..4]);
    for wrong in [&[0, 5, 3][..], &[0, 5], &[-1, 2], &[3, 2], &[i32::MAX, i32::MIN]] {
        assert!(of(&[(&[0, 1], 1), (wrong, 4)]).is_err(), "{wrong:?}");
    }
    let most: &[i32] = &[0, i32::MAX];
    for count in [2, 3] {
        let error = of(&vec![(most, usize::MAX); count]).unwrap_err();
        let refused = match error {
            ArrowError::OffsetOverflowError(_) => cfg!(target_pointer_width = "64"),
            // There are no addresses for the values of two of them.
            ArrowError::ExternalError(_) => cfg!(target_pointer_width = "32"),
            _ => false,
        };
        assert!(refused, "{error}");
    }
}
