//! Removes rows with nulls, and inserts null results for them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use arrow_select::take::take;
use datafusion_common::Result;

/// The rows of a batch that have no null.
pub(crate) struct Complete(BooleanBuffer);

impl Complete {
    /// `None` if no row has a null. All arrays must have the same length.
    pub(crate) fn of<'a>(arrays: impl Iterator<Item = &'a ArrayRef>) -> Option<Self> {
        let rows = arrays.filter_map(|array| complete(array));
        rows.reduce(|one, other| &one & &other).map(Self)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.count_set_bits()
    }

    /// The predicate that filters arrays.
    pub(crate) fn predicate(&self) -> FilterPredicate {
        FilterBuilder::new(&BooleanArray::from(self.0.clone())).optimize().build()
    }

    /// Inserts nulls for the rows that were removed.
    pub(crate) fn put_back(&self, results: &dyn Array) -> Result<ArrayRef> {
        let mut results_before = 0..;
        let places =
            self.0.iter().map(|complete| complete.then(|| results_before.next()).flatten());
        Ok(take(results, &places.collect::<UInt64Array>(), None)?)
    }
}

fn complete(array: &dyn Array) -> Option<BooleanBuffer> {
    let rows = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let rows = rows.map(NullBuffer::into_inner);
    match (rows, complete_items(array)) {
        (Some(rows), Some(items)) => Some(&rows & &items),
        (rows, items) => rows.or(items),
    }
}

/// For fixed-size lists, the rows whose items have no null.
fn complete_items(array: &dyn Array) -> Option<BooleanBuffer> {
    let list = array.as_fixed_size_list_opt()?;
    let size = usize::try_from(list.value_length()).ok()?;
    let items = complete(list.values())?;
    let all = |row| items.slice(row * size, size).count_set_bits() == size;
    Some(BooleanBuffer::collect_bool(list.len(), all))
}

/// Whether values of the field, or their items, can be null.
pub(crate) fn may_have_nulls(field: &Field) -> bool {
    let items = match field.data_type() {
        DataType::FixedSizeList(item, _) => may_have_nulls(item),
        _ => false,
    };
    field.is_nullable() || items
}
