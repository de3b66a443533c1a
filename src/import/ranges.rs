//! Types that have fewer values than the integers that store them: decimals of a precision, times of a day, days in
//! milliseconds. The memory of a tensor is shared as one of these only after each of its values was looked at.

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::{Error, number::StoredNumbers, task::Steps};

/// Whether [`check`] looks at the values of a type.
#[cfg(feature = "pyo3")]
pub(super) fn are_checked(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            are_checked(item.data_type())
        }
        other => StoredNumbers::of(other).is_some(),
    }
}

/// Checks the values of an array, within lists too. Those that no row has, and those under nulls, may be any.
///
/// # Errors
///
/// `NotAValue`.
pub(crate) fn check(array: &ArrayRef) -> Result<(), Error> {
    check_rows(array, &|row| Some(row))
}

/// The same for an array within lists, of whose values each belongs to a row of the outermost one, or to none.
fn check_rows(array: &ArrayRef, row_of: &dyn Fn(usize) -> Option<usize>) -> Result<(), Error> {
    let outer = |at: usize| if array.is_valid(at) { row_of(at) } else { None };
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or_default();
            check_rows(array.as_fixed_size_list().values(), &|at| outer(at / size))
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            check_rows(lists.values(), &|at| outer(list_of(lists.offsets(), at)?))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            check_rows(lists.values(), &|at| outer(list_of(lists.offsets(), at)?))
        }
        data_type => {
            let Some(numbers) = StoredNumbers::of(data_type) else { return Ok(()) };
            let data = array.to_data();
            let found = match data_type.primitive_width() {
                Some(4) => find::<i32>(&data, &numbers, outer)?,
                _ => find::<i64>(&data, &numbers, outer)?,
            };
            found.map_or(Ok(()), |(row, value)| {
                Err(Error::NotAValue { value, data_type: data_type.clone(), row })
            })
        }
    }
}

/// The list that has this value.
fn list_of<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, at: usize) -> Option<usize> {
    let list = offsets.partition_point(|offset| offset.as_usize() <= at).checked_sub(1)?;
    (list + 1 < offsets.len()).then_some(list)
}

/// The first value that is none of these numbers and belongs to a row, and that row.
fn find<T: ArrowNativeType + Into<i64>>(
    data: &ArrayData,
    numbers: &StoredNumbers,
    row_of: impl Fn(usize) -> Option<usize>,
) -> Result<Option<(usize, i64)>, Error> {
    const BLOCK: usize = 1024;
    let mut steps = Steps::default();
    let values = data.buffer::<T>(0).get(..data.len()).unwrap_or_default();
    for (block, start) in values.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        if !holds(numbers, block) {
            for (at, &value) in (start..).zip(block) {
                let row = if holds(numbers, &[value]) { None } else { row_of(at) };
                if let Some(row) = row {
                    return Ok(Some((row, value.into())));
                }
            }
        }
        steps.done(size_of_val(block))?;
    }
    Ok(None)
}

/// Whether all of these values are among the numbers. Without a branch for each, which vector instructions have not.
fn holds<T: ArrowNativeType + Into<i64>>(numbers: &StoredNumbers, values: &[T]) -> bool {
    let days = |value: T| value.into() % StoredNumbers::MILLISECONDS_OF_A_DAY == 0;
    match *numbers {
        StoredNumbers::Within(least, most) => values.iter().fold(true, |all, &value| {
            let value: i64 = value.into();
            all & (least <= value) & (value <= most)
        }),
        StoredNumbers::Days => values.iter().fold(true, |all, &value| all & days(value)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Date64Array, Decimal32Array, FixedSizeListArray, ListArray, Time64NanosecondArray,
    };
    use arrow_schema::Field;

    use super::*;

    fn refused(array: impl Array + 'static) -> Option<(usize, i64)> {
        let array: ArrayRef = Arc::new(array);
        match check(&array) {
            Ok(()) => None,
            Err(Error::NotAValue { value, row, .. }) => Some((row, value)),
            Err(other) => panic!("{other}"),
        }
    }

    fn cents(values: Vec<Option<i32>>) -> Decimal32Array {
        Decimal32Array::from(values).with_precision_and_scale(4, 2).unwrap()
    }

    #[test]
    fn each_end_of_a_range_is_a_value() {
        assert_eq!(refused(cents(vec![Some(-9999), Some(9999)])), None);
        assert_eq!(refused(cents(vec![Some(0), Some(10_000)])), Some((1, 10_000)));
        assert_eq!(refused(cents(vec![Some(-10_000)])), Some((0, -10_000)));
        let last = 24 * 3600 * 1_000_000_000 - 1;
        assert_eq!(refused(Time64NanosecondArray::from(vec![0, last])), None);
        assert_eq!(refused(Time64NanosecondArray::from(vec![last + 1])), Some((0, last + 1)));
        assert_eq!(refused(Time64NanosecondArray::from(vec![-1])), Some((0, -1)));
        assert_eq!(refused(Date64Array::from(vec![-86_400_000, 0])), None);
        assert_eq!(refused(Date64Array::from(vec![0, 43_200_000])), Some((1, 43_200_000)));
    }

    #[test]
    fn a_value_that_no_row_has_may_be_any() {
        assert_eq!(refused(Date64Array::from(vec![0, 1]).slice(0, 1)), None);
        let many = vec![Some(0); 5000].into_iter().chain([Some(-70_000)]).collect::<Vec<_>>();
        assert_eq!(refused(cents(many)), Some((5000, -70_000)));

        let bad =
            Arc::new(Decimal32Array::from(vec![70_000; 6]).with_precision_and_scale(4, 2).unwrap());
        let item = Arc::new(Field::new_list_field(bad.data_type().clone(), true));
        let fixed = |nulls: &[bool]| {
            FixedSizeListArray::new(Arc::clone(&item), 2, bad.clone(), Some(nulls.to_vec().into()))
        };
        assert_eq!(refused(fixed(&[false; 3])), None);
        assert_eq!(refused(fixed(&[false, false, true])), Some((2, 70_000)));

        let lists = |offsets: Vec<i32>, nulls: Vec<bool>| {
            let offsets = OffsetBuffer::new(offsets.into());
            ListArray::new(Arc::clone(&item), offsets, bad.clone(), Some(nulls.into()))
        };
        assert_eq!(refused(lists(vec![3, 3, 3], vec![true, true])), None);
        assert_eq!(refused(lists(vec![0, 6], vec![false])), None);
        assert_eq!(refused(lists(vec![2, 2, 4, 4], vec![true; 3])), Some((1, 70_000)));
    }
}
