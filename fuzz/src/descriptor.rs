//! Raw descriptors, believed or refused, to Arrow and back.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow_array::{Array, ArrayRef};
use arrow_dlpack::export::ExportOptions;
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::{DLDataTypeCode, DLPackFlags};
use arrow_dlpack::{
    CopyPolicy, Error, ImportOptions, ManagedTensor, Plan, Representation, from_dlpack, import,
    to_dlpack,
};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

use crate::draw::{self, rarely};
use crate::support::{Abi, Data, Producer, Watch, device};
use crate::truth::{self, Truth, is_readable, to_usize};

/// One execution: a descriptor, and one thing that is done with it.
pub fn descriptor(u: &mut Unstructured<'_>) -> Result<()> {
    let Some((tensor, truth, producer, watch)) = tensor(u)? else { return Ok(()) };
    let copied = copied(u)?;
    match u.int_in_range(0..=9)? {
        0 => copy(tensor, &truth, &producer),
        1 => {
            let tensor = hand_over(u, tensor, &truth, &producer)?;
            drop(tensor);
        }
        2 => share(u, tensor, &truth, &producer)?,
        3 => columns(u, tensor, &truth, copied)?,
        4 => table(u, tensor, copied)?,
        5 => ragged(u, tensor, &truth, copied)?,
        _ => to_arrow(u, tensor, &truth, &producer, &watch, copied)?,
    }
    settle(watch, &producer);
    crate::nothing_open();
    Ok(())
}

fn settle(watch: Watch, producer: &Producer) {
    if producer.deleter { watch.released_once() } else { watch.never_released() }
}

pub(crate) fn copied(u: &mut Unstructured<'_>) -> Result<CopyPolicy> {
    u.choose(&[CopyPolicy::IfNeeded, CopyPolicy::Never, CopyPolicy::Always]).copied()
}

/// A tensor that was taken over, what it says, what was said of it, and what its deleter will tell.
type Taken = (ManagedTensor, Truth, Producer, Watch);

/// Hands a descriptor over, and sees that the library judges it as it deserves. `None` if it was refused.
fn tensor(u: &mut Unstructured<'_>) -> Result<Option<Taken>> {
    let (abi, dtype, shape) = (draw::abi(u)?, draw::dtype_of(u)?, draw::shape(u)?);
    let producer = draw::producer(u, abi, dtype, shape)?;
    let (tensor, watch) = producer.clone().tensor(abi);
    let believable =
        Truth::of(&producer).filter(|truth| truth.is_believable(&producer, watch.data()));
    let (tensor, truth) = match (tensor, believable) {
        (Ok(tensor), Some(truth)) => (tensor, truth),
        (Err(error), None) => {
            assert!(!error.to_string().is_empty());
            settle(watch, &producer);
            return Ok(None);
        }
        (Ok(_), None) => panic!("believed {producer:?}"),
        (Err(error), Some(_)) => panic!("{error}: {producer:?}"),
    };
    says(&tensor, &truth, &producer);
    assert_eq!(
        tensor.flags(),
        if abi == Abi::Legacy { DLPackFlags::READ_ONLY } else { producer.flags }
    );
    if truth.size > 0 {
        let (data, offset) = (watch.data(), producer.byte_offset);
        let readable = is_readable(producer.device);
        let first = if readable { data.wrapping_add(to_usize(offset.into())) } else { data };
        let rest = if readable { 0 } else { offset };
        assert_eq!((tensor.as_ptr().addr(), tensor.byte_offset()), (first, rest));
    } else {
        assert_eq!((tensor.as_ptr().addr(), tensor.byte_offset()), (0, 0));
    }
    assert!(!format!("{tensor:?}").is_empty());
    Ok(Some((tensor, truth, producer, watch)))
}

/// The accessors say what the descriptor does.
fn says(tensor: &ManagedTensor, truth: &Truth, producer: &Producer) {
    assert_eq!((tensor.shape(), tensor.ndim()), (&truth.shape[..], truth.shape.len()));
    assert_eq!(tensor.strides(), truth.strides);
    assert_eq!((tensor.dtype(), tensor.device()), (producer.dtype, producer.device));
    assert_eq!((tensor.size(), tensor.nbytes()), (to_usize(truth.size), to_usize(truth.nbytes)));
    assert_eq!(tensor.is_contiguous(), truth.is_contiguous());
    let whole = truth.item_bits % 8 == 0;
    assert_eq!(tensor.itemsize(), whole.then(|| to_usize(truth.item_bits / 8)));
}

