//! The loops that move elements, against going from one element to the next.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, types,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_dlpack::export::{self, ExportOptions, Order, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ImportOptions, ManagedTensor, NullPolicy, Number, Representation,
    from_dlpack, import,
};
use arrow_schema::{DataType, Field, Schema};

use crate::draw::{self, rarely};
use crate::support::{Abi, Data, Producer, Watch, bytes_of, dtype};
use crate::truth::{self, Truth, to_usize};

/// One execution: a layout, and one way through it.
pub fn gather(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=6)? {
        0 | 1 => copy(u)?,
        2 => lists(u)?,
        3 => narrow(u)?,
        4 => columns(u)?,
        5 => matrix(u)?,
        _ => chunks(u)?,
    }
    crate::nothing_open();
    Ok(())
}

/// A strided tensor on the CPU, and its elements by the definition.
struct Strided {
    tensor: ManagedTensor,
    watch: Watch,
    truth: Truth,
    bytes: Vec<u8>,
}

impl Strided {
    fn draw(u: &mut Unstructured<'_>, dtype: DLDataType, ndim: usize) -> Result<Self> {
        // Some axes are as long as a tile and longer, as far as all of them together are small.
        let mut limit = if !rarely(u, 16)? {
            120
        } else if rarely(u, 16)? {
            20_000
        } else {
            2_000
        };
        let mut shape = Vec::with_capacity(ndim);
        for _ in 0..ndim {
            let extent = match u.int_in_range(0..=15)? {
                0 => u.int_in_range(0..=1)?,
                1..=3 => u.int_in_range(5..=40)?,
                4 => u.int_in_range(100..=300)?,
                _ => u.int_in_range(2..=5)?,
            };
            shape.push(extent.min(limit));
            limit /= extent.max(1);
        }
        let mut order: Vec<usize> = (0..ndim).collect();
        for last in (1..ndim).rev() {
            order.swap(last, u.choose_index(last + 1)?);
        }
        let gaps = u.ratio(1, 2)?;
        let mut strides = vec![0; ndim];
        let (mut step, mut end) = (1i64, 1i64);
        for axis in order {
            let extent: i64 = shape[axis];
            strides[axis] = match u.int_in_range(0..=7)? {
                _ if end > 60_000 => 0,
                0 => 0,
                1 | 2 => -step,
                _ => step,
            };
            end += (extent - 1).max(0) * strides[axis].abs();
            if strides[axis] != 0 {
                step = step * extent.max(1) + if gaps { u.int_in_range(0..=2)? } else { 0 };
            }
            if extent == 1 && rarely(u, 2)? {
                strides[axis] = *u.choose(&[i64::MIN, -1, 0, 77, i64::MAX])?;
            }
        }
        let mut producer = Producer::bytes(dtype, &[], &shape, &strides);
        let truth = Truth::of(&producer).expect("small and true");
        let len = to_usize(truth.extent.below + truth.extent.above);
        let bytes = draw::bytes(u.arbitrary()?, len, 0xFF);
        producer.data = Data::Bytes {
            bytes: bytes.clone(),
            origin: to_usize(truth.extent.below),
            misalign: if rarely(u, 3)? { u.int_in_range(0..=15)? } else { 0 },
        };
        let (tensor, watch) = producer.tensor(Abi::Versioned);
        Ok(Self { tensor: tensor.expect("a true one"), watch, truth, bytes })
    }

    fn elements(&self) -> Vec<u8> {
        truth::elements(&self.truth, &self.bytes, to_usize(self.truth.extent.below))
    }
}

/// Whole bytes, a word or not.
fn whole(u: &mut Unstructured<'_>) -> Result<DLDataType> {
    let &(code, bits, lanes) = u.choose(&[
        (1, 8, 1),
        (2, 16, 1),
        (2, 32, 1),
        (0, 64, 1),
        (5, 128, 1),
        (1, 8, 3),
        (2, 32, 3),
        (99, 20, 1),
        (0, 64, 4),
    ])?;
    Ok(dtype(code, bits, lanes))
}

