//~ an export takes `&array`

use arrow_dlpack::{ExportOptions, export};

pub fn mistake() {
    export::tensor("x", &ExportOptions::default()).unwrap();
}

fn main() {}
