//! What calling a model through `TensorUdf` adds to the model's own time, and what the usual ways add:
//! a copy of each batch, and a tensor for each row.
//!
//!     cargo run --profile bench --package arrow-dlpack-datafusion-benches
//!
//! All ways take turns in one process, on one thread, and the fastest turn of each counts: whatever else
//! the machine does slows all of them.

use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array};
use arrow_dlpack::ManagedTensor;
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack_datafusion::{Input, TensorUdf};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, Ix2, s};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ROWS: usize = 8192;
const BATCHES: u8 = 4;
const TURNS: u32 = 25;

/// Layers of numbers that do not matter, and one output.
struct Mlp {
    hidden: Vec<Array2<f32>>,
    last: Array1<f32>,
    /// What the hidden layers compute: used again for each batch, as runtimes of models do. New memory would
    /// cost as much as a small model.
    values: Mutex<Vec<Array2<f32>>>,
}

impl Mlp {
    fn new(width: usize, hidden: &[usize]) -> Self {
        let inputs = [&[width], hidden].concat();
        let layer = |(&inputs, &outputs): (&usize, &usize)| {
            let numbers = Array1::linspace(-0.5, 0.5, inputs * outputs);
            numbers.into_shape_with_order((inputs, outputs)).expect("as many numbers")
        };
        Self {
            hidden: inputs.iter().zip(hidden).map(layer).collect(),
            last: Array1::linspace(-0.5, 0.5, inputs[hidden.len()]),
            values: Mutex::new(hidden.iter().map(|&size| Array2::zeros((ROWS, size))).collect()),
        }
    }

    fn predict(&self, features: ArrayView2<'_, f32>) -> Array1<f32> {
        let rows = features.nrows();
        let mut values = self.values.lock().expect("no panic");
        let mut input = features;
        for (layer, values) in self.hidden.iter().zip(values.iter_mut()) {
            let mut outputs = values.slice_mut(s![..rows, ..]);
            general_mat_mul(1.0, &input, layer, 0.0, &mut outputs);
            outputs.mapv_inplace(|value| value.max(0.0));
            input = values.slice(s![..rows, ..]);
        }
        input.dot(&self.last)
    }
}

fn main() -> Result<()> {
    println!("{BATCHES} batches of {ROWS} rows, the fastest of {TURNS} turns\n");
    println!(
        "| rows of | hidden | model alone | TensorUdf adds | a copy of the batch adds | row by row |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    compare(false, 384, &[256])?;
    compare(false, 384, &[16])?;
    compare(true, 3, &[32, 32])?; // as large as data/delay.json
    compare(true, 3, &[32])?;
    compare(true, 16, &[64])?;
    Ok(())
}

fn compare(columns: bool, width: usize, hidden: &[usize]) -> Result<()> {
    let model = Arc::new(Mlp::new(width, hidden));
    let mut batches = Vec::new();
    for index in 0..BATCHES {
        let numbers = Array1::linspace(-f32::from(index), 1.0, ROWS * width);
        let matrix = numbers.into_shape_with_order((ROWS, width))?;
        let arrays = arrays(&matrix, columns)?;
        batches.push((matrix, Call::new(&model, columns, width, arrays.clone())?, arrays));
    }
    let by_row = |arrays: &[ArrayRef]| -> Vec<f32> {
        let row = |row| Array2::from_shape_vec((1, width), row_of(arrays, row)).expect("a row");
        (0..ROWS).map(|index| model.predict(row(index).view())[0]).collect()
    };
    let by_batch = |arrays: &[ArrayRef]| {
        let values: Vec<f32> = match arrays {
            [list] => {
                list.as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec()
            }
            _ => (0..ROWS).flat_map(|row| row_of(arrays, row)).collect(),
        };
        let batch = Array2::from_shape_vec((ROWS, width), values).expect("a matrix");
        Float32Array::from(model.predict(batch.view()).to_vec())
    };
    for (matrix, call, arrays) in &batches {
        let expected = model.predict(matrix.view()).to_vec();
        let close = |got: &[f32]| {
            got.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs().max(1.0))
        };
        assert!(close(call.run().as_primitive::<Float32Type>().values()), "TensorUdf computes it");
        assert!(close(by_batch(arrays).values()) && close(&by_row(arrays)), "and so do the others");
    }

    // Batch after batch, as in a query: caches and the allocator find what the one before left.
    let mut best = [Duration::MAX; 4];
    for _ in 0..TURNS {
        let turns = [
            time(&batches, |(matrix, ..)| model.predict(matrix.view())),
            time(&batches, |(_, call, _)| call.run()),
            time(&batches, |(.., arrays)| by_batch(arrays)),
            time(&batches, |(.., arrays)| by_row(arrays)),
        ];
        best.iter_mut().zip(turns).for_each(|(best, turn)| *best = turn.min(*best));
    }
    let [alone, ours, copied, rows] = best.map(|time| time.as_secs_f64());
    println!(
        "| {width} {} | {hidden:?} | {:.3} ms | {:+.1}% | {:+.1}% | {:.0} × TensorUdf |",
        if columns { "columns" } else { "values in a list" },
        alone * 1e3 / f64::from(BATCHES),
        (ours / alone - 1.0) * 100.0,
        (copied / alone - 1.0) * 100.0,
        rows / ours,
    );
    Ok(())
}