/// A type that Arrow has numbers for.
fn number(u: &mut Unstructured<'_>) -> Result<DLDataType> {
    let types = [(1, 8), (0, 8), (2, 16), (0, 16), (2, 32), (1, 32), (2, 64), (0, 64)];
    let &(code, bits) = u.choose(&types)?;
    Ok(dtype(code, bits, 1))
}

fn copy(u: &mut Unstructured<'_>) -> Result<()> {
    let (dtype, ndim) = (whole(u)?, u.int_in_range(0..=5)?);
    let strided = Strided::draw(u, dtype, ndim)?;
    let copy = strided.tensor.copied().expect("small and on the CPU");
    assert!(copy.is_contiguous());
    assert_eq!(bytes_of(&copy), strided.elements());
    drop(strided.tensor);
    strided.watch.released_once();
    Ok(())
}

/// As rows of lists, and as rows whose axes lie in any order.
fn lists(u: &mut Unstructured<'_>) -> Result<()> {
    let (dtype, ndim) = (number(u)?, u.int_in_range(1..=5)?);
    let Strided { tensor, watch, truth, bytes } = Strided::draw(u, dtype, ndim)?;
    let mut wanted = truth.clone();
    let representation = if u.ratio(1, 2)? || ndim == 1 {
        Representation::FixedSizeList
    } else {
        let mut permutation: Vec<usize> = (0..ndim - 1).collect();
        for last in (1..ndim - 1).rev() {
            permutation.swap(last, u.choose_index(last + 1)?);
        }
        // Logical axis i is the physical axis permutation[i].
        for (logical, &physical) in permutation.iter().enumerate() {
            wanted.shape[physical + 1] = truth.shape[logical + 1];
            wanted.strides[physical + 1] = truth.strides[logical + 1];
        }
        let size = wanted.shape[1..].iter().product::<i64>();
        let item = Field::new("item", dtype.to_arrow().expect("a number"), true);
        let size = i32::try_from(size).expect("small");
        let field = Field::new("", DataType::FixedSizeList(Arc::new(item), size), true);
        let dimensions = Dimensions { permutation: Some(permutation), names: None };
        let shape = wanted.shape[1..].to_vec();
        let extension = Extension::FixedShapeTensor { shape, dimensions };
        Representation::Field(Arc::new(extension.annotate(field)))
    };
    let options =
        ImportOptions::default().with_copy(CopyPolicy::Always).with_representation(representation);
    let (array, _) = from_dlpack(tensor, &options).expect("numbers");
    let expected = truth::elements(&wanted, &bytes, to_usize(truth.extent.below));
    assert_eq!(leaf(&array), expected);
    drop(array);
    watch.released_once();
    Ok(())
}

/// The values of lists, their slices counted.
fn leaf(array: &ArrayRef) -> Vec<u8> {
    match array.as_fixed_size_list_opt() {
        Some(list) => leaf(list.values()),
        None => {
            let data = array.to_data();
            let width = data.data_type().primitive_width().expect("numbers");
            data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width].to_vec()
        }
    }
}

