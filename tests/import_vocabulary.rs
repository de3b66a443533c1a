//! Every dtype of DLPack 1.3, at every rank, in every layout, becomes an Arrow array that has the same
//! elements in the same places, and copies just what the plan says.

use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, types};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, CopyReason, Error, ImportOptions, Representation, from_dlpack, import,
};
use arrow_schema::{DataType, Field};

use logical::{Logical, leaf, logical};
use support::{Abi, Data, Producer, Random, dtype, strided};

mod logical;
mod support;

const PADDED: DLPackFlags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;

/// Every dtype that becomes an array.
fn dtypes() -> Vec<DLDataType> {
    let mut all: Vec<DLDataType> = (7..=14).map(|code| dtype(code, 8, 1)).collect();
    for code in [0, 1] {
        all.extend([1, 2, 4, 8, 16, 32, 64].map(|bits| dtype(code, bits, 1)));
    }
    all.extend([16, 32, 64].map(|bits| dtype(2, bits, 1)));
    all.extend([32, 64, 128].map(|bits| dtype(5, bits, 1)));
    all.extend([dtype(4, 16, 1), dtype(6, 8, 1)]);
    all.extend([dtype(15, 6, 1), dtype(16, 6, 1), dtype(17, 4, 1)]);
    all
}

/// Elements in memory, and a way to walk through them.
#[derive(Clone, Debug)]
struct Layout {
    dtype: DLDataType,
    /// Each of under 8 bits in a byte.
    padded: bool,
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// As if padded.
    elements: Vec<u8>,
    /// Which element is the first.
    origin: usize,
}

impl Layout {
    fn random(random: &mut Random, dtype: DLDataType, rank: usize) -> Self {
        let extents = [1, 2, 2, 3, 3, 4];
        let mut shape: Vec<i64> = (0..rank).map(|_| extents[random.below(6)]).collect();
        if rank > 0 && random.below(12) == 0 {
            shape[random.below(rank)] = 0;
        }
        // A third each: row-major; rows in another order of their axes; anything.
        let kind = random.below(3);
        let mut order: Vec<usize> = (0..rank).rev().collect();
        let movable = if kind == 1 { rank.saturating_sub(1) } else { rank };
        if kind > 0 {
            for last in (1..movable).rev() {
                order.swap(last, random.below(last + 1));
            }
        }
        let mut strides = vec![0; rank];
        let (mut step, mut before, mut after) = (1, 0, 0);
        for axis in order {
            strides[axis] = match (kind, random.below(8)) {
                (2, 0) => 0,
                (2, 1 | 2) => -step,
                _ => step,
            };
            let reach = (shape[axis].max(1) - 1) * strides[axis];
            before -= reach.min(0);
            after += reach.max(0);
            let gap = if kind == 2 { i64::try_from(random.below(2)).expect("small") } else { 0 };
            step = step * shape[axis].max(1) + gap;
            if shape[axis] == 1 && random.below(2) == 0 {
                strides[axis] = [i64::MIN, -1, 0, 77, i64::MAX][random.below(5)];
            }
        }
        let [before, after] = [before, after].map(|count| usize::try_from(count).expect("small"));
        let padded = random.below(2) == 0;
        let mut elements = random.bytes((before + after + 1) * item_size(dtype));
        for byte in &mut elements {
            match dtype.bits {
                bits @ ..8 => *byte &= (1 << bits) - 1,
                _ if dtype.code.0 == 6 => *byte &= 1,
                _ => {}
            }
        }
        Self { dtype, padded, shape, strides, elements, origin: before }
    }

    fn is_packed(&self) -> bool {
        self.dtype.bits < 8 && !self.padded
    }

    fn producer(&self, misalign: usize) -> Producer {
        let (bytes, origin) = if self.is_packed() {
            // The first one begins with a byte.
            let mut codes = vec![0; self.origin.next_multiple_of(8) - self.origin];
            codes.extend_from_slice(&self.elements);
            let origin = self.origin.div_ceil(8) * usize::from(self.dtype.bits);
            (pack(&codes, self.dtype.bits), origin)
        } else {
            (self.elements.clone(), self.origin * item_size(self.dtype))
        };
        Producer {
            data: Data::Bytes { bytes, origin, misalign },
            flags: if self.padded { PADDED } else { DLPackFlags(0) },
            ..Producer::bytes(self.dtype, &[], &self.shape, &self.strides)
        }
    }

