//! The implementation of `ScalarUDFImpl`.
//!
//! The registered function reports that it is volatile, so that the optimizer does not evaluate its constant calls.
//! The optimizer first calls `simplify`, which replaces the function by one that belongs to the query and reports its
//! true volatility. Without an optimizer, the registered function works unchanged.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow_dlpack::{CopyPolicy, ImportOptions, ManagedTensor, Representation, from_dlpack};
use arrow_schema::{DataType, FieldRef};
use arrow_select::concat::concat;
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, internal_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::arguments::Arguments;
use crate::once::{Callee, WithState};
use crate::plan::Declared;
use crate::query::{Constants, Queries, Query};
use crate::{Batch, BoxError, Nulls, TensorUdf};

impl TensorUdf {
    /// Builds the function, which can then be registered. It calls `call` with the tensors of each batch.
    ///
    /// `call` returns a tensor with as many rows as the batch, of the dtype and shape that [`Self::output`] declares.
    /// Partitions call it concurrently. A panic of `call` is returned as an error.
    ///
    /// # Errors
    ///
    /// A plan error if the description is invalid: no name or no input, two arguments with one name, a matrix without
    /// columns, batches of 0 rows, a dtype or shape without an Arrow type, or a fill value that an input cannot hold.
    pub fn build(
        self,
        call: impl Fn(Batch) -> Result<ManagedTensor, BoxError> + Send + Sync + 'static,
    ) -> Result<ScalarUDF> {
        self.build_with_state(|| Ok(()), move |(), batch| call(batch))
    }

    /// As [`Self::build`], for a `call` with a state, such as a model, which `state` makes.
    ///
    /// `state` runs at the first batch, once for all threads and queries. If it fails, the query fails, and the next
    /// query tries again.
    ///
    /// ```
    /// use arrow_dlpack::{ManagedTensor, ffi::DLDataType};
    /// use arrow_dlpack_datafusion::{Input, TensorUdf};
    /// use ndarray::{Array1, Ix2};
    ///
    /// let features = Input::columns("features", DLDataType::FLOAT32, ["distance", "hour"]);
    /// let score = TensorUdf::new("score").input(features).build_with_state(
    ///     || Ok(Array1::from(vec![0.01_f32, 0.5])),
    ///     |weights, batch| Ok(ManagedTensor::from(batch.view::<f32, Ix2>(0)?.dot(weights))),
    /// )?;
    /// # Ok::<(), datafusion::error::DataFusionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::build`].
    pub fn build_with_state<S: Send + Sync + 'static>(
        self,
        state: impl Fn() -> Result<S, BoxError> + Send + Sync + 'static,
        call: impl Fn(&S, Batch) -> Result<ManagedTensor, BoxError> + Send + Sync + 'static,
    ) -> Result<ScalarUDF> {
        let declared = Declared::new(self)?;
        Ok(TensorFunction::new(declared, Box::new(WithState::new(state, call))).into())
    }
}

pub(crate) struct TensorFunction {
    shared: Arc<Shared>,
    signature: Signature,
    /// `None` for the registered function.
    query: Option<Arc<Query>>,
}

/// The state that all queries share.
pub(crate) struct Shared {
    declared: Declared,
    callee: Box<dyn Callee>,
    queries: Queries,
}

impl Deref for TensorFunction {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl TensorFunction {
    pub(crate) fn new(declared: Declared, callee: Box<dyn Callee>) -> Self {
        let signature =
            Signature { volatility: Volatility::Volatile, ..declared.signature.clone() };
        let shared = Shared { declared, callee, queries: Queries::default() };
        Self { shared: Arc::new(shared), signature, query: None }
    }

    /// The same function, for the query that began at this time.
    fn in_query(&self, began: Option<i64>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            signature: self.declared.signature.clone(),
            query: Some(self.queries.of(began)),
        }
    }

    /// The results for at least one row.
    fn rows(&self, mut arguments: Arguments) -> Result<ArrayRef> {
        let (data_type, rows) = (self.declared.output.data_type(), arguments.rows);
        if self.declared.udf.nulls != Nulls::Propagate {
            return self.slices(&arguments);
        }
        if arguments.has_null_constant() {
            return Ok(new_null_array(data_type, rows));
        }
        let Some(complete) = arguments.complete() else { return self.slices(&arguments) };
        if complete.count() == 0 {
            return Ok(new_null_array(data_type, rows));
        }
        arguments.filter(&complete.predicate())?;
        complete.put_back(&self.slices(&arguments)?)
    }

