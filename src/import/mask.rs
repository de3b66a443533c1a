//! Tensors with a mask beside them, which says what is null: the way back from `NullPolicy::Masked`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef};

use super::options::ImportOptions;
use super::prepare::{self, Prepared};
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::{Error, MaskProblem};
use crate::extension::Extension;
use crate::ffi::DLDataType;
use crate::memory::ManagedTensor;
use crate::plan::Plan;

/// [`from_dlpack`](super::from_dlpack) with nulls where a mask is false.
///
/// A mask is bool, true where a value is valid, as Arrow and [`NullPolicy::Masked`](crate::NullPolicy) have
/// it. It has one value for each row, or for each element: then the items of the rows are null, and the rows
/// are not. The mask is copied, to bits.
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
/// `BadMask`; all that `from_dlpack` returns. Both tensors have been released by then.
pub fn masked(
    tensor: ManagedTensor,
    mask: ManagedTensor,
    options: &ImportOptions,
) -> Result<(ArrayRef, FieldRef), Error> {
    Masked::prepare(&tensor, Some(&mask), options)?.run(tensor, Some(mask))
}

/// What was decided for a tensor, and for the mask that it may have.
pub(crate) struct Masked {
    pub(super) values: Prepared,
    /// How many axes of a row the mask goes along.
    axes: usize,
    #[cfg_attr(not(feature = "pyo3"), expect(dead_code, reason = "for who explains"))]
    mask: Plan,
}

impl Masked {
    /// # Errors
    ///
    /// As [`masked`].
    pub(crate) fn prepare(
        tensor: &ManagedTensor,
        mask: Option<&ManagedTensor>,
        options: &ImportOptions,
    ) -> Result<Self, Error> {
        let values = prepare::prepare(tensor, options)?;
        let Some(mask) = mask else {
            return Ok(Self { values, axes: 0, mask: Plan::default() });
        };
        let plan = plan(mask, options.copy)?;
        let is_of_rows = matches!(mask.shape(), &[rows] if usize::try_from(rows) == Ok(values.len));
        let axes = if is_of_rows {
            0
        } else if mask.shape() == tensor.shape() {
            tensor.ndim().saturating_sub(1)
        } else {
            let (mask, shape) = (mask.shape().to_vec(), tensor.shape().to_vec());
            return Err(Error::BadMask(MaskProblem::Shape { mask, shape }));
        };
        if !has_items(&values.field, axes) {
            return Err(Error::BadMask(MaskProblem::NoItems { field: Arc::clone(&values.field) }));
        }
        Ok(Self { values, axes, mask: plan })
    }

    /// What is copied.
    #[cfg(feature = "pyo3")]
    pub(crate) fn plan(&self) -> Plan {
        self.values.plan.clone().and(self.mask.clone())
    }

    /// Does what was decided for this tensor and this mask.
    pub(crate) fn run(
        self,
        tensor: ManagedTensor,
        mask: Option<ManagedTensor>,
    ) -> Result<(ArrayRef, FieldRef), Error> {
        let nulls = match mask {
            Some(mask) if self.axes == 0 => nulls(&mask)?,
            Some(mask) => NullBuffer::new(self.values.bits(mask)?),
            None => return self.values.run(tensor),
        };
        if nulls.null_count() == 0 {
            return self.values.run(tensor);
        }
        let (array, field) = self.values.run(tensor)?;
        let array = hide(&array, &field, self.axes, nulls)?;
        Ok((array, field))
    }
}

/// What becomes of a mask: bits.
///
/// # Errors
///
/// `BadMask` if it is not bool, `UnreadableDevice`, `CopyForbidden`.
pub(super) fn plan(mask: &ManagedTensor, copy: CopyPolicy) -> Result<Plan, Error> {
    let (dtype, device) = (mask.dtype(), mask.device());
    if dtype != DLDataType::BOOL {
        return Err(Error::BadMask(MaskProblem::Dtype(dtype)));
    }
    if !device.is_host_readable() {
        return Err(Error::UnreadableDevice { device });
    }
    Plan::of(vec![CopyReason::Bits], mask.size().div_ceil(8), copy)
}

/// A mask as Arrow has it.
pub(super) fn nulls(mask: &ManagedTensor) -> Result<NullBuffer, Error> {
    crate::kernels::pack_bools(mask).map(NullBuffer::new)
}

/// Whether the type has items that so many axes of a row lead to.
fn has_items(field: &Field, axes: usize) -> bool {
    if axes == 0 {
        return true;
    }
    match field.data_type() {
        DataType::FixedSizeList(item, _) => {
            axes.checked_sub(axes_of(field)).is_some_and(|rest| has_items(item, rest))
        }
        _ => false,
    }
}

/// How many axes of a row one list has.
fn axes_of(field: &Field) -> usize {
    match Extension::of(field) {
        Ok(Some(Extension::FixedShapeTensor { shape, .. })) => shape.len(),
        _ => 1,
    }
}

/// The array with nulls in the items that so many axes of a row lead to.
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
    Ok(Arc::new(lists.unwrap_or_else(prepare::impossible)))
}

/// The array with these nulls, where there were none.
pub(super) fn with_nulls(
    array: &ArrayRef,
    field: &Field,
    nulls: NullBuffer,
) -> Result<ArrayRef, Error> {
    check_nullable(field, &nulls)?;
    let data = array.to_data().into_builder().nulls(Some(nulls)).build();
    Ok(make_array(data.unwrap_or_else(prepare::impossible)))
}

/// # Errors
///
/// `BadMask` if there are nulls that the field rules out.
pub(super) fn check_nullable(field: &Field, nulls: &NullBuffer) -> Result<(), Error> {
    if field.is_nullable() || nulls.null_count() == 0 {
        return Ok(());
    }
    let (hidden, len) = (nulls.null_count(), nulls.len());
    let name = field.name().clone();
    Err(Error::BadMask(MaskProblem::NotNullable { name, hidden, len }))
}
