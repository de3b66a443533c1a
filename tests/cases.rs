//! Every type, layout and option does what data/cases.json says. pyarrow, NumPy and `ml_dtypes` computed
//! it, and the Python suite reads the same cases.
#![cfg(not(miri))] // which takes hours to read them
#![expect(unsafe_code, reason = "reads strided tensors as a C consumer does")]

use std::collections::HashSet;
use std::fs::{self, File};
use std::panic::{self, AssertUnwindSafe};
use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_data::ArrayData;
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, Error, ExportOptions, ImportOptions, ManagedTensor, NullPolicy, Number, Plan,
    Representation, from_dlpack, import,
};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit};
use serde_json::Value;

use support::{Abi, Data, Producer, strided};

mod support;

// --- the files ------------------------------------------------------------------------------------

/// Both chunks of every column.
struct Columns(Vec<RecordBatch>);

impl Columns {
    fn read() -> Self {
        let file = File::open("data/cases.arrow").expect("made by `make cases`");
        let reader = FileReader::try_new(file, None).expect("an Arrow file");
        Self(reader.collect::<Result<_, _>>().expect("two batches"))
    }

    fn field(&self, name: &str) -> FieldRef {
        let (_, field) = self.0[0].schema_ref().fields().find(name).expect("a column of the file");
        Arc::clone(field)
    }

    fn chunks(&self, name: &str, layout: &str) -> Vec<ArrayRef> {
        let column =
            |batch: &RecordBatch| Arc::clone(batch.column_by_name(name).expect("a column"));
        let (first, second) = (column(&self.0[0]), column(&self.0[1]));
        match layout {
            "whole" => vec![first],
            "sliced" => vec![first.slice(3, 6)],
            "resliced" => vec![first.slice(1, 8).slice(2, 5)],
            "tail" => vec![first.slice(5, first.len() - 5)],
            "empty" => vec![first.slice(4, 0)],
            "chunked" => vec![first, second],
            "one chunk" => vec![second.slice(4, 0), Arc::clone(&first), first.slice(2, 0)],
            other => panic!("no layout is called {other}"),
        }
    }
}

fn record() -> Value {
    let text = fs::read("data/cases.json").expect("made by `make cases`");
    serde_json::from_slice(&text).expect("JSON")
}

fn text<'a>(case: &'a Value, key: &str, default: &'a str) -> &'a str {
    case[key].as_str().unwrap_or(default)
}

fn extents(value: &Value) -> Vec<i64> {
    let extents = value.as_array().expect("a shape or strides").iter();
    extents.map(|extent| extent.as_i64().expect("a number")).collect()
}

fn size(value: &Value) -> usize {
    value.as_u64().and_then(|size| usize::try_from(size).ok()).expect("a size")
}

fn dtype(value: &Value) -> Option<DLDataType> {
    value.as_str().map(|name| name.parse().expect("a dtype"))
}

/// What is in lists of lists, without the lists.
fn flat(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values.iter().flat_map(flat).collect(),
        other => vec![other.clone()],
    }
}

// --- the doors: the only calls that convert -------------------------------------------------------

struct Found {
    values: ManagedTensor,
    offsets: Option<ManagedTensor>,
    mask: Option<ManagedTensor>,
    /// Where the door tells.
    plan: Option<Plan>,
}

/// `None` where there is no such door in Rust.
fn convert(chunks: &[ArrayRef], field: &Field, case: &Value) -> Option<Result<Found, Error>> {
    let (options, asked) = (options(case), &case["options"]);
    let dense = |source: Source<'_>| {
        let plan = export::explain(source, &options)?;
        let export::Exported { values, mask, .. } = export::prepare(source, &options)?.run()?;
        Ok(Found { values, offsets: None, mask, plan: Some(plan) })
    };
    Some(match (text(case, "door", "tensor"), chunks) {
        ("tensor", [array]) => dense(Source::Array(array, Some(field))),
        ("tensor", chunks) => dense(Source::Chunks(chunks, field)),
        ("row", [array]) => dense(Source::Row(array, Some(field), size(&asked["row"]))),
        ("ragged", [array]) => {
            let offset_type = dtype(&asked["offset_type"]);
            export::ragged((array, field), offset_type, &options).and_then(|found| {
                let plan =
                    Some(export::prepare_ragged((array, field), offset_type, &options)?.plan());
                let (values, offsets) = (found.values, Some(found.offsets));
                Ok(Found { values, offsets, mask: found.mask, plan })
            })
        }
        _ => return None,
    })
}

