//! What an array says its elements are, read by the Arrow specification: an oracle for tensors of any
//! rank that became arrays.
#![allow(dead_code, reason = "each test binary uses the part that it needs")]

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_dlpack::extension::Extension;
use arrow_schema::{DataType, Field};

use crate::support::strided;

/// The elements of an array, one behind the other in logical row-major order, and their extents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Logical {
    pub(crate) shape: Vec<i64>,
    /// Booleans are a byte each.
    pub(crate) bytes: Vec<u8>,
}

/// Descends lists and tensors down to the elements.
pub(crate) fn logical(array: &ArrayRef, field: &Field) -> Logical {
    assert_eq!(array.data_type(), field.data_type());
    assert_eq!(array.null_count(), 0);
    let mut extents = vec![i64::try_from(array.len()).expect("a short array")];
    let mut order = vec![0];
    let (mut array, mut field) = (array.clone(), field.clone());
    while let DataType::FixedSizeList(item, size) = field.data_type().clone() {
        let base = extents.len();
        match Extension::of(&field).expect("well formed") {
            Some(Extension::FixedShapeTensor { shape, dimensions }) => {
                let axes: Vec<usize> =
                    dimensions.permutation.unwrap_or_else(|| (0..shape.len()).collect());
                order.extend(axes.iter().map(|axis| base + axis));
                extents.extend(shape);
            }
            _ => {
                order.push(base);
                extents.push(i64::from(size));
            }
        }
        array = array.as_fixed_size_list().values().clone();
        field = item.as_ref().clone();
    }
    let bytes: Vec<u8> = match array.data_type() {
        DataType::Boolean => array.as_boolean().values().iter().map(u8::from).collect(),
        _ => leaf(&array).to_vec(),
    };
    let count: i64 = extents.iter().product();
    let shape: Vec<i64> = order.iter().map(|&axis| extents[axis]).collect();
    if count == 0 {
        return Logical { shape, bytes };
    }
    let itemsize = bytes.len() / usize::try_from(count).expect("small");
    let strides: Vec<i64> =
        order.iter().map(|&axis| extents[axis + 1..].iter().product()).collect();
    Logical { bytes: strided(&bytes, 0, &shape, &strides, itemsize), shape }
}

/// The one buffer of an array, below all lists.
pub(crate) fn leaf(array: &ArrayRef) -> Buffer {
    let data = array.to_data();
    match data.child_data() {
        [] => {
            assert_eq!((data.buffers().len(), data.offset()), (1, 0), "not one buffer");
            data.buffers()[0].clone()
        }
        _ => leaf(array.as_fixed_size_list().values()),
    }
}
