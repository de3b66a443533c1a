//! Where a shuffle stands after some batches, found without the rows.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use super::Pool;
use crate::{Error, alloc, chunks::checked, task};

/// Rows between two checks whether to end.
const BLOCK: usize = 1 << 16;

/// The state of a pool, for [`Pool::resume`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Resume {
    /// Rows of the pool: first those that have not been drawn, then the others, the last one of which is next.
    pub(crate) rows: usize,
    /// Rows that have not been drawn.
    pub(crate) left: usize,
    /// The state of the generator.
    pub(crate) random: u64,
}

/// The positions of a pool's rows in the source, how many rows were read, and the pool's state, after some batches of a
/// source of `rows` rows; `None` if there are no more batches.
///
/// The numbers may come from a file: any of them end in a result or an error. Memory for the pool is asked for before it is
/// filled, and a run over many rows asks whether to end.
pub(crate) fn resume(
    rows: usize,
    size: usize,
    (least, seed): (usize, u64),
    batches: usize,
) -> Result<Option<(Vec<u64>, usize, Resume)>, Error> {
    if batches > rows.div_ceil(size) {
        return Ok(None);
    }
    let schema = Arc::new(Schema::new(vec![Field::new("row", DataType::UInt64, false)]));
    let mut pool = Pool::new(least.max(size), size, seed, &schema);
    if batches > 0 {
        // For each row of the first refill, which is the largest: its number here and in the pool, its draw, and its
        // number among those drawn.
        alloc::probe_alloc(pool.rows_to_read().min(rows).saturating_mul(4 * size_of::<u64>()))?;
    }
    let mut read = 0;
    let mut had = pool.skip(batches);
    while had < batches {
        task::check()?;
        let wanted = pool.rows_to_read() / size * size;
        let count = wanted.min(rows - read);
        let numbers = Arc::new(UInt64Array::from(numbers(read, count)?));
        let numbers = checked(|| RecordBatch::try_new(Arc::clone(&schema), vec![numbers]))?;
        pool.refill(&[numbers], count < wanted)?;
        read += count;
        match pool.skip(batches - had) {
            0 => return Ok(None),
            skipped => had += skipped,
        }
    }
    let positions = pool.numbers()?;
    let state = Resume { rows: positions.len(), left: pool.rows, random: pool.random.0 };
    Ok(Some((positions, read, state)))
}

/// The numbers of `count` rows from `start` on.
fn numbers(start: usize, count: usize) -> Result<Vec<u64>, Error> {
    let overflow = |_| Error::Overflow("number of rows");
    let first = u64::try_from(start).map_err(overflow)?;
    let end = first.checked_add(u64::try_from(count).map_err(overflow)?);
    let mut rows = first..end.ok_or(Error::Overflow("number of rows"))?;
    let mut numbers = alloc::reserved(count)?;
    while !rows.is_empty() {
        numbers.extend(rows.by_ref().take(BLOCK));
        task::check()?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, RecordBatchIterator};

    use super::*;
    use crate::batches::{BatchOptions, Batches, Shuffle};
    use crate::task::Task;

    fn numbered(rows: impl Iterator<Item = u64>) -> RecordBatch {
        let x: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("x", x)]).unwrap()
    }

    fn all(rows: Vec<RecordBatch>, options: &BatchOptions) -> Vec<Vec<u64>> {
        let schema = rows[0].schema();
        let reader = RecordBatchIterator::new(rows.into_iter().map(Ok), schema);
        let batches = Batches::try_new(reader, options).unwrap();
        let values = |batch: crate::batches::Batch| {
            batch.tensor("x").unwrap().values.as_slice::<u64>().unwrap().to_vec()
        };
        batches.map(|batch| values(batch.unwrap())).collect()
    }

    /// Only the rows of the pool are read again.
    #[test]
    fn a_shuffle_that_is_resumed_goes_on_as_it_would_have() {
        for (rows, size, least) in
            [(100_u64, 7, 20), (100, 20, 5), (30, 50, 10), (64, 8, 8), (0, 4, 4)]
        {
            let shuffle = Shuffle { rows: least, seed: 5 };
            let options = BatchOptions::default().with_batch_size(size).with_shuffle(shuffle);
            let expected = all(vec![numbered(0..rows)], &options);
            for had in 0..=expected.len() {
                let count = usize::try_from(rows).unwrap();
                let found = resume(count, size, (least, 5), had).unwrap();
                let (positions, read, state) = found.expect("no more than there are");
                assert!(positions.len() <= 2 * least.max(size) + size);
                let rest = numbered(u64::try_from(read).unwrap()..rows);
                let mut options = options.clone();
                options.resume = Some(state);
                let rest = all(vec![numbered(positions.into_iter()), rest], &options);
                assert_eq!(rest, expected[had..], "{rows} rows, {size}, {least}: after {had}");
            }
            assert_eq!(resume(usize::try_from(rows).unwrap(), size, (least, 5), 99).unwrap(), None);
        }
    }

    #[test]
    fn any_numbers_end_in_a_result_or_an_error() {
        let power = |eighths: u32, less: u32| 1_usize << (usize::BITS / 8 * eighths - less);
        let large = [power(5, 7), power(5, 0), power(8, 2), power(8, 1), usize::MAX];
        for number in large {
            assert_eq!(resume(100, 7, (20, 5), number).unwrap(), None);
            assert_eq!(resume(0, number, (number, 5), number).unwrap(), None);
            assert_eq!(resume(100, number, (20, 5), 2).unwrap(), None);
            let (positions, read, state) = resume(100, number, (number, 5), 1).unwrap().unwrap();
            assert_eq!((positions, read, state.left), (vec![], 100, 0));
            let (positions, read, _) = resume(number, 7, (20, 5), 3).unwrap().unwrap();
            assert!(positions.len() <= 40 && read <= 80);
            assert_eq!(resume(number, 7, (number, 5), 0).unwrap().unwrap().1, 0);
        }
        for rows in [power(8, 4), power(8, 2), power(8, 1), usize::MAX] {
            for (size, least) in [(7, rows), (rows, 7), (rows, rows), (1, power(8, 4))] {
                let error = resume(rows, size, (least, 5), 1).unwrap_err();
                assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            }
        }
    }

    #[test]
    fn a_long_run_asks_whether_to_end() {
        let mut left = 10;
        let check = Box::new(move || {
            left -= 1;
            if left > 0 { Ok(()) } else { Err(Error::Overflow("patience")) }
        });
        let task = Task { check, threads: None };
        let found = task.run(|| resume(usize::MAX >> 14, 1, (1, 5), usize::MAX >> 15));
        assert!(matches!(found, Err(Error::Overflow("patience"))));
    }

    #[test]
    fn a_state_that_does_not_fit_is_an_error() {
        let options = BatchOptions::default().with_batch_size(2);
        let mut options = options.with_shuffle(Shuffle { rows: 2, seed: 1 });
        options.resume = Some(Resume { rows: 9, left: 3, random: 1 });
        let rows = vec![numbered(0..4)];
        let schema = rows[0].schema();
        let reader = RecordBatchIterator::new(rows.into_iter().map(Ok), schema);
        let mut batches = Batches::try_new(reader, &options).unwrap();
        assert!(matches!(batches.next(), Some(Err(Error::InvalidOptions(_)))));
        options.resume = Some(Resume { rows: 3, left: 9, random: 1 });
        let reader = RecordBatchIterator::new(std::iter::empty(), numbered(0..0).schema());
        assert!(matches!(Batches::try_new(reader, &options), Err(Error::InvalidOptions(_))));
    }
}
