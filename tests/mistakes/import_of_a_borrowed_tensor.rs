//~ consider removing the borrow

use arrow_dlpack::{ImportOptions, ManagedTensor, from_dlpack};

pub fn mistake(x: ManagedTensor) {
    from_dlpack(&x, &ImportOptions::default()).unwrap();
}

fn main() {}
