//! Plans an import before any work, and then runs that plan. Contiguous numbers are shared without a plan.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray, make_array, types,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef};

use super::field::{Choice, Conversion, FieldLayout, Metadata, alignment, choose, natural};
use super::lists;
use super::options::ImportOptions;
use crate::dtype::for_each_numeric;
use crate::ffi::DLDataType;
use crate::{
    CopyReason, Element, Error, ManagedTensor, Plan, arrow_types, kernels, layout, tensor,
};

/// How a tensor is stored in a field.
#[derive(Debug)]
pub(super) struct Fit {
    conversion: Conversion,
    /// As of a [`Choice`].
    stored: Option<FieldRef>,
    /// The permutation of the tensor's axes to the memory order of the array; `None` if they are in that order.
    axes: Option<Vec<usize>>,
    /// Whether a permutation in the field's type, which was not asked for, would take the place of a copy.
    is_permuted: bool,
    align: usize,
}

impl Fit {
    /// Matches a field's axes with those of the tensor.
    ///
    /// # Errors
    ///
    /// `CannotBecome`, `TooDeep`, `MalformedExtension`; `Overflow` if there are more values of size 0 than `usize`
    /// can count.
    pub(super) fn new(metadata: &Metadata<'_>, choice: Choice) -> Result<(Self, FieldRef), Error> {
        let Choice { field, stored, field_layout, conversion, is_permuted } = choice;
        let Some(conversion) = conversion else {
            // Errors that no option can avoid come first.
            natural(metadata.dtype)?;
            return Err(metadata.cannot_become(&field));
        };
        let FieldLayout { mut order, extents, element, .. } = field_layout;
        let mut logical: Vec<i64> = order.iter().map(|&place| extents[place]).collect();
        if conversion == Conversion::Split {
            // The last axis is that of the two parts of an element, which are adjacent.
            let last = order.pop();
            if last != Some(order.len()) || logical.pop() != Some(2) {
                return Err(metadata.cannot_become(&field));
            }
        }
        // Element by element: comparing empty slices calls memcmp with a dangling pointer, which is slow.
        if logical.iter().ne(metadata.row_shape()) {
            return Err(metadata.cannot_become(&field));
        }
        let data_type = stored.as_ref().unwrap_or(&field).data_type();
        check_lengths(data_type, metadata.rows()?)?;

        let in_order = order.iter().copied().eq(0..order.len());
        let axes = (!in_order).then(|| {
            let mut axes = vec![0; order.len() + 1];
            for (axis, place) in order.into_iter().enumerate() {
                axes[place + 1] = axis + 1;
            }
            axes
        });
        Ok((Self { conversion, stored, axes, is_permuted, align: alignment(&element) }, field))
    }

    /// Plans the copy that makes the rows of `metadata` contiguous; `size` is the number of elements.
    ///
    /// # Errors
    ///
    /// `UnreadableDevice`, `CopyForbidden`.
    pub(super) fn plan(
        &self,
        metadata: &Metadata<'_>,
        tensor: &ManagedTensor,
        options: &ImportOptions,
    ) -> Result<Plan, Error> {
        tensor.check_readable()?;
        let mut reasons = Vec::new();
        if tensor.size() > 0 {
            reasons.extend(self.conversion.reason(metadata.dtype, metadata.is_packed));
            reasons.extend(self.obstacle(metadata));
            if self.conversion.keeps_bytes() && tensor.data().addr() % self.align != 0 {
                reasons.push(CopyReason::Misaligned { align: self.align });
            }
        }
        Plan::decide(reasons, self.conversion.nbytes(metadata.dtype, tensor.size()), options.copy)
    }

    /// Why the elements are not contiguous in the memory order of the array.
    fn obstacle(&self, metadata: &Metadata<'_>) -> Option<CopyReason> {
        if self.is_permuted {
            return Some(CopyReason::Permuted);
        }
        let Some(axes) = &self.axes else {
            return layout::row_major_obstacle(metadata.shape, &metadata.strides);
        };
        let pick = |values: &[i64]| axes.iter().map(|&axis| values[axis]).collect::<Vec<_>>();
        match layout::row_major_obstacle(&pick(metadata.shape), &pick(&metadata.strides)) {
            Some(CopyReason::Strided { axis, stride, expected }) => {
                Some(CopyReason::Strided { axis: axes[axis], stride, expected })
            }
            other => other,
        }
    }

    /// Copies the elements of a tensor to fresh memory, in the memory order of the array.
    pub(super) fn copy(&self, tensor: ManagedTensor) -> Result<Buffer, Error> {
        self.conversion.run(&self.in_order(tensor))
    }

    /// The tensor with its axes in the memory order of the array.
    fn in_order(&self, tensor: ManagedTensor) -> ManagedTensor {
        match &self.axes {
            None => tensor,
            Some(axes) => tensor.transposed(axes),
        }
    }
}

/// A planned import of one tensor.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) field: FieldRef,
    pub(super) plan: Plan,
    /// Number of values.
    pub(super) len: usize,
    fit: Fit,
}

/// Plans the import of a tensor without running it.
pub(super) fn decide(tensor: &ManagedTensor, options: &ImportOptions) -> Result<Decided, Error> {
    let metadata = Metadata::of(tensor);
    let (fit, field) = Fit::new(&metadata, choose(&metadata, &options.representation)?)?;
    let plan = fit.plan(&metadata, tensor, options)?;
    Ok(Decided { plan, len: metadata.rows()?, fit, field })
}