/// The elements in row-major order, by the definition; none where they are too many, or where no CPU can
/// read them.
fn elements(truth: &Truth, producer: &Producer) -> Option<Vec<u8>> {
    match &producer.data {
        _ if !is_readable(producer.device) || truth.size > 1 << 16 => None,
        Data::Bytes { bytes, .. } => {
            Some(truth::elements(truth, bytes, to_usize(truth.extent.below)))
        }
        _ => Some(Vec::new()),
    }
}

/// Elements of a tensor of the library's, in row-major order.
pub(crate) fn read(tensor: &ManagedTensor) -> Vec<u8> {
    // The library's own copy, which target `gather` holds against the definition.
    let copy = tensor.copied().expect("small and on the CPU");
    crate::support::bytes_of(&copy)
}

fn copy(tensor: ManagedTensor, truth: &Truth, producer: &Producer) {
    let packed = truth.item_bits % 8 != 0;
    match (tensor.copied(), elements(truth, producer)) {
        (Ok(copy), Some(expected)) => {
            assert_eq!(copy.shape(), truth.shape);
            assert_eq!((copy.dtype(), copy.device()), (producer.dtype, device(1, 0)));
            assert_eq!(copy.flags().0 & !4, 2, "a copy, writable");
            if !packed {
                assert_eq!(crate::support::bytes_of(&copy), expected);
            }
            assert!(truth.size == 0 || copy.as_ptr().addr() % 64 == 0);
        }
        (Err(Error::PackedStrides { .. }), Some(_)) => assert!(packed && !truth.is_contiguous()),
        (Err(Error::UnreadableDevice { .. }), None) => {
            assert!(!is_readable(producer.device));
        }
        (Err(Error::OutOfMemory { .. } | Error::Overflow(_)), None) => {
            assert!(truth.size > 1 << 40);
        }
        (Err(Error::PackedStrides { .. }), None) => assert!(packed),
        (found, _) => panic!("{found:?} of {producer:?}"),
    }
}

/// Through C and back, in either ABI.
fn hand_over(
    u: &mut Unstructured<'_>,
    tensor: ManagedTensor,
    truth: &Truth,
    producer: &Producer,
) -> Result<Option<ManagedTensor>> {
    let (data, offset) = (tensor.as_ptr(), tensor.byte_offset());
    let padded = tensor.flags().0 & 4 != 0 && producer.dtype.bits < 8;
    let flags = tensor.flags().0 & 5;
    let again = match draw::abi(u)? {
        Abi::Versioned => crate::through_c(tensor),
        Abi::Legacy => match crate::through_legacy_c(tensor) {
            Ok(tensor) => tensor,
            Err(error) => {
                assert!(padded && matches!(error, Error::LegacyCannotPad(_)));
                return Ok(None);
            }
        },
    };
    let again = again.expect("it was valid before");
    says(&again, truth, producer);
    assert_eq!((again.as_ptr(), again.byte_offset()), (data, offset));
    assert_eq!(again.flags().0 & flags & 1, flags & 1, "read-only is never lost");
    Ok(Some(again))
}

/// Tensors over the same memory, dropped in any order.
fn share(
    u: &mut Unstructured<'_>,
    tensor: ManagedTensor,
    truth: &Truth,
    producer: &Producer,
) -> Result<()> {
    let tensor = Arc::new(tensor);
    let mut all = vec![tensor.share(), tensor.share()];
    drop(tensor);
    for shared in &mut all {
        says(shared, truth, producer);
        assert_eq!(shared.flags().0 & 2, 0, "shared memory is not exclusive");
        assert!(shared.as_slice_mut::<u8>().is_none());
    }
    let left = all.swap_remove(u.choose_index(2)?);
    drop(all);
    let left = hand_over(u, left, truth, producer)?;
    if let (Some(expected), Some(left)) = (elements(truth, producer), &left)
        && truth.item_bits % 8 == 0
    {
        assert_eq!(read(left), expected);
    }
    Ok(())
}

