//! Arrow IPC bytes to arrays, to tensors, and back.

use std::io::Cursor;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_dlpack::export::{self, ExportOptions, Order, Ragged, Source};
use arrow_dlpack::extension::Extension;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{
    CopyPolicy, Error, ImportOptions, ManagedTensor, NullPolicy, Number, Plan, Representation,
    from_dlpack, import, to_dlpack,
};
use arrow_ipc::reader::{FileReader, StreamDecoder, StreamReader};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::cells::{self, Cells};
use crate::draw::{dtype_of, rarely};
use crate::support::bytes_of;

/// Bytes that say what is done; all others are Arrow's.
const HEAD: usize = 16;

/// One execution: some batches, and one thing that is done with each of their columns, and one with all.
pub fn ipc(data: &[u8]) -> Result<()> {
    let Some((head, data)) = data.split_first_chunk::<HEAD>() else { return Ok(()) };
    let read = crate::panics::tolerated(|| match head[0] % 3 {
        0 => stream(data),
        1 => file(data),
        _ => decoded(data, head[0]),
    });
    let Some(Ok((schema, batches))) = read else { return Ok(()) };
    for batch in &batches {
        let columns = batch.columns().iter().zip(schema.fields()).take(40);
        for (index, (array, field)) in columns.enumerate() {
            let mut head = *head;
            head.rotate_left(1 + index % HEAD);
            column(&mut Unstructured::new(&head), array, field)?;
        }
    }
    table(&mut Unstructured::new(&head[1..]), &schema, &batches)?;
    drop(batches);
    crate::nothing_open();
    Ok(())
}

type Batches = std::result::Result<(Arc<Schema>, Vec<RecordBatch>), ArrowError>;

const MAX_BATCHES: usize = 3;

fn stream(data: &[u8]) -> Batches {
    sizes_are_sane(data)?;
    let reader = StreamReader::try_new(Cursor::new(data), None)?;
    let schema = reader.schema();
    Ok((schema, reader.take(MAX_BATCHES).collect::<std::result::Result<_, _>>()?))
}

fn file(data: &[u8]) -> Batches {
    blocks_are_sane(data)?;
    let reader = FileReader::try_new(Cursor::new(data), None)?;
    let schema = reader.schema();
    Ok((schema, reader.take(MAX_BATCHES).collect::<std::result::Result<_, _>>()?))
}

/// The arrays are slices of one buffer, aligned or not.
fn decoded(data: &[u8], head: u8) -> Batches {
    sizes_are_sane(data)?;
    let mut padded = vec![0; usize::from(head / 3 % 2)];
    let from = padded.len();
    padded.extend_from_slice(data);
    let mut buffer = Buffer::from_vec(padded).slice(from);
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    while batches.len() < MAX_BATCHES {
        match decoder.decode(&mut buffer)? {
            Some(batch) => batches.push(batch),
            None => break,
        }
    }
    let schema = decoder.schema().ok_or_else(|| problem("no schema"))?;
    Ok((schema, batches))
}

fn problem(what: &str) -> ArrowError {
    ArrowError::IpcError(what.to_owned())
}

/// The readers allocate what a message says that it takes, and that they cannot is the end of the process.
fn sizes_are_sane(mut data: &[u8]) -> std::result::Result<(), ArrowError> {
    loop {
        let Some((mut size, mut rest)) = data.split_first_chunk::<4>() else { return Ok(()) };
        if *size == [0xFF; 4] {
            let Some(next) = rest.split_first_chunk::<4>() else { return Ok(()) };
            (size, rest) = next;
        }
        let size = u32::from_le_bytes(*size).try_into().expect("64 bits");
        let Some((message, body)) = rest.split_at_checked(size) else {
            return Err(problem("a message longer than the data"));
        };
        let Ok(message) = arrow_ipc::root_as_message(message) else { return Ok(()) };
        let size = usize::try_from(message.bodyLength()).ok();
        let Some((_, next)) = size.and_then(|size| body.split_at_checked(size)) else {
            return Err(problem("a body longer than the data"));
        };
        data = next;
    }
}

