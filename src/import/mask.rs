//! Tensors with a separate mask of nulls, as `NullPolicy::Masked` exports them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, cast::AsArray, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::convert::{self, Decided};
use super::options::ImportOptions;
use super::ranges;
use crate::{
    CopyPolicy, CopyReason, Error, ManagedTensor, MaskProblem, Plan, arrow_types,
    extension::Extension, ffi::DLDataType, kernels,
};

/// [`from_dlpack`](super::from_dlpack), with nulls where a mask is false.
///
/// A mask is bool, true where a value is valid, as in Arrow and with [`NullPolicy::Masked`](crate::NullPolicy). It
/// has one value for each row, or one for each element: then the items of the rows are null, and the rows are not.
/// Where items cannot be null, as bytes of binaries and items that are not nullable cannot, what is hidden as a whole
/// is null. The mask is copied to bits.
///
/// ```
/// use arrow_array::{Array, BooleanArray, Int64Array, cast::AsArray, types::Int64Type};
/// use arrow_dlpack::{ImportOptions, export, import};
///
/// let values = export::array(&Int64Array::from(vec![7, 0]))?;
/// let mask = export::array(&BooleanArray::from(vec![true, false]))?;
/// let (array, _) = import::masked(values, mask, &ImportOptions::default())?;
/// assert_eq!(array.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(7), None]));
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `BadMask`; the errors of `from_dlpack`. The tensors are released before an error is returned.
pub fn masked(
    tensor: ManagedTensor,
    mask: ManagedTensor,
    options: &ImportOptions,
) -> Result<(ArrayRef, FieldRef), Error> {
    prepare_masked(tensor, mask, options)?.run()
}

/// A planned conversion to Arrow that has not run yet. It holds the tensor and its mask.
#[must_use]
#[derive(Debug)]
pub struct Prepared {
    tensor: ManagedTensor,
    values: Decided,
    mask: Option<Mask>,
}

#[derive(Debug)]
struct Mask {
    tensor: ManagedTensor,
    plan: Plan,
    /// Number of a row's axes that the mask covers.
    axes: usize,
}

/// Plans what [`from_dlpack`](super::from_dlpack) does, without running it.
///
/// ```
/// use arrow_array::Int16Array;
/// use arrow_dlpack::{CopyPolicy, ImportOptions, export, import};
/// use arrow_schema::DataType;
///
/// let tensor = export::array(&Int16Array::from(vec![1, 2, 3]))?;
/// let options = ImportOptions::default().with_copy(CopyPolicy::Always);
/// let prepared = import::prepare(tensor, &options)?;
/// assert_eq!(prepared.field().data_type(), &DataType::Int16);
/// assert_eq!(prepared.plan().to_string(), "copies 6 bytes: a copy was asked for");
/// let (array, _) = prepared.run()?;
/// assert_eq!(array.len(), 3);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_dlpack`](super::from_dlpack), except `OutOfMemory` and `NotAValue`. The tensor is released before an error
/// is returned.
pub fn prepare(tensor: ManagedTensor, options: &ImportOptions) -> Result<Prepared, Error> {
    Ok(Prepared { values: convert::decide(&tensor, options)?, tensor, mask: None })
}

/// Plans what [`masked`] does, as [`prepare`] does for a tensor without a mask.
///
/// ```
/// use arrow_array::Array;
/// use arrow_dlpack::{ImportOptions, ManagedTensor, import};
///
/// let scores = ManagedTensor::from(vec![0.5_f32, 0.0]);
/// let valid = ManagedTensor::from(vec![true, false]);
/// let prepared = import::prepare_masked(scores, valid, &ImportOptions::default())?;
/// assert_eq!(prepared.plan().to_string(), "copies 1 byte: Arrow stores booleans as bits");
/// assert_eq!(prepared.run()?.0.null_count(), 1);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// As [`masked`], except `OutOfMemory` and `NotAValue`.
pub fn prepare_masked(
    tensor: ManagedTensor,
    mask: ManagedTensor,
    options: &ImportOptions,
) -> Result<Prepared, Error> {
    let prepared = prepare(tensor, options)?;
    let (tensor, values) = (&prepared.tensor, &prepared.values);
    let plan = plan(&mask, options.copy)?;
    let is_of_rows = matches!(mask.shape(), &[rows] if usize::try_from(rows) == Ok(values.len));
    let axes = if is_of_rows {
        0
    } else if mask.shape() == tensor.shape() {
        tensor.ndim().saturating_sub(1)
    } else {
        let (mask, shape) = (mask.shape().to_vec(), tensor.shape().to_vec());
        return Err(Error::BadMask(MaskProblem::Shape { mask, shape }));
    };
    if !has_items(values.stored(), axes) {
        return Err(Error::BadMask(MaskProblem::NoItems { field: Arc::clone(&values.field) }));
    }
    Ok(Prepared { mask: Some(Mask { tensor: mask, plan, axes }), ..prepared })
}