    /// The elements in logical order.
    fn logical(&self) -> Vec<u8> {
        let steps = self.shape.iter().zip(&self.strides);
        let steps: Vec<i64> =
            steps.map(|(&extent, &stride)| if extent <= 1 { 0 } else { stride }).collect();
        let itemsize = item_size(self.dtype);
        if self.shape.contains(&0) {
            return Vec::new();
        }
        strided(&self.elements, self.origin * itemsize, &self.shape, &steps, itemsize)
    }
}

fn item_size(dtype: DLDataType) -> usize {
    usize::from(dtype.bits).div_ceil(8)
}

/// Codes one behind the other, the first in the lowest bits of the first byte.
fn pack(codes: &[u8], bits: u8) -> Vec<u8> {
    let bits = usize::from(bits);
    let mut bytes = vec![0; (codes.len() * bits).div_ceil(8)];
    for (index, code) in codes.iter().enumerate() {
        for bit in (0..bits).filter(|bit| code >> bit & 1 == 1) {
            let at = index * bits + bit;
            bytes[at / 8] |= 1 << (at % 8);
        }
    }
    bytes
}

/// What elements, given as if padded, become when there is nothing to a tensor but them.
fn plain(dtype: DLDataType, elements: &[u8]) -> Vec<u8> {
    let extent = i64::try_from(elements.len() / item_size(dtype)).expect("small");
    let producer = Producer::bytes(dtype, elements, &[extent], &[1]);
    let (tensor, watch) = Producer { flags: PADDED, ..producer }.tensor(Abi::Versioned);
    let (array, field) = from_dlpack(tensor.expect("a true descriptor"), &ImportOptions::default())
        .expect("an array");
    let Logical { bytes, .. } = logical(&array, &field);
    drop(array);
    watch.released_once();
    bytes
}

fn representations(dtype: DLDataType) -> Vec<Representation> {
    let mut all =
        vec![Representation::Canonical, Representation::Permuted, Representation::FixedSizeList];
    match (dtype.code.0, dtype.bits) {
        (6, _) => all.push(Representation::Bool8),
        (0..=2, 8..) => {}
        _ => all.push(Representation::Opaque),
    }
    all
}

/// Imports, and asserts that the plan was followed: what is zero-copy is the producer's memory, what is
/// not is new, of the size that was said, and the producer's is let go at once.
#[track_caller]
fn imported(producer: &Producer, options: &ImportOptions) -> (Logical, Field) {
    let (tensor, watch) = producer.clone().tensor(Abi::Versioned);
    let tensor = tensor.expect("a true descriptor");
    let plan = import::explain(&tensor, options).expect("a plan");
    let foretold = import::field(&tensor, options).expect("a field");
    let (data, size, nbytes) = (tensor.as_ptr().addr(), tensor.size(), tensor.nbytes());
    let (array, field) = from_dlpack(tensor, options).expect("an array");
    array.to_data().validate_full().expect("a valid array");
    assert_eq!(field, foretold);
    let memory = leaf(&array);
    if plan.is_zero_copy() {
        assert_eq!((plan.bytes_copied(), memory.len()), (0, nbytes));
        if size > 0 {
            assert_eq!((memory.as_ptr().addr(), watch.deletions()), (data, 0));
        }
    } else {
        assert_eq!((memory.len(), watch.deletions()), (plan.bytes_copied(), 1));
        assert_ne!(memory.as_ptr().addr(), data);
    }
    let logical = logical(&array, &field);
    drop((array, memory));
    watch.released_once();
    (logical, field.as_ref().clone())
}

