//! Shape and stride arithmetic: pure functions, all checked.
//!
//! Strides are in elements. The strides of axes of extent 1, and of tensors without elements, are ignored, as in
//! NumPy.

use crate::{CopyReason, Error};

/// Most axes of a tensor: far more than are in use (NumPy and PyTorch allow 64; JAX has no limit). `dlpack.h` has no
/// limit either, so that an invalid `ndim` could be up to 2^31.
pub(crate) const MAX_NDIM: usize = 256;

/// Most bytes between the ends of a tensor that the CPU can read: half of the 57-bit address spaces of x86-64 and
/// RISC-V, which is what a program can have.
pub(crate) const MAX_SPAN: usize = match 1_usize.checked_shl(56) {
    Some(most) => most,
    None => usize::MAX >> 1,
};

/// Number of elements: 1 for no axes, 0 as soon as one extent is 0. Beside an extent of 0, the others may exceed
/// `usize`.
pub(crate) fn element_count(shape: &[i64]) -> Result<usize, Error> {
    let (mut count, mut is_empty) = (Some(1usize), false);
    for (axis, &extent) in shape.iter().enumerate() {
        if extent < 0 {
            return Err(Error::NegativeExtent { axis, extent });
        }
        is_empty |= extent == 0;
        count = usize::try_from(extent).ok().zip(count).and_then(|(one, all)| all.checked_mul(one));
    }
    if is_empty { Ok(0) } else { count.ok_or_else(Error::overflow("number of elements")) }
}

/// The extents as sizes.
pub(crate) fn extents(shape: &[i64]) -> Result<Vec<usize>, Error> {
    let extents = shape.iter().map(|&extent| usize::try_from(extent).ok());
    extents.collect::<Option<_>>().ok_or(Error::Overflow("length"))
}

/// The row-major strides of `shape`. An extent of 0 counts as 1.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    write_row_major(shape, &mut strides);
    strides
}

/// [`row_major`], written to `strides`.
pub(crate) fn write_row_major(shape: &[i64], strides: &mut [i64]) {
    let mut next = 1i64;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul(extent.max(1));
    }
}

/// Converts strides from bytes to elements. Strides that are ignored need not be whole elements: the row-major ones
/// replace them.
pub(crate) fn from_bytes(
    shape: &[i64],
    strides: &[i64],
    itemsize: usize,
) -> Result<Vec<i64>, Error> {
    let mut elements = row_major(shape);
    if shape.contains(&0) {
        return Ok(elements);
    }
    let bytes = i64::try_from(itemsize).map_err(|_| Error::Overflow("size in bytes"))?;
    for (axis, (element, &stride)) in elements.iter_mut().zip(strides).enumerate() {
        match (stride.checked_rem(bytes), stride.checked_div(bytes)) {
            (Some(0), Some(whole)) => *element = whole,
            _ if shape.get(axis) == Some(&1) => {}
            _ => return Err(Error::FractionalStride { axis, stride, itemsize }),
        }
    }
    Ok(elements)
}

/// The strides that broadcast `from` to `to`; `None` if the shapes do not fit.
pub(crate) fn broadcast(from: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    let new = to.len().checked_sub(from.len())?;
    let old = from.iter().zip(strides).zip(&to[new..]).map(|((&from, &stride), &to)| {
        let same = from == to;
        (same || from == 1).then_some(if same { stride } else { 0 })
    });
    std::iter::repeat_n(Some(0), new).chain(old).collect()
}

/// Why the elements are not contiguous in row-major order; `None` if they are.
pub(crate) fn row_major_obstacle(shape: &[i64], strides: &[i64]) -> Option<CopyReason> {
    if shape.contains(&0) {
        return None;
    }
    let (axis, expected) = gap(shape, strides)?;
    Some(CopyReason::Strided { axis, stride: strides[axis], expected })
}

/// For a tensor with elements, the innermost axis whose stride is not the row-major one, and its row-major stride.
pub(crate) fn gap(shape: &[i64], strides: &[i64]) -> Option<(usize, i64)> {
    let mut expected = 1i64;
    for (axis, (&extent, &stride)) in shape.iter().zip(strides).enumerate().rev() {
        if extent != 1 && stride != expected {
            return Some((axis, expected));
        }
        expected = expected.saturating_mul(extent);
    }
    None
}

