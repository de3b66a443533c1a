//! A field as axes of elements.

use arrow_schema::{DataType, Field};

use crate::{Error, extension::Extension};

/// The storage of one value of a field.
pub(super) struct FieldLayout {
    /// Extents, from the outermost axis in memory to the innermost.
    pub(super) extents: Vec<i64>,
    /// Logical axis `i` is axis `order[i]` in memory.
    pub(super) order: Vec<usize>,
    /// The type of the elements.
    pub(super) element: DataType,
    /// The extension type of the elements, if they have one.
    pub(super) extension: Option<Extension>,
}

impl FieldLayout {
    /// Descends to the elements. Extension types that do not concern tensors are read as their storage.
    ///
    /// # Errors
    ///
    /// `MalformedExtension`.
    pub(super) fn of(mut field: &Field) -> Result<Self, Error> {
        let (mut extents, mut order) = (Vec::new(), Vec::new());
        loop {
            let extension = Extension::of(field)?;
            let (element, outer) = (field.data_type(), extents.len());
            let is_element = extension.as_ref().is_some_and(|extension| {
                *extension == Extension::Bool8 || extension.dtype().is_some()
            });
            match (&extension, element) {
                (Some(Extension::FixedShapeTensor { shape, dimensions }), _) => {
                    order.extend(dimensions.order(shape.len()).iter().map(|axis| outer + axis));
                    extents.extend_from_slice(shape);
                }
                (_, DataType::FixedSizeList(_, size) | DataType::FixedSizeBinary(size))
                    if !is_element =>
                {
                    order.push(outer);
                    extents.push(i64::from(*size));
                }
                _ => return Ok(Self { extents, order, element: element.clone(), extension }),
            }
            match element {
                DataType::FixedSizeList(item, _) => field = item,
                // Its elements are bytes.
                _ => {
                    let (element, extension) = (DataType::UInt8, None);
                    return Ok(Self { extents, order, element, extension });
                }
            }
        }
    }
}

/// The alignment that arrow-rs needs for values of a type.
pub(super) fn alignment(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeList(item, _) => alignment(item.data_type()),
        other => other.primitive_width().unwrap_or(1),
    }
}