#[test]
fn every_element_is_where_it_was_and_the_plan_is_kept() {
    let mut random = Random(0xA550);
    for (case, dtype) in (0..if cfg!(miri) { 1 } else { 40 })
        .flat_map(|case| dtypes().into_iter().map(move |dtype| (case, dtype)))
    {
        let layout = Layout::random(&mut random, dtype, case % 5);
        let producer = layout.producer(if random.below(4) == 0 { 1 } else { 0 });
        let elements = layout.logical();
        let natural = plain(dtype, &elements);
        for representation in representations(dtype) {
            let keeps = matches!(representation, Representation::Bool8 | Representation::Opaque);
            let expected = if keeps { &elements } else { &natural };
            let is_pair = dtype.code.0 == 5;
            let mut shape = if layout.shape.is_empty() { vec![1] } else { layout.shape.clone() };
            shape.extend(is_pair.then_some(2));
            let options = ImportOptions::default().with_representation(representation);
            let (found, field) = imported(&producer, &options);
            assert_eq!(
                (&found.shape, &found.bytes),
                (&shape, expected),
                "{layout:?} as {:?}: {field}",
                options.representation
            );

            // A copy has the same type and elements, and forbidding one changes only whether.
            let copy = options.clone().with_copy(CopyPolicy::Always);
            assert_eq!(imported(&producer, &copy), (found, field));
            let never = options.clone().with_copy(CopyPolicy::Never);
            let (tensor, watch) = producer.clone().tensor(Abi::Legacy);
            let tensor = tensor.unwrap();
            if layout.padded && dtype.bits < 8 {
                // The legacy ABI cannot say so, which makes it another tensor.
                drop(tensor);
            } else {
                let plan = import::explain(&tensor, &options).unwrap();
                match (from_dlpack(tensor, &never), plan.steps.as_slice()) {
                    (Ok(_), []) => {}
                    (Err(error), [step]) => {
                        let (reason, nbytes) = (step.reasons[0], step.nbytes);
                        assert_eq!(error, Error::CopyForbidden { reason, nbytes });
                    }
                    (other, steps) => panic!("{other:?}, but the plan was {steps:?}"),
                }
            }
            watch.released_once();
        }
    }
}

#[test]
fn what_can_stay_where_it_is_does() {
    let permuted = ImportOptions::default().with_representation(Representation::Permuted);
    let f4 = DLDataType::FLOAT32;
    for (shape, strides, permutation) in [
        (vec![], vec![], None),
        (vec![5], vec![1], None),
        (vec![2, 3, 4], vec![12, 4, 1], None),
        (vec![2, 3, 4], vec![12, 1, 3], Some("[1,0]")),
        (vec![2, 2, 3, 4], vec![24, 1, 8, 2], Some("[2,0,1]")),
        (vec![1, 3, 4], vec![-7, 1, 3], Some("[1,0]")),
        (vec![2, 3, 1, 4], vec![12, 1, 99, 3], Some("[2,1,0]")),
        (vec![2, 1, 1, 4], vec![4, -1, i64::MIN, 1], None),
    ] {
        let producer = Producer::bytes(f4, &[7; 48 * 4], &shape, &strides);
        let plan = |options| {
            let (tensor, watch) = producer.clone().tensor(Abi::Versioned);
            let plan = import::explain(&tensor.unwrap(), options).unwrap();
            watch.released_once();
            plan
        };
        let (found, field) = imported(&producer, &permuted);
        assert!(plan(&permuted).is_zero_copy(), "{shape:?} {strides:?}");
        assert_eq!(found.shape.len(), shape.len().max(1));

        // Without the wish the type has no permutation, and the values are the same.
        let natural = ImportOptions::default();
        let (copied, plain) = imported(&producer, &natural);
        assert_eq!((&copied.shape, &copied.bytes), (&found.shape, &found.bytes));
        assert!(!plain.extension_type_metadata().unwrap_or("").contains("perm"));
        let reasons: Vec<CopyReason> =
            plan(&natural).steps.into_iter().flat_map(|step| step.reasons).collect();
        let copies = permutation.map(|_| CopyReason::Permuted);
        assert_eq!(reasons, copies.into_iter().collect::<Vec<_>>());
        match permutation {
            Some(axes) => {
                let metadata = field.extension_type_metadata().unwrap();
                assert!(metadata.contains(&format!("\"permutation\":{axes}")), "{metadata}");
            }
            None => assert!(!field.extension_type_metadata().unwrap_or("").contains("perm")),
        }
    }
}