/// The axes from the outermost in memory to the innermost, if the first axis is the outermost and the elements are
/// contiguous when the axes are taken in that order. Axes of extent 1 stay in their places.
pub(crate) fn dense_order(shape: &[i64], strides: &[i64]) -> Option<Vec<usize>> {
    let axes = 0..shape.len();
    if row_major_obstacle(shape, strides).is_none() {
        return Some(axes.collect());
    }
    let inner = axes.clone().skip(1).filter(|&axis| shape[axis] != 1);
    let mut sorted: Vec<usize> = inner.clone().collect();
    sorted.sort_by_key(|&axis| std::cmp::Reverse(strides[axis]));
    let mut order: Vec<usize> = axes.collect();
    for (place, axis) in inner.zip(sorted) {
        order[place] = axis;
    }
    let pick = |values: &[i64]| order.iter().map(|&axis| values[axis]).collect::<Vec<_>>();
    row_major_obstacle(&pick(shape), &pick(strides)).is_none().then_some(order)
}

/// For a tensor with elements, the number of elements that it spans before its first one, and from that one on.
pub(crate) fn span(shape: &[i64], strides: &[i64]) -> Result<(usize, usize), Error> {
    let axes = shape.iter().zip(strides).filter(|&(&extent, _)| extent > 1);
    axes.map(|(&extent, &stride)| (extent - 1).checked_mul(stride))
        .try_fold((0usize, 1usize), |(below, above), reach| {
            let reach = reach?;
            let steps = usize::try_from(reach.unsigned_abs()).ok()?;
            if reach < 0 {
                Some((below.checked_add(steps)?, above))
            } else {
                Some((below, above.checked_add(steps)?))
            }
        })
        .ok_or_else(Error::overflow("span of strides"))
}

/// The axis along which two indices may refer to the same element, its stride, and the least stride that rules this
/// out: one that steps over all elements of the axes with smaller strides. The test is sufficient for no overlap, but
/// not necessary; ndarray's is the same.
#[cfg(feature = "ndarray")]
pub(crate) fn overlap(shape: &[i64], strides: &[i64]) -> Option<(usize, i64, u64)> {
    if shape.contains(&0) {
        return None;
    }
    let axes = shape.iter().zip(strides).enumerate();
    let mut axes: Vec<_> = axes.filter(|&(_, (&extent, _))| extent > 1).collect();
    axes.sort_by_key(|&(_, (_, stride))| stride.unsigned_abs());
    let mut needed = 1u64;
    for (axis, (&extent, &stride)) in axes {
        let step = stride.unsigned_abs();
        if step < needed {
            return Some((axis, stride, needed));
        }
        needed = needed.saturating_add(step.saturating_mul(extent.unsigned_abs() - 1));
    }
    None
}