/// The matrix as columns, each of which is what the column alone would be.
fn columns(
    u: &mut Unstructured<'_>,
    tensor: ManagedTensor,
    truth: &Truth,
    copy: CopyPolicy,
) -> Result<()> {
    let representation = representation(u, &tensor)?;
    let width = truth.shape.get(1).map_or(0, |&width| width.min(64));
    let names: Vec<String> = (0..width).map(|name| name.to_string()).collect();
    let options = ImportOptions::default().with_copy(copy).with_representation(representation);
    let is_matrix = truth.shape.len() == 2 && truth.shape[1] == width;
    let zero_copy = tensor.as_ptr();
    match import::matrix(tensor, &names, &options) {
        Ok(batch) => {
            assert!(is_matrix);
            assert_eq!(i64::try_from(batch.num_rows()), Ok(truth.shape[0]));
            if batch.get_array_memory_size() < 1 << 20 {
                for column in batch.columns() {
                    column.to_data().validate_full().expect("a valid array");
                }
            }
            if copy == CopyPolicy::Never && truth.size > 0 {
                let first = batch.column(0).to_data();
                assert_eq!(leaf(&first), zero_copy.addr());
            }
        }
        Err(Error::WrongRank { .. } | Error::NameCount { .. }) => assert!(!is_matrix),
        Err(_) => {}
    }
    Ok(())
}

/// As two columns of a table, with another tensor beside it.
fn table(u: &mut Unstructured<'_>, one: ManagedTensor, copy: CopyPolicy) -> Result<()> {
    let Some((other, _, producer, watch)) = tensor(u)? else { return Ok(()) };
    let rows = |tensor: &ManagedTensor| tensor.shape().first().copied().unwrap_or(1);
    let same = rows(&one) == rows(&other);
    let options =
        ImportOptions::default().with_copy(copy).with_representation(representation(u, &one)?);
    let columns = vec![("one".to_owned(), one), ("other".to_owned(), other)];
    match import::record_batch(columns, &options) {
        Ok(batch) => {
            assert!(same && batch.num_columns() == 2);
        }
        Err(Error::ColumnLength { .. }) => assert!(!same),
        Err(_) => {}
    }
    settle(watch, &producer);
    Ok(())
}

/// As the values of lists or texts, whose offsets are another tensor.
fn ragged(
    u: &mut Unstructured<'_>,
    values: ManagedTensor,
    truth: &Truth,
    copy: CopyPolicy,
) -> Result<()> {
    let count = values.shape().first().copied().unwrap_or(1).clamp(0, 9);
    // Mostly such as could be offsets: few, small, and rising.
    let (other, producer, watch) = if rarely(u, 4)? {
        let Some((other, _, producer, watch)) = tensor(u)? else { return Ok(()) };
        (other, producer, watch)
    } else {
        let mut offsets: Vec<i32> = vec![u.int_in_range(0..=1)?];
        for _ in 0..u.int_in_range(0..=6)? {
            let step =
                if rarely(u, 16)? { u.int_in_range(-3..=9)? } else { u.int_in_range(0..=2)? };
            offsets.push(offsets[offsets.len() - 1] + step);
        }
        let mut producer = if u.ratio(1, 2)? {
            Producer::vector(&offsets)
        } else {
            Producer::vector(&offsets.iter().map(|&offset| offset.into()).collect::<Vec<i64>>())
        };
        producer.flags = DLPackFlags(u.int_in_range(0..=3)?);
        let (other, watch) = producer.clone().tensor(Abi::Versioned);
        (other.expect("a true one"), producer, watch)
    };
    let representation = match u.int_in_range(0..=5)? {
        0 => Representation::Canonical,
        1 => representation(u, &values)?,
        n => {
            let types =
                [DataType::Utf8, DataType::Binary, DataType::LargeUtf8, DataType::LargeBinary];
            Representation::Field(Arc::new(Field::new("x", types[n - 2].clone(), true)))
        }
    };
    if let Ok((rows, field)) = import::ragged(
        values,
        other,
        None,
        &ImportOptions::default().with_copy(copy).with_representation(representation),
    ) {
        assert_eq!(rows.data_type(), field.data_type());
        assert!(rows.is_empty() || count > 0 || truth.size == 0);
        rows.to_data().validate_full().expect("a valid array");
    }
    settle(watch, &producer);
    Ok(())
}

