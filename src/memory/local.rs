//! The thread-local state, in one place: in a library that Python loads, each access to it is a call.

use std::cell::Cell;

use super::{block_cache::BlockCache, counts::Slot};

pub(super) struct Local {
    /// The thread's slot of counters, from its first tensor until it ends; see `live`.
    pub(super) slot: Cell<Option<&'static Slot>>,
    /// The depth of nested releases, and whether any are postponed; see `release`.
    pub(super) releases: Cell<usize>,
    pub(super) any_waiting: Cell<bool>,
    /// The block for the next tensor. Empty while the thread has no slot.
    pub(super) blocks: BlockCache,
}

thread_local! {
    /// It needs no drop, so that it can be used until the thread ends.
    pub(super) static LOCAL: Local = const {
        Local {
            slot: Cell::new(None),
            releases: Cell::new(0),
            any_waiting: Cell::new(false),
            blocks: BlockCache::new(),
        }
    };
}
