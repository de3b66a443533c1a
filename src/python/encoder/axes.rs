//! Rows that are tensors: the order in which their axes lie, and the same rows as lists in lists.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, UInt64Array, cast::AsArray, make_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::Field;
use arrow_select::take::take;

use crate::chunks::{check_taken_at, checked};
use crate::extension::{Dimensions, Extension};
use crate::{Error, alloc, layout};

/// The axes of a tensor, of which a row is one list of all values.
pub(super) struct Axes {
    /// The extents, in the order in which the axes lie in memory.
    stored: Vec<i64>,
    /// Axis `i` of the tensor is axis `order[i]` in memory.
    order: Vec<usize>,
    /// Of the tensor's axes.
    names: Option<Vec<String>>,
}

impl Axes {
    pub(super) fn new(shape: Vec<i64>, dimensions: Dimensions) -> Self {
        let order = dimensions.order(shape.len());
        let named = |names: Vec<String>| order.iter().map(|&axis| names[axis].clone()).collect();
        Self { names: dimensions.names.map(named), stored: shape, order }
    }

    /// Of a field that is tensors with axes.
    pub(super) fn of(field: &Field) -> Option<Self> {
        match Extension::of(field) {
            Ok(Some(Extension::FixedShapeTensor { shape, dimensions })) if !shape.is_empty() => {
                Some(Self::new(shape, dimensions))
            }
            _ => None,
        }
    }

    /// Of these extents, in order.
    pub(super) fn row_major(extents: Vec<i64>) -> Self {
        Self::new(extents, Dimensions::default())
    }

    /// Those of the tensor.
    pub(super) fn extents(&self) -> Vec<i64> {
        self.order.iter().map(|&axis| self.stored[axis]).collect()
    }

    /// Of each value in memory, which one of the row-major tensor it is; `None` if they are the same.
    pub(super) fn places(&self) -> Result<Option<Vec<usize>>, Error> {
        if self.order.is_sorted() { Ok(None) } else { places(&self.stored, &self.order).map(Some) }
    }

    /// Whether a tensor of these axes has those of training, wherever they lie. A name is a wish of training that a request
    /// need not repeat.
    pub(super) fn are_those_of(&self, trained: &Self) -> bool {
        self.extents() == trained.extents() && (self.names.is_none() || self.names == trained.names)
    }

    /// Rows of these axes, as they lie in training.
    pub(super) fn in_order_of(&self, array: &ArrayRef, trained: &Self) -> Result<ArrayRef, Error> {
        if self.order == trained.order || array.is_empty() {
            return Ok(Arc::clone(array));
        }
        // Where axes lie in training, by where they lie here.
        let mut order = vec![0; self.order.len()];
        for (&own, &trained) in self.order.iter().zip(&trained.order) {
            order[own] = trained;
        }
        let places = places(&trained.stored, &order)?;
        let rows = array.as_fixed_size_list();
        let mut which = alloc::reserved(places.len().saturating_mul(rows.len()))?;
        for row in 0..rows.len() {
            let of_row = places.iter().map(|place| row * places.len() + place);
            which.extend(of_row.map(|at| u64::try_from(at).unwrap_or(u64::MAX)));
        }
        check_taken_at(rows.values(), &which)?;
        let items = checked(|| take(rows.values(), &UInt64Array::from(which), None))?;
        let data = array.to_data().into_builder().child_data(vec![items.to_data()]);
        checked(|| Ok(make_array(data.build()?)))
    }
}

/// Of each value of a tensor of this shape in memory, whose axes lie in this order, where a row-major one has it.
fn places(shape: &[i64], order: &[usize]) -> Result<Vec<usize>, Error> {
    let extents: Vec<i64> = order.iter().map(|&axis| shape[axis]).collect();
    let mut axes: Vec<(usize, usize)> = vec![(0, 0); shape.len()];
    for (&axis, &stride) in order.iter().zip(&layout::row_major(&extents)) {
        axes[axis] = (shape[axis].as_usize(), stride.as_usize());
    }
    alloc::collect((0..layout::element_count(shape)?).map(|value| {
        let (mut place, mut rest) = (0, value);
        for &(extent, stride) in axes.iter().rev() {
            place += rest % extent * stride;
            rest /= extent;
        }
        place
    }))
}

/// Rows that are one list of all their values, as lists of these extents in lists.
pub(super) fn nested(rows: &FixedSizeListArray, extents: &[i64]) -> Result<ArrayRef, Error> {
    let too_large = || Error::RowTooLarge { shape: extents.to_vec() };
    let sizes = extents.iter().map(|&extent| i32::try_from(extent).map_err(|_| too_large()));
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    let mut lens = vec![rows.len()];
    for size in &sizes {
        let len = lens[lens.len() - 1].checked_mul(size.as_usize());
        lens.push(len.ok_or_else(too_large)?);
    }
    let mut values = Arc::clone(rows.values());
    for (depth, (&size, &len)) in sizes.iter().zip(&lens).enumerate().rev() {
        let nulls = rows.nulls().filter(|_| depth == 0).cloned();
        values = fixed_size(values, size, nulls, len)?;
    }
    Ok(values)
}

/// Lists in lists, `depth` levels of one length each, as rows of all their values; `None` if a list in a row is null, which
/// no value can tell.
pub(super) fn flat(rows: &FixedSizeListArray, depth: usize) -> Result<Option<ArrayRef>, Error> {
    let (mut values, mut size) = (rows.values(), rows.value_length());
    for _ in 1..depth {
        let lists = values.as_fixed_size_list();
        let row = size.as_usize();
        if lists.null_count() > 0
            && (0..lists.len()).any(|list| lists.is_null(list) && rows.is_valid(list / row))
        {
            return Ok(None);
        }
        let all = size.checked_mul(lists.value_length());
        size = all.ok_or_else(|| Error::RowTooLarge {
            shape: vec![size.into(), lists.value_length().into()],
        })?;
        values = lists.values();
    }
    fixed_size(Arc::clone(values), size, rows.nulls().cloned(), rows.len()).map(Some)
}

fn fixed_size(
    values: ArrayRef,
    size: i32,
    nulls: Option<NullBuffer>,
    len: usize,
) -> Result<ArrayRef, Error> {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let made = || FixedSizeListArray::try_new_with_length(item, size, values, nulls, len);
    Ok(Arc::new(checked(made)?))
}
