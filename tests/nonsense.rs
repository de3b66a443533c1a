//! Calls that safe Rust allows and that make no sense: each is an error, never a panic.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array,
    Float64Array, Int8Array, Int32Array, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    new_empty_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Number, Order,
    Representation, from_dlpack, import, to_dlpack,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit, UnionFields, UnionMode};

use support::{Abi, Producer, dtype};

mod support;

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, true))
}

/// Types that can be written down, and of which there is no array.
fn impossible() -> Vec<DataType> {
    let text = || Box::new(DataType::Utf8);
    let keys = |data_type| DataType::Dictionary(Box::new(data_type), text());
    let ends = |data_type| Arc::new(Field::new("run_ends", data_type, false));
    let map = |data_type| DataType::Map(Arc::new(Field::new("entries", data_type, false)), false);
    let one = Fields::from(vec![Field::new("key", DataType::Utf8, false)]);
    vec![
        DataType::FixedSizeBinary(-1),
        DataType::FixedSizeBinary(i32::MIN),
        DataType::FixedSizeList(item(DataType::Int8), -1),
        DataType::FixedSizeList(item(DataType::Int8), i32::MIN),
        DataType::Time32(TimeUnit::Microsecond),
        DataType::Time32(TimeUnit::Nanosecond),
        DataType::Time64(TimeUnit::Second),
        DataType::Time64(TimeUnit::Millisecond),
        keys(DataType::Float32),
        keys(DataType::Utf8),
        keys(DataType::Date32),
        keys(DataType::Dictionary(Box::new(DataType::Int8), text())),
        DataType::Union(UnionFields::empty(), UnionMode::Sparse),
        DataType::Union(UnionFields::empty(), UnionMode::Dense),
        DataType::RunEndEncoded(ends(DataType::Int8), item(DataType::Int8)),
        DataType::RunEndEncoded(ends(DataType::Utf8), item(DataType::Int8)),
        map(DataType::Int32),
        map(DataType::Struct(one)),
        map(DataType::Struct(Fields::empty())),
    ]
}

/// The types, and others that have them within.
fn impossible_at_any_level() -> Vec<DataType> {
    impossible()
        .into_iter()
        .flat_map(|data_type| {
            [
                data_type.clone(),
                DataType::FixedSizeList(item(data_type.clone()), 2),
                DataType::FixedSizeList(item(data_type.clone()), 0),
                DataType::List(item(data_type.clone())),
                DataType::LargeListView(item(data_type.clone())),
                DataType::Struct(Fields::from(vec![Field::new("a", data_type.clone(), true)])),
                DataType::Dictionary(Box::new(DataType::Int8), Box::new(data_type)),
            ]
        })
        .step_by(if cfg!(miri) { 50 } else { 1 })
        .collect()
}

fn every_option() -> Vec<ExportOptions> {
    let mut all = Vec::new();
    for copy in [CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always] {
        for nulls in [
            NullPolicy::Refuse,
            NullPolicy::Fill(Number::Int(0)),
            NullPolicy::Nan,
            NullPolicy::Masked,
        ] {
            for physical in [false, true] {
                for order in [Order::RowMajor, Order::ColumnMajor] {
                    all.push(
                        ExportOptions::default()
                            .with_copy(copy)
                            .with_nulls(nulls)
                            .with_physical(physical)
                            .with_dtype(None)
                            .with_order(order),
                    );
                }
            }
        }
    }
    all
}

#[test]
fn chunks_of_no_array_of_no_possible_type_are_refused() {
    for data_type in impossible_at_any_level() {
        let field = Field::new("x", data_type, true);
        let schema = Schema::new(vec![field.clone()]);
        for options in every_option() {
            for source in [Source::Chunks(&[], &field), Source::Table(&[], &schema)] {
                assert!(export::tensor(source, &options).is_err(), "{source:?}");
                assert!(export::explain(source, &options).is_err(), "{source:?}");
                assert!(export::mask(source, &options).is_err(), "{source:?}");
            }
        }
    }
}