/// As above, for the blocks of a file.
fn blocks_are_sane(data: &[u8]) -> std::result::Result<(), ArrowError> {
    let Some((rest, [tail @ .., _, _, _, _, _, _])) = data.split_last_chunk::<10>() else {
        return Ok(());
    };
    let size = usize::try_from(i32::from_le_bytes(*tail)).map_err(|_| problem("footer"))?;
    let Some(start) = rest.len().checked_sub(size) else { return Ok(()) };
    let Ok(footer) = arrow_ipc::root_as_footer(&rest[start..]) else { return Ok(()) };
    let blocks = footer
        .dictionaries()
        .into_iter()
        .flatten()
        .chain(footer.recordBatches().into_iter().flatten());
    for block in blocks {
        let sizes = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
        let is_sane = |size: i64| usize::try_from(size).is_ok_and(|size| size <= data.len());
        if !sizes.into_iter().all(is_sane) {
            return Err(problem("a block outside of the data"));
        }
    }
    Ok(())
}

fn options(u: &mut Unstructured<'_>) -> Result<ExportOptions> {
    let nulls = match u.int_in_range(0..=9)? {
        0..=3 => NullPolicy::Refuse,
        4 => NullPolicy::Nan,
        5 | 6 => NullPolicy::Masked,
        7 => NullPolicy::Fill(*u.choose(&[
            Number::Bool(true),
            Number::Int(-1),
            Number::Int(1 << 40),
            Number::Float(0.5),
        ])?),
        _ => NullPolicy::Fill(Number::Int(1)),
    };
    Ok(ExportOptions::default()
        .with_copy(crate::descriptor::copied(u)?)
        .with_nulls(nulls)
        .with_physical(u.arbitrary()?)
        .with_dtype(if rarely(u, 4)? { Some(dtype_of(u)?) } else { None })
        .with_order(*u.choose(&[Order::RowMajor, Order::ColumnMajor])?))
}

fn column(u: &mut Unstructured<'_>, array: &ArrayRef, field: &Field) -> Result<()> {
    extension(field);
    let options = options(u)?;
    let mut array = Arc::clone(array);
    if u.ratio(1, 2)? {
        let start = u.int_in_range(0..=array.len().min(9))?;
        let len = array.len() - start;
        array =
            array.slice(start, if rarely(u, 2)? { u.int_in_range(0..=len.min(20))? } else { len });
    }
    let way = u.int_in_range(0..=7)?;
    match way {
        0 | 1 if !array.is_empty() => {
            let row = if rarely(u, 8)? {
                array.len()
            } else {
                u.int_in_range(0..=array.len().min(20) - 1)?
            };
            dense(Source::Row(&array, Some(field), row), &options, None);
        }
        2 => {
            let at = u.int_in_range(0..=array.len().min(9))?;
            let chunks = [array.slice(0, at), array.slice(at, array.len() - at)];
            dense(Source::Chunks(&chunks, field), &options, Some((&array, field)));
        }
        3 => hand_over(&array, field),
        _ => dense(Source::Array(&array, Some(field)), &options, Some((&array, field))),
    }
    if way == 7 || matches!(array.data_type(), DataType::Utf8 | DataType::List(_)) {
        let offset_type = if rarely(u, 4)? { Some(dtype_of(u)?) } else { None };
        ragged(&array, field, &options, offset_type);
    } else {
        ragged(&array, field, &options, None);
    }
    Ok(())
}

/// What is read from a field is what is written to it.
fn extension(field: &Field) {
    if let Ok(Some(extension)) = Extension::of(field) {
        let again = extension.annotate(field.clone());
        assert_eq!(Extension::of(&again), Ok(Some(extension)));
    }
}

/// Errors that only looking at the values shows.
fn is_of_values(error: &Error) -> bool {
    match error {
        Error::Column { error, .. } => is_of_values(error),
        Error::ValueDoesNotFit { .. } | Error::OutOfMemory { .. } => true,
        _ => false,
    }
}

