//~ consider borrowing here

use arrow_dlpack::arrow_array::ArrayRef;
use arrow_dlpack::{ExportOptions, export};

pub fn mistake(x: ArrayRef) {
    export::tensor(x, &ExportOptions::default()).unwrap();
}

fn main() {}