#[test]
fn a_field_of_no_possible_type_is_nothing_to_become() {
    let bytes = [0u8; 64];
    for data_type in impossible_at_any_level() {
        let fields = [
            Field::new("x", data_type.clone(), true),
            Extension::opaque(dtype(4, 16, 1)).annotate(Field::new("x", data_type.clone(), true)),
            Extension::opaque(dtype(5, 64, 1)).annotate(Field::new("x", data_type.clone(), true)),
            Extension::opaque(dtype(5, 32, 1)).annotate(Field::new("x", data_type, true)),
        ];
        for field in fields {
            for (dtype, shape) in [
                (dtype(0, 32, 1), &[2][..]),
                (dtype(0, 64, 1), &[2]),
                (dtype(0, 32, 1), &[2, 2]),
                (dtype(0, 64, 1), &[2, 2]),
                (dtype(0, 8, 1), &[0, 2]),
                (dtype(0, 32, 1), &[0]),
                (dtype(4, 16, 1), &[2]),
                (dtype(5, 64, 1), &[2]),
                (dtype(5, 32, 1), &[2]),
            ] {
                let representation = Representation::Field(Arc::new(field.clone()));
                let options = ImportOptions::default().with_representation(representation);
                let tensor = || {
                    let strides: Vec<i64> = shape.iter().map(|_| 1).collect();
                    Producer::bytes(dtype, &bytes, shape, &strides).tensor(Abi::Versioned)
                };
                let (made, watch) = tensor();
                let made = made.unwrap();
                assert!(import::field(&made, &options).is_err(), "{field:?} {dtype}");
                assert!(import::explain(&made, &options).is_err(), "{field:?} {dtype}");
                assert!(from_dlpack(made, &options).is_err(), "{field:?} {dtype}");
                watch.released_once();
                let (made, watch) = tensor();
                assert!(import::matrix(made.unwrap(), &["a", "b"], &options).is_err());
                watch.released_once();
            }
        }
    }
}

#[test]
fn a_table_is_what_its_schema_says() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let field = |name, data_type| Field::new(name, data_type, true);
    for schema in [
        Schema::new(vec![field("a", DataType::Int32), field("b", DataType::Int32)]),
        Schema::new(vec![field("a", DataType::Int64)]),
        Schema::empty(),
    ] {
        let batches = std::slice::from_ref(&batch);
        for options in every_option() {
            let source = Source::Table(batches, &schema);
            assert!(export::tensor(source, &options).is_err());
            assert!(export::mask(source, &options).is_err());
            assert!(export::explain(source, &options).is_err());
        }
    }
}

#[test]
fn a_table_without_columns_has_neither_matrix_nor_mask() {
    let schema = Arc::new(Schema::empty());
    for rows in [0, 3, usize::MAX] {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
        let twice = [batch.clone(), batch];
        for batches in [&[][..], &twice[..1], &twice] {
            for options in every_option() {
                let source = Source::Table(batches, &schema);
                assert_eq!(export::tensor(source, &options).unwrap_err(), Error::NoColumns);
                assert_eq!(export::mask(source, &options).unwrap_err(), Error::NoColumns);
                assert_eq!(export::explain(source, &options).unwrap_err(), Error::NoColumns);
            }
        }
    }
}

/// Float32 in so many lists of one item each.
fn nested(levels: usize) -> ArrayRef {
    let mut array: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    for _ in 0..levels {
        array = Arc::new(FixedSizeListArray::new(item(array.data_type().clone()), 1, array, None));
    }
    array
}

