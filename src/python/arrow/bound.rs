//! Computes, before arrow's casts run, how much memory they reserve. Their kernels abort the process when
//! memory runs out, and a small input can have a huge result: a run of 2^60 values, a text that a million rows
//! share, a list cast to binaries of 2 GB each.
//!
//! This module lists casts pair by pair, at every depth of the requested type. A cast that is not listed
//! has no bound, and is refused.

use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, GenericListViewArray, OffsetSizeTrait, cast::AsArray,
};
use arrow_schema::{DataType, FieldRef, Fields};

use crate::chunks::size::{self, Sizes};
use crate::chunks::taken;
use crate::memory;

/// The longest text of a number, a time or an interval: a decimal of 76 digits with 128 zeros behind them is 205
/// bytes long.
const LONGEST_TEXT: usize = 256;

/// Whether the memory that a cast reserves has a known bound.
pub(in crate::python) fn is_known(from: &DataType, to: &DataType) -> bool {
    use DataType::{Dictionary, FixedSizeList, Map, Null, RunEndEncoded, Struct};

    let fields = |from: &FieldRef, to: &FieldRef| is_known(from.data_type(), to.data_type());
    // These casts gather rows: the bound is known only for plain values, or if the values need no cast.
    let gathered = |from: &DataType, to: &DataType| from == to || (is_leaf(from) && is_leaf(to));
    if from == to || (is_leaf(from) && is_leaf(to)) {
        return true;
    }
    match (list_of(from), list_of(to), from, to) {
        (Some((from, is_view)), Some((to, to_view)), ..) => {
            let (from_type, to_type) = (from.data_type(), to.data_type());
            fields(from, to) && (!is_view || to_view || gathered(from_type, to_type))
        }
        (_, Some((to, _)), FixedSizeList(from, _), _) => fields(from, to),
        (Some((from, _)), _, _, FixedSizeList(to, _)) => gathered(from.data_type(), to.data_type()),
        (.., Null, _) => true,
        (.., Dictionary(_, from), Dictionary(_, to)) => {
            !matches!(**from, Dictionary(..)) && is_known(from, to)
        }
        (.., RunEndEncoded(_, from), RunEndEncoded(_, to)) => fields(from, to),
        (.., Dictionary(_, from), to) => is_leaf(from) && is_leaf(to),
        (.., RunEndEncoded(_, from), to) => is_leaf(from.data_type()) && is_leaf(to),
        (.., from, Dictionary(_, to)) => is_leaf(from) && is_leaf(to),
        (.., from, RunEndEncoded(_, to)) => is_leaf(from) && is_leaf(to.data_type()),
        (.., FixedSizeList(from, one), FixedSizeList(to, other)) if one == other => {
            fields(from, to)
        }
        (.., FixedSizeList(from, 1), to) => is_known(from.data_type(), to),
        (.., from, FixedSizeList(to, 1)) => is_known(from, to.data_type()),
        (.., Map(from, _), Map(to, _)) => fields(from, to),
        (.., Struct(from), Struct(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| fields(from, to))
        }
        _ => false,
    }
}

/// A bound of the bytes that a cast which [`is_known`] reserves, including the comparison of the result with
/// the original, where shared rows count each time; `None` stands for a number that overflows.
pub(in crate::python) fn of_cast(array: &dyn Array, to: &DataType) -> Option<usize> {
    let (from, rows) = (array.data_type(), array.len());
    if from == to {
        return size::of_each_row(array)?.between(0, rows);
    }
    // Offsets, codes and indices, some of which are allocated more than once.
    let own = rows.checked_mul(64)?;
    let and = |more: Option<usize>| own.checked_add(more?);
    if is_leaf(from) && is_leaf(to) {
        return and(leaf(array, to)?.between(0, rows)?.checked_mul(3));
    }
    match (from, to) {
        (DataType::Null, _) => and(size::of_type(to, rows)),
        (DataType::Dictionary(..), DataType::Dictionary(_, to)) => {
            let values = of_cast(array.as_any_dictionary_opt()?.values(), to)?;
            and(size::of_each_row(array)?.between(0, rows)?.checked_add(values))
        }
        (DataType::Dictionary(..), to) => and(of_codes(array.as_any_dictionary_opt()?, own, to)),
        (DataType::RunEndEncoded(..), DataType::RunEndEncoded(_, to)) => {
            let (lengths, values) = size::runs(array)?;
            let each = lengths.len().checked_mul(64)?;
            each.checked_add(of_cast(&values, to.data_type())?)
        }
        (DataType::RunEndEncoded(..), to) => and(of_runs(array, to)),
        (_, DataType::Dictionary(_, to)) => {
            // arrow's builder of such a dictionary begins with capacity for 1,024.
            let first = match **to {
                DataType::FixedSizeBinary(size) => usize::try_from(size).ok()?.checked_mul(1024)?,
                _ => 0,
            };
            and(leaf(array, to)?.between(0, rows)?.checked_mul(4)?.checked_add(first))
        }
        (_, DataType::RunEndEncoded(_, to)) => {
            and(leaf(array, to.data_type())?.between(0, rows)?.checked_mul(4))
        }
        (DataType::List(_), to) => and(of_lists(array.as_list::<i32>().values(), rows, to)),
        (DataType::LargeList(_), to) => and(of_lists(array.as_list::<i64>().values(), rows, to)),
        (DataType::ListView(_), to) => and(of_views(array.as_list_view::<i32>(), to)),
        (DataType::LargeListView(_), to) => and(of_views(array.as_list_view::<i64>(), to)),
        (DataType::FixedSizeList(..), to) => {
            let to = item_of(to).map_or(to, |item| item.data_type());
            and(of_cast(array.as_fixed_size_list().values(), to))
        }
        (_, DataType::FixedSizeList(to, _)) => and(of_cast(array, to.data_type())),
        (DataType::Map(..), DataType::Map(to, _)) => {
            let DataType::Struct(to) = to.data_type() else { return None };
            and(of_columns(array.as_map().entries().columns(), to))
        }
        (_, to) => {
            let DataType::Struct(to) = to else { return None };
            and(of_columns(array.as_struct_opt()?.columns(), to))
        }
    }
}

