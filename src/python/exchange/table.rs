//! A table that only grows, and is read without a lock.
//!
//! **T1** The entries from a place up to the first free slot belong there, or to a place before it: a slot is
//! filled once and for all. So there is never a second entry of the same kind.
//!
//! `tests/models` tries every order in which threads can look and fill.

use crate::sync::OnceLock;

pub(super) struct Table<T, const N: usize>(pub(super) [OnceLock<T>; N]);

impl<T, const N: usize> Table<T, N> {
    /// The entry that `is` the one wanted, which belongs into the slot `first` or the next free one; or else
    /// what `make` makes. `None` if it makes nothing, if there is no room, or if another thread was faster
    /// to take the slot: next time will do.
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