#[test]
fn types_are_followed_only_so_deep() {
    for (levels, followed) in [(0, true), (1, true), (63, true), (64, false), (500, false)] {
        let array = nested(levels);
        let field = Field::new("x", array.data_type().clone(), true);
        let lists = ListArray::new(
            item(array.data_type().clone()),
            OffsetBuffer::from_lengths([1]),
            Arc::clone(&array),
            None,
        );
        let list = Field::new("x", lists.data_type().clone(), true);
        let options = ExportOptions::default();
        for outcome in [
            to_dlpack(&array, &field, &options).map(|tensor| tensor.ndim()),
            export::tensor(Source::Row(&array, Some(&field), 0), &options)
                .map(|row| row.ndim() + 1),
            export::tensor(Source::Chunks(&[], &field), &options).map(|tensor| tensor.ndim()),
            export::array(&array).map(|tensor| tensor.ndim()),
        ] {
            assert_eq!(
                outcome,
                if followed { Ok(levels + 1) } else { Err(Error::TooDeep { most: 64 }) }
            );
        }
        let ragged = export::ragged((&lists, &list), None, &options);
        assert_eq!(ragged.is_ok(), levels < 63, "{levels}");

        // No tensor has more axes than that.
        let ndim = (levels + 1).min(256);
        let ones = vec![1; ndim];
        let as_lists = Representation::FixedSizeList;
        for representation in [as_lists, Representation::Field(Arc::new(field))] {
            let (tensor, watch) =
                Producer::bytes(DLDataType::FLOAT32, &[0; 4], &ones, &ones).tensor(Abi::Versioned);
            let options = ImportOptions::default().with_representation(representation);
            let outcome = from_dlpack(tensor.unwrap(), &options).map(|(array, _)| array.len());
            assert_eq!(outcome, if followed { Ok(1) } else { Err(Error::TooDeep { most: 64 }) });
            watch.released_once();
        }
    }
}

#[test]
fn a_tensor_may_have_more_axes_than_types_have_levels() {
    let many = 256;
    let ones = vec![1; many];
    let lists = Representation::FixedSizeList;
    for (representation, rank) in [(Representation::Canonical, Some(many)), (lists, None)] {
        let (tensor, watch) =
            Producer::bytes(DLDataType::FLOAT32, &[0; 4], &ones, &ones).tensor(Abi::Versioned);
        let options = ImportOptions::default().with_representation(representation);
        let array = from_dlpack(tensor.unwrap(), &options);
        let back =
            array.and_then(|(array, field)| to_dlpack(&array, &field, &ExportOptions::default()));
        assert_eq!(back.as_ref().ok().map(ManagedTensor::ndim), rank);
        drop(back);
        watch.released_once();
    }
}

/// The extension type of an array may say that there are more.
#[test]
fn more_axes_than_a_tensor_may_have_are_refused_on_the_way_out() {
    // Miri takes ten minutes to parse the JSON of more.
    let many = if cfg!(miri) { 1_000 } else { 100_000 };
    for (axes, taken) in [(255, true), (256, false), (many, false)] {
        let lists = DataType::new_fixed_size_list(DataType::Int32, 1, false);
        let values = new_empty_array(&lists);
        let (shape, dimensions) = (vec![1; axes], Dimensions::default());
        let extension = Extension::FixedShapeTensor { shape, dimensions };
        let field = extension.annotate(Field::new("x", lists, true));
        let tensor = to_dlpack(&values, &field, &ExportOptions::default());
        let refused = Err(Error::TooManyAxes { ndim: axes + 1, most: 256 });
        assert_eq!(tensor.map(|tensor| tensor.ndim()), if taken { Ok(axes + 1) } else { refused });
    }
}

/// Every code that there is and some that there are not, with every sensible number of bits and lanes and
/// some others.
fn dtypes() -> impl Iterator<Item = DLDataType> {
    let codes = (0..20).chain([99, 255]);
    codes.flat_map(|code| {
        [0, 1, 4, 6, 7, 8, 16, 32, 64, 128, 255].into_iter().flat_map(move |bits| {
            [0, 1, 2, u16::MAX].into_iter().map(move |lanes| dtype(code, bits, lanes))
        })
    })
}

