//! A small network of candle that learns from a Parquet file how late flights arrive.
//!
//!     cargo run --package arrow-dlpack-example-candle
//!
//! Each epoch reads the file again, shuffled by another seed. While the network learns from one batch, a thread
//! reads the next two.

use std::error::Error;
use std::fs::File;

use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_dlpack::batches::{BatchColumn, BatchOptions, Batches, Shuffle};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{ExportOptions, ManagedTensor};
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;
use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Linear, Module, Optimizer, ParamsAdamW, VarBuilder, VarMap, linear, loss};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const FLIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/flights.parquet");
const FEATURES: [&str; 4] = ["dep_delay", "distance", "hour", "month"];
const LABEL: &str = "arr_delay";
/// About how large they are: an hour, a thousand miles, half a day, half a year.
const SCALES: [f32; 4] = [60.0, 1000.0, 12.0, 6.0];
const EPOCHS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let options = BatchOptions::default()
        .with_batch_size(512)
        .with_columns(FEATURES)
        .with_label(LABEL)
        .with_matrix(true)
        .with_export(ExportOptions::default().with_dtype(DLDataType::FLOAT32))
        .with_prefetch(2);

    let variables = VarMap::new();
    let network = Network::new(VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu))?;
    let rate = ParamsAdamW { lr: 0.005, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(variables.all_vars(), rate)?;
    let mut errors = Vec::new();
    for seed in 0..EPOCHS {
        let (mut squares, mut rows) = (0.0, 0.0);
        let options = options.clone().with_shuffle(Shuffle { rows: 10_000, seed });
        for batch in Batches::try_new(flights()?, &options)? {
            let batch = batch?;
            let features = batch.matrix().ok_or("no matrix")?;
            let late = batch.label().and_then(BatchColumn::tensor).ok_or("no label")?;
            let late = (tensor(&late.values)? / 60.0)?;
            let loss = loss::mse(&network.forward(&tensor(&features.values)?)?, &late)?;
            optimizer.backward_step(&loss)?;
            let count = f64::from(u32::try_from(batch.rows)?);
            squares += f64::from(loss.to_scalar::<f32>()?) * count;
            rows += count;
        }
        let error = (squares / rows).sqrt() * 60.0;
        println!("epoch {seed}: {rows} flights, off by {error:.1} minutes");
        errors.push(error);
    }
    assert!(errors[errors.len() - 1] < 20.0, "it has learnt nothing: {errors:?}");
    Ok(())
}

/// The flights that arrived. Whatever reads record batches can be read in batches of tensors, also what has been
/// filtered on the way.
fn flights() -> Result<impl RecordBatchReader + Send + 'static, Box<dyn Error>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(FLIGHTS)?)?.build()?;
    let schema = reader.schema();
    let arrived = |batch: Result<RecordBatch, ArrowError>| {
        let batch = batch?;
        match batch.column_by_name(LABEL).and_then(|late| late.nulls()) {
            None => Ok(batch),
            Some(valid) => {
                filter_record_batch(&batch, &BooleanArray::new(valid.inner().clone(), None))
            }
        }
    };
    Ok(RecordBatchIterator::new(reader.map(arrived), schema))
}

/// A tensor of floats as candle's.
fn tensor(values: &ManagedTensor) -> Result<Tensor, Box<dyn Error>> {
    let floats = values.as_slice::<f32>().ok_or("these are no floats, or not row after row")?;
    Ok(Tensor::from_slice(floats, values.dims(), &Device::Cpu)?)
}

struct Network {
    scales: Tensor,
    hidden: Linear,
    output: Linear,
}

impl Network {
    fn new(variables: VarBuilder<'_>) -> candle_core::Result<Self> {
        Ok(Self {
            scales: Tensor::new(&SCALES, &Device::Cpu)?,
            hidden: linear(FEATURES.len(), 16, variables.pp("hidden"))?,
            output: linear(16, 1, variables.pp("output"))?,
        })
    }
}

impl Module for Network {
    fn forward(&self, features: &Tensor) -> candle_core::Result<Tensor> {
        let hidden = self.hidden.forward(&features.broadcast_div(&self.scales)?)?.relu()?;
        self.output.forward(&hidden)?.squeeze(1)
    }
}
