//! Fills memory block by block, on several threads where that pays.
//!
//! Each thread takes the next block when it is done with one, so that a slow one delays the others by a block at most.
//! The calling thread works too, and asks between two blocks whether the conversion is to end ([`task::check`]). No
//! thread outlives the call, so that a process can fork between calls; one that the system refuses is done without.

use std::sync::{Mutex, PoisonError};
use std::{num::NonZero, ops::Range, thread};

use crate::alloc::{self, Unwritten};
use crate::{Error, task};

/// The number of threads, of which the caller is one; `None` for what the caller's task says.
pub(crate) type Threads = Option<NonZero<usize>>;

/// Bytes of a block.
const BLOCK: usize = 1 << 20;

/// Bytes of a result from which on it is filled in blocks.
const LARGE: usize = 4 << 20;

/// Bytes that a thread may need for its stack and its first allocations.
const HELPER: usize = 16 << 20;

/// A result: `rows` rows of `row` bytes, which are cut at multiples of `step` rows. No part has fewer rows than `step`,
/// but for that of a smaller result.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) rows: usize,
    pub(super) row: usize,
    pub(super) step: usize,
}

/// Writes rows. What it needs for that is its thread's own.
pub(super) trait Fill {
    /// Fills the part with these rows, which come after those of the call before.
    fn fill(&mut self, rows: Range<usize>, part: &mut Unwritten<'_>) -> Result<(), Error>;
}

/// Fills memory for all rows by what `new` makes for each thread.
///
/// # Errors
///
/// `OutOfMemory`; the error of the first block that has one, or that of [`task::check`].
///
/// # Panics
///
/// If the memory is not as large as the rows.
pub(super) fn fill_rows<F: Fill>(
    mut out: Unwritten<'_>,
    layout: Layout,
    threads: Threads,
    new: impl Fn() -> Result<F, Error> + Sync,
) -> Result<(), Error> {
    let nbytes = out.left();
    if nbytes >= LARGE {
        return fill_blocks(out, layout, threads, &new);
    }
    if nbytes > 0 {
        new()?.fill(0..layout.rows, &mut out)?;
    }
    out.finish();
    Ok(())
}

/// The blocks that no thread has taken yet.
struct Blocks<'a> {
    /// The memory of all rows from `next` on.
    part: Unwritten<'a>,
    next: usize,
    layout: Layout,
    /// Rows of a block.
    block: usize,
    /// The error of the first block that has one; that of the check has no block, and precedes them.
    error: Option<(Option<usize>, Error)>,
}

#[inline(never)]
fn fill_blocks<F: Fill>(
    part: Unwritten<'_>,
    layout: Layout,
    threads: Threads,
    new: &(impl Fn() -> Result<F, Error> + Sync),
) -> Result<(), Error> {
    let block = (BLOCK / layout.row).max(1).next_multiple_of(layout.step);
    let most = threads.unwrap_or_else(task::threads).get().min(layout.rows.div_ceil(block));
    let blocks = Mutex::new(Blocks { part, next: 0, layout, block, error: None });
    let help = || {
        // Without memory for its own, it leaves the blocks to the others.
        let _helped = new().map(|mut fill| take_blocks(&blocks, &mut fill, || Ok(())));
    };
    let mut own = new()?;
    let mut work = || take_blocks(&blocks, &mut own, task::check);
    match most {
        ..=1 => work(),
        _ => thread::scope(|scope| {
            // glibc aborts where a new thread has no memory for its own.
            let start = |_| {
                alloc::probe_alloc(HELPER).is_ok()
                    && thread::Builder::new().spawn_scoped(scope, help).is_ok()
            };
            let _all = (1..most).all(start);
            work();
        }),
    }
    let Blocks { part, error, .. } = blocks.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some((_, error)) => Err(error),
        None => {
            part.finish();
            Ok(())
        }
    }
}

/// Fills blocks while there are some, and neither `check` nor a block has failed.
fn take_blocks(
    blocks: &Mutex<Blocks<'_>>,
    fill: &mut impl Fill,
    check: impl Fn() -> Result<(), Error>,
) {
    let lock = || blocks.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Err(error) = check() {
            return lock().fail(None, error);
        }
        let Some((rows, mut part)) = lock().take() else { return };
        let start = rows.start;
        if let Err(error) = fill.fill(rows, &mut part) {
            return lock().fail(Some(start), error);
        }
        part.finish();
    }
}

impl<'a> Blocks<'a> {
    fn take(&mut self) -> Option<(Range<usize>, Unwritten<'a>)> {
        let Self { next, layout, block, .. } = *self;
        if next == layout.rows || self.error.is_some() {
            return None;
        }
        let left = layout.rows - next;
        let end = if left < block + layout.step { layout.rows } else { next + block };
        self.next = end;
        Some((next..end, self.part.split_to((end - next) * layout.row)))
    }

    /// Blocks are taken in order, so that those before this one will be filled, or fail and take precedence.
    fn fail(&mut self, start: Option<usize>, error: Error) {
        if self.error.as_ref().is_none_or(|(first, _)| start < *first) {
            self.error = Some((start, error));
        }
    }
}

pub(super) fn product(count: usize, size: usize) -> Result<usize, Error> {
    count.checked_mul(size).ok_or(Error::Overflow("size in bytes"))
}
