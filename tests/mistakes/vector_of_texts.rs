//~ elements are `i8` to `i64`

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Int32Array) {
    export::to_vec::<String, _>(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