    /// Calls the function for at most `batch_rows` rows at a time.
    fn slices(&self, arguments: &Arguments) -> Result<ArrayRef> {
        let rows = arguments.rows;
        let step = self.declared.udf.batch_rows.unwrap_or(rows);
        let mut results = Vec::with_capacity(rows.div_ceil(step));
        for start in (0..rows).step_by(step) {
            let slice = start..rows.min(start.saturating_add(step));
            let (batch, count) = (arguments.batch(&self.declared, slice.clone())?, slice.len());
            results.push(self.import(self.call(batch)?, count)?);
        }
        match &*results {
            [only] => Ok(Arc::clone(only)),
            several => Ok(concat(&several.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?),
        }
    }

    fn call(&self, batch: Batch) -> Result<ManagedTensor> {
        match &self.query {
            Some(query) if !self.callee.is_ready() => {
                query.ready(|| self.fenced(|| self.callee.make_ready()))?;
            }
            _ => {}
        }
        self.fenced(|| self.callee.call(batch))
    }

    /// Runs a user's closure; errors and panics get the function's name.
    fn fenced<T>(&self, work: impl FnOnce() -> Result<T, BoxError>) -> Result<T> {
        let name = &self.declared.udf.name;
        // After a panic only the user's own state can be inconsistent, and its locks are poisoned.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(DataFusionError::from(error).context(format!("{name} failed"))),
            Err(panic) => exec_err!("{name} panicked: {}", message(&*panic)),
        }
    }

    /// Imports a result, after checking its dtype and shape. Where a row is one value, models return `(rows, 1)` too.
    fn import(&self, mut result: ManagedTensor, rows: usize) -> Result<ArrayRef> {
        let (name, output) = (&self.declared.udf.name, &self.declared.udf.output);
        let mut expected = vec![i64::try_from(rows).unwrap_or(i64::MAX)];
        if output.shape.is_empty() && result.shape() == [expected[0], 1] {
            result = result
                .reshape(&expected, CopyPolicy::IfNeeded)
                .map_err(|error| self.declared.failed("its result", error))?;
        }
        expected.extend(&output.shape);
        let (dtype, shape) = (result.dtype(), result.shape());
        if (dtype, shape) != (output.dtype, &expected) {
            let declared = output.dtype;
            return exec_err!("{name} returned {dtype} {shape:?}, not {declared} {expected:?}");
        }
        let representation = Representation::Field(Arc::clone(&self.declared.output));
        let column =
            from_dlpack(result, &ImportOptions::default().with_representation(representation));
        column.map(|(array, _)| array).map_err(|error| self.declared.failed("its result", error))
    }
}

impl ScalarUDFImpl for TensorFunction {
    fn name(&self) -> &str {
        &self.declared.udf.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let began = info.query_execution_start_time().and_then(|time| time.timestamp_nanos_opt());
        if self.query.as_ref().is_some_and(|query| query.began() == began) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let udf = ScalarUDF::from(self.in_query(began));
        Ok(ExprSimplifyResult::Simplified(udf.call(args)))
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        Ok(self.declared.coerce(given))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{}: its type depends on fields", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.declared.result(args.arg_fields)
    }

    /// Whether a null argument makes the result null.
    fn is_strict(&self) -> bool {
        self.declared.udf.nulls == Nulls::Propagate
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ScalarFunctionArgs { args, arg_fields, number_rows, .. } = args;
        if number_rows == 0 {
            let empty = new_empty_array(self.declared.output.data_type());
            return Ok(ColumnarValue::Array(empty));
        }
        let inputs = &self.declared.udf.inputs;
        let rows = |rows| self.rows(Arguments::new(inputs, &args, &arg_fields, rows)?);
        let constants = match self.declared.udf.volatility {
            Volatility::Volatile => None,
            _ => Constants::of(&args, &arg_fields),
        };
        let Some(constants) = constants else {
            return Ok(ColumnarValue::Array(rows(number_rows)?));
        };
        let call = || ScalarValue::try_from_array(&rows(1)?, 0);
        let result = match &self.query {
            Some(query) => query.constant(constants, call),
            None => call(),
        };
        result.map(ColumnarValue::Scalar)
    }
}

/// Functions are equal if they share their state, whatever the query is: closures cannot be compared.
impl PartialEq for TensorFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for TensorFunction {}

impl Hash for TensorFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        Arc::as_ptr(&self.shared).hash(state);
    }
}

impl fmt::Debug for TensorFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declared.udf.fmt(f)
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