fn options(case: &Value) -> ExportOptions {
    let asked = &case["options"];
    let nulls = match &asked["nulls"] {
        Value::Null => NullPolicy::Refuse,
        Value::String(policy) if policy == "nan" => NullPolicy::Nan,
        Value::String(policy) if policy == "mask" => NullPolicy::Masked,
        Value::Bool(fill) => NullPolicy::Fill(Number::Bool(*fill)),
        Value::Number(fill) => NullPolicy::Fill(match fill.as_i64() {
            Some(fill) => Number::Int(fill.into()),
            None => Number::Float(fill.as_f64().expect("a number")),
        }),
        other => panic!("no nulls are treated as {other}"),
    };
    ExportOptions::default()
        .with_copy(CopyPolicy::from(asked["copy"].as_bool()))
        .with_nulls(nulls)
        .with_physical(asked["physical"].as_bool().unwrap_or_default())
        .with_dtype(dtype(&asked["dtype"]))
}

/// As what Python raises an error.
fn kind(error: &Error) -> &'static str {
    match error {
        error if error.is_type_refusal() => "type",
        Error::CannotCast { .. } | Error::FillDoesNotFit { .. } | Error::ValueDoesNotFit { .. } => {
            "value"
        }
        _ => "buffer",
    }
}

fn check_error(error: &Error, expected: &Value) {
    // The table has Python's words, of which these name what Rust calls otherwise.
    let phrase = match expected["phrase"].as_str().expect("an error is expected") {
        "physical=True" => "ExportOptions::with_physical",
        "to_tensor" => "export::tensor",
        "with row" => "Source::Row",
        phrase => phrase,
    };
    assert!(error.to_string().contains(phrase), "{phrase:?} is not in {:?}", error.to_string());
    assert_eq!(kind(error), expected["kind"], "{error}");
}

// --- looking at tensors and arrays ----------------------------------------------------------------

/// The elements in logical order, each behind the other.
fn elements(tensor: &ManagedTensor) -> Vec<u8> {
    if tensor.size() == 0 {
        return Vec::new();
    }
    let (shape, strides) = (tensor.shape(), tensor.strides());
    let itemsize = tensor.itemsize().expect("elements of whole bytes");
    let steps = shape.iter().zip(strides.iter()).map(|(extent, stride)| (extent - 1) * stride);
    let span = usize::try_from(1 + steps.sum::<i64>()).expect("forward strides") * itemsize;
    // SAFETY: from its first element to its last, and exports have no negative strides.
    let memory = unsafe { slice::from_raw_parts(tensor.as_ptr(), span) };
    strided(memory, 0, shape, &strides, itemsize)
}

/// Elements as the cases have them: complex numbers as two, and dtypes that Rust has no numbers for as
/// their bits.
fn values(dtype: DLDataType, bytes: &[u8]) -> Vec<Value> {
    macro_rules! each {
        ($type:ty, $value:expr) => {
            bytes
                .chunks_exact(size_of::<$type>())
                .map(|item| $value(<$type>::from_le_bytes(item.try_into().expect("one item"))))
                .collect()
        };
    }
    let float = |value: f64| match value {
        value if value.is_nan() => Value::from("nan"),
        value if value.is_infinite() => Value::from(format!("{value}")),
        value => Value::from(value),
    };
    match (dtype.code, dtype.bits) {
        (DLDataTypeCode::INT, 8) => each!(i8, Value::from),
        (DLDataTypeCode::INT, 16) => each!(i16, Value::from),
        (DLDataTypeCode::INT, 32) => each!(i32, Value::from),
        (DLDataTypeCode::INT, 64) => each!(i64, Value::from),
        (DLDataTypeCode::UINT, 32) => each!(u32, Value::from),
        (DLDataTypeCode::UINT, 64) => each!(u64, Value::from),
        (DLDataTypeCode::FLOAT, 16) => each!(half::f16, |value| float(half::f16::to_f64(value))),
        (DLDataTypeCode::FLOAT, 32) => each!(f32, |value| float(f32::into(value))),
        (DLDataTypeCode::FLOAT, 64) => each!(f64, float),
        (DLDataTypeCode::BOOL, _) => each!(u8, |byte: u8| match byte {
            0 | 1 => Value::from(byte == 1),
            other => panic!("{other} is no boolean"),
        }),
        (DLDataTypeCode::COMPLEX, 64) => values(DLDataType::FLOAT32, bytes),
        (DLDataTypeCode::COMPLEX, 128) => values(DLDataType::FLOAT64, bytes),
        (_, 16) => each!(u16, Value::from),
        (_, ..=8) => each!(u8, Value::from),
        _ => panic!("no case has {dtype}"),
    }
}