#[test]
fn a_forbidden_copy_of_permuted_rows_names_the_representation_that_shares_them() {
    let never = ImportOptions::default().with_copy(CopyPolicy::Never);
    for (dtype, representation) in [
        (DLDataType::FLOAT32, Representation::Canonical),
        (dtype(5, 64, 1), Representation::Canonical),
        (DLDataType::BOOL, Representation::Bool8),
        (dtype(4, 16, 1), Representation::Opaque),
    ] {
        let images = Producer::bytes(dtype, &[1; 24 * 8], &[2, 3, 4], &[12, 1, 3]);
        let options = never.clone().with_representation(representation);
        let forbidden = |error: &Error| {
            assert!(
                matches!(error, Error::CopyForbidden { reason: CopyReason::Permuted, .. }),
                "{error}"
            );
            assert!(error.to_string().ends_with(
                "; Representation::Permuted, or a field with a permutation (of the extension type of its elements, if \
                     they have one), keeps that order"
            ));
        };
        let (tensor, watch) = images.clone().tensor(Abi::Versioned);
        forbidden(&from_dlpack(tensor.unwrap(), &options).unwrap_err());
        watch.released_once();
        let (tensor, watch) = images.tensor(Abi::Versioned);
        let columns = vec![("image".to_owned(), tensor.unwrap())];
        match import::record_batch(columns, &options).unwrap_err() {
            Error::Column { error, .. } => forbidden(&error),
            other => panic!("{other}"),
        }
        watch.released_once();
    }
}

