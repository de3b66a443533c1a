//! What DataFusion calls a function with, as tensors.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::{Error, ExportOptions, ManagedTensor, NullPolicy};
use arrow_schema::{Field, FieldRef, Schema};
use arrow_select::filter::FilterPredicate;
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;

use crate::nulls::Complete;
use crate::plan::{Declared, is_flat};
use crate::{Batch, Input, Nulls};

/// The arguments of a call: those of each input, for some rows.
pub(crate) struct Arguments {
    inputs: Vec<Columns>,
    pub(crate) rows: usize,
}

/// The arguments of one input.
struct Columns {
    fields: Vec<FieldRef>,
    arrays: Vec<ArrayRef>,
    /// Whether the arrays are one row that stands for all.
    constant: bool,
}

impl Arguments {
    pub(crate) fn new(
        inputs: &[Input],
        values: &[ColumnarValue],
        fields: &[FieldRef],
        rows: usize,
    ) -> Result<Self> {
        let (mut values, mut fields) = (values.iter(), fields.iter());
        let columns = inputs.iter().map(|input| {
            let count = input.arguments().len();
            let values: Vec<_> = values.by_ref().take(count).collect();
            let constant = input.broadcast
                && values.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
            let length = if constant { 1 } else { rows };
            let arrays = values.into_iter().map(|value| value.to_array(length));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            // What values mean is on the field, what they are on the array.
            let named = input.arguments().iter().zip(&arrays).zip(fields.by_ref());
            let fields = named.map(|((name, array), field)| {
                let metadata = field.metadata().clone();
                let field = Field::new(name, array.data_type().clone(), true);
                Arc::new(shaped(field.with_metadata(metadata), input))
            });
            Ok(Columns { fields: fields.collect(), arrays, constant })
        });
        Ok(Self { inputs: columns.collect::<Result<_>>()?, rows })
    }

    /// Whether a constant has a null in it, so that no row is complete.
    pub(crate) fn has_null_constant(&self) -> bool {
        let constants = self.inputs.iter().filter(|columns| columns.constant);
        Complete::of(constants.flat_map(|columns| &columns.arrays)).is_some()
    }

    /// Which rows have no nulls; `None` if all.
    pub(crate) fn complete(&self) -> Option<Complete> {
        let varying = self.inputs.iter().filter(|columns| !columns.constant);
        Complete::of(varying.flat_map(|columns| &columns.arrays))
    }

    /// Only the rows that a predicate takes.
    pub(crate) fn filter(&mut self, predicate: &FilterPredicate) -> Result<()> {
        self.rows = predicate.count();
        for columns in self.inputs.iter_mut().filter(|columns| !columns.constant) {
            for array in &mut columns.arrays {
                *array = predicate.filter(array)?;
            }
        }
        Ok(())
    }

    /// The tensors of some rows.
    pub(crate) fn batch(&self, declared: &Declared, rows: Range<usize>) -> Result<Batch> {
        let nulls = declared.udf.nulls;
        let (mut tensors, mut masks) = (Vec::new(), Vec::new());
        for (columns, input) in self.inputs.iter().zip(&declared.udf.inputs) {
            let options = nulls.export(input.dtype);
            let failed = |error| declared.failed(&format!("{:?}", input.name), error);
            tensors.push(
                columns
                    .tensor(|source, options| export::tensor(source, options), &options, &rows)
                    .map_err(failed)?,
            );
            if nulls == Nulls::Tensor(NullPolicy::Masked) {
                masks.push(
                    columns
                        .tensor(|source, options| export::mask(source, options), &options, &rows)
                        .map_err(failed)?,
                );
            }
        }
        Ok(Batch { rows: rows.len(), tensors, masks })
    }
}

/// The field, with the shape that the input declares where none has come along.
fn shaped(field: Field, input: &Input) -> Field {
    if !is_flat(&field, input) {
        return field;
    }
    let (shape, dimensions) = (input.shape.clone(), Dimensions::default());
    Extension::FixedShapeTensor { shape, dimensions }.annotate(field)
}

impl Columns {
    fn tensor(
        &self,
        export: impl Fn(Source<'_>, &ExportOptions) -> Result<ManagedTensor, Error>,
        options: &ExportOptions,
        rows: &Range<usize>,
    ) -> Result<ManagedTensor, Error> {
        let range = if self.constant { 0..1 } else { rows.clone() };
        let slice = |array: &ArrayRef| array.slice(range.start, range.len());
        let tensor = match (&*self.arrays, &*self.fields) {
            ([array], [field]) => export(Source::Array(&slice(array), field), options),
            (arrays, fields) => {
                let schema = Arc::new(Schema::new(fields.to_vec()));
                let count = RecordBatchOptions::new().with_row_count(Some(range.len()));
                let arrays = arrays.iter().map(slice).collect();
                let batch = RecordBatch::try_new_with_options(schema, arrays, &count);
                let batch = batch.unwrap_or_else(|_| unreachable!("arrays of the fields' types"));
                export(Source::from(&batch), options)
            }
        }?;
        if !self.constant {
            return Ok(tensor);
        }
        let rows = i64::try_from(rows.len()).map_err(|_| Error::Overflow("length"))?;
        let row = tensor.shape().iter().copied().skip(1);
        let shape: Vec<_> = [rows].into_iter().chain(row).collect();
        tensor.broadcast_to(&shape)
    }
}
