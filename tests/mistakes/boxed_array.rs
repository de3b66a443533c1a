//~ `&dyn Array` too

use arrow_dlpack::arrow_array::Array;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Box<dyn Array>) {
    export::tensor(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
