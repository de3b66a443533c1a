//! Errors can be told apart by kind, in a column as in a table, and say what can be done in Rust.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};

use arrow_array::{Float64Array, Int32Array, RecordBatchIterator, record_batch};
use arrow_dlpack::batches::{BatchOptions, Batches};
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode};
use arrow_dlpack::{CopyPolicy, Error, ErrorKind, ExportOptions, ManagedTensor, export, import};
use half::f16;

fn options() -> ExportOptions {
    ExportOptions::default()
}

#[test]
fn a_problem_is_of_one_kind_in_a_column_and_in_a_table() {
    let batch =
        record_batch!(("x", Int32, [Some(1), None]), ("y", Int32, [Some(1), None])).unwrap();
    let column = export::tensor(batch.column(0), &options()).unwrap_err();
    let table = export::tensor(&batch, &options()).unwrap_err();
    assert_eq!((column.kind(), table.kind()), (ErrorKind::Nulls, ErrorKind::Nulls));
    let leaves: Vec<_> = table.leaves().collect();
    assert_eq!(leaves, [(Some("x"), &column), (Some("y"), &column)]);
    assert_eq!(column.leaves().collect::<Vec<_>>(), [(None, &column)]);

    let batch = record_batch!(("x", Int32, [Some(1), None]), ("y", Utf8, ["a", "b"])).unwrap();
    let both = export::columns(&batch, &options()).unwrap_err();
    assert_eq!(both.kind(), ErrorKind::Several);
    let kinds: Vec<_> = both.leaves().map(|(name, error)| (name, error.kind())).collect();
    assert_eq!(kinds, [(Some("x"), ErrorKind::Nulls), (Some("y"), ErrorKind::Type)]);
    assert!(both.is_type_refusal());
}

#[test]
fn an_error_passes_a_caught_panic() {
    fn check<T: UnwindSafe + RefUnwindSafe + Send + Sync + 'static>() {}
    check::<Error>();
    let error = Error::NoColumns;
    assert_eq!(catch_unwind(|| error.to_string()).unwrap(), error.to_string());
}

#[test]
fn words_name_what_there_is() {
    let none = DLDataType::scalar(DLDataTypeCode(77), 32);
    let tensor = ManagedTensor::from_bytes(vec![0_u8; 4], none, &[1]).unwrap();
    let words = import::array(tensor).unwrap_err().to_string();
    assert!(words.starts_with("dtype(77, 32 bits) has no Arrow type here"), "{words}");

    let four = || ManagedTensor::from_vec(vec![1_i32, 2, 3, 4], &[4]).unwrap();
    let words = |shape| four().reshape(shape, CopyPolicy::IfNeeded).unwrap_err().to_string();
    let several = "shape [4] cannot be reshaped to [-1, -1]: only one extent can be -1";
    assert_eq!(words(&[-1, -1]), several);
    assert_eq!(words(&[3, -1]), "shape [4] cannot be reshaped to [3, -1]");

    let batch = record_batch!(("x", Int32, [1, 2])).unwrap();
    let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let twice = BatchOptions::default().with_columns(["x", "x"]);
    let refused = Batches::try_new(reader, &twice).expect_err("it is a name for two");
    assert_eq!(refused.to_string(), "the column \"x\" is asked for twice");
    assert_eq!(refused.kind(), ErrorKind::Name);

    // What CannotBecome advises.
    let refused = Int32Array::try_from(ManagedTensor::from_vec(vec![1.0_f64, 2.0], &[2]).unwrap());
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("ManagedTensor::cast"), "{words}");
}

#[test]
fn a_tensor_is_cast_by_the_rules_of_an_export() {
    let tensor = ManagedTensor::from_vec(vec![1.0_f64, 2.0, 65504.0, -0.5], &[2, 2]).unwrap();
    let halves = tensor.cast(DLDataType::FLOAT16).unwrap();
    assert_eq!((halves.shape(), halves.is_read_only()), (&[2, 2][..], false));
    let expected = [1.0, 2.0, 65504.0, -0.5].map(f16::from_f64);
    assert_eq!(halves.as_slice::<f16>(), Some(&expected[..]));
    let refused = tensor.cast(DLDataType::INT64).unwrap_err();
    assert!(matches!(refused, Error::ValueDoesNotFit { row: 3, .. }), "{refused}");
    let refused = tensor.cast(DLDataType::BOOL).unwrap_err();
    assert!(matches!(refused, Error::CannotCast { .. }), "{refused}");

    // Of one column of a matrix, whose elements are apart, and of elements that share bytes.
    let column = export::array(&Float64Array::from(vec![1.0, 2.0])).unwrap();
    let spread = column.broadcast_to(&[3, 2]).unwrap().cast(DLDataType::INT8).unwrap();
    assert_eq!(spread.as_slice::<i8>(), Some(&[1, 2, 1, 2, 1, 2][..]));
    let fours = DLDataType::scalar(DLDataTypeCode::FLOAT4_E2M1FN, 4);
    let packed = ManagedTensor::from_bytes(vec![0x42_u8], fours, &[2]).unwrap();
    let same = packed.cast(fours).unwrap();
    assert_eq!((same.dtype(), same.shape()), (fours, &[2][..]));
    match packed.cast(DLDataType::FLOAT32) {
        Ok(wide) => assert_eq!(wide.as_slice::<f32>(), Some(&[1.0, 2.0][..])),
        Err(error) => assert!(matches!(error, Error::CannotCast { .. }), "{error}"),
    }
}
