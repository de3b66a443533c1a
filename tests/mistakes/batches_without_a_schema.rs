//~ `(&batches, &schema)`

use arrow_dlpack::arrow_array::RecordBatch;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Vec<RecordBatch>) {
    export::tensor(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
