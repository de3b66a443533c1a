//! Rows of different lengths as rows of one length, and their lengths.

use std::fmt;

use arrow_array::ArrayRef;

use super::column::{extent, mask_plan};
use super::lists::{Lists, Rows};
use super::options::{ExportOptions, NullPolicy};
use super::source::IntoSource;
use crate::ffi::{DLDataType, DLPackFlags};
pub use crate::kernels::Side;
use crate::kernels::{FillBytes, Padding};
use crate::tensor::TensorSpec;
use crate::{CopyPolicy, CopyReason, Error, ManagedTensor, Number, Plan};
use crate::{alloc, alloc::Fresh, layout, task::Steps};

/// How rows are padded. Options added later will default to the present behaviour.
///
/// ```
/// use arrow_dlpack::export::{Longer, PadOptions, Side};
///
/// let options = PadOptions::default().with_value(-1).with_max_length(512).with_side(Side::Left);
/// assert_eq!((options.max_length, options.longer), (Some(512), Longer::Cut));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PadOptions {
    /// The value that rows are padded with; 0 by default.
    pub value: Number,
    /// The length of all padded rows; `None` for that of the longest row.
    pub max_length: Option<usize>,
    /// Where the padding is.
    pub side: Side,
    /// What becomes of rows that are longer than `max_length`.
    pub longer: Longer,
}

/// What becomes of rows that are too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Longer {
    /// They keep their first values.
    #[default]
    Cut,
    /// They are an error.
    Error,
}

/// Zeros on the right, up to the longest row.
impl Default for PadOptions {
    fn default() -> Self {
        let (side, longer) = (Side::default(), Longer::default());
        Self { value: Number::Int(0), max_length: None, side, longer }
    }
}

impl PadOptions {
    /// Sets [`value`](Self::value).
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, PadOptions};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default().with_value(255);
    /// let padded = export::padded(&rows, &pad, &ExportOptions::default())?;
    /// assert_eq!(padded.values.as_slice::<u8>(), Some(&[1, 2, 3, 4, 255, 255][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_value(mut self, value: impl Into<Number>) -> Self {
        self.value = value.into();
        self
    }

    /// Sets [`max_length`](Self::max_length).
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, PadOptions};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default().with_max_length(2);
    /// let padded = export::padded(&rows, &pad, &ExportOptions::default())?;
    /// assert_eq!(padded.values.as_slice::<u8>(), Some(&[1, 2, 4, 0][..]));
    /// assert_eq!(padded.lengths.as_slice::<i64>(), Some(&[2, 1][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_max_length(mut self, values: impl Into<Option<usize>>) -> Self {
        self.max_length = values.into();
        self
    }

    /// Sets [`side`](Self::side).
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, PadOptions, Side};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default().with_side(Side::Left);
    /// let padded = export::padded(&rows, &pad, &ExportOptions::default())?;
    /// assert_eq!(padded.values.as_slice::<u8>(), Some(&[1, 2, 3, 0, 0, 4][..]));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_side(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// Sets [`longer`](Self::longer).
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, Longer, PadOptions};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default().with_max_length(2).with_longer(Longer::Error);
    /// let refused = export::padded(&rows, &pad, &ExportOptions::default());
    /// assert!(matches!(refused, Err(arrow_dlpack::Error::RowTooLong { row: 0, length: 3, most: 2 })));
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn with_longer(mut self, longer: Longer) -> Self {
        self.longer = longer;
        self
    }

    /// The length of the padded rows.
    fn width(&self, rows: &[Rows]) -> Result<usize, Error> {
        if let (Some(most), Longer::Cut) = (self.max_length, self.longer) {
            return Ok(most);
        }
        let (mut longest, mut steps) = (0, Steps::default());
        for (row, length) in Lists::lengths(rows).enumerate() {
            longest = longest.max(length);
            if let Some(most) = self.max_length.filter(|&most| length > most) {
                return Err(Error::RowTooLong { row, length, most });
            }
            steps.done(size_of::<i64>())?;
        }
        Ok(self.max_length.unwrap_or(longest))
    }
}

/// Rows of one length as a tensor.
#[derive(Debug)]
#[non_exhaustive]
pub struct Padded {
    /// The values, of shape (rows, length, ...), where further axes are those of one value.
    pub values: ManagedTensor,
    /// How many values of each row are not padding: int64. A row that was cut has as many as are left.
    pub lengths: ManagedTensor,
    /// The side on which the rows are padded.
    pub side: Side,
    /// The validity of the rows, as booleans, with [`NullPolicy::Masked`] only.
    pub mask: Option<ManagedTensor>,
    /// The values of the dictionary, if `values` are its codes.
    pub dictionary: Option<ArrayRef>,
}

