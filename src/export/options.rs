//! The options of an export.

use crate::copy::CopyPolicy;
use crate::ffi::DLDataType;
use crate::scalar::Scalar;

/// How to export. Later options will have defaults that change nothing.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::{ExportOptions, NullPolicy, to_dlpack};
/// use arrow_schema::{DataType, Field};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let field = Field::new("column", DataType::Int32, true);
/// let options = ExportOptions::default().with_nulls(NullPolicy::Fill((-1).into()));
/// let tensor = to_dlpack(&column, &field, &options)?;
/// assert_eq!(tensor.as_slice::<i32>(), Some(&[1, -1, 3][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Whether the tensor may or must have memory of its own.
    pub copy: CopyPolicy,
    /// What becomes of nulls.
    pub nulls: NullPolicy,
    /// Whether numbers with a meaning may go without it: times, decimals of up to 64 bits, dictionary
    /// codes, the storage of extension types that have no tensor form of their own.
    pub physical: bool,
    /// The element type of the result, if not that of the values. Integers must fit it, and what
    /// becomes an integer must be one; floats round.
    pub dtype: Option<DLDataType>,
    /// How a table's matrix lies in memory.
    pub order: Order,
}

impl ExportOptions {
    /// These options with another [`copy`](Self::copy): a policy, or the array API's `Option<bool>`.
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<CopyPolicy>) -> Self {
        self.copy = copy.into();
        self
    }

    /// These options with another [`nulls`](Self::nulls).
    #[must_use]
    pub fn with_nulls(mut self, nulls: NullPolicy) -> Self {
        self.nulls = nulls;
        self
    }

    /// These options with another [`physical`](Self::physical).
    #[must_use]
    pub fn with_physical(mut self, physical: bool) -> Self {
        self.physical = physical;
        self
    }

    /// These options with another [`dtype`](Self::dtype).
    #[must_use]
    pub fn with_dtype(mut self, dtype: impl Into<Option<DLDataType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// These options with another [`order`](Self::order).
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
}

/// What becomes of nulls, at all levels of nested types; those outside of a slice do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum NullPolicy {
    /// They are an error.
    #[default]
    Refuse,
    /// They become this value; null rows of nested types are filled with it.
    Fill(Scalar),
    /// They become NaN. Integers and booleans become floats for it, whether there are nulls or not: of 32
    /// bits, of 64 for integers of 32 and 64, as pyarrow's `null_to_nan` does.
    Nan,
    /// They keep whatever value lies under them: [`mask`](super::mask) tells which these are.
    Masked,
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Row after row: C order.
    #[default]
    RowMajor,
    /// Column after column: Fortran order. Zero-copy if the columns lie so already, as slices of one buffer
    /// (those of [`import::columns`](crate::import::columns) do): neighbours in memory are not enough.
    ColumnMajor,
}
