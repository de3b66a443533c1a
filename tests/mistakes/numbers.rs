//~ an export takes `&array`

use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: Vec<f32>) {
    export::tensor(&x, &ExportOptions::default()).unwrap();
}

fn main() {}