/// [`prepare_masked`] with a mask, or [`prepare`] without one.
pub(crate) fn prepare_any(
    tensor: ManagedTensor,
    mask: Option<ManagedTensor>,
    options: &ImportOptions,
) -> Result<Prepared, Error> {
    match mask {
        Some(mask) => prepare_masked(tensor, mask, options),
        None => prepare(tensor, options),
    }
}

impl Prepared {
    /// What [`run`](Self::run) will copy, and why.
    ///
    /// ```
    /// use arrow_dlpack::{ImportOptions, ManagedTensor, import};
    ///
    /// let tensor = ManagedTensor::from(vec![true, false]);
    /// let prepared = import::prepare(tensor, &ImportOptions::default())?;
    /// assert_eq!(prepared.plan().bytes_copied(), 1);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    pub fn plan(&self) -> Plan {
        let mask = self.mask.as_ref().map(|mask| mask.plan.clone());
        self.values.plan.clone().and(mask.unwrap_or_default())
    }

    /// The field of the array that [`run`](Self::run) makes.
    ///
    /// ```
    /// use arrow_dlpack::{ImportOptions, ManagedTensor, import};
    ///
    /// let tensor = ManagedTensor::from(vec![true, false]);
    /// let prepared = import::prepare(tensor, &ImportOptions::default())?;
    /// assert_eq!(prepared.field().data_type(), &arrow_schema::DataType::Boolean);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    #[must_use]
    pub fn field(&self) -> &FieldRef {
        &self.values.field
    }

    /// Bytes that [`run`](Self::run) copies or looks at.
    #[cfg(feature = "pyo3")]
    pub(crate) fn work(&self) -> usize {
        let looked_at = match ranges::are_checked(self.field().data_type()) {
            true => self.tensor.nbytes(),
            false => 0,
        };
        self.plan().bytes_copied().saturating_add(looked_at)
    }

    /// Number of rows of the array.
    pub(super) fn rows(&self) -> usize {
        self.values.len
    }

    /// Runs the plan.
    ///
    /// ```
    /// use arrow_array::{Array, BooleanArray};
    /// use arrow_dlpack::{ImportOptions, ManagedTensor, import};
    ///
    /// let tensor = ManagedTensor::from(vec![true, false]);
    /// let prepared = import::prepare(tensor, &ImportOptions::default())?;
    /// let (array, _) = prepared.run()?;
    /// assert_eq!(&*array, &BooleanArray::from(vec![true, false]) as &dyn Array);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; `BadMask` for nulls in a field that is not nullable, or for some bytes of a binary; `NotAValue`.
    /// The tensors are released before an error is returned.
    pub fn run(self) -> Result<(ArrayRef, FieldRef), Error> {
        let Self { tensor, values, mask } = self;
        let made = match mask {
            None => values.run(tensor)?,
            Some(Mask { tensor: mask, axes, .. }) => {
                let bits =
                    if axes == 0 { kernels::pack_bools(&mask)? } else { values.bits(mask)? };
                let nulls = NullBuffer::new(bits);
                let array = values.store(tensor)?;
                let array = match nulls.null_count() {
                    0 => array,
                    _ => {
                        let (axes, nulls) =
                            of_nullable(&values.field, values.stored(), axes, nulls)?;
                        hide(&array, values.stored(), axes, nulls)?
                    }
                };
                values.finish(array)?
            }
        };
        ranges::check(&made.0)?;
        Ok(made)
    }
}

/// Plans the copy of a mask to bits.
///
/// # Errors
///
/// `BadMask` if it is not bool, `UnreadableDevice`, `CopyForbidden`.
pub(super) fn plan(mask: &ManagedTensor, copy: CopyPolicy) -> Result<Plan, Error> {
    let dtype = mask.dtype();
    if dtype != DLDataType::BOOL {
        return Err(Error::BadMask(MaskProblem::Dtype(dtype)));
    }
    mask.check_readable()?;
    Plan::decide(vec![CopyReason::Bits], mask.size().div_ceil(8), copy)
}