/// A planned conversion to [`Padded`] that has not run yet.
///
/// It holds the source, and no memory for the result.
#[must_use]
pub struct PreparedPadded {
    plan: Plan,
    lists: Lists,
    pad: PadOptions,
    /// Of the values.
    options: ExportOptions,
    frame: Frame,
    mask: Option<CopyPolicy>,
}

/// Converts lists, strings or binaries to one tensor (rows, length), whose rows are padded, and the rows' lengths.
///
/// The length is exactly `max_length`, if that is given, and otherwise that of the longest row. `options` apply to the
/// values. Null rows are refused by default; any other policy for nulls makes them rows of padding alone, and with
/// [`NullPolicy::Masked`] the result has a mask of the rows.
///
/// ```
/// use arrow_array::{ListArray, types::Int32Type};
/// use arrow_dlpack::export::{self, PadOptions};
/// use arrow_dlpack::ExportOptions;
///
/// let rows = [Some(vec![Some(1), Some(2)]), Some(vec![]), Some(vec![Some(3)])];
/// let tokens = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
/// let padded = export::padded(&tokens, &PadOptions::default().with_value(-1), &ExportOptions::default())?;
/// assert_eq!(padded.values.shape(), [3, 2]);
/// assert_eq!(padded.values.as_slice::<i32>(), Some(&[1, 2, -1, -1, 3, -1][..]));
/// assert_eq!(padded.lengths.as_slice::<i64>(), Some(&[2, 0, 1][..]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`ragged`](super::ragged), without those for offsets; `PadDoesNotFit`; `RowTooLong`; `Overflow` if no memory
/// could hold rows of `max_length`; `CopyForbidden` if copies are forbidden, because padding is one.
pub fn padded<'a, F>(
    source: impl IntoSource<'a, F>,
    pad: &PadOptions,
    options: &ExportOptions,
) -> Result<Padded, Error> {
    prepare_padded(source, pad, options)?.run()
}

/// Plans what [`padded`] does.
///
/// ```
/// use arrow_array::StringArray;
/// use arrow_dlpack::export::{self, PadOptions};
/// use arrow_dlpack::ExportOptions;
///
/// let texts = StringArray::from(vec!["to", "be"]);
/// let pad = PadOptions::default().with_max_length(8);
/// let plan = export::prepare_padded(&texts, &pad, &ExportOptions::default())?.plan();
/// assert_eq!(
///     plan.to_string(),
///     "copies 16 bytes: rows are padded to 8 values; copies 16 bytes: the lengths are made of offsets"
/// );
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`padded`], except `ValueDoesNotFit` and `OutOfMemory`.
pub fn prepare_padded<'a, F>(
    source: impl IntoSource<'a, F>,
    pad: &PadOptions,
    options: &ExportOptions,
) -> Result<PreparedPadded, Error> {
    let rows = Lists::read(source.into_source(), options, |_| false)?;
    let width = pad.width(&rows)?;
    let of_values = options.of_rows().with_copy(CopyPolicy::IfNeeded);
    let mut lists = Lists::plan(rows, &of_values)?;
    let (dtype, value) = (lists.values.target.dtype, pad.value);
    let fill = value.encode(dtype).ok_or(Error::PadDoesNotFit { value, dtype })?;
    let rows = lists.count();
    let mut frame = Frame::new([rows, width], &lists.shape(), dtype, fill)?;
    frame.padding.side = pad.side;
    let step = |reason, nbytes| {
        // An empty result needs no copy.
        Plan::decide(if nbytes == 0 { Vec::new() } else { vec![reason] }, nbytes, options.copy)
    };
    let nbytes = rows.checked_mul(size_of::<i64>()).ok_or(Error::Overflow("length"))?;
    let mut plan = lists.values.plan.clone();
    plan = plan.and(step(CopyReason::Padded(width), frame.nbytes()?)?);
    plan = plan.and(step(CopyReason::Lengths, nbytes)?);
    let mask = (options.nulls == NullPolicy::Masked).then_some(options.copy);
    if let Some(copy) = mask {
        plan = plan.and(mask_plan(rows, copy)?);
    }
    Ok(PreparedPadded { plan, lists, pad: *pad, options: of_values, frame, mask })
}

impl fmt::Debug for PreparedPadded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPadded").field("plan", &self.plan()).finish_non_exhaustive()
    }
}

