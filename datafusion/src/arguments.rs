//! Converts the arguments of a call to tensors.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_dlpack::export::{self, Exported, IntoSource, Source};
use arrow_dlpack::extension::{Dimensions, Extension};
use arrow_dlpack::{Error, ManagedTensor};
use arrow_schema::{Field, FieldRef, Schema};
use arrow_select::filter::FilterPredicate;
use datafusion_common::Result;
use datafusion_expr::ColumnarValue;

use crate::nulls::Complete;
use crate::plan::{Declared, is_flat};
use crate::{Batch, Input};

/// The arguments of a call, grouped by input, for some of the rows.
pub(crate) struct Arguments {
    inputs: Vec<Columns>,
    pub(crate) rows: usize,
}

/// The arguments of one input.
struct Columns {
    columns: RecordBatch,
    /// Whether the columns are one row that is repeated for all rows.
    constant: bool,
}

impl Arguments {
    pub(crate) fn new(
        inputs: &[Input],
        values: &[ColumnarValue],
        fields: &[FieldRef],
        rows: usize,
    ) -> Result<Self> {
        let mut given = values.iter().zip(fields);
        let inputs = inputs.iter().map(|input| {
            let arguments = input.arguments();
            let given: Vec<_> = given.by_ref().take(arguments.len()).collect();
            let scalar =
                |(value, _): &(&ColumnarValue, _)| matches!(value, ColumnarValue::Scalar(_));
            let constant = input.broadcast && given.iter().all(scalar);
            let length = if constant { 1 } else { rows };
            let columns = arguments.iter().zip(given).map(|(name, (value, field))| {
                let array = value.to_array(length)?;
                // The field carries the extension type; the array may have another, equivalent data type.
                let typed = Field::new(name, array.data_type().clone(), true);
                Ok((shaped(typed.with_metadata(field.metadata().clone()), input), array))
            });
            let (fields, arrays): (Vec<_>, _) =
                columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
            let columns = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
            Ok(Columns { columns, constant })
        });
        Ok(Self { inputs: inputs.collect::<Result<_>>()?, rows })
    }

    /// Whether a constant argument has a null, so that no row is complete.
    pub(crate) fn has_null_constant(&self) -> bool {
        let constants = self.inputs.iter().filter(|input| input.constant);
        Complete::of(constants.flat_map(|input| input.columns.columns())).is_some()
    }

    /// The rows without nulls; `None` if all rows are.
    pub(crate) fn complete(&self) -> Option<Complete> {
        let varying = self.inputs.iter().filter(|input| !input.constant);
        Complete::of(varying.flat_map(|input| input.columns.columns()))
    }

    /// Keeps the rows that a predicate selects.
    pub(crate) fn filter(&mut self, predicate: &FilterPredicate) -> Result<()> {
        self.rows = predicate.count();
        for input in self.inputs.iter_mut().filter(|input| !input.constant) {
            input.columns = predicate.filter_record_batch(&input.columns)?;
        }
        Ok(())
    }

    /// The tensors of a range of rows.
    pub(crate) fn batch(&self, declared: &Declared, rows: Range<usize>) -> Result<Batch> {
        let udf = Arc::clone(&declared.udf);
        let (mut tensors, mut masks) = (Vec::new(), Vec::new());
        for (given, input) in self.inputs.iter().zip(&udf.inputs) {
            let columns = match given.constant {
                true => given.columns.clone(),
                false => given.columns.slice(rows.start, rows.len()),
            };
            let source = match &input.columns {
                None => Source::Array(columns.column(0), Some(columns.schema_ref().field(0))),
                Some(_) => (&columns).into_source(),
            };
            let failed = |error| declared.failed(&format!("{:?}", input.name), error);
            let all_rows = |tensor: ManagedTensor| match given.constant {
                true => repeated(tensor, rows.len()).map_err(failed),
                false => Ok(tensor),
            };
            let options = udf.nulls.export(input.dtype);
            let prepared = export::prepare(source, &options).and_then(export::Prepared::run);
            let Exported { values, mask, .. } = prepared.map_err(failed)?;
            tensors.push(all_rows(values)?);
            masks.extend(mask.map(all_rows).transpose()?);
        }
        Ok(Batch { rows: rows.len(), tensors, masks, udf })
    }
}

/// The field, annotated with the input's shape if it has lost its metadata.
fn shaped(field: Field, input: &Input) -> Field {
    if !is_flat(&field, input) {
        return field;
    }
    let (shape, dimensions) = (input.shape.clone(), Dimensions::default());
    Extension::FixedShapeTensor { shape, dimensions }.annotate(field)
}

/// Repeats one row, with stride 0.
fn repeated(row: ManagedTensor, rows: usize) -> Result<ManagedTensor, Error> {
    let rows = i64::try_from(rows).map_err(|_| Error::Overflow("length"))?;
    let shape = [&[rows], row.shape().get(1..).unwrap_or_default()].concat();
    row.broadcast_to(&shape)
}