/// The address of the innermost values.
fn leaf(data: &arrow_data::ArrayData) -> usize {
    match (data.child_data(), data.buffers()) {
        ([child, ..], []) => leaf(child),
        (_, [buffer, ..]) => {
            let width = data.data_type().primitive_width().unwrap_or(1);
            buffer.as_ptr().addr() + data.offset() * width
        }
        _ => 0,
    }
}

/// One that might do, and some that never will.
fn representation(u: &mut Unstructured<'_>, tensor: &ManagedTensor) -> Result<Representation> {
    Ok(match u.int_in_range(0..=9)? {
        0..=2 => Representation::Canonical,
        3 => Representation::Permuted,
        4 => Representation::Bool8,
        5 => Representation::Opaque,
        6 => Representation::FixedSizeList,
        _ => Representation::Field(field(u, tensor)?),
    })
}

/// A field whose storage might be what the tensor has.
fn field(u: &mut Unstructured<'_>, tensor: &ManagedTensor) -> Result<FieldRef> {
    if rarely(u, 3)? {
        let options = ImportOptions::default().with_representation(representation(u, tensor)?);
        if let Ok(field) = import::field(tensor, &options) {
            return Ok(Arc::new(field.as_ref().clone().with_name("again").with_nullable(false)));
        }
    }
    let second = TimeUnit::Second;
    let types = [
        tensor.dtype().to_arrow().unwrap_or(DataType::UInt8),
        DataType::Date32,
        DataType::Timestamp(second, None),
        DataType::Decimal32(5, 2),
        DataType::Decimal64(10, 0),
        DataType::Duration(second),
        DataType::Boolean,
        DataType::FixedSizeBinary(u.int_in_range(0..=8)?),
        DataType::Float32,
        DataType::Utf8,
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ];
    let element = if u.ratio(1, 2)? { 0 } else { u.choose_index(types.len())? };
    let mut field = Field::new("item", types[element].clone(), true);
    if rarely(u, 4)? {
        field = Extension::opaque(tensor.dtype()).annotate(field);
    }
    let shape = tensor.shape().get(1..).unwrap_or_default();
    if u.ratio(1, 2)? {
        for &extent in shape.iter().rev() {
            let size = i32::try_from(extent).unwrap_or(i32::MAX);
            field = Field::new(
                "x",
                DataType::FixedSizeList(Arc::new(field.with_name("item")), size),
                true,
            );
        }
    } else if !shape.is_empty() {
        let size =
            shape.iter().try_fold(1i32, |size, &extent| size.checked_mul(extent.try_into().ok()?));
        let list = DataType::FixedSizeList(Arc::new(field), size.unwrap_or(i32::MAX));
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        for last in (1..axes.len()).rev() {
            axes.swap(last, u.choose_index(last + 1)?);
        }
        let mut physical = vec![0; axes.len()];
        for (logical, &axis) in axes.iter().enumerate() {
            physical[axis] = shape[logical];
        }
        let dimensions = Dimensions { permutation: Some(axes), names: None };
        let extension = Extension::FixedShapeTensor { shape: physical, dimensions };
        field = extension.annotate(Field::new("x", list, true));
    }
    Ok(Arc::new(field))
}

/// To an Arrow array, and back to a tensor of the same elements.
fn to_arrow(
    u: &mut Unstructured<'_>,
    tensor: ManagedTensor,
    truth: &Truth,
    producer: &Producer,
    watch: &Watch,
    copy: CopyPolicy,
) -> Result<()> {
    let options =
        ImportOptions::default().with_copy(copy).with_representation(representation(u, &tensor)?);
    let (plan, field) = (import::explain(&tensor, &options), import::field(&tensor, &options));
    let data = tensor.as_ptr().addr();
    let expected = elements(truth, producer);
    let found = from_dlpack(tensor, &options);
    let (array, plan) = match (found, plan) {
        (Ok((array, found)), Ok(plan)) => {
            assert_eq!(Ok(&found), field.as_ref());
            assert_eq!(array.data_type(), found.data_type());
            (array, plan)
        }
        (Err(Error::OutOfMemory { .. } | Error::Overflow(_)), Ok(_)) => {
            assert!(truth.size > 1 << 40, "{producer:?}");
            return Ok(());
        }
        (Err(error), Err(explained)) => {
            assert_eq!(error, explained);
            assert!(field.is_ok() || field == Err(error));
            return Ok(());
        }
        (found, plan) => panic!("{plan:?}, but {found:?} for {options:?} of {producer:?}"),
    };
    kept(&array, &plan, &options, producer, watch, truth, data);
    let field = field.expect("compared above");
    back(&array, &field, expected.as_deref(), truth, producer);
    Ok(())
}

