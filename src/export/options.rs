//! The options of an export.

use std::num::NonZero;

use crate::{CopyPolicy, Error, Number, ffi::DLDataType};

/// How to export. Options added later will default to the present behaviour.
///
/// ```
/// use arrow_array::Int32Array;
/// use arrow_dlpack::ffi::DLDataType;
/// use arrow_dlpack::{ExportOptions, NullPolicy, export};
///
/// let column = Int32Array::from(vec![Some(1), None, Some(3)]);
/// let options = ExportOptions::default().with_nulls(NullPolicy::fill(0)).with_dtype(DLDataType::FLOAT32);
/// let tensor = export::tensor(&column, &options)?;
/// assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 0.0, 3.0][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Whether the memory may or must be copied.
    pub copy: CopyPolicy,
    /// How nulls are exported.
    pub nulls: NullPolicy,
    /// Whether to export the physical values of times, decimals of up to 64 bits, dictionaries (their codes), and
    /// extension types without a tensor form. Decimals are exported as numbers, whatever this says, if `dtype` is a
    /// float.
    pub physical: bool,
    /// The dtype of the result, by default that of the values. Conversions to integers must be exact; conversions to
    /// floats round, once, to the nearest, and a finite value that would become infinite is refused.
    pub dtype: Option<DLDataType>,
    /// Memory order of a table's matrix.
    pub order: Order,
    /// How many threads may share the work where more than one pays, which is from a few megabytes on; `None` for as
    /// many as the machine runs at once ([`std::thread::available_parallelism`]), or as the environment variable
    /// `OMP_NUM_THREADS` allows, if these are fewer.
    pub threads: Option<NonZero<usize>>,
}

impl ExportOptions {
    /// Sets [`copy`](Self::copy): a policy, or the array API's `Option<bool>`.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::{CopyPolicy, ExportOptions, export};
    ///
    /// let column = Int32Array::from(vec![1, 2]);
    /// let options = ExportOptions::default().with_copy(CopyPolicy::Always);
    /// assert!(!export::tensor(&column, &options)?.is_read_only());
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<CopyPolicy>) -> Self {
        self.copy = copy.into();
        self
    }

    /// Sets [`nulls`](Self::nulls): a policy, or a number that replaces them.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::{ExportOptions, NullPolicy, export};
    ///
    /// let column = Int32Array::from(vec![Some(1), None]);
    /// let filled = export::tensor(&column, &ExportOptions::default().with_nulls(-1))?;
    /// assert_eq!(filled.as_slice::<i32>(), Some(&[1, -1][..]));
    /// let floats = export::tensor(&column, &ExportOptions::default().with_nulls(NullPolicy::Nan))?;
    /// assert!(floats.as_slice::<f64>().is_some_and(|values| values[1].is_nan()));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_nulls(mut self, nulls: impl Into<NullPolicy>) -> Self {
        self.nulls = nulls.into();
        self
    }

    /// Sets [`physical`](Self::physical).
    ///
    /// ```
    /// use arrow_array::Date32Array;
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let days = Date32Array::from(vec![0, 365]);
    /// assert!(export::tensor(&days, &ExportOptions::default()).is_err());
    /// let tensor = export::tensor(&days, &ExportOptions::default().with_physical(true))?;
    /// assert_eq!(tensor.as_slice::<i32>(), Some(&[0, 365][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_physical(mut self, physical: bool) -> Self {
        self.physical = physical;
        self
    }

    /// Sets [`dtype`](Self::dtype).
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::{Error, ExportOptions, export, ffi::DLDataType};
    ///
    /// let column = Int64Array::from(vec![1, 300]);
    /// let tensor = export::tensor(&column, &ExportOptions::default().with_dtype(DLDataType::FLOAT32))?;
    /// assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 300.0][..]));
    /// let refused = export::tensor(&column, &ExportOptions::default().with_dtype(DLDataType::INT8));
    /// assert!(matches!(refused, Err(Error::ValueDoesNotFit { .. })));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_dtype(mut self, dtype: impl Into<Option<DLDataType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// Sets [`order`](Self::order).
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use arrow_dlpack::{ExportOptions, Order, export};
    ///
    /// let batch = record_batch!(("x", Int32, [1, 2]), ("y", Int32, [3, 4]))?;
    /// let options = ExportOptions::default().with_order(Order::ColumnMajor);
    /// assert_eq!(*export::tensor(&batch, &options)?.strides(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets [`threads`](Self::threads).
    ///
    /// ```
    /// use std::num::NonZero;
    /// use arrow_array::Int64Array;
    /// use arrow_dlpack::ffi::DLDataType;
    /// use arrow_dlpack::{ExportOptions, export};
    ///
    /// let column = Int64Array::from_iter_values(0..1_000_000);
    /// let options = ExportOptions::default().with_dtype(DLDataType::FLOAT64).with_threads(NonZero::new(2));
    /// let tensor = export::tensor(&column, &options)?;
    /// assert_eq!(tensor.as_slice::<f64>().and_then(<[_]>::last), Some(&999_999.0));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_threads(mut self, threads: impl Into<Option<NonZero<usize>>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Refuses a mask that would not be returned.
    pub(super) fn check_no_mask(&self) -> Result<(), Error> {
        match self.nulls {
            NullPolicy::Masked => Err(Error::InvalidOptions(
                "NullPolicy::Masked leaves values in null slots that only a mask tells from others: export::masked returns \
                 both",
            )),
            _ => Ok(()),
        }
    }

    /// Whether all options but the number of threads have their defaults.
    pub(crate) fn are_default(&self) -> bool {
        *self == Self { threads: self.threads, ..Self::default() }
    }

    /// Whether a table of plain numbers without nulls is copied, row by row, to one tensor.
    #[cfg(feature = "pyo3")]
    pub(crate) fn are_of_a_copied_matrix(&self) -> bool {
        self.order == Order::RowMajor
            && self.nulls != NullPolicy::Masked
            && self.copy != CopyPolicy::Never
    }

    /// How values with a meaning are read.
    pub(super) fn reading(&self) -> ReadAs {
        let as_floats = self.dtype.is_some_and(DLDataType::is_float);
        ReadAs { physical: self.physical, as_floats, dtype: self.dtype }
    }

    /// The options for the values of rows whose mask is one of the rows: nulls within the rows are refused then.
    pub(super) fn of_rows(&self) -> Self {
        self.clone().with_nulls(match self.nulls {
            NullPolicy::Masked => NullPolicy::Refuse,
            policy => policy,
        })
    }
}