/// Whether a tensor begins in the memory of an array.
fn shares(tensor: &ManagedTensor, data: &ArrayData) -> bool {
    let buffers = data.buffers().iter().chain(data.nulls().map(|nulls| nulls.buffer()));
    let start = tensor.as_ptr().addr();
    buffers
        .map(|buffer| (buffer.as_ptr().addr(), buffer.len()))
        .any(|(address, len)| (address..address + len).contains(&start))
        || data.child_data().iter().any(|child| shares(tensor, child))
}

/// The array of numbers, or booleans, below all lists.
fn leaves(array: &ArrayRef) -> ArrayRef {
    match array.as_fixed_size_list_opt() {
        Some(list) => leaves(list.values()),
        None => Arc::clone(array),
    }
}

/// The values of an array of them.
fn leaf_values(array: &dyn Array) -> Vec<Value> {
    if let Some(bits) = array.as_boolean_opt() {
        return bits.values().iter().map(Value::from).collect();
    }
    let dtype = DLDataType::from_arrow(array.data_type()).expect("numbers");
    values(dtype, &support::values_of(array))
}

/// As pyarrow writes it.
fn type_of(field: &Field) -> String {
    let storage = match field.data_type() {
        DataType::Float16 => "halffloat".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::FixedSizeList(item, size) => {
            format!("fixed_size_list<item: {}>[{size}]", type_of(item))
        }
        other => other.to_string().to_lowercase(),
    };
    let list = |items: &[String]| format!("[{}]", items.join(","));
    match Extension::of(field).expect("as the specification says") {
        None => storage,
        Some(Extension::Bool8) => "extension<arrow.bool8>".to_owned(),
        Some(Extension::Opaque { type_name, vendor_name }) => format!(
            "extension<arrow.opaque[storage_type={storage}, type_name={type_name}, \
             vendor_name={vendor_name}]>"
        ),
        Some(Extension::FixedShapeTensor { shape, dimensions }) => {
            let DataType::FixedSizeList(item, _) = field.data_type() else { unreachable!() };
            let texts = |numbers: Vec<i64>| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
            let permutation = dimensions.permutation.map(|axes| {
                let axes = axes.into_iter().map(|axis| axis.to_string()).collect::<Vec<_>>();
                format!(", permutation={}", list(&axes))
            });
            format!(
                "extension<arrow.fixed_shape_tensor[value_type={}, shape={}{}]>",
                type_of(item),
                list(&texts(shape)),
                permutation.unwrap_or_default()
            )
        }
        Some(other) => panic!("no case expects {other:?}"),
    }
}

// --- Arrow to tensors -----------------------------------------------------------------------------

#[test]
fn arrow_to_tensor() {
    let (record, columns) = (record(), Columns::read());
    let (mut checked, mut failures) = (0, Failures::default());
    for case in record["to_tensor"].as_array().unwrap() {
        let name = case["column"].as_str().unwrap();
        for layout in flat(&case["layout"]) {
            let layout = layout.as_str().unwrap();
            let chunks = columns.chunks(name, layout);
            let context = format!("{name}, {layout}, {}, {}", case["door"], case["options"]);
            let Some(found) = convert(&chunks, &columns.field(name), case) else { continue };
            failures.check(context, || check(found, &chunks, case));
            checked += 1;
        }
    }
    failures.report();
    assert!(checked > 900, "only {checked} cases were read");
}

