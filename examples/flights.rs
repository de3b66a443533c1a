//! Real flights from Parquet as tensors: what each column becomes, then one there and back again.
//!
//!     cargo run --example flights [path]
//!
//! The table of columns works for any Parquet file, the rest needs those of data/flights.parquet.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, Float32Array, RecordBatch, StringArray};
use arrow_dlpack::{CopyPolicy, ExportOptions, ImportOptions, from_dlpack, to_dlpack};
use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const FLIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/flights.parquet");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| FLIGHTS.to_owned());
    let batch = read(&path)?;
    println!("{} rows, {} columns\n", batch.num_rows(), batch.num_columns());
    show_columns(&batch)?;
    if ["carrier", "arr_delay"].iter().all(|name| batch.column_by_name(name).is_some()) {
        show_delays(&batch)?;
    }
    Ok(())
}

/// The file as one batch, because a tensor is one piece of memory: the reader puts its row groups
/// together as it decodes them.
fn read(path: &str) -> Result<RecordBatch, Box<dyn Error>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows())?;
    let mut reader = builder.with_batch_size(rows).build()?;
    let batch = reader.next().ok_or("the file has no rows")??;
    assert_eq!(batch.num_rows(), rows, "the reader split the file");
    Ok(batch)
}

/// One row for each column: the tensor it became, or why it did not and what to do instead.
fn show_columns(batch: &RecordBatch) -> Result<(), arrow_dlpack::Error> {
    println!("{}", row("column", "Arrow type", "tensor", "memory"));
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let arrow_type = field.data_type().to_string();
        match to_dlpack(column, field, &ExportOptions::default()) {
            Ok(tensor) => {
                let text = format!("{} {:?}", tensor.dtype(), tensor.shape());
                let shared = tensor.as_ptr() == first_value(column);
                let memory = match shared {
                    true => "zero-copy".to_owned(),
                    false => format!("{} bytes copied", tensor.nbytes()),
                };
                println!("{}", row(field.name(), &arrow_type, &text, &memory));
                // Numbers lie in memory the same way on both sides: there is no excuse to copy.
                assert!(shared || !field.data_type().is_numeric(), "{} was copied", field.name());
            }
            Err(refusal) if refusal.is_type_refusal() => {
                let mut lines = wrapped(&format!("no: {refusal}"), 65).into_iter();
                let first = lines.next().unwrap_or_default();
                println!("{}", row(field.name(), &arrow_type, &first, ""));
                lines.for_each(|line| println!("{}", row("", "", &line, "")));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hands the arrival delays over as a tensor, takes them back, and averages them for each carrier.
fn show_delays(batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
    let carriers = batch["carrier"].as_dictionary::<Int32Type>();
    let carriers = carriers.downcast_dict::<StringArray>().ok_or("carriers are not strings")?;
    let delays = batch["arr_delay"].as_primitive::<Float32Type>();

    // The table above names the ways out of nulls; dropping leaves the flights that arrived.
    let arrived = carriers.into_iter().zip(delays);
    let (carriers, delays): (Vec<_>, Vec<_>) =
        arrived.filter_map(|(carrier, delay)| carrier.zip(delay)).unzip();
    let delays = Float32Array::from(delays);

    // `Never` makes both ways fail where they would have to copy.
    let field = Field::new("arr_delay", DataType::Float32, false);
    let tensor =
        to_dlpack(&delays, &field, &ExportOptions::default().with_copy(CopyPolicy::Never))?;
    println!(
        "\n{} {:?} of arrival delays, handed over and taken back:",
        tensor.dtype(),
        tensor.shape()
    );
    let (returned, _) =
        from_dlpack(tensor, &ImportOptions::default().with_copy(CopyPolicy::Never))?;
    let returned = returned.as_primitive::<Float32Type>();
    assert_eq!(returned, &delays);
    assert_eq!(first_value(returned), first_value(&delays), "the delays were copied");

    // What came back keeps the memory alive on its own.
    drop(delays);
    let mut totals = BTreeMap::<_, (u32, f64)>::new();
    for (carrier, &delay) in carriers.iter().zip(returned.values()) {
        let (flights, minutes) = totals.entry(carrier).or_default();
        *flights += 1;
        *minutes += f64::from(delay);
    }
    println!("  carrier  flights  mean delay, minutes");
    for (carrier, (flights, minutes)) in totals {
        println!("  {carrier:<7}  {flights:>7}  {:>10.1}", minutes / f64::from(flights));
    }
    Ok(())
}

/// Where an array's first value lies. The last buffer holds the values; arrow-rs slices the buffer
/// along with the array, so that it begins where the slice does.
fn first_value(array: &dyn Array) -> *const u8 {
    array.to_data().buffers().last().map_or(std::ptr::null(), |values| values.as_ptr())
}

fn row(column: &str, arrow_type: &str, tensor: &str, memory: &str) -> String {
    format!("{column:<15} {arrow_type:<24.24} {tensor:<48} {memory}").trim_end().to_owned()
}

/// The text in lines of at most `width` bytes, if no word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() {
            if line.len() + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push(' ');
            }
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
