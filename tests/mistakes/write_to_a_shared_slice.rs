//~ `&mut Vec<T>` (in place: it does not grow)

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Int32Array, y: Vec<i32>) {
    export::tensor_into(&x, &y, &ExportOptions::default()).unwrap();
}

fn main() {}