/// Checks all cases before it says which of them failed.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn check(&mut self, context: String, check: impl FnOnce()) {
        if panic::catch_unwind(AssertUnwindSafe(check)).is_err() {
            self.0.push(context);
        }
    }

    fn report(self) {
        assert!(self.0.is_empty(), "{} cases failed:\n{}", self.0.len(), self.0.join("\n"));
    }
}

fn check(found: Result<Found, Error>, chunks: &[ArrayRef], case: &Value) {
    let expect = &case["expect"];
    let found = match found {
        Ok(found) => found,
        Err(error) if expect.is_null() => return check_error(&error, &case["error"]),
        Err(error) => panic!("{error}"),
    };
    assert!(!expect.is_null(), "this should be an error: {}", case["error"]);
    check_values(&found, expect);
    if let Some(plan) = &found.plan {
        assert_eq!(plan.bytes_copied(), size(&expect["copied_bytes"]), "{plan}");
    }
    let data: Vec<ArrayData> = chunks.iter().map(|chunk| chunk.to_data()).collect();
    let is_shared = |tensor: &ManagedTensor| data.iter().any(|data| shares(tensor, data));
    if let Some(read_only) = expect["read_only"].as_bool() {
        let tensor = &found.values;
        assert_eq!(*tensor.strides(), extents(&expect["strides"]));
        assert_eq!((tensor.is_read_only(), is_shared(tensor)), (read_only, read_only));
        assert_eq!(tensor.flags().contains(DLPackFlags::IS_COPIED), !read_only);
        let is_padded = tensor.flags().contains(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
        assert_eq!(is_padded, tensor.dtype().bits < 8);
    }
    if let Some(offsets) = &found.offsets {
        let expect = &expect["offsets"];
        assert_eq!(offsets.dtype().to_string(), expect["dtype"]);
        assert_eq!(values(offsets.dtype(), &elements(offsets)), flat(&expect["values"]));
        if let Some(read_only) = expect["read_only"].as_bool() {
            assert_eq!((offsets.is_read_only(), is_shared(offsets)), (read_only, read_only));
        }
    }
}

fn check_values(found: &Found, expect: &Value) {
    let tensor = &found.values;
    assert_eq!(tensor.dtype().to_string(), expect["dtype"]);
    assert_eq!(tensor.shape(), extents(&expect["shape"]));
    let expected = if expect["bits"].is_null() { &expect["values"] } else { &expect["bits"] };
    let (mut seen, mut expected) = (values(tensor.dtype(), &elements(tensor)), flat(expected));
    assert_eq!(found.mask.is_some(), !expect["mask"].is_null());
    if let Some(mask) = &found.mask {
        let valid = values(mask.dtype(), &elements(mask));
        assert_eq!(valid, flat(&expect["mask"]));
        if found.offsets.is_none() {
            assert_eq!(mask.shape(), tensor.shape());
            // Values under nulls are arbitrary.
            for values in [&mut seen, &mut expected] {
                let mut valid = valid.iter();
                values.retain(|_| valid.next() == Some(&Value::Bool(true)));
            }
        }
    }
    assert_eq!(seen, expected);
}

// --- tensors to Arrow -----------------------------------------------------------------------------

#[test]
fn tensor_to_arrow() {
    let mut failures = Failures::default();
    for case in record()["to_arrow"].as_array().unwrap() {
        let representation = match text(&case["options"], "type", "") {
            "" => Representation::Canonical,
            "bool8" => Representation::Bool8,
            "opaque" => Representation::Opaque,
            "fixed_size_list" => Representation::FixedSizeList,
            "permuted" => Representation::Permuted,
            // Names are Python's.
            _ => continue,
        };
        let copy = CopyPolicy::from(case["options"]["copy"].as_bool());
        let options = ImportOptions::default().with_copy(copy).with_representation(representation);
        let context = format!("{}, {}, {}", case["dtype"], case["shape"], case["options"]);
        failures.check(context, || check_import(case, &options));
    }
    failures.report();
}

fn check_import(case: &Value, options: &ImportOptions) {
    let (tensor, watch) = producer(case).tensor(Abi::Versioned);
    let (tensor, expect) = (tensor.expect("a true descriptor"), &case["expect"]);
    let plan = import::explain(&tensor, options);
    let found = from_dlpack(tensor, options);
    let (array, field) = match found {
        Ok(found) => found,
        Err(error) => {
            check_error(&error, &case["error"]);
            assert_eq!(plan, Err(error));
            return watch.released_once();
        }
    };
    assert!(!expect.is_null(), "this should be an error: {}", case["error"]);
    assert_eq!(type_of(&field), expect["type"]);
    let copied = size(&expect["copied_bytes"]);
    assert_eq!(plan.expect("a plan for what works").bytes_copied(), copied);
    let leaves = leaves(&array);
    assert_eq!(leaf_values(&leaves), flat(&expect["values"]));
    if !leaves.is_empty() {
        let address = leaves.to_data().buffers()[0].as_ptr().addr();
        assert_eq!((watch.deletions() == 0, address == watch.data()), (copied == 0, copied == 0));
    }
    drop((array, leaves));
    watch.released_once();
}

fn producer(case: &Value) -> Producer {
    let dtype = dtype(&case["dtype"]).expect("a dtype");
    let memory = case["memory"].as_str().expect("hexadecimal digits");
    let byte = |at: usize| u8::from_str_radix(&memory[at..at + 2], 16).expect("two digits");
    let bytes = (0..memory.len()).step_by(2).map(byte).collect();
    let is_padded = dtype.bits < 8 && case["packed"].is_null();
    let itemsize = usize::from(dtype.bits).div_ceil(8);
    Producer {
        flags: if is_padded { DLPackFlags::IS_SUBBYTE_TYPE_PADDED } else { DLPackFlags(0) },
        data: Data::Bytes { bytes, origin: size(&case["offset"]) * itemsize, misalign: 0 },
        ..Producer::bytes(dtype, &[], &extents(&case["shape"]), &extents(&case["strides"]))
    }
}

// --- the table is whole ---------------------------------------------------------------------------

/// Names columns of every variant; one that Arrow adds fails to compile until it has some.
macro_rules! variants {
    ($($variant:pat => [$($column:literal),+],)*) => {
        fn columns_of(data_type: &DataType) -> &'static [&'static str] {
            match data_type {
                $($variant => &[$($column),+],)*
            }
        }
        const VARIANTS: &[&[&str]] = &[$(&[$($column),+]),*];
    };
}
variants! {
    DataType::Null => ["null"],
    DataType::Boolean => ["bool", "bool_nulls"],
    DataType::Int8 => ["int8", "int8_nulls", "bool8", "bool8_bytes"],
    DataType::Int16 => ["int16", "int16_nulls"],
    DataType::Int32 => ["int32", "int32_nulls", "opaque_other"],
    DataType::Int64 => ["int64", "int64_nulls"],
    DataType::UInt8 => ["uint8", "uint8_nulls", "float8_e4m3fn", "int4"],
    DataType::UInt16 => ["uint16", "uint16_nulls", "bfloat16"],
    DataType::UInt32 => ["uint32", "uint32_nulls"],
    DataType::UInt64 => ["uint64", "uint64_nulls"],
    DataType::Float16 => ["halffloat", "halffloat_nulls"],
    DataType::Float32 => ["float", "float_nulls", "unknown_extension"],
    DataType::Float64 => ["double", "double_nulls"],
    DataType::Timestamp(..) => ["timestamp_s", "timestamp_ns", "timestamp_utc_nulls"],
    DataType::Date32 => ["date32", "date32_nulls"],
    DataType::Date64 => ["date64", "date64_nulls"],
    DataType::Time32(_) => ["time32_s", "time32_ms", "time32_s_nulls"],
    DataType::Time64(_) => ["time64_us", "time64_ns", "time64_us_nulls"],
    DataType::Duration(_) => ["duration_s", "duration_ns", "duration_ns_nulls"],
    DataType::Interval(_) => ["month_day_nano_interval"],
    DataType::Binary => ["binary", "binary_nulls"],
    DataType::FixedSizeBinary(_) => ["fixed_size_binary", "fixed_size_binary_nulls", "uuid"],
    DataType::LargeBinary => ["large_binary", "large_binary_nulls"],
    DataType::BinaryView => ["binary_view", "binary_view_nulls"],
    DataType::Utf8 => ["string", "string_nulls", "string_hidden", "json"],
    DataType::LargeUtf8 => ["large_string", "large_string_nulls"],
    DataType::Utf8View => ["string_view", "string_view_nulls"],
    DataType::List(_) => ["list", "list_nulls", "list_inner_nulls", "list_of_lists"],
    DataType::ListView(_) => ["list_view", "list_view_nulls", "list_view_scattered"],
    DataType::FixedSizeList(..) => ["fixed_size_list", "fixed_size_list_twice", "complex64"],
    DataType::LargeList(_) => ["large_list", "large_list_nulls"],
    DataType::LargeListView(_) => ["large_list_view", "large_list_view_nulls"],
    DataType::Struct(_) => ["struct", "variable_shape_tensor", "parquet_variant"],
    DataType::Union(..) => ["dense_union", "sparse_union"],
    DataType::Dictionary(..) => ["dictionary", "dictionary_nulls", "dictionary_of_numbers"],
    DataType::Decimal32(..) => ["decimal32", "decimal32_nulls"],
    DataType::Decimal64(..) => ["decimal64", "decimal64_nulls"],
    DataType::Decimal128(..) => ["decimal128", "decimal128_nulls"],
    DataType::Decimal256(..) => ["decimal256", "decimal256_nulls"],
    DataType::Map(..) => ["map"],
    DataType::RunEndEncoded(..) => ["run_end_encoded"],
}

