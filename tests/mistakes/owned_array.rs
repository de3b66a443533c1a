//~ consider borrowing here

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Int32Array) {
    export::tensor(x, &ExportOptions::default()).unwrap();
}

fn main() {}
