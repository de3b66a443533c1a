//! Where a shuffle stands after some batches, found without the rows.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use super::Pool;
use crate::{Error, chunks::checked};

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
/// source of so many rows; `None` if there are no more batches.
pub(crate) fn resume(
    rows: usize,
    size: usize,
    (least, seed): (usize, u64),
    batches: usize,
) -> Result<Option<(Vec<u64>, usize, Resume)>, Error> {
    let schema = Arc::new(Schema::new(vec![Field::new("row", DataType::UInt64, false)]));
    let mut pool = Pool::new(least.max(size), size, seed, &schema);
    let mut read = 0;
    for _ in 0..batches {
        if pool.advance().is_some() {
            continue;
        }
        let wanted = pool.wanted() / size * size;
        let count = wanted.min(rows - read);
        let start = u64::try_from(read).map_err(|_| Error::Overflow("number of rows"))?;
        let numbers = Arc::new(UInt64Array::from_iter_values((start..).take(count)));
        let numbers = checked(|| RecordBatch::try_new(Arc::clone(&schema), vec![numbers]))?;
        pool.refill(&[numbers], count < wanted)?;
        read += count;
        if pool.advance().is_none() {
            return Ok(None);
        }
    }
    let positions = pool.numbers()?;
    let state = Resume { rows: positions.len(), left: pool.rows, random: pool.random.0 };
    Ok(Some((positions, read, state)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, RecordBatchIterator};

    use super::*;
    use crate::batches::{BatchOptions, Batches, Shuffle};

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