/// <https://arrow.apache.org/docs/format/CanonicalExtensions.html>
const CANONICAL: [&str; 9] = [
    "arrow.fixed_shape_tensor",
    "arrow.variable_shape_tensor",
    "arrow.json",
    "arrow.uuid",
    "arrow.opaque",
    "arrow.bool8",
    "arrow.parquet.variant",
    "arrow.timestamp_with_offset",
    "example.celsius", // an unknown one
];

/// The columns that have cases.
fn covered(record: &Value) -> HashSet<String> {
    let cases = record["to_tensor"].as_array().expect("cases").iter();
    cases.map(|case| text(case, "column", "").to_owned()).collect()
}

#[test]
fn every_variant_has_cases() {
    let (columns, covered) = (Columns::read(), covered(&record()));
    for names in VARIANTS {
        for name in *names {
            assert_eq!(columns_of(columns.field(name).data_type()), *names, "{name}");
            assert!(covered.contains(*name), "{name}");
        }
    }
}

#[test]
fn every_canonical_extension_type_has_cases() {
    let (columns, covered) = (Columns::read(), covered(&record()));
    let schema = columns.0[0].schema();
    for name in CANONICAL {
        let mut fields = schema.fields().iter();
        let field = fields.find(|field| field.extension_type_name() == Some(name)).expect(name);
        assert!(covered.contains(field.name()), "{name}");
    }
}

#[test]
fn every_column_has_cases() {
    let (columns, covered) = (Columns::read(), covered(&record()));
    for field in columns.0[0].schema().fields() {
        assert!(covered.contains(field.name()), "{}", field.name());
    }
}

/// pyarrow has no builders for these two.
#[test]
fn intervals_of_all_units_are_refused() {
    for unit in [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano] {
        let array = new_empty_array(&DataType::Interval(unit));
        let field = Field::new("x", array.data_type().clone(), true);
        for physical in [false, true] {
            let options = ExportOptions::default().with_physical(physical);
            let error = export::tensor(Source::Array(&array, Some(&field)), &options).unwrap_err();
            assert!(error.is_type_refusal() && error.to_string().contains("split"), "{error}");
        }
    }
}
