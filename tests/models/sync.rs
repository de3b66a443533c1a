//! loom's atomics and locks under the names of `std::sync`.

pub(crate) use loom::sync::{Mutex, atomic};

use atomic::{AtomicBool, Ordering};

/// loom has none: that of `std`, and around each step of it one of loom's, where threads take turns.
pub(crate) struct OnceLock<T> {
    is_set: AtomicBool,
    setting: Mutex<()>,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        let (is_set, setting) = (AtomicBool::new(false), Mutex::new(()));
        Self { is_set, setting, value: std::sync::OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    pub(crate) fn set(&self, new: T) -> Result<(), T> {
        // Who is too late returns when the other thread is done.
        let _setting = self.setting.lock();
        let set = self.value.set(new);
        self.is_set.store(true, Ordering::Release);
        set
    }
}
