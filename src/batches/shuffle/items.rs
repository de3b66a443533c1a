//! Items of one width in a pool.

use arrow_buffer::{ArrowNativeType, Buffer};

use crate::Error;
use crate::alloc::{self, Fresh};
use crate::task::{self, Steps};

/// Items between two checks whether to end: each takes some ten nanoseconds.
const BLOCK: usize = 1 << 16;

/// The items of the rows of a pool, and of those that were drawn. Their memory is used again for each refill, because the
/// system takes a quarter of the time of a shuffle to give memory anew.
pub(super) struct PooledItems<T> {
    left: Vec<T>,
    drawn: Vec<T>,
    /// Items of a row.
    each: usize,
}

/// [`PooledItems`] of any type.
pub(super) trait Drawn: Send {
    /// Adds the items of a buffer.
    fn append(&mut self, items: &Buffer) -> Result<(), Error>;

    /// Draws rows: each number is a position among the rows that are left then, and the last of them takes its place.
    fn draw(&mut self, draws: &[usize]) -> Result<(), Error>;

    /// The items of some drawn rows.
    fn batch(&self, start: usize, rows: usize) -> Result<Buffer, Error>;

    /// The items of all rows that have not been drawn.
    fn rest(&self) -> Result<Buffer, Error>;
}

impl<T: ArrowNativeType> PooledItems<T> {
    pub(super) fn new(each: usize) -> Self {
        Self { left: Vec::new(), drawn: Vec::new(), each }
    }

    pub(super) fn left(&self) -> &[T] {
        &self.left
    }

    pub(super) fn drawn(&self) -> &[T] {
        &self.drawn
    }

    /// Adds items.
    pub(super) fn extend(
        &mut self,
        count: usize,
        items: impl Iterator<Item = T>,
    ) -> Result<(), Error> {
        alloc::reserve(&mut self.left, count)?;
        self.left.extend(items);
        Ok(())
    }
}

impl PooledItems<u64> {
    /// Puts the numbers of `rows` rows in place of all items.
    pub(super) fn number(&mut self, rows: usize) -> Result<(), Error> {
        self.left.clear();
        self.extend(rows, (0..).take(rows))
    }
}

impl<T: ArrowNativeType + Send> Drawn for PooledItems<T> {
    fn append(&mut self, items: &Buffer) -> Result<(), Error> {
        let is_aligned = items.as_ptr().align_offset(align_of::<T>()) == 0;
        // Intervals of 8 bytes may be aligned to 4.
        let items =
            if is_aligned { items.clone() } else { Buffer::from_slice_ref(items.as_slice()) };
        let items = items.typed_data::<T>();
        alloc::reserve(&mut self.left, items.len())?;
        items.chunks(BLOCK).try_for_each(|block| {
            self.left.extend_from_slice(block);
            task::check()
        })
    }

    fn draw(&mut self, draws: &[usize]) -> Result<(), Error> {
        let (left, each) = (&mut self.left, self.each);
        self.drawn.clear();
        alloc::reserve(&mut self.drawn, draws.len().saturating_mul(each))?;
        if each == 1 {
            return draws.chunks(BLOCK).try_for_each(|some| {
                self.drawn.extend(some.iter().map(|&at| left.swap_remove(at)));
                task::check()
            });
        }
        let mut steps = Steps::default();
        for at in draws.iter().map(|at| at * each) {
            self.drawn.extend_from_slice(&left[at..at + each]);
            let last = left.len() - each;
            left.copy_within(last.., at);
            left.truncate(last);
            steps.done(2 * each * size_of::<T>())?;
        }
        Ok(())
    }

    fn batch(&self, start: usize, rows: usize) -> Result<Buffer, Error> {
        copied(&self.drawn[start * self.each..][..rows * self.each])
    }

    fn rest(&self) -> Result<Buffer, Error> {
        copied(&self.left)
    }
}

fn copied<T: ArrowNativeType>(items: &[T]) -> Result<Buffer, Error> {
    Fresh::build(items.len(), |out: &mut Vec<T>| out.extend_from_slice(items))
        .map(Fresh::into_buffer)
}