#[test]
#[cfg_attr(miri, ignore = "there are too many")]
fn any_dtype_can_be_asked_for_and_is_there_or_refused() {
    let fills = [
        Number::Bool(true),
        Number::Int(0),
        Number::Int(i128::MIN),
        Number::Int(i128::MAX),
        Number::Float(f64::NAN),
        Number::Float(f64::MIN_POSITIVE),
        Number::Float(-f64::INFINITY),
        Number::Float(1e300),
    ];
    let mut policies = vec![NullPolicy::Refuse, NullPolicy::Nan, NullPolicy::Masked];
    policies.extend(fills.map(NullPolicy::Fill));
    let columns: [ArrayRef; 5] = [
        Arc::new(Int8Array::from(vec![Some(1), None])),
        Arc::new(Float64Array::from(vec![Some(1.0), None])),
        Arc::new(BooleanArray::from(vec![Some(true), None])),
        Arc::new(FixedSizeBinaryArray::new(0, Buffer::default(), Some(NullBuffer::new_null(2)))),
        new_empty_array(&DataType::UInt64),
    ];
    for dtype in dtypes() {
        for nulls in policies.iter().copied() {
            let options = ExportOptions::default().with_nulls(nulls).with_dtype(dtype);
            for column in &columns {
                let field = Field::new("x", column.data_type().clone(), true);
                let batch = RecordBatch::try_from_iter([("x", Arc::clone(column))]);
                let row = export::tensor(Source::Row(column, Some(&field), 1), &options);
                let table = export::tensor(&batch.unwrap(), &options);
                for tensor in
                    [to_dlpack(column, &field, &options), row, table].into_iter().flatten()
                {
                    assert_eq!(tensor.dtype(), dtype);
                }
            }
        }
    }
}

#[test]
fn offsets_are_of_the_two_types_that_there_are() {
    let texts = StringArray::from(vec![Some("a"), None, Some("bc")]);
    let field = Field::new("x", DataType::Utf8, true);
    let nulls = NullPolicy::Masked;
    for dtype in dtypes() {
        let options = ExportOptions::default().with_nulls(nulls);
        let ragged = export::ragged((&texts, &field), Some(dtype), &options);
        if dtype == DLDataType::INT32 || dtype == DLDataType::INT64 {
            assert_eq!(ragged.unwrap().offsets.dtype(), dtype);
        } else {
            assert_eq!(ragged.unwrap_err(), Error::NoOffsets(dtype));
        }
    }
}

#[test]
fn there_is_no_row_behind_the_last() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    for array in [texts, numbers] {
        let field = Field::new("x", array.data_type().clone(), true);
        for index in [1, 2, usize::MAX] {
            let row = Source::Row(&array, Some(&field), index);
            for options in every_option() {
                let refused = Error::NoSuchRow { index, len: 1 };
                assert_eq!(export::tensor(row, &options).unwrap_err(), refused);
                assert_eq!(export::mask(row, &options).unwrap_err(), refused);
                assert_eq!(export::explain(row, &options).unwrap_err(), refused);
            }
        }
    }
}

/// Every function that takes an array and its field.
#[test]
fn a_field_that_is_another_arrays_is_refused() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let mut others = impossible_at_any_level();
    others.extend([DataType::Null, DataType::UInt32, DataType::Date32, DataType::Utf8]);
    others.push(DataType::List(item(DataType::Int32)));
    for data_type in others {
        for field in [
            Field::new("x", data_type.clone(), true),
            Extension::Bool8.annotate(Field::new("x", data_type.clone(), true)),
        ] {
            let refused = Error::FieldMismatch { field: data_type.clone(), array: DataType::Int32 };
            let schema = Schema::new(vec![field.clone()]);
            let batch = RecordBatch::try_from_iter([("x", Arc::clone(&array))]).unwrap();
            let batches = std::slice::from_ref(&batch);
            for options in every_option() {
                assert_eq!(to_dlpack(&array, &field, &options).unwrap_err(), refused);
                for source in [
                    Source::Array(&array, Some(&field)),
                    Source::Row(&array, Some(&field), 0),
                    Source::Chunks(&[Arc::clone(&array)], &field),
                ] {
                    assert_eq!(export::tensor(source, &options).unwrap_err(), refused);
                    assert_eq!(export::mask(source, &options).unwrap_err(), refused);
                    assert_eq!(export::explain(source, &options).unwrap_err(), refused);
                }
                let error = Box::new(refused.clone());
                let refused = Error::Column { name: "x".to_owned(), error };
                let table = Source::Table(batches, &schema);
                assert_eq!(export::tensor(table, &options).unwrap_err(), refused);
                assert_eq!(export::mask(table, &options).unwrap_err(), refused);
            }
            let ragged = export::ragged((&array, &field), None, &ExportOptions::default());
            assert_eq!(ragged.unwrap_err(), refused);
            let given = export::into_tensor_with_field(Arc::new(Int32Array::from(vec![1])), &field);
            assert_eq!(given.unwrap_err().error, refused);
        }
    }
}
