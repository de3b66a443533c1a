//! Exports to memory of the caller's.

use std::mem::MaybeUninit;

use super::dense_lists::RowLength;
use super::options::{ExportOptions, Order};
use super::prepare::{Kind, values_of};
use super::source::{IntoSource, Source};
use crate::alloc::{Fresh, Place};
use crate::ffi::DLDataType;
use crate::{CopyPolicy, CopyReason, DestinationProblem, Element, ElementOrBool, Error, layout};

/// Memory that [`tensor_into`] writes to: `&mut [T]`, of a vector or an array too, `&mut [MaybeUninit<T>]`, and with feature
/// `ndarray` an `ArrayViewMut` that is row-major, or a column-major matrix.
///
/// It is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no memory that a tensor can be written to",
    label = "not a mutable slice or view of numbers",
    note = "`tensor_into` writes to `&mut [T]`, `&mut Vec<T>` (in place: it does not grow), `&mut [MaybeUninit<T>]`, and with \
            feature `ndarray` to `array.view_mut()`, where `T` is an `Element`; `export::to_vec` makes a vector"
)]
pub trait Destination: sealed::Destination {}
impl<D: sealed::Destination> Destination for D {}

mod sealed {
    use super::{Error, OutBuffer};

    pub trait Destination {
        fn buffer(&mut self) -> Result<OutBuffer<'_>, Error>;
    }
}

/// Memory for the elements of a tensor, row-major, or a matrix in this order.
#[expect(missing_debug_implementations, reason = "no caller can name it")]
pub struct OutBuffer<'a> {
    place: Place<'a>,
    dtype: DLDataType,
    /// The shape that it has; otherwise any with as many elements.
    shape: Option<Vec<i64>>,
    /// The order of a matrix, where the memory has one; of rows that are lists or tensors too.
    order: Option<Order>,
}

impl<T: Element> sealed::Destination for &mut [T] {
    fn buffer(&mut self) -> Result<OutBuffer<'_>, Error> {
        Ok(OutBuffer::of_any_shape(Place::initialised(self), T::DTYPE))
    }
}

impl<T: Element> sealed::Destination for &mut Vec<T> {
    fn buffer(&mut self) -> Result<OutBuffer<'_>, Error> {
        Ok(OutBuffer::of_any_shape(Place::initialised(self), T::DTYPE))
    }
}

impl<T: Element, const N: usize> sealed::Destination for &mut [T; N] {
    fn buffer(&mut self) -> Result<OutBuffer<'_>, Error> {
        Ok(OutBuffer::of_any_shape(Place::initialised(&mut **self), T::DTYPE))
    }
}

impl<T: Element> sealed::Destination for &mut [MaybeUninit<T>] {
    fn buffer(&mut self) -> Result<OutBuffer<'_>, Error> {
        Ok(OutBuffer::of_any_shape(Place::uninit(self), T::DTYPE))
    }
}

#[cfg(feature = "ndarray")]
impl<T: Element, D: ndarray::Dimension> sealed::Destination for ndarray::ArrayViewMut<'_, T, D> {
    fn buffer(&mut self) -> Result<OutBuffer<'_>, Error> {
        let extent = |&extent: &usize| i64::try_from(extent).unwrap_or(i64::MAX);
        let shape: Vec<i64> = self.shape().iter().map(extent).collect();
        let order = match (self.is_standard_layout(), self.ndim()) {
            (true, _) => Order::RowMajor,
            (false, 2) if self.t().is_standard_layout() => Order::ColumnMajor,
            (false, _) => return Err(Error::BadDestination(DestinationProblem::Strided)),
        };
        let values = self.as_slice_memory_order_mut().unwrap_or_default();
        Ok(OutBuffer::new(Place::initialised(values), T::DTYPE, &shape, order))
    }
}

/// Writes the values of [`tensor`](super::tensor) to memory of the caller's, which holds exactly as many, and returns
/// their shape.
///
/// The memory's element type is the dtype of the result, as by [`ExportOptions::with_dtype`]. The values are row-major, or
/// in the order of an `ArrayViewMut`; a table's matrix in other memory has the order of the options.
///
/// ```
/// use arrow_array::record_batch;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let batch = record_batch!(("x", Int32, [1, 2]), ("y", Float64, [0.5, 1.5]))?;
/// let mut memory = vec![0.0_f32; 4];
/// let shape = export::tensor_into(&batch, &mut memory, &ExportOptions::default())?;
/// assert_eq!((shape, memory), (vec![2, 2], vec![1.0, 0.5, 2.0, 1.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`tensor`](super::tensor); `BadDestination` for memory of another size, a view of another shape or with gaps, and
/// options that ask for another dtype; `CopyForbidden` with [`CopyPolicy::Never`], since the result is a copy; `InvalidOptions`
/// with [`NullPolicy::Masked`](super::NullPolicy::Masked). The memory is as it was, but after `ValueDoesNotFit`, which comes when
/// the value is reached: then some of it has been written. `MaybeUninit` is initialised only if all goes well.
pub fn tensor_into<'a, F>(
    source: impl IntoSource<'a, F>,
    mut out: impl Destination,
    options: &ExportOptions,
) -> Result<Vec<usize>, Error> {
    let prepared = prepare_into(source.into_source(), options, out.buffer()?)?;
    let shape = layout::extents(&prepared.values.shape())?;
    prepared.run()?;
    Ok(shape)
}

