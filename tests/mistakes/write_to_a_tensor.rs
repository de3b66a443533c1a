//~ `tensor_into` writes to `&mut [T]`

use arrow_dlpack::arrow_array::Int32Array;
use arrow_dlpack::{ExportOptions, ManagedTensor, export};

pub fn mistake(x: Int32Array, mut y: ManagedTensor) {
    export::tensor_into(&x, &mut y, &ExportOptions::default()).unwrap();
}

fn main() {}