/// Booleans to bits, and what is narrower than a byte to bytes.
fn narrow(u: &mut Unstructured<'_>) -> Result<()> {
    let types =
        [(6, 8), (6, 8), (1, 1), (1, 2), (0, 4), (1, 4), (0, 1), (0, 2), (17, 4), (15, 6), (16, 6)];
    let &(code, bits) = u.choose(&types)?;
    let ndim = u.int_in_range(0..=4)?;
    let strided = Strided::draw(u, dtype(code, bits, 1), ndim)?;
    let elements = strided.elements();
    let Strided { tensor, watch, .. } = strided;
    let is_bool = code == 6;
    let is_integer = code < 2 && u.ratio(1, 2)?;
    let representation =
        if is_bool || is_integer { Representation::FixedSizeList } else { Representation::Opaque };
    let copy = if is_bool { CopyPolicy::IfNeeded } else { CopyPolicy::Always };
    let (array, _) = from_dlpack(
        tensor,
        &ImportOptions::default().with_copy(copy).with_representation(representation),
    )
    .expect("a narrow type");
    watch.released_once();
    let mut values = Arc::clone(&array);
    while let Some(list) = values.as_fixed_size_list_opt() {
        values = Arc::clone(list.values());
    }
    if is_bool {
        let found: Vec<bool> = values.as_boolean().values().iter().collect();
        assert_eq!(found, elements.iter().map(|&byte| byte != 0).collect::<Vec<_>>());
    } else if is_integer && code == 0 {
        let shift = 8 - bits;
        let signed = elements.iter().map(|byte| i8::from_le_bytes([byte << shift]) >> shift);
        assert_eq!(
            values.as_primitive::<types::Int8Type>().values(),
            &signed.collect::<Vec<_>>()[..]
        );
    } else {
        assert_eq!(leaf(&values), elements);
    }
    Ok(())
}

/// The columns of a matrix.
fn columns(u: &mut Unstructured<'_>) -> Result<()> {
    let dtype = number(u)?;
    let Strided { tensor, watch, truth, bytes } = Strided::draw(u, dtype, 2)?;
    let names: Vec<String> = (0..truth.shape[1]).map(|name| name.to_string()).collect();
    let options = ImportOptions::default().with_copy(crate::descriptor::copied(u)?);
    match import::matrix(tensor, &names, &options) {
        Ok(batch) => {
            let mut by_column = truth.clone();
            by_column.shape.swap(0, 1);
            by_column.strides.swap(0, 1);
            let all = truth::elements(&by_column, &bytes, to_usize(truth.extent.below));
            let found: Vec<u8> = batch.columns().iter().flat_map(leaf).collect();
            assert_eq!(found, all);
        }
        Err(Error::CopyForbidden { .. }) => assert_eq!(options.copy, CopyPolicy::Never),
        Err(error) => panic!("{error}"),
    }
    watch.released_once();
    Ok(())
}