impl<'a> OutBuffer<'a> {
    fn of_any_shape(place: Place<'a>, dtype: DLDataType) -> Self {
        Self { place, dtype, shape: None, order: None }
    }

    /// Memory that has a shape, and an order if that is a matrix's.
    pub(crate) fn new(place: Place<'a>, dtype: DLDataType, shape: &[i64], order: Order) -> Self {
        Self { place, dtype, shape: Some(shape.to_vec()), order: Some(order) }
    }
}

/// A planned conversion to memory as large as its result.
pub(crate) struct PreparedInto<'a> {
    values: Kind,
    place: Place<'a>,
    order: Option<Order>,
}

/// Plans [`tensor_into`].
pub(crate) fn prepare_into<'a>(
    source: Source<'_>,
    options: &ExportOptions,
    out: OutBuffer<'a>,
) -> Result<PreparedInto<'a>, Error> {
    let OutBuffer { place, dtype, shape, order } = out;
    let values = plan(source, options, dtype, order)?;
    let (needed, item) = (values.shape().into_owned(), dtype.item_bits(true) / 8);
    let bytes = layout::element_count(&needed)?.checked_mul(item);
    let problem = match shape {
        Some(found) if found != needed => DestinationProblem::Shape { needed, found },
        _ if bytes != Some(place.nbytes()) => {
            DestinationProblem::Size { needed, found: place.nbytes() / item }
        }
        _ => return Ok(PreparedInto { values, place, order }),
    };
    Err(Error::BadDestination(problem))
}

impl PreparedInto<'_> {
    /// Writes the values. If that fails, the memory is written in part.
    pub(crate) fn run(self) -> Result<(), Error> {
        let Self { values, place, order } = self;
        place.fill(|out| values.write_to(order, out))
    }
}

/// The values of [`tensor`](super::tensor) as a vector, and their shape: what `candle::Tensor::from_vec`, burn's `TensorData`
/// and ndarray's `from_shape_vec` take over as it is. They are written where they stay.
///
/// `T` is the dtype of the result, as by [`ExportOptions::with_dtype`]: values that do not fit are refused. The second
/// parameter, of [`IntoSource`], is inferred: write `_`.
///
/// ```
/// use arrow_array::record_batch;
/// use arrow_dlpack::{ExportOptions, export};
///
/// let batch = record_batch!(("x", Int32, [1, 2]), ("y", Float64, [0.5, 1.5]))?;
/// let (values, shape) = export::to_vec::<f32, _>(&batch, &ExportOptions::default())?;
/// assert_eq!((values, shape), (vec![1.0, 0.5, 2.0, 1.5], vec![2, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`tensor_into`].
pub fn to_vec<'a, T: ElementOrBool, F>(
    source: impl IntoSource<'a, F>,
    options: &ExportOptions,
) -> Result<(Vec<T>, Vec<usize>), Error> {
    let planned = plan(source.into_source(), options, T::DTYPE, None)?;
    let shape = layout::extents(&planned.shape())?;
    let count = layout::element_count(&planned.shape())?;
    let values = Fresh::vector(count, |out| planned.write_to(None, out))?;
    Ok((T::from_stored(values), shape))
}

/// Plans a copy of the values with this dtype.
fn plan(
    source: Source<'_>,
    options: &ExportOptions,
    dtype: DLDataType,
    order: Option<Order>,
) -> Result<Kind, Error> {
    if let Some(needed) = options.dtype.filter(|&asked| asked != dtype) {
        return Err(Error::BadDestination(DestinationProblem::Dtype { needed, found: dtype }));
    }
    let copy = options.clone().with_dtype(dtype).with_copy(CopyPolicy::Always);
    let copy = copy.with_order(order.unwrap_or(options.order));
    let planned = source.as_table(|source| values_of(source, &copy, RowLength::Any))?;
    options.check_no_mask()?;
    if options.copy == CopyPolicy::Never {
        let nbytes =
            layout::element_count(&planned.shape())?.saturating_mul(dtype.item_bits(true) / 8);
        return Err(Error::CopyForbidden { reason: CopyReason::Requested, nbytes });
    }
    Ok(planned)
}