/// The numbers of a matrix as a column each, or as a column of lists.
fn arrays(matrix: &Array2<f32>, columns: bool) -> Result<Vec<ArrayRef>> {
    if columns {
        let column = |values: ndarray::ArrayView1<'_, f32>| -> ArrayRef {
            Arc::new(values.iter().copied().collect::<Float32Array>())
        };
        return Ok(matrix.axis_iter(Axis(1)).map(column).collect());
    }
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let values = Arc::new(matrix.iter().copied().collect::<Float32Array>());
    let lists = FixedSizeListArray::try_new(item, i32::try_from(matrix.ncols())?, values, None)?;
    Ok(vec![Arc::new(lists)])
}

/// The values of a row, as those take them who have one at a time.
fn row_of(arrays: &[ArrayRef], row: usize) -> Vec<f32> {
    match arrays {
        [list] => {
            list.as_fixed_size_list().value(row).as_primitive::<Float32Type>().values().to_vec()
        }
        columns => columns.iter().map(|c| c.as_primitive::<Float32Type>().value(row)).collect(),
    }
}

/// A call of the function as DataFusion makes it.
struct Call {
    udf: ScalarUDF,
    args: Vec<ColumnarValue>,
    arg_fields: Vec<FieldRef>,
    return_field: FieldRef,
    config_options: Arc<ConfigOptions>,
}

impl Call {
    fn new(model: &Arc<Mlp>, columns: bool, width: usize, arrays: Vec<ArrayRef>) -> Result<Self> {
        let input = if columns {
            let names = (0..width).map(|index| format!("x{index}"));
            Input::columns("x", DLDataType::FLOAT32, names)
        } else {
            Input::column("x", DLDataType::FLOAT32, [i64::try_from(width)?])
        };
        let model = Arc::clone(model);
        let udf = TensorUdf::new("score").input(input).build(move |batch| {
            Ok(ManagedTensor::from(model.predict(batch.view::<f32, Ix2>(0)?)))
        })?;
        let field = |array: &ArrayRef| Arc::new(Field::new("x", array.data_type().clone(), true));
        let arg_fields: Vec<FieldRef> = arrays.iter().map(field).collect();
        let scalars = vec![None; arg_fields.len()];
        let return_field = udf.return_field_from_args(ReturnFieldArgs {
            arg_fields: &arg_fields,
            scalar_arguments: &scalars,
        })?;
        let args = arrays.into_iter().map(ColumnarValue::Array).collect();
        Ok(Self { udf, args, arg_fields, return_field, config_options: Arc::default() })
    }

    fn run(&self) -> ArrayRef {
        let result = self.udf.invoke_with_args(ScalarFunctionArgs {
            args: self.args.clone(),
            arg_fields: self.arg_fields.clone(),
            number_rows: ROWS,
            return_field: Arc::clone(&self.return_field),
            config_options: Arc::clone(&self.config_options),
        });
        result.and_then(|value| value.into_array(ROWS)).expect("a result")
    }
}

fn time<B, T>(batches: &[B], run: impl Fn(&B) -> T) -> Duration {
    let start = Instant::now();
    for batch in batches {
        black_box(run(batch));
    }
    start.elapsed()
}
