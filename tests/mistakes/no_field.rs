//~ argument #2 of type `&arrow_dlpack::arrow_schema::Field` is missing

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, to_dlpack};

pub fn mistake(x: Int32Array) {
    to_dlpack(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