/// Whether the type has items below this many axes of a row, or they are bytes of binaries.
fn has_items(field: &Field, axes: usize) -> bool {
    if axes == 0 {
        return true;
    }
    match field.data_type() {
        // Of binaries without bytes a mask of bytes does not tell which ones are null.
        DataType::FixedSizeBinary(size) => axes == 1 && *size > 0,
        DataType::FixedSizeList(item, _) => {
            axes.checked_sub(axes_of(field)).is_some_and(|rest| has_items(item, rest))
        }
        _ => false,
    }
}

/// Number of a row's axes that one list covers.
fn axes_of(field: &Field) -> usize {
    match Extension::of(field) {
        Ok(Some(Extension::FixedShapeTensor { shape, .. })) => shape.len(),
        _ => 1,
    }
}

/// The nulls below this many axes of a row, as nulls of the innermost values there that can be null, and how many axes
/// these are below: the mask of the elements that an export makes of null rows hides all that is in them.
///
/// # Errors
///
/// `BadMask` for some bytes of a binary; it names `whole`, the field of the array.
fn of_nullable(
    whole: &FieldRef,
    field: &Field,
    axes: usize,
    nulls: NullBuffer,
) -> Result<(usize, NullBuffer), Error> {
    match field.data_type() {
        DataType::FixedSizeBinary(size) if axes > 0 => {
            let nulls = of_groups(&nulls, *size);
            let field = Arc::clone(whole);
            nulls.map(|nulls| (0, nulls)).ok_or(Error::BadMask(MaskProblem::NoItems { field }))
        }
        DataType::FixedSizeList(item, size) if axes > 0 => {
            let (rest, nulls) = of_nullable(whole, item, axes - axes_of(field), nulls)?;
            if rest == 0 && !item.is_nullable() {
                if let Some(nulls) = of_groups(&nulls, *size) {
                    return Ok((0, nulls));
                }
            }
            Ok((axes_of(field) + rest, nulls))
        }
        _ => Ok((axes, nulls)),
    }
}

/// The nulls of groups of this many values, if each group is null as a whole or not at all.
fn of_groups(nulls: &NullBuffer, size: i32) -> Option<NullBuffer> {
    let size = usize::try_from(size).ok().filter(|&size| size > 0)?;
    let is_like_first = |at: usize| nulls.is_valid(at) == nulls.is_valid(at - at % size);
    (0..nulls.len()).all(is_like_first).then(|| {
        let groups = nulls.len() / size;
        BooleanBuffer::collect_bool(groups, |group| nulls.is_valid(group * size)).into()
    })
}

/// The array with nulls in the items below this many axes of a row.
fn hide(
    array: &ArrayRef,
    field: &Field,
    axes: usize,
    nulls: NullBuffer,
) -> Result<ArrayRef, Error> {
    if axes == 0 {
        return with_nulls(array, field, nulls);
    }
    let (DataType::FixedSizeList(item, size), Some(list)) =
        (field.data_type(), array.as_fixed_size_list_opt())
    else {
        unreachable!("has_items said so");
    };
    let values = hide(list.values(), item, axes - axes_of(field), nulls)?;
    let (item, len) = (Arc::clone(item), array.len());
    let lists = FixedSizeListArray::try_new_with_length(item, *size, values, None, len);
    Ok(Arc::new(lists.unwrap_or_else(arrow_types::impossible)))
}

/// The array, which has no nulls, with these nulls.
pub(super) fn with_nulls(
    array: &ArrayRef,
    field: &Field,
    nulls: NullBuffer,
) -> Result<ArrayRef, Error> {
    check_nullable(field, &nulls)?;
    let data = array.to_data().into_builder().nulls(Some(nulls)).build();
    Ok(make_array(data.unwrap_or_else(arrow_types::impossible)))
}

/// Checks that the field allows these nulls.
///
/// # Errors
///
/// `BadMask` if there are nulls and the field is not nullable.
pub(super) fn check_nullable(field: &Field, nulls: &NullBuffer) -> Result<(), Error> {
    if field.is_nullable() || nulls.null_count() == 0 {
        return Ok(());
    }
    let (hidden, len) = (nulls.null_count(), nulls.len());
    let name = field.name().clone();
    Err(Error::BadMask(MaskProblem::NotNullable { name, hidden, len }))
}
