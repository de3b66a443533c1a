//! What a function keeps for the duration of a query: the error of its state, and the results of constant calls.
//!
//! The optimizer evaluates a constant call ten times and more, and drops its errors, because the call may be in an
//! arm of a `CASE` that no row takes. So the first outcome, also an error, is kept and returned by all later calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_schema::FieldRef;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::ColumnarValue;

/// A query, or one of its plans.
pub(crate) struct Query {
    /// Start of the query, in nanoseconds; `None` for a prepared statement.
    began: Option<i64>,
    /// The error of making the state.
    stateless: Mutex<Option<Arc<DataFusionError>>>,
    constants: Mutex<Vec<(Constants, Outcome)>>,
}

type Outcome = Result<ScalarValue, Arc<DataFusionError>>;

/// The arguments of a constant call: values and field metadata.
#[derive(PartialEq)]
pub(crate) struct Constants(Vec<(ScalarValue, HashMap<String, String>)>);

impl Constants {
    /// `None` if any argument is a column.
    pub(crate) fn of(values: &[ColumnarValue], fields: &[FieldRef]) -> Option<Self> {
        let constants = values.iter().zip(fields).map(|(value, field)| match value {
            ColumnarValue::Scalar(value) => Some((value.clone(), field.metadata().clone())),
            ColumnarValue::Array(_) => None,
        });
        constants.collect::<Option<_>>().map(Self)
    }
}

impl Query {
    fn new(began: Option<i64>) -> Arc<Self> {
        Arc::new(Self { began, stateless: Mutex::default(), constants: Mutex::default() })
    }

    pub(crate) fn began(&self) -> Option<i64> {
        self.began
    }

    /// Makes the state, unless that has failed before in this query.
    pub(crate) fn ready(&self, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut stateless = locked(&self.stateless);
        let outcome = match &*stateless {
            Some(error) => Err(Arc::clone(error)),
            None => make().map_err(Arc::new),
        };
        *stateless = outcome.as_ref().err().cloned();
        outcome.map_err(DataFusionError::Shared)
    }

    /// The outcome of a call with these constants; other threads wait for it.
    pub(crate) fn constant(
        &self,
        constants: Constants,
        call: impl FnOnce() -> Result<ScalarValue>,
    ) -> Result<ScalarValue> {
        let mut known = locked(&self.constants);
        let outcome = match known.iter().find(|(others, _)| *others == constants) {
            Some((_, outcome)) => outcome.clone(),
            None => {
                let outcome = call().map_err(Arc::new);
                known.push((constants, outcome.clone()));
                outcome
            }
        };
        outcome.map_err(DataFusionError::Shared)
    }
}

/// The queries that are being planned or run.
#[derive(Default)]
pub(crate) struct Queries(Mutex<Vec<Weak<Query>>>);

impl Queries {
    /// The query that began at this time: all calls of the function within it share this.
    pub(crate) fn of(&self, began: Option<i64>) -> Arc<Query> {
        if began.is_none() {
            return Query::new(None);
        }
        let mut queries = locked(&self.0);
        queries.retain(|query| query.strong_count() > 0);
        let alive = queries.iter().filter_map(Weak::upgrade).find(|query| query.began == began);
        alive.unwrap_or_else(|| {
            let query = Query::new(began);
            queries.push(Arc::downgrade(&query));
            query
        })
    }
}

/// Locks, also after a panic, which leaves the data consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