/// The same elements in the same order with as few axes as possible, as `(extent, stride)` pairs: drops axes of
/// extent 1 and merges adjacent axes that form one run.
pub(crate) fn coalesce(shape: &[i64], strides: &[i64]) -> Vec<(i64, i64)> {
    let mut axes: Vec<(i64, i64)> = Vec::with_capacity(shape.len());
    for (&extent, &stride) in shape.iter().zip(strides).filter(|&(&extent, _)| extent != 1) {
        match axes.last_mut() {
            Some((outer, step)) if stride.checked_mul(extent) == Some(*step) => {
                *outer = outer.saturating_mul(extent);
                *step = stride;
            }
            _ => axes.push((extent, stride)),
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_extents_come_before_overflow_and_after_negative_ones() {
        assert_eq!(element_count(&[]), Ok(1));
        assert_eq!(element_count(&[2, 3]), Ok(6));
        assert_eq!(element_count(&[i64::MAX, i64::MAX, 0]), Ok(0));
        assert_eq!(element_count(&[0, -1]), Err(Error::NegativeExtent { axis: 1, extent: -1 }));
        assert_eq!(
            element_count(&[1 << 32, 1 << 32, 16]),
            Err(Error::Overflow("number of elements"))
        );
    }

    /// The errors of the first two shapes depend on the machine: on 32 bits they exceed the address space.
    #[test]
    fn element_counts_that_overflow_or_are_negative_are_refused() {
        let extent = 1 << 33;
        let counted = usize::try_from(extent).map_err(|_| Error::Overflow("number of elements"));
        assert_eq!(element_count(&[extent]), counted);
        assert_eq!(element_count(&[extent, 1]), counted);
        assert_eq!(element_count(&[extent, 0]), Ok(0));
        let negative = Error::NegativeExtent { axis: 1, extent: -1 };
        assert_eq!(element_count(&[extent, -1]), Err(negative));
        assert_eq!(element_count(&[i64::MAX, 3]), Err(Error::Overflow("number of elements")));
    }

    #[test]
    fn strides_of_axes_of_one_element_mean_nothing() {
        assert_eq!(row_major_obstacle(&[4, 1, 3], &[3, i64::MIN, 1]), None);
        assert_eq!(row_major_obstacle(&[1], &[-7]), None);
        assert_eq!(row_major_obstacle(&[4, 0], &[i64::MAX, i64::MIN]), None);
        assert_eq!(span(&[1, 3], &[i64::MAX, 1]), Ok((0, 3)));
        assert_eq!(
            row_major_obstacle(&[2, 3], &[1, 2]),
            Some(CopyReason::Strided { axis: 1, stride: 2, expected: 1 })
        );
    }

    #[test]
    fn strides_in_bytes_are_whole_elements_where_they_mean_anything() {
        assert_eq!(from_bytes(&[2, 3], &[-12, 4], 4), Ok(vec![-3, 1]));
        assert_eq!(from_bytes(&[2, 1], &[0, 5], 4), Ok(vec![0, 1]));
        assert_eq!(from_bytes(&[2, 0], &[5, i64::MIN], 4), Ok(vec![1, 1]));
        assert_eq!(
            from_bytes(&[3, 2], &[8, 5], 4),
            Err(Error::FractionalStride { axis: 1, stride: 5, itemsize: 4 })
        );
        assert!(from_bytes(&[2], &[4], 0).is_err());
        assert_eq!(from_bytes(&[2], &[i64::MIN], 8), Ok(vec![i64::MIN / 8]));
    }

    #[test]
    fn rows_in_any_order_of_their_axes_are_dense() {
        assert_eq!(dense_order(&[2, 3, 4], &[12, 4, 1]), Some(vec![0, 1, 2]));
        assert_eq!(dense_order(&[2, 3, 4], &[12, 1, 3]), Some(vec![0, 2, 1]));
        assert_eq!(dense_order(&[2, 3, 1, 4], &[12, 1, -9, 3]), Some(vec![0, 3, 2, 1]));
        assert_eq!(dense_order(&[1, 3, 4], &[0, 1, 3]), Some(vec![0, 2, 1]));
        assert_eq!(dense_order(&[2, 0, 4], &[7, 7, 7]), Some(vec![0, 1, 2]));
        assert_eq!(dense_order(&[2, 3], &[1, 2]), None);
        assert_eq!(dense_order(&[2, 3, 4], &[13, 1, 3]), None);
        assert_eq!(dense_order(&[2, 3, 4], &[12, -1, 3]), None);
        assert_eq!(dense_order(&[2, 3, 3], &[3, 1, 0]), None);
    }

    #[test]
    fn span_covers_negative_and_broadcast_strides_and_never_wraps() {
        assert_eq!(span(&[3, 4], &[-4, 1]), Ok((8, 4)));
        assert_eq!(span(&[1000, 2], &[0, 5]), Ok((0, 6)));
        assert!(span(&[3], &[i64::MAX]).is_err());
        assert!(span(&[3], &[i64::MIN]).is_err());
        // Elements are counted by addresses.
        let far = span(&[3, 3], &[i64::MAX / 2, i64::MAX / 2]);
        assert_eq!(far.is_ok_and(|span| span.0 == 0), cfg!(target_pointer_width = "64"));
        assert!(span(&[2; 4], &[i64::MAX; 4]).is_err());
    }

    #[test]
    fn coalescing_merges_only_what_is_one_run() {
        assert_eq!(coalesce(&[2, 3, 4], &[12, 4, 1]), [(24, 1)]);
        assert_eq!(coalesce(&[2, 1, 4], &[4, 99, 1]), [(8, 1)]);
        assert_eq!(coalesce(&[3, 2], &[1, 3]), [(3, 1), (2, 3)]);
        assert_eq!(coalesce(&[3, 2], &[-2, -1]), [(6, -1)]);
        assert_eq!(coalesce(&[3, 2], &[0, 0]), [(6, 0)]);
        assert!(coalesce(&[], &[]).is_empty());
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn elements_overlap_where_a_stride_does_not_step_over_the_smaller_ones() {
        assert_eq!(overlap(&[2, 3], &[3, 1]), None);
        assert_eq!(overlap(&[3, 2], &[-1, 3]), None);
        assert_eq!(overlap(&[], &[]), None);
        assert_eq!(overlap(&[1, 4], &[0, 1]), None);
        assert_eq!(overlap(&[0, 4], &[0, 0]), None);
        assert_eq!(overlap(&[4], &[0]), Some((0, 0, 1)));
        assert_eq!(overlap(&[2, 3], &[2, 1]), Some((0, 2, 3)));
        assert_eq!(overlap(&[2, 2], &[-1, 1]), Some((1, 1, 2)));
        assert_eq!(overlap(&[i64::MAX, 2], &[i64::MAX, i64::MIN]), Some((1, i64::MIN, u64::MAX)));
    }

    #[test]
    fn row_major_strides_of_empty_shapes_are_those_of_one_row() {
        assert_eq!(row_major(&[2, 0, 3]), [3, 3, 1]);
        assert!(row_major(&[]).is_empty());
    }
}
