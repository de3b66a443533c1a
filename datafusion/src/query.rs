//! What a function remembers for as long as a query: what went wrong, and its calls of constants.
//!
//! The optimizer evaluates a call of constants again and again, ten times and more, and drops the errors: the call
//! may be in an arm of a `CASE` that no row takes. So the first outcome is kept, an error too, and is that
//! of every later call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_schema::FieldRef;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::ColumnarValue;

/// One query, or one plan of it.
pub(crate) struct Query {
    /// When it began, in nanoseconds; `None` when a statement is prepared.
    began: Option<i64>,
    /// Why there is no state.
    stateless: Mutex<Option<Arc<DataFusionError>>>,
    constants: Mutex<Vec<(Constants, Outcome)>>,
}

type Outcome = Result<ScalarValue, Arc<DataFusionError>>;

/// The arguments of a call of constants: their values, and what these mean.
#[derive(PartialEq)]
pub(crate) struct Constants(Vec<(ScalarValue, HashMap<String, String>)>);

impl Constants {
    /// `None` if an argument is a column.
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

    /// Makes the state, unless that has failed already.
    pub(crate) fn ready(&self, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut stateless = locked(&self.stateless);
        let outcome = match &*stateless {
            Some(error) => Err(Arc::clone(error)),
            None => make().map_err(Arc::new),
        };
        *stateless = outcome.as_ref().err().cloned();
        outcome.map_err(DataFusionError::Shared)
    }

    /// The outcome of a call of these constants; other threads wait for it.
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

/// The queries that are planned or run right now.
#[derive(Default)]
pub(crate) struct Queries(Mutex<Vec<Weak<Query>>>);

impl Queries {
    /// The query that began then: each place of it that calls the function gets the same one.
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

/// The lock's content, after a panic too: that leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
