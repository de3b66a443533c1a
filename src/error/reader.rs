//! The error of a reader of record batches.

use std::sync::Arc;
use std::{error, fmt};

type Cause = dyn error::Error + Send + Sync;

/// The error of a reader of record batches, mostly an [`ArrowError`](arrow_schema::ArrowError), as
/// [`source`](error::Error::source).
#[derive(Clone, Debug)]
pub struct ReaderError(Arc<Cause>);

impl ReaderError {
    pub(crate) fn new(cause: impl Into<Box<Cause>>) -> Self {
        Self(cause.into().into())
    }

    /// The error of the reader.
    pub(crate) fn get_ref(&self) -> &(dyn error::Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the reader failed: {}", self.0)
    }
}

impl error::Error for ReaderError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// Equal if they are the same error, not if they have the same message.
impl PartialEq for ReaderError {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
