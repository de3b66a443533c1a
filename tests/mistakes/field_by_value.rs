//~ `(&array, &field)`

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::arrow_schema::Field;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Int32Array, y: Field) {
    export::tensor((&x, y), &ExportOptions::default()).unwrap();
}

fn main() {}
