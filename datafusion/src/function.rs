//! The function as DataFusion sees it.
//!
//! As it is registered, it says that it is volatile, so that the optimizer leaves its calls of constants alone. The
//! optimizer's first look at a call, `simplify`, puts the function in its place that knows its query, and says what
//! is true. Where nothing is optimized, calls work as they are.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow_dlpack::{ImportOptions, ManagedTensor, Representation, from_dlpack};
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
    /// The function, to be registered. It calls `call` with the tensors of each batch.
    ///
    /// `call` returns a tensor of as many rows as the batch has, in the dtype and the shape that [`Self::output`]
    /// declares. It runs on several threads at once, one for each partition. It may panic: that is an error like any
    /// other.
    ///
    /// # Errors
    ///
    /// A plan error if the description contradicts itself: no name or no input, two arguments of one name, a matrix
    /// without columns, batches of no rows, dtypes and shapes that no Arrow type has, a fill value that an input cannot
    /// hold.
    pub fn build(
        self,
        call: impl Fn(Batch) -> Result<ManagedTensor, BoxError> + Send + Sync + 'static,
    ) -> Result<ScalarUDF> {
        self.build_with_state(|| Ok(()), move |(), batch| call(batch))
    }

    /// As [`Self::build`], and `call` gets what `state` made, too: a model, say.
    ///
    /// `state` runs when the first batch comes, once for all threads and all queries. If it fails, the query does, and
    /// the next query tries again.
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
    /// `None` as it is registered.
    query: Option<Arc<Query>>,
}

/// What is one for all queries.
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

    /// The same function in a query that began then.
    fn in_query(&self, began: Option<i64>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            signature: self.declared.signature.clone(),
            query: Some(self.queries.of(began)),
        }
    }

    /// The results for rows of which there is at least one.
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

    /// Calls the function for as many rows at a time as it takes.
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

    /// What the user's closures do, with the function's name on what goes wrong.
    fn fenced<T>(&self, work: impl FnOnce() -> Result<T, BoxError>) -> Result<T> {
        let name = &self.declared.udf.name;
        // What a panic may leave half done is the function's own, and its locks are poisoned.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(DataFusionError::from(error).context(format!("{name} failed"))),
            Err(panic) => exec_err!("{name} panicked: {}", message(&*panic)),
        }
    }

    /// A result as an Arrow array, if it is what was declared.
    fn import(&self, result: ManagedTensor, rows: usize) -> Result<ArrayRef> {
        let (name, output) = (&self.declared.udf.name, &self.declared.udf.output);
        let mut expected = vec![i64::try_from(rows).unwrap_or(i64::MAX)];
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

    /// Whether a null makes the result null.
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

/// Functions are equal if they are one, whatever the query, because what they call cannot be compared.
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
