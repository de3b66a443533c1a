//! A value that is made once, when it is first asked for.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::BoxError;

/// As `OnceLock`, but for values that may fail to be made: whoever asks next tries again.
pub(crate) struct Once<S> {
    made: OnceLock<S>,
    making: Mutex<()>,
    make: Box<dyn Fn() -> Result<S, BoxError> + Send + Sync>,
}

impl<S> Once<S> {
    pub(crate) fn new(make: impl Fn() -> Result<S, BoxError> + Send + Sync + 'static) -> Self {
        Self { made: OnceLock::new(), making: Mutex::new(()), make: Box::new(make) }
    }

    pub(crate) fn get(&self) -> Result<&S, BoxError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        // Whoever panicked here has left nothing behind.
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = (self.make)()?;
        Ok(self.made.get_or_init(|| made))
    }
}