impl Decided {
    /// The bits of a boolean mask, in the memory order of the array.
    pub(super) fn bits(&self, mask: ManagedTensor) -> Result<BooleanBuffer, Error> {
        kernels::pack_bools(&self.fit.in_order(mask))
    }

    /// Runs the plan for this tensor. Integers that are no values of the type are left to [`ranges::check`](super::ranges).
    pub(super) fn run(self, tensor: ManagedTensor) -> Result<(ArrayRef, FieldRef), Error> {
        let array = self.store(tensor)?;
        self.finish(array)
    }

    /// The field of what [`Self::store`] makes.
    pub(super) fn stored(&self) -> &FieldRef {
        self.fit.stored.as_ref().unwrap_or(&self.field)
    }

    /// The elements of this tensor as an array, whose lists are of fixed size.
    pub(super) fn store(&self, tensor: ManagedTensor) -> Result<ArrayRef, Error> {
        let values = if self.plan.is_zero_copy() {
            adopt_readable(tensor)?
        } else {
            self.fit.copy(tensor)?
        };
        Ok(build(self.stored().data_type(), self.len, values))
    }

    /// An array that was stored, as one of the field.
    pub(super) fn finish(self, array: ArrayRef) -> Result<(ArrayRef, FieldRef), Error> {
        Ok((lists::of_any_size(array, &self.field)?, self.field))
    }
}

/// Takes over the memory of a tensor that the CPU can read, without copying.
pub(super) fn adopt_readable(tensor: ManagedTensor) -> Result<Buffer, Error> {
    let device = tensor.device();
    tensor::adopt(tensor).ok_or(Error::UnreadableDevice { device })
}

/// Builds an array of a type that `FieldLayout` supports, from a buffer of the right size and alignment.
pub(super) fn build(data_type: &DataType, len: usize, values: Buffer) -> ArrayRef {
    if let DataType::FixedSizeList(item, size) = data_type {
        let count = len * usize::try_from(*size).unwrap_or_default();
        let values = build(item.data_type(), count, values);
        let item = Arc::clone(item);
        let lists = FixedSizeListArray::try_new_with_length(item, *size, values, None, len);
        return Arc::new(lists.unwrap_or_else(arrow_types::impossible));
    }
    if let Some(array) = numeric(data_type, 0, len, &values, None) {
        return array;
    }
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(values).build();
    make_array(data.unwrap_or_else(arrow_types::impossible))
}

macro_rules! numeric {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// `len` numbers of a plain numeric type from `start` on, in a third of the time of `ArrayData`; `None` for
        /// other types.
        pub(crate) fn numeric(
            data_type: &DataType,
            start: usize,
            len: usize,
            values: &Buffer,
            nulls: Option<&NullBuffer>,
        ) -> Option<ArrayRef> {
            let (values, nulls) = (values.clone(), nulls.cloned());
            Some(match data_type {
                $(DataType::$arrow => Arc::new(PrimitiveArray::<types::$type>::new(
                    ScalarBuffer::new(values, start, len),
                    nulls,
                )),)*
                _ => return None,
            })
        }
    };
}
for_each_numeric!(numeric);

/// Checks that the values at each level of a type can be counted: beside an extent of 0 they take no memory, and
/// their number can overflow.
fn check_lengths(data_type: &DataType, len: usize) -> Result<(), Error> {
    let count = |size: i32| {
        let count = len.checked_mul(usize::try_from(size).ok()?)?;
        isize::try_from(count).ok().and(Some(count))
    };
    match data_type {
        DataType::FixedSizeList(item, size) => {
            let count = count(*size).ok_or(Error::Overflow("number of values"))?;
            check_lengths(item.data_type(), count)
        }
        _ => Ok(()),
    }
}

macro_rules! dispatch {
    ($(($arrow:ident, $code:ident, $bits:literal, $dtype:ident, $type:ident, $native:ty))*) => {
        /// Imports a contiguous and aligned vector of one of the eleven numeric types in memory that the CPU can
        /// read; returns any other tensor unchanged.
        pub(crate) fn import_primitive(
            tensor: ManagedTensor,
        ) -> Result<(ArrayRef, FieldRef), ManagedTensor> {
            match tensor.dtype() {
                $(DLDataType::$dtype => {
                    static FIELD: LazyLock<FieldRef> =
                        LazyLock::new(|| Arc::new(Field::new("", DataType::$arrow, true)));
                    let array = import_primitive_as::<types::$type>(tensor)?;
                    Ok((Arc::new(array), Arc::clone(&FIELD)))
                })*
                _ => Err(tensor),
            }
        }
    };
}
for_each_numeric!(dispatch);

/// The same for one numeric type.
pub(crate) fn import_primitive_as<T: ArrowPrimitiveType<Native: Element>>(
    tensor: ManagedTensor,
) -> Result<PrimitiveArray<T>, ManagedTensor> {
    let stays = tensor.dtype() == T::Native::DTYPE
        && tensor.ndim() == 1
        && tensor.device().is_host_readable()
        && tensor.is_contiguous()
        // As `alignment` has it, also where 64-bit numbers are aligned at 4 bytes: i686.
        && tensor.data().addr() % size_of::<T::Native>() == 0;
    if !stays {
        return Err(tensor);
    }
    // The memory spans exactly the elements. A slice would cost two atomic operations.
    let values = ScalarBuffer::from(tensor::adopt(tensor).unwrap_or_default());
    Ok(PrimitiveArray::new(values, None))
}
