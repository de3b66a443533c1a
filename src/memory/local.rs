//! The thread-local state, in one place: in a library that Python loads, each access to it is a call.

use std::cell::Cell;

use super::block_cache::BlockCache;
use super::counts::Slot;

pub(super) struct Local {
    /// Where it counts its tensors, from the first one on, until it ends; see `live`.
    pub(super) slot: Cell<Option<&'static Slot>>,
    /// What it is releasing at the moment, and whether something waits for the end of that; see
    /// `release`.
    pub(super) releases: Cell<usize>,
    pub(super) any_waiting: Cell<bool>,
    /// For the next tensor. Empty while there is no slot.
    pub(super) blocks: BlockCache,
}

thread_local! {
    /// It has nothing to drop, so that it can be used to the very end of the thread.
    pub(super) static LOCAL: Local = const {
        Local {
            slot: Cell::new(None),
            releases: Cell::new(0),
            any_waiting: Cell::new(false),
            blocks: BlockCache::new(),
        }
    };
}
