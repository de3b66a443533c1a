//~ argument #2 of type `&ExportOptions` is missing

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::export;

pub fn mistake(x: Int32Array) {
    export::tensor(&x).unwrap();
}

fn main() {}