/// How values are read that have a meaning which their integers have not.
#[derive(Clone, Copy)]
pub(super) struct ReadAs {
    /// Whether their integers are asked for.
    pub(super) physical: bool,
    /// Whether floats are asked for, which decimals become whether they are `physical` or not.
    pub(super) as_floats: bool,
    /// What is asked for, which nulls without a type have.
    pub(super) dtype: Option<DLDataType>,
}

/// How nulls are exported, at all levels of nested types. Nulls outside of a slice do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum NullPolicy {
    /// Nulls are an error.
    #[default]
    Refuse,
    /// Nulls become this value; null rows of nested types are filled with it.
    Fill(Number),
    /// Nulls become NaN. Integers and booleans become floats, whether there are nulls or not: float64 for integers of
    /// 32 and 64 bits, float32 for all others, as with pyarrow's `null_to_nan`.
    // `column` decides on it (`Target::new`, `with_nan`). In its place nulls are refused among labels that are integers
    // (`batches/convert`) and codes of `Categories` (`_loader/options.py` of the Python package).
    Nan,
    /// Null slots keep the values that are in memory, and [`masked`](super::masked), [`prepare`](super::prepare) and
    /// [`columns`](super::columns) return the validity too. What returns one tensor refuses this policy.
    Masked,
}

impl NullPolicy {
    /// [`Fill`](Self::Fill) with a number or boolean.
    ///
    /// ```
    /// use arrow_array::BooleanArray;
    /// use arrow_dlpack::{ExportOptions, NullPolicy, export};
    ///
    /// let column = BooleanArray::from(vec![Some(true), None]);
    /// let options = ExportOptions::default().with_nulls(NullPolicy::fill(false));
    /// assert_eq!(export::tensor(&column, &options)?.as_bool_bytes(), Some(&[1, 0][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn fill(value: impl Into<Number>) -> Self {
        Self::Fill(value.into())
    }
}

macro_rules! fills {
    ($($type:ty)*) => {$(
        impl From<$type> for NullPolicy {
            fn from(value: $type) -> Self {
                Self::fill(value)
            }
        }
    )*};
}
fills!(bool i8 i16 i32 i64 u8 u16 u32 u64 half::f16 half::bf16 f32 f64 Number);

/// Memory order of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Row by row: C order.
    #[default]
    RowMajor,
    /// Column by column: Fortran order. Zero-copy if the columns are contiguous slices of one buffer in this order,
    /// as those of [`import::matrix`](crate::import::matrix) are; separate buffers at adjacent addresses are
    /// copied.
    ColumnMajor,
}