/// By their words: those with a NaN in them are not equal.
fn is_same(one: &Error, other: &Error) -> bool {
    one.to_string() == other.to_string()
}

/// A tensor of anything that is not ragged; `whole` is the array that it should be the cells of.
fn dense(source: Source<'_>, options: &ExportOptions, whole: Option<(&ArrayRef, &Field)>) {
    let (plan, found) = (export::explain(source, options), export::tensor(source, options));
    let is_masked = options.nulls == NullPolicy::Masked;
    let tensor = match (&plan, found) {
        (Ok(plan), Ok(tensor)) => {
            if !is_masked {
                kept(plan, &tensor, options.copy);
            }
            tensor
        }
        (Ok(_), Err(error)) if is_of_values(&error) => return,
        (Err(explained), Err(error)) => {
            assert!(is_same(explained, &error), "{explained}, but {error}");
            return;
        }
        // The mask takes a copy.
        (Err(Error::CopyForbidden { .. }), Ok(tensor)) if is_masked => tensor,
        (plan, found) => panic!("{plan:?}, but {found:?}"),
    };
    let tensor = crate::through_c(tensor).expect("it was valid before");
    assert!(tensor.device().is_cpu());
    if tensor.nbytes() > 1 << 16 {
        return;
    }
    // A byte that is not there would be ASan's.
    let memory = memory(&tensor);
    // The cells of lists are those of their values, which `ragged` looks at.
    let whole = whole.filter(|(array, _)| !is_ragged(array.data_type()));
    let Some((array, field)) = whole else { return };
    assert_eq!(usize::try_from(tensor.shape()[0]), Ok(array.len()));
    let Some(expected) = cells::of(array, field) else { return };
    if is_masked {
        let mask = export::mask(source, &options.clone().with_copy(CopyPolicy::IfNeeded));
        let mask = mask.expect("where there is a tensor there is a mask");
        assert_eq!((mask.shape(), mask.strides()), (tensor.shape(), tensor.strides()));
        let valid: Vec<u8> = expected.valid.iter().map(|&valid| valid.into()).collect();
        assert_eq!(self::memory(&mask), valid);
    }
    if options.dtype.is_none() && options.nulls != NullPolicy::Nan {
        same(&memory, &tensor, &expected, options.nulls);
        // Nulls without a cell are gone where they were to be filled.
        let is_seen = !expected.valid.is_empty() || options.nulls == NullPolicy::Refuse;
        if is_seen && expected.valid.iter().all(|&valid| valid) {
            back(tensor, array, field);
        }
    }
}

/// The elements as they lie: axes may be in another order, but there are no gaps.
fn memory(tensor: &ManagedTensor) -> Vec<u8> {
    if tensor.nbytes() == 0 {
        return Vec::new();
    }
    // SAFETY: the library says that so many bytes are there, and ASan knows whether that is so.
    unsafe { std::slice::from_raw_parts(tensor.as_ptr(), tensor.nbytes()) }.to_vec()
}

fn same(found: &[u8], tensor: &ManagedTensor, expected: &Cells, nulls: NullPolicy) {
    let Cells { bytes, valid, width, .. } = expected;
    assert_eq!(found.len(), bytes.len());
    let one = one(tensor.dtype());
    for (index, (found, expected)) in found.chunks(*width).zip(bytes.chunks(*width)).enumerate() {
        match (valid[index], nulls) {
            (true, _) => assert_eq!(found, expected),
            (false, NullPolicy::Fill(Number::Int(1))) => {
                if let Some(one) = &one {
                    assert_eq!(found, one);
                }
            }
            _ => {}
        }
    }
}

/// 1, as the usual types have it.
fn one(dtype: DLDataType) -> Option<Vec<u8>> {
    let size = usize::from(dtype.bits / 8);
    match (dtype.code.0, dtype.bits) {
        (0 | 1 | 6, 8..) => Some(1i64.to_le_bytes()[..size].to_vec()),
        (2, 32) => Some(1f32.to_le_bytes().to_vec()),
        (2, 64) => Some(1f64.to_le_bytes().to_vec()),
        _ => None,
    }
}