#[test]
fn types_are_those_that_arrows_users_expect() {
    let field = |dtype: DLDataType, shape: &[i64], representation| {
        let strides = vec![1; shape.len()];
        let (tensor, watch) =
            Producer::bytes(dtype, &[0; 999], shape, &strides).tensor(Abi::Legacy);
        let options = ImportOptions::default().with_representation(representation);
        let field = import::field(&tensor.unwrap(), &options).unwrap();
        assert!(field.is_nullable() && field.name().is_empty());
        watch.released_once();
        field
    };
    let item = |data_type| Field::new("item", data_type, true);
    let pair = |data_type| DataType::new_fixed_size_list(data_type, 2, true);
    let natural = Representation::Canonical;
    for (dtype, expected) in [
        (dtype(0, 64, 1), DataType::Int64),
        (dtype(0, 4, 1), DataType::Int8),
        (dtype(1, 1, 1), DataType::UInt8),
        (dtype(6, 8, 1), DataType::Boolean),
        (dtype(4, 16, 1), DataType::Float32),
        (dtype(14, 8, 1), DataType::Float32),
        (dtype(17, 4, 1), DataType::Float32),
        (dtype(5, 32, 1), pair(DataType::Float16)),
        (dtype(5, 64, 1), pair(DataType::Float32)),
        (dtype(5, 128, 1), pair(DataType::Float64)),
    ] {
        assert_eq!(field(dtype, &[3], natural.clone()).data_type(), &expected, "{dtype}");
        assert_eq!(field(dtype, &[], natural.clone()).data_type(), &expected, "{dtype}");
    }

    let matrix = field(dtype(6, 8, 1), &[4, 3], Representation::Bool8);
    assert_eq!(matrix.extension_type_name(), Some("arrow.fixed_shape_tensor"));
    let bool8 = Extension::Bool8.annotate(item(DataType::Int8));
    assert_eq!(matrix.data_type(), &DataType::FixedSizeList(bool8.into(), 3));

    let bfloat = field(dtype(4, 16, 1), &[4], Representation::Opaque);
    assert_eq!(bfloat.data_type(), &DataType::UInt16);
    assert_eq!(bfloat.extension_type_name(), Some("arrow.opaque"));
    let metadata = r#"{"type_name":"bfloat16","vendor_name":"dlpack"}"#;
    assert_eq!(bfloat.extension_type_metadata(), Some(metadata));
    let complex = field(dtype(5, 64, 1), &[], Representation::Opaque);
    assert_eq!(complex.data_type(), &pair(DataType::Float32));
    assert!(complex.extension_type_metadata().unwrap().contains("complex64"));

    let nested = field(dtype(0, 8, 1), &[4, 3, 2], Representation::FixedSizeList);
    let rows = DataType::FixedSizeList(item(pair(DataType::Int8)).into(), 3);
    assert_eq!((nested.data_type(), nested.metadata().len()), (&rows, 0));
    let complex = field(dtype(5, 64, 1), &[4, 3], Representation::Canonical);
    assert_eq!(complex.extension_type_metadata(), Some(r#"{"shape":[3,2]}"#));
    assert!(matches!(complex.data_type(), DataType::FixedSizeList(_, 6)));
}

#[test]
fn elements_are_widened_exactly() {
    let array = |dtype, bytes: &[u8], extent| {
        let (array, watch) = Producer::bytes(dtype, bytes, &[extent], &[1])
            .array(Abi::Versioned, CopyPolicy::IfNeeded);
        let array: ArrayRef = array.unwrap();
        watch.released_once();
        array
    };
    let bfloats = array(dtype(4, 16, 1), &[0x80, 0x3F, 0x20, 0xC1], 2);
    assert_eq!(bfloats.as_primitive::<types::Float32Type>().values(), &[1.0, -10.0]);
    let nibbles = array(dtype(17, 4, 1), &[0x21, 0x07], 3);
    assert_eq!(nibbles.as_primitive::<types::Float32Type>().values(), &[0.5, 1.0, 6.0]);
    let signed = array(dtype(0, 4, 1), &[0x7F, 0x08], 3);
    assert_eq!(signed.as_primitive::<types::Int8Type>().values(), &[-1, 7, -8]);
    let pairs = array(dtype(1, 2, 1), &[0b1110_0100], 4);
    assert_eq!(pairs.as_primitive::<types::UInt8Type>().values(), &[0, 1, 2, 3]);
    let bools = array(dtype(6, 8, 1), &[0, 1, 2, 255], 4);
    assert_eq!(bools.as_boolean().values().iter().collect::<Vec<_>>(), [false, true, true, true]);
}

/// Bits are packed a word at a time, and then those that make no whole word.
#[test]
fn booleans_of_every_number_are_packed() {
    for len in 0..200 {
        let bytes: Vec<u8> = (0..len).map(|index| u8::from(index * index % 3 == 1)).collect();
        let expected: Vec<bool> = bytes.iter().map(|&byte| byte == 1).collect();
        let spread: Vec<u8> = bytes.iter().flat_map(|&byte| [byte, 9]).collect();
        let extent = i64::from(len);
        for (bytes, stride) in [(&bytes, 1), (&spread, 2)] {
            let bools = Producer::bytes(dtype(6, 8, 1), bytes, &[extent], &[stride]);
            let (array, watch) = bools.array(Abi::Versioned, CopyPolicy::IfNeeded);
            let found: Vec<bool> = array.unwrap().as_boolean().values().iter().collect();
            watch.released_once();
            assert_eq!(found, expected, "{len}");
        }
    }
}

#[test]
fn reasons_are_all_said_and_the_first_is_the_elements() {
    let reasons = |producer: Producer, representation| {
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        let options = ImportOptions::default().with_representation(representation);
        let plan = import::explain(&tensor.unwrap(), &options).unwrap();
        watch.released_once();
        plan.steps.into_iter().flat_map(|step| step.reasons).collect::<Vec<_>>()
    };
    let strided = CopyReason::Strided { axis: 0, stride: 2, expected: 1 };
    let bools = Producer::bytes(dtype(6, 8, 1), &[0; 6], &[3], &[2]);
    let bits = CopyReason::Stored { from: dtype(6, 8, 1), to: None };
    assert_eq!(reasons(bools.clone(), Representation::Canonical), [bits, strided]);
    assert_eq!(reasons(bools, Representation::Bool8), [strided]);
    let int4 = dtype(0, 4, 1);
    let nibbles = Producer::bytes(int4, &[0; 6], &[3], &[1]);
    let cast = CopyReason::Cast { from: int4, to: DLDataType::INT8 };
    assert_eq!(reasons(nibbles.clone(), Representation::Canonical), [cast]);
    assert_eq!(reasons(nibbles.clone(), Representation::Opaque), [CopyReason::Packed(int4)]);
    let padded = Producer { flags: PADDED, ..nibbles };
    assert_eq!(reasons(padded, Representation::Opaque), []);
    // The axis is the tensor's, wherever the array has it.
    let wide = Producer::bytes(DLDataType::INT8, &[0; 99], &[2, 3, 4], &[13, 1, 3]);
    let strided = CopyReason::Strided { axis: 2, stride: 3, expected: 1 };
    assert_eq!(reasons(wide, Representation::Canonical), [strided]);
}

#[test]
fn a_representation_is_for_the_dtypes_that_have_it() {
    for (dtype, representation) in [
        (dtype(0, 8, 1), Representation::Bool8),
        (dtype(2, 32, 1), Representation::Opaque),
        (dtype(6, 8, 1), Representation::Opaque),
    ] {
        let (tensor, watch) = Producer::bytes(dtype, &[0; 8], &[2], &[1]).tensor(Abi::Versioned);
        let options = ImportOptions::default().with_representation(representation);
        let error = from_dlpack(tensor.unwrap(), &options).unwrap_err();
        assert!(matches!(error, Error::NoRepresentation { .. }), "{error}");
        assert!(error.to_string().contains(&dtype.to_string()) && !error.is_type_refusal());
        watch.released_once();
    }
}

#[test]
fn nothing_has_any_shape() {
    for shape in [
        &[0, 3, 4][..],
        &[3, 0, 4],
        &[3, 4, 0],
        &[0, 1 << 40, 0],
        &[5, 0, i64::MAX],
        &[1 << 40, 0, 1 << 20],
    ] {
        for dtype in [DLDataType::FLOAT64, dtype(6, 8, 1), dtype(5, 64, 1), dtype(0, 4, 1)] {
            let strides = vec![i64::MAX; shape.len()];
            let nothing = Producer::bytes(dtype, &[], shape, &strides);
            let nothing = Producer { data: Data::Address(8), ..nothing };
            let (array, watch) = nothing.array(Abi::Versioned, CopyPolicy::Never);
            if usize::try_from(shape[0]).is_err() {
                // Arrow counts rows by addresses: 2^40 are too many for 32 bits.
                assert_eq!(array.unwrap_err(), Error::Overflow("number of rows"));
            } else {
                let array = array.unwrap();
                assert_eq!(i64::try_from(array.len()), Ok(shape[0]), "{dtype} {shape:?}");
                array.to_data().validate_full().unwrap();
            }
            watch.released_once();
        }
    }
}

#[test]
fn a_row_has_no_more_values_than_arrow_can_count() {
    let refused = |shape: &[i64], dtype, representation: &Representation| {
        let strides = vec![0; shape.len()];
        let (tensor, watch) = Producer::bytes(dtype, &[0; 16], shape, &strides).tensor(Abi::Legacy);
        let options = ImportOptions::default().with_representation(representation.clone());
        let error = tensor.and_then(|tensor| from_dlpack(tensor, &options)).unwrap_err();
        watch.released_once();
        error
    };
    // With addresses of 32 bits they are too many for something else before.
    let or = |error: Error, on_32_bits: &'static str| {
        if cfg!(target_pointer_width = "64") { error } else { Error::Overflow(on_32_bits) }
    };
    let (int8, natural) = (DLDataType::INT8, Representation::Canonical);
    let wide = 1 << 31;
    let error = refused(&[1, wide], int8, &natural);
    assert_eq!(error, or(Error::RowTooLarge { shape: vec![wide] }, "size in bytes"));
    let shape = vec![1 << 16, 1 << 15];
    assert_eq!(refused(&[0, 1 << 16, 1 << 15], int8, &natural), Error::RowTooLarge { shape });
    let error = refused(&[2, 1 << 30], dtype(5, 64, 1), &natural);
    assert_eq!(error, or(Error::RowTooLarge { shape: vec![1 << 30, 2] }, "size in bytes"));
    // No value, but more lists than can be counted.
    let lists = Representation::FixedSizeList;
    let countless = refused(&[1 << 40, i64::from(i32::MAX), 0], int8, &lists);
    assert_eq!(countless, or(Error::Overflow("number of values"), "number of rows"));
    let error = refused(&[1, wide, 0], int8, &lists);
    assert_eq!(error, Error::RowTooLarge { shape: vec![wide] });
}

#[test]
#[cfg_attr(miri, ignore = "Miri gives up where an allocator says no")]
fn a_huge_broadcast_of_any_dtype_is_an_error_at_once() {
    let began = Instant::now();
    for dtype in dtypes() {
        for shape in [&[1 << 55][..], &[1 << 30, 1 << 25]] {
            let strides = vec![0; shape.len()];
            let producer = Producer::bytes(dtype, &[0; 16], shape, &strides);
            let (array, watch) = producer.array(Abi::Versioned, CopyPolicy::IfNeeded);
            let error = array.unwrap_err();
            let is_expected = match error {
                Error::OutOfMemory { .. } => cfg!(target_pointer_width = "64"),
                Error::Overflow(_) => cfg!(target_pointer_width = "32"),
                _ => false,
            };
            assert!(is_expected, "{dtype}: {error}");
            watch.released_once();
        }
    }
    assert!(began.elapsed() < Duration::from_secs(2), "took {:?}", began.elapsed());
}