/// A column of random values: one to four bytes of each are enough to tell them apart.
fn column(u: &mut Unstructured<'_>, kind: u8, len: usize) -> Result<ArrayRef> {
    let before = if rarely(u, 2)? { u.int_in_range(0..=9)? } else { 0 };
    let width = [1, 1, 2, 4, 8, 4, 1][usize::from(kind.min(6))];
    let bytes = draw::bytes(u.arbitrary()?, (before + len) * width, 0xFF);
    let nulls = if rarely(u, 3)? {
        let bits = draw::bytes(u.arbitrary()?, (before + len).div_ceil(8), 0xFF);
        let bits = BooleanBuffer::new(Buffer::from_vec(bits), 0, before + len);
        Some(NullBuffer::new(bits))
    } else {
        None
    };
    fn of<T: ArrowPrimitiveType>(
        bytes: Vec<u8>,
        len: usize,
        nulls: Option<NullBuffer>,
    ) -> ArrayRef {
        let values = ScalarBuffer::<T::Native>::new(Buffer::from(&bytes[..]), 0, len);
        Arc::new(PrimitiveArray::<T>::new(values, nulls))
    }
    let all = before + len;
    let array = match kind {
        0 => {
            let bits = BooleanBuffer::new(Buffer::from_vec(bytes), 0, all);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        1 => of::<types::UInt8Type>(bytes, all, nulls),
        2 => of::<types::Int16Type>(bytes, all, nulls),
        3 => of::<types::Float32Type>(bytes, all, nulls),
        4 => of::<types::Int64Type>(bytes, all, nulls),
        5 => of::<types::UInt32Type>(bytes, all, nulls),
        _ => of::<types::Int8Type>(bytes, all, nulls),
    };
    Ok(array.slice(before, len))
}

/// Appends a value of a column as that of a type, by way of the widest numbers there are. False if it does
/// not fit.
fn cell(array: &ArrayRef, row: usize, to: DLDataType, out: &mut Vec<u8>) -> bool {
    let integer = match array.data_type() {
        _ if array.is_null(row) => 1,
        DataType::Boolean => i128::from(array.as_boolean().value(row)),
        DataType::UInt8 => array.as_primitive::<types::UInt8Type>().value(row).into(),
        DataType::Int8 => array.as_primitive::<types::Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<types::Int16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<types::UInt32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<types::Int64Type>().value(row).into(),
        _ => {
            let float = array.as_primitive::<types::Float32Type>().value(row);
            match (to.code.0, to.bits) {
                (2, 32) => out.extend(float.to_le_bytes()),
                _ => out.extend(f64::from(float).to_le_bytes()),
            }
            return true;
        }
    };
    let (low, high) = match to.code.0 {
        0 => (-(1i128 << (to.bits - 1)), (1i128 << (to.bits - 1)) - 1),
        1 => (0, (1i128 << to.bits) - 1),
        6 => (0, 1),
        _ => {
            match to.bits {
                16 => out.extend(half::f16::from_f64(integer as f64).to_le_bytes()),
                32 => out.extend((integer as f32).to_le_bytes()),
                _ => out.extend((integer as f64).to_le_bytes()),
            }
            return true;
        }
    };
    out.extend_from_slice(&integer.to_le_bytes()[..usize::from(to.bits / 8)]);
    (low..=high).contains(&integer)
}

fn options(u: &mut Unstructured<'_>) -> Result<ExportOptions> {
    Ok(ExportOptions::default()
        .with_nulls(NullPolicy::Fill(Number::Int(1)))
        .with_order(*u.choose(&[Order::RowMajor, Order::ColumnMajor])?))
}

/// What one type cannot be read as by way of integers.
fn is_float(kind: u8) -> bool {
    kind == 3
}

/// A table, in chunks, as a matrix.
fn matrix(u: &mut Unstructured<'_>) -> Result<()> {
    let width = match u.int_in_range(0..=7)? {
        0 => u.int_in_range(10..=40)?,
        _ => u.int_in_range(1..=6)?,
    };
    let one_kind = if u.ratio(2, 3)? { Some(u.int_in_range(0..=6)?) } else { None };
    let kinds = (0..width).map(|_| Ok(one_kind.unwrap_or(u.int_in_range(0..=6)?)));
    let kinds = kinds.collect::<Result<Vec<u8>>>()?;
    let mut batches: Vec<RecordBatch> = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let rows = match u.int_in_range(0..=7)? {
            0 if rarely(u, 4)? => u.int_in_range(60..=300)?,
            1 => 0,
            2 => u.int_in_range(8..=40)?,
            _ => u.int_in_range(1..=7)?,
        };
        let mut arrays = Vec::with_capacity(width);
        for &kind in &kinds {
            arrays.push(column(u, kind, rows)?);
        }
        let fields = arrays.iter().enumerate();
        let fields = fields.map(|(n, a)| Field::new(n.to_string(), a.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        batches.push(RecordBatch::try_new(schema, arrays).expect("columns of one length"));
    }
    let schema = batches[0].schema();
    let mut options = options(u)?;
    if !kinds.iter().any(|&kind| is_float(kind)) && rarely(u, 4)? {
        options.dtype = Some(number(u)?);
    }
    let found = export::tensor(Source::Table(&batches, &schema), &options);
    let to = match (&found, options.dtype) {
        (_, Some(dtype)) => dtype,
        (Ok(tensor), None) => tensor.dtype(),
        (Err(error), None) => panic!("{error}"),
    };
    let rows: Vec<(&RecordBatch, usize)> = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
        .collect();
    let (mut expected, mut fits) = (Vec::new(), true);
    let mut at = |row: usize, n: usize| {
        let (batch, row) = rows[row];
        fits &= cell(batch.column(n), row, to, &mut expected);
    };
    match options.order {
        Order::RowMajor => (0..rows.len()).for_each(|row| (0..width).for_each(|n| at(row, n))),
        Order::ColumnMajor => (0..width).for_each(|n| (0..rows.len()).for_each(|row| at(row, n))),
    }
    match (found, fits) {
        (Ok(tensor), true) => {
            let extents = [rows.len(), width].map(|extent| i64::try_from(extent).expect("small"));
            assert_eq!((tensor.shape(), tensor.dtype()), (&extents[..], to));
            assert_eq!(in_memory(&tensor), same_nans(to, expected));
        }
        (Err(Error::Column { error, .. }), false) => {
            assert!(matches!(*error, Error::ValueDoesNotFit { .. }), "{error}");
        }
        (Err(Error::ValueDoesNotFit { .. }), false) => {}
        (found, _) => panic!("{found:?}"),
    }
    Ok(())
}

/// A column in chunks.
fn chunks(u: &mut Unstructured<'_>) -> Result<()> {
    let kind = u.int_in_range(0..=6)?;
    let mut chunks = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        let len = if rarely(u, 32)? { u.int_in_range(100..=900)? } else { u.int_in_range(0..=70)? };
        chunks.push(column(u, kind, len)?);
    }
    let mut options = options(u)?;
    options.dtype = if is_float(kind) { None } else { Some(number(u)?) };
    let field = Field::new("", chunks[0].data_type().clone(), true);
    let source = Source::Chunks(&chunks, &field);
    let (plan, found) = (export::explain(source, &options), export::tensor(source, &options));
    let plan = plan.expect("numbers");
    let to = options.dtype.unwrap_or(dtype(2, 32, 1));
    let (mut expected, mut fits) = (Vec::new(), true);
    for chunk in &chunks {
        for row in 0..chunk.len() {
            fits &= cell(chunk, row, to, &mut expected);
        }
    }
    match (found, fits) {
        (Ok(tensor), true) => {
            assert_eq!(in_memory(&tensor), same_nans(to, expected));
            assert_eq!(tensor.flags().0, if plan.is_zero_copy() { 1 } else { 2 });
        }
        (Err(Error::ValueDoesNotFit { .. }), false) => {}
        (found, _) => panic!("{found:?}"),
    }
    Ok(())
}

/// The elements as they lie, which is without gaps in either order.
fn in_memory(tensor: &ManagedTensor) -> Vec<u8> {
    let flat = i64::try_from(tensor.size()).expect("small");
    let (dtype, len) = (tensor.dtype(), tensor.nbytes());
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the library says that so many bytes are there, and ASan knows whether that is so.
    let bytes = unsafe { std::slice::from_raw_parts(tensor.as_ptr(), len) };
    assert_eq!(to_usize(flat.into()) * usize::from(dtype.bits / 8), len);
    same_nans(dtype, bytes.to_vec())
}

/// One NaN is as good as another.
fn same_nans(dtype: DLDataType, mut bytes: Vec<u8>) -> Vec<u8> {
    if (dtype.code.0, dtype.bits) == (2, 32) {
        for word in bytes.chunks_exact_mut(4) {
            if f32::from_le_bytes([word[0], word[1], word[2], word[3]]).is_nan() {
                word.copy_from_slice(&f32::NAN.to_le_bytes());
            }
        }
    } else if (dtype.code.0, dtype.bits) == (2, 64) {
        for word in bytes.chunks_exact_mut(8) {
            if f64::from_le_bytes(word.try_into().expect("8 bytes")).is_nan() {
                word.copy_from_slice(&f64::NAN.to_le_bytes());
            }
        }
    }
    bytes
}