impl PreparedPadded {
    /// What [`run`](Self::run) will copy, and why.
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, PadOptions};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default();
    /// let prepared = export::prepare_padded(&rows, &pad, &ExportOptions::default())?;
    /// assert_eq!(prepared.plan().bytes_copied(), 2 * 3 + 2 * 8); // the values, and a length for each row
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Runs the plan.
    ///
    /// ```
    /// use arrow_array::BinaryArray;
    /// use arrow_dlpack::export::{self, PadOptions};
    /// use arrow_dlpack::ExportOptions;
    ///
    /// let rows = BinaryArray::from_iter_values([&[1_u8, 2, 3][..], &[4][..]]);
    /// let pad = PadOptions::default();
    /// let prepared = export::prepare_padded(&rows, &pad, &ExportOptions::default())?;
    /// assert_eq!(prepared.run()?.values.shape(), [2, 3]);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ValueDoesNotFit`, `TooManyValues`; `BadOffsets` and `InvalidArray` if the offsets were changed since they were
    /// planned; `OutOfMemory`.
    pub fn run(self) -> Result<Padded, Error> {
        let Self { lists, pad, options, frame, mask, .. } = self;
        let (rows, values) = lists.snapshot()?;
        let width = frame.padding.width;
        if pad.width(&rows)? != width {
            return Err(Error::offsets_changed());
        }
        let mask = mask.map(|copy| Lists::mask(&rows, copy)?.run()).transpose()?;
        let (rows, (values, dictionary)) = match values.run() {
            Err(Error::ValueDoesNotFit { .. }) if pad.longer == Longer::Cut => {
                // It may be one that is cut away, which need not fit.
                let rows = alloc::try_collect(rows.iter().map(|rows| rows.cut(width)))?;
                let (rows, values) = Lists::plan(rows, &options)?.snapshot()?;
                let made = values.run().map_err(|error| Lists::in_row(&rows, error))?;
                (rows, made)
            }
            made => {
                let made = made.map_err(|error| Lists::in_row(&rows, error))?;
                (rows, made)
            }
        };
        let values = frame.run(&values, Lists::lengths(&rows))?;
        let (count, copied) = (frame.shape[0], DLPackFlags::IS_COPIED);
        let kept = Lists::lengths(&rows).map(|length| length.min(width));
        let mut steps = Steps::default();
        let lengths = Fresh::try_build::<i64>(frame.padding.rows, |out| {
            for length in kept {
                out.push(i64::try_from(length).unwrap_or(i64::MAX));
                steps.done(size_of::<i64>())?;
            }
            Ok(())
        })?;
        let dtype = DLDataType::INT64;
        let lengths =
            ManagedTensor::from_fresh(lengths, TensorSpec::new(dtype, copied, &[count], &[1]))?;
        let (side, mask) = (frame.padding.side, mask.map(|(mask, _)| mask));
        Ok(Padded { values, lengths, side, mask, dictionary })
    }
}

/// The tensor of padded rows, before it is made.
pub(super) struct Frame {
    pub(super) shape: Vec<i64>,
    padding: Padding,
}

impl Frame {
    /// A number of rows and of values in each, whose tensor has the shape `values`.
    pub(super) fn new(
        [rows, width]: [usize; 2],
        values: &[i64],
        dtype: DLDataType,
        fill: FillBytes,
    ) -> Result<Self, Error> {
        let cell = dtype.item_bits(true) / 8;
        let item = values.get(1..).unwrap_or_default();
        let value = layout::element_count(item)?.checked_mul(cell);
        let value = value.ok_or(Error::Overflow("size in bytes"))?;
        let shape = [extent(Some(rows))?, extent(Some(width))?].into_iter().chain(item.to_vec());
        let padding = Padding { rows, width, value, cell, fill, side: Side::default() };
        Ok(Self { shape: shape.collect(), padding })
    }

    pub(super) fn nbytes(&self) -> Result<usize, Error> {
        self.padding.nbytes()
    }

    /// Pads rows of these lengths, whose values follow one another.
    pub(super) fn run(
        &self,
        values: &ManagedTensor,
        lengths: impl Iterator<Item = usize>,
    ) -> Result<ManagedTensor, Error> {
        let bytes = values.span().map_or(&[][..], |(bytes, _)| bytes);
        let memory = self.padding.pad(bytes, lengths)?;
        let item = layout::element_count(&self.shape[2..])?;
        let item = extent(Some(item.max(1)))?;
        let mut strides = vec![item.saturating_mul(self.shape[1].max(1)), item];
        strides.extend(&values.strides()[1..]);
        let flags = values.flags().intersection(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
        let flags = flags.union(DLPackFlags::IS_COPIED);
        ManagedTensor::from_fresh(
            memory,
            TensorSpec::new(values.dtype(), flags, &self.shape, &strides),
        )
    }
}