/// What was promised is what was done.
fn kept(plan: &Plan, tensor: &ManagedTensor, copy: CopyPolicy) {
    match copy {
        CopyPolicy::Never => assert!(plan.is_zero_copy()),
        CopyPolicy::Always => assert!(!plan.is_zero_copy()),
        CopyPolicy::IfNeeded => {}
    }
    assert_eq!(tensor.flags().0 & 3, if plan.is_zero_copy() { 1 } else { 2 }, "{plan}");
    assert!(plan.is_zero_copy() || plan.bytes_copied() >= tensor.nbytes());
}

/// The tensor as the field that it came from.
fn back(tensor: ManagedTensor, array: &ArrayRef, field: &Field) {
    let representation = Representation::Field(Arc::new(field.clone()));
    let options = ImportOptions::default().with_representation(representation);
    match from_dlpack(tensor, &options) {
        Ok((again, _)) => {
            // In bool8 they may come back as other bytes.
            if !cells::has_bool8(field) {
                assert_eq!(&again, array);
            }
        }
        Err(error) => {
            let lost = cells::has_dictionary(field.data_type());
            assert!(lost, "{error} on the way back to {field:?}");
        }
    }
}

fn hand_over(array: &ArrayRef, field: &Field) {
    let (before, len) = (array.to_data(), array.len());
    // Mostly shared: the copy of its data is not.
    let own = arrow_array::make_array(before.clone());
    match export::into_tensor_with_field(own, field) {
        Ok(mut tensor) => {
            assert_eq!(usize::try_from(tensor.shape()[0]), Ok(len));
            if let Some(bytes) = tensor.as_slice_mut::<u8>() {
                bytes.fill(7);
            }
        }
        Err(refused) => assert_eq!(refused.array.to_data(), before),
    }
}

fn is_ragged(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::List(_)
            | T::LargeList(_)
            | T::ListView(_)
            | T::LargeListView(_)
            | T::Utf8
            | T::LargeUtf8
            | T::Utf8View
            | T::Binary
            | T::LargeBinary
            | T::BinaryView
    )
}

fn ragged(
    array: &ArrayRef,
    field: &Field,
    options: &ExportOptions,
    offset_type: Option<DLDataType>,
) {
    let found = export::ragged(Source::Array(array, Some(field)), offset_type, options);
    if !is_ragged(field.data_type()) {
        assert!(found.is_err());
        return;
    }
    let plan = export::prepare_ragged(Source::Array(array, Some(field)), offset_type, options)
        .map(|prepared| prepared.plan());
    let Ragged { values, offsets, mask, .. } = match (plan, found) {
        (Ok(plan), Ok(found)) => {
            if offset_type.is_none() {
                let shared = |tensor: &ManagedTensor| tensor.flags().0 & 1 == 1;
                // A mask of no rows takes no copy.
                let parts = [Some(&found.values), Some(&found.offsets), found.mask.as_ref()];
                let all = parts.into_iter().flatten().all(shared);
                assert_eq!(plan.is_zero_copy(), all, "{plan}: {found:?} of {array:?}, {options:?}");
            }
            found
        }
        (Ok(_), Err(error)) if is_of_values(&error) || offset_type.is_some() => return,
        (Err(explained), Err(error)) if offset_type.is_none() => {
            assert!(is_same(&explained, &error), "{explained}, but {error}");
            return;
        }
        (_, Err(_)) if offset_type.is_some() => return,
        // Of another type they have to be copied, or no longer.
        (Err(Error::CopyForbidden { .. }), Ok(found)) if offset_type.is_some() => found,
        (plan, found) => panic!("{plan:?}, but {found:?}"),
    };
    let bounds: Vec<usize> = match offsets.as_slice::<i32>() {
        Some(offsets) => {
            offsets.iter().map(|&offset| offset.try_into().expect("not negative")).collect()
        }
        None => {
            let offsets = offsets.as_slice::<i64>().expect("offsets are int32 or int64");
            offsets.iter().map(|&offset| offset.try_into().expect("not negative")).collect()
        }
    };
    assert_eq!((bounds.len(), bounds[0]), (array.len() + 1, 0));
    assert_eq!(bounds.last().copied().map(i64::try_from), Some(Ok(values.shape()[0])));
    if let Some(mask) = &mask {
        let valid: Vec<u8> = (0..array.len()).map(|row| array.is_valid(row).into()).collect();
        assert_eq!(bytes_of(mask), valid);
    }
    if options.dtype.is_some() || options.nulls == NullPolicy::Nan || values.nbytes() > 1 << 16 {
        return;
    }
    let memory = memory(&values);
    let per_value = memory.len() / bounds[array.len()].max(1);
    let rows = bounds.windows(2).enumerate();
    for (row, range) in rows.take(200) {
        let found = &memory[range[0] * per_value..range[1] * per_value];
        let Some(expected) = cells::of_row(array, row) else { return };
        assert_eq!(found.len(), expected.bytes.len());
        same(found, &values, &expected, options.nulls);
    }
    let is_whole = array.null_count() == 0 && array.logical_null_count() == 0;
    let nested = matches!(field.data_type(), DataType::List(_) | DataType::LargeList(_));
    let simple = matches!(
        field.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    );
    if is_whole && (nested || simple) {
        let representation = Representation::Field(Arc::new(field.clone()));
        let options = ImportOptions::default().with_representation(representation);
        match import::ragged(values, offsets, None, &options) {
            Ok((again, _)) if simple => assert_eq!(&again, array),
            Ok((again, _)) => assert_eq!(again.len(), array.len()),
            Err(error) => assert!(!simple, "{error}"),
        }
    }
}