/// What was promised is what was done.
fn kept(
    array: &ArrayRef,
    plan: &Plan,
    options: &ImportOptions,
    producer: &Producer,
    watch: &Watch,
    truth: &Truth,
    data: usize,
) {
    match options.copy {
        CopyPolicy::Never => assert!(plan.is_zero_copy()),
        CopyPolicy::Always => assert!(!plan.is_zero_copy()),
        CopyPolicy::IfNeeded => {}
    }
    assert_eq!(array.null_count(), 0);
    let rows = truth.shape.first().copied().unwrap_or(1);
    assert_eq!(i64::try_from(array.len()), Ok(rows));
    if truth.size > 0 {
        let shared = leaf(&array.to_data()) == data;
        assert_eq!(shared, plan.is_zero_copy(), "{plan}");
        let is_open = plan.is_zero_copy() || !producer.deleter;
        assert_eq!(watch.deletions(), usize::from(!is_open), "released as soon as it can be");
        array.to_data().validate_full().expect("a valid array");
    }
}

/// The array as a tensor again has the shape and the elements that it had.
fn back(
    array: &ArrayRef,
    field: &Field,
    expected: Option<&[u8]>,
    truth: &Truth,
    producer: &Producer,
) {
    let options = ExportOptions::default().with_physical(true);
    let tensor = match to_dlpack(array, field, &options) {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error} on the way back to {producer:?} from {field:?}"),
    };
    let dtype = producer.dtype;
    let mut shape = truth.shape.clone();
    if shape.is_empty() {
        shape.push(1);
    }
    if dtype.code == DLDataTypeCode::COMPLEX && tensor.dtype() != dtype {
        shape.push(2);
    }
    assert_eq!(tensor.shape(), shape, "{field:?}");
    let Some(expected) = expected else { return };
    let found = read(&tensor);
    let mask = 0xFFu8 >> 8u8.saturating_sub(dtype.bits);
    if dtype.code == DLDataTypeCode::BOOL {
        let bools: Vec<u8> = expected.iter().map(|&byte| u8::from(byte != 0)).collect();
        assert_eq!((found, tensor.dtype()), (bools, dtype));
    } else if tensor.dtype() == dtype && dtype.bits >= 8 || dtype.code == DLDataTypeCode::COMPLEX {
        assert_eq!(found, expected);
    } else if tensor.dtype() == dtype {
        // A byte each, in which those that were padded have kept what was beside the element.
        assert!(found.iter().zip(expected).all(|(found, expected)| (found ^ expected) & mask == 0));
        assert_eq!(found.len(), expected.len());
    } else if dtype.code == DLDataTypeCode::BFLOAT {
        let bytes = |pair: &[u8]| half::bf16::from_le_bytes([pair[0], pair[1]]);
        let floats = expected.chunks_exact(2).flat_map(|pair| bytes(pair).to_f32().to_le_bytes());
        same_floats(&found, &floats.collect::<Vec<u8>>());
    } else if dtype.code == DLDataTypeCode::UINT {
        assert_eq!(found, expected.iter().map(|byte| byte & mask).collect::<Vec<u8>>());
    } else if dtype.code == DLDataTypeCode::INT {
        let shift = 8 - dtype.bits;
        let signed = |&byte: &u8| (i8::from_le_bytes([byte << shift]) >> shift).to_le_bytes()[0];
        assert_eq!(found, expected.iter().map(signed).collect::<Vec<u8>>());
    } else {
        // The small floats, whose values the kernels' own tests know.
        assert_eq!(found.len(), 4 * expected.len());
    }
}

/// The same bits, but that every NaN is as good as another.
fn same_floats(one: &[u8], other: &[u8]) {
    let floats = |bytes: &[u8]| {
        let value = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        bytes.chunks_exact(4).map(value).map(|v| if v.is_nan() { 1 } else { v.to_bits() }).collect()
    };
    let (one, other): (Vec<u32>, Vec<u32>) = (floats(one), floats(other));
    assert_eq!(one, other);
}
