//! What a function takes and returns, in plain structs.

use std::error::Error;

use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{ManagedTensor, NullPolicy, Representation};
use datafusion_common::Result;
use datafusion_expr::{ScalarUDF, Volatility};

use crate::function::TensorFunction;
use crate::once::WithState;
use crate::plan::Declared;

/// Whatever goes wrong in a function of yours: `?` makes it of any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A scalar function over tensors: what it is called, what it takes, what it returns.
///
/// ```
/// use arrow_dlpack::ffi::DLDataType;
/// use arrow_dlpack::ndarray;
/// use arrow_dlpack_datafusion::{Input, Output, TensorUdf};
///
/// let norm = TensorUdf {
///     name: "norm".into(),
///     inputs: vec![Input::column("x", DLDataType::FLOAT32, [384])],
///     output: Output { dtype: DLDataType::FLOAT32, ..Default::default() },
///     ..Default::default()
/// };
/// let udf = norm.build(
///     || Ok(()),
///     |(), batch| {
///         let rows = ndarray::view::<f32>(&batch.tensors[0])?;
///         let norms = rows.rows().into_iter().map(|row| row.dot(&row).sqrt());
///         Ok(ndarray::tensor(::ndarray::Array1::from_iter(norms)))
///     },
/// )?;
/// assert_eq!(udf.name(), "norm");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TensorUdf {
    /// Its name in SQL, which writes in lower case what is not quoted.
    pub name: String,
    /// What it takes, in the order of its arguments; at least one.
    pub inputs: Vec<Input>,
    /// What it returns.
    pub output: Output,
    /// What becomes of rows with nulls.
    pub nulls: Nulls,
    /// How many rows it is called with at most. Larger batches come in slices, whose results are put
    /// together, which is a copy; smaller ones come as they are, because rows are never held back for
    /// more of them. How large batches are is DataFusion's `datafusion.execution.batch_size`.
    pub batch_rows: Option<usize>,
    /// Whether the same rows have the same result. If so, which is the default, a call of constants
    /// alone is computed once a query, when that is planned, and its error is the query's, if a row needs
    /// the result; if it is volatile, for each row. Until the optimizer has seen a call, DataFusion is told
    /// that the function is volatile, so that it does not try the constants over and over.
    pub volatility: Volatility,
}

impl Default for TensorUdf {
    fn default() -> Self {
        Self {
            name: String::new(),
            inputs: Vec::new(),
            output: Output::default(),
            nulls: Nulls::default(),
            batch_rows: None,
            volatility: Volatility::Immutable,
        }
    }
}

impl TensorUdf {
    /// The function, to be registered. It calls `call` with each batch's tensors and what `state` made:
    /// a model, say. That is made when the first batch comes, once for all threads and all queries; if it
    /// fails, the query does, and the next query tries again.
    ///
    /// `call` returns a tensor of as many rows as the batch has, in the dtype and the shape that
    /// [`Self::output`] says. It runs on several threads at once, one for each partition. It may panic:
    /// that is an error like any other.
    ///
    /// # Errors
    ///
    /// A plan error if the description contradicts itself: no name or no input, two arguments of one
    /// name, dtypes and shapes that no Arrow type has, a fill value that an input cannot hold.
    pub fn build<S: Send + Sync + 'static>(
        self,
        state: impl Fn() -> Result<S, BoxError> + Send + Sync + 'static,
        call: impl Fn(&S, Batch) -> Result<ManagedTensor, BoxError> + Send + Sync + 'static,
    ) -> Result<ScalarUDF> {
        let declared = Declared::new(self)?;
        Ok(TensorFunction::new(declared, Box::new(WithState::new(state, call))).into())
    }
}

/// One tensor that a function takes, and the arguments that it is made of: float32 unless it says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// What errors call it, and SQL too: `norm(x => embedding)`.
    pub name: String,
    /// The elements. Arguments of other types are converted where nothing but precision can be lost:
    /// to floats from any number, to integers from integers that fit.
    pub dtype: DLDataType,
    /// The extents of one row. The tensor has an axis of rows before these. Of several axes, the argument may
    /// also be a list of fixed size of as many numbers, row-major, without metadata: what DataFusion leaves
    /// of a tensor column in `CASE`, `coalesce`, `max` or a Parquet file.
    pub shape: Vec<i64>,
    /// If not empty, the input is as many arguments as it has names: numbers, put side by side to a
    /// matrix, which is a copy. `shape` is their number, then. If empty, it is one argument: a number,
    /// for an empty shape, or a list of fixed size or an `arrow.fixed_shape_tensor`, zero-copy.
    pub columns: Vec<String>,
    /// Whether a constant may come as one row with stride 0, rather than as many equal ones. What
    /// reads by strides, such as `ndarray`, does not mind.
    pub broadcast: bool,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            name: String::new(),
            dtype: DLDataType::FLOAT32,
            shape: Vec::new(),
            columns: Vec::new(),
            broadcast: false,
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self {
            dtype: DLDataType::FLOAT32,
            shape: Vec::new(),
            representation: Representation::default(),
        }
    }
}

impl Input {
    /// One argument: a number for an empty shape, else a list of fixed size or a tensor a row.
    #[must_use]
    pub fn column(name: &str, dtype: DLDataType, shape: impl Into<Vec<i64>>) -> Self {
        Self { name: name.to_owned(), dtype, shape: shape.into(), ..Default::default() }
    }

    /// Several arguments, numbers all of them, side by side as one matrix.
    #[must_use]
    pub fn columns<const N: usize>(name: &str, dtype: DLDataType, columns: [&str; N]) -> Self {
        let shape = i64::try_from(N).map_or_else(|_| Vec::new(), |width| vec![width]);
        let columns = columns.map(str::to_owned).to_vec();
        Self { columns, ..Self::column(name, dtype, shape) }
    }

    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        if self.columns.is_empty() { std::slice::from_ref(&self.name) } else { &self.columns }
    }
}

/// The tensor that a function returns, and what becomes of it: a float32 a row unless it says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The elements. Nothing is converted: another dtype is an error.
    pub dtype: DLDataType,
    /// The extents of one row; none if a row is one value.
    pub shape: Vec<i64>,
    /// The Arrow type of the result: by default an `arrow.fixed_shape_tensor` if a row has a shape, with
    /// the extension's metadata on the column, and else a plain number.
    pub representation: Representation,
}

/// What becomes of rows with nulls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Nulls {
    /// Null in, null out, as SQL's own functions have it. A row with a null anywhere in its arguments,
    /// within a list too, does not reach the function, and its result is null. Batches with such rows
    /// are copied without them; others are not.
    #[default]
    Propagate,
    /// As the tensors' own policy says: they are refused, filled or masked, and no result is null.
    Tensor(NullPolicy),
}

impl From<NullPolicy> for Nulls {
    fn from(policy: NullPolicy) -> Self {
        Self::Tensor(policy)
    }
}

/// What a function is called with.
#[derive(Debug)]
pub struct Batch {
    /// How many rows the tensors have; never none.
    pub rows: usize,
    /// A tensor for each input. They share the batch's memory where that is possible: read-only.
    pub tensors: Vec<ManagedTensor>,
    /// With [`NullPolicy::Masked`], a tensor of booleans for each input, True where it is valid; else
    /// none.
    pub masks: Vec<ManagedTensor>,
}