/// Casts of dictionaries to their values' type or another one.
fn of_codes(codes: &dyn AnyDictionaryArray, own: usize, to: &DataType) -> Option<usize> {
    let values = codes.values();
    let sizes = leaf(values, to)?;
    let written = if values.is_empty() {
        0
    } else {
        memory::probe_alloc(own).ok()?;
        let mut keys = codes.normalized_keys().into_iter();
        keys.try_fold(0_usize, |sum, key| sum.checked_add(sizes.of(key)?))?
    };
    of_cast(values, to)?.checked_add(written.checked_mul(2)?)
}

/// Casts of run-end encoded arrays to an array with a value per row.
fn of_runs(array: &dyn Array, to: &DataType) -> Option<usize> {
    let (lengths, values) = size::runs(array)?;
    let (before, after) = (leaf(&values, values.data_type())?, leaf(&values, to)?);
    lengths.into_iter().enumerate().try_fold(0_usize, |sum, (run, length)| {
        let each = before.of(run)?.checked_add(after.of(run)?.checked_mul(2)?)?;
        sum.checked_add(each.checked_mul(length)?)
    })
}

fn of_columns(columns: &[ArrayRef], to: &Fields) -> Option<usize> {
    let mut pairs = columns.iter().zip(to);
    pairs.try_fold(0_usize, |sum, (column, to)| sum.checked_add(of_cast(column, to.data_type())?))
}

/// Casts of lists to lists or fixed-size lists, which cast all items.
fn of_lists(values: &dyn Array, rows: usize, to: &DataType) -> Option<usize> {
    if let Some((to, _)) = list_of(to) {
        return of_cast(values, to.data_type());
    }
    let DataType::FixedSizeList(to, size) = to else { return None };
    let cells = rows.checked_mul(usize::try_from(*size).ok()?)?;
    let padded = size::of_type(values.data_type(), cells)?.checked_add(size::of_rows(values)?)?;
    let to = to.data_type();
    let cast = match values.data_type() == to {
        true => 0,
        false => {
            size::of_type(to, cells)?.checked_add(leaf(values, to)?.between(0, values.len())?)?
        }
    };
    padded.checked_add(cast.checked_mul(3)?)
}

/// Casts of list views, whose rows may share items: a result that is no view has a copy for each row.
fn of_views<O: OffsetSizeTrait>(list: &GenericListViewArray<O>, to: &DataType) -> Option<usize> {
    let (values, offsets) = (list.values(), list.offsets());
    let in_rows = |each: &Sizes| {
        let mut rows = offsets.iter().zip(list.sizes());
        rows.try_fold(0_usize, |sum, (start, size)| {
            let start = start.as_usize();
            sum.checked_add(each.between(start, start.checked_add(size.as_usize())?)?)
        })
    };
    let items = in_rows(&Sizes::Same(1))?;
    let compared = in_rows(&size::of_each_row(values)?)?;
    if let Some((to, true)) = list_of(to) {
        return of_cast(values, to.data_type())?.checked_add(compared);
    }
    let gathered = compared
        .checked_add(taken::of_take(values, items)?)?
        .checked_add(items.checked_mul(16)?)?;
    let cells = match to {
        DataType::FixedSizeList(_, size) => {
            let cells = offsets.len().checked_mul(usize::try_from(*size).ok()?)?;
            size::of_type(values.data_type(), cells)?
        }
        _ => 0,
    };
    let to = item_of(to)?.data_type();
    let cast = match values.data_type() == to {
        true => 0,
        false => in_rows(&leaf(values, to)?)?.checked_mul(3)?,
    };
    gathered.checked_add(cells)?.checked_add(cast)
}

/// The items of lists of any kind.
pub(in crate::python) fn item_of(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::FixedSizeList(item, _) => Some(item),
        _ => list_of(data_type).map(|(item, _)| item),
    }
}

/// The items of variable-length lists, and whether they are list views.
pub(in crate::python) fn list_of(data_type: &DataType) -> Option<(&FieldRef, bool)> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => Some((item, false)),
        DataType::ListView(item) | DataType::LargeListView(item) => Some((item, true)),
        _ => None,
    }
}

/// Whether values of a type have no children.
fn is_leaf(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Boolean, FixedSizeBinary, LargeBinary};
    data_type.is_primitive()
        || data_type.is_string()
        || matches!(data_type, Boolean | Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// The bytes of each value, cast to another type without children.
fn leaf(values: &dyn Array, to: &DataType) -> Option<Sizes> {
    const OWN: usize = 17;
    if to.is_primitive() || matches!(to, DataType::Boolean | DataType::FixedSizeBinary(_)) {
        return Some(Sizes::Same(size::of_type(to, 1)?.checked_add(OWN)?));
    }
    match values.data_type() {
        DataType::FixedSizeBinary(size) => {
            Some(Sizes::Same(usize::try_from(*size).ok()?.checked_add(OWN)?))
        }
        fixed if fixed.is_primitive() || fixed == &DataType::Boolean => {
            Some(Sizes::Same(LONGEST_TEXT))
        }
        _ => {
            let Sizes::Ends(mut ends) = size::of_each_row(values)? else { return None };
            ends.iter_mut().enumerate().for_each(|(row, end)| *end += row * OWN);
            Some(Sizes::Ends(ends))
        }
    }
}
