//! Codes in chunks whose dictionaries differ: a code stands for one value in all of the result.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, Int8Array, ListArray, RecordBatch,
    StringArray, UInt16Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_dlpack::export::{self, Exported, Source};
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy};
use arrow_schema::{DataType, Field, Schema};

fn codes(words: &[Option<&str>]) -> ArrayRef {
    Arc::new(words.iter().copied().collect::<DictionaryArray<Int8Type>>())
}

fn physical() -> ExportOptions {
    ExportOptions::default().with_physical(true)
}

fn exported(chunks: &[ArrayRef], options: &ExportOptions) -> Result<Exported, Error> {
    let field = Field::new("x", chunks[0].data_type().clone(), true);
    export::prepare((chunks, &field), options)?.run()
}

/// What the codes of a result stand for.
fn decoded(made: &Exported) -> Vec<String> {
    let words = made.dictionary.as_ref().expect("a dictionary").as_string::<i32>();
    let codes = made.values.as_slice::<i8>().expect("codes");
    codes
        .iter()
        .map(|&code| words.value(usize::try_from(code).expect("a code")).to_owned())
        .collect()
}

#[test]
fn a_code_stands_for_one_value_in_all_chunks() {
    let chunks = [
        codes(&[Some("to"), Some("be")]),
        codes(&[Some("or"), Some("to"), Some("be")]).slice(1, 2),
        codes(&[Some("or")]),
    ];
    let made = exported(&chunks, &physical()).unwrap();
    assert_eq!(decoded(&made), ["to", "be", "to", "be", "or"]);

    let options = physical().with_copy(CopyPolicy::Never);
    let forbidden = exported(&chunks, &options).unwrap_err().to_string();
    assert!(forbidden.contains("the dictionaries of its chunks are unified"), "{forbidden}");
}

#[test]
fn the_plan_names_the_bytes_of_the_codes() {
    let chunks = [codes(&[Some("to"), Some("be")]), codes(&[Some("or")])];
    let field = Field::new("x", chunks[0].data_type().clone(), true);
    let prepared = export::prepare((&chunks[..], &field), &physical()).unwrap();
    let plan =
        "copies 3 bytes: the dictionaries of its chunks are unified, 2 chunks are put together";
    assert_eq!(prepared.plan().to_string(), plan);
    assert_eq!(prepared.run().unwrap().values.nbytes(), 3);
}

#[test]
fn one_chunk_with_rows_keeps_its_codes_and_its_dictionary() {
    let first = codes(&[Some("or"), Some("not")]);
    let chunks = [first.slice(0, 0), codes(&[Some("to"), Some("be")])];
    let made = exported(&chunks, &physical().with_copy(CopyPolicy::Never)).unwrap();
    assert_eq!(decoded(&made), ["to", "be"]);
    let of_chunk = chunks[1].as_any_dictionary().keys().to_data().buffers()[0].as_ptr();
    assert_eq!(made.values.as_ptr().cast(), of_chunk);
}

#[test]
fn nulls_of_rows_and_of_dictionaries_stay_nulls() {
    // Under a null a key may be anything, and a dictionary may have a null of its own.
    let keys = Int8Array::new(vec![1, 99, 0].into(), Some(vec![true, false, true].into()));
    let words = StringArray::from(vec![None, Some("be")]);
    let odd: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(words)));
    let chunks = [codes(&[Some("to"), None]), odd];
    let made = exported(&chunks, &physical().with_nulls(NullPolicy::fill(-1))).unwrap();
    assert_eq!(made.values.as_slice::<i8>(), Some(&[0, -1, 1, -1, -1][..]));

    let made = exported(&chunks, &physical().with_nulls(NullPolicy::Masked)).unwrap();
    let mask = made.mask.expect("a mask");
    let mask: ArrayRef = mask.try_into().unwrap();
    let valid: Vec<_> = mask.as_boolean().values().iter().collect();
    assert_eq!(valid, [true, false, true, false, false]);
}

#[test]
fn codes_in_lists_and_in_tables_are_unified_too() {
    let lists = |words: &[Option<&str>]| -> ArrayRef {
        let codes = codes(words);
        let item = Arc::new(Field::new_list_field(codes.data_type().clone(), true));
        Arc::new(FixedSizeListArray::new(item, 2, codes, None))
    };
    let chunks = [lists(&[Some("to"), Some("be")]), lists(&[Some("be"), Some("or")])];
    let made = exported(&chunks, &physical()).unwrap();
    assert_eq!(
        (made.values.shape(), decoded(&made)),
        (&[2, 2][..], vec!["to".into(), "be".into(), "be".into(), "or".to_owned()])
    );

    let batch = |words: &[Option<&str>]| {
        RecordBatch::try_from_iter([("a", codes(words)), ("b", codes(words))]).unwrap()
    };
    let batches = [batch(&[Some("to"), Some("be")]), batch(&[Some("be"), Some("or")])];
    let schema = batches[0].schema();
    let matrix = export::tensor((&batches[..], &*schema), &physical()).unwrap();
    assert_eq!(matrix.as_slice::<i8>(), Some(&[0, 0, 1, 1, 1, 1, 2, 2][..]));
}

#[test]
fn what_has_no_code_or_is_nested_is_an_error() {
    let chunk = |from: u32| -> ArrayRef {
        let words: Vec<String> = (from..from + 100).map(|number| number.to_string()).collect();
        codes(&words.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>())
    };
    let refused = exported(&[chunk(0), chunk(50)], &physical()).unwrap_err();
    assert_eq!(refused, Error::TooManyValues { count: 150, keys: DataType::Int8 });
    let schema = Schema::new(vec![Field::new("words", chunk(0).data_type().clone(), true)]);
    let batch = |from| RecordBatch::try_new(Arc::new(schema.clone()), vec![chunk(from)]).unwrap();
    let refused = export::tensor(Source::Table(&[batch(0), batch(50)], &schema), &physical());
    assert!(matches!(refused, Err(Error::Column { name, .. }) if name == "words"));

    let nested = |number: u16| -> ArrayRef {
        let item = Arc::new(Field::new_list_field(DataType::UInt16, true));
        let lists = ListArray::new(
            item,
            OffsetBuffer::from_lengths([1]),
            Arc::new(UInt16Array::from(vec![number])),
            None,
        );
        let keys = arrow_array::PrimitiveArray::<UInt16Type>::from(vec![0]);
        Arc::new(DictionaryArray::new(keys, Arc::new(lists)))
    };
    assert!(exported(&[nested(1), nested(1)], &physical()).is_ok());
    let refused = exported(&[nested(1), nested(2)], &physical()).unwrap_err();
    assert!(matches!(refused, Error::DifferentDictionaries { .. }), "{refused}");
}