/// All columns as a matrix.
fn table(u: &mut Unstructured<'_>, schema: &Schema, batches: &[RecordBatch]) -> Result<()> {
    let options = options(u)?;
    let source = Source::Table(batches, schema);
    let (plan, found) = (export::explain(source, &options), export::tensor(source, &options));
    let is_masked = options.nulls == NullPolicy::Masked;
    let tensor = match (plan, found) {
        (Ok(plan), Ok(tensor)) => {
            if !is_masked {
                kept(&plan, &tensor, options.copy);
            }
            tensor
        }
        (Ok(_), Err(error)) if is_of_values(&error) => return Ok(()),
        (Err(explained), Err(error)) => {
            assert!(is_same(&explained, &error), "{explained}, but {error}");
            return Ok(());
        }
        (Err(Error::CopyForbidden { .. }), Ok(tensor)) if is_masked => tensor,
        (plan, found) => panic!("{plan:?}, but {found:?}"),
    };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let width = schema.fields().len();
    assert_eq!(tensor.shape(), [rows, width].map(|extent| i64::try_from(extent).expect("it fits")));
    if tensor.nbytes() > 1 << 16 || options.dtype.is_some() || options.nulls == NullPolicy::Nan {
        return Ok(());
    }
    let memory = memory(&tensor);
    let mut row = 0;
    for batch in batches {
        for (index, array) in batch.columns().iter().enumerate() {
            let Some(cells) = cells::of(array, schema.field(index)) else { continue };
            if to_dlpack(
                &array.slice(0, 0),
                schema.field(index),
                &ExportOptions::default().with_physical(true),
            )
            .is_ok_and(|column| column.dtype() != tensor.dtype())
            {
                // It has been converted.
                continue;
            }
            for (n, cell) in cells.bytes.chunks(cells.width).enumerate() {
                let at = match options.order {
                    Order::RowMajor => (row + n) * width + index,
                    Order::ColumnMajor => index * rows + row + n,
                };
                let found = &memory[at * cells.width..(at + 1) * cells.width];
                let one_cell =
                    Cells { bytes: cell.to_vec(), valid: vec![cells.valid[n]], width: cells.width };
                same(found, &tensor, &one_cell, options.nulls);
            }
        }
        row += batch.num_rows();
    }
    Ok(())
}
