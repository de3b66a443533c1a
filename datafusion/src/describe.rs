//! The description of a function: inputs, output and options.

use std::error::Error;

use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{NullPolicy, Representation};
use datafusion_expr::Volatility;

/// Any error of a user's function; `?` converts other errors to it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Describes a scalar function over tensors: its name, its inputs and its output. [`build`](Self::build) adds the
/// closure.
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
    /// A function of this name that returns one float32 per row. [`Self::input`] must add at least one input.
    ///
    /// SQL lowercases names that are not quoted.
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

    /// Adds an input, which takes the next argument or, for [`Input::columns`], the next several arguments.
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// Sets the output, by default one float32 per row.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets the handling of nulls: [`Nulls`], or a [`NullPolicy`] for the tensors, such as the number that replaces them.
    pub fn with_nulls(mut self, nulls: impl Into<Nulls>) -> Self {
        self.nulls = nulls.into();
        self
    }

    /// Sets the most rows per call; by default a call has all rows of a batch.
    ///
    /// Larger batches are sliced, and the results concatenated, which is a copy. Smaller batches are not combined.
    /// DataFusion's option `datafusion.execution.batch_size` sets the size of batches.
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows);
        self
    }

    /// Sets the volatility, by default [`Volatility::Immutable`]: equal arguments give equal results.
    ///
    /// A call of an immutable or stable function with only constant arguments is evaluated once per query, during
    /// planning, and its error fails the query only if a row needs the result. A volatile function is called for each
    /// row. Before the optimizer simplifies a call, the function reports that it is volatile, so that DataFusion does
    /// not evaluate constants repeatedly.
    pub fn volatility(mut self, volatility: Volatility) -> Self {
        self.volatility = volatility;
        self
    }
}

/// One input tensor, and the arguments that it is made of.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "`TensorUdf::input` takes it"]
pub struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DLDataType,
    /// Extents of one row of the tensor.
    pub(crate) shape: Vec<i64>,
    /// Names of the arguments, for [`Self::columns`].
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) broadcast: bool,
}

impl Input {
    /// One argument: numbers for an empty shape, and otherwise fixed-size lists or an `arrow.fixed_shape_tensor`. The
    /// tensor shares its memory, and has the axis of rows before `shape`.
    ///
    /// The name is used in errors, and in SQL: `norm(x => embedding)`. Other element types are cast if only precision
    /// can be lost: any number to floats, and integers that fit to integers. For several axes, the argument may also
    /// be a flat fixed-size list, row-major, without metadata: what remains of a tensor column after `CASE`,
    /// `coalesce`, `max` or a Parquet file.
    pub fn column(name: impl Into<String>, dtype: DLDataType, shape: impl Into<Vec<i64>>) -> Self {
        let (name, shape) = (name.into(), shape.into());
        Self { name, dtype, shape, columns: None, broadcast: false }
    }

    /// One or more numeric arguments as the columns of a matrix (rows, arguments), which is a copy.
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

    /// Sets whether a constant becomes one row with stride 0 instead of repeated values. Code that respects strides,
    /// such as `ndarray`, can handle both.
    pub fn broadcast(mut self, broadcast: bool) -> Self {
        self.broadcast = broadcast;
        self
    }

    /// Names of the arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.columns.as_deref().unwrap_or(std::slice::from_ref(&self.name))
    }

    /// Extents of one row of an argument.
    pub(crate) fn row(&self) -> &[i64] {
        if self.columns.is_none() { &self.shape } else { &[] }
    }
}

/// The tensor that a function returns, and the Arrow type of its column: by default one float32 per row.
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
    /// A tensor of this dtype, whose rows have this shape; an empty shape means one value per row.
    ///
    /// Results are not cast: another dtype or shape is an error.
    pub fn new(dtype: DLDataType, shape: impl Into<Vec<i64>>) -> Self {
        Self { dtype, shape: shape.into(), representation: Representation::default() }
    }

    /// Sets the Arrow type of the result. By default it is a plain number for an empty shape, and otherwise an
    /// `arrow.fixed_shape_tensor`, with the extension's metadata on the column.
    ///
    /// The type is decided before there is a result, so it is row-major, and results in another order are copied, with
    /// [`Representation::Permuted`] too. A field with a permutation, as [`Representation::Field`], keeps its own order.
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }
}

/// How rows with nulls are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Nulls {
    /// Null in, null out, as in SQL's own functions. A row with a null in any argument, also within a list, is not
    /// passed to the function, and its result is null. Batches with such rows are copied without them.
    #[default]
    Propagate,
    /// The tensors' policy applies: nulls are refused, filled or masked, and no result is null.
    Tensor(NullPolicy),
}

macro_rules! of_tensors {
    ($($policy:ty)*) => {$(
        impl From<$policy> for Nulls {
            fn from(policy: $policy) -> Self {
                Self::Tensor(policy.into())
            }
        }
    )*};
}
of_tensors!(NullPolicy bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
