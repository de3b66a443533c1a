//! An append-only table that is read without a lock.
//!
//! **T1** A slot is filled once and never cleared, and an entry goes into the first free slot at or after its
//! place. So a search from that place to the first free slot finds it, and no entry is there twice.
//!
//! `tests/models` tries every interleaving of threads that read and fill it.

use crate::sync::OnceLock;

pub(super) struct AppendOnlyTable<T, const N: usize>(pub(super) [OnceLock<T>; N]);

impl<T, const N: usize> AppendOnlyTable<T, N> {
    /// The entry for which `is` holds, searched from the slot `first` on; if there is none, `make` makes it, and it
    /// gets the first free slot. `None` if `make` returns none, if all slots are taken, or if another thread took
    /// the slot first: a later call finds the entry or tries again.
    pub(super) fn find<E>(
        &self,
        first: usize,
        is: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<Option<T>, E>,
    ) -> Result<Option<&T>, E> {
        for slot in (first..first + N).map(|slot| &self.0[slot % N]) {
            match slot.get() {
                Some(entry) if is(entry) => return Ok(Some(entry)),
                Some(_) => {}
                None => {
                    let Some(entry) = make()? else { return Ok(None) };
                    return Ok(slot.set(entry).is_ok().then(|| slot.get()).flatten());
                }
            }
        }
        Ok(None)
    }
}
