//! What a function takes and returns.

use std::error::Error;

use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{NullPolicy, Representation};
use datafusion_expr::Volatility;

/// Any error of a function: `?` makes it of all others.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A scalar function over tensors: its name, its inputs, its output, and the closure that [`build`](Self::build)
/// adds.
///
/// ```
/// use arrow_dlpack::{ManagedTensor, ffi::DLDataType};
/// use arrow_dlpack_datafusion::{Input, Output, TensorUdf};
/// use ndarray::{Array1, Ix2};
///
/// let norm = TensorUdf::new("norm")
///     .input(Input::column("x", DLDataType::FLOAT32, [384]))
///     .output(Output::new(DLDataType::FLOAT32, []))
///     .build(|batch| {
///         let rows = batch.view::<f32, Ix2>(0)?;
///         let norms = rows.rows().into_iter().map(|row| row.dot(&row).sqrt());
///         Ok(ManagedTensor::from(Array1::from_iter(norms)))
///     })?;
/// assert_eq!(norm.name(), "norm");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "it is a description until `build` makes a function of it"]
pub struct TensorUdf {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) output: Output,
    pub(crate) nulls: Nulls,
    pub(crate) batch_rows: Option<usize>,
    pub(crate) volatility: Volatility,
}

impl TensorUdf {
    /// A function of this name, which returns a float32 a row, and to which [`Self::input`] adds at least one input.
    ///
    /// SQL writes in lower case what is not quoted.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            inputs: Vec::new(),
            output: Output::default(),
            nulls: Nulls::default(),
            batch_rows: None,
            volatility: Volatility::Immutable,
        }
    }

    /// Adds an input: the next argument or, for [`Input::columns`], the next several.
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// What it returns, in place of a float32 a row.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// What becomes of rows with nulls: a [`Nulls`] or, for all that is not [`Nulls::Propagate`], a [`NullPolicy`].
    pub fn nulls(mut self, nulls: impl Into<Nulls>) -> Self {
        self.nulls = nulls.into();
        self
    }

    /// How many rows it is called with at most; otherwise with as many as a batch has.
    ///
    /// Larger batches come in slices, whose results are put together, which is a copy. Smaller ones come as they are,
    /// because rows are never held back for more of them. DataFusion's `datafusion.execution.batch_size` says how large
    /// batches are.
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows);
        self
    }

    /// Whether the same rows have the same result: [`Volatility::Immutable`] unless this says otherwise.
    ///
    /// If they have, a call of constants alone is computed once a query, when that is planned, and its error is the
    /// query's, if a row needs the result. A volatile function is called for each row. Until the optimizer has seen a
    /// call, the function calls itself volatile, so that DataFusion does not try the constants over and over.
    pub fn volatility(mut self, volatility: Volatility) -> Self {
        self.volatility = volatility;
        self
    }
}

/// One tensor that a function takes, and the arguments that it is made of.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "`TensorUdf::input` takes it"]
pub struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DLDataType,
    /// The extents of one row of the tensor.
    pub(crate) shape: Vec<i64>,
    /// The names of the arguments, where they are columns side by side.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) broadcast: bool,
}

impl Input {
    /// One argument: a number for an empty shape, and otherwise a list of fixed size or an `arrow.fixed_shape_tensor`.
    /// The tensor lies over its memory, and has an axis of rows before the shape.
    ///
    /// Errors have its name, and SQL too: `norm(x => embedding)`. Elements of other types are converted where nothing
    /// but precision can be lost: to floats from any number, to integers from integers that fit. For a shape of several
    /// axes the argument may also be a list of fixed size of as many numbers, row-major, without metadata: what
    /// DataFusion leaves of a tensor column in `CASE`, `coalesce`, `max` or a Parquet file.
    pub fn column(name: impl Into<String>, dtype: DLDataType, shape: impl Into<Vec<i64>>) -> Self {
        let (name, shape) = (name.into(), shape.into());
        Self { name, dtype, shape, columns: None, broadcast: false }
    }

    /// Several arguments, numbers all of them, at least one: side by side they are a matrix of (rows, arguments), which
    /// is a copy.
    ///
    /// ```
    /// use arrow_dlpack::ffi::DLDataType;
    /// use arrow_dlpack_datafusion::Input;
    ///
    /// let pixels = (0..784).map(|index| format!("pixel{index}"));
    /// let image = Input::columns("image", DLDataType::FLOAT32, pixels);
    /// ```
    pub fn columns(
        name: impl Into<String>,
        dtype: DLDataType,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let columns: Vec<_> = columns.into_iter().map(Into::into).collect();
        let width = i64::try_from(columns.len()).unwrap_or(i64::MAX);
        Self { columns: Some(columns), ..Self::column(name, dtype, [width]) }
    }

    /// Whether a constant may come as one row with stride 0, rather than as many equal ones. What reads by strides, such
    /// as `ndarray`, takes either.
    pub fn broadcast(mut self, broadcast: bool) -> Self {
        self.broadcast = broadcast;
        self
    }

    /// The names of its arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.columns.as_deref().unwrap_or(std::slice::from_ref(&self.name))
    }

    /// The extents of one row of an argument.
    pub(crate) fn row(&self) -> &[i64] {
        if self.columns.is_none() { &self.shape } else { &[] }
    }
}

/// The tensor that a function returns, and the column that it becomes: by default a float32 a row.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "`TensorUdf::output` takes it"]
pub struct Output {
    pub(crate) dtype: DLDataType,
    pub(crate) shape: Vec<i64>,
    pub(crate) representation: Representation,
}

impl Default for Output {
    fn default() -> Self {
        Self::new(DLDataType::FLOAT32, [])
    }
}

impl Output {
    /// A tensor of this dtype, whose rows have this shape: none if a row is one value.
    ///
    /// Nothing is converted: a result of another dtype or shape is an error.
    pub fn new(dtype: DLDataType, shape: impl Into<Vec<i64>>) -> Self {
        Self { dtype, shape: shape.into(), representation: Representation::default() }
    }

    /// The Arrow type of the result. By default it is an `arrow.fixed_shape_tensor` if a row has a shape, with the
    /// extension's metadata on the column, and else a plain number.
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }
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
