//~ expected 2 generic arguments

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Int32Array) {
    export::to_vec::<f32>(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
