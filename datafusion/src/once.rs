//! The user's closure, with a state that is made on first use.

use std::sync::{Mutex, OnceLock, PoisonError};

use arrow_dlpack::ManagedTensor;

use crate::{Batch, BoxError};

/// A closure and its state, type-erased.
pub(crate) trait Callee: Send + Sync {
    fn is_ready(&self) -> bool;
    /// Makes the state, unless it exists; after an error the next call tries again.
    fn make_ready(&self) -> Result<(), BoxError>;
    fn call(&self, batch: Batch) -> Result<ManagedTensor, BoxError>;
}

pub(crate) struct WithState<S, M, C> {
    made: OnceLock<S>,
    making: Mutex<()>,
    make: M,
    call: C,
}

impl<S, M, C> WithState<S, M, C>
where
    M: Fn() -> Result<S, BoxError>,
{
    pub(crate) fn new(make: M, call: C) -> Self {
        Self { made: OnceLock::new(), making: Mutex::new(()), make, call }
    }

    fn state(&self) -> Result<&S, BoxError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        // After a panic the state is still empty.
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made =
            (self.make)().map_err(|error| format!("its state could not be made: {error}"))?;
        Ok(self.made.get_or_init(|| made))
    }
}

impl<S, M, C> Callee for WithState<S, M, C>
where
    S: Send + Sync,
    M: Fn() -> Result<S, BoxError> + Send + Sync,
    C: Fn(&S, Batch) -> Result<ManagedTensor, BoxError> + Send + Sync,
{
    fn is_ready(&self) -> bool {
        self.made.get().is_some()
    }

    fn make_ready(&self) -> Result<(), BoxError> {
        self.state().map(drop)
    }

    fn call(&self, batch: Batch) -> Result<ManagedTensor, BoxError> {
        (self.call)(self.state()?, batch)
    }
}
