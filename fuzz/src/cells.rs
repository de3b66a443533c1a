//! The cells of an array, one value after the other, by arrow-rs's own accessors.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_dlpack::extension::Extension;
use arrow_schema::{DataType, Field};

/// Values in the order in which they lie, `width` bytes each.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) bytes: Vec<u8>,
    pub(crate) valid: Vec<bool>,
    pub(crate) width: usize,
}

const MANY: usize = 1 << 12;

/// `None` for what is not made of cells of one size, or of too many.
pub(crate) fn of(array: &ArrayRef, field: &Field) -> Option<Cells> {
    let width = width(field)?;
    let mut cells = Cells { bytes: Vec::new(), valid: Vec::new(), width };
    cells.add(array, is_truth(field), true)?;
    Some(cells)
}

/// The values of one row of lists, texts or binaries; none, if the row is null.
pub(crate) fn of_row(array: &ArrayRef, row: usize) -> Option<Cells> {
    if array.is_null(row) {
        return Some(Cells { bytes: Vec::new(), valid: Vec::new(), width: 1 });
    }
    let bytes = |bytes: &[u8]| {
        let valid = vec![true; bytes.len()];
        Some(Cells { bytes: bytes.to_vec(), valid, width: 1 })
    };
    match array.data_type() {
        DataType::Utf8 => bytes(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        DataType::Utf8View => bytes(array.as_string_view().value(row).as_bytes()),
        DataType::BinaryView => bytes(array.as_binary_view().value(row)),
        DataType::List(item) => of(&array.as_list::<i32>().value(row), item),
        DataType::LargeList(item) => of(&array.as_list::<i64>().value(row), item),
        DataType::ListView(item) => of(&array.as_list_view::<i32>().value(row), item),
        DataType::LargeListView(item) => of(&array.as_list_view::<i64>().value(row), item),
        _ => None,
    }
}

impl Cells {
    fn add(&mut self, array: &ArrayRef, is_truth: bool, valid: bool) -> Option<()> {
        if array.len() > MANY || self.valid.len() > MANY {
            return None;
        }
        let data = array.to_data();
        for row in 0..array.len() {
            // Not `logical_nulls`: what a dictionary's code stands for is not asked.
            let valid = valid && array.is_valid(row);
            match array.data_type() {
                DataType::FixedSizeList(item, _) => {
                    let values = array.as_fixed_size_list().value(row);
                    self.add(&values, self::is_truth(item), valid)?;
                }
                DataType::FixedSizeBinary(size) => {
                    let value = array.as_fixed_size_binary().value(row);
                    self.bytes.extend_from_slice(value);
                    let cells = if self.width == 1 { value.len() } else { 1 };
                    assert_eq!(usize::try_from(*size), Ok(value.len()));
                    self.valid.extend(std::iter::repeat_n(valid, cells));
                }
                DataType::Boolean => {
                    self.bytes.push(array.as_boolean().value(row).into());
                    self.valid.push(valid);
                }
                _ => {
                    let width = self.width;
                    let start = (data.offset() + row) * width;
                    let value = &data.buffers()[0].as_slice()[start..start + width];
                    match value {
                        [byte] if is_truth => self.bytes.push((*byte != 0).into()),
                        _ => self.bytes.extend_from_slice(value),
                    }
                    self.valid.push(valid);
                }
            }
        }
        Some(())
    }
}

/// The bytes of one cell, of what a tensor has cells of.
fn width(field: &Field) -> Option<usize> {
    if let Ok(Some(Extension::Opaque { vendor_name, .. })) = Extension::of(field)
        && vendor_name == "dlpack"
    {
        return match field.data_type() {
            DataType::FixedSizeBinary(size) => usize::try_from(*size).ok().filter(|&size| size > 0),
            // Complex numbers, whose parts are not cells.
            DataType::FixedSizeList(..) => None,
            other => other.primitive_width(),
        };
    }
    match field.data_type() {
        DataType::FixedSizeList(item, _) => width(item),
        DataType::FixedSizeBinary(_) | DataType::Boolean => Some(1),
        DataType::Dictionary(key, _) => key.primitive_width(),
        other => other.primitive_width().filter(|&width| width <= 8),
    }
}

fn is_truth(field: &Field) -> bool {
    matches!(Extension::of(field), Ok(Some(Extension::Bool8)))
}

pub(crate) fn has_bool8(field: &Field) -> bool {
    match field.data_type() {
        DataType::FixedSizeList(item, _) => has_bool8(item),
        _ => is_truth(field),
    }
}

pub(crate) fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => has_dictionary(item.data_type()),
        other => matches!(other, DataType::Dictionary(..)),
    }
}
